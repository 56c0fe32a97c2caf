#include "causality/range_sweep.h"

#include <algorithm>
#include <set>

#include <gtest/gtest.h>

#include "causality/generators.h"

namespace helenus::causality {
namespace {

using testing::any_cell;
using testing::any_clock;
using testing::any_scope;

PartitionStore any_scopes() {
  PartitionStore partition;
  const int scopes = *rc::gen::inRange(0, 9);
  for (int i = 0; i < scopes; ++i) partition.absorb(ScopedStore{*any_scope(), *any_cell()});
  return partition;
}

std::vector<ScopedStore> copy_of(std::span<const ScopedStore> scopes) {
  return {scopes.begin(), scopes.end()};
}

// Does all of it, so many scopes at a time.
template <class Work>
void advance_by(Work&& work, std::size_t step) {
  while (!work.advance(step)) {
  }
}

PartitionStore without_empty(const std::vector<ScopedStore>& scopes) {
  PartitionStore partition;
  for (const ScopedStore& scoped : scopes) partition.absorb(scoped);
  return partition;
}

RC_GTEST_PROP(ScopeSweepLaws, OpenAreTheScopesThatHoldThePlace, ()) {
  const PartitionStore partition = any_scopes();
  const auto scopes = partition.scoped();
  const auto step = *rc::gen::inRange<std::size_t>(1, 4);
  ScopeSweep sweep(scopes);
  std::set<const ScopedStore*> told;
  const auto on_change = [&](const ScopedStore& scoped, bool opens) {
    const bool changed = opens ? told.insert(&scoped).second : told.erase(&scoped) == 1;
    RC_ASSERT(changed);
  };
  for (const char* text : {"", "a", "aa", "b", "c", "cc", "d"}) {
    const auto place = base::Bytes::copy_of(text);
    while (!sweep.advance(place, step, on_change)) {
    }
    std::vector<const ScopedStore*> want;
    for (const ScopedStore& scoped : scopes) {
      if (scoped.scope.contains(place)) want.push_back(&scoped);
    }
    std::vector<const ScopedStore*> open(sweep.open().begin(), sweep.open().end());
    std::ranges::sort(open);
    RC_ASSERT(open == want);
    RC_ASSERT(std::ranges::equal(told, want));
    const auto begins_behind = [&](const ScopedStore& scoped) {
      return scoped.scope.from && place < *scoped.scope.from;
    };
    RC_ASSERT(static_cast<std::size_t>(std::ranges::count_if(scopes, begins_behind)) ==
              sweep.behind().size());
  }
}

RC_GTEST_PROP(ScopeSweepLaws, StrippingInStepsIsStrippingAsThePartitionDoes, ()) {
  const PartitionStore partition = any_scopes();
  const Clock known = base(*any_clock());
  std::vector<ScopedStore> scopes = copy_of(partition.scoped());
  advance_by(ScopesStripping(scopes, known), *rc::gen::inRange<std::size_t>(1, 4));
  PartitionStore plain = partition;
  plain.strip(known);
  std::size_t met = 0;
  for (const ScopedStore& scoped : partition.scoped()) {
    met += std::max<std::size_t>(scoped.store.versions().size(), 1);
  }
  RC_CLASSIFY(met <= kSparedMax, "few");
  if (met <= kSparedMax) RC_ASSERT(without_empty(scopes) == plain);
  for (const char* text : {"", "a", "aa", "b", "c", "cc", "d"}) {
    const CellStore got = without_empty(scopes).cell(base::Bytes::copy_of(text), ColumnId{0});
    const CellStore want = plain.cell(base::Bytes::copy_of(text), ColumnId{0});
    RC_ASSERT(std::ranges::equal(got.versions(), want.versions()));
    RC_ASSERT(got.context().covers(want.context()));
    RC_ASSERT(fill(got, known) == fill(want, known));
  }
}

RC_GTEST_PROP(ScopeSweepLaws, SettlingInStepsIsSettlingAtOnce, ()) {
  const PartitionStore partition = any_scopes();
  std::vector<ScopedStore> scopes = copy_of(partition.scoped());
  advance_by(ScopesInside(scopes), *rc::gen::inRange<std::size_t>(1, 4));
  PartitionStore at_once = partition;
  at_once.settle_scopes();
  RC_ASSERT(without_empty(scopes) == at_once);
}

// Deletes of a window that moves on, each of which has seen all before it.
std::vector<ScopedStore> windows(int count, int width) {
  std::vector<ScopedStore> scopes;
  Clock seen;
  for (int i = 0; i < count; ++i) {
    Version version;
    version.kind = VersionKind::empty;
    version.timestamp = Timestamp{i};
    const Clock context = seen;
    version.dot = event(seen, actor_of(1, 1));
    scopes.push_back({{base::Bytes::copy_of(fmt::format("{:06}", i)),
                       base::Bytes::copy_of(fmt::format("{:06}", i + width))},
                      CellStore({version}, context)});
  }
  return scopes;
}

Clock clock_of(Counter counter) {
  Clock clock;
  clock.add(actor_of(1, 1), CounterSet::up_to(counter));
  return clock;
}

TEST(ScopesStripping, GoesOnNamingTheVersionsOfScopesThatOverlap) {
  std::vector<ScopedStore> scopes = windows(1000, 10);
  const Clock known = clock_of(1000);
  advance_by(ScopesStripping(scopes, known), 7);
  const Clock& context = scopes[500].store.context();
  EXPECT_TRUE(context.contains({actor_of(1, 1), 500})) << "the one before it overlaps";
  EXPECT_TRUE(context.contains({actor_of(1, 1), 492}));
  EXPECT_FALSE(context.contains({actor_of(1, 1), 491})) << "which ends where it begins";
}

// Comparing each with all would take minutes.
TEST(ScopesStripping, OfVeryManyScopesThatOverlapLeavesTheContextsAsTheyAre) {
  constexpr int kScopes = 50'000;
  std::vector<ScopedStore> scopes = windows(kScopes, kScopes);
  const Clock known = clock_of(kScopes);
  advance_by(ScopesStripping(scopes, known), 64);
  EXPECT_EQ(scopes.back().store.context(), clock_of(kScopes - 1));
}

TEST(ScopesStripping, StripsTheContextOfOneAmongFewThatHasNoVersionOfItsOwn) {
  std::vector<ScopedStore> scopes{{{}, CellStore({}, clock_of(9))}};
  advance_by(ScopesStripping(scopes, clock_of(5)), 1);
  EXPECT_FALSE(scopes[0].store.context().contains({actor_of(1, 1), 5}));
  EXPECT_TRUE(scopes[0].store.context().contains({actor_of(1, 1), 6}));
}

}  // namespace
}  // namespace helenus::causality
