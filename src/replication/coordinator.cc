#include "replication/coordinator.h"

#include <algorithm>
#include <limits>
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
using storage::TableId;
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

Coordinator::Coordinator(Private, runtime::Runtime& runtime, CoordinatorOptions options)
    : options_(std::move(options)), log_(runtime.logger("replication")) {}

Task<Result<std::unique_ptr<Coordinator>>> Coordinator::open(runtime::Runtime& runtime,
                                                             CoordinatorOptions options) {
  const std::uint32_t tablets = options.tablets;
  if (tablets == 0 || tablets > CoordinatorOptions::kTabletsMax) {
    co_return Error(Errc::invalid_argument, "{} tablets; the ring is cut into 1 to {}", tablets,
                    CoordinatorOptions::kTabletsMax);
  }
  auto coordinator = std::make_unique<Coordinator>(Private{}, runtime, std::move(options));
  CO_TRY(coordinator->engine_,
         co_await storage::Engine::open(runtime, coordinator->options_.engine));
  Result<void> ready = co_await coordinator->make_tablets();
  if (ready) ready = co_await coordinator->rename_doubtful();
  if (!ready) {
    std::ignore = co_await coordinator->engine_->stop();
    co_return std::move(ready).error();
  }
  co_return coordinator;
}

Task<Result<void>> Coordinator::stop() {
  return engine_->stop();
}

Task<Result<void>> Coordinator::make_tablets() {
  // A crash among the first creations leaves some of them: the rest follows.
  for (std::uint32_t i = 0; i < options_.tablets; ++i) {
    const Result<void> made = co_await engine_->create_tablet(
        TabletId{i}, cut(i, options_.tablets), causality::actor_of(options_.node_number, 1));
    if (!made && !made.failed_with(Errc::already_exists)) {
      co_return Error(made.error()).within("cutting the ring");
    }
  }
  tablets_ = engine_->tablets();
  std::ranges::sort(tablets_, {}, [](const storage::TabletInfo& tablet) { return tablet.id; });
  for (std::uint32_t i = 0; i < tablets_.size(); ++i) {
    if (tablets_.size() != options_.tablets || tablets_[i].range != cut(i, options_.tablets)) {
      co_return Error(Errc::invalid_argument, "the ring of this folder is cut into {} tablets",
                      tablets_.size());
    }
    // Nobody else holds a replica.
    engine_->set_watermarks(tablets_[i].id, {});
  }
  co_return {};
}

Task<Result<void>> Coordinator::rename_doubtful() {
  for (const TabletId doubtful : engine_->tablets_in_doubt()) {
    storage::TabletInfo& tablet = tablets_[doubtful.value()];
    const std::uint32_t last = tablet.actor.incarnation.value();
    ASSERT(last < std::numeric_limits<std::uint32_t>::max());
    const causality::ActorId name = causality::actor_of(options_.node_number, last + 1);
    CO_TRY_VOID(co_await engine_->reincarnate(doubtful, name));
    tablet.actor = name;
    log_.info("tablet mints under a new name", base::kv("tablet", doubtful),
              base::kv("actor", name));
  }
  co_return {};
}

TabletId Coordinator::tablet_of(ByteView partition) const {
  return tablets_[index_of(tablets_, partition)].id;
}

Task<Result<void>> Coordinator::create_table(TableId table, storage::TableOptions options) {
  return engine_->create_table(table, options);
}

Task<Result<void>> Coordinator::drop_table(TableId table) {
  return engine_->drop_table(table);
}

Task<Result<std::optional<Delta>>> Coordinator::write(PartitionWrite write, Until until) {
  if (write.explicit_timestamp) {
    std::vector<PartitionWrite> writes;
    writes.push_back(std::move(write));
    CO_TRY(auto deltas, co_await this->write(std::move(writes), std::move(until)));
    if (deltas.empty()) co_return std::nullopt;
    co_return std::move(deltas.front());
  }
  CO_TRY_VOID(check_epoch(write));
  const TabletId tablet = tablet_of(write.partition.view());
  CO_TRY_VOID(co_await engine_->admit(write.table, tablet, size_of(write), until));
  CO_TRY(auto staged, engine_->stage(write.table, tablet, write.partition.view(),
                                     std::move(write.mutation), kEpoch));
  CO_TRY_VOID(co_await engine_->durable(staged.position, std::move(until)));
  co_return std::move(staged.delta);
}

Task<Result<void>> Coordinator::write_to_the_end(PartitionWrite write, Until admitted) {
  ASSERT(!write.explicit_timestamp);
  const TabletId tablet = tablet_of(write.partition.view());
  CO_TRY_VOID(co_await engine_->admit(write.table, tablet, size_of(write), admitted));
  CO_TRY(const auto staged, engine_->stage(write.table, tablet, write.partition.view(),
                                           std::move(write.mutation), kEpoch));
  co_return co_await engine_->durable(staged.position, Until::forever());
}

Task<Result<std::vector<Delta>>> Coordinator::write(std::vector<PartitionWrite> writes,
                                                    Until until) {
  for (const PartitionWrite& write : writes) CO_TRY_VOID(check_epoch(write));
  for (const PartitionWrite& write : writes) {
    CO_TRY_VOID(co_await engine_->admit(write.table, tablet_of(write.partition.view()),
                                        size_of(write), until));
  }
  // From the judgement to the log nothing suspends.
  CO_TRY_VOID(co_await judge_explicit(writes, until));
  std::erase_if(writes, [](const PartitionWrite& write) {
    return write.mutation.cells.empty() && write.mutation.scopes.empty();
  });
  if (writes.size() > 1) {
    for (const PartitionWrite& write : writes) {
      CO_TRY_VOID(engine_->check(write.table, tablet_of(write.partition.view()),
                                 write.partition.view(), write.mutation, kEpoch));
    }
  }
  std::vector<Delta> deltas;
  deltas.reserve(writes.size());
  std::optional<storage::LogPosition> last;
  for (PartitionWrite& write : writes) {
    CO_TRY(auto staged, engine_->stage(write.table, tablet_of(write.partition.view()),
                                       write.partition.view(), std::move(write.mutation), kEpoch));
    last = staged.position;
    deltas.push_back(std::move(staged.delta));
  }
  CO_TRY_VOID(co_await engine_->durable(last, std::move(until)));
  co_return deltas;
}

// ---- Explicit timestamps ----
// Rule (d) asks that a mutation leave out what it would not defeat, judged by everything its
// context will cover. The context is fixed when it is minted, and the reading may suspend before
// that; so what was read is taken only if the tablet has seen nothing since. The one replica has no
// unstable mutation, so there is no covered floor beyond what is alive.

bool Coordinator::unchanged_since(TabletId tablet, const causality::Clock& clock) {
  const auto now = engine_->staged_clock(tablet);
  return now && *now == clock;
}

Task<Result<void>> Coordinator::judge_explicit(std::span<PartitionWrite> writes, Until until) {
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

Task<Result<Coordinator::Judged>> Coordinator::judge(const PartitionWrite& write, Until until) {
  Judged judged;
  CO_TRY(judged.clock, engine_->staged_clock(tablet_of(write.partition.view())));
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

Task<Result<void>> Coordinator::judge_cells(const PartitionWrite& write, Judged& judged,
                                            Until until) {
  const TabletId tablet = tablet_of(write.partition.view());
  std::optional<storage::RowRead> read;
  const Bytes* row = nullptr;
  for (const causality::CellChange& cell : write.mutation.cells) {
    if (row == nullptr || *row != cell.row) {
      row = &cell.row;
      CO_TRY(read, co_await engine_->read_row(write.table, tablet, write.partition, *row, until));
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
Task<Result<void>> Coordinator::judge_scope(const PartitionWrite& write,
                                            const causality::Scope& scope, Judged& judged,
                                            Until until) {
  CO_TRY(const auto cursor,
         engine_->cursor(write.table, tablet_of(write.partition.view()), {.until = until}));
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
  co_return co_await engine_->settle(cursor->trace(), until);
}

// ---- Reading and upkeep ----

Task<Result<storage::RowRead>> Coordinator::read_row(TableId table, Bytes partition, Bytes row,
                                                     Until until) {
  const TabletId tablet = tablet_of(partition.view());
  return engine_->read_row(table, tablet, std::move(partition), std::move(row), std::move(until));
}

std::unique_ptr<RangeCursor> Coordinator::scan(TableId table, storage::KeyRange partitions,
                                               storage::SstableCursorOptions options) {
  return std::make_unique<RangeCursor>(*engine_, tablets_, table, std::move(partitions),
                                       std::move(options));
}

Task<Result<void>> Coordinator::flush(TableId table, Until until) {
  return engine_->flush(table, std::move(until));
}

Task<Result<void>> Coordinator::compact(TableId table, Until until) {
  return engine_->compact(table, std::move(until));
}

}  // namespace helenus::replication
