#include "cql/execute/indexed_rows.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "base/assert.h"
#include "replication/read/range_cursor.h"
#include "runtime/take_turn.h"
#include "runtime/when_all.h"

namespace helenus::cql {

using base::Bytes;
using base::Errc;
using base::Error;
using base::Result;
using model::IndexCandidate;
using model::IndexEntries;
using runtime::Task;

namespace {

Bytes end_of(const Bytes& prefix) {
  auto next = model::successor_of_prefix(prefix);
  return next ? std::move(*next) : Bytes();
}

bool begins_with(const Bytes& bytes, const Bytes& prefix) {
  return base::as_text(bytes).starts_with(base::as_text(prefix));
}

auto order_of(const IndexCandidate& candidate) {
  return std::tie(candidate.partition, candidate.clustering);
}

// What may be so for a while: the index is made on some nodes first, and built after that.
bool is_not_there(const Error& error) {
  return error.code() == Errc::unavailable || error.code() == Errc::not_found ||
         error.code() == Errc::io_error;
}

}  // namespace

IndexedRows::IndexedRows(runtime::Runtime& runtime, replication::Coordinator& coordinator,
                         storage::TableId storage, storage::TableId index, RowRequest request)
    : runtime_(runtime),
      coordinator_(coordinator),
      storage_(storage),
      index_(index),
      request_(std::move(request)),
      tablets_(coordinator.tablets_of(request_.where.range)),
      last_(request_.after) {
  ASSERT(request_.where.index && !request_.where.by_key);
  note(fmt::format("Executing read on {}.{} using index {}", request_.table->keyspace,
                   request_.table->name, request_.where.index->name));
  if (!last_) return;
  while (tablet_ < tablets_.size() && *tablets_[tablet_].to <= last_->partition) ++tablet_;
}

void IndexedRows::note(std::string activity) const {
  if (request_.notes != nullptr) request_.notes->note(std::move(activity));
}

void IndexedRows::skip_rest_of(const Bytes& partition) {
  skipped_ = partition;
  if (rows_ != nullptr) rows_->skip_rest_of(partition);
}

Task<Result<void>> IndexedRows::fill(std::vector<Row>& rows, Amount amount) {
  const std::size_t end = rows.size() + amount.rows;
  std::size_t bytes_left = std::max<std::size_t>(amount.bytes, 1);
  const auto is_filled = [&] {
    if (rows.size() >= end || bytes_left == 0) return true;
    return !rows.empty() && runtime_.clock.now() >= request_.pause_at;
  };
  while (!is_filled()) {
    if (rows_ == nullptr) {
      CO_TRY_VOID(co_await next_rows());
      if (rows_ == nullptr) break;
    }
    const std::size_t before = rows.size();
    auto filled = co_await rows_->fill(rows, {.rows = end - before, .bytes = bytes_left});
    report_ = rows_->report();
    if (!filled) co_return filled;
    for (std::size_t i = before; i < rows.size(); ++i) {
      bytes_left -= std::min(bytes_left, size_of(rows[i]));
    }
    if (rows.size() == before) {
      rows_.reset();
      continue;
    }
    const Row& row = rows.back();
    last_ = RowPosition{.partition = row.partition,
                        .clustering = row.clustering,
                        .rows_in_partition = row.number_in_partition};
  }
  co_return {};
}

Task<Result<void>> IndexedRows::next_rows() {
  while (rows_ == nullptr) {
    if (!candidates_.empty()) {
      read_candidates();
      continue;
    }
    CO_TRY_VOID(co_await runtime::take_turn(runtime_, request_.until));
    if (next_entry_) {
      CO_TRY_VOID(take(co_await entries_of(tablet_, *next_entry_)));
      continue;
    }
    if (std::exchange(tablet_is_begun_, false)) ++tablet_;
    if (tablet_ == tablets_.size()) co_return {};
    covered_.reset();
    if (ahead_.empty()) co_await look_ahead();
    Entries entries = std::move(ahead_.front());
    ahead_.pop_front();
    tablet_is_begun_ = true;
    CO_TRY_VOID(take(std::move(entries)));
  }
  co_return {};
}

// ---- Entries ----

Task<void> IndexedRows::look_ahead() {
  const std::size_t end = std::min(tablets_.size(), tablet_ + tablets_at_once_);
  std::vector<Task<Entries>> tasks;
  for (std::size_t tablet = tablet_; tablet < end; ++tablet) {
    tasks.push_back(entries_of(tablet, {}));
  }
  for (Entries& entries : co_await runtime::when_all(std::move(tasks))) {
    ahead_.push_back(std::move(entries));
  }
  const std::size_t most =
      request_.where.index->is_one_value ? kTabletsAtOnce : kTabletsSortedAtOnce;
  tablets_at_once_ = std::min(most, 2 * tablets_at_once_);
}

Result<void> IndexedRows::take(Entries entries) {
  next_entry_ = std::move(entries.next);
  if (!entries.error && !entries.are_too_many) {
    std::ranges::move(entries.candidates, std::back_inserter(candidates_));
    return {};
  }
  if (entries.error && !is_not_there(*entries.error)) return *std::move(entries.error);
  note(entries.error
           ? fmt::format("The index cannot be asked here, rows are scanned: {}", *entries.error)
           : std::string("The index has too many entries here: rows are scanned"));
  next_entry_.reset();
  scan_tablet();
  return {};
}

Task<IndexedRows::Entries> IndexedRows::entries_of(std::size_t tablet, Bytes from) {
  Entries entries;
  auto read = co_await read_entries(tablet, std::move(from), entries);
  if (!read) entries.error = std::move(read).error();
  co_return entries;
}

Task<Result<void>> IndexedRows::read_entries(std::size_t tablet, Bytes row, Entries& into) {
  const BoundIndex& wanted = *request_.where.index;
  const base::ByteView tablet_from = tablets_[tablet].from.view();
  const Bytes from = IndexEntries::partition_of(tablet_from, wanted.from);
  const Bytes to = end_of(IndexEntries::partition_of(tablet_from, wanted.to));
  if (to <= from) co_return {};
  if (wanted.is_one_value && last_ && row < last_->partition) {
    const std::size_t size = std::min(last_->partition.size(), IndexEntries::kCandidateSizeMax);
    row = Bytes::copy_of(last_->partition.view().first(size));
  }
  const auto cursor = coordinator_.scan(
      index_, {.from = from, .to = to},
      {.until = request_.until, .how = {.level = request_.level, .unites_answers = true}});
  // Without a lower bound `from` is where values begin, and itself no partition, whose rows would
  // lie behind values that begin with a zero byte.
  if (row.empty()) {
    CO_TRY_VOID(co_await cursor->seek_first());
  } else {
    CO_TRY_VOID(co_await cursor->seek(from, std::move(row)));
  }
  const std::size_t entries_max = wanted.is_one_value ? kEntriesAtOnce : kEntriesSortedMax;
  const std::size_t bytes_max = wanted.is_one_value ? kBytesAtOnce : kBytesSortedMax;
  std::size_t bytes = 0;
  for (std::size_t entries = 0; cursor->valid() && entries < entries_max && bytes < bytes_max;
       ++entries) {
    bytes += cursor->row_key().size();
    CO_TRY_VOID(add_candidates(*cursor, into));
    CO_TRY_VOID(co_await cursor->next());
  }
  if (wanted.is_one_value) {
    if (cursor->valid()) into.next = Bytes::copy_of(cursor->row_key());
    co_return {};
  }
  into.are_too_many = cursor->valid();
  std::ranges::sort(into.candidates, {}, order_of);
  const auto repeated = std::ranges::unique(into.candidates);
  into.candidates.erase(repeated.begin(), repeated.end());
  co_return {};
}

Result<void> IndexedRows::add_candidates(replication::RangeCursor& cursor, Entries& into) const {
  TRY(const auto stored, cursor.read());
  for (const auto& [row, cells] : stored.rows()) {
    for (const auto& [column, cell] : cells.cells()) {
      if (cell.versions().empty()) continue;
      TRY(IndexCandidate candidate, IndexEntries::candidate_of(row.view(), column));
      if (is_wanted(candidate)) into.candidates.push_back(std::move(candidate));
    }
  }
  return {};
}

bool IndexedRows::is_wanted(const IndexCandidate& candidate) const {
  if (candidate.what == IndexCandidate::What::prefix) {
    return !last_ || end_of(candidate.partition) > last_->partition;
  }
  if (!request_.where.range.contains(candidate.partition.view())) return false;
  if (!last_ || candidate.partition > last_->partition) return true;
  if (candidate.partition < last_->partition || last_->clustering.empty()) return false;
  return candidate.what != IndexCandidate::What::row || candidate.clustering > last_->clustering;
}

// ---- Rows ----

RowRequest IndexedRows::request_of_rows() const {
  RowRequest request = request_;
  request.where.index.reset();
  request.where.partitions.clear();
  request.after.reset();
  request.point_reads = false;
  return request;
}

storage::KeyRange IndexedRows::tablet_wanted() const {
  storage::KeyRange range = tablets_[tablet_];
  const storage::KeyRange& wanted = request_.where.range;
  range.from = std::max(range.from, wanted.from);
  if (wanted.to) range.to = std::min(*range.to, *wanted.to);
  return range;
}

void IndexedRows::scan_tablet() {
  RowRequest request = request_of_rows();
  request.where.range = tablet_wanted();
  if (last_ && request.where.range.contains(last_->partition.view())) request.after = last_;
  candidates_.clear();
  rows_ = std::make_unique<StoredRows>(runtime_, coordinator_, storage_, std::move(request));
}

// Candidates of rows of one partition together, or several partitions.
void IndexedRows::read_candidates() {
  using What = IndexCandidate::What;
  RowRequest request = request_of_rows();
  const IndexCandidate first = candidates_.front();
  const bool is_covered = covered_ && begins_with(first.partition, *covered_);
  if (is_covered || first.partition == skipped_) {
    candidates_.pop_front();
    return;
  }
  if (last_ && (last_->partition == first.partition || first.what == What::prefix)) {
    request.after = last_;
  }
  const bool clustered = !request_.table->clustering().empty();
  if (first.what == What::prefix) {
    covered_ = first.partition;
    request.where.range = tablet_wanted();
    request.where.range.from = std::max(request.where.range.from, first.partition);
    request.where.range.to = std::min(*request.where.range.to, end_of(first.partition));
    if (request.after && !request.where.range.contains(request.after->partition.view())) {
      request.after.reset();
    }
    candidates_.pop_front();
  } else if (first.what == What::partition) {
    request.where.by_key = true;
    request.point_reads = !clustered;
    // Without clustering columns a row is what a partition is.
    const std::size_t together = clustered ? 1 : kCandidatesTogether;
    while (!candidates_.empty() && candidates_.front().what == What::partition &&
           request.where.partitions.size() < together) {
      if (request.where.partitions.empty() ||
          request.where.partitions.back() < candidates_.front().partition) {
        request.where.partitions.push_back(candidates_.front().partition);
      }
      candidates_.pop_front();
    }
    covered_ = request.where.partitions.back();
  } else {
    request.where.by_key = true;
    request.point_reads = true;
    request.where.partitions.push_back(first.partition);
    request.where.rows.clear();
    while (!candidates_.empty() && candidates_.front().what == What::row &&
           candidates_.front().partition == first.partition &&
           request.where.rows.size() < kCandidatesTogether) {
      request.where.rows.push_back(model::rows_with_prefix(candidates_.front().clustering));
      candidates_.pop_front();
    }
  }
  rows_ = std::make_unique<StoredRows>(runtime_, coordinator_, storage_, std::move(request));
}

}  // namespace helenus::cql
