// For tests: a random history of a commit log over several lives of a machine that crashes, with an
// oracle beside it that knows what must be found at every start.
//
// The laws, checked at every start, for every log of the folder:
//   what must be there is there   acknowledged records (in periodic mode after a power loss: synced
//                                 ones), except those whose table said that it needs them no more
//   nothing is invented           every record replayed was staged there, with these bytes
//   order, and no holes           records come in the order staged; if one is there, so is every
//                                 one before it that somebody may need
//   what was dropped stays dropped  a record missing at one start that began is missing for ever
//   a loss is bounded             acknowledged records lost in periodic mode were acknowledged
//                                 within one period
//   the last stop is judged right
//
// The scenarios of helenus-sim run it (sim/scenarios/storage): what does not hold is a violation.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/prng.h"
#include "runtime/runtime.h"
#include "runtime/task.h"
#include "runtime/task_group.h"
#include "sim/violations.h"
#include "storage/log/commit_log.h"
#include "storage/log/commit_log_test_support.h"
#include "storage/log/log_directory.h"

namespace helenus::storage::testing {

class LogHistory {
 public:
  struct Options {
    LogSyncMode mode = LogSyncMode::batch;
    std::uint32_t cores_max = 3;
    int steps = 60;       // of a life
    bool faults = false;  // failing writes and syncs, a full device
    sim::WorldOptions world = {};
  };

  LogHistory(std::uint64_t seed, Options options);

  LogWorld& world() { return world_; }

  // Begins a life: recovers, checks the laws, and goes on with random work; stops in an orderly way
  // when the work is done.
  void start_life();
  // Lets that many events happen; false if the life ended before.
  bool run_events(std::uint64_t count);
  // Lets the life come to its end.
  void run_to_end();
  void crash(bool power_loss);

  // Records found at the last start, and how many starts failed with an error.
  std::size_t records_found() const { return records_found_; }
  std::uint64_t records_lost() const { return records_lost_; }
  const sim::Violations& violations() const { return violations_; }

 private:
  struct Staged {
    TableId table;
    std::string bytes;
    bool acknowledged = false;
    runtime::Duration acknowledged_at{0};  // of the world
    bool must_survive_power = false;
    bool must_survive_kill = false;
    bool not_needed = false;
    bool gone = false;
  };
  // A log: (incarnation, core).
  using LogKey = std::pair<std::uint32_t, std::uint32_t>;
  using Records = std::map<LogPosition, Staged>;

  runtime::Task<void> life(runtime::Runtime& runtime);
  runtime::Task<void> work(runtime::Runtime& runtime, OpenLogs& open);
  runtime::Task<void> write(CommitLog& log, TableId table, std::string bytes);
  runtime::Task<void> one_step(runtime::Runtime& runtime, OpenLogs& open,
                               runtime::TaskGroup& writers);
  void change_faults();
  void calm_faults();

  CommitLogOptions log_options();
  Records& records_of(const CommitLog& log);
  void note_progress();
  void check_report(const LogOpenReport& report, const std::string& boot_id);
  void check_found(const std::vector<Replayed>& found);
  void check_log(const LogKey& key, const Records& records,
                 const std::map<LogPosition, const Replayed*>& found);
  void adopt(const std::vector<Replayed>& found);
  void release_all_old(TableId table, std::uint32_t incarnation);

  template <class... Args>
  void expect(bool holds, fmt::format_string<Args...> text, Args&&... args) {
    violations_.expect(holds, text, std::forward<Args>(args)...);
  }
  // Whether it went well; if not, that is a violation.
  template <class T>
  bool fine(const base::Result<T>& result) {
    if (!result) violations_.add(result.error().to_string());
    return result.has_value();
  }

  const Options options_;
  LogWorld world_;
  base::Prng prng_;
  std::uint64_t record_count_ = 0;
  std::map<LogKey, Records> logs_;
  OpenLogs* open_ = nullptr;  // of the life under way

  // How the last incarnation that began ended; unknown while begin() or clear_tail_doubt() is under
  // way.
  enum class Known : unsigned char { nothing, yes, unknown };
  Known begun_ = Known::nothing;
  std::string begun_boot_;
  bool sealed_ = false;
  Known doubt_known_ = Known::yes;
  bool doubt_ = false;
  bool power_was_lost_ = false;
  bool faulty_ = false;

  std::size_t records_found_ = 0;
  std::uint64_t records_lost_ = 0;
  sim::Violations violations_;
};

}  // namespace helenus::storage::testing
