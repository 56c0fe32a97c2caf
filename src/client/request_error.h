// RequestError: why a request failed, and whether it may have taken effect all the same.
// RequestResult<T>: a T or such an error.
//
// Three fates that a caller treats differently:
//   not_sent   no byte of it left this side; it can be sent again, anywhere
//   unknown    some or all of it was sent and no answer was read; it may have taken effect, or may
//              take effect later
//   answered   the server answered ERROR; its code and its numbers are in answer()
#pragma once

#include <cstdint>
#include <expected>
#include <string>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "base/result.h"
#include "cql/protocol/primitives.h"
#include "cql/protocol/response.h"

namespace helenus::client {

enum class Fate : std::uint8_t { not_sent, unknown, answered };
// "not sent", "outcome unknown", "answered".
std::string_view name_of(Fate fate);

class [[nodiscard]] RequestError {
 public:
  static RequestError not_sent(base::Error cause) { return {Fate::not_sent, std::move(cause)}; }
  static RequestError unknown(base::Error cause) { return {Fate::unknown, std::move(cause)}; }
  static RequestError answered(cql::protocol::ErrorMessage answer) {
    return {Fate::answered, std::move(answer)};
  }

  Fate fate() const { return fate_; }
  // What ended the wait: timeout, cancelled; connection_lost, closed, corrupt; overloaded,
  // unavailable, invalid_argument (only of requests that were not sent). Null if answered.
  const base::Error* cause() const { return std::get_if<base::Error>(&what_); }
  // The ERROR of the server: `answer()->details` has the numbers of its code. Null unless answered.
  const cql::protocol::ErrorMessage* answer() const {
    return std::get_if<cql::protocol::ErrorMessage>(&what_);
  }
  bool is(cql::protocol::ErrorCode code) const {
    return answer() != nullptr && answer()->code == code;
  }
  bool is(base::Errc code) const { return cause() != nullptr && cause()->code() == code; }

  // Whether the statement may have changed something, or may do so later. An answer excludes it
  // only if its code is one of a statement that was not begun: UNAVAILABLE, BOOTSTRAPPING,
  // UNPREPARED, ALREADY_EXISTS, and those of what the client asked for.
  bool may_have_happened() const;
  // An earlier attempt of the same statement ended unknown: then it may have happened whatever the
  // last attempt says.
  RequestError after_doubt() && {
    in_doubt_ = true;
    return std::move(*this);
  }

  // "outcome unknown: timeout", "answered 0x1000: Cannot achieve consistency level QUORUM".
  std::string to_string() const;
  // For those who only pass it on: the cause, or Errc::refused with the server's words.
  base::Error to_error() const;

  friend bool operator==(const RequestError&, const RequestError&) = default;

 private:
  using What = std::variant<base::Error, cql::protocol::ErrorMessage>;
  RequestError(Fate fate, What what) : fate_(fate), what_(std::move(what)) {}

  Fate fate_;
  bool in_doubt_ = false;
  What what_;
};

template <class T>
class [[nodiscard]] RequestResult : public std::expected<T, RequestError> {
  using Base = std::expected<T, RequestError>;

 public:
  using Base::Base;
  RequestResult(RequestError error) : Base(std::unexpect, std::move(error)) {}  // NOLINT

  bool failed_with(Fate fate) const { return !this->has_value() && this->error().fate() == fate; }
  bool failed_with(cql::protocol::ErrorCode code) const {
    return !this->has_value() && this->error().is(code);
  }
  bool failed_with(base::Errc code) const { return !this->has_value() && this->error().is(code); }
};

}  // namespace helenus::client

template <>
struct fmt::formatter<helenus::client::RequestError> : fmt::formatter<std::string> {
  auto format(const helenus::client::RequestError& error, fmt::format_context& ctx) const {
    return fmt::formatter<std::string>::format(error.to_string(), ctx);
  }
};
