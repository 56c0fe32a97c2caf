#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "sim/checkers/log_checker.h"
#include "sim/checkers/register_checker.h"

namespace helenus::sim {
namespace {

// ---- The register ----

using Operation = RegisterHistory::Operation;

Operation write(std::uint64_t value, Tick invoked, std::optional<Tick> returned) {
  return {.client = 0, .is_write = true, .value = value, .invoked = invoked, .returned = returned};
}
Operation read(std::uint64_t value, Tick invoked, std::optional<Tick> returned) {
  return {.client = 0, .is_write = false, .value = value, .invoked = invoked, .returned = returned};
}

bool linearizable(const std::vector<Operation>& operations) {
  return check_register(operations).empty();
}

TEST(RegisterChecker, AReadSeesTheWriteBeforeIt) {
  EXPECT_TRUE(linearizable({}));
  EXPECT_TRUE(linearizable({read(0, 1, 2)}));
  EXPECT_TRUE(linearizable({write(1, 1, 2), read(1, 3, 4)}));
  EXPECT_FALSE(linearizable({write(1, 1, 2), read(0, 3, 4)})) << "a stale read";
  EXPECT_FALSE(linearizable({read(1, 1, 2), write(1, 3, 4)})) << "a read from the future";
  EXPECT_FALSE(linearizable({read(7, 1, 2)})) << "a value from nowhere";
}

TEST(RegisterChecker, ConcurrentOperationsMayGoEitherWay) {
  EXPECT_TRUE(linearizable({write(1, 1, 4), read(0, 2, 3)}));
  EXPECT_TRUE(linearizable({write(1, 1, 4), read(1, 2, 3)}));
  EXPECT_TRUE(linearizable({write(1, 1, 6), write(2, 2, 5), read(1, 7, 8)}));
  EXPECT_TRUE(linearizable({write(1, 1, 6), write(2, 2, 5), read(2, 7, 8)}));
}

TEST(RegisterChecker, OnceTheNewValueWasSeenTheOldOneIsGone) {
  EXPECT_FALSE(linearizable({write(1, 1, 10), read(1, 2, 3), read(0, 4, 5)}));
  EXPECT_TRUE(linearizable({write(1, 1, 10), read(0, 2, 3), read(1, 4, 5)}));
  EXPECT_FALSE(linearizable({write(1, 1, 2), write(2, 3, 4), read(2, 5, 6), read(1, 7, 8)}));
}

TEST(RegisterChecker, AWriteOfUnknownOutcomeMayHappenLateOrNever) {
  EXPECT_TRUE(linearizable({write(1, 1, std::nullopt), read(0, 2, 3), read(1, 100, 101)}));
  EXPECT_TRUE(linearizable({write(1, 1, std::nullopt), read(0, 100, 101)}));
  EXPECT_FALSE(linearizable({write(1, 1, std::nullopt), read(1, 2, 3), read(0, 4, 5)}))
      << "but not come and go";
  EXPECT_TRUE(linearizable({write(1, 1, 2), read(0, 3, std::nullopt)}))
      << "a read without an answer says nothing";
}

TEST(RegisterChecker, AWriteInTheMiddleOfAnotherValuesReignIsFound) {
  // 1 is seen before and after 2 was written and gone.
  EXPECT_FALSE(linearizable({write(1, 1, 2), read(1, 3, 4), write(2, 5, 6), read(1, 7, 8)}));
}

// Tries every order: the definition, for histories small enough.
bool linearizable_by_search(const std::vector<Operation>& operations) {
  std::vector<Operation> relevant;
  for (const Operation& operation : operations) {
    if (operation.is_write || operation.returned) relevant.push_back(operation);
  }
  std::vector<std::size_t> order(relevant.size());
  std::iota(order.begin(), order.end(), 0);
  do {
    // A write of unknown outcome may be anywhere at the end, where it disturbs nobody.
    bool fine = true;
    std::uint64_t value = RegisterHistory::kInitialValue;
    for (std::size_t i = 0; i < order.size() && fine; ++i) {
      const Operation& operation = relevant[order[i]];
      for (std::size_t j = i + 1; j < order.size(); ++j) {
        const Operation& later = relevant[order[j]];
        if (later.returned && *later.returned < operation.invoked) fine = false;
      }
      if (operation.is_write) {
        value = operation.value;
      } else if (operation.value != value) {
        fine = false;
      }
    }
    if (fine) return true;
  } while (std::ranges::next_permutation(order).found);
  return false;
}

RC_GTEST_PROP(RegisterChecker, AgreesWithTryingEveryOrder, ()) {
  const auto count = *rc::gen::inRange<std::size_t>(1, 7);
  // Every invocation and return gets a moment of its own.
  std::vector<Tick> moments(2 * count);
  std::iota(moments.begin(), moments.end(), Tick{1});
  for (std::size_t i = moments.size(); i > 1; --i) {
    std::swap(moments[i - 1], moments[*rc::gen::inRange<std::size_t>(0, i)]);
  }
  std::vector<Operation> operations;
  std::uint64_t values = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const Tick invoked = std::min(moments[2 * i], moments[2 * i + 1]);
    std::optional<Tick> returned = std::max(moments[2 * i], moments[2 * i + 1]);
    if (*rc::gen::inRange(0, 8) == 0) returned = std::nullopt;
    if (*rc::gen::inRange(0, 2) == 0) {
      operations.push_back(write(++values, invoked, returned));
    } else {
      operations.push_back(read(*rc::gen::inRange<std::uint64_t>(0, 4), invoked, returned));
    }
  }
  RC_CLASSIFY(linearizable_by_search(operations), "linearizable");
  RC_ASSERT(linearizable(operations) == linearizable_by_search(operations));
}

TEST(RegisterHistory, GivesEveryInvocationAndReturnAMomentOfItsOwn) {
  RegisterHistory history;
  const std::size_t one = history.invoke_write(1, 10);
  const std::size_t other = history.invoke_read(2);
  history.return_read(other, 10);
  history.return_write(one);
  ASSERT_EQ(history.operations().size(), 2);
  EXPECT_EQ(history.operations()[0].invoked, 1);
  EXPECT_EQ(history.operations()[1].invoked, 2);
  EXPECT_EQ(history.operations()[1].returned, 3);
  EXPECT_EQ(history.operations()[0].returned, 4);
  EXPECT_TRUE(linearizable(history.operations()));
}

// ---- The log ----

TEST(LogChecker, AnEmptyHistoryAndAFaithfulOneHold) {
  LogHistory history;
  EXPECT_TRUE(check_log(history).empty());
  const auto one = history.send();
  history.acknowledge(one);
  const auto other = history.send();
  history.list(history.ask(), {one});
  history.list(history.ask(), {one, other});
  EXPECT_TRUE(check_log(history).empty());
}

TEST(LogChecker, ALostRecordIsFoundAndOneInDoubtMayBeMissing) {
  LogHistory history;
  const auto kept = history.send();
  const auto in_doubt = history.send();
  history.list(history.ask(), {});
  EXPECT_TRUE(check_log(history).empty());
  history.acknowledge(kept);
  history.list(history.ask(), {in_doubt});
  EXPECT_EQ(check_log(history).size(), 1);
}

TEST(LogChecker, AListingAskedForBeforeTheAcknowledgementMayMissTheRecord) {
  LogHistory history;
  const auto record = history.send();
  const auto asked = history.ask();
  history.acknowledge(record);
  history.list(asked, {});
  EXPECT_TRUE(check_log(history).empty());
}

TEST(LogChecker, WhatWasSeenMustStayInItsPlace) {
  LogHistory history;
  const auto one = history.send();
  const auto other = history.send();
  history.list(history.ask(), {one});
  history.list(history.ask(), {other, one});
  EXPECT_EQ(check_log(history).size(), 1);
}

TEST(LogChecker, TheOrderOfAcknowledgementsIsKept) {
  LogHistory history;
  const auto first = history.send();
  history.acknowledge(first);
  const auto second = history.send();
  history.acknowledge(second);
  history.list(history.ask(), {second, first});
  EXPECT_EQ(check_log(history).size(), 1);
}

TEST(LogChecker, DuplicatesAndInventionsAreFound) {
  LogHistory history;
  const auto record = history.send();
  history.list(history.ask(), {record, record, 99});
  EXPECT_EQ(check_log(history).size(), 2);
}

}  // namespace
}  // namespace helenus::sim
