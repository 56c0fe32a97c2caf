#include "replication/replica/replica.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "base/assert.h"
#include "base/uuid.h"
#include "causality/codec.h"
#include "causality/content_size.h"
#include "replication/explicit_timestamps/explicit_timestamp_filter.h"
#include "replication/merge/answer_digest.h"

namespace helenus::replication {

using base::Bytes;
using base::ByteView;
using base::Errc;
using base::Error;
using base::Result;
using causality::Delta;
using runtime::Task;
using runtime::Until;
using storage::TabletId;

namespace {

// What it takes in the log, about: rather more than less, or it finds no room where it was let in;
// but not more than a record may have.
std::size_t size_of(const PartitionWrite& write) {
  constexpr std::size_t kOfContext = 64;
  constexpr std::size_t kOfCell = 7;
  constexpr std::size_t kNearTheLimit = std::size_t{8} << 20;
  const std::size_t content =
      write.partition.size() +
      causality::content_size(write.mutation.cells, write.mutation.deleted_ranges);
  if (content > kNearTheLimit) return content;
  return content + kOfContext + kOfCell * write.mutation.cells.size();
}

storage::WriteKind kind_of(const PartitionWrite& write) {
  return storage::write_kind_of(write.mutation.cells);
}

std::size_t size_of(const causality::PartitionStore& stored) {
  std::size_t size = 0;
  for (const auto& [row, store] : stored.rows()) {
    for (const auto& [column, cell] : store.cells()) {
      for (const auto& version : cell.versions()) size += version.value.size();
    }
  }
  return size;
}

// A client's context may come from anywhere: nobody saw what it claims in an epoch that has not
// begun. mint() takes that for granted.
Result<void> check_epoch(const PartitionWrite& write, causality::Epoch epoch) {
  const auto& context = write.mutation.context;
  if (!context || context->epoch <= epoch) return {};
  return Error(Errc::invalid_argument, "the context is of epoch {}, and this is {}", context->epoch,
               epoch);
}

}  // namespace

Result<void> may_have_happened(Result<void> durable) {
  if (durable || durable.failed_with(Errc::timeout) || durable.failed_with(Errc::cancelled) ||
      durable.failed_with(Errc::io_error)) {
    return durable;
  }
  return Error(Errc::io_error, "staged, and then: {}", durable.error());
}

void Replica::take(HeldTabletsPtr held) {
  held_ = std::move(held);
  serving_.clear();
  for (const HeldTablet& tablet : held_->all()) {
    if (tablet.core != engine_.runtime().cores.here()) continue;
    if (tablet.is_alone()) {
      engine_.set_watermarks(tablet.info.id, {});
    } else {
      serving_[tablet.info.id] = tablet.is_in_doubt ? std::nullopt : std::optional(tablet.epoch);
    }
  }
}

Result<void> Replica::check_serves(TabletId tablet, causality::Epoch epoch) const {
  const auto found = serving_.find(tablet);
  if (found == serving_.end()) return {};
  if (!found->second) return Error(Errc::refused, "the replica here may have lost writes");
  if (*found->second == epoch) return {};
  return Error(kStale, "the tablet is in epoch {} here, not in {}", *found->second, epoch);
}

namespace {

Result<const HeldTablet*> find(const HeldTabletsPtr& held, ByteView partition) {
  const HeldTablet* tablet = held == nullptr ? nullptr : held->find(partition);
  if (tablet == nullptr) return Error(Errc::not_found, "the keyspace is gone");
  return tablet;
}

}  // namespace

std::optional<Result<storage::Staged>> Replica::write_at_once(TabletId tablet,
                                                              PartitionWrite& write,
                                                              const Until& until,
                                                              causality::Epoch epoch) {
  if (write.explicit_timestamp || write.mutation.operation) return std::nullopt;
  if (latches_.is_held(write.table, write.partition)) return std::nullopt;
  auto admitted = engine_.admit(write.table, tablet, size_of(write), kind_of(write), until);
  if (!admitted.ready()) return std::nullopt;
  if (auto room = std::move(admitted).take(); !room) return std::move(room).error();
  if (auto fits = check_epoch(write, epoch); !fits) return std::move(fits).error();
  if (auto in_time = check_in_time(until); !in_time) return std::move(in_time).error();
  if (auto serves = check_serves(tablet, epoch); !serves) return std::move(serves).error();
  return engine_.stage(write.table, tablet, write.partition.view(), std::move(write.mutation),
                       epoch);
}

Task<Result<std::optional<Delta>>> Replica::write(TabletId tablet, PartitionWrite write,
                                                  Until until, causality::Epoch epoch) {
  if (write.explicit_timestamp) {
    std::vector<PartitionWrite> writes;
    writes.push_back(std::move(write));
    CO_TRY(auto deltas, co_await this->write(std::move(writes), std::move(until)));
    if (deltas.empty()) co_return std::nullopt;
    co_return std::move(deltas.front());
  }
  CO_TRY_VOID(check_epoch(write, epoch));
  CO_TRY_VOID(check_serves(tablet, epoch));
  if (write.mutation.operation) {
    CO_TRY(auto known, co_await find_known(tablet, write, until));
    if (known) {
      CO_TRY_VOID(co_await engine_.durable(known->position, std::move(until)));
      co_return std::move(known->delta);
    }
  }
  CO_TRY(auto hold, co_await enter(tablet, write, false, until));
  CO_TRY_VOID(check_in_time(until));
  CO_TRY_VOID(check_serves(tablet, epoch));
  CO_TRY(auto staged, stage(tablet, std::move(write), epoch));
  hold.release();
  CO_TRY_VOID(may_have_happened(co_await engine_.durable(staged.position, std::move(until))));
  co_return std::move(staged.delta);
}

Task<Result<std::vector<Delta>>> Replica::write(std::vector<PartitionWrite> writes, Until until) {
  const HeldTabletsPtr tablets = held_;
  for (const PartitionWrite& write : writes) {
    CO_TRY(const HeldTablet* const tablet, find(tablets, write.partition.view()));
    CO_TRY_VOID(check_epoch(write, tablet->epoch));
  }
  std::vector<Delta> deltas;
  const auto is_named = [](const PartitionWrite& write) {
    return write.mutation.operation.has_value();
  };
  if (std::ranges::any_of(writes, is_named)) {
    CO_TRY_VOID(co_await take_out_known(writes, deltas, until));
    if (writes.empty()) co_return deltas;
  }
  const bool judged = std::ranges::any_of(writes, &PartitionWrite::explicit_timestamp);
  const auto waits = [this](const PartitionWrite& write) {
    return latches_.is_held(write.table, write.partition);
  };
  // Without explicit timestamps they wait, too, before the first of them is written.
  std::vector<PartitionLatches::Hold> holds;
  if (judged || std::ranges::any_of(writes, waits)) {
    CO_TRY(holds, co_await hold(writes, until));
  }
  if (judged) {
    CO_TRY_VOID(co_await judge_explicit(writes, until));
    std::erase_if(writes, [](const PartitionWrite& write) {
      return write.mutation.cells.empty() && write.mutation.deleted_ranges.empty();
    });
  }
  if (writes.size() > 1) CO_TRY_VOID(check(writes));
  CO_TRY_VOID(co_await admit(writes, until));
  deltas.reserve(deltas.size() + writes.size());
  std::optional<storage::LogPosition> last;
  for (PartitionWrite& write : writes) {
    const HeldTablet& held = *tablets->find(write.partition.view());
    const TabletId tablet = held.info.id;
    // The log had room for each of them; whether it has for all of them together shows now.
    auto entered = co_await enter(tablet, write, !holds.empty(), until);
    if (entered) {
      if (auto in_time = check_in_time(until); !in_time) entered = std::move(in_time).error();
    }
    if (auto serves = check_serves(tablet, held.epoch); entered && !serves) {
      entered = std::move(serves).error();
    }
    Result<storage::Staged> staged = entered ? stage(tablet, std::move(write), held.epoch)
                                             : Result<storage::Staged>(std::move(entered).error());
    if (!staged && deltas.empty()) co_return std::move(staged).error();
    if (!staged) {
      co_return Error(Errc::timeout, "{} of {} writes are there, then: {}", deltas.size(),
                      writes.size(), staged.error());
    }
    last = staged->position;
    deltas.push_back(std::move(staged->delta));
  }
  holds.clear();
  CO_TRY_VOID(may_have_happened(co_await engine_.durable(last, std::move(until))));
  co_return deltas;
}

Result<void> Replica::check_in_time(const Until& until) const {
  if (until.stop.stop_requested()) return Error(Errc::cancelled);
  if (engine_.runtime().clock.now() < until.deadline) return {};
  return Error(Errc::timeout, "its time was over before it was written");
}

// ---- Operation ids ----

namespace {

// Whether the known mutation is what the write would be. Of an increment all is compared; other
// statements may say something else each time (now(), a time to live), so only where they do it.
Result<void> check_same(const storage::KnownOperation& known, const PartitionWrite& write) {
  const auto is_increment = [](const std::vector<causality::CellChange>& cells) {
    return !cells.empty() && cells.front().kind == causality::VersionKind::increment;
  };
  const auto& made = known.delta.cells;
  auto wanted = write.mutation.cells;
  const auto place_of = [](const causality::CellChange& cell) {
    return std::tie(cell.row, cell.column);
  };
  std::ranges::sort(wanted, {}, place_of);
  const bool is_same = known.table == write.table && known.partition == write.partition &&
                       is_increment(made) == is_increment(wanted) &&
                       (!is_increment(made) || made == wanted);
  if (is_same) return {};
  return Error(Errc::invalid_argument,
               "the operation id {} is that of another operation: of another key or amount",
               base::Uuid(*write.mutation.operation));
}

}  // namespace

Task<Result<std::optional<storage::KnownOperation>>> Replica::find_known(
    TabletId tablet, const PartitionWrite& write, Until until) {
  CO_TRY(const bool may_be_known, engine_.may_know_operation(write.mutation));
  if (!may_be_known) co_return std::nullopt;
  CO_TRY(auto known,
         co_await engine_.find_operation(tablet, *write.mutation.operation, std::move(until)));
  if (known) CO_TRY_VOID(check_same(*known, write));
  co_return known;
}

Result<storage::Staged> Replica::stage(TabletId tablet, PartitionWrite write,
                                       causality::Epoch epoch) {
  if (write.mutation.operation) {
    TRY(auto known, engine_.find_operation_in_memory(tablet, *write.mutation.operation));
    if (known) {
      TRY_VOID(check_same(*known, write));
      return storage::Staged{.delta = std::move(known->delta),
                             .position = known->position,
                             .applied = causality::Applied::before};
    }
  }
  return engine_.stage(write.table, tablet, write.partition.view(), std::move(write.mutation),
                       epoch);
}

Task<Result<void>> Replica::take_out_known(std::vector<PartitionWrite>& writes,
                                           std::vector<Delta>& known, Until until) {
  const HeldTabletsPtr tablets = held_;
  std::vector<PartitionWrite> unknown;
  std::optional<storage::LogPosition> last;
  for (PartitionWrite& write : writes) {
    if (write.mutation.operation) {
      CO_TRY(const HeldTablet* const tablet, find(tablets, write.partition.view()));
      CO_TRY(auto found, co_await find_known(tablet->info.id, write, until));
      if (found) {
        last = found->position;
        known.push_back(std::move(found->delta));
        continue;
      }
    }
    unknown.push_back(std::move(write));
  }
  writes = std::move(unknown);
  co_return co_await engine_.durable(last, std::move(until));
}

runtime::MaybeTask<Result<PartitionLatches::Hold>> Replica::enter(TabletId tablet,
                                                                  const PartitionWrite& write,
                                                                  bool is_held,
                                                                  const Until& until) {
  return enter(tablet, write.table, write.partition, size_of(write), kind_of(write), is_held,
               until);
}

Task<Result<std::vector<PartitionLatches::Hold>>> Replica::hold(
    std::span<const PartitionWrite> writes, Until until) {
  std::vector<std::pair<storage::TableId, Bytes>> places;
  places.reserve(writes.size());
  for (const PartitionWrite& write : writes) places.emplace_back(write.table, write.partition);
  return latches_.take_all(std::move(places), std::move(until));
}

Task<Result<void>> Replica::admit(std::span<const PartitionWrite> writes, Until until) const {
  const HeldTabletsPtr tablets = held_;
  for (const PartitionWrite& write : writes) {
    CO_TRY(const HeldTablet* const tablet, find(tablets, write.partition.view()));
    CO_TRY_VOID(co_await engine_.admit(write.table, tablet->info.id, size_of(write), kind_of(write),
                                       until));
  }
  co_return {};
}

Result<void> Replica::check(std::span<const PartitionWrite> writes) const {
  for (const PartitionWrite& write : writes) {
    TRY(const HeldTablet* const tablet, find(held_, write.partition.view()));
    TRY_VOID(check_epoch(write, tablet->epoch));
    TRY_VOID(engine_.check(write.table, tablet->info.id, write.partition.view(), write.mutation,
                           tablet->epoch));
  }
  return {};
}

Task<Result<void>> Replica::judge_explicit(std::span<PartitionWrite> writes, Until until) {
  const HeldTabletsPtr tablets = held_;
  std::map<std::pair<storage::TableId, Bytes>, std::vector<PartitionWrite*>> partitions;
  for (PartitionWrite& write : writes) {
    partitions[{write.table, write.partition}].push_back(&write);
  }
  for (auto& [place, of_partition] : partitions) {
    if (std::ranges::none_of(of_partition, &PartitionWrite::explicit_timestamp)) continue;
    CO_TRY(const HeldTablet* const tablet, find(tablets, place.second.view()));
    ExplicitTimestampFilter judge(engine_, tablet->info, until, bugs_);
    CO_TRY_VOID(co_await judge.judge(of_partition));
  }
  co_return {};
}

// ---- For other nodes ----

Task<Result<void>> Replica::apply(TabletId tablet, storage::TableId table, Bytes partition,
                                  Delta delta, causality::Epoch epoch, Until until) {
  const std::size_t bytes =
      partition.size() + causality::content_size(delta.cells, delta.deleted_ranges);
  const auto kind = storage::write_kind_of(delta.cells);
  CO_TRY(auto hold, co_await enter(tablet, table, partition, bytes, kind, false, until));
  CO_TRY_VOID(check_serves(tablet, epoch));
  CO_TRY(const auto staged, engine_.stage(table, tablet, partition.view(), std::move(delta)));
  hold.release();
  CO_TRY_VOID(co_await engine_.durable(staged.position, std::move(until)));
  co_return check_serves(tablet, epoch);
}

bool Replica::has_table(storage::TableId table) const {
  const auto tables = engine_.tables();
  return std::ranges::find(tables, table) != tables.end();
}

runtime::MaybeTask<Result<PartitionLatches::Hold>> Replica::enter(
    TabletId tablet, storage::TableId table, const Bytes& partition, std::size_t bytes,
    storage::WriteKind kind, bool is_held, const Until& until) {
  if (is_held || !latches_.is_held(table, partition)) {
    auto admitted = engine_.admit(table, tablet, bytes, kind, until);
    if (admitted.ready()) {
      const Result<void> room = std::move(admitted).take();
      return room ? Result<PartitionLatches::Hold>(PartitionLatches::Hold())
                  : Result<PartitionLatches::Hold>(room.error());
    }
  }
  return enter_waiting(tablet, table, partition, bytes, kind, is_held, until);
}

Task<Result<PartitionLatches::Hold>> Replica::enter_waiting(TabletId tablet, storage::TableId table,
                                                            Bytes partition, std::size_t bytes,
                                                            storage::WriteKind kind, bool is_held,
                                                            Until until) {
  CO_TRY_VOID(co_await engine_.admit(table, tablet, bytes, kind, until));
  if (is_held || !latches_.is_held(table, partition)) co_return PartitionLatches::Hold();
  CO_TRY(auto hold, co_await latches_.take(table, partition, until));
  // Others may have taken the room meanwhile.
  CO_TRY_VOID(co_await engine_.admit(table, tablet, bytes, kind, until));
  co_return std::move(hold);
}

Task<Result<Replica::AppliedMutations>> Replica::apply(TabletId tablet,
                                                       std::vector<PulledMutation> mutations,
                                                       Until until) {
  AppliedMutations done;
  std::optional<storage::LogPosition> last;
  for (PulledMutation& mutation : mutations) {
    CO_TRY(Delta delta, causality::decode_delta(mutation.delta));
    const causality::Dot dot = delta.dot;
    const std::size_t bytes = mutation.partition.size() + mutation.delta.size();
    Result<storage::Staged> staged = Error(Errc::not_found);
    const auto kind = storage::write_kind_of(delta.cells);
    auto entered =
        co_await enter(tablet, mutation.table, mutation.partition, bytes, kind, false, until);
    if (entered) {
      staged = engine_.stage(mutation.table, tablet, mutation.partition.view(), std::move(delta));
    } else {
      staged = std::move(entered).error();
    }
    if (staged) {
      last = staged->position;
      if (staged->applied == causality::Applied::now) ++done.applied;
    } else if (staged.failed_with(Errc::not_found) && !has_table(mutation.table)) {
      done.without_table.emplace_back(mutation.table, dot);
    } else if (staged.failed_with(Errc::invalid_argument)) {
      done.refused.add(dot);
      if (!done.why_refused) done.why_refused = std::move(staged).error();
    } else {
      co_return std::move(staged).error();
    }
  }
  CO_TRY_VOID(co_await engine_.durable(last, std::move(until)));
  co_return done;
}

Task<Result<ReadReply>> Replica::read(TabletId tablet, const ReadMessage& message, Until until) {
  ReadReply reply;
  if (message.at_one_moment) {
    std::vector<Bytes> rows;
    for (const RowName& name : message.rows) rows.push_back(name.row);
    auto reads = co_await read_rows_at_one_moment(
        message.table, tablet, message.rows.front().partition, std::move(rows), std::move(until));
    if (!reads) co_return note_damage(message.table, std::move(reads).error());
    reply.rows = *std::move(reads);
    for (auto& read : reply.rows) read.wall = engine_.dropped_before(tablet);
    co_return reply;
  }
  std::size_t bytes = 0;
  for (const RowName& name : message.rows) {
    auto read = co_await engine_.read_row(message.table, tablet, name.partition, name.row, until);
    if (!read) co_return note_damage(message.table, std::move(read).error());
    bytes += size_of(read->partition);
    read->wall = engine_.dropped_before(tablet);
    reply.rows.push_back(*std::move(read));
    if (bytes >= RowsAnswer::kBytesMax) break;
  }
  co_return reply;
}

Error Replica::note_damage(storage::TableId table, Error error) {
  if (error.code() == Errc::corrupt || error.code() == Errc::unsupported) engine_.suspect(table);
  return error;
}

Task<Result<ClockReply>> Replica::clock_of(TabletId tablet, storage::TableId table,
                                           const Bytes& partition) {
  ClockReply reply;
  CO_TRY(reply.clock, engine_.durable_clock(tablet));
  CO_TRY(reply.floor, engine_.partition_floor(table, tablet, partition.view()));
  co_return reply;
}

// ---- Rows of one moment ----
// They are read one after the other, and read again if the tablet was written meanwhile. Reading a
// row may wait for a file or until what it shows is durable: so a row that is written all the time
// would never be read beside another. A cursor waits for files alone, which are in memory soon, and
// is settled in the end. Each round has a cursor of its own: one sees nothing of what is written
// after its memtable was frozen, and so is not of the moment that the clock is compared with.

namespace {

constexpr int kReadsTogetherMax = 4;
constexpr int kLooksTogetherMax = 64;

}  // namespace

bool Replica::unchanged_since(TabletId tablet, const causality::Clock& clock) const {
  const auto now = engine_.staged_clock(tablet);
  return now && *now == clock;
}

Task<Result<std::vector<storage::RowRead>>> Replica::read_rows_at_one_moment(
    storage::TableId table, TabletId tablet, Bytes partition, std::vector<Bytes> rows,
    Until until) {
  for (int round = 0; round < kReadsTogetherMax; ++round) {
    CO_TRY(const causality::Clock before, engine_.staged_clock(tablet));
    std::vector<storage::RowRead> reads;
    std::size_t bytes = 0;
    for (const Bytes& row : rows) {
      CO_TRY(auto read, co_await engine_.read_row(table, tablet, partition, row, until));
      bytes += size_of(read.partition);
      reads.push_back(std::move(read));
      if (bytes >= RowsAnswer::kBytesMax) break;
    }
    if (unchanged_since(tablet, before)) co_return reads;
  }
  for (int round = 0; round < kLooksTogetherMax; ++round) {
    CO_TRY(const causality::Clock before, engine_.staged_clock(tablet));
    CO_TRY(const auto cursor, engine_.cursor(table, tablet, {.until = until}));
    CO_TRY(auto reads, co_await look_together(*cursor, partition, rows));
    if (!unchanged_since(tablet, before)) continue;
    for (std::size_t i = 0; i < reads.size(); ++i) {
      CO_TRY(reads[i].floor, engine_.row_floor(table, tablet, partition, rows[i]));
    }
    CO_TRY_VOID(co_await engine_.wait_durable(cursor->trace(), std::move(until)));
    co_return reads;
  }
  co_return Error(Errc::overloaded, "rows of one moment came between too many writes");
}

Task<Result<std::vector<storage::RowRead>>> Replica::look_together(storage::TableCursor& cursor,
                                                                   const Bytes& partition,
                                                                   const std::vector<Bytes>& rows) {
  std::vector<storage::RowRead> reads;
  std::size_t bytes = 0;
  for (const Bytes& row : rows) {
    CO_TRY_VOID(co_await cursor.seek(partition, row));
    storage::RowRead read{.partition = {}, .clock = cursor.clock()};
    if (cursor.valid() && base::equal(cursor.partition(), partition.view()) &&
        base::equal(cursor.row_key(), row.view())) {
      CO_TRY(read.partition, cursor.read());
    }
    bytes += size_of(read.partition);
    read.is_newer_than_clock = cursor.is_newer_than_clock();
    reads.push_back(std::move(read));
    if (bytes >= RowsAnswer::kBytesMax) break;
  }
  co_return reads;
}

// ---- Reading for other cores ----

namespace {

Task<Result<void>> seek(storage::TableCursor& cursor, const RowsRequest& request) {
  switch (request.from) {
    case RowsRequest::From::row:
      return request.backwards ? cursor.seek_before(request.partition, request.row)
                               : cursor.seek(request.partition, request.row);
    case RowsRequest::From::bound:
      return request.backwards ? cursor.seek_before_bound(request.partition)
                               : cursor.seek_bound(request.partition);
    case RowsRequest::From::edge:
      break;
  }
  return request.backwards ? cursor.seek_last() : cursor.seek_first();
}

}  // namespace

Task<Result<RowsAnswer>> Replica::read_rows(const RowsRequest& request, Until until) {
  for (int round = 1;; ++round) {
    const std::uint64_t before = engine_.last_write();
    CO_TRY(const auto cursor, engine_.cursor(request.table, request.tablet, {.until = until}));
    auto looked = co_await look_at_rows(*cursor, request);
    if (!looked) co_return note_damage(request.table, std::move(looked).error());
    RowsAnswer answer = *std::move(looked);
    const bool is_settled = !request.at_one_moment || engine_.last_write() == before;
    if (!is_settled && round < kLooksTogetherMax) continue;
    CO_TRY_VOID(co_await engine_.wait_durable(cursor->trace(), std::move(until)));
    co_return answer;
  }
}

Task<Result<RowsAnswer>> Replica::look_at_rows(storage::TableCursor& cursor,
                                               const RowsRequest& request) {
  CO_TRY_VOID(co_await seek(cursor, request));
  RowsAnswer answer;
  std::size_t bytes = 0;
  while (cursor.valid() && request.partitions.contains(cursor.partition())) {
    if (answer.rows.size() == request.rows_max || bytes >= RowsAnswer::kBytesMax) {
      answer.more = true;
      break;
    }
    CO_TRY(auto stored, cursor.read());
    bytes += size_of(stored) + cursor.partition().size() + cursor.row_key().size();
    answer.rows.push_back({.partition = Bytes::copy_of(cursor.partition()),
                           .row = Bytes::copy_of(cursor.row_key()),
                           .stored = std::move(stored)});
    CO_TRY_VOID(request.backwards ? co_await cursor.previous() : co_await cursor.next());
  }
  answer.clock = cursor.clock();
  answer.wall = engine_.dropped_before(request.tablet);
  answer.is_newer_than_clock = cursor.is_newer_than_clock();
  co_return answer;
}

// ---- Of one epoch ----

Task<Result<ReadReply>> Replica::read_in_epoch(TabletId tablet, const ReadMessage& message,
                                               Until until) {
  CO_TRY_VOID(check_serves(tablet, message.epoch));
  CO_TRY(auto reply, co_await read(tablet, message, std::move(until)));
  CO_TRY_VOID(check_serves(tablet, message.epoch));
  if (!message.wants_digest) co_return std::move(reply);
  const auto digest =
      digest_of(message.rows, reply.rows, {.without_dots = bugs_.digests_without_dots});
  if (!digest) co_return std::move(reply);
  ReadReply in_short{.rows = {}, .digest = digest};
  for (const storage::RowRead& read : reply.rows) {
    in_short.digest_wall = std::max(in_short.digest_wall, read.wall);
  }
  co_return in_short;
}

Task<Result<RowsAnswer>> Replica::read_rows_in_epoch(const RowsRequest& request, bool wants_digest,
                                                     causality::Epoch epoch, Until until) {
  const TabletId tablet = request.tablet;
  CO_TRY_VOID(check_serves(tablet, epoch));
  CO_TRY(auto answer, co_await read_rows(request, std::move(until)));
  CO_TRY_VOID(check_serves(tablet, epoch));
  if (!wants_digest) co_return std::move(answer);
  const auto digest = digest_of(answer, {.without_dots = bugs_.digests_without_dots});
  if (!digest) co_return std::move(answer);
  RowsAnswer in_short;
  in_short.more = answer.more;
  in_short.wall = answer.wall;
  in_short.digest = digest;
  co_return in_short;
}

}  // namespace helenus::replication
