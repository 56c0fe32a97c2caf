#include "admin/http.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <iterator>

#include <fmt/format.h>

#include "admin/http_text.h"

namespace helenus::admin {

using base::Errc;
using base::Error;
using base::Result;

namespace {

// Takes the text up to the next separator off the front, and the separator with it.
std::string_view take_until(std::string_view separator, std::string_view& text) {
  const std::size_t end = text.find(separator);
  const std::string_view taken = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + separator.size());
  return taken;
}

// What methods and header names are made of.
bool is_token(std::string_view text) {
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("!#$%&'*+-.^_`|~").contains(c);
  };
  return !text.empty() && std::ranges::all_of(text, allowed);
}

bool has_control_characters(std::string_view text) {
  return std::ranges::any_of(text, [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return (byte < ' ' && c != '\t') || byte == 127;
  });
}

// What the headers say of the connection.
struct Wishes {
  bool close = false;
  bool keep_alive = false;
};

// Headers of which two would be two meanings.
constexpr std::array<std::string_view, 10> kSingleHeaders = {
    "accept", "content-length", "content-type",  "expect", "helenus-context",
    "host",   "if-match",       "if-none-match", "origin", "transfer-encoding",
};

Result<std::size_t> parse_length(std::string_view text) {
  std::size_t length = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), length);
  const bool is_plain = !text.empty() && (text.front() != '0' || text == "0");
  if (problem != std::errc() || end != text.data() + text.size() || !is_plain) {
    return Error(Errc::invalid_argument, "not a length");
  }
  return length;
}

Result<void> parse_request_line(std::string_view line, HttpRequest& request) {
  const std::size_t first = line.find(' ');
  const std::size_t last = line.rfind(' ');
  if (first == std::string_view::npos || first == last || !is_token(line.substr(0, first))) {
    return Error(Errc::invalid_argument, "not a request line");
  }
  const std::string_view target = line.substr(first + 1, last - first - 1);
  const std::string_view version = line.substr(last + 1);
  const bool printable = std::ranges::all_of(line, [](char c) { return c >= ' ' && c < 127; });
  if (!printable || target.empty() || target.front() != '/' || target.contains(' ')) {
    return Error(Errc::invalid_argument, "not a request target");
  }
  if (version != "HTTP/1.1" && version != "HTTP/1.0") {
    return Error(Errc::unsupported, "not HTTP/1.1");
  }
  request.method = line.substr(0, first);
  const std::size_t question = target.find('?');
  request.path = target.substr(0, question);
  if (question != std::string_view::npos) request.query = target.substr(question + 1);
  request.keep_alive = version == "HTTP/1.1";
  return {};
}

void parse_connection(std::string_view list, Wishes& wishes) {
  while (!list.empty()) {
    const std::string_view wish = trim(take_until(",", list));
    wishes.close |= equal_ignoring_case(wish, "close");
    wishes.keep_alive |= equal_ignoring_case(wish, "keep-alive");
  }
}

Result<void> parse_header(std::string_view line, HttpRequest& request, Wishes& wishes) {
  const std::size_t colon = line.find(':');
  if (colon == std::string_view::npos || !is_token(line.substr(0, colon)) ||
      has_control_characters(line)) {
    return Error(Errc::invalid_argument, "not a header");
  }
  const std::string_view name = line.substr(0, colon);
  const std::string_view value = trim(line.substr(colon + 1));
  const auto is_named = [&](std::string_view other) { return equal_ignoring_case(name, other); };
  if (request.headers.size() == kHttpHeadersMax) {
    return Error(Errc::invalid_argument, "more than {} headers", kHttpHeadersMax);
  }
  if (std::ranges::any_of(kSingleHeaders, is_named) && request.header(name)) {
    return Error(Errc::invalid_argument, "two headers {}", name);
  }
  if (is_named("connection")) {
    parse_connection(value, wishes);
  } else if (is_named("origin")) {
    request.from_page = true;
  } else if (is_named("transfer-encoding")) {
    return Error(Errc::unsupported, "a body without Content-Length");
  } else if (is_named("content-length")) {
    TRY(request.body_size, parse_length(value));
  } else if (is_named("expect")) {
    if (!equal_ignoring_case(value, "100-continue")) {
      return Error(Errc::unsupported, "another expectation than 100-continue");
    }
    request.awaits_continue = true;
  }
  request.headers.emplace_back(name, value);
  return {};
}

std::string_view reason_of(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 204:
      return "No Content";
    case 300:
      return "Multiple Choices";
    case 304:
      return "Not Modified";
    case 400:
      return "Bad Request";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 409:
      return "Conflict";
    case 412:
      return "Precondition Failed";
    case 413:
      return "Content Too Large";
    case 415:
      return "Unsupported Media Type";
    case 500:
      return "Internal Server Error";
    case 501:
      return "Not Implemented";
    case 503:
      return "Service Unavailable";
    case 504:
      return "Gateway Timeout";
    default:
      return "Status";
  }
}

}  // namespace

Result<std::optional<HttpRequest>> parse_http_request(base::ByteView input) {
  std::string_view text = base::as_text(input.first(std::min(input.size(), kHttpRequestSizeMax)));
  const std::size_t end = text.find("\r\n\r\n");
  if (end == std::string_view::npos) {
    if (input.size() < kHttpRequestSizeMax) return std::optional<HttpRequest>();
    return Error(Errc::invalid_argument, "request exceeds {} bytes", kHttpRequestSizeMax);
  }
  HttpRequest request;
  request.size = end + 4;
  text = text.substr(0, end + 2);
  TRY_VOID(parse_request_line(take_until("\r\n", text), request));
  Wishes wishes;
  while (!text.empty()) TRY_VOID(parse_header(take_until("\r\n", text), request, wishes));
  request.keep_alive = (request.keep_alive || wishes.keep_alive) && !wishes.close;
  return request;
}

std::optional<std::string_view> HttpRequest::header(std::string_view name) const {
  const auto found = std::ranges::find_if(
      headers, [&](const auto& header) { return equal_ignoring_case(header.first, name); });
  if (found == headers.end()) return std::nullopt;
  return found->second;
}

// An answer without content says nothing of any; one to HEAD says what GET would have had.
std::string encode(const HttpResponse& response, bool keep_alive, bool with_body) {
  std::string text = fmt::format("HTTP/1.1 {} {}\r\n", response.status, reason_of(response.status));
  const auto add = [&](std::string_view name, std::string_view value) {
    fmt::format_to(std::back_inserter(text), "{}: {}\r\n", name, value);
  };
  const bool has_content = response.status != 204 && response.status != 304;
  if (has_content) {
    add("Content-Type", response.content_type);
    add("Content-Length", fmt::to_string(response.body.size()));
  }
  if (!response.allow.empty()) add("Allow", response.allow);
  for (const auto& [name, value] : response.headers) add(name, value);
  add("Connection", keep_alive ? "keep-alive" : "close");
  text += "\r\n";
  if (with_body && has_content) text += response.body;
  return text;
}

}  // namespace helenus::admin
