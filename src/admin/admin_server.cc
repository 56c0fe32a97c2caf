#include "admin/admin_server.h"

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
  if (request.method == "GET" || request.method == "HEAD") return std::nullopt;
  if (!runtime::is_loopback(client)) {
    return HttpResponse{.status = 403,
                        .body = "what changes something is asked for from a loopback address\n"};
  }
  if (request.from_page) {
    return HttpResponse{.status = 403, .body = "what changes something is not for pages\n"};
  }
  if (request.method == "POST") return std::nullopt;
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

runtime::Task<void> AdminServer::serve(std::unique_ptr<runtime::Stream> stream,
                                       runtime::Permit permit) {
  base::Buffer input(kHttpRequestSizeMax);
  for (;;) {
    const auto until = Until::after(runtime_, kRequestTimeout, stopping_.token());
    auto request = parse_http_request(input.view());
    while (request && !*request) {
      const std::size_t filled = input.size();
      const auto room = input.extend(kHttpRequestSizeMax - filled);
      const auto got = co_await stream->read(room, until);
      if (!got || *got == 0) co_return;
      input.truncate(filled + *got);
      request = parse_http_request(input.view());
    }
    std::optional<HttpResponse> response =
        request ? refuse(**request, stream->peer_address()) : refusal(request.error());
    const bool keep_alive = !response && (*request)->keep_alive;
    const bool with_body = !request || (*request)->method != "HEAD";
    if (!response) response = co_await handler_(**request);
    const std::string answer = encode(*response, keep_alive, with_body);
    const auto sent = co_await stream->write(
        base::as_bytes(answer), Until::after(runtime_, kRequestTimeout, stopping_.token()));
    if (!sent) co_return;
    if (!keep_alive) break;
    base::Buffer rest(kHttpRequestSizeMax);
    rest.append(input.view().subspan((*request)->size));
    input = std::move(rest);
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
