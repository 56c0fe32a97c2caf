#include "server/http_get.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "admin/http_text.h"
#include "base/bytes.h"
#include "runtime/transport.h"

namespace helenus::server {

using base::Errc;
using base::Error;
using base::Result;
using runtime::Task;
using runtime::Until;

namespace {

constexpr std::size_t kReadSize = 16384;

template <class Number>
std::optional<Number> parse_number(std::string_view text) {
  Number number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

// "HTTP/1.1 200 OK"
Result<int> parse_status_line(std::string_view line) {
  constexpr std::string_view kVersion = "HTTP/1.";
  constexpr std::size_t kStatusAt = kVersion.size() + 2;
  if (!line.starts_with(kVersion) || line.size() < kStatusAt + 3 || line[kStatusAt - 1] != ' ') {
    return Error(Errc::corrupt, "this is no answer of HTTP");
  }
  const auto status = parse_number<int>(line.substr(kStatusAt, 3));
  if (!status || *status < 100 || *status > 599) {
    return Error(Errc::corrupt, "this is no status of HTTP");
  }
  return *status;
}

Result<void> parse_header(std::string_view line, HttpHead& head) {
  const std::size_t colon = line.find(':');
  if (colon == std::string_view::npos) return Error(Errc::corrupt, "this is no header of HTTP");
  const std::string_view name = line.substr(0, colon);
  const std::string_view value = admin::trim(line.substr(colon + 1));
  if (admin::equal_ignoring_case(name, "transfer-encoding"))
    return Error(Errc::unsupported, "a body in chunks");
  if (!admin::equal_ignoring_case(name, "content-length")) return {};
  const auto size = parse_number<std::size_t>(value);
  if (!size || (head.body_size && head.body_size != size)) {
    return Error(Errc::corrupt, "this is no size of a body");
  }
  head.body_size = size;
  return {};
}

Error too_large(std::size_t body_size_max) {
  return Error(Errc::corrupt, "an answer of more than {} bytes", body_size_max);
}

// Reads until the answer is whole, or cannot be.
Task<Result<HttpAnswer>> read_answer(runtime::Stream& stream, std::size_t body_size_max,
                                     Until until) {
  std::string input;
  std::optional<HttpHead> head;
  std::array<std::byte, kReadSize> chunk{};
  for (;;) {
    CO_TRY(const std::size_t size, co_await stream.read(chunk, until));
    input += base::as_text(std::span(chunk).first(size));
    if (!head) {
      CO_TRY(head, parse_http_head(input));
    }
    if (!head) {
      if (size == 0) co_return Error(Errc::corrupt, "the answer is cut short");
      continue;
    }
    const std::size_t body_size = input.size() - head->size;
    if (body_size > body_size_max || head->body_size.value_or(0) > body_size_max) {
      co_return too_large(body_size_max);
    }
    if (head->body_size && body_size >= *head->body_size) break;
    if (size > 0) continue;
    if (head->body_size) co_return Error(Errc::corrupt, "the answer is cut short");
    break;
  }
  HttpAnswer answer{.status = head->status, .body = input.substr(head->size)};
  if (head->body_size) answer.body.resize(*head->body_size);
  co_return answer;
}

}  // namespace

Result<std::optional<HttpHead>> parse_http_head(std::string_view input) {
  const std::size_t end = input.substr(0, kHttpHeadSizeMax).find("\r\n\r\n");
  if (end == std::string_view::npos) {
    if (input.size() >= kHttpHeadSizeMax) {
      return Error(Errc::corrupt, "an answer whose headers do not end");
    }
    // Who speaks something else is told from the first bytes, and not waited for.
    constexpr std::string_view kBeginning = "HTTP/1.";
    const std::size_t compared = std::min(input.size(), kBeginning.size());
    if (input.substr(0, compared) != kBeginning.substr(0, compared)) {
      return Error(Errc::corrupt, "this is no answer of HTTP");
    }
    return std::optional<HttpHead>();
  }
  HttpHead head;
  head.size = end + 4;
  std::string_view lines = input.substr(0, end);
  for (bool first = true; !lines.empty(); first = false) {
    const std::size_t line_end = std::min(lines.find("\r\n"), lines.size());
    const std::string_view line = lines.substr(0, line_end);
    lines.remove_prefix(std::min(line_end + 2, lines.size()));
    if (first) {
      TRY(head.status, parse_status_line(line));
    } else {
      TRY_VOID(parse_header(line, head));
    }
  }
  if (head.status == 0) return Error(Errc::corrupt, "this is no answer of HTTP");
  return std::optional<HttpHead>(head);
}

namespace {

Task<Result<HttpAnswer>> ask(runtime::Runtime& runtime, std::string_view method,
                             runtime::Address server, std::string target, std::size_t body_size_max,
                             Until until) {
  CO_TRY(const auto stream, co_await runtime.transport.connect(server, until));
  const std::string request = fmt::format(
      "{} {} HTTP/1.1\r\nHost: {}\r\nAccept: application/json\r\nConnection: close\r\n\r\n", method,
      target, server);
  CO_TRY_VOID(co_await stream->write(base::as_bytes(request), until));
  co_return co_await read_answer(*stream, body_size_max, until);
}

}  // namespace

Task<Result<HttpAnswer>> http_get(runtime::Runtime& runtime, runtime::Address server,
                                  std::string target, std::size_t body_size_max, Until until) {
  return ask(runtime, "GET", server, std::move(target), body_size_max, std::move(until));
}

Task<Result<HttpAnswer>> http_post(runtime::Runtime& runtime, runtime::Address server,
                                   std::string target, std::size_t body_size_max, Until until) {
  return ask(runtime, "POST", server, std::move(target), body_size_max, std::move(until));
}

}  // namespace helenus::server
