// Coordinator: what a request does to data once it is known which cells it touches. It finds the
// tablet of a partition, hands mutations to a replica that mints, and merges what replicas answer.
//
//   Coordinator coordinator(runtime, replicas);
//   co_await coordinator.write({{table, partition, mutation}}, until);
//   auto cursor = coordinator.scan(table, partitions, scan_options);
//
// Today every tablet has one replica, here: the level of a request is always met by this node. What
// callers see stays when there are more.
//
// Cores. A tablet belongs to one core (storage/engine/engines.h), and every core has a coordinator:
// what is about a tablet of its own is a plain call, what is about another core's is run over there
// (runtime/run_on.h), with the deadline and the stop of the request. Storage is not its own: who
// composes the node opens it before, and stops it after all coordinators.
//
// Core affinity: the core of its Runtime.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "causality/delta.h"
#include "replication/replica/tablet_place.h"
#include "replication/request/partition_write.h"
#include "replication/request/read_request.h"
#include "replication/request/request_level.h"
#include "runtime/cores.h"
#include "runtime/operation.h"
#include "runtime/runtime.h"
#include "runtime/task.h"
#include "storage/engine/tablet_info.h"

namespace helenus::storage {
struct EngineStatistics;
}

namespace helenus::replication {

class RangeCursor;
class Replicas;
class TabletDirectory;

class Coordinator {
 public:
  // Requires: made on the core of `here`; the replicas outlive it.
  Coordinator(runtime::Runtime& here, const Replicas& replicas);
  Coordinator(const Coordinator&) = delete;
  Coordinator& operator=(const Coordinator&) = delete;

  // Durable when it returns, as the log's sync mode promises. Returns what was minted; nothing when
  // an explicit timestamp wins in no cell.
  // Errors: invalid_argument; overloaded, no_space, io_error (nothing was written); timeout,
  // cancelled (the outcome is unknown); not_found for a table that is gone.
  // `how`: every level is met by the only replica there is; nothing is told of it yet.
  runtime::Task<base::Result<std::optional<causality::Delta>>> write(PartitionWrite write,
                                                                     runtime::Until until,
                                                                     RequestLevel how = {});
  // The same without an explicit timestamp, and with an outcome that is always known: `admitted` is
  // how long it may wait for its place in the log; once it has one, only a failure of the log,
  // which ends writing for good, keeps it from being durable.
  runtime::Task<base::Result<void>> write_until_durable(PartitionWrite write,
                                                        runtime::Until admitted);
  // As write() for several, in their order: what a later one does to a partition is done upon what
  // an earlier one did. Those of one core are in its log one after the other, with nothing between
  // them unless the log must make room. An error that says that nothing was written says so of all
  // of them: where a part is there and another one failed, it is a timeout. A crash may leave a
  // part.
  runtime::Task<base::Result<std::vector<causality::Delta>>> write(
      std::vector<PartitionWrite> writes, runtime::Until until, RequestLevel how = {});

  // One row with the ranges it lies in, and the clock it may be shown with.
  runtime::Task<base::Result<storage::RowRead>> read_row(storage::TableId table,
                                                         base::Bytes partition, base::Bytes row,
                                                         runtime::Until until,
                                                         RequestLevel how = {});
  // Several rows of one partition, as they were at one moment: a write is in all of them or in
  // none. As many of the first ones as have about RowsAnswer::kBytesMax together, and at least one.
  // Errors: as of read_row(); overloaded if the partition's tablet is written without a pause.
  runtime::Task<base::Result<std::vector<storage::RowRead>>> read_rows_at_one_moment(
      storage::TableId table, base::Bytes partition, std::vector<base::Bytes> rows,
      runtime::Until until, RequestLevel how = {});
  // The rows of the partitions in the range, both ways, in the order of tokens.
  std::unique_ptr<RangeCursor> scan(storage::TableId table, storage::KeyRange partitions,
                                    ScanOptions options);

  // Writes what the table has in memory into files; merges its files.
  runtime::Task<base::Result<void>> flush(storage::TableId table, runtime::Until until);
  runtime::Task<base::Result<void>> compact(storage::TableId table, runtime::Until until);

  // Ascending by range; together they are the ring.
  const std::vector<storage::TabletInfo>& tablets() const;
  // Of this core alone.
  storage::EngineStatistics statistics_here() const;
  // Why this core can write nothing any more, if that is so.
  std::optional<base::Error> fatal_error_here() const;

 private:
  runtime::Task<base::Result<std::optional<causality::Delta>>> write_on_core(std::size_t index,
                                                                             PartitionWrite write,
                                                                             runtime::Until until);
  runtime::Task<base::Result<void>> write_until_durable_on_core(std::size_t index,
                                                                PartitionWrite write,
                                                                runtime::Until admitted);
  runtime::Task<base::Result<std::vector<causality::Delta>>> write_to_cores(
      std::vector<PartitionWrite> writes, runtime::Until until);
  // Whether the core would take all of them, and when it has room for each.
  runtime::Task<base::Result<void>> admit_on(runtime::CoreId core,
                                             const std::vector<PartitionWrite>& writes,
                                             runtime::Until until);
  runtime::Task<base::Result<std::vector<causality::Delta>>> write_on(
      runtime::CoreId core, std::vector<PartitionWrite> writes, runtime::Until until);
  runtime::Task<base::Result<storage::RowRead>> read_row_on_core(std::size_t index,
                                                                 storage::TableId table,
                                                                 base::Bytes partition,
                                                                 base::Bytes row,
                                                                 runtime::Until until);
  template <class T, class Work>
  runtime::Task<base::Result<std::vector<T>>> ask_all(Work work, runtime::Until until);

  runtime::Runtime& runtime_;
  const Replicas& replicas_;
  const TabletDirectory& tablets_;
  std::vector<TabletPlace> places_;  // of the tablets, as seen from here
};

}  // namespace helenus::replication
