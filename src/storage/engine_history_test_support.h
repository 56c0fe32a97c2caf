// For tests: a random history of an engine over several lives of a machine that crashes, with an
// oracle beside it: a map of dot stores that never strips, drops, flushes or forgets.
//
// The engine holds one tablet of one table and has a peer: a clock and a stock of deltas, which
// mints for itself, gets what the engine acknowledged and gives what it has. The laws:
//   at every moment   what a reader sees of a row, and of a scan either way, is what the oracle
//                     shows of the deltas that the engine has
//   at every start    every acknowledged delta is there (in periodic mode after a power loss: or
//                     the tablet is in doubt); nothing is there that nobody wrote
//   for ever          no dot is minted twice that anybody has seen
//   mutation log      a peer that has nothing is given, whole and once, every mutation that is not
//                     known to be stable; what it is not given is named; nothing is both
//   rule (b)          in an 'lww' table a write's timestamp exceeds those of all unstable mutations
//                     of its cells, though clients' clocks differ
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/prng.h"
#include "causality/delta.h"
#include "runtime/runtime.h"
#include "runtime/task.h"
#include "storage/commit_log_test_support.h"
#include "storage/engine.h"

namespace helenus::storage::testing {

inline constexpr const char* kEngineFolder = "/data/engine";
inline constexpr TableId kTable{7};
inline constexpr TabletId kTablet{0};

// Small limits, so that a short history freezes, flushes and compacts often.
EngineOptions small_engine(LogSyncMode mode = LogSyncMode::batch);

class EngineHistory {
 public:
  struct Options {
    causality::Policy policy = causality::Policy::lww;
    LogSyncMode mode = LogSyncMode::batch;
    int steps = 40;  // of a life
    bool peer = true;
    // So little memory that a start flushes before it has replayed everything.
    bool tight_memory = false;
    std::uint64_t mutation_log_bytes_max = std::uint64_t{1} << 30;
  };

  EngineHistory(std::uint64_t seed, Options options);

  LogWorld& world() { return world_; }

  // Begins a life: opens, checks, works, checks, stops in an orderly way.
  void start_life();
  // Lets that many events happen; false if the life ended before.
  bool run_events(std::uint64_t count);
  void run_to_end();
  void crash(bool power_loss);
  // What the disk would hold after a power loss now; and going back to it, as a copy.
  void take_image() { image_ = world_.disk().snapshot(); }
  void put_back_image();

  // How much happened, to show that it did.
  struct Counts {
    std::uint64_t writes = 0;
    std::uint64_t flushes = 0;
    std::uint64_t compactions = 0;
    std::uint64_t keys_gone = 0;
    std::uint64_t records_replayed = 0;
    std::uint64_t lives = 0;
    std::uint64_t lives_in_doubt = 0;
    std::uint64_t mutations_given = 0;
    std::uint64_t mutations_from_files = 0;  // that had to be kept beyond a flush
    std::uint64_t mutation_files_shed = 0;
    std::uint64_t timestamps_raised = 0;
  };
  const Counts& counts() const { return counts_; }

 private:
  struct Known {
    std::string partition;
    causality::Delta delta;
    bool acknowledged = false;
    bool at_peer = false;
    bool in_engine = false;
  };

  runtime::Task<void> life(runtime::Runtime& runtime);
  runtime::Task<void> settle_start(Engine& engine);
  runtime::Task<void> one_step(Engine& engine);
  Staged stage_any(Engine& engine);
  runtime::Task<void> write(Engine& engine);
  runtime::Task<void> write_several(Engine& engine);
  runtime::Task<void> take_from_peer(Engine& engine);
  void mint_at_peer();
  void give_to_peer();
  void update_watermarks(Engine& engine);
  runtime::Task<void> check_row(Engine& engine);
  runtime::Task<void> check_scan(Engine& engine);
  runtime::Task<void> check_mutation_log(Engine& engine);
  // All that a peer without anything is given, page by page.
  runtime::Task<MissingMutations> everything_missing(Engine& engine);
  void check_given(const LoggedMutation& mutation);

  causality::Mutation any_mutation();
  std::string any_partition();
  base::Bytes any_row();
  void adopt(const causality::Clock& found);
  void note_minted(const std::string& partition, const causality::Delta& delta);
  void check_timestamp(const std::string& partition, const causality::Delta& delta) const;
  causality::Timestamp floor_at_peer() const;
  causality::Clock dots_in_engine() const;
  EngineOptions engine_options() const;
  std::map<std::string, causality::PartitionStore> expected() const;

  const std::uint64_t seed_;
  const Options options_;
  LogWorld world_;
  base::Prng prng_;
  std::map<causality::Dot, Known> deltas_;
  std::map<causality::Dot, bool> seen_;  // dots somebody has seen, for ever
  causality::Clock peer_clock_;
  // What the engine was told to be stable, in any life; and whether it was told so of everything.
  causality::Clock told_stable_;
  bool told_alone_ = false;
  std::int64_t time_ = 1000;
  std::uint32_t incarnation_ = 1;
  bool tail_may_be_lost_ = false;
  bool went_back_ = false;
  std::shared_ptr<const sim::SimDisk::Image> image_;
  Counts counts_;
};

}  // namespace helenus::storage::testing
