// helenus-sstable: the files of a table, for people. See sstable_command.h.
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/sstable_command.h"
#include "runtime/native/native_host.h"
#include "runtime/native/standard_output.h"

int main(int argc, char** argv) {
  using namespace helenus;
  using runtime::native::after_printing;
  constexpr std::string_view kProgram = "helenus-sstable";
  const cli::Printer printer{.out = runtime::native::print_to_output(),
                             .error = runtime::native::print_to_errors()};
  const cli::ParsedCommand parsed =
      cli::parse_sstable_command(std::vector<std::string>(argv + 1, argv + argc));
  if (!parsed.command.has_value()) {
    (parsed.exit_code == cli::kExitWell ? printer.out : printer.error)(parsed.text);
    return after_printing(kProgram, parsed.exit_code);
  }
  auto host = runtime::native::NativeHost::open({.cores = 1});
  if (!host) return runtime::native::fail_at_start(kProgram, host.error());
  const int exit_code = (*host)->run([&](runtime::Runtime& runtime, runtime::StopToken stop) {
    return cli::run_sstable_command(runtime, *parsed.command, printer, std::move(stop));
  });
  return after_printing(kProgram, exit_code);
}
