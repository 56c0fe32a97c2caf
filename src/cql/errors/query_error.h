// QueryError: what a client is told when a statement fails, and QueryResult<T>: a T or such an
// error.
//
// Two worlds of errors meet here. Below, base::Error says what went wrong in our terms; clients
// know the codes of the CQL protocol. Planning and executing speak the latter:
//
//   QueryResult<Plan> plan(const parser::Select& select) {
//     if (...) return invalid("Undefined column name {} in table {}", name, table);
//     TRY(const Bytes value, model::parse_literal(type, kind, text));   // a base::Result: 2200
//     TRY(Term term, compile(...));                                      // a QueryResult
//   }
//
// An error of model or parser is about what the client said, so it converts by itself: 2200 with
// its words. What comes from below a write or a read goes through write_error() and read_error(),
// which know the bodies of timeouts and failures.
#pragma once

#include <expected>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/bytes.h"
#include "base/result.h"
#include "cql/protocol/primitives.h"
#include "cql/protocol/response.h"
#include "model/consistency.h"

namespace helenus::cql {

class [[nodiscard]] QueryError {
 public:
  // Requires: a code whose body is its message alone.
  QueryError(protocol::ErrorCode code, std::string message)
      : message_(std::make_unique<protocol::ErrorMessage>(code, std::move(message))) {}
  // The code is that of the details. Requires: not monostate.
  QueryError(protocol::ErrorDetails details, std::string message)
      : message_(std::make_unique<protocol::ErrorMessage>(std::move(details), std::move(message))) {
  }
  // An error of a statement that was not executed: invalid_argument, unsupported and not_found are
  // 2200, overloaded and timeout 0x1001, all others a server error.
  QueryError(const base::Error& error);  // NOLINT: TRY in a function that returns a QueryResult

  QueryError(const QueryError& other)
      : message_(std::make_unique<protocol::ErrorMessage>(*other.message_)) {}
  QueryError& operator=(const QueryError& other) { return *this = QueryError(other); }
  QueryError(QueryError&&) noexcept = default;
  QueryError& operator=(QueryError&&) noexcept = default;
  ~QueryError() = default;

  protocol::ErrorCode code() const { return message_->code; }
  const std::string& text() const { return message_->message; }
  // What is sent.
  const protocol::ErrorMessage& message() const { return *message_; }

  // "0x2200: Undefined column name x".
  std::string to_string() const;

 private:
  std::unique_ptr<protocol::ErrorMessage> message_;
};

template <class T>
class [[nodiscard]] QueryResult : public std::expected<T, QueryError> {
  using Base = std::expected<T, QueryError>;

 public:
  using Base::Base;
  QueryResult(QueryError error) : Base(std::unexpect, std::move(error)) {}  // NOLINT
  QueryResult(const base::Error& error) : Base(std::unexpect, error) {}     // NOLINT

  bool failed_with(protocol::ErrorCode code) const {
    return !this->has_value() && this->error().code() == code;
  }
};

// ---- Errors of statements ----

// 2200: a statement that can be read and not be done.
QueryError invalid(std::string message);
template <class... Args>
  requires(sizeof...(Args) > 0)
QueryError invalid(fmt::format_string<Args...> format, Args&&... args) {
  return invalid(fmt::format(format, std::forward<Args>(args)...));
}
// 2000, of an error of the parser.
QueryError syntax_error(const base::Error& error);
// 2300: properties of keyspaces and tables.
QueryError config_error(std::string message);
// 2400. The table is empty when the keyspace exists.
QueryError already_exists(std::string keyspace, std::string table);
// 2500.
QueryError unprepared(base::ByteView id);

// ---- Errors from below ----

// How many replicas were needed, and what became of them.
struct ReplicaCounts {
  std::uint32_t required = 1;
  std::uint32_t received = 0;  // answered; of an unavailable one: are up
  std::uint32_t failed = 0;
};

// Of a write. timeout, cancelled and connection_lost: WRITE_TIMEOUT, its outcome is unknown.
// overloaded: 0x1001. unavailable: 0x1000. invalid_argument: 2200. not_found: 2200, the table went
// away meanwhile. All others: WRITE_FAILURE.
QueryError write_error(const base::Error& error, protocol::Consistency consistency,
                       protocol::WriteType type, ReplicaCounts replicas = {});
// Of a read: the same with READ_TIMEOUT and READ_FAILURE.
QueryError read_error(const base::Error& error, protocol::Consistency consistency,
                      ReplicaCounts replicas = {});

}  // namespace helenus::cql

template <>
struct fmt::formatter<helenus::cql::QueryError> : fmt::formatter<std::string> {
  auto format(const helenus::cql::QueryError& error, fmt::format_context& ctx) const {
    return fmt::formatter<std::string>::format(error.to_string(), ctx);
  }
};
