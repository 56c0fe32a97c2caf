// Coordinator: what a request does to data once it is known which cells it touches. It finds the
// tablet of a partition, hands mutations to a replica that mints, and merges what replicas answer.
//
//   auto coordinator = co_await Coordinator::open(runtime, options);
//   co_await coordinator->create_table(table, {.policy = Policy::lww});
//   co_await coordinator->write({{table, partition, mutation}}, until);
//   auto cursor = coordinator->scan(table, partitions, scan_options);
//
// Today every tablet has one replica, here: the level of a request is always met by this node. What
// callers see stays when there are more.
//
// The ring. Partitions are byte strings that begin with their token (model/partition_key.h), and a
// tablet is a range of them: the ring is cut into `tablets` equal ranges of tokens when the folder
// is made, and stays cut so.
//
// Names. A tablet mints under (node, incarnation). After a stop that may have lost a tail of the
// log it gets the next incarnation before it takes a write (S14): names are never used twice.
//
// Core affinity: the core whose Runtime opened it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/bytes.h"
#include "base/log.h"
#include "base/result.h"
#include "causality/context.h"
#include "causality/delta.h"
#include "replication/range_cursor.h"
#include "runtime/runtime.h"
#include "runtime/task.h"
#include "storage/engine.h"

namespace helenus::replication {

struct CoordinatorOptions {
  static constexpr std::uint32_t kTabletsMax = 65536;

  storage::EngineOptions engine;
  // Into how many ranges the ring is cut; fixed when the folder is made.
  std::uint32_t tablets = 16;
  // Who mints here.
  std::uint32_t node_number = 1;
};

// The mutation of one partition: atomic, one dot.
struct PartitionWrite {
  storage::TableId table;
  base::Bytes partition;
  causality::Mutation mutation;
  // The client named the timestamp itself (USING TIMESTAMP): it keeps Cassandra's meaning, so a
  // cell in which it does not win is left out of the mutation (rule (d)). Such a write reads.
  bool explicit_timestamp = false;
};

class Coordinator {
  struct Private {
    explicit Private() = default;
  };

 public:
  // Errors: those of Engine::open; invalid_argument when the folder was made with another number
  // of tablets.
  static runtime::Task<base::Result<std::unique_ptr<Coordinator>>> open(runtime::Runtime& runtime,
                                                                        CoordinatorOptions options);
  // For open().
  Coordinator(Private, runtime::Runtime& runtime, CoordinatorOptions options);

  // Waits for those inside; see Engine::stop. Called once.
  runtime::Task<base::Result<void>> stop();

  // Durable when they return. Errors: already_exists; not_found; see Engine.
  runtime::Task<base::Result<void>> create_table(storage::TableId table,
                                                 storage::TableOptions options);
  runtime::Task<base::Result<void>> drop_table(storage::TableId table);

  // Durable when it returns, as the log's sync mode promises. Returns what was minted; nothing when
  // an explicit timestamp wins in no cell.
  // Errors: invalid_argument; overloaded, no_space, io_error (nothing was written); timeout,
  // cancelled (the outcome is unknown); not_found for a table that is gone.
  runtime::Task<base::Result<std::optional<causality::Delta>>> write(PartitionWrite write,
                                                                     runtime::Until until);
  // The same without an explicit timestamp, and with an outcome that is always known: `admitted` is
  // how long it may wait for its place in the log; once it has one, only a failure of the log,
  // which ends writing for good, keeps it from being durable.
  runtime::Task<base::Result<void>> write_to_the_end(PartitionWrite write, runtime::Until admitted);
  // As write() for several, in the log one after the other with nothing between them. After
  // invalid_argument and not_found nothing was written; an error of the log at one of them may
  // leave those before it written.
  runtime::Task<base::Result<std::vector<causality::Delta>>> write(
      std::vector<PartitionWrite> writes, runtime::Until until);

  // One row with the scopes it lies in, and the clock it may be shown with.
  runtime::Task<base::Result<storage::RowRead>> read_row(storage::TableId table,
                                                         base::Bytes partition, base::Bytes row,
                                                         runtime::Until until);
  // The rows of the partitions in the range, both ways, in the order of tokens.
  std::unique_ptr<RangeCursor> scan(storage::TableId table, storage::KeyRange partitions,
                                    storage::SstableCursorOptions options);

  // Writes what the table has in memory into files; merges its files.
  runtime::Task<base::Result<void>> flush(storage::TableId table, runtime::Until until);
  runtime::Task<base::Result<void>> compact(storage::TableId table, runtime::Until until);

  // Ascending by range; together they are the ring.
  const std::vector<storage::TabletInfo>& tablets() const { return tablets_; }
  storage::EngineStatistics statistics() const { return engine_->statistics(); }
  const storage::EngineOpenReport& report() const { return engine_->report(); }
  const std::optional<base::Error>& failure() const { return engine_->failure(); }

 private:
  // A mutation with an explicit timestamp without the cells in which it does not win, and what the
  // tablet had seen when that was found out.
  struct Judged {
    causality::Mutation mutation;
    causality::Clock clock;
  };

  runtime::Task<base::Result<void>> make_tablets();
  runtime::Task<base::Result<void>> rename_doubtful();
  runtime::Task<base::Result<void>> judge_explicit(std::span<PartitionWrite> writes,
                                                   runtime::Until until);
  runtime::Task<base::Result<Judged>> judge(const PartitionWrite& write, runtime::Until until);
  runtime::Task<base::Result<void>> judge_cells(const PartitionWrite& write, Judged& judged,
                                                runtime::Until until);
  runtime::Task<base::Result<void>> judge_scope(const PartitionWrite& write,
                                                const causality::Scope& scope, Judged& judged,
                                                runtime::Until until);
  bool unchanged_since(storage::TabletId tablet, const causality::Clock& clock);
  storage::TabletId tablet_of(base::ByteView partition) const;

  const CoordinatorOptions options_;
  base::Logger log_;
  std::unique_ptr<storage::Engine> engine_;
  std::vector<storage::TabletInfo> tablets_;
};

}  // namespace helenus::replication
