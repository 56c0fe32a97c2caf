#include "sim/scenarios/siblings/http_client.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "admin/http_text.h"
#include "runtime/transport.h"

namespace helenus::sim {

using base::Errc;
using base::Error;
using base::Result;
using runtime::Task;

namespace {

Result<HttpReply> parse_reply(std::string_view text) {
  constexpr std::string_view kVersion = "HTTP/1.1 ";
  const std::size_t end = text.find("\r\n\r\n");
  if (end == std::string_view::npos || !text.starts_with(kVersion)) {
    return Error(Errc::connection_lost, "an answer that was cut");
  }
  HttpReply reply;
  std::from_chars(text.data() + kVersion.size(), text.data() + text.size(), reply.status);
  reply.body = text.substr(end + 4);
  std::string_view lines = text.substr(0, end);
  while (!lines.empty()) {
    const std::string_view line = lines.substr(0, lines.find("\r\n"));
    lines.remove_prefix(std::min(line.size() + 2, lines.size()));
    const std::size_t colon = line.find(": ");
    if (colon == std::string_view::npos) continue;
    reply.headers.emplace_back(line.substr(0, colon), line.substr(colon + 2));
  }
  const std::string length = reply.header("Content-Length");
  if (!length.empty() && length != fmt::to_string(reply.body.size())) {
    return Error(Errc::connection_lost, "a body that was cut");
  }
  return reply;
}

}  // namespace

std::string HttpReply::header(std::string_view name) const {
  for (const auto& [key, value] : headers) {
    if (admin::equal_ignoring_case(key, name)) return value;
  }
  return {};
}

Task<Result<HttpReply>> http_request(runtime::Runtime& runtime, runtime::Address server,
                                     std::string method, std::string target, std::string body,
                                     admin::HttpHeaders headers, runtime::Until until) {
  auto stream = co_await runtime.transport.connect(std::move(server), until);
  if (!stream) co_return Error(Errc::unavailable, "not connected");
  std::string text = fmt::format("{} {} HTTP/1.1\r\nConnection: close\r\nContent-Length: {}\r\n",
                                 method, target, body.size());
  for (const auto& [name, value] : headers) text += fmt::format("{}: {}\r\n", name, value);
  text += "\r\n" + body;
  CO_TRY_VOID(co_await (*stream)->write(base::as_bytes(text), until));
  std::string answer;
  std::array<std::byte, 4096> chunk{};
  for (;;) {
    CO_TRY(const std::size_t size, co_await (*stream)->read(chunk, until));
    if (size == 0) break;
    answer += base::as_text(std::span(chunk).first(size));
  }
  co_return parse_reply(answer);
}

}  // namespace helenus::sim
