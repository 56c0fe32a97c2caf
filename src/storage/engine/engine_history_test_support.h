// For tests: a random history of an engine over several lives of a machine that crashes, with an
// oracle beside it (tablet_oracle_test_support.h): a map of dot stores that never forgets.
//
// The engine holds several tables, one of each policy, and several tablets in several shards, which
// come and go. A tablet has a peer: a clock and a stock of deltas, which mints for itself, gets
// what the engine acknowledged and gives what it has; or it has none. The laws:
//   at every moment   what a reader sees of a row, of a scan either way, and of a walk to and fro
//                     from any place, is what the oracle shows of the deltas that the engine has
//   at every start    every acknowledged delta is there (in periodic mode after a power loss: or
//                     the tablet is in doubt); nothing is there that nobody wrote; a table or
//                     tablet that was dropped is not there, nor anything of it in the next one
//   for ever          no dot is minted twice that anybody has seen
//   mutation log      a peer that has nothing is given, whole and once, every mutation that is not
//                     known to be stable, or its dot alone if its table was dropped; what it is not
//                     given is named; nothing is two of these
//   rule (b)          in an 'lww' table a write's timestamp exceeds those of all unstable mutations
//                     of its cells, though clients' clocks differ
//   rule (d)          an explicit timestamp is never raised, and the floor it is judged by is that
//                     of the unstable mutations of the cell
//
// Every step draws from a stream of its own, by the seed and its number: a history can be cut down
// by leaving steps out (Options::left_out), and the others stay what they were.
//
// The scenarios of helenus-sim run it (sim/scenarios/storage): what does not hold is a violation.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/prng.h"
#include "causality/delta.h"
#include "runtime/runtime.h"
#include "runtime/task.h"
#include "sim/violations.h"
#include "storage/engine/engine.h"
#include "storage/engine/tablet_oracle_test_support.h"
#include "storage/log/commit_log_test_support.h"

namespace helenus::storage::testing {

inline constexpr const char* kEngineFolder = "/data/engine";
inline constexpr TableId kTable{7};
inline constexpr TabletId kTablet{0};

// Small limits, so that a short history freezes, flushes and compacts often.
EngineOptions small_engine(LogSyncMode mode = LogSyncMode::batch);

// The start whose lost log a refusal asks to be accepted; 0 if it names none.
std::uint32_t start_named_in(const base::Error& refusal);

class EngineHistory {
 public:
  struct Options {
    LogSyncMode mode = LogSyncMode::batch;
    int steps = 40;  // of a life
    int tables = 3;  // up to one of each policy
    int tablets = 3;
    std::uint32_t shards = 2;
    // Of a tablet and a table; and of a partition. In few partitions of many rows the deletes of
    // ranges are so many that they lie in parts.
    std::uint64_t partitions = 2;
    std::uint64_t rows = 6;
    bool peers = true;
    // Nobody hears of the peer how far it is: deletes gather.
    bool peer_is_away = false;
    // Tables and tablets are dropped and made anew.
    bool schema_changes = true;
    // So little memory that a start flushes before it has replayed everything.
    bool tight_memory = false;
    std::uint64_t mutation_log_bytes_max = std::uint64_t{1} << 30;
    // It keeps room for a full disk: then every start works.
    bool disk_reserve = false;
    // Steps that are not taken, numbered from 0 over all lives.
    std::set<int> left_out = {};
    sim::WorldOptions world = {};
  };

  EngineHistory(std::uint64_t seed, Options options);

  LogWorld& world() { return world_; }

  // Begins a life: opens, checks, works, checks, stops in an orderly way.
  void start_life() { start_life(options_.steps); }
  void start_life(int steps);
  // Lets that many events happen; false if the life ended before.
  bool run_events(std::uint64_t count);
  void run_to_end();
  void crash(bool power_loss);
  // What the disk would hold after a power loss now; and going back to it, as a copy.
  void take_image() { image_ = world_.disk().snapshot(); }
  void put_back_image();
  // Nothing is left of the log, and the next life accepts that: what it has seen then is what is in
  // files. Requires: crashed or stopped.
  void lose_log();

  // The disk is in trouble: what the engine is asked may fail with an error that says so, and what
  // it answers must be right all the same. After the trouble every tablet and table is checked, and
  // everything works again, unless writing has ended for good.
  // If `errors_name` is not empty, an I/O error has it in its text, and an offset where it was
  // read.
  void begin_trouble(std::string errors_name = "") {
    flush_error_ = true;
    errors_name_ = std::move(errors_name);
  }
  void end_trouble() { trouble_ended_ = true; }

  // How much happened, to show that it did.
  struct Counts {
    std::uint64_t writes = 0;
    std::uint64_t explicit_writes = 0;
    std::uint64_t explicit_writes_left_out = 0;
    std::uint64_t flushes = 0;
    std::uint64_t compactions = 0;
    std::uint64_t keys_gone = 0;
    std::uint64_t records_replayed = 0;
    std::uint64_t lives = 0;
    std::uint64_t lives_in_doubt = 0;
    std::uint64_t logs_lost = 0;    // and accepted
    std::uint64_t writes_lost = 0;  // with them, though they were acknowledged
    std::uint64_t mutations_given = 0;
    std::uint64_t mutations_from_files = 0;  // that had to be kept beyond a flush
    std::uint64_t mutation_files_shed = 0;
    std::uint64_t timestamps_raised = 0;
    std::uint64_t tables_dropped = 0;
    std::uint64_t tablets_dropped = 0;
    std::uint64_t walks = 0;
    std::uint64_t range_paths_read = 0;  // by scans
    std::uint64_t values_with_a_ttl = 0;
    std::uint64_t refusals = 0;        // because of trouble
    std::uint64_t ended_for_good = 0;  // lives in which writing did
    void add(const Counts& other);
  };
  const Counts& counts() const { return counts_; }
  const sim::Violations& violations() const { return violations_; }
  int steps_taken() const { return step_number_; }

 private:
  struct TableState {
    TableId id;
    causality::Policy policy = causality::Policy::lww;
    bool there = false;
    bool changing = false;  // being made or dropped: a crash leaves either
  };
  struct TabletState {
    TabletId id;
    KeyRange range;
    std::string partitions;  // begin so
    bool there = false;
    bool changing = false;
    bool has_peer = false;
    std::uint32_t actors = 0;  // names used so far
    TabletOracle oracle;
    std::optional<causality::Context> context;  // that a client was given
  };

  // Lives (engine_history_test_support.cc).
  runtime::Task<base::Result<std::unique_ptr<Engine>>> open(runtime::Runtime& runtime);
  runtime::Task<void> life(runtime::Runtime& runtime, int steps);
  runtime::Task<void> settle_start(Engine& engine);
  runtime::Task<void> settle_tables(Engine& engine);
  void settle_tablets(Engine& engine);
  runtime::Task<void> settle_doubts(Engine& engine);
  runtime::Task<void> take_step(Engine& engine);
  runtime::Task<void> take_common_step(Engine& engine, std::uint64_t choice);
  runtime::Task<void> take_rare_step(Engine& engine, std::uint64_t choice);
  runtime::Task<void> see_trouble_through(Engine& engine);
  void note_end(Engine& engine);

  // Tables and tablets.
  runtime::Task<void> make_table(Engine& engine, TableState& table);
  runtime::Task<void> drop_table(Engine& engine, TableState& table);
  runtime::Task<void> make_tablet(Engine& engine, TabletState& tablet);
  runtime::Task<void> drop_tablet(Engine& engine, TabletState& tablet);
  runtime::Task<void> reincarnate(Engine& engine, TabletState& tablet);
  runtime::Task<void> change_schema(Engine& engine);
  void forget_table(TableState& table);
  causality::ActorId next_actor(TabletState& tablet);

  // Writes.
  std::optional<Staged> stage_any(Engine& engine, TabletState& tablet, const TableState& table);
  runtime::Task<void> write(Engine& engine, std::uint64_t count);
  runtime::Task<void> write_explicitly(Engine& engine);
  runtime::Task<void> await_durable(Engine& engine, TabletState& tablet, LogPosition position,
                                    std::vector<causality::Dot> dots);
  runtime::Task<bool> admitted(Engine& engine, const TabletState& tablet, const TableState& table);
  void note_minted(TabletState& tablet, const TableState& table, const std::string& partition,
                   const causality::Delta& delta);
  void mint_at_peer();
  runtime::Task<void> take_from_peer(Engine& engine, TabletState& tablet);
  void give_to_peer();
  void update_watermarks(Engine& engine);

  // What is drawn.
  TableState* any_table();
  TabletState* any_tablet();
  std::string any_partition(const TabletState& tablet);
  base::Bytes any_row();
  causality::Mutation any_mutation(causality::Policy policy);
  causality::CellChange any_cell(causality::Policy policy);
  causality::RowRange any_range();
  std::optional<causality::Context> any_context(TabletState& tablet);

  // Checks (engine_history_checks_test_support.cc).
  runtime::Task<void> check_row(Engine& engine);
  runtime::Task<void> check_walk(Engine& engine);
  runtime::Task<void> check_scan(Engine& engine, const TabletState& tablet,
                                 const TableState& table);
  runtime::Task<void> check_everything(Engine& engine);
  runtime::Task<void> check_mutation_log(Engine& engine, TabletState& tablet);
  // All that a peer without anything is given, page by page.
  runtime::Task<std::optional<MissingMutations>> everything_missing(Engine& engine,
                                                                    const TabletState& tablet);
  void check_given(TabletState& tablet, const LoggedMutation& mutation);
  void check_covered(const TabletState& tablet, const causality::Clock& covered);
  bool is_changing(TableId table) const;
  void check_timestamp(const TabletState& tablet, const TableState& table,
                       const std::string& partition, const causality::Delta& delta);
  void check_floor(const TabletState& tablet, const TableState& table, const std::string& partition,
                   const causality::CellChange& cell, causality::Timestamp floor);
  void see_clock(TabletState& tablet, const causality::Clock& clock);

  template <class... Args>
  void expect(bool holds, fmt::format_string<Args...> text, Args&&... args) {
    if (!holds) violations_.add(where() + fmt::format(text, std::forward<Args>(args)...));
  }
  // Whether it went well. If not, trouble must excuse it.
  template <class T>
  bool fine(const base::Result<T>& result) {
    if (!result) judge(result.error());
    return result.has_value();
  }
  void judge(const base::Error& error);
  std::string where() const;
  causality::WallTime now() const;
  runtime::Until until() const;
  EngineOptions engine_options() const;

  const std::uint64_t seed_;
  const Options options_;
  LogWorld world_;
  base::Prng prng_;  // of the step
  runtime::Runtime* runtime_ = nullptr;
  std::vector<TableState> tables_;
  std::uint64_t next_table_ = 0;  // no id is used again
  std::vector<TabletState> tablets_;
  std::int64_t time_ = 1000;
  int step_number_ = 0;
  bool tail_may_be_lost_ = false;
  bool went_back_ = false;
  bool log_lost_ = false;
  bool flush_error_ = false;
  bool trouble_ended_ = false;
  std::string errors_name_;
  std::shared_ptr<const sim::SimDisk::Image> image_;
  Counts counts_;
  sim::Violations violations_;
};

}  // namespace helenus::storage::testing
