#include "cluster/founding_rule.h"

#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/address.h"

namespace helenus::cluster {
namespace {

using Kind = FoundingStep::Kind;
using runtime::Address;

Address seed(std::uint8_t number) {
  return Address::v4({192, 0, 2, number}, 7000);
}
const model::NodeId kInformed(base::Uuid::from_random(1, 2));

TEST(FoundingRule, ANodeWithoutOtherSeedsFoundsAtOnce) {
  EXPECT_EQ(next_founding_step(seed(1), {}, {}).kind, Kind::found);
  EXPECT_EQ(next_founding_step(seed(1), std::vector{seed(1)}, {}).kind, Kind::found);
}

TEST(FoundingRule, OfSeedsThatAllKnowOfNoClusterOnlyTheLeastFounds) {
  const std::vector seeds = {seed(3), seed(1), seed(2)};
  EXPECT_EQ(next_founding_step(seed(1), seeds, {}).kind, Kind::found);
  const FoundingStep wait{.kind = Kind::wait, .waits_for = "192.0.2.1:7000 to found the cluster"};
  EXPECT_EQ(next_founding_step(seed(2), seeds, {}), wait);
  EXPECT_EQ(next_founding_step(seed(3), seeds, {}), wait);
}

TEST(FoundingRule, ANodeThatIsNoSeedNeverFounds) {
  EXPECT_EQ(next_founding_step(seed(1), std::vector{seed(2), seed(3)}, {}).kind, Kind::wait);
}

TEST(FoundingRule, TheFounderWaitsForEverySeedToAnswer) {
  const SeedAnswers answers{.informed = {}, .silent = {"b (timeout)", "c (refused)"}};
  const FoundingStep wait{
      .kind = Kind::wait,
      .waits_for = "b (timeout) and c (refused) to say whether there is a cluster"};
  const std::vector seeds = {seed(1), seed(2), seed(3)};
  EXPECT_EQ(next_founding_step(seed(1), seeds, answers), wait);
  EXPECT_EQ(next_founding_step(seed(2), seeds, answers), wait);
}

TEST(FoundingRule, AClusterThatOneSeedKnowsIsJoinedWhoeverIsSilent) {
  const SeedAnswers answers{.informed = {kInformed}, .silent = {"c (timeout)"}};
  const std::vector seeds = {seed(1), seed(2), seed(3)};
  for (const std::uint8_t self : std::vector<std::uint8_t>{1, 2, 9}) {
    EXPECT_EQ(next_founding_step(seed(self), seeds, answers).kind, Kind::fetch_metadata);
  }
}

}  // namespace
}  // namespace helenus::cluster
