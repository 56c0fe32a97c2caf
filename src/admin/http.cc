#include "admin/http.h"

#include <algorithm>

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

// What the headers say.
struct Wishes {
  bool close = false;
  bool keep_alive = false;
  bool from_page = false;
};

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

Result<void> parse_header(std::string_view line, Wishes& wishes) {
  const std::size_t colon = line.find(':');
  if (colon == std::string_view::npos || !is_token(line.substr(0, colon)) ||
      has_control_characters(line)) {
    return Error(Errc::invalid_argument, "not a header");
  }
  const std::string_view name = line.substr(0, colon);
  const std::string_view value = trim(line.substr(colon + 1));
  if (equal_ignoring_case(name, "connection")) {
    for (std::string_view list = value; !list.empty();) {
      const std::string_view wish = trim(take_until(",", list));
      wishes.close |= equal_ignoring_case(wish, "close");
      wishes.keep_alive |= equal_ignoring_case(wish, "keep-alive");
    }
  } else if (equal_ignoring_case(name, "origin")) {
    wishes.from_page = true;
  } else if (equal_ignoring_case(name, "transfer-encoding") ||
             (equal_ignoring_case(name, "content-length") && value != "0")) {
    return Error(Errc::unsupported, "a request with a body");
  }
  return {};
}

std::string_view reason_of(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 400:
      return "Bad Request";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 501:
      return "Not Implemented";
    case 503:
      return "Service Unavailable";
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
  while (!text.empty()) TRY_VOID(parse_header(take_until("\r\n", text), wishes));
  request.keep_alive = (request.keep_alive || wishes.keep_alive) && !wishes.close;
  request.from_page = wishes.from_page;
  return request;
}

std::string encode(const HttpResponse& response, bool keep_alive, bool with_body) {
  const std::string allow =
      response.allow.empty() ? "" : fmt::format("Allow: {}\r\n", response.allow);
  return fmt::format(
      "HTTP/1.1 {} {}\r\nContent-Type: {}\r\nContent-Length: {}\r\n{}Connection: {}\r\n\r\n{}",
      response.status, reason_of(response.status), response.content_type, response.body.size(),
      allow, keep_alive ? "keep-alive" : "close", with_body ? response.body : "");
}

}  // namespace helenus::admin
