#include "runtime/native/system_error.h"

#include <cerrno>
#include <map>

#include <gtest/gtest.h>

namespace helenus::runtime::native {
namespace {

using base::Errc;

TEST(SystemError, EveryNumberOfTheTableHasItsMeaning) {
  const std::map<int, Errc> expected{
      {ENOENT, Errc::not_found},
      {EEXIST, Errc::already_exists},
      {EACCES, Errc::permission_denied},
      {EPERM, Errc::permission_denied},
      {EROFS, Errc::permission_denied},
      {EINVAL, Errc::invalid_argument},
      {ENOTDIR, Errc::invalid_argument},
      {EISDIR, Errc::invalid_argument},
      {ENOTEMPTY, Errc::invalid_argument},
      {ENAMETOOLONG, Errc::invalid_argument},
      {ELOOP, Errc::invalid_argument},
      {EADDRNOTAVAIL, Errc::invalid_argument},
      {EAFNOSUPPORT, Errc::invalid_argument},
      {ENOSPC, Errc::no_space},
      {EDQUOT, Errc::no_space},
      {EFBIG, Errc::no_space},
      {ENOSYS, Errc::unsupported},
      {EOPNOTSUPP, Errc::unsupported},
      {EXDEV, Errc::unsupported},
      {EMLINK, Errc::unsupported},
      {EMFILE, Errc::overloaded},
      {ENFILE, Errc::overloaded},
      {ENOMEM, Errc::overloaded},
      {ENOBUFS, Errc::overloaded},
      {EAGAIN, Errc::overloaded},
      {EBUSY, Errc::locked},
      {ETXTBSY, Errc::locked},
      {EADDRINUSE, Errc::address_in_use},
      {ECONNREFUSED, Errc::refused},
      {ECONNRESET, Errc::connection_lost},
      {ECONNABORTED, Errc::connection_lost},
      {EPIPE, Errc::connection_lost},
      {ENOTCONN, Errc::connection_lost},
      {ENETUNREACH, Errc::unavailable},
      {EHOSTUNREACH, Errc::unavailable},
      {ENETDOWN, Errc::unavailable},
      {EHOSTDOWN, Errc::unavailable},
      {ETIMEDOUT, Errc::timeout},
      {ECANCELED, Errc::cancelled},
      {EIO, Errc::io_error},
      {ENXIO, Errc::io_error},
  };
  for (const auto& [number, code] : expected) {
    EXPECT_EQ(errc_of(number), code) << system_text(number);
  }
}

TEST(SystemError, NumbersNobodyKnowsAreErrorsOfTheDevice) {
  EXPECT_EQ(errc_of(4095), Errc::io_error);
}

TEST(SystemError, TheTextSaysWhatWasTriedAndWhatTheSystemSaid) {
  EXPECT_EQ(system_error(ENOENT, "open data/x").to_string(),
            "not found: open data/x: No such file or directory");
}

}  // namespace
}  // namespace helenus::runtime::native
