// Refusal: why a request of the key-value API is answered with an error, and HttpResult<T>: a T or
// such a refusal. Errors of other parts become one by what a client can do about them.
#pragma once

#include <expected>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "base/result.h"
#include "cql/errors/query_error.h"

namespace helenus::keyvalue {

struct Refusal {
  int status = 500;
  std::string why;

  Refusal(int its_status, std::string its_why) : status(its_status), why(std::move(its_why)) {}
  template <class... Args>
    requires(sizeof...(Args) > 0)
  Refusal(int its_status, fmt::format_string<Args...> format, Args&&... args)
      : status(its_status), why(fmt::format(format, std::forward<Args>(args)...)) {}
  // Of what the request says: invalid_argument and the like are 400, not_found is 404.
  Refusal(const base::Error& error);  // NOLINT: TRY
  // invalid is 400, unavailable and overloaded are 503, timeouts 504, failures 500.
  Refusal(const cql::QueryError& error);  // NOLINT: TRY
};

template <class T>
class [[nodiscard]] HttpResult : public std::expected<T, Refusal> {
  using Base = std::expected<T, Refusal>;

 public:
  using Base::Base;
  HttpResult(Refusal refusal) : Base(std::unexpect, std::move(refusal)) {}  // NOLINT
  HttpResult(const base::Error& error) : Base(std::unexpect, error) {}      // NOLINT
  HttpResult(const cql::QueryError& error) : Base(std::unexpect, error) {}  // NOLINT
};

}  // namespace helenus::keyvalue
