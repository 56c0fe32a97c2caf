#include "cql/errors/query_error.h"

#include <cstdint>

namespace helenus::cql {

using base::Errc;
using protocol::ErrorCode;

namespace {

ErrorCode code_before_execution(Errc code) {
  switch (code) {
    case Errc::invalid_argument:
    case Errc::unsupported:
    case Errc::not_found:
      return ErrorCode::invalid;
    case Errc::overloaded:
    case Errc::timeout:
      return ErrorCode::overloaded;
    default:
      return ErrorCode::server_error;
  }
}

// What the client reads: the sentence alone where there is one.
std::string words_of(const base::Error& error) {
  return error.context().empty() ? std::string(base::name_of(error.code()))
                                 : std::string(error.context());
}

// What reads and writes have in common; nothing for what has a body of its own.
std::unique_ptr<QueryError> common_error(const base::Error& error,
                                         protocol::Consistency consistency) {
  switch (error.code()) {
    case Errc::overloaded:
      return std::make_unique<QueryError>(ErrorCode::overloaded, words_of(error));
    case Errc::invalid_argument:
    case Errc::unsupported:
    case Errc::not_found:
      return std::make_unique<QueryError>(ErrorCode::invalid, words_of(error));
    case Errc::unavailable:
      // What asks for more than the replica here was refused before (availability.h).
      return std::make_unique<QueryError>(
          protocol::UnavailableDetails{.consistency = consistency, .required = 1, .alive = 0},
          fmt::format("Cannot achieve consistency level {}", model::name_of(consistency)));
    default:
      return nullptr;
  }
}

bool outcome_is_unknown(Errc code) {
  return code == Errc::timeout || code == Errc::cancelled || code == Errc::connection_lost;
}

}  // namespace

QueryError::QueryError(const base::Error& error)
    : QueryError(code_before_execution(error.code()), words_of(error)) {}

std::string QueryError::to_string() const {
  return fmt::format("0x{:04x}: {}", static_cast<std::uint32_t>(code()), text());
}

QueryError invalid(std::string message) {
  return {ErrorCode::invalid, std::move(message)};
}

QueryError syntax_error(const base::Error& error) {
  return {ErrorCode::syntax_error, words_of(error)};
}

QueryError config_error(std::string message) {
  return {ErrorCode::config_error, std::move(message)};
}

QueryError already_exists(std::string keyspace, std::string table) {
  std::string message =
      table.empty() ? fmt::format("Cannot add existing keyspace \"{}\"", keyspace)
                    : fmt::format("Cannot add already existing table \"{}\" to keyspace \"{}\"",
                                  table, keyspace);
  return {
      protocol::AlreadyExistsDetails{.keyspace = std::move(keyspace), .table = std::move(table)},
      std::move(message)};
}

QueryError unprepared(base::ByteView id) {
  return {protocol::UnpreparedDetails{.id = base::Bytes::copy_of(id)},
          fmt::format("Prepared query with ID {} not found (either the query was not prepared on "
                      "this host (maybe the host has been restarted?) or you have prepared too "
                      "many queries and it has been evicted from the internal cache)",
                      base::to_hex(id))};
}

QueryError write_error(const base::Error& error, protocol::Consistency consistency,
                       protocol::WriteType type) {
  if (const auto common = common_error(error, consistency)) return *common;
  if (outcome_is_unknown(error.code())) {
    return {protocol::WriteTimeoutDetails{
                .consistency = consistency, .received = 0, .block_for = 1, .write_type = type},
            "Operation timed out - received only 0 responses."};
  }
  return {protocol::WriteFailureDetails{.consistency = consistency,
                                        .received = 0,
                                        .block_for = 1,
                                        .failures = 1,
                                        .write_type = type},
          fmt::format("Operation failed - received 0 responses and 1 failures: {}", error)};
}

QueryError read_error(const base::Error& error, protocol::Consistency consistency) {
  if (const auto common = common_error(error, consistency)) return *common;
  if (outcome_is_unknown(error.code())) {
    return {protocol::ReadTimeoutDetails{
                .consistency = consistency, .received = 0, .block_for = 1, .data_present = false},
            "Operation timed out - received only 0 responses."};
  }
  return {protocol::ReadFailureDetails{.consistency = consistency,
                                       .received = 0,
                                       .block_for = 1,
                                       .failures = 1,
                                       .data_present = false},
          fmt::format("Operation failed - received 0 responses and 1 failures: {}", error)};
}

}  // namespace helenus::cql
