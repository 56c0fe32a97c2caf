// RowStream: the rows that a WHERE clause is about, one after the other, in bounded memory.
//
// Two kinds: StoredRows reads them from the coordinator, VirtualTableRows makes them. Both give
// whole rows that match all restrictions, partitions in the order of tokens, rows of a partition in
// their order or the reverse of it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <tuple>
#include <vector>

#include "base/result.h"
#include "causality/context.h"
#include "cql/plan/restrictions.h"
#include "cql/plan/row.h"
#include "cql/plan/row_reader.h"
#include "cql/server/admission.h"
#include "cql/system/virtual_table.h"
#include "model/consistency.h"
#include "model/schema.h"
#include "replication/coordinator/coordinator.h"
#include "replication/request/read_request.h"
#include "replication/request/request_level.h"
#include "runtime/runtime.h"
#include "runtime/task.h"

namespace helenus::cql {

// Which rows, of which table, and what of them.
struct RowRequest {
  model::TablePtr table;
  BoundRestrictions where;
  const RowLayout* layout = nullptr;  // what is read; it outlives the stream
  bool point_reads = false;           // every range of rows is one row
  bool reversed = false;
  bool distinct = false;  // one row a partition
  std::optional<std::uint64_t> per_partition_limit;
  // A partition without rows is shown by its static row, if it has one.
  bool static_without_rows = false;
  std::optional<RowPosition> after;
  causality::WallTime now;
  runtime::Until until;
  // When this moment has passed, a stream that has found something returns with that.
  runtime::MonotonicTime pause_at = runtime::MonotonicTime::never();
  bool wants_context = false;
  model::Consistency level = model::Consistency::one;
  replication::RequestNotes* notes = nullptr;  // it outlives the stream
};

class RowStream {
 public:
  RowStream() = default;
  RowStream(const RowStream&) = delete;
  RowStream& operator=(const RowStream&) = delete;
  virtual ~RowStream() = default;

  // How many rows, and of how many bytes: it ends with the row that reaches the latter.
  struct Amount {
    std::size_t rows = 0;
    std::size_t bytes = 0;
  };
  // Appends the next rows, as many or fewer; none only at the end. What it gives may be shown.
  // Errors: those of the coordinator's reads. Requires: rows > 0.
  virtual runtime::Task<base::Result<void>> fill(std::vector<Row>& rows, Amount amount) = 0;
  // Nothing more of this partition is wanted; rows of it may come nevertheless.
  virtual void skip_rest_of(const base::Bytes& partition) { std::ignore = partition; }
  // What a client has seen by reading the last row; only with `wants_context` and point reads.
  virtual std::optional<causality::Context> context() const { return std::nullopt; }
  // How far the last read of replicas got.
  virtual replication::LevelReport report() const { return {}; }
  // Of which partition that row is. Requires: context().
  virtual base::Bytes context_partition() const { return {}; }
};

class StoredRows final : public RowStream {
 public:
  // Requires: runtime and coordinator outlive it.
  StoredRows(runtime::Runtime& runtime, replication::Coordinator& coordinator,
             storage::TableId storage, RowRequest request);
  ~StoredRows() override;

  runtime::Task<base::Result<void>> fill(std::vector<Row>& rows, Amount amount) override;
  void skip_rest_of(const base::Bytes& partition) override {
    skips_rest_ = skips_rest_ || partition_ == partition;
  }
  std::optional<causality::Context> context() const override { return context_; }
  base::Bytes context_partition() const override { return partition_; }
  replication::LevelReport report() const override { return report_; }

 private:
  enum class Phase : std::uint8_t { between_partitions, rows, done };
  // How many rows are looked at before others get their turn.
  static constexpr std::size_t kRowsPerTurn = 256;
  // How often a row is read again that was written meanwhile, before it is shown as it was read.
  static constexpr int kGathersMax = 16;
  // The same for one that comes from elsewhere: it may be too large to come at once.
  static constexpr int kGathersInPartsMax = 2;
  // What the elements of one row may have together.
  static constexpr std::size_t kElementBytesMax = std::size_t{256} << 20;
  // How many named rows of a partition are read at one moment.
  static constexpr std::size_t kPointsMax = 64;
  struct Point {
    base::Bytes clustering;
    storage::RowRead read;
  };

  replication::RequestLevel how() {
    return {.level = request_.level,
            .report = &report_,
            .repairs = request_.table->options.read_repair != "NONE",
            .takes_digests =
                reader_.layout().policy() == causality::Policy::lww && !request_.wants_context,
            .speculation = speculation_,
            .notes = request_.notes};
  }
  runtime::Task<base::Result<void>> enter_partition();
  runtime::Task<base::Result<void>> enter_named();
  runtime::Task<base::Result<void>> enter_scanned();
  runtime::Task<base::Result<void>> resume_scan();
  bool wants_static() const;
  runtime::Task<base::Result<void>> read_static();
  // Reads the next rows that are named, and with the first of them the static one, at one moment.
  // None are left: leaves the partition.
  runtime::Task<base::Result<void>> read_next_points(std::vector<Row>& rows);
  base::Result<void> begin_partition(base::Bytes partition);
  runtime::Task<base::Result<void>> read_rows(std::vector<Row>& rows);
  runtime::Task<base::Result<void>> read_points(std::vector<Row>& rows);
  runtime::Task<base::Result<void>> read_scanned(std::vector<Row>& rows);
  runtime::Task<base::Result<void>> seek_range();
  bool turn_is_over() { return ++rows_this_turn_ >= kRowsPerTurn; }
  runtime::Task<base::Result<void>> take_turn();
  // Reads the row with this key, of which the cursor stands on the first part there is (from where
  // it comes), and all its elements, at one moment; sets `row`, and leaves the cursor behind them.
  // Returns whether the row is there.
  runtime::Task<base::Result<bool>> gather(base::Bytes clustering, model::ColumnKind kind,
                                           Row& row);
  struct Gathered {
    bool is_live = false;
    bool is_settled = false;  // of one moment
  };
  runtime::Task<base::Result<Gathered>> gather_once(base::Bytes clustering, model::ColumnKind kind,
                                                    Row& row);
  runtime::Task<base::Result<void>> seek_row(base::Bytes clustering);
  runtime::Task<base::Result<void>> emit_gathered(std::vector<Row>& rows);
  bool stands_in(base::ByteView clustering) const;
  runtime::Task<base::Result<void>> read_context();
  std::unique_ptr<replication::RangeCursor> scan(storage::KeyRange partitions);
  // The first key behind a row that was shown.
  base::Bytes behind_row(const base::Bytes& clustering) const;
  bool in_range() const;
  bool partition_is_full() const;
  bool is_filled(const std::vector<Row>& rows) const;
  base::Result<void> emit(const causality::PartitionStore& stored, const base::Bytes& clustering,
                          std::vector<Row>& rows);
  bool accept(Row row, std::vector<Row>& rows);
  void leave_partition(std::vector<Row>& rows);
  const model::ClusteringRange& range() const;

  runtime::Runtime& runtime_;
  replication::Coordinator& coordinator_;
  const storage::TableId storage_;
  const RowRequest request_;
  const replication::Speculation speculation_;  // of the table
  RowReader reader_;
  const bool clustered_;
  const bool has_elements_;  // a row is several of storage's
  Phase phase_ = Phase::between_partitions;
  std::unique_ptr<replication::RangeCursor> cursor_;
  std::size_t partition_index_ = 0;
  base::Bytes partition_;
  Row partition_row_;  // its keys and static cells
  bool static_is_live_ = false;
  bool found_row_ = false;  // some row of the partition is there, whether it matches or not
  std::uint64_t rows_in_partition_ = 0;
  bool skips_rest_ = false;
  std::size_t range_index_ = 0;
  bool in_range_ = false;  // the cursor stands where the range is read from
  std::optional<base::Bytes> after_clustering_;
  // Named rows that were read and not shown, the next one last.
  std::vector<Point> points_;
  RowElements elements_;  // of the row that is being read
  bool static_is_read_ = false;
  std::size_t rows_this_turn_ = 0;
  // Of the fill under way.
  std::size_t rows_end_ = 0;
  std::size_t bytes_left_ = 0;
  replication::LevelReport report_;
  std::optional<causality::Context> context_;
};

class VirtualTableRows final : public RowStream {
 public:
  // Requires: table and admission outlive it. What it makes is charged as a result; what is not
  // admitted is the error `overloaded`.
  VirtualTableRows(const VirtualTable& table, RowRequest request, Admission& admission)
      : table_(table), request_(std::move(request)), charge_(admission) {
    std::ranges::sort(request_.where.partitions);
  }

  runtime::Task<base::Result<void>> fill(std::vector<Row>& rows, Amount amount) override;

 private:
  bool matches(const VirtualRow& row) const;
  // Of all rows those that were asked for.
  void choose(std::vector<VirtualRow> made);

  const VirtualTable& table_;
  RowRequest request_;  // its partitions ascend
  bool made_ = false;
  Admission::ResultCharge charge_;
  std::vector<Row> rows_;
  std::size_t next_ = 0;
};

}  // namespace helenus::cql
