#include "replication/read/range_cursor.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "replication/replica/replica.h"
#include "replication/tablets/ring_cut.h"

namespace helenus::replication {

using base::Bytes;
using base::ByteView;
using base::Result;
using runtime::Task;
using runtime::Until;

namespace {

Task<Result<void>> nothing_to_settle() {
  co_return {};
}

}  // namespace

RangeCursor::RangeCursor(runtime::Runtime& here, const std::vector<storage::TabletInfo>& tablets,
                         const std::vector<TabletPlace>& places, storage::TableId table,
                         storage::KeyRange partitions, ScanOptions options)
    : here_(here),
      tablets_(tablets),
      places_(places),
      table_(table),
      partitions_(std::move(partitions)),
      options_(std::move(options)) {
  ASSERT(!tablets_.empty() && tablets_.size() == places_.size());
}

void RangeCursor::take_trace() {
  if (cursor_ != nullptr) seen_.sequence = std::max(seen_.sequence, cursor_->trace().sequence);
}

Result<void> RangeCursor::open_tablet(std::size_t index) {
  if (opened() && index == index_) return {};
  valid_ = false;
  take_trace();
  cursor_.reset();
  remote_.reset();
  const TabletPlace& place = places_[index];
  if (place.here) {
    engine_ = &place.replica->engine();
    TRY(cursor_, engine_->cursor(table_, tablets_[index].id, {.until = options_.until}));
  } else {
    RowsRequest request;
    request.table = table_;
    request.tablet = tablets_[index].id;
    request.partitions = partitions_;
    remote_ = std::make_unique<RemoteRows>(here_, place.core, *place.replica, std::move(request),
                                           options_.until);
  }
  index_ = index;
  return {};
}

void RangeCursor::arrive() {
  valid_ = tablet_valid() && partitions_.contains(partition());
}

Task<Result<void>> RangeCursor::go_on() {
  while (!tablet_valid() && index_ + 1 < tablets_.size()) {
    const ByteView from = tablets_[index_ + 1].range.from.view();
    if (partitions_.to && base::compare(from, partitions_.to->view()) >= 0) break;
    CO_TRY_VOID(open_tablet(index_ + 1));
    CO_TRY_VOID(co_await on_tablet([](auto& tablet) { return tablet.seek_first(); }));
  }
  arrive();
  co_return {};
}

Task<Result<void>> RangeCursor::go_back() {
  while (!tablet_valid() && index_ > 0) {
    if (base::compare(tablets_[index_].range.from.view(), partitions_.from.view()) <= 0) break;
    CO_TRY_VOID(open_tablet(index_ - 1));
    CO_TRY_VOID(co_await on_tablet([](auto& tablet) { return tablet.seek_last(); }));
  }
  arrive();
  co_return {};
}

Task<Result<void>> RangeCursor::seek(Bytes partition, Bytes row) {
  if (partition < partitions_.from) co_return co_await seek_first();
  CO_TRY_VOID(open_tablet(index_of(tablets_, partition.view())));
  CO_TRY_VOID(co_await on_tablet(
      [&](auto& tablet) { return tablet.seek(std::move(partition), std::move(row)); }));
  co_return co_await go_on();
}

Task<Result<void>> RangeCursor::seek_before(Bytes partition, Bytes row) {
  if (partitions_.to && partition > *partitions_.to) {
    co_return co_await seek_last();
  }
  CO_TRY_VOID(open_tablet(index_of(tablets_, partition.view())));
  CO_TRY_VOID(co_await on_tablet(
      [&](auto& tablet) { return tablet.seek_before(std::move(partition), std::move(row)); }));
  co_return co_await go_back();
}

Task<Result<void>> RangeCursor::seek_first() {
  CO_TRY_VOID(open_tablet(index_of(tablets_, partitions_.from.view())));
  CO_TRY_VOID(
      co_await on_tablet([&](auto& tablet) { return tablet.seek_bound(partitions_.from); }));
  co_return co_await go_on();
}

Task<Result<void>> RangeCursor::seek_last() {
  const std::size_t last =
      partitions_.to ? index_of(tablets_, partitions_.to->view()) : tablets_.size() - 1;
  CO_TRY_VOID(open_tablet(last));
  CO_TRY_VOID(co_await on_tablet([&](auto& tablet) {
    return partitions_.to ? tablet.seek_before_bound(*partitions_.to) : tablet.seek_last();
  }));
  co_return co_await go_back();
}

RangeCursor::Motion RangeCursor::next() {
  ASSERT_SLOW(valid_);
  Motion motion = remote_ == nullptr ? cursor_->next() : remote_->next();
  if (!motion.ready()) return finish_next(std::move(motion));
  Result<void> moved = std::move(motion).take();
  valid_ = false;
  if (!moved) return moved;
  if (!tablet_valid()) return go_on();
  arrive();
  return moved;
}

RangeCursor::Motion RangeCursor::previous() {
  ASSERT_SLOW(valid_);
  Motion motion = remote_ == nullptr ? cursor_->previous() : remote_->previous();
  if (!motion.ready()) return finish_previous(std::move(motion));
  Result<void> moved = std::move(motion).take();
  valid_ = false;
  if (!moved) return moved;
  if (!tablet_valid()) return go_back();
  arrive();
  return moved;
}

Task<Result<void>> RangeCursor::finish_next(Motion motion) {
  valid_ = false;
  CO_TRY_VOID(co_await std::move(motion));
  co_return co_await go_on();
}

Task<Result<void>> RangeCursor::finish_previous(Motion motion) {
  valid_ = false;
  CO_TRY_VOID(co_await std::move(motion));
  co_return co_await go_back();
}

// What other cores gave has been settled there.
Task<Result<void>> RangeCursor::wait_durable(Until until) {
  take_trace();
  if (engine_ == nullptr) return nothing_to_settle();
  return engine_->wait_durable(seen_, std::move(until));
}

}  // namespace helenus::replication
