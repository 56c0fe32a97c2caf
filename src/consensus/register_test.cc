// The register as a whole, under every fault that the small world knows: what clients saw must be
// what one register can have shown them. HELENUS_CONSENSUS_SEEDS asks for more worlds than usual.
#include <algorithm>
#include <chrono>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/test_scale.h"
#include "consensus/network_test_support.h"

namespace helenus::consensus {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;

std::uint64_t seeds_wanted(std::uint64_t usual) {
  return base::count_from_environment("HELENUS_CONSENSUS_SEEDS", usual);
}

struct Totals {
  std::size_t changed = 0;
  std::size_t lost = 0;
  std::size_t read = 0;
};

// Runs one world through its faults and back to health, and checks what it showed.
void check_world(std::uint64_t seed, const World::Options& options, Totals& totals) {
  SCOPED_TRACE(fmt::format("seed {}", seed));
  World world(seed, options);
  world.run_for(std::chrono::milliseconds(1500));
  world.heal();
  const auto reads = world.read_everywhere();
  ASSERT_EQ(reads.size(), world.node_count());
  for (const auto& outcome : reads) EXPECT_EQ(outcome.kind, Outcome::Kind::read);
  EXPECT_THAT(world.history().complaints(), IsEmpty());
  totals.changed += world.history().count(Outcome::Kind::changed);
  totals.lost += world.history().count(Outcome::Kind::conflict);
  totals.read += world.history().count(Outcome::Kind::read);
}

void check_worlds(std::uint64_t seeds, const World::Options& options) {
  Totals totals;
  for (std::uint64_t seed = 1; seed <= seeds && !testing::Test::HasFailure(); ++seed) {
    check_world(seed, options, totals);
  }
  // Faults that let nothing happen would prove nothing.
  EXPECT_GT(totals.changed, seeds);
  EXPECT_GT(totals.lost, seeds / 2);
  EXPECT_GT(totals.read, seeds * options.nodes);
}

TEST(Register, IsLinearizableWhileMessagesAreLostRepeatedAndReordered) {
  check_worlds(seeds_wanted(100), {.nodes = 3, .crashes = false, .moves_acceptors = false});
}

TEST(Register, IsLinearizableWhileAcceptorsCrashAndProposersDieMidway) {
  check_worlds(seeds_wanted(200), {.nodes = 3, .moves_acceptors = false});
}

TEST(Register, IsLinearizableWhileItsAcceptorsAreReplacedUnderFaults) {
  check_worlds(seeds_wanted(150), {.nodes = 5});
}

TEST(Register, IsLinearizableOnANetworkThatLosesEveryThirdMessage) {
  check_worlds(seeds_wanted(200), {.nodes = 4, .loss = 0.33, .repeat = 0.3});
}

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
