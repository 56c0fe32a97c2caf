#include "cql/schema/availability.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace helenus::cql {
namespace {

using model::Consistency;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

model::Keyspace keyspace_of(model::OptionMap replication) {
  model::Keyspace keyspace;
  keyspace.name = "ks";
  keyspace.replication = std::move(replication);
  return keyspace;
}

model::Keyspace simple(const char* factor) {
  return keyspace_of(
      {{"class", "org.apache.cassandra.locator.SimpleStrategy"}, {"replication_factor", factor}});
}

model::Keyspace network(model::OptionMap factors) {
  factors["class"] = "org.apache.cassandra.locator.NetworkTopologyStrategy";
  return keyspace_of(std::move(factors));
}

// "2 of 1 alive", or nothing when it is available.
std::string refusal(const Availability& availability, Consistency level) {
  const auto checked = availability.check(level);
  if (checked) return "";
  EXPECT_EQ(checked.error().code(), protocol::ErrorCode::unavailable);
  const auto& details = std::get<protocol::UnavailableDetails>(checked.error().message().details);
  EXPECT_EQ(details.consistency, level);
  return fmt::format("{} of {} alive", details.required, details.alive);
}

TEST(Availability, OneReplicaOfSeveralIsNoMajority) {
  const Availability three(simple("3"), "here");
  for (const Consistency met : {Consistency::any, Consistency::one, Consistency::local_one}) {
    EXPECT_EQ(refusal(three, met), "");
  }
  for (const Consistency level :
       {Consistency::two, Consistency::quorum, Consistency::local_quorum, Consistency::each_quorum,
        Consistency::serial, Consistency::local_serial}) {
    EXPECT_EQ(refusal(three, level), "2 of 1 alive") << model::name_of(level);
  }
  EXPECT_EQ(refusal(three, Consistency::three), "3 of 1 alive");
  EXPECT_EQ(refusal(three, Consistency::all), "3 of 1 alive");
}

TEST(Availability, AReplicaOfItsOwnMeetsEveryLevelButTwoAndThree) {
  for (const model::Keyspace& keyspace : {simple("1"), network({{"here", "1"}})}) {
    const Availability one(keyspace, "here");
    for (std::uint16_t number = 0; number <= model::kConsistencyMax; ++number) {
      const auto level = static_cast<Consistency>(number);
      const bool met = level != Consistency::two && level != Consistency::three;
      EXPECT_EQ(refusal(one, level).empty(), met) << model::name_of(level);
    }
  }
}

TEST(Availability, DataCentresCountForThemselves) {
  const Availability both(network({{"here", "1"}, {"there", "3"}}), "here");
  EXPECT_EQ(refusal(both, Consistency::local_quorum), "");
  EXPECT_EQ(refusal(both, Consistency::local_serial), "");
  EXPECT_EQ(refusal(both, Consistency::quorum), "3 of 1 alive");
  EXPECT_EQ(refusal(both, Consistency::all), "4 of 1 alive");
  EXPECT_EQ(refusal(both, Consistency::each_quorum), "2 of 0 alive");
  EXPECT_EQ(both.check(Consistency::each_quorum).error().text(),
            "Cannot achieve consistency level EACH_QUORUM in DC there");
  EXPECT_EQ(both.check(Consistency::quorum).error().text(),
            "Cannot achieve consistency level QUORUM");
}

TEST(Availability, NoReplicaIsHereWhereTheKeyspaceWantsNone) {
  const Availability elsewhere(network({{"there", "1"}}), "here");
  EXPECT_EQ(refusal(elsewhere, Consistency::one), "1 of 0 alive");
  EXPECT_EQ(refusal(elsewhere, Consistency::local_one), "1 of 0 alive");
  EXPECT_EQ(refusal(elsewhere, Consistency::local_quorum), "1 of 0 alive");
  EXPECT_EQ(refusal(Availability(simple("0"), "here"), Consistency::one), "1 of 0 alive");
}

TEST(Availability, TheSystemsKeyspacesAreAlwaysAvailable) {
  const Availability local(keyspace_of({{"class", "org.apache.cassandra.locator.LocalStrategy"}}),
                           "here");
  for (std::uint16_t number = 0; number <= model::kConsistencyMax; ++number) {
    EXPECT_EQ(refusal(local, static_cast<Consistency>(number)), "");
    EXPECT_EQ(refusal(Availability(), static_cast<Consistency>(number)), "");
  }
}

// Nobody knows how many replicas would be enough: an error, never enough.
TEST(Availability, WhatIsNotUnderstoodIsNeverEnough) {
  const model::Keyspace strange[] = {
      keyspace_of({}),
      keyspace_of({{"class", "LocalStrategy"}}),
      keyspace_of({{"class", "org.example.AnywhereStrategy"}, {"replication_factor", "1"}}),
      simple("many"),
      network({{"replication_factor", "1"}}),
  };
  for (const model::Keyspace& keyspace : strange) {
    const Availability availability(keyspace, "here");
    for (std::uint16_t number = 0; number <= model::kConsistencyMax; ++number) {
      const auto checked = availability.check(static_cast<Consistency>(number));
      ASSERT_FALSE(checked.has_value());
      EXPECT_EQ(checked.error().code(), protocol::ErrorCode::server_error);
      EXPECT_THAT(checked.error().text(),
                  ::testing::StartsWith("The replication of keyspace ks is not understood: "));
    }
  }
  const auto checked = Availability(simple("1"), "here").check(static_cast<Consistency>(0x0b));
  ASSERT_FALSE(checked.has_value());
  EXPECT_EQ(checked.error().to_string(), "0x0000: Consistency level 11 is not understood");
}

TEST(FactorWarnings, TellOfReplicasThatHaveNoNode) {
  const NodeCounts nodes = {{"here", 2}, {"there", 1}};
  EXPECT_THAT(factor_warnings(simple("3"), nodes), IsEmpty());
  EXPECT_THAT(factor_warnings(simple("4"), nodes),
              ElementsAre("Your replication factor 4 for keyspace ks is higher than the number of "
                          "nodes 3"));
  EXPECT_THAT(factor_warnings(network({{"here", "2"}, {"there", "3"}}), nodes),
              ElementsAre("Your replication factor 3 for keyspace ks is higher than the number of "
                          "nodes 1 for datacenter there"));
  EXPECT_THAT(factor_warnings(network({{"nowhere", "3"}}), nodes), IsEmpty());
}

}  // namespace
}  // namespace helenus::cql
