#include "client/request_error.h"

#include "base/assert.h"

namespace helenus::client {

using cql::protocol::ErrorCode;

namespace {

bool excludes_effect(ErrorCode code) {
  switch (code) {
    case ErrorCode::protocol_error:
    case ErrorCode::bad_credentials:
    case ErrorCode::unavailable:
    case ErrorCode::bootstrapping:
    case ErrorCode::syntax_error:
    case ErrorCode::unauthorized:
    case ErrorCode::invalid:
    case ErrorCode::config_error:
    case ErrorCode::already_exists:
    case ErrorCode::unprepared:
      return true;
    // A coordinator may be overloaded halfway through a batch, and a read that fails may be part of
    // a conditional write.
    case ErrorCode::overloaded:
    case ErrorCode::server_error:
    case ErrorCode::truncate_error:
    case ErrorCode::write_timeout:
    case ErrorCode::read_timeout:
    case ErrorCode::read_failure:
    case ErrorCode::function_failure:
    case ErrorCode::write_failure:
    case ErrorCode::cdc_write_failure:
      return false;
  }
  UNREACHABLE("error code {}", static_cast<int>(code));
}

}  // namespace

std::string_view name_of(Fate fate) {
  switch (fate) {
    case Fate::not_sent:
      return "not sent";
    case Fate::unknown:
      return "outcome unknown";
    case Fate::answered:
      return "answered";
  }
  UNREACHABLE("fate {}", static_cast<unsigned>(fate));
}

bool RequestError::may_have_happened() const {
  if (in_doubt_) return true;
  switch (fate_) {
    case Fate::not_sent:
      return false;
    case Fate::unknown:
      return true;
    case Fate::answered:
      return !excludes_effect(answer()->code);
  }
  UNREACHABLE("fate {}", static_cast<unsigned>(fate_));
}

std::string RequestError::to_string() const {
  if (answer() == nullptr) return fmt::format("{}: {}", name_of(fate_), cause()->to_string());
  return fmt::format("{} 0x{:04x}: {}", name_of(fate_), static_cast<int>(answer()->code),
                     answer()->message);
}

base::Error RequestError::to_error() const {
  return answer() == nullptr ? *cause() : base::Error(base::Errc::refused, to_string());
}

}  // namespace helenus::client
