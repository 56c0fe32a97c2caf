#include "replication/read/range_cursor.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "replication/cluster/check_alone.h"
#include "replication/replica/replica.h"
#include "runtime/run_on.h"

namespace helenus::replication {

using base::Bytes;
using base::ByteView;
using base::Errc;
using base::Error;
using base::Result;
using runtime::Task;
using runtime::Until;

namespace {

Task<Result<void>> nothing_to_settle() {
  co_return {};
}

}  // namespace

namespace {

const KeyspaceMap* keyspace_of(const HeldTabletsPtr& held, const storage::KeyRange& partitions) {
  if (held == nullptr) return nullptr;
  const auto place = held->map()->find_place(partitions.from.view());
  return place ? place->keyspace : nullptr;
}

}  // namespace

RangeCursor::RangeCursor(runtime::Runtime& here, const Replicas& replicas, storage::TableId table,
                         storage::KeyRange partitions, ScanOptions options)
    : here_(here),
      replicas_(replicas),
      core_(replicas.on(here.cores.here())),
      held_(core_.held),
      keyspace_(keyspace_of(held_, partitions)),
      table_(table),
      partitions_(std::move(partitions)),
      options_(std::move(options)) {}

const TabletBounds& RangeCursor::bounds(std::size_t index) const {
  return keyspace_->bounds(static_cast<ring::TabletIndex>(index));
}

std::size_t RangeCursor::index_of(ByteView partition) const {
  if (keyspace_ == nullptr) return 0;
  std::size_t low = 0;
  std::size_t high = tablet_count();
  while (low + 1 < high) {
    const std::size_t middle = low + (high - low) / 2;
    if (base::compare(bounds(middle).from.view(), partition) <= 0) {
      low = middle;
    } else {
      high = middle;
    }
  }
  return low;
}

void RangeCursor::take_trace() {
  if (cursor_ != nullptr) seen_.sequence = std::max(seen_.sequence, cursor_->trace().sequence);
}

Result<void> RangeCursor::open_tablet(std::size_t index) {
  if (keyspace_ == nullptr) return Error(Errc::not_found, "the keyspace is gone");
  if (opened() && index == index_) return {};
  valid_ = false;
  take_trace();
  cursor_.reset();
  remote_.reset();
  const HeldTablet* held = held_->find(bounds(index).from.view());
  if (held != nullptr && held->is_alone()) {
    TRY_VOID(check_alone(*held, core_.link, options_.how));
  }
  if (held != nullptr && held->is_alone() && held->core == here_.cores.here()) {
    engine_ = &core_.replica.engine();
    TRY(cursor_, engine_->cursor(table_, held->info.id, {.until = options_.until}));
  } else {
    RowsRequest request;
    request.table = table_;
    request.at_one_moment = options_.at_one_moment;
    if (held != nullptr) request.tablet = held->info.id;
    request.partitions = {.from = std::max(partitions_.from, bounds(index).from),
                          .to = bounds(index).to};
    if (partitions_.to) request.partitions.to = std::min(*partitions_.to, bounds(index).to);
    remote_ =
        std::make_unique<RemoteRows>(fetch_from(index, held), std::move(request), options_.until);
  }
  index_ = index;
  return {};
}

namespace {

Task<Result<RowsAnswer>> read_on_core(runtime::Runtime& here, runtime::CoreId core,
                                      Replica& replica, const RowsRequest& request, Until until) {
  const auto there = [&](runtime::Runtime&, Until remaining) {
    return replica.read_rows(request, std::move(remaining));
  };
  co_return co_await runtime::run_on<RowsAnswer>(here, core, there, std::move(until));
}

}  // namespace

RemoteRows::Fetch RangeCursor::fetch_from(std::size_t index, const HeldTablet* held) {
  if (held != nullptr && held->is_alone()) {
    Replica& replica = replicas_.on(held->core).replica;
    return [this, core = held->core, &replica](const RowsRequest& request, Until until) {
      return read_on_core(here_, core, replica, request, std::move(until));
    };
  }
  const TabletKey key{.keyspace = keyspace_->number(),
                      .index = static_cast<ring::TabletIndex>(index)};
  return [this, key](const RowsRequest& request, Until until) {
    return core_.reader->scan(key, request, options_.how, std::move(until));
  };
}

Result<void> RangeCursor::nowhere() {
  valid_ = false;
  return {};
}

void RangeCursor::arrive() {
  valid_ = tablet_valid() && partitions_.contains(partition());
}

Task<Result<void>> RangeCursor::go_on() {
  while (!tablet_valid() && index_ + 1 < tablet_count()) {
    const ByteView from = bounds(index_ + 1).from.view();
    if (partitions_.to && base::compare(from, partitions_.to->view()) >= 0) break;
    CO_TRY_VOID(open_tablet(index_ + 1));
    note_sought();
    CO_TRY_VOID(co_await on_tablet([](auto& tablet) { return tablet.seek_first(); }));
  }
  arrive();
  co_return {};
}

Task<Result<void>> RangeCursor::go_back() {
  while (!tablet_valid() && index_ > 0) {
    if (base::compare(bounds(index_).from.view(), partitions_.from.view()) <= 0) break;
    CO_TRY_VOID(open_tablet(index_ - 1));
    note_sought();
    CO_TRY_VOID(co_await on_tablet([](auto& tablet) { return tablet.seek_last(); }));
  }
  arrive();
  co_return {};
}

Task<Result<void>> RangeCursor::seek(Bytes partition, Bytes row) {
  if (is_hollow()) co_return nowhere();
  if (partition < partitions_.from) co_return co_await seek_first();
  CO_TRY_VOID(open_tablet(index_of(partition.view())));
  note_sought();
  CO_TRY_VOID(co_await on_tablet(
      [&](auto& tablet) { return tablet.seek(std::move(partition), std::move(row)); }));
  co_return co_await go_on();
}

Task<Result<void>> RangeCursor::seek_before(Bytes partition, Bytes row) {
  if (is_hollow()) co_return nowhere();
  if (partitions_.to && partition > *partitions_.to) {
    co_return co_await seek_last();
  }
  CO_TRY_VOID(open_tablet(index_of(partition.view())));
  note_sought();
  CO_TRY_VOID(co_await on_tablet(
      [&](auto& tablet) { return tablet.seek_before(std::move(partition), std::move(row)); }));
  co_return co_await go_back();
}

Task<Result<void>> RangeCursor::seek_first() {
  if (is_hollow()) co_return nowhere();
  CO_TRY_VOID(open_tablet(index_of(partitions_.from.view())));
  note_sought();
  CO_TRY_VOID(
      co_await on_tablet([&](auto& tablet) { return tablet.seek_bound(partitions_.from); }));
  co_return co_await go_on();
}

Task<Result<void>> RangeCursor::seek_last() {
  if (is_hollow()) co_return nowhere();
  const std::size_t last = partitions_.to ? index_of(partitions_.to->view())
                                          : std::max<std::size_t>(tablet_count(), 1) - 1;
  CO_TRY_VOID(open_tablet(last));
  note_sought();
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
