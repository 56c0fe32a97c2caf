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

// Something of everything: a node that joins, one that was removed and one in doubt, pending
// replication, a schema with tables, IPv6.
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
  metadata = begin_reentry(*metadata, node_id(1));
  EXPECT_TRUE(metadata);
  return *metadata;
}

TEST(MetadataCodec, EverythingComesBackAsItWas) {
  const ClusterMetadata joint = *join_sets(everything(), everything().epoch);
  EXPECT_FALSE(joint.keyspaces.begin()->second.came.empty());
  for (const auto& metadata :
       {everything(), joint, a_cluster(1), with_keyspace(a_cluster(5), "k", 3)}) {
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
  newer[0] = 2;
  EXPECT_TRUE(decode_cluster_metadata(base::as_bytes(newer)).failed_with(Errc::unsupported));
}

TEST(MetadataCodec, BytesOfWhatIsNotValidAreRefused) {
  ClusterMetadata metadata = everything();
  metadata.tablets[0].epoch = Epoch(99);
  const auto decoded = decode_cluster_metadata(encode(metadata));
  ASSERT_TRUE(decoded.failed_with(Errc::corrupt));
  EXPECT_THAT(decoded.error().to_string(), ::testing::HasSubstr("epoch that was not given"));
}

// The worked example of docs/formats/cluster-metadata.md.
TEST(MetadataCodec, ASmallClusterHasTheseBytes) {
  EXPECT_EQ(base::to_hex(encode(with_keyspace(a_cluster(1, 2), "k", 3))),
            "010454726f790002000100000000000000000000000000000001040a00000158"
            "1b040a0000015223036463310272310101000002087fffffffffffffff000001"
            "08ffffffffffffffff00000101016b0102000300000000020201000000000000"
            "00000000000000000000000000000000000000000000000000004f0101016b01"
            "0205636c6173732b6f72672e6170616368652e63617373616e6472612e6c6f63"
            "61746f722e53696d706c655374726174656779127265706c69636174696f6e5f"
            "666163746f7201330000");
}

TEST(MetadataCodec, GoldenFileOfVersion1DecodesForEver) {
  std::ifstream file(HELENUS_TESTDATA "/cluster-metadata-v1", std::ios::binary);
  const std::string golden{std::istreambuf_iterator<char>(file), {}};
  const auto metadata = decode_cluster_metadata(base::as_bytes(golden));
  ASSERT_TRUE(metadata) << base::to_hex(encode(everything()));
  EXPECT_EQ(*metadata, everything()) << base::to_hex(encode(everything()));
}

}  // namespace
}  // namespace helenus::metadata
