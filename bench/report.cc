#include "bench/report.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/assert.h"

namespace helenus::bench {

namespace {

constexpr std::size_t kColumns = 6;
using Cells = std::array<std::string, kColumns>;

std::string number_text(double value, const std::optional<Spread>& spread) {
  if (!spread) return fmt::format("{:.4g}", value);
  return fmt::format("{:.4g} [{:.4g} {:.4g}]", value, spread->low, spread->high);
}

Cells cells_of(const Row& row) {
  return {
      row.name, number_text(row.value, row.spread),           row.unit,
      row.peer, number_text(row.peer_value, row.peer_spread), fmt::format("{:.2f}", row.ratio())};
}

bool is_number(std::size_t column) {
  return column == 1 || column == 4 || column == 5;
}

int complain(std::string_view problem) {
  fmt::print(stderr, "{}\n", problem);
  return 2;
}

}  // namespace

base::Result<Options> parse_options(std::span<const char* const> arguments) {
  constexpr std::string_view kJson = "--json=";
  Options options;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string_view argument = arguments[i];
    if (argument == "--quick") {
      options.quick = true;
    } else if (argument == "--help") {
      options.help = true;
    } else if (argument == "--json") {
      if (++i == arguments.size()) {
        return base::Error(base::Errc::invalid_argument, "--json needs a file name");
      }
      options.json_path = arguments[i];
    } else if (argument.starts_with(kJson)) {
      options.json_path = argument.substr(kJson.size());
    } else {
      options.others.emplace_back(argument);
    }
  }
  return options;
}

void Report::row(Row row) {
  ASSERT(!row.peer.empty(), "row {} names no peer", row.name);
  ASSERT(row.value > 0 && row.peer_value > 0, "row {} was not measured", row.name);
  fmt::print(stderr, "measured {}: {:.4g} {}, {:.2f} of {}\n", row.name, row.value, row.unit,
             row.ratio(), row.peer);
  rows_.push_back(std::move(row));
}

std::string Report::table() const {
  std::vector<Cells> lines = {{"name", "value", "unit", "peer", "peer value", "ratio"}};
  for (const Row& row : rows_) lines.push_back(cells_of(row));
  std::array<std::size_t, kColumns> widths{};
  for (const Cells& line : lines) {
    for (std::size_t i = 0; i < kColumns; ++i) widths[i] = std::max(widths[i], line[i].size());
  }
  std::string text;
  for (const Cells& line : lines) {
    for (std::size_t i = 0; i < kColumns; ++i) {
      const char* separator = i + 1 < kColumns ? "  " : "\n";
      text += is_number(i) ? fmt::format("{:>{}}{}", line[i], widths[i], separator)
                           : fmt::format("{:<{}}{}", line[i], widths[i], separator);
    }
  }
  return text;
}

std::string Report::json() const {
  auto list = nlohmann::ordered_json::array();
  for (const Row& row : rows_) {
    auto& object = list.emplace_back();
    object = {{"name", row.name}, {"value", row.value},           {"unit", row.unit},
              {"peer", row.peer}, {"peer_value", row.peer_value}, {"ratio", row.ratio()}};
    if (row.spread) {
      object["low"] = row.spread->low;
      object["high"] = row.spread->high;
    }
    if (row.peer_spread) {
      object["peer_low"] = row.peer_spread->low;
      object["peer_high"] = row.peer_spread->high;
    }
  }
  return list.dump(2) + "\n";
}

int benchmark_main(int argc, const char* const* argv,
                   const std::function<void(const Options&, Report&)>& benchmark,
                   std::string_view own_options) {
  const std::span arguments(argv, static_cast<std::size_t>(argc));
  const auto options = parse_options(arguments.subspan(1));
  if (!options) return complain(options.error().to_string());
  if (options->help) {
    fmt::print("usage: {} [--quick] [--json FILE]{}\n{}", arguments[0],
               own_options.empty() ? "" : " [OPTION VALUE]...", own_options);
    return 0;
  }
  std::ofstream json_file;
  if (options->json_path) {
    json_file.open(*options->json_path);
    if (!json_file) {
      return complain(fmt::format("cannot write {}: {}", *options->json_path, strerror(errno)));
    }
  }
  Report report;
  benchmark(*options, report);
  fmt::print("{}", report.table());
  if (options->json_path) {
    json_file << report.json();
    json_file.close();
    if (!json_file) return complain(fmt::format("cannot write {}", *options->json_path));
  }
  return 0;
}

}  // namespace helenus::bench
