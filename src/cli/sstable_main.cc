// helenus-sstable: the files of a table, for people. See sstable_command.h.
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "cli/sstable_command.h"
#include "runtime/native/native_host.h"

int main(int argc, char** argv) {
  using namespace helenus;
  const auto print_to = [](std::FILE* file) {
    return [file](std::string_view text) { (void)std::fwrite(text.data(), 1, text.size(), file); };
  };
  const cli::Printer printer{.out = print_to(stdout), .error = print_to(stderr)};
  const cli::ParsedCommand parsed =
      cli::parse_sstable_command(std::vector<std::string>(argv + 1, argv + argc));
  if (!parsed.command.has_value()) {
    (parsed.exit_code == cli::kExitWell ? printer.out : printer.error)(parsed.text);
    return parsed.exit_code;
  }
  auto host = runtime::native::NativeHost::open({.cores = 1});
  if (!host) return runtime::native::fail_at_start("helenus-sstable", host.error());
  return (*host)->run([&](runtime::Runtime& runtime, runtime::StopToken stop) {
    return cli::run_sstable_command(runtime, *parsed.command, printer, std::move(stop));
  });
}
