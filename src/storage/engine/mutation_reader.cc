#include "storage/engine/mutation_reader.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "causality/codec.h"

namespace helenus::storage {

using base::Errc;
using base::Error;
using base::Result;
using causality::Clock;
using causality::Timestamp;
using runtime::Task;
using runtime::Until;

MutationReader::MutationReader(EngineState& state) : state_(state) {}

Result<Clock> MutationReader::kept_mutations(TabletId tablet) const {
  const Tablet* replica = state_.find_tablet(tablet);
  if (replica == nullptr) return Error(Errc::not_found, "tablet {}", tablet);
  return replica->mutations.kept();
}

namespace {

Clock clock_of(const std::vector<causality::DotRange>& ranges) {
  Clock clock;
  for (const causality::DotRange& range : ranges) clock.add(range);
  return clock;
}

Result<LoggedMutation> logged(const KeptMutation& kept) {
  TRY(auto record, decode_mutation(kept.record));
  return LoggedMutation{.dot = kept.dot,
                        .table = kept.table,
                        .partition = base::Bytes::copy_of(record.partition),
                        .delta = std::move(record.delta)};
}

// What a shard's files have of these dots of a tablet, one walk a file.
std::vector<MutationFileWalk> walks_of(const Shard& shard, TabletId tablet, const Clock& wanted,
                                       const Until& until) {
  std::vector<MutationFileWalk> walks;
  for (const LiveMutationFile& each : shard.mutation_files()) {
    const auto at = each.live.find(tablet);
    if (at == each.live.end()) continue;
    const Clock dots = causality::meet(at->second, wanted);
    if (!dots.empty()) walks.emplace_back(each.file, tablet, dots, until);
  }
  return walks;
}

}  // namespace

bool MutationReader::has_shed_mutations(TabletId tablet) const {
  const Tablet* found = state_.find_tablet(tablet);
  return found != nullptr && !found->mutations.shed().empty();
}

Task<Result<MissingMutations>> MutationReader::missing_mutations(TabletId tablet, Clock peer,
                                                                 std::size_t bytes_max,
                                                                 Until until) {
  CO_TRY(const auto pass, state_.gate.enter());
  const Tablet* found = state_.find_tablet(tablet);
  if (found == nullptr) co_return Error(Errc::not_found, "tablet {}", tablet);
  if (found->lost_mutations) co_return found->lost_mutations->why;
  state_.advance_durable();
  const Tablet& replica = *found;
  MissingMutations answer;
  auto lacking = causality::missing(peer, replica.durable);
  answer.closed = std::move(lacking.closed);
  answer.withheld =
      causality::join(causality::subtract(clock_of(lacking.dots), replica.mutations.kept()),
                      causality::subtract(replica.mutations.shed(), peer));
  answer.withheld = causality::subtract(answer.withheld, replica.mutations.covered());
  answer.covered =
      causality::meet(causality::subtract(replica.mutations.covered(), peer), replica.durable);
  const Clock wanted =
      causality::meet(causality::subtract(replica.mutations.kept(), peer), replica.durable);
  // What is in memory and which files there are is of one moment; reading them may take a while.
  bool all_in_memory = false;
  const auto memory = replica.mutations.in_memory(wanted, bytes_max, all_in_memory);
  auto walks = walks_of(*state_.shard_of(tablet), tablet, wanted, until);
  for (MutationFileWalk& walk : walks) CO_TRY_VOID(co_await walk.next());
  std::size_t bytes = 0;
  auto next_in_memory = memory.begin();
  while (true) {
    const KeptMutation* least = next_in_memory == memory.end() ? nullptr : &*next_in_memory;
    for (const MutationFileWalk& walk : walks) {
      const auto& current = walk.current();
      if (current && (least == nullptr || current->dot < least->dot)) least = &*current;
    }
    answer.complete = least == nullptr && all_in_memory;
    if (least == nullptr || (bytes >= bytes_max && bytes > 0)) co_return answer;
    const causality::Dot dot = least->dot;
    bytes += least->record.size();
    if (state_.shard_of(tablet)->table(least->table) == nullptr) {
      answer.covered.add(dot);  // its table was dropped
    } else {
      CO_TRY(auto mutation, logged(*least));
      answer.mutations.push_back(std::move(mutation));
    }
    // A start that was cut short may have left a mutation in two places.
    if (next_in_memory != memory.end() && next_in_memory->dot == dot) ++next_in_memory;
    for (MutationFileWalk& walk : walks) {
      if (walk.current() && walk.current()->dot == dot) CO_TRY_VOID(co_await walk.next());
    }
  }
}

namespace {

// The timestamp at which the mutation says something of the cell; none if it does not.
std::optional<Timestamp> timestamp_at(const causality::Delta& delta, const base::Bytes& row,
                                      causality::ColumnId column) {
  const auto cell = [&](const causality::CellChange& change) {
    return change.row == row && change.column == column;
  };
  if (std::ranges::any_of(delta.cells, cell)) return delta.timestamp;
  const auto row_range = [&](const causality::RowRange& each) { return each.contains(row); };
  if (std::ranges::any_of(delta.deleted_ranges, row_range))
    return causality::timestamp_of_range_deletes(delta);
  return std::nullopt;
}

// The largest timestamp at which mutations say something of one cell.
class CellFloor {
 public:
  CellFloor(TableId table, base::Bytes partition, base::Bytes row, causality::ColumnId column)
      : table_(table), partition_(std::move(partition)), row_(std::move(row)), column_(column) {}

  Timestamp floor() const { return floor_; }
  const Clock& seen() const { return seen_; }
  void set_seen(const Clock& dots) { seen_ = causality::join(seen_, dots); }

  Result<void> take(const KeptMutation& kept) {
    if (kept.table != table_) return {};
    TRY(const auto record, decode_mutation(kept.record));
    if (!base::equal(record.partition, partition_)) return {};
    TRY(const auto delta, causality::decode_delta(record.delta));
    floor_ = std::max(floor_, timestamp_at(delta, row_, column_).value_or(floor_));
    return {};
  }
  // What is in memory and was not seen before.
  Result<void> take(const MutationLog& mutations) {
    bool all = false;
    const Clock unseen = causality::subtract(mutations.kept(), seen_);
    for (const KeptMutation& kept : mutations.in_memory(unseen, SIZE_MAX, all)) {
      seen_.add(kept.dot);
      if (kept.timestamp > floor_) TRY_VOID(take(kept));
    }
    return {};
  }

 private:
  const TableId table_;
  const base::Bytes partition_;
  const base::Bytes row_;
  const causality::ColumnId column_;
  Timestamp floor_ = causality::kTimestampMin;
  Clock seen_;
};

// A file of the tablet's mutations that may raise the floor.
const LiveMutationFile* file_above(const Shard& shard, TabletId tablet, const CellFloor& cell) {
  for (const LiveMutationFile& each : shard.mutation_files()) {
    const auto live = each.live.find(tablet);
    if (live == each.live.end() || cell.seen().covers(live->second)) continue;
    if (each.file->metadata.at(tablet).largest > cell.floor()) return &each;
  }
  return nullptr;
}

}  // namespace

Task<Result<Timestamp>> MutationReader::covered_floor(TableId table, TabletId tablet,
                                                      base::Bytes partition, base::Bytes row,
                                                      causality::ColumnId column, Until until) {
  CO_TRY(const auto pass, state_.gate.enter());
  CellFloor cell(table, partition, row, column);
  while (true) {
    CO_TRY(const auto found, state_.find(table, tablet));
    // Most of the time there is nothing of the row.
    const Timestamp at_most = found.tablet->floors.of_row(table, partition, row);
    if (at_most == causality::kTimestampMin) co_return at_most;
    if (!found.tablet->mutations.shed().empty()) {
      co_return Error(Errc::unavailable, "the mutation log of tablet {} was cut off", tablet);
    }
    CO_TRY_VOID(cell.take(found.tablet->mutations));
    if (cell.floor() >= at_most) co_return cell.floor();
    const LiveMutationFile* file = file_above(*found.shard, tablet, cell);
    if (file == nullptr) co_return cell.floor();
    const Clock dots = causality::subtract(file->live.at(tablet), cell.seen());
    MutationFileWalk walk(file->file, tablet, dots, until);
    CO_TRY_VOID(co_await walk.next());
    while (walk.current()) {
      CO_TRY_VOID(cell.take(*walk.current()));
      CO_TRY_VOID(co_await walk.next());
    }
    cell.set_seen(dots);
  }
}

}  // namespace helenus::storage
