// One request over HTTP, on a connection of its own.
#pragma once

#include <string>
#include <string_view>

#include "admin/http.h"
#include "base/result.h"
#include "runtime/address.h"
#include "runtime/operation.h"
#include "runtime/runtime.h"
#include "runtime/task.h"

namespace helenus::sim {

struct HttpReply {
  int status = 0;
  admin::HttpHeaders headers = {};
  std::string body = {};

  // Empty if it is not there.
  std::string header(std::string_view name) const;
};

// Errors: unavailable if nothing was sent; others leave open what became of it.
runtime::Task<base::Result<HttpReply>> http_request(runtime::Runtime& runtime,
                                                    runtime::Address server, std::string method,
                                                    std::string target, std::string body,
                                                    admin::HttpHeaders headers,
                                                    runtime::Until until);

}  // namespace helenus::sim
