#include "storage/engine/read_path.h"

#include <algorithm>
#include <string>
#include <utility>

#include "storage/read/row_range_deletes.h"

namespace helenus::storage {

using base::ByteView;
using base::Errc;
using base::Error;
using base::Result;
using runtime::Task;
using runtime::Until;

ReadPath::ReadPath(EngineState& state) : state_(state) {}

causality::WallTime ReadPath::dropped_before(TabletId tablet) const {
  const Tablet* replica = state_.find_tablet(tablet);
  return replica == nullptr ? causality::WallTime{} : replica->dropped_before;
}

Result<causality::Clock> ReadPath::staged_clock(TabletId tablet) const {
  const Tablet* replica = state_.find_tablet(tablet);
  if (replica == nullptr) return Error(Errc::not_found, "tablet {}", tablet);
  return replica->clock;
}

Result<causality::Clock> ReadPath::durable_clock(TabletId tablet) {
  const Tablet* replica = state_.find_tablet(tablet);
  if (replica == nullptr) return Error(Errc::not_found, "tablet {}", tablet);
  state_.advance_durable();
  return replica->durable;
}

void ReadPath::bring_up_to_date(Tablet& tablet) const {
  tablet.synced.note(tablet.durable, state_.log->durable_position(), state_.log->synced_position());
}

Result<causality::Clock> ReadPath::synced_clock(TabletId tablet) {
  Tablet* replica = state_.find_tablet(tablet);
  if (replica == nullptr) return Error(Errc::not_found, "tablet {}", tablet);
  state_.advance_durable();
  bring_up_to_date(*replica);
  if (replica->synced.is_behind()) state_.staged.note_changed(*replica);
  return replica->synced.clock();
}

std::vector<TabletId> ReadPath::take_changed_clocks() {
  state_.advance_durable();
  std::vector<TabletId> changed;
  std::vector<Tablet*> behind;
  for (Tablet* tablet : state_.staged.changed()) {
    bring_up_to_date(*tablet);
    if (!tablet->dropping) changed.push_back(tablet->id);
    if (tablet->synced.is_behind()) behind.push_back(tablet);
  }
  state_.staged.let_go_of_changed(behind);
  std::ranges::sort(changed);
  return changed;
}

TableView ReadPath::view_of(const TableOfTablet& found) {
  if (found.table->files_aside().empty()) return found.table->view();
  // Of damaged files only those in which the tablet has a part: they may answer with errors.
  auto files = std::make_shared<SstableList>(found.table->sstables());
  std::erase_if(*files, [&](const auto& file) {
    return found.table->aside(file->record.number) &&
           !found.shard->has_part_in(found.tablet->range, file->record);
  });
  return found.table->view(std::move(files));
}

namespace {

// What the active memtable has of a row and of ranges around it, as of one step.
class ActiveRow {
 public:
  // All of them must outlive it.
  ActiveRow(const TableView& view, const base::Bytes& partition, const base::Bytes& row)
      : view_(view), partition_(partition), row_(row) {
    read();
  }
  // As it is now.
  void read() {
    entry_.clear();
    trace_ = {};
    const EncodedKey key({partition_, EntryKind::row, row_});
    view_.absorb_active(key.view(), entry_, trace_);
    if (view_.active().has_ranges()) ranges_.load_active(view_, partition_, row_, trace_);
  }
  const base::Bytes& partition() const { return partition_; }
  const Entry& entry() const { return entry_; }
  const RowRangeDeletes& ranges() const { return ranges_; }
  void add_to(Entry& entry, ReadTrace& trace) {
    if (!entry_.empty()) entry.absorb(std::move(entry_));
    trace.memtables_with_key += trace_.memtables_with_key;
    trace.range_paths_read += trace_.range_paths_read;
    trace.sequence = std::max(trace.sequence, trace_.sequence);
  }

 private:
  const TableView& view_;
  const base::Bytes& partition_;
  const base::Bytes& row_;
  Entry entry_;
  RowRangeDeletes ranges_;
  ReadTrace trace_;
};

// What deletes in the active memtable say of the row.
void add_active(const ActiveRow& active, const base::Bytes& row, Superseded& superseded) {
  superseded.add(active.entry());
  causality::PartitionStore around;
  active.ranges().add_to(around, row);
  superseded.add(around.range_deletes());
}

// What deletes in memory say of the row. Waits for nothing.
Task<Result<void>> add_memory(const TableView& view, const ActiveRow& active,
                              const base::Bytes& row, Superseded& superseded) {
  superseded.add(active.entry());
  causality::PartitionStore around;
  active.ranges().add_to(around, row);
  if (view.frozen_have_ranges()) {
    RowRangeDeletes frozen;
    ReadTrace trace;
    const TableView memory = view.with_files(std::make_shared<const SstableList>());
    CO_TRY_VOID(co_await frozen.load_older(memory, active.partition(), row, {}, trace));
    frozen.add_to(around, row);
  }
  superseded.add(around.range_deletes());
  co_return {};
}

}  // namespace

runtime::MaybeTask<Result<RowRead>> ReadPath::read_row(TableId table, TabletId tablet,
                                                       base::Bytes partition, base::Bytes row,
                                                       Until until) {
  using Answer = Result<RowRead>;
  if (state_.gate.closed()) return Answer(Error(Errc::closed));
  const auto found = state_.find(table, tablet);
  if (!found) return Answer(found.error());
  state_.advance_durable();
  // The view and the clock are of one moment (S4).
  RowSearch search{.view = view_of(*found),
                   .read = {.partition = {},
                            .clock = found->tablet->durable,
                            .floor = found->tablet->floors.of_row(table, partition, row)},
                   .sequence = state_.staged.last_sequence(),
                   .clock_sequence = state_.staged.durable_sequence(),
                   .older = {.superseded = Superseded(found->table->options().policy, tablet)}};
  // Deletes of ranges of what is older take further looks.
  if (search.view.older_may_have_ranges()) {
    return read_row_in_files(table, tablet, std::move(partition), std::move(row), std::move(search),
                             std::move(until));
  }
  ActiveRow active(search.view, partition, row);
  if (search.view.has_files()) add_active(active, row, search.older.superseded);
  const EncodedKey key({partition, EntryKind::row, row});
  const auto is_all = search.view.look_in_memory(key.view(), search.older, search.trace);
  if (!is_all) return Answer(is_all.error());
  if (!*is_all) {
    return read_row_in_files(table, tablet, std::move(partition), std::move(row), std::move(search),
                             std::move(until));
  }
  Entry& entry = search.older.entry;
  active.add_to(entry, search.trace);
  count_read(search.trace, !entry.empty());
  search.read.partition = assemble_row(row, std::move(entry), {}, active.ranges());
  search.read.is_newer_than_clock = search.trace.sequence > search.clock_sequence;
  if (search.trace.sequence <= state_.staged.durable_sequence()) {
    return Answer(std::move(search.read));
  }
  return show_when_durable(std::move(search.read), search.trace.sequence, std::move(until));
}

Task<Result<RowRead>> ReadPath::show_when_durable(RowRead read, std::uint64_t sequence,
                                                  Until until) {
  CO_TRY(const auto pass, state_.gate.enter());
  CO_TRY_VOID(co_await wait_durable(sequence, std::move(until)));
  co_return read;
}

void ReadPath::count_read(const ReadTrace& trace, bool is_found) {
  EngineStatistics& statistics = state_.statistics;
  ++statistics.reads;
  if (!is_found) ++statistics.reads_found_nothing;
  if (trace.memtables_with_key > 0) ++statistics.reads_from_memtables;
  if (trace.sstables_with_key > 0) ++statistics.reads_from_sstables;
  statistics.sstables_superseded += trace.sstables_superseded;
  statistics.blocks_per_read.record(trace.blocks_read);
  statistics.sstables_per_read.record(trace.sstables_in_range - trace.sstables_filtered);
}

Task<Result<RowRead>> ReadPath::read_row_in_files(TableId table, TabletId tablet,
                                                  base::Bytes partition, base::Bytes row,
                                                  RowSearch search, Until until) {
  CO_TRY(const auto pass, state_.gate.enter());
  const TableView& view = search.view;
  ReadTrace& trace = search.trace;
  // Newer than the view if it was taken a while ago; it is read again in the end.
  const std::uint64_t active_sequence = state_.staged.last_sequence();
  ActiveRow active(view, partition, row);
  if (!search.older.has_begun && view.has_files()) {
    CO_TRY_VOID(co_await add_memory(view, active, row, search.older.superseded));
  }
  const EncodedKey key({partition, EntryKind::row, row});
  std::shared_ptr<const SstableList> needed;
  CO_TRY(auto entry,
         co_await view.find_older_row(key.view(), std::move(search.older), needed, until, trace));
  RowRangeDeletes older;
  const TableView rest = view.with_files(std::move(needed));
  if (rest.older_may_have_ranges()) {
    CO_TRY_VOID(co_await older.load_older(rest, partition, row, until, trace));
  }
  // Writes may have come while it waited. What they did to the row and to ranges around it is read
  // in one step.
  if (state_.staged.last_sequence() != active_sequence) active.read();
  active.add_to(entry, trace);
  RowRead& read = search.read;
  if (state_.staged.last_sequence() != search.sequence) {
    CO_TRY(const auto found_now, state_.find(table, tablet));
    read.floor = std::max(read.floor, found_now.tablet->floors.of_row(table, partition, row));
  }
  count_read(trace, !entry.empty());
  read.partition = assemble_row(row, std::move(entry), older, active.ranges());
  read.is_newer_than_clock = trace.sequence > search.clock_sequence;
  if (trace.sequence > state_.staged.durable_sequence()) {
    CO_TRY_VOID(co_await wait_durable(trace.sequence, until));
  }
  co_return std::move(read);
}

Result<std::unique_ptr<TableCursor>> ReadPath::cursor(TableId table, TabletId tablet,
                                                      SstableCursorOptions options) {
  TRY(auto pass, state_.gate.enter());
  TRY(const auto found, state_.find(table, tablet));
  if (found.table->is_index() && !found.table->index_is_built()) {
    return Error(Errc::unavailable, "index {} is being built", table);
  }
  state_.advance_durable();
  return std::make_unique<TableCursor>(std::move(pass), view_of(found), found.tablet->range,
                                       found.tablet->durable, state_.staged.durable_sequence(),
                                       std::move(options));
}

Result<causality::Timestamp> ReadPath::row_floor(TableId table, TabletId tablet, ByteView partition,
                                                 ByteView row) {
  TRY(const auto found, state_.find(table, tablet));
  return found.tablet->floors.of_row(table, partition, row);
}

Result<causality::Timestamp> ReadPath::partition_floor(TableId table, TabletId tablet,
                                                       ByteView partition) {
  TRY(const auto found, state_.find(table, tablet));
  const causality::RowRange everything;
  return found.tablet->floors.of(table, partition, {}, {&everything, 1});
}

Task<Result<void>> ReadPath::wait_durable(std::uint64_t sequence, Until until) {
  state_.advance_durable();
  if (sequence <= state_.staged.durable_sequence()) co_return {};
  const LogPosition position = state_.staged.position_of(sequence);
  ++state_.statistics.reads_waited_for_log;
  co_return co_await state_.log->durable(position, std::move(until));
}

}  // namespace helenus::storage
