#include "replication/replica.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/assert.h"
#include "causality/resolve.h"
#include "replication/ring_cut.h"

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
// How many cells a delete of a scope with an explicit timestamp may leave out.
constexpr std::size_t kCellsJudgedMax = 100'000;

std::size_t size_of(const PartitionWrite& write) {
  std::size_t size = write.partition.size();
  for (const causality::CellChange& cell : write.mutation.cells) {
    size += cell.row.size() + cell.value.size();
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
  for (const PartitionWrite& write : writes) {
    CO_TRY_VOID(co_await engine_.admit(write.table, tablet_of(write.partition.view()),
                                       size_of(write), until));
  }
  // From the judgement to the log nothing suspends.
  CO_TRY_VOID(co_await judge_explicit(writes, until));
  std::erase_if(writes, [](const PartitionWrite& write) {
    return write.mutation.cells.empty() && write.mutation.scopes.empty();
  });
  if (writes.size() > 1) CO_TRY_VOID(check(writes));
  std::vector<Delta> deltas;
  deltas.reserve(writes.size());
  std::optional<storage::LogPosition> last;
  for (PartitionWrite& write : writes) {
    CO_TRY(auto staged, engine_.stage(write.table, tablet_of(write.partition.view()),
                                      write.partition.view(), std::move(write.mutation), kEpoch));
    last = staged.position;
    deltas.push_back(std::move(staged.delta));
  }
  CO_TRY_VOID(co_await engine_.durable(last, std::move(until)));
  co_return deltas;
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
  std::map<std::size_t, Judged> judged;
  for (int round = 0; round < kJudgementsMax; ++round) {
    bool sound = true;
    for (std::size_t i = 0; i < writes.size(); ++i) {
      if (!writes[i].explicit_timestamp) continue;
      const TabletId tablet = tablet_of(writes[i].partition.view());
      const auto before = judged.find(i);
      if (before != judged.end() && unchanged_since(tablet, before->second.clock)) continue;
      CO_TRY(judged[i], co_await judge(writes[i], until));
      sound = false;
    }
    if (!sound) continue;  // They were read with suspensions between: look whether all still hold.
    for (auto& [i, judgement] : judged) writes[i].mutation = std::move(judgement.mutation);
    co_return {};
  }
  co_return Error(Errc::overloaded,
                  "a write with a timestamp of its own came between too many "
                  "others of its tablet");
}

Task<Result<Replica::Judged>> Replica::judge(const PartitionWrite& write, Until until) {
  Judged judged;
  CO_TRY(judged.clock, engine_.staged_clock(tablet_of(write.partition.view())));
  judged.mutation = write.mutation;
  judged.mutation.timestamp_is_explicit = true;
  judged.mutation.cells.clear();
  judged.mutation.scopes.clear();
  CO_TRY_VOID(co_await judge_cells(write, judged, until));
  for (const causality::Scope& scope : write.mutation.scopes) {
    CO_TRY_VOID(co_await judge_scope(write, scope, judged, until));
  }
  std::ranges::sort(judged.mutation.cells, {}, [](const causality::CellChange& cell) {
    return std::pair(cell.row, cell.column);
  });
  // A cell that is written need not be deleted before.
  const auto repeated = std::ranges::unique(
      judged.mutation.cells, {},
      [](const causality::CellChange& cell) { return std::pair(cell.row, cell.column); });
  judged.mutation.cells.erase(repeated.begin(), repeated.end());
  co_return judged;
}

Task<Result<void>> Replica::judge_cells(const PartitionWrite& write, Judged& judged, Until until) {
  const TabletId tablet = tablet_of(write.partition.view());
  std::optional<storage::RowRead> read;
  const Bytes* row = nullptr;
  for (const causality::CellChange& cell : write.mutation.cells) {
    if (row == nullptr || *row != cell.row) {
      row = &cell.row;
      CO_TRY(read, co_await engine_.read_row(write.table, tablet, write.partition, *row, until));
    }
    const causality::CellStore there = read->partition.cell(cell.row, cell.column);
    if (causality::explicit_write_applies(there, causality::kTimestampMin,
                                          version_of(write.mutation, cell))) {
      judged.mutation.cells.push_back(cell);
    }
  }
  co_return {};
}

// A scope in which nothing is newer is deleted as one. Otherwise the cells that are older are
// deleted one by one.
Task<Result<void>> Replica::judge_scope(const PartitionWrite& write, const causality::Scope& scope,
                                        Judged& judged, Until until) {
  CO_TRY(const auto cursor,
         engine_.cursor(write.table, tablet_of(write.partition.view()), {.until = until}));
  CO_TRY_VOID(co_await cursor->seek(write.partition, scope.from.value_or(Bytes())));
  std::vector<causality::CellChange> older;
  bool newer_exist = false;
  std::size_t cells = 0;
  while (cursor->valid() && base::compare(cursor->partition(), write.partition.view()) == 0) {
    const Bytes row = Bytes::copy_of(cursor->row_key());
    if (!scope.contains(row)) break;
    CO_TRY(const auto read, cursor->read());
    const auto stored = read.rows().find(row);
    if (stored != read.rows().end()) {
      for (const auto& column : stored->second.cells()) {
        causality::CellChange change;
        change.row = row;
        change.column = column.first;
        change.kind = causality::VersionKind::empty;
        const causality::CellStore there = read.cell(row, column.first);
        if (there.versions().empty()) continue;
        const bool applies = causality::explicit_write_applies(there, causality::kTimestampMin,
                                                               version_of(write.mutation, change));
        newer_exist = newer_exist || !applies;
        if (applies) older.push_back(std::move(change));
        if (++cells > kCellsJudgedMax) {
          co_return Error(Errc::invalid_argument,
                          "a delete with a timestamp of its own covers more than {} cells",
                          kCellsJudgedMax);
        }
      }
    }
    CO_TRY_VOID(co_await cursor->next());
  }
  if (newer_exist) {
    std::ranges::move(older, std::back_inserter(judged.mutation.cells));
  } else {
    judged.mutation.scopes.push_back(scope);
  }
  co_return co_await engine_.settle(cursor->trace(), until);
}

// ---- Reading for other cores ----

namespace {

std::size_t size_of(const causality::PartitionStore& stored) {
  std::size_t size = 0;
  for (const auto& [row, store] : stored.rows()) {
    for (const auto& [column, cell] : store.cells()) {
      for (const auto& version : cell.versions()) size += version.value.size();
    }
  }
  return size;
}

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
