#include "keyvalue/refusal.h"

namespace helenus::keyvalue {

namespace {

int status_of(base::Errc code) {
  switch (code) {
    case base::Errc::invalid_argument:
    case base::Errc::unsupported:
      return 400;
    case base::Errc::not_found:
      return 404;
    case base::Errc::overloaded:
    case base::Errc::unavailable:
    case base::Errc::closed:
      return 503;
    case base::Errc::timeout:
    case base::Errc::cancelled:
      return 504;
    default:
      return 500;
  }
}

int status_of(cql::protocol::ErrorCode code) {
  using cql::protocol::ErrorCode;
  switch (code) {
    case ErrorCode::invalid:
      return 400;
    case ErrorCode::unavailable:
    case ErrorCode::overloaded:
    case ErrorCode::bootstrapping:
      return 503;
    case ErrorCode::write_timeout:
    case ErrorCode::read_timeout:
      return 504;
    default:
      return 500;
  }
}

}  // namespace

Refusal::Refusal(const base::Error& error)
    : status(status_of(error.code())),
      why(error.context().empty() ? error.to_string() : std::string(error.context())) {}

Refusal::Refusal(const cql::QueryError& error)
    : status(status_of(error.code())), why(error.text()) {}

}  // namespace helenus::keyvalue
