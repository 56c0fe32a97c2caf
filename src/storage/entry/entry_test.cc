// Entries: their keys, their bytes, and that settling one loses nothing a reader may see.
#include "storage/entry/entry.h"

#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include "causality/codec.h"
#include "causality/generators.h"

namespace helenus::storage {
namespace {

using causality::CellStore;
using causality::Clock;
using causality::ColumnId;
using causality::Delta;
using causality::PartitionStore;
using causality::Policy;

base::Bytes text(std::string_view letters) {
  return base::Bytes::copy_of(letters);
}

base::Bytes encoded(const Entry& entry) {
  base::Buffer buffer;
  base::Encoder out(buffer);
  encode(out, entry);
  return std::move(buffer).freeze();
}

Delta put_of(std::uint64_t counter, std::uint32_t column, std::string_view value) {
  Delta delta;
  delta.dot = {causality::actor_of(3, 1), counter};
  delta.timestamp = causality::Timestamp{1000};
  causality::CellChange change;
  change.row = text("r");
  change.column = ColumnId{column};
  change.value = text(value);
  delta.cells.push_back(std::move(change));
  return delta;
}

Delta delete_of(std::uint64_t counter, causality::RowRange row_range) {
  Delta delta;
  delta.dot = {causality::actor_of(3, 1), counter};
  delta.timestamp = causality::Timestamp{2000};
  for (std::uint64_t seen = 1; seen < counter; ++seen) {
    delta.context.dots.add(causality::Dot{causality::actor_of(3, 1), seen});
  }
  delta.deleted_ranges.push_back(std::move(row_range));
  return delta;
}

TEST(Entry, KeysOfAPartitionStayTogetherAndRangesComeFirst) {
  const auto row_key = [](std::string_view row) {
    return encode_key({base::as_bytes("p"), EntryKind::row, base::as_bytes(row)});
  };
  const auto ranges_key = [](std::string_view partition) {
    return encode_key({base::as_bytes(partition), EntryKind::deleted_ranges, {}});
  };
  EXPECT_LT(ranges_key("p"), row_key(""));
  EXPECT_LT(row_key("\xff\xff"), ranges_key("q"));
  const std::string first = row_key("");
  const EntryKey parts = key_parts(base::as_bytes(first), 1);
  EXPECT_EQ(base::as_text(parts.partition), "p");
  EXPECT_EQ(parts.kind, EntryKind::row);
}

TEST(Entry, WhatMergesLetGrowBeyondAnyMutationComesBack) {
  Entry row;
  Entry deleted_ranges;
  for (std::uint32_t i = 0; i < 25; ++i) {
    Delta writes;
    writes.dot = {causality::actor_of(1, 1), i + 1};
    Delta deletes = writes;
    for (std::uint32_t j = i * 4000; j < (i + 1) * 4000; ++j) {
      writes.cells.push_back(put_of(1, j, "v").cells.front());
      deletes.deleted_ranges.push_back(causality::range_of_row(text(fmt::format("{:06}", j))));
    }
    row.absorb(writes, Policy::lww);
    deleted_ranges.absorb(deletes, Policy::lww);
  }
  ASSERT_EQ(row.row().cells().size(), 100'000U);
  ASSERT_EQ(deleted_ranges.deleted_ranges().size(), 100'000U);
  EXPECT_EQ(decode_entry(encoded(row)).value(), row);
  EXPECT_EQ(decode_entry(encoded(deleted_ranges)).value(), deleted_ranges);
}

RC_GTEST_PROP(Entry, EncodingRoundTripsAndEveryTruncationIsRefused, ()) {
  Entry entry;
  const bool deleted_ranges = *rc::gen::arbitrary<bool>();
  for (const auto& dot :
       *rc::gen::container<std::set<causality::Dot>>(causality::testing::any_dot())) {
    Delta delta = causality::testing::delta_of(dot);
    const bool deletes_row = *rc::gen::arbitrary<bool>();
    if (deleted_ranges) {
      delta.cells.clear();
      if (delta.deleted_ranges.empty()) delta.deleted_ranges.push_back({});
      if (deletes_row) entry.add_depth(*rc::gen::inRange(1U, 200U));
    } else if (deletes_row) {
      delta.cells.clear();
      delta.deleted_ranges = {causality::range_of_row(text("r"))};
      entry.absorb_row_delete(delta, Policy::lww);
      continue;
    } else {
      delta.deleted_ranges.clear();
      if (delta.cells.size() != 1) continue;
    }
    entry.absorb(delta, Policy::lww);
  }
  const base::Bytes bytes = encoded(entry);
  const auto decoded = decode_entry(bytes);
  RC_ASSERT(decoded.has_value());
  RC_ASSERT(*decoded == entry);
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    RC_ASSERT(!decode_entry(bytes.slice(0, size)).has_value());
  }
}

TEST(Entry, ALaterFormatAndDeletesThatSayNothingAreRefused) {
  Entry entry;
  entry.absorb_row_delete(delete_of(2, causality::range_of_row(text("r"))), Policy::lww);
  std::string bytes(encoded(entry).text());
  ASSERT_EQ(bytes[0], 2);
  bytes[0] = 4;
  EXPECT_TRUE(decode_entry(text(bytes)).failed_with(base::Errc::unsupported));
  // The deletes: a cell without versions and without a context. The row: no cells.
  const std::string nothing("\x02\x04\x01\x00\x00\x00\x01\x00", 8);
  EXPECT_TRUE(decode_entry(text(nothing)).failed_with(base::Errc::corrupt));
  // No depth, a depth of zero, one twice, one that no key has.
  for (const std::string& depths : {std::string("\x00", 1), std::string("\x01\x00", 2),
                                    std::string("\x02\x05\x05"), std::string("\x01\xff\xff\x0f")}) {
    const std::string first = "\x03" + depths + std::string(1, '\0');
    EXPECT_TRUE(decode_entry(text(first)).failed_with(base::Errc::corrupt));
  }
}

// ---- Golden bytes: docs/formats/engine.md takes them apart ----

std::string golden(const std::string& name) {
  std::ifstream file(std::string(HELENUS_TESTDATA "/") + name, std::ios::binary);
  EXPECT_TRUE(file.is_open()) << name;
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(Entry, ARowAndRangesAreReadForEver) {
  Entry row;
  row.absorb(put_of(1, 0, "red"), Policy::lww);
  EXPECT_EQ(decode_entry(text(golden("entry-row-v1"))).value(), row);
  EXPECT_EQ(encoded(row).text(), golden("entry-row-v1"));
  Entry deleted_ranges;
  deleted_ranges.absorb(delete_of(2, causality::range_of_row(text("r"))), Policy::lww);
  deleted_ranges.absorb(delete_of(3, {text("a"), std::nullopt}), Policy::lww);
  EXPECT_EQ(decode_entry(text(golden("entry-ranges-v1"))).value(), deleted_ranges);
  EXPECT_EQ(encoded(deleted_ranges).text(), golden("entry-ranges-v1"));
}

TEST(Entry, ADeletedRowIsReadForEver) {
  Entry row;
  row.absorb_row_delete(delete_of(2, causality::range_of_row(text("r"))), Policy::lww);
  Delta later = put_of(3, 0, "blue");
  later.timestamp = causality::Timestamp{3000};
  later.context.dots.add(causality::Dot{causality::actor_of(3, 1), 1});
  later.context.dots.add(causality::Dot{causality::actor_of(3, 1), 2});
  row.absorb(later, Policy::lww);
  EXPECT_EQ(decode_entry(text(golden("entry-deleted-row-v1"))).value(), row);
  EXPECT_EQ(encoded(row).text(), golden("entry-deleted-row-v1"));
}

TEST(Entry, TheFirstOfManyRangesIsReadForEver) {
  Entry deleted_ranges;
  deleted_ranges.absorb(delete_of(3, {text("a"), std::nullopt}), Policy::lww);
  deleted_ranges.add_depth(300);
  deleted_ranges.add_depth(2);
  deleted_ranges.add_depth(300);
  EXPECT_EQ(decode_entry(text(golden("entry-first-of-ranges-v1"))).value(), deleted_ranges);
  EXPECT_EQ(encoded(deleted_ranges).text(), golden("entry-first-of-ranges-v1"));
}

// ---- Settling ----

using causality::RangesAround;

// With those that hold the row.
RangesAround around(const PartitionStore& deleted_ranges, const base::Bytes& row, Policy policy,
                    const Clock& known, const causality::Stability& stable) {
  RangesAround found(policy, known, stable);
  for (const causality::RangeDelete& range_delete : deleted_ranges.range_deletes()) {
    if (range_delete.range.contains(row)) found.add(range_delete);
  }
  return found;
}

// A partition of one row, "b", as a merge finds it: the row's entry and the ranges, among which
// there may be deletes of the row, too.
struct Fragments {
  Entry row;
  PartitionStore deleted_ranges;
  Clock seen;

  void add(const Delta& delta, Policy policy, bool among_ranges) {
    seen.add(delta.dot);
    const PartitionStore fragment = causality::fragment_of(delta, policy);
    for (const auto& [key, cells] : fragment.rows()) {
      if (key != text("b")) continue;
      Delta part = delta;
      part.deleted_ranges.clear();
      std::erase_if(part.cells, [](const auto& cell) { return cell.row != text("b"); });
      row.absorb(std::move(part), policy);
    }
    for (const causality::RangeDelete& range_delete : fragment.range_deletes()) {
      if (range_delete.range == causality::range_of_row(text("b")) && !among_ranges) {
        Delta part = delta;
        part.timestamp = causality::timestamp_of_range_deletes(delta);
        part.cells.clear();
        part.deleted_ranges = {range_delete.range};
        row.absorb_row_delete(part, policy);
      } else {
        deleted_ranges.absorb(range_delete);
      }
    }
  }

  CellStore cell(ColumnId column) const {
    CellStore found = row.row().cell(column);
    found.absorb(row.row_deletes());
    for (const causality::RangeDelete& range_delete : deleted_ranges.range_deletes()) {
      if (range_delete.range.contains(text("b"))) found.absorb(range_delete.store);
    }
    return found;
  }

  // As a merge does that has everything of the partition.
  void settle(Policy policy, const Clock& known, const causality::Stability& stable) {
    auto judges = around(deleted_ranges, text("b"), policy, known, stable);
    row.apply_ranges_to_row(judges);
    causality::drop_stable(deleted_ranges, policy, stable);
    deleted_ranges.strip(known);
  }
};

Delta any_delta_of_row(const causality::Dot& dot) {
  Delta delta = causality::testing::delta_of(dot);
  const int kind = *rc::gen::inRange(0, 4);
  if (kind == 0) delta.deleted_ranges = {causality::range_of_row(text("b"))};
  if (kind == 1) delta.deleted_ranges = {*causality::testing::any_range()};
  if (kind == 2) delta.deleted_ranges.clear();
  if (delta.cells.empty() && delta.deleted_ranges.empty()) delta.deleted_ranges.push_back({});
  return delta;
}

// The law of strip (causality/dot_store.h), for a row whose deletes lie apart from its ranges: what
// a reader sees and what is sent to others stays as it was, and what comes later meets the same.
RC_GTEST_PROP(Entry, SettlingARowWithItsDeletesLosesNothing, ()) {
  const Policy policy = *rc::gen::element(Policy::lww, Policy::siblings);
  Fragments fragments;
  for (const auto& dot :
       *rc::gen::container<std::set<causality::Dot>>(causality::testing::any_dot())) {
    fragments.add(any_delta_of_row(dot), policy, *rc::gen::inRange(0, 4) == 0);
  }
  Fragments settled = fragments;
  const Clock known = causality::base(fragments.seen);
  settled.settle(policy, known, {});
  const Delta later = any_delta_of_row({causality::actor_of(9, 9), 1});
  for (const bool with_later : {false, true}) {
    if (with_later) {
      fragments.add(later, policy, false);
      settled.add(later, policy, false);
    }
    for (const std::uint32_t column : {0U, 1U, 2U}) {
      const CellStore wanted = fragments.cell(ColumnId{column});
      const CellStore found = settled.cell(ColumnId{column});
      RC_ASSERT(causality::fill(found, fragments.seen) == causality::fill(wanted, fragments.seen));
    }
  }
}

// What is stable is dropped in the row and in the ranges by the same knowledge: a reader sees no
// difference.
RC_GTEST_PROP(Entry, DroppingWhatIsStableShowsNoDifference, ()) {
  Fragments fragments;
  for (const auto& dot :
       *rc::gen::container<std::set<causality::Dot>>(causality::testing::any_dot())) {
    Delta delta = any_delta_of_row(dot);
    // Timestamps extend causality: of one actor alone they are the order of its dots.
    if (dot.actor != causality::actor_of(1, 1)) continue;
    delta.context.dots = {};
    for (std::uint64_t seen = 1; seen < dot.counter; ++seen) {
      delta.context.dots.add(causality::Dot{dot.actor, seen});
    }
    delta.timestamp = causality::Timestamp{static_cast<std::int64_t>(10 * dot.counter)};
    fragments.add(delta, Policy::lww, *rc::gen::inRange(0, 4) == 0);
  }
  Fragments settled = fragments;
  const causality::Stability stable{.dots = causality::base(fragments.seen),
                                    .wall = causality::WallTime{0}};
  settled.settle(Policy::lww, stable.dots, stable);
  for (const std::uint32_t column : {0U, 1U, 2U}) {
    const CellStore wanted = fragments.cell(ColumnId{column});
    const CellStore found = settled.cell(ColumnId{column});
    const auto shown = [](const CellStore& cell) {
      std::vector<causality::Version> versions;
      for (const auto* version : causality::visible(cell, Policy::lww, causality::WallTime{0})) {
        versions.push_back(*version);
      }
      return versions;
    };
    RC_ASSERT(shown(found) == shown(wanted));
  }
}

TEST(Entry, AStableDeleteOfARowLeavesNothing) {
  Entry row;
  row.absorb(put_of(1, 0, "red"), Policy::lww);
  row.absorb_row_delete(delete_of(2, causality::range_of_row(text("r"))), Policy::lww);
  Clock known;
  known.add(causality::DotRange{causality::actor_of(3, 1), 1, 2});
  Entry unstable = row;
  const causality::Stability nothing;
  RangesAround by_nothing(Policy::lww, known, nothing);
  unstable.apply_ranges_to_row(by_nothing);
  EXPECT_TRUE(unstable.row().empty());
  EXPECT_EQ(unstable.row_deletes().versions().size(), 1U);
  EXPECT_TRUE(unstable.row_deletes().context().empty());
  const causality::Stability all{.dots = known, .wall = {}};
  RangesAround by_all(Policy::lww, known, all);
  row.apply_ranges_to_row(by_all);
  EXPECT_TRUE(row.empty());
}

TEST(Entry, ARangeDeletedLaterTakesTheDeletesOfItsRowsAlong) {
  Entry row;
  row.absorb_row_delete(delete_of(2, causality::range_of_row(text("r"))), Policy::lww);
  PartitionStore deleted_ranges;
  deleted_ranges.absorb(causality::fragment_of(delete_of(3, {text("a"), text("z")}), Policy::lww));
  Clock known;
  known.add(causality::DotRange{causality::actor_of(3, 1), 1, 3});
  const causality::Stability nothing;
  auto judges = around(deleted_ranges, text("r"), Policy::lww, known, nothing);
  row.apply_ranges_to_row(judges);
  EXPECT_TRUE(row.empty()) << "or it would be concurrent with the range, whose context is stripped";
}

}  // namespace
}  // namespace helenus::storage
