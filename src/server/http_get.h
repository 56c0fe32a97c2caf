// http_get: asks an HTTP server for one thing, or to do one (http_post). As much of HTTP/1.1 as the
// tools need, of a server that may be anybody: what comes is bounded in size and in time.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "runtime/address.h"
#include "runtime/operation.h"
#include "runtime/runtime.h"
#include "runtime/task.h"

namespace helenus::server {

// The status line and the headers take at most this much.
inline constexpr std::size_t kHttpHeadSizeMax = 16384;

struct HttpHead {
  int status = 0;
  std::size_t size = 0;                                 // with the empty line that ends it
  std::optional<std::size_t> body_size = std::nullopt;  // none: the body ends with the connection
};

// The head at the beginning of `input`; nothing if it is not complete yet. Errors: corrupt for what
// is no answer of HTTP/1; unsupported for a body in chunks, which nobody asked for.
base::Result<std::optional<HttpHead>> parse_http_head(std::string_view input);

struct HttpAnswer {
  int status = 0;
  std::string body;
};

// Requires: `target` begins with a slash and has no spaces or control characters.
// Errors: those of connecting; timeout; corrupt for what is no answer, is cut short, or has a body
// of more than `body_size_max` bytes; unsupported.
runtime::Task<base::Result<HttpAnswer>> http_get(runtime::Runtime& runtime, runtime::Address server,
                                                 std::string target, std::size_t body_size_max,
                                                 runtime::Until until);

// The same, and the server may change something. No body is sent.
runtime::Task<base::Result<HttpAnswer>> http_post(runtime::Runtime& runtime,
                                                  runtime::Address server, std::string target,
                                                  std::size_t body_size_max, runtime::Until until);

}  // namespace helenus::server
