// The little of HTTP/1.1 that operators and the key-value API need. A request is parsed up to the
// end of its headers; they say how long its body is, which the server reads (admin_server.h). Pure:
// bytes in, values out.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"

namespace helenus::admin {

// A request line and its headers take at most this much. A header may be a context of causality.
inline constexpr std::size_t kHttpRequestSizeMax = std::size_t{32} << 10;
// Headers of one request.
inline constexpr std::size_t kHttpHeadersMax = 100;

// What begins so is about rows (src/keyvalue).
inline constexpr std::string_view kDataPath = "/v1/kv/";

using HttpHeaders = std::vector<std::pair<std::string, std::string>>;

struct HttpRequest {
  std::string method = {};
  std::string path = {};   // without the query
  std::string query = {};  // what follows '?', undecoded
  bool keep_alive = true;
  bool from_page = false;  // a browser sent it for a page that somebody wrote (Origin)
  std::size_t size = 0;    // bytes that the line and the headers took, to be dropped from the input
  // All headers as they came, without blanks around their values.
  HttpHeaders headers = {};
  std::size_t body_size = 0;     // as its headers say
  bool awaits_continue = false;  // its client wants to hear first whether to send the body
  // Set by whoever reads it.
  base::Bytes body = {};
  bool from_loopback = false;

  // The value of the header of that name, in any case; none if there is no such header.
  std::optional<std::string_view> header(std::string_view name) const;
};

// The first request in `input`; nothing if it is not complete yet. Errors: invalid_argument for
// what is not a request, is longer than kHttpRequestSizeMax, or has twice a header that must not be
// there twice; unsupported for a body without a length, another version or another expectation than
// 100-continue. Strict where a proxy in front may read the same bytes otherwise, and take part of
// one request for the next: lines end in CRLF, no header is folded, no space follows its name.
base::Result<std::optional<HttpRequest>> parse_http_request(base::ByteView input);

struct HttpResponse {
  int status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::string body;
  std::string allow = {};    // the methods there are; for status 405
  HttpHeaders headers = {};  // besides those that every response has
};

// What a client that awaits it is sent before its body.
inline constexpr std::string_view kHttpContinue = "HTTP/1.1 100 Continue\r\n\r\n";

// `with_body` is false for the answer to HEAD.
std::string encode(const HttpResponse& response, bool keep_alive, bool with_body);

}  // namespace helenus::admin
