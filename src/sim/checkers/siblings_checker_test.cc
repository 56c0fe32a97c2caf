#include "sim/checkers/siblings_checker.h"

#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace helenus::sim {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::StartsWith;
using Value = SiblingsHistory::Value;
using Values = SiblingsHistory::Values;

// One cell.
class SiblingsCheckerTest : public ::testing::Test {
 protected:
  static constexpr SiblingsHistory::Cell kCell = 7;

  Value begin_put(Values seen = {}) {
    return history_.invoke_write({.puts = {kCell}, .seen = {{kCell, std::move(seen)}}});
  }
  Value put(Values seen = {}) {
    const Value value = begin_put(std::move(seen));
    history_.acknowledge(value);
    return value;
  }
  Value begin_delete(Values seen) {
    return history_.invoke_write({.deletes = {kCell}, .seen = {{kCell, std::move(seen)}}});
  }
  void read(Values saw, bool is_strong = true, bool spreads = true) {
    const auto number =
        history_.invoke_read({.is_strong = is_strong, .spreads = is_strong && spreads});
    history_.return_read(number, {{kCell, std::move(saw)}});
  }
  std::vector<std::string> problems() { return check_siblings(history_); }

  SiblingsHistory history_;
};

TEST_F(SiblingsCheckerTest, ConcurrentValuesStayUntilSomebodyReplacesThem) {
  read({});
  const Value a = put();
  const Value b = put();
  read({a, b});
  const Value c = put({a, b});
  read({c});
  EXPECT_THAT(problems(), IsEmpty());
}

TEST_F(SiblingsCheckerTest, AValueThatNobodyReplacedIsLost) {
  const Value a = put();
  const Value b = put();
  read({b});
  EXPECT_THAT(problems(), ElementsAre(StartsWith("lost: write 1")));
  put({b});
  read({a, 3});
  EXPECT_THAT(problems(), ElementsAre(StartsWith("lost: write 1")));
}

TEST_F(SiblingsCheckerTest, AReplacedValueThatIsSeenIsAZombie) {
  const Value a = put();
  const Value b = put({a});
  read({a, b});
  EXPECT_THAT(problems(), ElementsAre(StartsWith("zombie: write 1")));
}

TEST_F(SiblingsCheckerTest, AWriteInDoubtMayHaveReplacedAValueOrNot) {
  const Value a = put();
  const Value b = begin_put({a});
  read({a});
  read({b});
  EXPECT_THAT(problems(), IsEmpty());
  read({a, b});
  EXPECT_THAT(problems(), ElementsAre(StartsWith("zombie: write 1")))
      << "from the read on that saw it";
}

TEST_F(SiblingsCheckerTest, WhatAReadSawThatSpreadsIsThere) {
  const Value a = begin_put();
  read({a}, true, false);
  read({});
  EXPECT_THAT(problems(), IsEmpty());
  read({a});
  read({});
  EXPECT_THAT(problems(), ElementsAre(StartsWith("lost: write 1")));
}

TEST_F(SiblingsCheckerTest, DeletesReplaceWhatTheyHaveSeen) {
  const Value a = put();
  const Value gone = begin_delete({a});
  history_.acknowledge(gone);
  const Value b = put();
  read({b});
  EXPECT_THAT(problems(), IsEmpty());
  const Value other = begin_delete({});
  history_.acknowledge(other);
  read({});
  EXPECT_THAT(problems(), ElementsAre(StartsWith("lost: write 3")));
}

TEST_F(SiblingsCheckerTest, ARefusedWriteIsNeitherSeenNorAnExcuse) {
  const Value a = put();
  const Value b = begin_put({a});
  history_.refuse(b);
  read({a, b});
  read({});
  EXPECT_THAT(problems(), ElementsAre(StartsWith("nowhere: write 2"), StartsWith("lost: write 1")));
}

TEST_F(SiblingsCheckerTest, ValuesOfOtherCellsAreNowhere) {
  const Value a = history_.invoke_write({.puts = {kCell + 1}});
  read({a, 9}, false);
  EXPECT_THAT(problems(),
              ElementsAre(StartsWith("nowhere: write 1"), StartsWith("nowhere: write 9")));
}

TEST_F(SiblingsCheckerTest, AWeakReadMayMissWhatItWill) {
  const Value a = put();
  read({}, false);
  put({a});
  read({a}, false);
  EXPECT_THAT(problems(), IsEmpty());
}

}  // namespace
}  // namespace helenus::sim
