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

causality::Scope any_scope() {
  causality::Scope scope;
  base::Bytes from = any_key();
  base::Bytes to = any_key();
  if (to < from) std::swap(from, to);
  if (*rc::gen::inRange(0, 6) != 0) scope.from = from;
  if (*rc::gen::inRange(0, 6) != 0 && from != to) scope.to = to;
  return scope;
}

TEST(ScopePlace, ARangeLiesUnderWhatItsBoundsHaveInCommon) {
  EXPECT_EQ(depth_of({text("ab"), text("ac")}, 1), 3U) << "a, and the 6 of b and c";
  EXPECT_EQ(depth_of({text("ab"), text("az")}, 1), 2U);
  EXPECT_EQ(depth_of({text("ab"), text("abc")}, 1), 4U);
  EXPECT_EQ(depth_of({text("ab"), std::nullopt}, 1), 0U);
  EXPECT_EQ(depth_of({std::nullopt, text("ab")}, 1), 0U);
  EXPECT_EQ(scope_path(base::as_bytes("ab"), 2), "a\x80");
  EXPECT_EQ(scope_path(base::as_bytes("ab"), 3), "a\x68");
  EXPECT_EQ(scope_path(base::as_bytes("ab"), 0), "");
}

TEST(ScopePlace, APathLeavesRoomForThePartition) {
  const std::string most(kRowKeySizeMax - 10, 'x');
  const causality::Scope scope{text(most + "aaaaaaaaaaaaaaaa"), text(most + "aaaaaaaaaaaaaaab")};
  const ScopeDepth depth = depth_of(scope, 100);
  EXPECT_EQ(100 + 1 + scope_path(*scope.from, depth).size(), kRowKeySizeMax);
  EXPECT_EQ(depth_of(scope, kRowKeySizeMax), 0U);
}

RC_GTEST_PROP(ScopePlace, ARowThatARangeHoldsBeginsWithItsPath, ()) {
  const causality::Scope scope = any_scope();
  const base::Bytes row = any_key();
  const ScopeDepth depth = depth_of(scope, 1);
  if (depth == 0 || !scope.contains(row)) return;
  RC_ASSERT(has_digits(row, depth));
  RC_ASSERT(same_digits(row, *scope.from, depth));
  RC_ASSERT(scope_path(row, depth) == scope_path(*scope.from, depth));
}

RC_GTEST_PROP(ScopePlace, DifferentDigitsHaveDifferentPaths, ()) {
  const base::Bytes a = any_key();
  const base::Bytes b = any_key();
  const auto depth_a = static_cast<ScopeDepth>(*rc::gen::inRange<std::size_t>(0, 2 * a.size() + 1));
  const auto depth_b = static_cast<ScopeDepth>(*rc::gen::inRange<std::size_t>(0, 2 * b.size() + 1));
  const bool same = depth_a == depth_b && same_digits(a, b, depth_a);
  RC_ASSERT((scope_path(a, depth_a) == scope_path(b, depth_b)) == same);
}

RC_GTEST_PROP(ScopePlace, NoMoreThanSixteenRangesOfAPathAreDisjoint, ()) {
  std::vector<causality::Scope> disjoint;
  const std::string path = *rc::gen::element<std::string>("", "a", "ab");
  std::set<std::string> bounds;
  for (const auto& rest :
       *rc::gen::container<std::vector<std::string>>(rc::gen::arbitrary<std::string>())) {
    bounds.insert(path + rest);
  }
  const auto depth = static_cast<ScopeDepth>(2 * path.size());
  for (auto at = bounds.begin(); at != bounds.end() && std::next(at) != bounds.end(); ++at) {
    const causality::Scope scope{text(*at), text(*std::next(at))};
    if (depth_of(scope, 1) == depth) disjoint.push_back(scope);
  }
  RC_ASSERT(disjoint.size() <= 16U);
}

RC_GTEST_PROP(ScopeIndex, FindsWhatALookAtEachWouldFind, ()) {
  causality::PartitionStore store;
  causality::Version version;
  version.dot = {causality::actor_of(1, 1), 1};
  causality::CellStore something;
  something.add(version);
  const auto count = *rc::gen::inRange(0, 40);
  for (int i = 0; i < count; ++i) store.absorb({any_scope(), something});
  const causality::ScopeIndex index(store.scoped());
  const causality::Scope sought = any_scope();
  std::vector<causality::Scope> found;
  index.each_overlapping(sought, [&](const auto& scoped) { found.push_back(scoped.scope); });
  std::vector<causality::Scope> wanted;
  for (const auto& scoped : store.scoped()) {
    if (scoped.scope.overlaps(sought)) wanted.push_back(scoped.scope);
  }
  RC_ASSERT(found == wanted);
}

}  // namespace
}  // namespace helenus::storage
