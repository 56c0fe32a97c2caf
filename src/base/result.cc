#include "base/result.h"

#include "base/assert.h"

namespace helenus::base {

std::string_view name_of(Errc code) {
  switch (code) {
    case Errc::cancelled:
      return "cancelled";
    case Errc::timeout:
      return "timeout";
    case Errc::overloaded:
      return "overloaded";
    case Errc::unavailable:
      return "unavailable";
    case Errc::closed:
      return "closed";
    case Errc::connection_lost:
      return "connection lost";
    case Errc::refused:
      return "refused";
    case Errc::address_in_use:
      return "address in use";
    case Errc::not_found:
      return "not found";
    case Errc::already_exists:
      return "already exists";
    case Errc::permission_denied:
      return "permission denied";
    case Errc::invalid_argument:
      return "invalid argument";
    case Errc::unsupported:
      return "unsupported";
    case Errc::corrupt:
      return "corrupt";
    case Errc::no_space:
      return "no space";
    case Errc::io_error:
      return "I/O error";
    case Errc::locked:
      return "locked";
    case Errc::internal:
      return "internal error";
  }
  UNREACHABLE("error code {}", static_cast<int>(code));
}

Error Error::within(std::string_view doing) && {
  if (context_ == nullptr) return Error(code_, std::string(doing));
  context_->insert(0, fmt::format("{}: ", doing));
  return std::move(*this);
}

std::string Error::to_string() const {
  if (context_ == nullptr) return std::string(name_of(code_));
  return fmt::format("{}: {}", name_of(code_), *context_);
}

}  // namespace helenus::base
