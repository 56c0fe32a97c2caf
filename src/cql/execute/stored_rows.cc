// Rows from the coordinator: by point reads where the statement names its rows, else by a cursor
// over each partition it names, else by one cursor over a range of the ring.
#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "cql/execute/row_stream.h"
#include "model/element_key.h"
#include "replication/read/range_cursor.h"
#include "runtime/take_turn.h"

namespace helenus::cql {

using base::Bytes;
using base::Errc;
using base::Error;
using base::Result;
using causality::PartitionStore;
using runtime::Task;

namespace {

// The first key behind all that begin with these bytes; storage's keys are never all 0xff.
Bytes behind(const Bytes& prefix) {
  auto next = model::successor_of_prefix(prefix);
  return next ? std::move(*next) : Bytes();
}

// The least key greater than this one.
Bytes just_behind(const Bytes& key) {
  base::Buffer buffer(key.size() + 1);
  buffer.append(key.view());
  buffer.push_back(std::byte{0});
  return std::move(buffer).freeze();
}

}  // namespace

StoredRows::~StoredRows() = default;

StoredRows::StoredRows(runtime::Runtime& runtime, replication::Coordinator& coordinator,
                       storage::TableId storage, RowRequest request)
    : runtime_(runtime),
      coordinator_(coordinator),
      storage_(storage),
      request_(std::move(request)),
      speculation_(replication::Speculation::parse(request_.table->options.speculative_retry)),
      reader_(*request_.layout, request_.now),
      clustered_(!request_.table->clustering().empty()),
      has_elements_(request_.layout->has_elements()) {
  if (request_.after && request_.where.by_key) {
    const auto first = std::ranges::find(request_.where.partitions, request_.after->partition);
    partition_index_ = static_cast<std::size_t>(first - request_.where.partitions.begin());
  }
}

Task<Result<void>> StoredRows::fill(std::vector<Row>& rows, Amount amount) {
  rows_end_ = rows.size() + amount.rows;
  bytes_left_ = std::max<std::size_t>(amount.bytes, 1);
  while (phase_ != Phase::done && !is_filled(rows)) {
    if (phase_ == Phase::between_partitions) {
      // Partitions of which nothing is shown count as well.
      if (turn_is_over()) CO_TRY_VOID(co_await take_turn());
      CO_TRY_VOID(co_await enter_partition());
    } else if (!request_.where.by_key) {
      CO_TRY_VOID(co_await read_scanned(rows));
    } else if (request_.point_reads && !has_elements_) {
      CO_TRY_VOID(co_await read_points(rows));
    } else {
      CO_TRY_VOID(co_await read_rows(rows));
    }
  }
  if (cursor_ != nullptr) CO_TRY_VOID(co_await cursor_->wait_durable(request_.until));
  co_return {};
}

bool StoredRows::is_filled(const std::vector<Row>& rows) const {
  if (rows.size() >= rows_end_ || bytes_left_ == 0) return true;
  return !rows.empty() && runtime_.clock.now() >= request_.pause_at;
}

Task<Result<void>> StoredRows::take_turn() {
  rows_this_turn_ = 0;
  return runtime::take_turn(runtime_, request_.until);
}

// ---- Partitions ----

Task<Result<void>> StoredRows::enter_partition() {
  return request_.where.by_key ? enter_named() : enter_scanned();
}

Result<void> StoredRows::begin_partition(Bytes partition) {
  partition_ = std::move(partition);
  reader_.begin(partition_row_);
  static_is_live_ = false;
  found_row_ = false;
  rows_in_partition_ = 0;
  skips_rest_ = false;
  range_index_ = 0;
  in_range_ = false;
  after_clustering_.reset();
  points_.clear();
  static_is_read_ = false;
  TRY_VOID(reader_.read_partition_key(partition_, partition_row_));
  phase_ = Phase::rows;
  return {};
}

bool StoredRows::wants_static() const {
  return clustered_ && (reader_.layout().wants_static() || request_.static_without_rows) &&
         !request_.table->static_columns().empty();
}

Task<Result<void>> StoredRows::read_static() {
  if (!wants_static()) co_return {};
  if (has_elements_) {
    CO_TRY_VOID(co_await cursor_->seek(partition_, {}));
    if (!stands_in({})) co_return {};
    CO_TRY(static_is_live_, co_await gather({}, model::ColumnKind::static_column, partition_row_));
    co_return {};
  }
  CO_TRY(const auto read,
         co_await coordinator_.read_row(storage_, partition_, {}, request_.until, how()));
  reader_.not_before(read.wall);
  static_is_live_ = reader_.read_static(read.partition, partition_row_);
  co_return {};
}

Task<Result<void>> StoredRows::enter_named() {
  if (partition_index_ == request_.where.partitions.size()) {
    phase_ = Phase::done;
    co_return {};
  }
  CO_TRY_VOID(begin_partition(request_.where.partitions[partition_index_++]));
  if (request_.after && request_.after->partition == partition_) {
    if (request_.after->clustering.empty()) {
      phase_ = Phase::between_partitions;
      co_return {};
    }
    after_clustering_ = request_.after->clustering;
    rows_in_partition_ = request_.after->rows_in_partition;
    found_row_ = true;
  }
  if (request_.point_reads && !has_elements_) co_return {};
  if (has_elements_) CO_TRY_VOID(co_await read_context());
  if (!has_elements_) CO_TRY_VOID(co_await read_static());
  if (cursor_ != nullptr) CO_TRY_VOID(co_await cursor_->wait_durable(request_.until));
  cursor_ = scan({.from = partition_, .to = behind(partition_)});
  if (has_elements_) CO_TRY_VOID(co_await read_static());
  co_return {};
}

// Read before the row is gathered, so that what it names was seen: elements that are newer than it
// are shown, and stay beside what is written under it. Where the newest wins there is none: its
// floor would have to be that of all elements, those that are gone included (docs/adr/0012).
Task<Result<void>> StoredRows::read_context() {
  const bool has_context = request_.wants_context && !request_.where.rows.empty() &&
                           reader_.layout().policy() == causality::Policy::siblings;
  if (!has_context) co_return {};
  const Bytes& row = request_.where.rows.front().from;
  CO_TRY(const auto read,
         co_await coordinator_.read_row(storage_, partition_, row, request_.until, how()));
  reader_.not_before(read.wall);
  context_ = reader_.context_of(read, row);
  co_return {};
}

std::unique_ptr<replication::RangeCursor> StoredRows::scan(storage::KeyRange partitions) {
  return coordinator_.scan(storage_, std::move(partitions),
                           {.until = request_.until, .how = how(), .at_one_moment = has_elements_});
}

Bytes StoredRows::behind_row(const Bytes& clustering) const {
  return has_elements_ ? behind(clustering) : just_behind(clustering);
}

Task<Result<void>> StoredRows::resume_scan() {
  const RowPosition& after = *request_.after;
  if (after.clustering.empty()) {
    co_return co_await cursor_->seek(behind(after.partition), {});
  }
  CO_TRY_VOID(begin_partition(after.partition));
  CO_TRY_VOID(co_await read_static());
  found_row_ = true;
  rows_in_partition_ = after.rows_in_partition;
  co_return co_await cursor_->seek(after.partition, behind_row(after.clustering));
}

Task<Result<void>> StoredRows::enter_scanned() {
  if (cursor_ == nullptr) {
    cursor_ = scan(request_.where.range);
    if (request_.after) {
      CO_TRY_VOID(co_await resume_scan());
      if (phase_ == Phase::rows) co_return {};
    } else {
      CO_TRY_VOID(co_await cursor_->seek_first());
    }
  }
  if (!cursor_->valid()) {
    phase_ = Phase::done;
    co_return {};
  }
  CO_TRY_VOID(begin_partition(Bytes::copy_of(cursor_->partition())));
  if (clustered_ && has_elements_ && stands_in({})) {
    CO_TRY(static_is_live_, co_await gather({}, model::ColumnKind::static_column, partition_row_));
  } else if (clustered_ && cursor_->row_key().empty()) {
    CO_TRY(const PartitionStore stored, cursor_->read());
    reader_.not_before(cursor_->wall());
    static_is_live_ = reader_.read_static(stored, partition_row_);
    CO_TRY_VOID(co_await cursor_->next());
  }
  co_return {};
}

void StoredRows::leave_partition(std::vector<Row>& rows) {
  phase_ = Phase::between_partitions;
  if (found_row_ || !static_is_live_ || !request_.static_without_rows) return;
  accept(partition_row_, rows);
}

// ---- Rows ----

bool StoredRows::partition_is_full() const {
  if (skips_rest_ || (request_.distinct && rows_in_partition_ > 0)) return true;
  return request_.per_partition_limit && rows_in_partition_ >= *request_.per_partition_limit;
}

bool StoredRows::accept(Row row, std::vector<Row>& rows) {
  for (const BoundPredicate& filter : request_.where.filters) {
    if (!filter.matches(*request_.table, row)) return false;
  }
  row.number_in_partition = ++rows_in_partition_;
  bytes_left_ -= std::min(bytes_left_, size_of(row));
  rows.push_back(std::move(row));
  return true;
}

Result<void> StoredRows::emit(const PartitionStore& stored, const Bytes& clustering,
                              std::vector<Row>& rows) {
  Row row = partition_row_;
  if (!reader_.read_regular(stored, clustering, row)) return {};
  found_row_ = true;
  TRY_VOID(reader_.read_clustering(clustering, row));
  accept(std::move(row), rows);
  return {};
}

// ---- Rows with elements ----
// They lie behind their row (model/element_key.h). A statement that writes several of them, or
// replaces all, is seen as a whole or not at all: RangeCursor::moment() says how.

bool StoredRows::stands_in(base::ByteView clustering) const {
  if (!cursor_->valid() || !base::equal(cursor_->partition(), partition_)) return false;
  const base::ByteView key = cursor_->row_key();
  if (!base::as_text(key).starts_with(base::as_text(clustering))) return false;
  return key.size() == clustering.size() ||
         model::is_element_suffix(key.subspan(clustering.size()));
}

Task<Result<void>> StoredRows::seek_row(Bytes clustering) {
  if (!request_.reversed || clustering.empty()) {
    co_return co_await cursor_->seek(partition_, std::move(clustering));
  }
  co_return co_await cursor_->seek_before(partition_, behind(clustering));
}

Task<Result<StoredRows::Gathered>> StoredRows::gather_once(Bytes clustering, model::ColumnKind kind,
                                                           Row& row) {
  Gathered gathered{.is_live = false, .is_settled = true};
  if (!stands_in(clustering)) co_return gathered;
  const std::uint64_t moment = cursor_->moment();
  reader_.not_before(cursor_->wall());
  gathered.is_settled = cursor_->sought_at() == moment;
  const bool backwards = request_.reversed && !clustering.empty();
  while (stands_in(clustering)) {
    gathered.is_settled = gathered.is_settled && cursor_->moment() == moment;
    const Bytes key = Bytes::copy_of(cursor_->row_key());
    CO_TRY(const PartitionStore stored, cursor_->read());
    bool shown = false;
    if (key.size() > clustering.size()) {
      CO_TRY(shown, reader_.read_element(stored, key, key.view().subspan(clustering.size()), kind,
                                         elements_));
    } else if (kind == model::ColumnKind::static_column) {
      shown = reader_.read_static(stored, row);
    } else {
      shown = reader_.read_regular(stored, clustering, row);
    }
    gathered.is_live = gathered.is_live || shown;
    if (elements_.bytes() > kElementBytesMax) {
      co_return Error(Errc::overloaded, "the collections of a row have more than {} bytes",
                      kElementBytesMax);
    }
    CO_TRY_VOID(backwards ? co_await cursor_->previous() : co_await cursor_->next());
  }
  co_return gathered;
}

Task<Result<bool>> StoredRows::gather(Bytes clustering, model::ColumnKind kind, Row& row) {
  const Row before = row;
  for (int round = 1;; ++round) {
    const bool is_sought = cursor_->valid() && cursor_->sought_at() == cursor_->moment();
    if (round > 1) cursor_->expect_many();
    if (round > 1 || !is_sought) CO_TRY_VOID(co_await seek_row(clustering));
    elements_.clear();
    CO_TRY(const Gathered gathered, co_await gather_once(clustering, kind, row));
    const int rounds_max = cursor_->reads_in_parts() ? kGathersInPartsMax : kGathersMax;
    if (!gathered.is_settled && round < rounds_max) {
      row = before;
      continue;
    }
    const bool backwards = request_.reversed && !clustering.empty();
    CO_TRY_VOID(reader_.read_elements(std::exchange(elements_, {}), backwards, row));
    co_return gathered.is_live;
  }
}

Task<Result<void>> StoredRows::emit_gathered(std::vector<Row>& rows) {
  CO_TRY(const std::size_t size,
         model::row_size_of(reader_.layout().clustering(), cursor_->row_key()));
  const Bytes clustering = Bytes::copy_of(cursor_->row_key().first(size));
  Row row = partition_row_;
  CO_TRY(const bool live, co_await gather(clustering, model::ColumnKind::regular, row));
  if (!live || (clustered_ && clustering.empty())) co_return {};
  found_row_ = true;
  CO_TRY_VOID(reader_.read_clustering(clustering, row));
  accept(std::move(row), rows);
  co_return {};
}

const model::ClusteringRange& StoredRows::range() const {
  const auto& ranges = request_.where.rows;
  return request_.reversed ? ranges[ranges.size() - 1 - range_index_] : ranges[range_index_];
}

Task<Result<void>> StoredRows::read_points(std::vector<Row>& rows) {
  while (phase_ == Phase::rows && !is_filled(rows)) {
    if (partition_is_full()) {
      leave_partition(rows);
    } else if (points_.empty()) {
      CO_TRY_VOID(co_await read_next_points(rows));
    } else {
      const Point point = std::move(points_.back());
      points_.pop_back();
      CO_TRY_VOID(emit(point.read.partition, point.clustering, rows));
      if (request_.wants_context) context_ = reader_.context_of(point.read, point.clustering);
      if (turn_is_over()) CO_TRY_VOID(co_await take_turn());
    }
  }
  co_return {};
}

Task<Result<void>> StoredRows::read_next_points(std::vector<Row>& rows) {
  const auto shown_before = [&](const Bytes& clustering) {
    return after_clustering_ && (request_.reversed ? clustering >= *after_clustering_
                                                   : clustering <= *after_clustering_);
  };
  std::vector<Bytes> keys;
  std::vector<std::size_t> indexes;  // of their ranges
  for (; range_index_ < request_.where.rows.size() && keys.size() < kPointsMax; ++range_index_) {
    if (shown_before(range().from)) continue;
    keys.push_back(range().from);
    indexes.push_back(range_index_);
  }
  if (keys.empty()) {
    leave_partition(rows);
    co_return {};
  }
  std::vector<storage::RowRead> reads;
  const bool with_static = !static_is_read_ && wants_static();
  if (keys.size() == 1 && !with_static) {
    CO_TRY(auto read, co_await coordinator_.read_row(storage_, partition_, keys.front(),
                                                     request_.until, how()));
    reads.push_back(std::move(read));
  } else {
    std::vector<Bytes> wanted = keys;
    if (with_static) wanted.insert(wanted.begin(), Bytes());
    CO_TRY(reads, co_await coordinator_.read_rows_at_one_moment(
                      storage_, partition_, std::move(wanted), request_.until, how()));
  }
  for (const storage::RowRead& read : reads) reader_.not_before(read.wall);
  if (with_static) {
    static_is_live_ = reader_.read_static(reads.front().partition, partition_row_);
    static_is_read_ = true;
    reads.erase(reads.begin());
  }
  // What was too much at once is read later.
  if (reads.size() < keys.size()) range_index_ = indexes[reads.size()];
  for (std::size_t i = reads.size(); i > 0; --i) {
    points_.push_back({.clustering = std::move(keys[i - 1]), .read = std::move(reads[i - 1])});
  }
  co_return {};
}

Task<Result<void>> StoredRows::seek_range() {
  in_range_ = true;
  const model::ClusteringRange& rows = range();
  if (request_.reversed) {
    std::optional<Bytes> to = rows.to;
    if (after_clustering_ && (!to || *after_clustering_ < *to)) to = after_clustering_;
    if (to) co_return co_await cursor_->seek_before(partition_, std::move(*to));
    co_return co_await cursor_->seek_last();
  }
  Bytes from = rows.from;
  if (after_clustering_ && *after_clustering_ >= from) from = behind_row(*after_clustering_);
  co_return co_await cursor_->seek(partition_, std::move(from));
}

bool StoredRows::in_range() const {
  if (!cursor_->valid()) return false;
  const base::ByteView key = cursor_->row_key();
  const model::ClusteringRange& rows = range();
  return base::compare(key, rows.from) >= 0 && (!rows.to || base::compare(key, *rows.to) < 0);
}

Task<Result<void>> StoredRows::read_rows(std::vector<Row>& rows) {
  while (!is_filled(rows)) {
    if (range_index_ == request_.where.rows.size() || partition_is_full()) {
      leave_partition(rows);
      co_return {};
    }
    if (!in_range_) CO_TRY_VOID(co_await seek_range());
    if (!in_range()) {
      ++range_index_;
      in_range_ = false;
      continue;
    }
    if (has_elements_) {
      CO_TRY_VOID(co_await emit_gathered(rows));
      if (turn_is_over()) CO_TRY_VOID(co_await take_turn());
      continue;
    }
    const Bytes clustering = Bytes::copy_of(cursor_->row_key());
    CO_TRY(const PartitionStore stored, cursor_->read());
    CO_TRY_VOID(emit(stored, clustering, rows));
    if (request_.reversed) {
      CO_TRY_VOID(co_await cursor_->previous());
    } else {
      CO_TRY_VOID(co_await cursor_->next());
    }
    if (turn_is_over()) CO_TRY_VOID(co_await take_turn());
  }
  co_return {};
}

Task<Result<void>> StoredRows::read_scanned(std::vector<Row>& rows) {
  while (!is_filled(rows)) {
    if (!cursor_->valid() || !base::equal(cursor_->partition(), partition_)) {
      leave_partition(rows);
      co_return {};
    }
    if (partition_is_full()) {
      CO_TRY_VOID(co_await cursor_->seek(behind(partition_), {}));
      continue;
    }
    if (has_elements_) {
      CO_TRY_VOID(co_await emit_gathered(rows));
      if (turn_is_over()) CO_TRY_VOID(co_await take_turn());
      continue;
    }
    const Bytes clustering = Bytes::copy_of(cursor_->row_key());
    CO_TRY(const PartitionStore stored, cursor_->read());
    CO_TRY_VOID(emit(stored, clustering, rows));
    CO_TRY_VOID(co_await cursor_->next());
    if (turn_is_over()) CO_TRY_VOID(co_await take_turn());
  }
  co_return {};
}

}  // namespace helenus::cql
