#include "cql/catalog/compaction_storage.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace helenus::cql {

namespace {

// What the statement was checked for (cql/schema/compaction_properties.h).
std::optional<std::uint64_t> number_in(const model::OptionMap& options, std::string_view name) {
  const auto found = options.find(std::string(name));
  if (found == options.end()) return std::nullopt;
  std::uint64_t value = 0;
  const char* end = found->second.data() + found->second.size();
  const auto parsed = std::from_chars(found->second.data(), end, value);
  if (parsed.ec != std::errc() || parsed.ptr != end) return std::nullopt;
  return value;
}

std::uint32_t files_in(const model::OptionMap& options, std::string_view name,
                       std::uint64_t usual) {
  const std::uint64_t files = number_in(options, name).value_or(usual);
  return files == usual ? 0 : static_cast<std::uint32_t>(std::clamp<std::uint64_t>(files, 2, 1024));
}

runtime::Duration window_in(const model::OptionMap& options) {
  const auto unit = options.find("compaction_window_unit");
  const auto is = [&](std::string_view word) {
    return unit != options.end() && std::ranges::equal(unit->second, word, [](char a, char b) {
             return (a >= 'a' && a <= 'z' ? a - 'a' + 'A' : a) == b;
           });
  };
  const std::chrono::minutes length = is("MINUTES") ? std::chrono::minutes(1)
                                      : is("HOURS") ? std::chrono::minutes(60)
                                                    : std::chrono::minutes(24 * 60);
  constexpr std::uint64_t kWindowsMax = 10'000;
  const std::uint64_t count = number_in(options, "compaction_window_size").value_or(1);
  return length * static_cast<std::int64_t>(std::clamp<std::uint64_t>(count, 1, kWindowsMax));
}

}  // namespace

storage::CompactionStrategy compaction_of(const model::OptionMap& options) {
  storage::CompactionStrategy strategy;
  const auto name = options.find("class");
  const auto is = [&](std::string_view end) {
    return name != options.end() && name->second.ends_with(end);
  };
  if (is("LeveledCompactionStrategy")) strategy.rule = storage::CompactionRule::leveled;
  if (is("TimeWindowCompactionStrategy")) strategy.rule = storage::CompactionRule::time_window;
  const auto enabled = options.find("enabled");
  strategy.enabled = enabled == options.end() || !enabled->second.starts_with('f');
  strategy.files_min = files_in(options, "min_threshold", 4);
  strategy.files_max = files_in(options, "max_threshold", 32);
  strategy.small_bytes = number_in(options, "min_sstable_size");
  if (const auto mib = number_in(options, "sstable_size_in_mb")) {
    strategy.file_bytes = std::clamp<std::uint64_t>(*mib, 1, std::uint64_t{1} << 20) << 20;
  }
  if (const auto fanout = number_in(options, "fanout_size")) {
    strategy.fanout = static_cast<std::uint32_t>(std::clamp<std::uint64_t>(*fanout, 2, 1000));
  }
  if (strategy.rule == storage::CompactionRule::time_window) strategy.window = window_in(options);
  return strategy;
}

}  // namespace helenus::cql
