// What the kernel's error numbers mean to the rest of Helenus: one table.
//
// The table speaks about files, listening and connecting. For a stream that was connected every
// error means the same, whatever its number: the connection is lost.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace helenus::runtime::native {

// Requires: error_number > 0. Numbers the table does not know are io_error.
base::Errc errc_of(int error_number);

// "open data/x: No such file or directory", with the code of the table.
base::Error system_error(int error_number, std::string_view doing);

// The text the system has for an error number. Safe to call from several threads.
std::string system_text(int error_number);

}  // namespace helenus::runtime::native
