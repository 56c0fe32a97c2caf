// For mains: what a program prints on its standard streams, and whether it arrived.
#pragma once

#include <functional>
#include <string_view>

namespace helenus::runtime::native {

std::function<void(std::string_view)> print_to_output();
std::function<void(std::string_view)> print_to_errors();

// The exit code of a program that has printed: its own, or, if not all that went to standard output
// could be written (a full disk, a reader that is gone), 1 after a line on standard error.
int after_printing(std::string_view program, int exit_code);

}  // namespace helenus::runtime::native
