// Whether the scenario consensus-messages can fail: its worlds find out disks that lie, and its
// checker sees what it is there for.
#include <chrono>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "consensus/network_test_support.h"

namespace helenus::consensus {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;

// That the worlds are hard enough: in them, the one thing that must not happen is found out.
TEST(RegisterDeathTest, DisksThatForgetWhatTheyAcknowledgedAreFoundOut) {
  const auto run = [] {
    for (std::uint64_t seed = 1; seed <= 300; ++seed) {
      World world(seed, {.nodes = 3, .moves_acceptors = false, .disks_lie = true});
      world.run_for(std::chrono::milliseconds(1500));
      const auto complaints = world.history().complaints();
      ASSERT(complaints.empty(), "not linearizable: {}", complaints.front());
    }
  };
  EXPECT_DEATH(run(), "A3: |P3: |P4: |not linearizable");
}

// The checker must see what it is there for.
class HistoryChecker : public testing::Test {
 protected:
  static Change change_to(const Document& document) {
    return {.id = document.trail.back(),
            .expected = Version(document.version.value() - 1),
            .acceptors = document.acceptors,
            .content = document.content};
  }

  const Document first_ = founding_document(3);
  const Document second_ = next_document(first_, 1);
  const Document third_ = next_document(second_, 2);
  History history_{first_};
};

TEST_F(HistoryChecker, IsContentWithChangesAndReadsInOrder) {
  const auto change = history_.invoke(change_to(second_));
  history_.complete(change, {.kind = Outcome::Kind::changed, .document = second_});
  const auto read = history_.invoke(std::nullopt);
  history_.complete(read, {.kind = Outcome::Kind::read, .document = second_});
  EXPECT_THAT(history_.complaints(), IsEmpty());
}

TEST_F(HistoryChecker, SeesAReadThatGoesBack) {
  history_.invoke(change_to(second_));
  const auto read = history_.invoke(std::nullopt);
  history_.complete(read, {.kind = Outcome::Kind::read, .document = second_});
  const auto stale = history_.invoke(std::nullopt);
  history_.complete(stale, {.kind = Outcome::Kind::read, .document = first_});
  EXPECT_THAT(history_.complaints(), Contains(HasSubstr("was read after")));
}

TEST_F(HistoryChecker, SeesTwoDocumentsOfOneVersion) {
  history_.saw(second_);
  history_.saw(next_document(first_, 9));
  EXPECT_THAT(history_.complaints(), Contains(HasSubstr("two documents")));
}

TEST_F(HistoryChecker, SeesAnAcknowledgedChangeThatIsNotThere) {
  const auto change = history_.invoke(change_to(next_document(first_, 9)));
  history_.complete(change, {.kind = Outcome::Kind::changed, .document = second_});
  EXPECT_THAT(history_.complaints(), Contains(HasSubstr("is not there")));
}

TEST_F(HistoryChecker, SeesADeniedChangeThatIsThere) {
  const auto change = history_.invoke(change_to(second_));
  history_.complete(change, {.kind = Outcome::Kind::conflict, .document = second_});
  EXPECT_THAT(history_.complaints(), Contains(HasSubstr("was denied and is there")));
}

TEST_F(HistoryChecker, SeesAVersionThatIsSeenBeforeItsChangeBegan) {
  const auto read = history_.invoke(std::nullopt);
  history_.complete(read, {.kind = Outcome::Kind::read, .document = second_});
  history_.invoke(change_to(second_));
  EXPECT_THAT(history_.complaints(), Contains(HasSubstr("before its change began")));
}

TEST_F(HistoryChecker, SeesAChangeThatLaterDocumentsHaveLost) {
  Document forgetful = third_;
  forgetful.content = second_.content;
  history_.saw(second_);
  history_.saw(forgetful);
  EXPECT_THAT(history_.complaints(), Contains(HasSubstr("has lost a change")));
}

}  // namespace
}  // namespace helenus::consensus
