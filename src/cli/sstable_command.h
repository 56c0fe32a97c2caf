// What helenus-sstable does: show, check and sum up the files of a table, for people.
//
// A command is parsed from the words of the command line and then run on a runtime, with the places
// where it prints. Nothing here writes to a file.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "runtime/runtime.h"
#include "runtime/stop_token.h"
#include "runtime/task.h"

namespace helenus::cli {

inline constexpr int kExitWell = 0;
inline constexpr int kExitDamaged = 1;
inline constexpr int kExitBadArguments = 2;

struct SstableCommand {
  enum class Kind : unsigned char { dump, verify, statistics };
  enum class Form : unsigned char { hex, text };

  Kind kind = Kind::dump;
  std::vector<std::string> files;
  // dump
  std::uint64_t limit = UINT64_MAX;  // rows a file
  std::string from;                  // the first key to show, decoded; empty: the first there is
  Form form = Form::hex;
  // What is in an entry: nothing, its meaning in words, or its bytes.
  enum class Values : unsigned char { none, words, raw };
  Values values = Values::none;
  // verify
  bool progress = false;
  // statistics
  bool json = false;
};

// What parsing gave: a command, or the text and exit code to leave with (--help is one).
struct ParsedCommand {
  std::optional<SstableCommand> command;
  std::string text;
  int exit_code = kExitWell;
};
// `words` without the program's name.
ParsedCommand parse_sstable_command(std::vector<std::string> words);

// Where a command prints: lines of results, and lines about trouble or progress.
struct Printer {
  std::function<void(std::string_view)> out;
  std::function<void(std::string_view)> error;
};

// Runs the command over all its files, also when one of them is damaged; gives the exit code.
runtime::Task<int> run_sstable_command(runtime::Runtime& runtime, SstableCommand command,
                                       Printer printer, runtime::StopToken stop);

}  // namespace helenus::cli
