#include "cql/errors/query_error.h"

#include <algorithm>
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
                                         protocol::Consistency consistency,
                                         const ReplicaCounts& replicas) {
  switch (error.code()) {
    case Errc::overloaded:
      return std::make_unique<QueryError>(ErrorCode::overloaded, words_of(error));
    case Errc::invalid_argument:
    case Errc::unsupported:
    case Errc::not_found:
      return std::make_unique<QueryError>(ErrorCode::invalid, words_of(error));
    case Errc::unavailable:
      return std::make_unique<QueryError>(
          protocol::UnavailableDetails{.consistency = consistency,
                                       .required = static_cast<std::int32_t>(replicas.required),
                                       .alive = static_cast<std::int32_t>(replicas.received)},
          fmt::format("Cannot achieve consistency level {}", model::name_of(consistency)));
    default:
      return nullptr;
  }
}

bool outcome_is_unknown(Errc code) {
  return code == Errc::timeout || code == Errc::cancelled || code == Errc::connection_lost;
}

std::string timed_out(std::int32_t received) {
  return fmt::format("Operation timed out - received only {} responses.", received);
}

std::string failed_with(std::int32_t received, std::int32_t failed, const base::Error& error) {
  return fmt::format("Operation failed - received {} responses and {} failures: {}", received,
                     failed, error);
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
                       protocol::WriteType type, ReplicaCounts replicas) {
  if (const auto common = common_error(error, consistency, replicas)) return *common;
  const auto received = static_cast<std::int32_t>(replicas.received);
  const auto required = static_cast<std::int32_t>(replicas.required);
  if (outcome_is_unknown(error.code())) {
    return {protocol::WriteTimeoutDetails{.consistency = consistency,
                                          .received = received,
                                          .block_for = required,
                                          .write_type = type},
            timed_out(received)};
  }
  const auto failed = static_cast<std::int32_t>(std::max(replicas.failed, 1U));
  return {protocol::WriteFailureDetails{.consistency = consistency,
                                        .received = received,
                                        .block_for = required,
                                        .failures = failed,
                                        .write_type = type},
          failed_with(received, failed, error)};
}

QueryError read_error(const base::Error& error, protocol::Consistency consistency,
                      ReplicaCounts replicas) {
  if (const auto common = common_error(error, consistency, replicas)) return *common;
  const auto received = static_cast<std::int32_t>(replicas.received);
  const auto required = static_cast<std::int32_t>(replicas.required);
  if (outcome_is_unknown(error.code())) {
    return {protocol::ReadTimeoutDetails{.consistency = consistency,
                                         .received = received,
                                         .block_for = required,
                                         .data_present = received >= required},
            timed_out(received)};
  }
  const auto failed = static_cast<std::int32_t>(std::max(replicas.failed, 1U));
  return {protocol::ReadFailureDetails{.consistency = consistency,
                                       .received = received,
                                       .block_for = required,
                                       .failures = failed,
                                       .data_present = received >= required},
          failed_with(received, failed, error)};
}

}  // namespace helenus::cql
