// Every consistency level there is, for every kind of statement.
#include "cql/execute/consistency_check.h"

#include <memory>
#include <vector>

#include <gtest/gtest.h>

namespace helenus::cql {
namespace {

using model::Consistency;

std::vector<Consistency> all_levels() {
  std::vector<Consistency> levels;
  for (std::uint16_t number = 0; number < 64; ++number) {
    if (const auto level = model::consistency_from(number)) levels.push_back(*level);
  }
  return levels;
}

TEST(ConsistencyCheck, ReadsHaveAllLevelsButAny) {
  ASSERT_FALSE(all_levels().empty());
  for (const Consistency level : all_levels()) {
    EXPECT_EQ(check_read_level(level).has_value(), level != Consistency::any)
        << model::name_of(level);
  }
}

TEST(ConsistencyCheck, WritesHaveAllLevelsButSerialOnesAndCountersNotAny) {
  ModificationPlan plain;
  ModificationPlan counter;
  counter.policy = causality::Policy::counter;
  counter.table = std::make_shared<model::Table>();
  for (const Consistency level : all_levels()) {
    const bool serial = model::is_serial(level);
    EXPECT_EQ(check_write_level(level).has_value(), !serial) << model::name_of(level);
    EXPECT_EQ(check_write_level(level, plain).has_value(), !serial) << model::name_of(level);
    EXPECT_EQ(check_write_level(level, counter).has_value(), !serial && level != Consistency::any)
        << model::name_of(level);
  }
}

}  // namespace
}  // namespace helenus::cql
