// EnginePressure: tells the core when flushes and compactions must hurry.
//
// Writes wait when memory or the commit log is full, and are slowed down when a table has too many
// files. Before that background work gets more of the core than its usual share: from half of a
// limit on, evenly up to nearly all of it at the limit. Of the log it is from three quarters on,
// when tables begin to be flushed for its sake.
//
// Core affinity: the engine's.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "runtime/background_share.h"
#include "storage/engine/engine_state.h"

namespace helenus::storage {

class EnginePressure final : public runtime::BackgroundPressure {
 public:
  explicit EnginePressure(const EngineState& state) : state_(state) {}

  double background_share_wanted() override {
    const double memory = ratio(state_.memory.bytes(), state_.options.memtable_bytes_max);
    const double files = ratio(files_of_largest(), state_.options.sstables_slow);
    return share_at(std::max({memory, files, log_fullness()}));
  }

  // `fullness` is 1 at the limit.
  static double share_at(double fullness) {
    constexpr double kBegins = 0.5;
    if (fullness <= kBegins) return 0;
    const double way = std::min(1.0, (fullness - kBegins) / (1 - kBegins));
    return way * runtime::BackgroundShare::kMost;
  }

 private:
  // Tables are looked through once for so many questions.
  static constexpr std::uint32_t kQuestionsPerLook = 32;

  static double ratio(std::size_t part, std::size_t whole) {
    return static_cast<double>(part) / static_cast<double>(whole);
  }
  double log_fullness() const {
    if (state_.log == nullptr) return 0;
    const CommitLogUsage usage = state_.log->usage();
    return 2 * ratio(usage.disk_bytes, usage.disk_bytes_max) - 1;
  }
  std::size_t files_of_largest() {
    if (questions_++ % kQuestionsPerLook != 0) return files_;
    files_ = 0;
    for (const auto& shard : state_.shards) {
      for (const auto& [id, table] : shard->tables()) {
        files_ = std::max(files_, table->sstables().size());
      }
    }
    return files_;
  }

  const EngineState& state_;
  std::uint32_t questions_ = 0;
  std::size_t files_ = 0;
};

}  // namespace helenus::storage
