#include "cluster/wait_rules.h"

#include <gtest/gtest.h>

#include "consensus/document.h"
#include "runtime/time.h"

namespace helenus::cluster {
namespace {

using consensus::Version;
using namespace std::chrono_literals;

constexpr runtime::Duration kRound = 1s;
constexpr Version kOld(4);
constexpr Version kNew(5);

// A node of the cluster that is well and has not applied the new version yet.
constexpr PeerState kBehind{.applied = kOld,
                            .is_in_metadata = true,
                            .is_in_view = true,
                            .is_up = true,
                            .is_unreachable = false,
                            .silence = 500ms};

bool waits_for(const PeerState& peer, bool all_heard = true) {
  return must_wait_for(peer, kNew, all_heard, kRound);
}

TEST(WaitRules, ANodeThatIsUpIsWaitedForUntilItHasAppliedTheVersion) {
  PeerState peer = kBehind;
  EXPECT_TRUE(waits_for(peer));
  peer.applied = kNew;
  EXPECT_FALSE(waits_for(peer));
  peer.applied = Version(6);
  EXPECT_FALSE(waits_for(peer));
}

TEST(WaitRules, ANodeThatIsSilentAndUnreachableIsNotWaitedForThoughTheDetectorThinksItIsUp) {
  PeerState peer = kBehind;
  peer.silence = kRoundsUntilHeard * kRound + 1ms;
  peer.is_unreachable = true;
  EXPECT_FALSE(waits_for(peer));
  peer.silence.reset();
  EXPECT_FALSE(waits_for(peer));
}

TEST(WaitRules, ANodeThatIsCutOffFromThisOneAloneIsWaitedFor) {
  PeerState peer = kBehind;
  peer.is_unreachable = true;
  EXPECT_TRUE(waits_for(peer));
  peer.silence = kRoundsUntilHeard * kRound;
  EXPECT_TRUE(waits_for(peer));
}

TEST(WaitRules, ANodeThatHangsOnAMachineThatAnswersIsWaitedForUntilTheDetectorIsSure) {
  PeerState peer = kBehind;
  peer.silence = 1min;
  EXPECT_TRUE(waits_for(peer));
  peer.is_up = false;
  EXPECT_FALSE(waits_for(peer));
}

TEST(WaitRules, ANodeThatHasJustComeBackIsWaitedForBeforeTheDetectorThinksItIsUp) {
  PeerState peer = kBehind;
  peer.is_up = false;
  EXPECT_TRUE(waits_for(peer));
  // One that the metadata do not name was removed.
  peer.is_in_metadata = false;
  EXPECT_FALSE(waits_for(peer));
}

TEST(WaitRules, ANodeThatWasNeverHeardOfIsWaitedForInTheFirstMomentsOfALife) {
  const PeerState unheard{.is_in_metadata = true};
  EXPECT_TRUE(waits_for(unheard, false));
  EXPECT_FALSE(waits_for(unheard, true));
  EXPECT_FALSE(waits_for(PeerState{}, false));
}

TEST(WaitRules, SilenceIsLongerThanSoManyRounds) {
  PeerState peer = kBehind;
  peer.silence = kRoundsUntilDoubt * kRound;
  EXPECT_FALSE(is_silent(peer, kRoundsUntilDoubt, kRound));
  *peer.silence += 1ms;
  EXPECT_TRUE(is_silent(peer, kRoundsUntilDoubt, kRound));
  peer.silence.reset();
  EXPECT_TRUE(is_silent(peer, kRoundsUntilDoubt, kRound));
}

TEST(WaitRules, TheDeadlineCutsNoLookShort) {
  const runtime::MonotonicTime now = runtime::MonotonicTime() + 1min;
  EXPECT_EQ(next_look(now, now + 1min, kRound), now + kRound);
  EXPECT_EQ(next_look(now, now + kRound + kReachTimeout, kRound), now + kRound);
  const auto deadline = now + (kRound + kReachTimeout - 1ms);
  EXPECT_EQ(next_look(now, deadline, kRound), deadline);
  EXPECT_EQ(next_look(now, runtime::MonotonicTime::never(), kRound), now + kRound);
}

}  // namespace
}  // namespace helenus::cluster
