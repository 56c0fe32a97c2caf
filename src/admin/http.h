// The little of HTTP/1.1 that operators need: requests without a body, answers with one.
// Pure: bytes in, values out. The server around it is admin_server.h.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "base/result.h"

namespace helenus::admin {

// A request line and its headers take at most this much.
inline constexpr std::size_t kHttpRequestSizeMax = 8192;

struct HttpRequest {
  std::string method = {};
  std::string path = {};   // without the query
  std::string query = {};  // what follows '?', undecoded
  bool keep_alive = true;
  bool from_page = false;  // a browser sent it for a page that somebody wrote (Origin)
  std::size_t size = 0;    // bytes it took, to be dropped from the input
};

// The first request in `input`; nothing if it is not complete yet. Errors: invalid_argument for
// what is not a request, or is longer than kHttpRequestSizeMax; unsupported for a body or another
// version. Strict where a proxy in front may read the same bytes otherwise, and take part of one
// request for the next: lines end in CRLF, no header is folded, no space follows its name.
base::Result<std::optional<HttpRequest>> parse_http_request(base::ByteView input);

struct HttpResponse {
  int status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::string body;
  std::string allow = {};  // the methods there are; for status 405
};

// `with_body` is false for the answer to HEAD.
std::string encode(const HttpResponse& response, bool keep_alive, bool with_body);

}  // namespace helenus::admin
