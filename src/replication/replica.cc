#include "replication/replica.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <tuple>
#include <utility>

#include "base/assert.h"
#include "causality/limits.h"
#include "causality/resolve.h"
#include "replication/batch_overlay.h"
#include "replication/ring_cut.h"
#include "replication/scope_cut.h"

namespace helenus::replication {

using base::Bytes;
using base::ByteView;
using base::Errc;
using base::Error;
using base::Result;
using causality::Delta;
using causality::Mutation;
using runtime::Task;
using runtime::Until;
using storage::TabletId;

namespace {

// Membership does not change yet.
constexpr causality::Epoch kEpoch{1};
// How many cells and deletes of ranges a delete of a scope with an explicit timestamp may meet.
constexpr std::size_t kChangesJudgedMax = 100'000;

// What it takes in the log, about: the key of a row once for the cells that are together.
std::size_t size_of(const PartitionWrite& write) {
  std::size_t size = write.partition.size();
  const causality::CellChange* before = nullptr;
  for (const causality::CellChange& cell : write.mutation.cells) {
    if (before == nullptr || before->row != cell.row) size += cell.row.size();
    size += cell.value.size();
    before = &cell;
  }
  for (const causality::Scope& scope : write.mutation.scopes) {
    size += (scope.from ? scope.from->size() : 0) + (scope.to ? scope.to->size() : 0);
  }
  return size;
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
Result<void> check_epoch(const PartitionWrite& write) {
  const auto& context = write.mutation.context;
  if (!context || context->epoch <= kEpoch) return {};
  return Error(Errc::invalid_argument, "the context is of epoch {}, and this is {}", context->epoch,
               kEpoch);
}

causality::Version version_of(const Mutation& mutation, const causality::CellChange& cell) {
  causality::Version version;
  version.timestamp = mutation.timestamp;
  version.kind = cell.kind;
  version.expires = cell.expires;
  version.value = cell.value;
  return version;
}

// The row, of a scope that has no other.
std::optional<Bytes> only_row_of(const causality::Scope& scope) {
  if (!scope.from || scope != causality::row_scope(*scope.from)) return std::nullopt;
  return scope.from;
}

Result<void> check_size(const ScopeJudgement& judgement) {
  if (judgement.size() <= kChangesJudgedMax) return {};
  return Error(Errc::invalid_argument,
               "a delete with a timestamp of its own covers more than {} cells and deletes",
               kChangesJudgedMax);
}

}  // namespace

TabletId Replica::tablet_of(ByteView partition) const {
  return tablets_[index_of(tablets_, partition)].id;
}

Task<Result<std::optional<Delta>>> Replica::write(TabletId tablet, PartitionWrite write,
                                                  Until until) {
  if (write.explicit_timestamp) {
    std::vector<PartitionWrite> writes;
    writes.push_back(std::move(write));
    CO_TRY(auto deltas, co_await this->write(std::move(writes), std::move(until)));
    if (deltas.empty()) co_return std::nullopt;
    co_return std::move(deltas.front());
  }
  CO_TRY_VOID(check_epoch(write));
  CO_TRY(auto hold, co_await enter(tablet, write, false, until));
  CO_TRY(auto staged, engine_.stage(write.table, tablet, write.partition.view(),
                                    std::move(write.mutation), kEpoch));
  hold.release();
  CO_TRY_VOID(co_await engine_.durable(staged.position, std::move(until)));
  co_return std::move(staged.delta);
}

Task<Result<void>> Replica::write_to_the_end(TabletId tablet, PartitionWrite write,
                                             Until admitted) {
  ASSERT(!write.explicit_timestamp);
  CO_TRY(auto hold, co_await enter(tablet, write, false, admitted));
  CO_TRY(const auto staged, engine_.stage(write.table, tablet, write.partition.view(),
                                          std::move(write.mutation), kEpoch));
  hold.release();
  co_return co_await engine_.durable(staged.position, Until::forever());
}

Task<Result<std::vector<Delta>>> Replica::write(std::vector<PartitionWrite> writes, Until until) {
  for (const PartitionWrite& write : writes) CO_TRY_VOID(check_epoch(write));
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
      return write.mutation.cells.empty() && write.mutation.scopes.empty();
    });
  }
  if (writes.size() > 1) CO_TRY_VOID(check(writes));
  CO_TRY_VOID(co_await admit(writes, until));
  std::vector<Delta> deltas;
  deltas.reserve(writes.size());
  std::optional<storage::LogPosition> last;
  for (PartitionWrite& write : writes) {
    const TabletId tablet = tablet_of(write.partition.view());
    // The log had room for each of them; whether it has for all of them together shows now.
    auto entered = co_await enter(tablet, write, !holds.empty(), until);
    Result<storage::Staged> staged =
        entered ? engine_.stage(write.table, tablet, write.partition.view(),
                                std::move(write.mutation), kEpoch)
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
  CO_TRY_VOID(co_await engine_.durable(last, std::move(until)));
  co_return deltas;
}

storage::MaybeTask<Result<PartitionLatches::Hold>> Replica::enter(TabletId tablet,
                                                                  const PartitionWrite& write,
                                                                  bool is_held,
                                                                  const Until& until) {
  if (is_held || !latches_.is_held(write.table, write.partition)) {
    auto admitted = engine_.admit(write.table, tablet, size_of(write), until);
    if (admitted.ready()) {
      const Result<void> room = std::move(admitted).take();
      return room ? Result<PartitionLatches::Hold>(PartitionLatches::Hold())
                  : Result<PartitionLatches::Hold>(room.error());
    }
  }
  return enter_waiting(tablet, write, is_held, until);
}

Task<Result<PartitionLatches::Hold>> Replica::enter_waiting(TabletId tablet,
                                                            const PartitionWrite& write,
                                                            bool is_held, Until until) {
  const std::size_t size = size_of(write);
  CO_TRY_VOID(co_await engine_.admit(write.table, tablet, size, until));
  if (is_held || !latches_.is_held(write.table, write.partition)) {
    co_return PartitionLatches::Hold();
  }
  CO_TRY(auto hold, co_await latches_.take(write.table, write.partition, until));
  // Others may have taken the room meanwhile.
  CO_TRY_VOID(co_await engine_.admit(write.table, tablet, size, until));
  co_return std::move(hold);
}

Task<Result<std::vector<PartitionLatches::Hold>>> Replica::hold(
    std::span<const PartitionWrite> writes, Until until) {
  std::vector<std::pair<storage::TableId, Bytes>> places;
  places.reserve(writes.size());
  for (const PartitionWrite& write : writes) places.emplace_back(write.table, write.partition);
  return latches_.take_all(std::move(places), std::move(until));
}

Task<Result<void>> Replica::admit(std::span<const PartitionWrite> writes, Until until) const {
  for (const PartitionWrite& write : writes) {
    CO_TRY_VOID(co_await engine_.admit(write.table, tablet_of(write.partition.view()),
                                       size_of(write), until));
  }
  co_return {};
}

Result<void> Replica::check(std::span<const PartitionWrite> writes) const {
  for (const PartitionWrite& write : writes) {
    TRY_VOID(check_epoch(write));
    TRY_VOID(engine_.check(write.table, tablet_of(write.partition.view()), write.partition.view(),
                           write.mutation, kEpoch));
  }
  return {};
}

// ---- Explicit timestamps ----
// Rule (d) asks that a mutation leave out what it would not defeat, judged by everything its
// context will cover. The context is fixed when it is minted, and the reading may suspend before
// that: so nothing is written to the partition meanwhile (partition_latches.h). The one replica has
// no unstable mutation, so there is no covered floor beyond what is alive. Every reading ends with
// waiting until what it saw is durable: what is left out for its sake may be acknowledged.

Task<Result<void>> Replica::judge_explicit(std::span<PartitionWrite> writes, Until until) {
  std::map<std::pair<storage::TableId, Bytes>, std::vector<PartitionWrite*>> partitions;
  for (PartitionWrite& write : writes) {
    partitions[{write.table, write.partition}].push_back(&write);
  }
  for (auto& [place, of_partition] : partitions) {
    if (std::ranges::none_of(of_partition, &PartitionWrite::explicit_timestamp)) continue;
    CO_TRY_VOID(co_await judge(of_partition, until));
  }
  co_return {};
}

// The writes will be minted one after the other, each upon those before it: so they are judged,
// too. Minting is tried on a copy of the clock, for the timestamps that it will give.
Task<Result<void>> Replica::judge(std::span<PartitionWrite* const> writes, Until until) {
  const storage::TabletInfo& tablet =
      tablets_[index_of(tablets_, writes.front()->partition.view())];
  CO_TRY(causality::Clock clock, engine_.staged_clock(tablet.id));
  BatchOverlay before;
  for (std::size_t i = 0; i < writes.size(); ++i) {
    PartitionWrite& write = *writes[i];
    if (write.explicit_timestamp) {
      CO_TRY(write.mutation, co_await judge(write, before, until));
    }
    if (i + 1 == writes.size()) break;
    if (write.mutation.cells.empty() && write.mutation.scopes.empty()) continue;
    CO_TRY(const Delta delta, causality::mint(clock, tablet.actor, kEpoch, causality::Policy::lww,
                                              write.mutation, causality::kTimestampMin));
    before.lay(delta);
  }
  co_return {};
}

Task<Result<Mutation>> Replica::judge(const PartitionWrite& write, const BatchOverlay& before,
                                      Until until) {
  Mutation judged = write.mutation;
  judged.timestamp_is_explicit = true;
  judged.cells.clear();
  judged.scopes.clear();
  CO_TRY_VOID(co_await judge_cells(write, before, judged, until));
  for (const causality::Scope& scope : write.mutation.scopes) {
    CO_TRY_VOID(co_await judge_scope(write, scope, before, judged, until));
  }
  // A cell that is written need not be deleted before.
  const auto place = [](const causality::CellChange& cell) {
    return std::pair(cell.row, cell.column);
  };
  std::ranges::sort(judged.cells, {}, [](const causality::CellChange& cell) {
    return std::tuple(cell.row, cell.column, cell.kind == causality::VersionKind::empty);
  });
  const auto repeated = std::ranges::unique(judged.cells, {}, place);
  judged.cells.erase(repeated.begin(), repeated.end());
  co_return judged;
}

Task<Result<void>> Replica::judge_cells(const PartitionWrite& write, const BatchOverlay& before,
                                        Mutation& judged, Until until) {
  const TabletId tablet = tablet_of(write.partition.view());
  std::optional<storage::RowRead> read;
  const Bytes* row = nullptr;
  for (const causality::CellChange& cell : write.mutation.cells) {
    const causality::Version version = version_of(write.mutation, cell);
    if (const causality::Version* const there = before.find(cell.row, cell.column)) {
      if (wins(version, *there)) judged.cells.push_back(cell);
      continue;
    }
    if (row == nullptr || *row != cell.row) {
      row = &cell.row;
      CO_TRY(read, co_await engine_.read_row(write.table, tablet, write.partition, *row, until));
    }
    if (wins(version, read->partition.cell(cell.row, cell.column))) judged.cells.push_back(cell);
  }
  co_return {};
}

Task<Result<void>> Replica::judge_scope(const PartitionWrite& write, const causality::Scope& scope,
                                        const BatchOverlay& before, Mutation& judged, Until until) {
  causality::CellChange change;
  change.kind = causality::VersionKind::empty;
  change.expires = write.mutation.remembered_until;
  const causality::Version deletion = version_of(write.mutation, change);
  ScopeJudgement judgement(scope, deletion, write.columns, before);
  if (const auto row = only_row_of(scope)) {
    const TabletId tablet = tablet_of(write.partition.view());
    CO_TRY(const auto read,
           co_await engine_.read_row(write.table, tablet, write.partition, *row, until));
    judgement.take_ranges({});
    judgement.take_row(*row, read.partition);
  } else {
    CO_TRY_VOID(co_await look_across(write, scope, judgement, until));
  }
  JudgedScope left =
      std::move(judgement).finish(causality::kScopesPerMutationMax - judged.scopes.size());
  std::ranges::move(left.scopes, std::back_inserter(judged.scopes));
  std::ranges::move(left.cells, std::back_inserter(judged.cells));
  co_return {};
}

Task<Result<void>> Replica::look_across(const PartitionWrite& write, const causality::Scope& scope,
                                        ScopeJudgement& judgement, Until until) {
  CO_TRY(const auto cursor,
         engine_.cursor(write.table, tablet_of(write.partition.view()), {.until = until}));
  CO_TRY(auto ranges, co_await cursor->scopes_across(write.partition, scope, kChangesJudgedMax));
  judgement.take_ranges(std::move(ranges));
  CO_TRY_VOID(co_await cursor->seek(write.partition, scope.from.value_or(Bytes())));
  while (cursor->valid() && base::compare(cursor->partition(), write.partition.view()) == 0) {
    const Bytes row = Bytes::copy_of(cursor->row_key());
    if (!scope.contains(row)) break;
    CO_TRY(const auto read, cursor->read());
    judgement.take_row(row, read);
    CO_TRY_VOID(check_size(judgement));
    CO_TRY_VOID(co_await cursor->next());
  }
  co_return co_await engine_.settle(cursor->trace(), until);
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

Task<Result<std::vector<storage::RowRead>>> Replica::read_together(storage::TableId table,
                                                                   TabletId tablet, Bytes partition,
                                                                   std::vector<Bytes> rows,
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
    CO_TRY_VOID(co_await engine_.settle(cursor->trace(), std::move(until)));
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
  CO_TRY(const auto cursor, engine_.cursor(request.table, request.tablet, {.until = until}));
  CO_TRY_VOID(co_await seek(*cursor, request));
  RowsAnswer answer;
  std::size_t bytes = 0;
  while (cursor->valid() && request.partitions.contains(cursor->partition())) {
    if (answer.rows.size() == request.rows_max || bytes >= RowsAnswer::kBytesMax) {
      answer.more = true;
      break;
    }
    CO_TRY(auto stored, cursor->read());
    bytes += size_of(stored) + cursor->partition().size() + cursor->row_key().size();
    answer.rows.push_back({.partition = Bytes::copy_of(cursor->partition()),
                           .row = Bytes::copy_of(cursor->row_key()),
                           .stored = std::move(stored)});
    CO_TRY_VOID(request.backwards ? co_await cursor->previous() : co_await cursor->next());
  }
  answer.clock = cursor->clock();
  CO_TRY_VOID(co_await engine_.settle(cursor->trace(), std::move(until)));
  co_return answer;
}

}  // namespace helenus::replication
