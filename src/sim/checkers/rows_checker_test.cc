#include "sim/checkers/rows_checker.h"

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "sim/checkers/convergence_checker.h"
#include "sim/checkers/rows_history.h"

namespace helenus::sim {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Value = RowsHistory::Value;

// One cell, and what is done to it one after the other, a second apart.
class RowsCheckerTest : public ::testing::Test {
 protected:
  static constexpr RowsHistory::Moment kSecond = 1'000'000'000;

  Value begin_put(std::optional<RowsHistory::Moment> ttl_seconds = std::nullopt) {
    RowsHistory::Write write{.puts = {cell_}};
    if (ttl_seconds) write.ttl = *ttl_seconds * kSecond;
    return history_.invoke_write(now(), std::move(write));
  }
  Value begin_delete() { return history_.invoke_write(now(), {.deletes = {cell_}}); }
  Value put(std::optional<RowsHistory::Moment> ttl_seconds = std::nullopt) {
    return acknowledged(begin_put(ttl_seconds));
  }
  Value remove() { return acknowledged(begin_delete()); }
  Value acknowledged(Value write) {
    history_.acknowledge(now(), write);
    return write;
  }
  void end(Value write) { history_.end(now(), write); }
  void refuse(Value write) { history_.refuse(now(), write); }
  std::size_t begin_read(bool is_strong = true) {
    return history_.invoke_read(now(), {.is_strong = is_strong});
  }
  void end_read(std::size_t read, std::optional<Value> value) {
    history_.return_read(now(), read, {{.cell = cell_, .value = value}});
  }
  void see(std::optional<Value> value) { end_read(begin_read(), value); }
  void see_weakly(std::optional<Value> value) { end_read(begin_read(false), value); }
  void see_and_spread(std::optional<Value> value) {
    end_read(history_.invoke_read(now(), {.is_strong = true, .spreads = true}), value);
  }
  void wait(RowsHistory::Moment seconds) { now_ += seconds * kSecond; }

  std::vector<std::string> problems(RowsHistory::Moment slack_seconds = 0) const {
    return check_rows(history_, {.expiry_slack = slack_seconds * kSecond});
  }
  std::vector<std::string> problems_of_wrong_clocks() const {
    return check_rows(history_, {.timestamps_follow_time = false});
  }
  static constexpr std::optional<Value> kNothing = std::nullopt;

  RowsHistory history_;
  const RowsHistory::Cell cell_ = history_.add_cell("k=1 v");

 private:
  RowsHistory::Moment now() { return now_ += kSecond; }
  RowsHistory::Moment now_ = 0;
};

TEST_F(RowsCheckerTest, AReadSeesTheLastWriteThatEnded) {
  see(kNothing);
  see(put());
  see(put());
  remove();
  see(kNothing);
  see(put());
  EXPECT_THAT(problems(), IsEmpty());
}

TEST_F(RowsCheckerTest, AnOlderValueIsALostWrite) {
  const Value old = put();
  put();
  see(old);
  EXPECT_THAT(problems(), ElementsAre(HasSubstr("k=1 v: lost: saw an older write 1 ")));
}

TEST_F(RowsCheckerTest, WhatManyReadsSawIsToldOnce) {
  const Value old = put();
  put();
  see(old);
  see(old);
  see(kNothing);
  see(kNothing);
  EXPECT_EQ(problems().size(), 2U);
}

TEST_F(RowsCheckerTest, NothingIsALostWriteUnlessSomethingWasDeleted) {
  put();
  see(kNothing);
  EXPECT_THAT(problems(), ElementsAre(HasSubstr("lost: saw nothing in spite of 1 ")));
}

TEST_F(RowsCheckerTest, ADeleteThatEndedBeforeThePutDoesNotExplainNothing) {
  remove();
  put();
  see(kNothing);
  EXPECT_THAT(problems(), ElementsAre(HasSubstr("lost: saw nothing in spite of 2 ")));
}

TEST_F(RowsCheckerTest, ADeletedValueIsAZombie) {
  const Value old = put();
  remove();
  see(kNothing);
  see(old);
  EXPECT_THAT(problems(), ElementsAre(HasSubstr("zombie: saw a deleted write 1 ")));
}

TEST_F(RowsCheckerTest, WhoeverOverlapsMayGoEitherWay) {
  const Value one = begin_put();
  const Value other = begin_put();
  const std::size_t early = begin_read();
  acknowledged(one);
  acknowledged(other);
  see(one);
  see(one);
  end_read(early, kNothing);
  EXPECT_THAT(problems(), IsEmpty());
}

TEST_F(RowsCheckerTest, ButNotOneWayAndThenTheOther) {
  const Value one = begin_put();
  const Value other = begin_put();
  acknowledged(one);
  acknowledged(other);
  see(one);
  see(other);
  EXPECT_THAT(problems(), ElementsAre(HasSubstr("order: saw a write that had made place")));
}

TEST_F(RowsCheckerTest, AWriteOfUnknownOutcomeMayShowLateOrNever) {
  const Value unknown = begin_put();
  const Value later = put();
  see(later);
  see(unknown);
  EXPECT_THAT(problems(), IsEmpty());
}

TEST_F(RowsCheckerTest, ButNotOverAWriteThatBeganAfterItsEnd) {
  const Value unknown = begin_put();
  see(kNothing);
  end(unknown);
  see(unknown);
  see(kNothing);
  EXPECT_THAT(problems(), IsEmpty());
  put();
  see(unknown);
  EXPECT_THAT(problems(), ElementsAre(HasSubstr("lost: saw an older write 1 ")));
}

TEST_F(RowsCheckerTest, ADeleteOfUnknownOutcomeMayHaveHappened) {
  const Value value = put();
  const Value unknown = begin_delete();
  see(kNothing);
  see(value);
  EXPECT_THAT(problems(), IsEmpty());
  end(unknown);
  put();
  see(kNothing);
  EXPECT_THAT(problems(), ElementsAre(HasSubstr("lost: saw nothing in spite of 3 ")));
}

TEST_F(RowsCheckerTest, WhatWasRefusedIsNeverSeenAndSupersedesNothing) {
  const Value kept = put();
  const Value refused = begin_put();
  refuse(refused);
  see(kept);
  EXPECT_THAT(problems(), IsEmpty());
  see_weakly(refused);
  EXPECT_THAT(problems(), ElementsAre(HasSubstr("saw a write that was refused 2 ")));
}

TEST_F(RowsCheckerTest, ValuesComeFromWritesThatBegan) {
  const std::size_t early = begin_read(false);
  see_weakly(17);
  end_read(early, 1);
  put();
  EXPECT_THAT(problems(), ElementsAre(HasSubstr("saw a write that had not begun 1 "),
                                      HasSubstr("saw a value that nobody wrote 17")));
}

TEST_F(RowsCheckerTest, ValuesStayInTheirCells) {
  const Value value = put();
  const RowsHistory::Cell other = history_.add_cell("k=2 v");
  const std::size_t read = begin_read(false);
  history_.return_read(0, read, {{.cell = other, .value = value}});
  EXPECT_THAT(problems(), ElementsAre(HasSubstr("k=2 v: saw a value that was written elsewhere")));
}

TEST_F(RowsCheckerTest, WhatASpreadingReadSawIsThere) {
  const Value old = put();
  const Value unknown = begin_put();
  see(unknown);
  see(old);
  EXPECT_THAT(problems(), IsEmpty()) << "it may not have reached the other replicas";
  see_and_spread(unknown);
  see(old);
  EXPECT_THAT(problems(), ElementsAre(HasSubstr("lost: saw an older write 1 "),
                                      HasSubstr("order: saw a write that had made place")));
}

TEST_F(RowsCheckerTest, AndSoIsADeleteThatItSaw) {
  const Value old = put();
  begin_delete();
  see(kNothing);
  see(old);
  EXPECT_THAT(problems(), IsEmpty());
  see_and_spread(kNothing);
  see(old);
  EXPECT_THAT(problems(), ElementsAre(HasSubstr("zombie: saw a deleted write 1 ")));
}

TEST_F(RowsCheckerTest, ASpreadingReadOfNothingMaySeeAnEarlierDelete) {
  begin_delete();
  const Value value = put();
  see_and_spread(kNothing);
  see(value);
  EXPECT_THAT(problems(), IsEmpty()) << "the delete may be later, or have come late";
}

TEST_F(RowsCheckerTest, AWeakReadMayMissWrites) {
  const Value value = put();
  remove();
  put();
  see_weakly(kNothing);
  see_weakly(value);
  EXPECT_THAT(problems(), IsEmpty());
}

TEST_F(RowsCheckerTest, WhatHasATimeToLiveGoesInItsTime) {
  const Value value = put(60);
  see(value);
  wait(60);
  see(kNothing);
  EXPECT_THAT(problems(), IsEmpty());
}

TEST_F(RowsCheckerTest, WhatHasExpiredDoesNotReturn) {
  const Value value = put(60);
  wait(60);
  see_weakly(value);
  EXPECT_THAT(problems(10), IsEmpty()) << "clocks may differ by so much";
  EXPECT_THAT(problems(), ElementsAre(HasSubstr("saw an expired write 1 ")));
}

TEST_F(RowsCheckerTest, WhatHasNotExpiredIsLost) {
  put(60);
  see(kNothing);
  EXPECT_THAT(problems(), ElementsAre(HasSubstr("lost: saw nothing in spite of 1 ")));
}

TEST_F(RowsCheckerTest, AnOlderValueDoesNotReturnWhenALaterOneExpires) {
  const Value old = put();
  put(10);
  wait(60);
  see(old);
  EXPECT_THAT(problems(), ElementsAre(HasSubstr("lost: saw an older write 1 ")));
}

TEST_F(RowsCheckerTest, WhereClocksAreWrongTheLaterWriteMayLose) {
  const Value old = put();
  put();
  see(old);
  remove();
  put();
  see(kNothing);
  EXPECT_THAT(problems_of_wrong_clocks(), IsEmpty());
}

TEST_F(RowsCheckerTest, ButADeleteDoesNot) {
  const Value old = put();
  remove();
  see(old);
  EXPECT_THAT(problems_of_wrong_clocks(), ElementsAre(HasSubstr("zombie: saw a deleted write 1 ")));
}

TEST_F(RowsCheckerTest, AndWhatWasSeenToBeLaterStaysSo) {
  const Value one = put();
  const Value other = put();
  see(one);
  EXPECT_THAT(problems_of_wrong_clocks(), IsEmpty());
  see(other);
  EXPECT_THAT(problems_of_wrong_clocks(), ElementsAre(HasSubstr("order: saw a write ")));
}

// A register that does what it should, asked by three clients that take turns at every step: each
// change takes effect when it is acknowledged, or never. Ends with no client waiting.
RowsHistory play() {
  struct Open {
    Value write = 0;
    bool is_put = false;
  };
  RowsHistory history;
  const RowsHistory::Cell cell = history.add_cell("v");
  std::map<int, Open> open;  // by client
  std::optional<Value> shown;
  for (const int step : *rc::gen::container<std::vector<int>>(40, rc::gen::inRange(0, 12))) {
    const int client = step % 3;
    const auto found = open.find(client);
    if (found != open.end() && step == 11) {
      history.refuse(0, found->second.write);
      open.erase(found);
    } else if (found != open.end()) {
      shown = found->second.is_put ? std::optional(found->second.write) : std::nullopt;
      history.acknowledge(0, found->second.write);
      open.erase(found);
    } else if (step < 6) {
      const bool is_put = step < 3 || step == 4;
      RowsHistory::Write write;
      (is_put ? write.puts : write.deletes).push_back(cell);
      open[client] = {.write = history.invoke_write(0, std::move(write)), .is_put = is_put};
    } else {
      const std::size_t read = history.invoke_read(0, {.is_strong = true, .spreads = true});
      history.return_read(0, read, {{.cell = cell, .value = shown}});
    }
  }
  history.end_unknown(0);
  return history;
}

RC_GTEST_PROP(RowsChecker, ARegisterThatWorksIsNotFoundWrong, ()) {
  RC_ASSERT(check_rows(play(), {}).empty());
}

RC_GTEST_PROP(RowsChecker, OneThatShowsAnOverwrittenValueIs, ()) {
  RowsHistory history = play();
  const Value old = history.invoke_write(0, {.puts = {0}});
  history.acknowledge(0, old);
  const bool is_put = *rc::gen::arbitrary<bool>();
  RowsHistory::Write next;
  (is_put ? next.puts : next.deletes).push_back(0);
  history.acknowledge(0, history.invoke_write(0, std::move(next)));
  const std::size_t read = history.invoke_read(0, {.is_strong = true});
  history.return_read(0, read, {{.cell = 0, .value = old}});
  RC_ASSERT(check_rows(history, {}).size() == 1U);
}

// ---- Convergence ----

TEST(ConvergenceChecker, AllSayTheSame) {
  ConvergenceHistory history;
  history.answer("k=1", "n0", "1, 2");
  history.answer("k=1", "n1", "1, 2");
  history.answer("k=2", "n0", "3");
  EXPECT_THAT(check_convergence(history), IsEmpty());
}

TEST(ConvergenceChecker, WhoSaysSomethingElseIsNamed) {
  ConvergenceHistory history;
  history.answer("k=1", "n0", "1, 2");
  history.answer("k=1", "n1", "");
  history.answer("k=1", "n2", "1, 2");
  EXPECT_THAT(check_convergence(history), ElementsAre("k=1 differs: n1 say [] n0, n2 say [1, 2]"));
}

}  // namespace
}  // namespace helenus::sim
