#include "storage/entry/range_delete_key.h"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include "causality/range_index.h"
#include "storage/ids/row_key.h"

namespace helenus::storage {
namespace {

base::Bytes text(std::string_view letters) {
  return base::Bytes::copy_of(letters);
}

// From few letters, some of which share a digit, so that keys have much in common.
base::Bytes any_key() {
  return text(*rc::gen::container<std::string>(rc::gen::element('\x00', '\x01', '\x10', '\xff')));
}

causality::RowRange any_range() {
  causality::RowRange row_range;
  base::Bytes from = any_key();
  base::Bytes to = any_key();
  if (to < from) std::swap(from, to);
  if (*rc::gen::inRange(0, 6) != 0) row_range.from = from;
  if (*rc::gen::inRange(0, 6) != 0 && from != to) row_range.to = to;
  return row_range;
}

TEST(RangeDeleteKey, ARangeLiesUnderWhatItsBoundsHaveInCommon) {
  EXPECT_EQ(depth_of({text("ab"), text("ac")}, 1), 3U) << "a, and the 6 of b and c";
  EXPECT_EQ(depth_of({text("ab"), text("az")}, 1), 2U);
  EXPECT_EQ(depth_of({text("ab"), text("abc")}, 1), 4U);
  EXPECT_EQ(depth_of({text("ab"), std::nullopt}, 1), 0U);
  EXPECT_EQ(depth_of({std::nullopt, text("ab")}, 1), 0U);
  EXPECT_EQ(range_path(base::as_bytes("ab"), 2), "a\x80");
  EXPECT_EQ(range_path(base::as_bytes("ab"), 3), "a\x68");
  EXPECT_EQ(range_path(base::as_bytes("ab"), 0), "");
}

TEST(RangeDeleteKey, APathLeavesRoomForThePartition) {
  const std::string most(kRowKeySizeMax - 10, 'x');
  const causality::RowRange row_range{text(most + "aaaaaaaaaaaaaaaa"),
                                      text(most + "aaaaaaaaaaaaaaab")};
  const RangeDepth depth = depth_of(row_range, 100);
  EXPECT_EQ(100 + 1 + range_path(*row_range.from, depth).size(), kRowKeySizeMax);
  EXPECT_EQ(depth_of(row_range, kRowKeySizeMax), 0U);
}

RC_GTEST_PROP(RangeDeleteKey, ARowThatARangeHoldsBeginsWithItsPath, ()) {
  const causality::RowRange row_range = any_range();
  const base::Bytes row = any_key();
  const RangeDepth depth = depth_of(row_range, 1);
  if (depth == 0 || !row_range.contains(row)) return;
  RC_ASSERT(has_digits(row, depth));
  RC_ASSERT(same_digits(row, *row_range.from, depth));
  RC_ASSERT(range_path(row, depth) == range_path(*row_range.from, depth));
}

RC_GTEST_PROP(RangeDeleteKey, DifferentDigitsHaveDifferentPaths, ()) {
  const base::Bytes a = any_key();
  const base::Bytes b = any_key();
  const auto depth_a = static_cast<RangeDepth>(*rc::gen::inRange<std::size_t>(0, 2 * a.size() + 1));
  const auto depth_b = static_cast<RangeDepth>(*rc::gen::inRange<std::size_t>(0, 2 * b.size() + 1));
  const bool same = depth_a == depth_b && same_digits(a, b, depth_a);
  RC_ASSERT((range_path(a, depth_a) == range_path(b, depth_b)) == same);
}

RC_GTEST_PROP(RangeDeleteKey, NoMoreThanSixteenRangesOfAPathAreDisjoint, ()) {
  std::vector<causality::RowRange> disjoint;
  const std::string path = *rc::gen::element<std::string>("", "a", "ab");
  std::set<std::string> bounds;
  for (const auto& rest :
       *rc::gen::container<std::vector<std::string>>(rc::gen::arbitrary<std::string>())) {
    bounds.insert(path + rest);
  }
  const auto depth = static_cast<RangeDepth>(2 * path.size());
  for (auto at = bounds.begin(); at != bounds.end() && std::next(at) != bounds.end(); ++at) {
    const causality::RowRange row_range{text(*at), text(*std::next(at))};
    if (depth_of(row_range, 1) == depth) disjoint.push_back(row_range);
  }
  RC_ASSERT(disjoint.size() <= 16U);
}

RC_GTEST_PROP(RangeIndex, FindsWhatALookAtEachWouldFind, ()) {
  causality::PartitionStore store;
  causality::Version version;
  version.dot = {causality::actor_of(1, 1), 1};
  causality::CellStore something;
  something.add(version);
  const auto count = *rc::gen::inRange(0, 40);
  for (int i = 0; i < count; ++i) store.absorb({any_range(), something});
  const causality::RangeIndex index(store.range_deletes());
  const causality::RowRange sought = any_range();
  std::vector<causality::RowRange> found;
  index.each_overlapping(sought,
                         [&](const auto& range_delete) { found.push_back(range_delete.range); });
  std::vector<causality::RowRange> wanted;
  for (const auto& range_delete : store.range_deletes()) {
    if (range_delete.range.overlaps(sought)) wanted.push_back(range_delete.range);
  }
  RC_ASSERT(found == wanted);
}

}  // namespace
}  // namespace helenus::storage
