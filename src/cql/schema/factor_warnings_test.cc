#include "cql/schema/factor_warnings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace helenus::cql {
namespace {

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
