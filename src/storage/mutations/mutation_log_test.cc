#include "storage/mutations/mutation_log.h"

#include <map>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace helenus::storage {
namespace {

using causality::actor_of;
using causality::Clock;
using causality::Dot;

KeptMutation mutation_of(Dot dot, TableId table = TableId{7}) {
  return {.dot = dot,
          .table = table,
          .timestamp = causality::Timestamp{1},
          .record = base::Bytes::copy_of(fmt::format("{} of {}", dot, table))};
}

std::vector<Dot> dots_of(const std::vector<KeptMutation>& mutations) {
  std::vector<Dot> dots;
  for (const KeptMutation& mutation : mutations) dots.push_back(mutation.dot);
  return dots;
}

TEST(MutationLog, GivesAtLeastOneAndSaysWhetherThereIsMore) {
  MutationLog log;
  for (std::uint64_t counter = 1; counter <= 3; ++counter) {
    log.add(mutation_of({actor_of(1, 1), counter}), counter);
  }
  bool all = true;
  EXPECT_EQ(log.in_memory(log.kept(), 1, all).size(), 1);
  EXPECT_FALSE(all);
  EXPECT_EQ(log.in_memory(log.kept(), SIZE_MAX, all).size(), 3);
  EXPECT_TRUE(all);
  EXPECT_TRUE(log.in_memory({}, 1, all).empty());
  EXPECT_TRUE(all);
}

TEST(MutationLog, TheSameMutationTwiceIsKeptOnce) {
  MutationLog log;
  log.add(mutation_of({actor_of(1, 1), 1}), 1);
  const std::size_t bytes = log.memory_bytes();
  log.add(mutation_of({actor_of(1, 1), 1}), 1);
  EXPECT_EQ(log.memory_bytes(), bytes);
  EXPECT_EQ(log.count_in_memory(), 1);
}

TEST(MutationLog, AClosedActorThatIsStableTakesAllItsMutationsAlong) {
  MutationLog log;
  for (const std::uint32_t incarnation : {1U, 2U, 3U}) {
    log.add(mutation_of({actor_of(2, incarnation), 5}), 1);
  }
  Clock stable;
  stable.close(causality::ClosedActors{causality::NodeNumber{2}, causality::Incarnation{1},
                                       causality::Incarnation{2}});
  log.collect(stable);
  bool all = false;
  EXPECT_EQ(dots_of(log.in_memory(log.kept(), SIZE_MAX, all)),
            (std::vector<Dot>{{actor_of(2, 3), 5}}));
  EXPECT_EQ(log.count_in_memory(), 1);
}

// Beside a model: sets of dots.
class Model {
 public:
  void add(Dot dot, TableId table, std::uint64_t sequence) { memory_[dot] = {table, sequence}; }
  std::vector<Dot> of_table(TableId table, std::uint64_t last) const {
    std::vector<Dot> dots;
    for (const auto& [dot, place] : memory_) {
      if (place.first == table && place.second <= last) dots.push_back(dot);
    }
    return dots;
  }
  void move(const std::vector<Dot>& dots) {
    for (const Dot& dot : dots) {
      if (memory_.erase(dot) > 0) files_.insert(dot);
    }
  }
  void collect(const Clock& stable) {
    const auto gone = [&](const Dot& dot) { return stable.contains(dot); };
    std::erase_if(memory_, [&](const auto& each) { return gone(each.first); });
    std::erase_if(files_, gone);
    std::erase_if(shed_, gone);
  }
  Clock shed_files() {
    Clock dots;
    for (const Dot& dot : files_) dots.add(dot);
    shed_.merge(files_);
    files_.clear();
    return dots;
  }
  Clock kept() const {
    Clock dots;
    for (const auto& [dot, place] : memory_) dots.add(dot);
    for (const Dot& dot : files_) dots.add(dot);
    return dots;
  }
  Clock shed() const {
    Clock dots;
    for (const Dot& dot : shed_) dots.add(dot);
    return dots;
  }
  std::size_t in_memory() const { return memory_.size(); }

 private:
  std::map<Dot, std::pair<TableId, std::uint64_t>> memory_;
  std::set<Dot> files_;
  std::set<Dot> shed_;
};

RC_GTEST_PROP(MutationLog, KnowsWhatItKeepsAndWhatItShed, ()) {
  MutationLog log;
  Model model;
  Clock seen;
  std::uint64_t sequence = 0;
  for (int steps = *rc::gen::inRange(1, 80); steps > 0; --steps) {
    const int choice = *rc::gen::inRange(0, 12);
    const TableId table{*rc::gen::inRange<std::uint64_t>(1, 3)};
    if (choice < 7) {
      const Dot dot{actor_of(*rc::gen::inRange<std::uint32_t>(1, 3), 1),
                    *rc::gen::inRange<std::uint64_t>(1, 20)};
      if (seen.contains(dot)) continue;
      seen.add(dot);
      log.add(mutation_of(dot, table), ++sequence);
      model.add(dot, table, sequence);
    } else if (choice < 9) {
      const std::uint64_t last = *rc::gen::inRange<std::uint64_t>(0, sequence + 1);
      const auto mutations = log.of_table(table, last);
      RC_ASSERT(dots_of(mutations) == model.of_table(table, last));
      log.moved_to_file(mutations);
      model.move(dots_of(mutations));
    } else if (choice < 11) {
      Clock stable;
      stable.add(causality::DotRange{actor_of(*rc::gen::inRange<std::uint32_t>(1, 3), 1), 1,
                                     *rc::gen::inRange<std::uint64_t>(1, 20)});
      stable = causality::meet(stable, seen);
      log.collect(stable);
      model.collect(stable);
    } else {
      log.shed(model.shed_files());
    }
    RC_ASSERT(log.kept() == model.kept());
    RC_ASSERT(log.shed() == model.shed());
    RC_ASSERT(log.count_in_memory() == model.in_memory());
    RC_ASSERT((log.memory_bytes() == 0) == (model.in_memory() == 0));
    // What was not shed is kept, unless it is stable.
    RC_ASSERT(causality::join(log.kept(), log.shed()) == causality::subtract(seen, log.stable()));
  }
}

}  // namespace
}  // namespace helenus::storage
