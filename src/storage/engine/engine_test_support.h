// For tests: an engine with one table and verbs to tell stories about it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "causality/delta.h"
#include "runtime/runtime.h"
#include "runtime/task.h"
#include "storage/engine/engine.h"
#include "storage/engine/engine_history_test_support.h"
#include "storage/log/commit_log_test_support.h"

namespace helenus::storage::testing {

// By "partition/row".
using Shown = std::map<std::string, std::string>;

causality::Mutation put_of(const std::string& row, const std::string& value, std::int64_t timestamp,
                           std::optional<causality::WallTime> expires = {});

// Runs on the machine's only core; the engine goes with it.
class EngineStory {
 public:
  explicit EngineStory(runtime::Runtime& runtime, EngineOptions options = small_engine())
      : runtime_(runtime), options_(std::move(options)) {}

  // Opens; makes kTable and kTablet where they are missing.
  runtime::Task<base::Result<void>> open();
  runtime::Task<base::Result<void>> stop() { return engine_->stop(); }
  Engine& engine() { return *engine_; }
  runtime::Runtime& runtime() { return runtime_; }

  runtime::Task<base::Result<causality::Delta>> put(std::string partition, std::string row,
                                                    std::string value, runtime::Until until = {});
  // The row's value; "" if there is none.
  runtime::Task<base::Result<std::string>> get(std::string partition, std::string row,
                                               TableId table = kTable);
  // Everything of the table in the tablet, forward; fails if it reads otherwise backward.
  runtime::Task<base::Result<Shown>> scan(TabletId tablet = kTablet, TableId table = kTable);

  // The wall clock by which values expire, for reading.
  causality::WallTime now{1};

 private:
  std::string shown(const causality::PartitionStore& partition, const base::Bytes& row) const;

  runtime::Runtime& runtime_;
  const EngineOptions options_;
  std::unique_ptr<Engine> engine_;
  std::int64_t time_ = 1000;
};

}  // namespace helenus::storage::testing
