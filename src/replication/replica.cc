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
// How often a write with an explicit timestamp looks again when others wrote meanwhile.
constexpr int kJudgementsMax = 64;
// How many cells and deletes of ranges a delete of a scope with an explicit timestamp may meet.
constexpr std::size_t kChangesJudgedMax = 100'000;

std::size_t size_of(const PartitionWrite& write) {
  std::size_t size = write.partition.size();
  for (const causality::CellChange& cell : write.mutation.cells) {
    size += cell.row.size() + cell.value.size();
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
  CO_TRY_VOID(co_await engine_.admit(write.table, tablet, size_of(write), until));
  CO_TRY(auto staged, engine_.stage(write.table, tablet, write.partition.view(),
                                    std::move(write.mutation), kEpoch));
  CO_TRY_VOID(co_await engine_.durable(staged.position, std::move(until)));
  co_return std::move(staged.delta);
}

Task<Result<void>> Replica::write_to_the_end(TabletId tablet, PartitionWrite write,
                                             Until admitted) {
  ASSERT(!write.explicit_timestamp);
  CO_TRY_VOID(co_await engine_.admit(write.table, tablet, size_of(write), admitted));
  CO_TRY(const auto staged, engine_.stage(write.table, tablet, write.partition.view(),
                                          std::move(write.mutation), kEpoch));
  co_return co_await engine_.durable(staged.position, Until::forever());
}

Task<Result<std::vector<Delta>>> Replica::write(std::vector<PartitionWrite> writes, Until until) {
  for (const PartitionWrite& write : writes) CO_TRY_VOID(check_epoch(write));
  CO_TRY_VOID(co_await admit(writes, until));
  // From the judgement to the log nothing suspends.
  const bool judged = std::ranges::any_of(writes, &PartitionWrite::explicit_timestamp);
  CO_TRY_VOID(co_await judge_explicit(writes, until));
  std::erase_if(writes, [](const PartitionWrite& write) {
    return write.mutation.cells.empty() && write.mutation.scopes.empty();
  });
  if (writes.size() > 1) CO_TRY_VOID(check(writes));
  std::vector<Delta> deltas;
  deltas.reserve(writes.size());
  std::optional<storage::LogPosition> last;
  for (PartitionWrite& write : writes) {
    const TabletId tablet = tablet_of(write.partition.view());
    // The log had room for each of them; whether it has for all of them together shows now.
    Result<void> room;
    if (!judged) room = co_await engine_.admit(write.table, tablet, size_of(write), until);
    Result<storage::Staged> staged =
        room ? engine_.stage(write.table, tablet, write.partition.view(), std::move(write.mutation),
                             kEpoch)
             : Result<storage::Staged>(std::move(room).error());
    if (!staged && deltas.empty()) co_return std::move(staged).error();
    if (!staged) {
      co_return Error(Errc::timeout, "{} of {} writes are there, then: {}", deltas.size(),
                      writes.size(), staged.error());
    }
    last = staged->position;
    deltas.push_back(std::move(staged->delta));
  }
  CO_TRY_VOID(co_await engine_.durable(last, std::move(until)));
  co_return deltas;
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
// that; so what was read is taken only if the tablet has seen nothing since. The one replica has no
// unstable mutation, so there is no covered floor beyond what is alive.

bool Replica::unchanged_since(TabletId tablet, const causality::Clock& clock) const {
  const auto now = engine_.staged_clock(tablet);
  return now && *now == clock;
}

Task<Result<void>> Replica::judge_explicit(std::span<PartitionWrite> writes, Until until) {
  struct Partition {
    std::vector<PartitionWrite*> writes;
    std::optional<Judged> judged;
  };
  if (std::ranges::none_of(writes, &PartitionWrite::explicit_timestamp)) co_return {};
  std::map<std::pair<storage::TableId, Bytes>, Partition> partitions;
  for (PartitionWrite& write : writes) {
    partitions[{write.table, write.partition}].writes.push_back(&write);
  }
  std::erase_if(partitions, [](const auto& partition) {
    return std::ranges::none_of(partition.second.writes, &PartitionWrite::explicit_timestamp);
  });
  for (int round = 0; round < kJudgementsMax; ++round) {
    bool sound = true;
    for (auto& [place, partition] : partitions) {
      const TabletId tablet = tablet_of(place.second.view());
      if (partition.judged && unchanged_since(tablet, partition.judged->clock)) continue;
      CO_TRY(partition.judged, co_await judge(partition.writes, until));
      sound = false;
    }
    if (!sound) continue;  // They were read with suspensions between: look whether all still hold.
    for (auto& [place, partition] : partitions) {
      std::erase_if(partition.writes,
                    [](const PartitionWrite* write) { return !write->explicit_timestamp; });
      for (std::size_t i = 0; i < partition.writes.size(); ++i) {
        partition.writes[i]->mutation = std::move(partition.judged->mutations[i]);
      }
    }
    co_return {};
  }
  co_return Error(Errc::overloaded,
                  "a write with a timestamp of its own came between too many "
                  "others of its tablet");
}

// The writes will be minted one after the other, each upon those before it: so they are judged,
// too. Minting is tried on a copy of the clock, for the timestamps that it will give.
Task<Result<Replica::Judged>> Replica::judge(std::span<PartitionWrite* const> writes, Until until) {
  const storage::TabletInfo& tablet =
      tablets_[index_of(tablets_, writes.front()->partition.view())];
  Judged judged;
  CO_TRY(judged.clock, engine_.staged_clock(tablet.id));
  causality::Clock clock = judged.clock;
  BatchOverlay before;
  for (std::size_t i = 0; i < writes.size(); ++i) {
    Mutation mutation = writes[i]->mutation;
    if (writes[i]->explicit_timestamp) {
      CO_TRY(mutation, co_await judge(*writes[i], before, until));
      judged.mutations.push_back(mutation);
    }
    if (i + 1 == writes.size()) break;
    if (mutation.cells.empty() && mutation.scopes.empty()) continue;
    CO_TRY(const Delta delta, causality::mint(clock, tablet.actor, kEpoch, causality::Policy::lww,
                                              std::move(mutation), causality::kTimestampMin));
    before.lay(delta);
  }
  co_return judged;
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
