#include "storage/engine/write_path.h"

#include <algorithm>
#include <utility>

#include "causality/content_size.h"
#include "runtime/sleep.h"
#include "storage/ids/row_key.h"
#include "storage/mutations/mutation_record.h"

namespace helenus::storage {

using base::ByteView;
using base::Errc;
using base::Error;
using base::Result;
using runtime::Task;
using runtime::Until;

WriteKind write_kind_of(std::span<const causality::CellChange> cells) {
  const bool adds = std::ranges::any_of(cells, [](const causality::CellChange& cell) {
    return cell.kind != causality::VersionKind::deletion;
  });
  return adds ? WriteKind::data : WriteKind::deletes;
}

WritePath::WritePath(EngineState& state, DiskReserve& reserve, MutationKeeper& mutations,
                     Flusher& flusher, OperationRecord& operations)
    : state_(state),
      reserve_(reserve),
      mutations_(mutations),
      flusher_(flusher),
      operations_(operations) {}

bool WritePath::must_wait(const TableStore& table) const {
  return state_.memory.bytes() >= state_.options.memtable_bytes_max ||
         table.sstables().size() >= state_.options.sstables_max;
}

Error WritePath::refused(Error error) {
  ++state_.statistics.writes_refused;
  return error;
}

// A delete may have of the log what is kept for it.
Task<Result<void>> WritePath::wait_for_log(std::size_t bytes, WriteKind kind, Until until) {
  auto room = co_await state_.log->room(bytes, until);
  if (!room.failed_with(Errc::no_space)) co_return room;
  reserve_.found_no_space();
  const bool more = kind == WriteKind::deletes && co_await reserve_.give_up_for_deletes();
  if (!more) co_return refused(reserve_.refusal_after(std::move(room).error()));
  state_.log->try_next_segment();
  co_return {};
}

runtime::MaybeTask<Result<void>> WritePath::admit(TableId table, TabletId tablet, std::size_t bytes,
                                                  WriteKind kind, const Until& until) {
  if (auto writable = state_.check_writable(); !writable) return writable;
  if (reserve_.refuses(kind)) return Result<void>(refused(reserve_.refusal()));
  const auto found = state_.find(table, tablet);
  if (!found) return Result<void>(found.error());
  if (!must_wait(*found->table) && state_.log->has_room(bytes) &&
      found->table->sstables().size() <= state_.options.sstables_slow) {
    return Result<void>();
  }
  return admit_waiting(table, tablet, bytes, kind, until);
}

Task<Result<void>> WritePath::admit_waiting(TableId table, TabletId tablet, std::size_t bytes,
                                            WriteKind kind, Until until) {
  CO_TRY(const auto pass, state_.gate.enter());
  ++state_.statistics.writes_delayed;
  CO_TRY(const auto found, state_.find(table, tablet));
  const std::size_t files = found.table->sstables().size();
  if (files > state_.options.sstables_slow && files < state_.options.sstables_max) {
    // The nearer to the limit, the slower: up to ten milliseconds a write.
    const auto over = static_cast<std::int64_t>(files - state_.options.sstables_slow);
    const auto span =
        static_cast<std::int64_t>(state_.options.sstables_max - state_.options.sstables_slow);
    CO_TRY_VOID(co_await runtime::sleep_for(
        state_.runtime, std::chrono::microseconds(10'000 * over / span), until.stop));
  }
  while (true) {
    CO_TRY_VOID(state_.check_writable());
    if (reserve_.refuses(kind)) co_return refused(reserve_.refusal());
    CO_TRY(const auto now, state_.find(table, tablet));
    if (must_wait(*now.table)) {
      // Nothing is going to change that before a flush succeeds.
      if (state_.flush_error) co_return refused(reserve_.refusal_after(*state_.flush_error));
      CO_TRY_VOID(co_await state_.signals.room_changed.wait(until));
    } else if (!state_.log->has_room(bytes)) {
      CO_TRY_VOID(co_await wait_for_log(bytes, kind, until));
    } else {
      co_return {};
    }
  }
}

namespace {

// Whether some keys of the partition's rows would lie behind the range's end (KeyRange).
bool is_cut_by(const KeyRange& range, ByteView partition) {
  return range.to && partition.size() < range.to->size() &&
         base::equal(range.to->view().first(partition.size()), partition);
}

}  // namespace

Result<TableOfTablet> WritePath::find_for_write(TableId table, TabletId tablet,
                                                ByteView partition) {
  TRY_VOID(state_.check_writable());
  TRY(const auto found, state_.find(table, tablet));
  if (partition.empty()) return Error(Errc::invalid_argument, "the partition key is empty");
  if (!found.tablet->range.contains(partition)) {
    return Error(Errc::invalid_argument, "the partition key is not of tablet {}", tablet);
  }
  if (is_cut_by(found.tablet->range, partition)) {
    return Error(Errc::invalid_argument,
                 "the partition key is a proper prefix of the bound of tablet {}", tablet);
  }
  return found;
}

namespace {

// What the record of a mutation takes, about: what it holds, and something for its context.
std::size_t size_estimate(ByteView partition, const causality::Mutation& mutation) {
  constexpr std::size_t kContextBytes = 256;
  std::size_t bytes = kContextBytes + partition.size();
  for (const causality::CellChange& cell : mutation.cells) {
    bytes += cell.row.size() + cell.value.size() + 16;
  }
  return bytes;
}

Result<void> check_key_sizes(ByteView partition, std::span<const causality::CellChange> cells) {
  std::size_t row_size = 0;
  for (const causality::CellChange& cell : cells) row_size = std::max(row_size, cell.row.size());
  if (partition.size() + 1 + row_size > kRowKeySizeMax) {
    return Error(Errc::invalid_argument, "a key of {} bytes, of at most {}",
                 partition.size() + 1 + row_size, kRowKeySizeMax);
  }
  return {};
}

}  // namespace

Result<causality::Delta> WritePath::mint(const TableOfTablet& found, TableId table,
                                         ByteView partition, causality::Mutation mutation,
                                         causality::Epoch epoch, causality::Clock& clock) {
  TRY_VOID(check_key_sizes(partition, mutation.cells));
  if (found.tablet->in_doubt) {
    return Error(Errc::unavailable, "tablet {} may have lost writes and has no new actor yet",
                 found.tablet->id);
  }
  if (mutation.operation) TRY_VOID(check_operation(mutation));
  const causality::Policy policy = found.table->options().policy;
  causality::Timestamp floor = causality::kTimestampMin;
  // An explicit timestamp was judged cell by cell (covered_floor()); the rest is up to mint.
  if (policy == causality::Policy::lww && !mutation.timestamp_is_explicit &&
      !state_.options.keeps_timestamps) {
    floor = found.tablet->floors.of(table, partition, mutation.cells, mutation.deleted_ranges);
  }
  return causality::mint(clock, found.tablet->actor, epoch, policy, std::move(mutation), floor);
}

Result<void> WritePath::check_operation(const causality::Mutation& mutation) {
  TRY_VOID(operations_.judge(mutation));
  if (!mutations_.is_full_of_operations()) return {};
  ++state_.statistics.operations_refused;
  return Error(Errc::overloaded,
               "the mutation log has more than the {} bytes it may have, and mutations with "
               "operation ids are never given up: no more of them for now",
               state_.options.mutation_log_bytes_max);
}

Result<void> WritePath::check(TableId table, TabletId tablet, ByteView partition,
                              const causality::Mutation& mutation, causality::Epoch epoch) {
  TRY(const auto found, find_for_write(table, tablet, partition));
  causality::Clock clock = found.tablet->clock;
  TRY(const auto delta, mint(found, table, partition, mutation, epoch, clock));
  record_.clear();
  encode_mutation(found.tablet->id, Replication::peers, partition, delta, record_);
  if (record_.size() > state_.options.log.record_size_max) {
    return Error(Errc::invalid_argument, "a record of {} bytes, at most {} are allowed",
                 record_.size(), state_.options.log.record_size_max);
  }
  return {};
}

Result<Staged> WritePath::stage(TableId table, TabletId tablet, ByteView partition,
                                causality::Mutation mutation, causality::Epoch epoch,
                                Timestamps timestamps) {
  TRY(const auto found, find_for_write(table, tablet, partition));
  if (timestamps == Timestamps::as_given) mutation.timestamp_is_explicit = true;
  TRY(auto delta, mint(found, table, partition, std::move(mutation), epoch, found.tablet->clock));
  auto position = append(found, partition, delta);
  if (!position) {
    // The dot has left no trace: it is the next one again.
    found.tablet->clock.remove(delta.dot);
    return std::move(position).error();
  }
  if (delta.operation) ++state_.statistics.operations;
  return Staged{.delta = std::move(delta), .position = *position};
}

Result<Staged> WritePath::stage(TableId table, TabletId tablet, ByteView partition,
                                causality::Delta delta) {
  TRY(const auto found, find_for_write(table, tablet, partition));
  TRY_VOID(check_key_sizes(partition, delta.cells));
  if (delta.dot.actor == found.tablet->actor && !found.tablet->clock.contains(delta.dot)) {
    return Error(Errc::invalid_argument, "dot {} is of this replica, which has not minted it",
                 delta.dot);
  }
  if (found.tablet->clock.contains(delta.dot)) {
    ++state_.statistics.writes_repeated;
    return Staged{.delta = std::move(delta),
                  .position = state_.staged.last_position(),
                  .applied = causality::Applied::before};
  }
  if (found.tablet->awaited != nullptr && found.tablet->awaited->contains(delta.dot)) {
    return Error(Errc::unavailable, "dot {} comes with a copy of the tablet", delta.dot);
  }
  TRY(const auto position, append(found, partition, delta));
  return Staged{.delta = std::move(delta), .position = position};
}

Result<LogPosition> WritePath::append(const TableOfTablet& found, ByteView partition,
                                      const causality::Delta& delta) {
  record_.clear();
  // An operation id is to be found again (R15), though no peer asks for its mutation.
  const bool is_kept = !found.tablet->alone() || delta.operation.has_value();
  const Replication replication = is_kept ? Replication::peers : Replication::none;
  const std::size_t delta_offset =
      encode_mutation(found.tablet->id, replication, partition, delta, record_);
  TRY(const auto position, state_.log->stage(found.table->stream(), record_.view()));
  const std::uint64_t sequence = state_.staged.next_sequence();
  apply(*found.table, *found.tablet, partition, delta, record_.view().subspan(delta_offset),
        sequence);
  if (replication == Replication::peers) {
    mutations_.keep(*found.tablet, *found.table, partition, delta,
                    base::Bytes::copy_of(record_.view()), sequence);
  }
  found.tablet->clock.add(delta.dot);
  state_.advance_durable();
  state_.staged.add(sequence, position, *found.tablet, delta.dot);
  ++state_.statistics.writes;
  state_.statistics.write_bytes += record_.size();
  state_.statistics.user_bytes +=
      partition.size() + causality::content_size(delta.cells, delta.deleted_ranges);
  flusher_.freeze_if_due(found);
  return position;
}

void WritePath::apply(TableStore& table, const Tablet& tablet, ByteView partition,
                      const causality::Delta& delta, ByteView encoded, std::uint64_t sequence) {
  const std::size_t bytes_before = table.active_bytes();
  table.active().apply(partition, delta, encoded, sequence);
  table.note_applied(tablet.id, delta.dot);
  state_.memory.memtables += table.active_bytes() - bytes_before;
  for (const auto& index : table.indexes()) {
    const std::size_t index_bytes_before = index->active_bytes();
    index->apply_entries(tablet.id, tablet.range.from, partition,
                         {.dot = delta.dot,
                          .context = delta.context,
                          .timestamp = delta.timestamp,
                          .cells = delta.cells},
                         sequence);
    state_.memory.memtables += index->active_bytes() - index_bytes_before;
  }
}

Task<Result<causality::Delta>> WritePath::write(TableId table, TabletId tablet,
                                                base::Bytes partition, causality::Mutation mutation,
                                                causality::Epoch epoch, Until until) {
  CO_TRY(const auto pass, state_.gate.enter());
  const WriteKind kind = write_kind_of(mutation.cells);
  CO_TRY_VOID(co_await admit(table, tablet, size_estimate(partition, mutation), kind, until));
  CO_TRY(auto staged,
         stage(table, tablet, partition, std::move(mutation), epoch, Timestamps::raised));
  CO_TRY_VOID(co_await state_.log->durable(*staged.position, until));
  co_return std::move(staged.delta);
}

Task<Result<void>> WritePath::durable(std::optional<LogPosition> position, Until until) {
  if (!position) co_return {};
  co_return co_await state_.log->durable(*position, std::move(until));
}

}  // namespace helenus::storage
