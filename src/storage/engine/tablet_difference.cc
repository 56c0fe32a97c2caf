#include "storage/engine/tablet_difference.h"

#include <algorithm>
#include <string>
#include <utility>

#include <absl/container/btree_map.h>

#include "base/assert.h"
#include "causality/counter.h"
#include "storage/compaction/background_slice.h"
#include "storage/entry/entry.h"

namespace helenus::storage {

using base::ByteView;
using base::Result;
using causality::CellStore;
using causality::Clock;
using causality::Version;
using causality::Versions;
using runtime::Task;

namespace {

class Difference final : public EntrySource {
 public:
  Difference(runtime::Runtime& runtime, DifferenceOf of, runtime::StopToken stop)
      : runtime_(runtime), of_(std::move(of)), stop_(std::move(stop)) {}

  Motion seek(ByteView key) override {
    ASSERT(key.empty(), "a difference is read from its beginning");
    return begin();
  }
  Motion seek_before(ByteView /*key*/) override { return only_forward(); }
  Motion next() override { return find(); }
  Motion previous() override { return only_forward(); }
  bool valid() const override { return valid_; }
  RowKey key() const override {
    return {.bytes = base::as_bytes(key_), .partition_size = partition_size_};
  }
  Result<void> absorb_into(Entry& entry) const override {
    entry.absorb(found_);
    return {};
  }

 private:
  // After so many keys it asks whether its slice is over.
  static constexpr std::size_t kKeysPerLook = 32;

  static Motion only_forward() {
    return Result<void>(base::Error(base::Errc::unsupported, "a difference is read forward"));
  }

  Task<Result<void>> begin() {
    CO_TRY_VOID(co_await of_.theirs->seek({}));
    CO_TRY_VOID(co_await of_.ours->seek({}));
    co_return co_await find();
  }

  // Below zero: theirs comes first; zero: both have the key. Requires: one of them is valid.
  int compare_keys() const {
    if (!of_.theirs->valid()) return 1;
    if (!of_.ours->valid()) return -1;
    const auto order = base::compare(of_.theirs->key().bytes, of_.ours->key().bytes);
    return order < 0 ? -1 : order > 0 ? 1 : 0;
  }

  // To the next key at which there is something.
  Task<Result<void>> find() {
    valid_ = false;
    while (of_.theirs->valid() || of_.ours->valid()) {
      const int order = compare_keys();
      stand_on(order <= 0 ? of_.theirs->key() : of_.ours->key());
      their_entry_.clear();
      our_entry_.clear();
      if (order <= 0) {
        CO_TRY_VOID(of_.theirs->absorb_into(their_entry_));
        CO_TRY_VOID(co_await of_.theirs->next());
      }
      if (order >= 0) {
        CO_TRY_VOID(of_.ours->absorb_into(our_entry_));
        CO_TRY_VOID(co_await of_.ours->next());
      }
      found_.clear();
      if (key_parts(base::as_bytes(key_), partition_size_).kind == EntryKind::row) {
        CO_TRY_VOID(compare_rows());
      } else {
        compare_ranges();
      }
      if (++keys_ % kKeysPerLook == 0) CO_TRY_VOID(co_await end_slice(runtime_, stop_));
      valid_ = !found_.empty();
      if (valid_) co_return {};
    }
    co_return {};
  }

  void stand_on(RowKey key) {
    const bool same_partition =
        key.partition_size == partition_size_ &&
        base::as_text(key.partition()) == std::string_view(key_).substr(0, partition_size_);
    if (!same_partition) {
      our_ranges_.clear();
      their_ranges_.clear();
      is_at_rows_ = false;
    }
    key_.assign(base::as_text(key.bytes));
    partition_size_ = key.partition_size;
  }

  Versions news_of(const CellStore& theirs) const {
    Versions unseen;
    for (const Version& version : theirs.versions()) {
      if (!of_.clock.contains(version.dot)) unseen.push_back(version);
    }
    return unseen;
  }

  // Of deletes of rows: what they name may be in any cell of the rows, and so is kept whole.
  CellStore news_of_deletes(const CellStore& theirs, const CellStore& ours) const {
    Versions unseen = news_of(theirs);
    if (unseen.empty() && ours.context().covers(theirs.context())) return {};
    return {std::move(unseen), theirs.context()};
  }

  const CellStore& our_range(const causality::RowRange& range) const {
    static const CellStore kNothing;
    for (const auto& each : our_entry_.deleted_ranges()) {
      if (each.range == range) return each.store;
    }
    return kNothing;
  }

  void compare_ranges() {
    for (const auto& each : our_entry_.deleted_ranges()) {
      add_dots(each.store, our_ranges_[each.range]);
    }
    for (const auto& each : their_entry_.deleted_ranges()) {
      add_dots(each.store, their_ranges_[each.range]);
    }
    for (const RangeDepth depth : their_entry_.depths()) found_.add_depth(depth);
    for (const auto& each : their_entry_.deleted_ranges()) {
      CellStore news = news_of_deletes(each.store, our_range(each.range));
      if (!news.empty()) found_.absorb({.range = each.range, .store = std::move(news)});
    }
  }

  // All of the partition's ranges were seen: of ours those stay that the other one has let go of,
  // and of theirs those that tell for which rows it has not.
  void end_ranges() {
    if (std::exchange(is_at_rows_, true)) return;
    Clock let_go;
    for (auto& [range, dots] : our_ranges_) {
      dots = causality::meet(dots, of_.claim);
      const auto theirs = their_ranges_.find(range);
      if (theirs != their_ranges_.end()) dots = causality::subtract(dots, theirs->second);
      let_go = causality::join(let_go, dots);
    }
    const auto is_empty = [](const auto& each) { return each.second.empty(); };
    absl::erase_if(our_ranges_, is_empty);
    for (auto& [range, dots] : their_ranges_) dots = causality::meet(dots, let_go);
    absl::erase_if(their_ranges_, is_empty);
  }

  // The dots of deletes that hold for the row here, and held for it at the other one, and do no
  // more.
  Clock let_go_around_row() {
    end_ranges();
    Clock around;
    add_dots(our_entry_.row_deletes(), around);
    around = causality::meet(around, of_.claim);
    Clock alive;
    add_dots(their_entry_.row_deletes(), alive);
    const auto row =
        base::Bytes::copy_of(key_parts(base::as_bytes(key_), partition_size_).clustering);
    for (const auto& [range, dots] : our_ranges_) {
      if (range.contains(row)) around = causality::join(around, dots);
    }
    for (const auto& [range, dots] : their_ranges_) {
      if (range.contains(row)) alive = causality::join(alive, dots);
    }
    return causality::subtract(around, alive);
  }

  Result<void> compare_rows() {
    const Clock around = let_go_around_row();
    const CellStore deletes = news_of_deletes(their_entry_.row_deletes(), our_entry_.row_deletes());
    if (!deletes.empty()) found_.absorb_row_deletes(deletes);
    for (const auto& [column, ours] : our_entry_.row().cells()) {
      TRY_VOID(compare_cells(column, their_entry_.row().cell(column), ours, around));
    }
    const CellStore nothing;
    for (const auto& [column, theirs] : their_entry_.row().cells()) {
      const auto& ours = our_entry_.row().cells();
      if (ours.find(column) != ours.end()) continue;
      TRY_VOID(compare_cells(column, theirs, nothing, around));
    }
    return {};
  }

  Result<void> compare_cells(causality::ColumnId column, const CellStore& theirs,
                             const CellStore& ours, const Clock& around) {
    if (causality::is_counter(theirs) || causality::is_counter(ours)) {
      return compare_counters(column, theirs, ours);
    }
    Versions news = news_of(theirs);
    Clock here;
    add_dots(ours, here);
    Clock gone = here;
    if (!news.empty()) gone = causality::join(gone, around);
    gone = causality::meet(gone, of_.claim);
    for (const Version& version : theirs.versions()) {
      if (gone.contains(version.dot)) gone.remove(version.dot);
    }
    const Clock said = news.empty()
                           ? causality::join(causality::meet(theirs.context(), here),
                                             causality::subtract(theirs.context(), of_.clock))
                           : theirs.context();
    CellStore cell(std::move(news), causality::join(said, gone));
    if (!cell.empty()) found_.absorb_cell(column, std::move(cell));
    return {};
  }

  // The dots of a counter do not say what was folded into it (R14).
  Result<void> compare_counters(causality::ColumnId column, const CellStore& theirs,
                                const CellStore& ours) {
    auto cell = causality::counter_difference(theirs, of_.claim, ours);
    if (!cell) {
      return base::Error(base::Errc::refused,
                         "the other replica has not seen what a counter here was folded of");
    }
    if (!cell->empty()) found_.absorb_cell(column, *std::move(cell));
    return {};
  }

  static void add_dots(const CellStore& store, Clock& dots) {
    for (const Version& version : store.versions()) dots.add(version.dot);
  }

  runtime::Runtime& runtime_;
  const DifferenceOf of_;
  const runtime::StopToken stop_;
  std::string key_;
  std::uint16_t partition_size_ = 0;
  // Of the partition, with the dots of their versions.
  absl::btree_map<causality::RowRange, Clock> our_ranges_;
  absl::btree_map<causality::RowRange, Clock> their_ranges_;
  bool is_at_rows_ = false;
  Entry their_entry_;
  Entry our_entry_;
  Entry found_;
  bool valid_ = false;
  std::uint64_t keys_ = 0;
};

}  // namespace

std::unique_ptr<EntrySource> difference(runtime::Runtime& runtime, DifferenceOf of,
                                        runtime::StopToken stop) {
  return std::make_unique<Difference>(runtime, std::move(of), std::move(stop));
}

}  // namespace helenus::storage
