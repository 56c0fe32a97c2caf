// The bytes of a cluster's metadata: what they mean, and what is refused.
#include "metadata/metadata_codec.h"

#include <fstream>
#include <iterator>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "metadata/metadata_test_support.h"
#include "model/schema_test_support.h"

namespace helenus::metadata {
namespace {

using base::Errc;
using testing::a_cluster;
using testing::a_node;
using testing::node_id;
using testing::with_keyspace;

// Something of everything: a node that joins and one that was removed, pending replication, a
// schema with tables, IPv6.
ClusterMetadata everything() {
  auto metadata = found({.cluster_name = "Troy",
                         .tokens = ring::evenly_spread_tokens(4),
                         .nodes = {a_node(1), a_node(2, "r2", "dc2")}});
  metadata = change_schema(*metadata, model::testing::sample_schema());
  metadata = begin_join(*metadata, a_node(3));
  metadata = abandon_change(*metadata);
  NodeDescription newcomer = a_node(4);
  newcomer.node_address = *runtime::Address::parse("[fd00::4]:7000");
  metadata = begin_join(*metadata, newcomer);
  metadata = change_schema(*metadata, with_keyspace(metadata->schema, "Empty", 2));
  EXPECT_TRUE(metadata);
  return *metadata;
}

TEST(MetadataCodec, EverythingComesBackAsItWas) {
  for (const auto& metadata : {everything(), a_cluster(1), with_keyspace(a_cluster(5), "k", 3)}) {
    const auto decoded = decode_cluster_metadata(encode(metadata));
    ASSERT_TRUE(decoded) << decoded.error().to_string();
    EXPECT_EQ(*decoded, metadata);
  }
}

TEST(MetadataCodec, ARingOfAnotherPartitionerComesBackAsItWas) {
  const auto token = [](std::string_view text) {
    return ring::Position::of_bytes(base::as_bytes(text));
  };
  const auto metadata = found({.cluster_name = "Troy",
                               .partitioner = ring::Partitioner::ordered,
                               .tokens = {token("f"), token("long enough to lie elsewhere")},
                               .nodes = {a_node(1), a_node(2)}});
  ASSERT_TRUE(metadata);
  EXPECT_EQ(decode_cluster_metadata(encode(*metadata)), *metadata);
}

TEST(MetadataCodec, WhatIsCutOrTooLongIsRefused) {
  const base::Bytes bytes = encode(everything());
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_TRUE(decode_cluster_metadata(bytes.view().first(size)).failed_with(Errc::corrupt))
        << size;
  }
  const std::string longer = std::string(bytes.text()) + "x";
  EXPECT_TRUE(decode_cluster_metadata(base::as_bytes(longer)).failed_with(Errc::corrupt));
}

// Whatever byte is changed: an error, or another value that has just these bytes.
TEST(MetadataCodec, NoBytesHaveTwoMeanings) {
  const std::string whole(encode(everything()).text());
  for (std::size_t at = 0; at < whole.size(); ++at) {
    for (const int bit : {0x01, 0x80}) {
      std::string damaged = whole;
      damaged[at] = static_cast<char>(damaged[at] ^ bit);
      const auto decoded = decode_cluster_metadata(base::as_bytes(damaged));
      if (!decoded) continue;
      EXPECT_TRUE(validate(*decoded));
      EXPECT_EQ(encode(*decoded).text(), damaged) << at;
    }
  }
}

TEST(MetadataCodec, ANewerVersionIsNamedAsSuch) {
  std::string newer(encode(a_cluster(1)).text());
  newer[0] = 3;
  EXPECT_TRUE(decode_cluster_metadata(base::as_bytes(newer)).failed_with(Errc::unsupported));
}

TEST(MetadataCodec, BytesOfWhatIsNotValidAreRefused) {
  ClusterMetadata metadata = everything();
  metadata.tablets[0].epoch = Epoch(99);
  const auto decoded = decode_cluster_metadata(encode(metadata));
  ASSERT_TRUE(decoded.failed_with(Errc::corrupt));
  EXPECT_THAT(decoded.error().to_string(), ::testing::HasSubstr("epoch that was not given"));
}

ClusterMetadata everything_reentered() {
  ClusterMetadata metadata = everything();
  const model::NodeId node = metadata.nodes.front().id();
  metadata.epoch = Epoch(metadata.epoch.value() + 1);
  metadata.nodes.front().reentered = metadata.epoch;
  metadata.nodes.front().in_doubt = true;
  for (const std::size_t tablet : tablets_of(metadata, node)) {
    metadata.tablets[tablet].epoch = metadata.epoch;
  }
  return metadata;
}

TEST(MetadataCodec, NodesThatReenteredTakeTheSecondVersion) {
  const ClusterMetadata metadata = everything_reentered();
  const std::string bytes(encode(metadata).text());
  EXPECT_EQ(bytes[0], 2);
  EXPECT_EQ(encode(everything()).text()[0], 1);
  const auto decoded = decode_cluster_metadata(base::as_bytes(bytes));
  ASSERT_TRUE(decoded) << decoded.error().to_string();
  EXPECT_EQ(*decoded, metadata);
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    const auto cut = decode_cluster_metadata(base::as_bytes(bytes).first(size));
    EXPECT_TRUE(cut.failed_with(Errc::corrupt)) << size;
  }
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    std::string damaged = bytes;
    damaged[at] = static_cast<char>(damaged[at] ^ 1);
    const auto other = decode_cluster_metadata(base::as_bytes(damaged));
    if (other) {
      EXPECT_EQ(encode(*other).text(), damaged) << at;
    }
  }
}

TEST(MetadataCodec, GoldenFileOfVersion2DecodesForEver) {
  std::ifstream file(HELENUS_TESTDATA "/cluster-metadata-v2", std::ios::binary);
  const std::string golden{std::istreambuf_iterator<char>(file), {}};
  const auto metadata = decode_cluster_metadata(base::as_bytes(golden));
  ASSERT_TRUE(metadata) << metadata.error().to_string();
  EXPECT_EQ(*metadata, everything_reentered()) << base::to_hex(encode(everything_reentered()));
}

// The worked example of docs/formats/cluster-metadata.md.
TEST(MetadataCodec, ASmallClusterHasTheseBytes) {
  EXPECT_EQ(base::to_hex(encode(with_keyspace(a_cluster(1, 2), "k", 3))),
            "010454726f7900020100000000000000000000000000000001040a000001581b"
            "040a000001522303646331027231010102087fffffffffffffff00000108ffff"
            "ffffffffffff00000101016b0102000300000002020100000000000000000000"
            "000000000000000000000000000000000000000000004f0101016b010205636c"
            "6173732b6f72672e6170616368652e63617373616e6472612e6c6f6361746f72"
            "2e53696d706c655374726174656779127265706c69636174696f6e5f66616374"
            "6f7201330000");
}

TEST(MetadataCodec, GoldenFileOfVersion1DecodesForEver) {
  std::ifstream file(HELENUS_TESTDATA "/cluster-metadata-v1", std::ios::binary);
  const std::string golden{std::istreambuf_iterator<char>(file), {}};
  const auto metadata = decode_cluster_metadata(base::as_bytes(golden));
  ASSERT_TRUE(metadata) << metadata.error().to_string();
  EXPECT_EQ(*metadata, everything());
}

}  // namespace
}  // namespace helenus::metadata
