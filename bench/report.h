// The frame of a benchmark program: options, rows, one table, the same as JSON.
//
//   int main(int argc, char** argv) {
//     return helenus::bench::benchmark_main(argc, argv, [](const Options& options, Report& report)
//     {
//       report.row({.name = "crc32c 4 KiB", .value = ..., .unit = "GB/s",
//                   .peer = "zlib crc32", .peer_value = ...});
//     });
//   }
//
// A row's ratio is value / peer_value, whatever the unit: above one is more, and the unit tells
// whether more is better.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace helenus::bench {

struct Options {
  bool quick = false;  // measure for a shorter time: to see that it works, not to quote
  bool help = false;
  std::optional<std::string> json_path;
  std::vector<std::string> others;  // what the benchmark itself may understand
};

// Takes --quick, --json FILE, --json=FILE and --help; leaves the rest in `others`.
base::Result<Options> parse_options(std::span<const char* const> arguments);

// The least and the largest of the runs that a value is the median of.
struct Spread {
  double low = 0;
  double high = 0;
};

struct Row {
  std::string name;
  double value = 0;
  std::string unit;
  std::string peer;
  double peer_value = 0;
  std::optional<Spread> spread = std::nullopt;
  std::optional<Spread> peer_spread = std::nullopt;

  double ratio() const { return value / peer_value; }
};

class Report {
 public:
  // Prints the row's name at once, so that progress is visible. Requires: a named peer, and both
  // values above zero.
  void row(Row row);

  const std::vector<Row>& rows() const { return rows_; }

  // Aligned columns with a heading; the last column is the ratio. Spreads stand behind their
  // values, as [low high].
  std::string table() const;
  // A list of objects: name, value, unit, peer, peer_value, ratio; low, high, peer_low and
  // peer_high where there is a spread.
  std::string json() const;

 private:
  std::vector<Row> rows_;
};

// Parses options, runs the benchmark, prints the table and writes the JSON file. Returns the exit
// code: 2 for a bad option or a file that cannot be written, which is tried before measuring.
// `own_options`: lines that --help prints for what the benchmark understands besides.
int benchmark_main(int argc, const char* const* argv,
                   const std::function<void(const Options&, Report&)>& benchmark,
                   std::string_view own_options = "");

}  // namespace helenus::bench
