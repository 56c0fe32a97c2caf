#include "runtime/native/system_error.h"

#include <cerrno>
#include <string>
#include <system_error>

#include "base/assert.h"

namespace helenus::runtime::native {

using base::Errc;

Errc errc_of(int error_number) {
  ASSERT(error_number > 0, "error number {}", error_number);
  switch (error_number) {
    case ENOENT:
      return Errc::not_found;
    case EEXIST:
      return Errc::already_exists;
    case EACCES:
    case EPERM:
    case EROFS:
      return Errc::permission_denied;
    case EINVAL:
    case ENOTDIR:
    case EISDIR:
    case ENOTEMPTY:
    case ENAMETOOLONG:
    case ELOOP:
    case EADDRNOTAVAIL:
    case EAFNOSUPPORT:
      return Errc::invalid_argument;
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
      return Errc::no_space;
    case ENOSYS:
    case EOPNOTSUPP:
    case EXDEV:
    case EMLINK:
      return Errc::unsupported;
    case EMFILE:
    case ENFILE:
    case ENOMEM:
    case ENOBUFS:
    case EAGAIN:
      return Errc::overloaded;
    case EBUSY:
    case ETXTBSY:
      return Errc::locked;
    case EADDRINUSE:
      return Errc::address_in_use;
    case ECONNREFUSED:
      return Errc::refused;
    case ECONNRESET:
    case ECONNABORTED:
    case EPIPE:
    case ENOTCONN:
      return Errc::connection_lost;
    case ENETUNREACH:
    case EHOSTUNREACH:
    case ENETDOWN:
    case EHOSTDOWN:
      return Errc::unavailable;
    case ETIMEDOUT:
      return Errc::timeout;
    case ECANCELED:
      return Errc::cancelled;
    default:
      return Errc::io_error;
  }
}

std::string system_text(int error_number) {
  return std::generic_category().message(error_number);
}

base::Error system_error(int error_number, std::string_view doing) {
  return base::Error(errc_of(error_number), "{}: {}", doing, system_text(error_number));
}

}  // namespace helenus::runtime::native
