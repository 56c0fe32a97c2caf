#include "admin/admin_server.h"

#include <algorithm>

#include <fmt/format.h>

#include "runtime/loopback.h"
#include "runtime/sleep.h"

namespace helenus::admin {

using base::Errc;
using base::kv;
using runtime::Until;
using namespace std::chrono_literals;

namespace {

constexpr runtime::Duration kAcceptRetryDelay = 100ms;

HttpResponse refusal(const base::Error& error) {
  const int status = error.code() == Errc::unsupported ? 501 : 400;
  return {.status = status, .body = error.to_string() + "\n"};
}

}  // namespace

std::optional<HttpResponse> refuse(const HttpRequest& request, const runtime::Address& client) {
  const bool is_data = request.path.starts_with(kDataPath);
  if (request.body_size > 0 && (request.method != "PUT" || !is_data)) {
    return HttpResponse{.status = 501, .body = "only PUT below /v1/kv/ takes a body\n"};
  }
  if (request.body_size > AdminServer::kBodySizeMax) {
    return HttpResponse{
        .status = 413,
        .body = fmt::format("a value of at most {} bytes\n", AdminServer::kBodySizeMax)};
  }
  if (request.method == "GET" || request.method == "HEAD") return std::nullopt;
  if (!is_data && !runtime::is_loopback(client)) {
    return HttpResponse{.status = 403,
                        .body = "what changes something is asked for from a loopback address\n"};
  }
  if (request.from_page) {
    return HttpResponse{.status = 403, .body = "what changes something is not for pages\n"};
  }
  if (request.method == "POST" || is_data) return std::nullopt;
  return HttpResponse{.status = 405, .body = "GET, HEAD or POST\n", .allow = "GET, HEAD, POST"};
}

base::Result<void> AdminServer::start(const runtime::Address& address) {
  ASSERT(listener_ == nullptr && !stopping_.stop_requested());
  TRY(listener_, runtime_.transport.listen(address));
  tasks_.spawn(accept_connections());
  return {};
}

runtime::Task<void> AdminServer::stop() {
  stopping_.request_stop();
  if (listener_ != nullptr) listener_->close();
  co_await tasks_.join();
}

runtime::Task<void> AdminServer::accept_connections() {
  const runtime::StopToken stop = stopping_.token();
  for (;;) {
    auto permit = co_await connections_.acquire(1, {.stop = stop});
    if (!permit) co_return;
    auto stream = co_await listener_->accept({.stop = stop});
    if (stream) {
      tasks_.spawn(serve(*std::move(stream), *std::move(permit)));
      continue;
    }
    if (stream.failed_with(Errc::cancelled) || stream.failed_with(Errc::closed)) co_return;
    log_.warn("accepting a connection failed", kv("error", stream.error()));
    const auto paused = co_await runtime::sleep_for(runtime_, kAcceptRetryDelay, stop);
    if (!paused) co_return;
  }
}

runtime::Task<std::optional<base::Result<HttpRequest>>> AdminServer::read_head(
    runtime::Stream& stream, base::Buffer& input, Until until) {
  for (;;) {
    auto request = parse_http_request(input.view());
    if (!request) co_return base::Result<HttpRequest>(std::move(request).error());
    if (*request) co_return base::Result<HttpRequest>(*std::move(*request));
    const std::size_t filled = input.size();
    const auto room = input.extend(kHttpRequestSizeMax - filled);
    const auto got = co_await stream.read(room, until);
    if (!got || *got == 0) co_return std::nullopt;
    input.truncate(filled + *got);
  }
}

runtime::Task<bool> AdminServer::read_body(runtime::Stream& stream, base::Buffer& input,
                                           HttpRequest& request, Until until) {
  const base::ByteView behind = input.view().subspan(request.size);
  base::Buffer body(request.body_size);
  body.append(behind.first(std::min(behind.size(), request.body_size)));
  base::Buffer rest(kHttpRequestSizeMax);
  rest.append(behind.subspan(body.size()));
  input = std::move(rest);
  if (request.awaits_continue && body.size() < request.body_size) {
    const auto sent = co_await stream.write(base::as_bytes(kHttpContinue), until);
    if (!sent) co_return false;
  }
  while (body.size() < request.body_size) {
    const std::size_t filled = body.size();
    const auto room = body.extend(request.body_size - filled);
    const auto got = co_await stream.read(room, until);
    if (!got || *got == 0) co_return false;
    body.truncate(filled + *got);
  }
  request.body = std::move(body).freeze();
  co_return true;
}

runtime::Task<std::optional<bool>> AdminServer::serve_one(runtime::Stream& stream,
                                                          base::Buffer& input) {
  const auto until = Until::after(runtime_, kRequestTimeout, stopping_.token());
  auto request = co_await read_head(stream, input, until);
  if (!request) co_return std::nullopt;
  std::optional<HttpResponse> response =
      *request ? refuse(**request, stream.peer_address()) : refusal(request->error());
  runtime::Permit room;
  if (!response && (*request)->body_size > 0) {
    auto permit = co_await bodies_.acquire((*request)->body_size, until);
    if (permit) room = *std::move(permit);
    if (!permit) response = HttpResponse{.status = 503, .body = "too many bodies at once\n"};
  }
  const bool keep_alive = !response && (*request)->keep_alive;
  const bool with_body = !*request || (*request)->method != "HEAD";
  if (!response) {
    const bool is_whole = co_await read_body(stream, input, **request, until);
    if (!is_whole) co_return std::nullopt;
    (*request)->from_loopback = runtime::is_loopback(stream.peer_address());
    response = co_await handler_(**request);
  }
  const std::string answer = encode(*response, keep_alive, with_body);
  const auto sent = co_await stream.write(
      base::as_bytes(answer), Until::after(runtime_, kRequestTimeout, stopping_.token()));
  if (!sent) co_return std::nullopt;
  co_return keep_alive;
}

runtime::Task<void> AdminServer::serve(std::unique_ptr<runtime::Stream> stream,
                                       runtime::Permit permit) {
  base::Buffer input(kHttpRequestSizeMax);
  for (;;) {
    const auto goes_on = co_await serve_one(*stream, input);
    if (!goes_on) co_return;
    if (!*goes_on) break;
  }
  co_await linger(*stream);
  permit.release();
}

// A stream that is closed with bytes unread breaks, and the client may lose the answer it has not
// yet read. So what it still sends (a body we refused, requests after the last) is read and
// dropped.
runtime::Task<void> AdminServer::linger(runtime::Stream& stream) {
  stream.shutdown_write();
  const auto until = Until::after(runtime_, kLingerTimeout, stopping_.token());
  base::Buffer dropped;
  const auto room = dropped.extend(kHttpRequestSizeMax);
  for (std::size_t size = 0; size < kLingerSizeMax;) {
    const auto got = co_await stream.read(room, until);
    if (!got || *got == 0) co_return;
    size += *got;
  }
}

}  // namespace helenus::admin
