#include "cluster/announcement.h"

#include <gtest/gtest.h>

#include "metadata/metadata_test_support.h"
#include "metadata/transitions.h"

namespace helenus::cluster {
namespace {

using membership::Status;
using metadata::testing::a_cluster;
using metadata::testing::a_node;
using metadata::testing::node_id;

TEST(Announcement, ANodeTellsTheStatusThatTheMetadataGiveIt) {
  const auto metadata = a_cluster(3);
  EXPECT_EQ(status_of(metadata, node_id(1)), Status::normal);
  EXPECT_EQ(status_of(metadata, node_id(4)), Status::joining);
  const auto joining = metadata::begin_join(metadata, a_node(4));
  EXPECT_EQ(status_of(*joining, node_id(4)), Status::joining);
  const auto leaving = metadata::begin_leave(metadata, node_id(2));
  EXPECT_EQ(status_of(*leaving, node_id(2)), Status::leaving);
  EXPECT_EQ(status_of(*leaving, node_id(1)), Status::normal);
  const auto removing = metadata::begin_removal(metadata, node_id(3), metadata::DataLoss::refused);
  EXPECT_EQ(status_of(*removing, node_id(3)), Status::leaving);
}

}  // namespace
}  // namespace helenus::cluster
