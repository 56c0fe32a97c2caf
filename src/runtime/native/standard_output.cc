#include "runtime/native/standard_output.h"

#include <cerrno>
#include <cstdio>
#include <string>

#include <fmt/format.h>

#include "runtime/native/system_error.h"

namespace helenus::runtime::native {

namespace {

// What fails is remembered by the stream; see after_printing().
std::function<void(std::string_view)> print_to(std::FILE* file) {
  return [file](std::string_view text) { (void)std::fwrite(text.data(), 1, text.size(), file); };
}

}  // namespace

std::function<void(std::string_view)> print_to_output() {
  return print_to(stdout);
}

std::function<void(std::string_view)> print_to_errors() {
  return print_to(stderr);
}

int after_printing(std::string_view program, int exit_code) {
  const bool flushed = std::fflush(stdout) == 0;
  const std::string reason = flushed ? "" : fmt::format(": {}", system_text(errno));
  if (flushed && std::ferror(stdout) == 0) return exit_code;
  fmt::print(stderr, "{}: not all of the output could be written{}\n", program, reason);
  return exit_code == 0 ? 1 : exit_code;
}

}  // namespace helenus::runtime::native
