// Coordinator: what a request does to data once it is known which cells it touches. It finds the
// tablet of a partition, hands mutations to a replica that mints, and merges what replicas answer.
//
//   Coordinator coordinator(runtime, replicas);
//   co_await coordinator.write({{table, partition, mutation}}, until);
//   auto cursor = coordinator.scan(table, partitions, scan_options);
//
// Where. A tablet that only this node holds is on one of its cores (storage/engine/engines.h): what
// is about one of this core is a plain call, what is about another core's is run over there
// (runtime/run_on.h), with the deadline and the stop of the request. A write to a tablet that
// several nodes hold goes to one of them, which mints it: this node if it is one, else another that
// is up; a read goes to as many as its level needs (replication/cluster).
//
// One attempt (R3). A write that may have been executed is never sent again: another replica is
// tried only after an error that says that nothing was.
//
// Core affinity: the core of its Runtime.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "causality/delta.h"
#include "replication/messages/messages.h"
#include "replication/request/partition_write.h"
#include "replication/request/read_request.h"
#include "replication/request/request_level.h"
#include "runtime/cores.h"
#include "runtime/maybe_task.h"
#include "runtime/operation.h"
#include "runtime/runtime.h"
#include "runtime/task.h"
#include "storage/engine/engine_types.h"
#include "storage/engine/tablet_info.h"

namespace helenus::storage {
class Engine;
struct EngineStatistics;
struct TableStatistics;
}  // namespace helenus::storage

namespace helenus::replication {

class HeldTablets;
class RangeCursor;
class Replicas;
struct HeldTablet;
struct ReplicaCore;

class Coordinator {
 public:
  // How many partitions of a batch are written at a time.
  static constexpr std::size_t kPartitionsAtOnce = 64;

  // Requires: made on the core of `here`; the replicas outlive it.
  Coordinator(runtime::Runtime& here, const Replicas& replicas);
  Coordinator(const Coordinator&) = delete;
  Coordinator& operator=(const Coordinator&) = delete;

  // At its level when it returns: durable, as the log's sync mode promises, at as many replicas.
  // Returns what was minted, of another node's without cells; nothing when an explicit timestamp
  // wins in no cell. Errors: unavailable, invalid_argument; overloaded, no_space (nothing was
  // written); timeout, cancelled, connection_lost (the outcome is unknown); io_error of a replica;
  // not_found for a table that is gone.
  runtime::Task<base::Result<std::optional<causality::Delta>>> write(PartitionWrite write,
                                                                     runtime::Until until,
                                                                     RequestLevel how = {});
  // The first half of the same where none of it waits: the write is staged here, and is told of
  // when its engine says that it is durable (may_have_happened). Nothing, and the write is as it
  // was, where it is not for this core alone or would have to wait. Errors: as of write().
  struct BegunWrite {
    storage::Engine* engine = nullptr;
    storage::LogPosition position;
  };
  std::optional<base::Result<BegunWrite>> begin_write(PartitionWrite& write,
                                                      const runtime::Until& until,
                                                      RequestLevel how);
  // As write() for several, in their order: what a later one does to a partition is done upon what
  // an earlier one did. Those of one core are in its log one after the other, with nothing between
  // them unless the log must make room. An error that says that nothing was written says so of all
  // of them: where a part is there and another one failed, it is a timeout. A crash may leave a
  // part.
  runtime::Task<base::Result<std::vector<causality::Delta>>> write(
      std::vector<PartitionWrite> writes, runtime::Until until, RequestLevel how = {});

  // One row with the ranges it lies in, and the clock it may be shown with.
  runtime::MaybeTask<base::Result<storage::RowRead>> read_row(storage::TableId table,
                                                              base::Bytes partition,
                                                              base::Bytes row, runtime::Until until,
                                                              RequestLevel how = {});
  // The same of a tablet that this core alone has, the report and all else of `how` being told when
  // this returns; nothing of others.
  std::optional<runtime::MaybeTask<base::Result<storage::RowRead>>> read_row_here(
      storage::TableId table, const base::Bytes& partition, const base::Bytes& row,
      const runtime::Until& until, RequestLevel how);
  // Several rows of one partition, as they were at one moment: a write is in all of them or in
  // none. As many of the first ones as have about RowsAnswer::kBytesMax together, and at least one.
  // Errors: as of read_row(); overloaded if the partition's tablet is written without a pause.
  runtime::Task<base::Result<std::vector<storage::RowRead>>> read_rows_at_one_moment(
      storage::TableId table, base::Bytes partition, std::vector<base::Bytes> rows,
      runtime::Until until, RequestLevel how = {});
  // The rows of the partitions in the range, both ways, in the order of tokens.
  std::unique_ptr<RangeCursor> scan(storage::TableId table, storage::KeyRange partitions,
                                    ScanOptions options);

  // The whole tablets that have something of the range, in the order of their keys. None: the
  // keyspace is gone.
  std::vector<storage::KeyRange> tablets_of(const storage::KeyRange& partitions) const;

  // Writes what the table has in memory into files; merges its files.
  runtime::Task<base::Result<void>> flush(storage::TableId table, runtime::Until until);
  runtime::Task<base::Result<void>> compact(storage::TableId table, runtime::Until until);
  // See Engine::verify.
  runtime::Task<base::Result<void>> verify(storage::TableId table, runtime::Until until);
  runtime::Task<base::Result<void>> verify_mutations(runtime::Until until);

  // Indexes that some core of this node does not read yet.
  runtime::Task<base::Result<std::set<storage::TableId>>> indexes_being_built(
      runtime::Until until) const;

  // What this node holds, and how the keyspaces are placed. Null before the first metadata.
  const std::shared_ptr<const HeldTablets>& tablets() const;
  // Of this core alone.
  storage::EngineStatistics statistics_here() const;
  std::vector<storage::TableStatistics> table_statistics_here() const;
  // Why this core can write nothing any more, if that is so.
  std::optional<base::Error> fatal_error_here() const;
  // Why it takes no data for now, if that is so: storage::Engine::write_refusal.
  std::optional<base::Error> write_refusal_here() const;

 private:
  // Null if it is none of a tablet that this node holds alone.
  const HeldTablet* find_alone(base::ByteView partition) const;

  runtime::Task<base::Result<std::optional<causality::Delta>>> write_on_core(
      runtime::CoreId core, storage::TabletId tablet, causality::Epoch epoch, PartitionWrite write,
      runtime::Until until);
  runtime::Task<base::Result<std::optional<causality::Delta>>> write_among_nodes(
      PartitionWrite write, runtime::Until until, RequestLevel how);
  // By one of them after the other, until one has taken it. Errors: kStale, where this node's
  // metadata are no longer those of the replicas.
  runtime::Task<base::Result<std::optional<causality::Delta>>> write_by_members(
      std::shared_ptr<WriteMessage> message, runtime::Until until, RequestLevel how);
  runtime::Task<base::Result<std::vector<causality::Delta>>> write_to_cores(
      std::vector<PartitionWrite> writes, runtime::Until until);
  // Some of several nodes.
  runtime::Task<base::Result<std::vector<causality::Delta>>> write_partitions(
      std::vector<PartitionWrite> writes, runtime::Until until, RequestLevel how);
  runtime::Task<base::Result<std::vector<causality::Delta>>> write_in_order(
      std::vector<PartitionWrite> writes, runtime::Until until, RequestLevel how);
  // Whether enough replicas of the partition are up.
  base::Result<void> check_available(base::ByteView partition, RequestLevel how) const;
  // Whether the core would take all of them, and when it has room for each.
  runtime::Task<base::Result<void>> admit_on(runtime::CoreId core,
                                             const std::vector<PartitionWrite>& writes,
                                             runtime::Until until);
  runtime::Task<base::Result<std::vector<causality::Delta>>> write_on(
      runtime::CoreId core, std::vector<PartitionWrite> writes, runtime::Until until);
  runtime::Task<base::Result<storage::RowRead>> read_row_on_core(
      runtime::CoreId core, storage::TabletId tablet, storage::TableId table, base::Bytes partition,
      base::Bytes row, runtime::Until until);
  runtime::Task<base::Result<storage::RowRead>> read_row_among_nodes(storage::TableId table,
                                                                     base::Bytes partition,
                                                                     base::Bytes row,
                                                                     runtime::Until until,
                                                                     RequestLevel how);
  template <class T, class Work>
  runtime::Task<base::Result<std::vector<T>>> ask_all(Work work, runtime::Until until) const;

  runtime::Runtime& runtime_;
  const Replicas& replicas_;
  ReplicaCore& core_;
};

}  // namespace helenus::replication
