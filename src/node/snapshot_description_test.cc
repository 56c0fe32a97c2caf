// What describes a snapshot comes back as it was, and nothing else does; what names one.
#include "node/snapshot_description.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace helenus::node {
namespace {

using base::Errc;

base::Uuid uuid_of(int last) {
  return *base::Uuid::parse("00000000-0000-4000-8000-00000000000" + std::to_string(last));
}

SnapshotDescription example() {
  return {
      .node = model::NodeId(uuid_of(1)),
      .created = runtime::WallTime(std::chrono::seconds(1'790'000'000)),
      .files = 3,
      .bytes = 4096,
      .keyspaces = {{.name = "music",
                     .number = model::KeyspaceNumber{2},
                     .tables = {{.name = "plays", .id = uuid_of(2), .storage = storage::TableId{7}},
                                {.name = "by_song",
                                 .id = uuid_of(3),
                                 .storage = storage::TableId{8},
                                 .is_index = true}}},
                    {.name = "empty", .number = model::KeyspaceNumber{3}, .tables = {}}}};
}

TEST(SnapshotDescription, ComesBackAsItWas) {
  const auto decoded = decode_snapshot_description(encode(example()).view());
  ASSERT_TRUE(decoded.has_value());
  EXPECT_EQ(*decoded, example());
}

TEST(SnapshotDescription, OneThatIsCutOrHasLostABitIsRefused) {
  const base::Bytes whole = encode(example());
  const std::string text(whole.text());
  for (std::size_t size = 0; size < text.size(); ++size) {
    EXPECT_FALSE(decode_snapshot_description(base::as_bytes(text.substr(0, size))).has_value());
  }
  for (std::size_t bit = 0; bit < text.size() * 8; ++bit) {
    std::string changed = text;
    changed[bit / 8] = static_cast<char>(changed[bit / 8] ^ (1 << (bit % 8)));
    const auto decoded = decode_snapshot_description(base::as_bytes(changed));
    ASSERT_FALSE(decoded.has_value()) << bit;
    EXPECT_THAT(decoded.error().code(), ::testing::AnyOf(Errc::corrupt, Errc::unsupported));
  }
}

TEST(SnapshotDescription, NamesAreThoseOfFoldersBelowThisOne) {
  for (const char* name : {"a", "2026-11-19", "before_upgrade.1", "A"}) {
    EXPECT_TRUE(check_snapshot_name(name).has_value()) << name;
  }
  for (const std::string& name :
       {std::string(), std::string("."), std::string(".."), std::string(".a"), std::string("a/b"),
        std::string("a b"), std::string("a\0b", 3), std::string("\xc3\xa4"),
        std::string(kSnapshotNameSizeMax + 1, 'a')}) {
    EXPECT_TRUE(check_snapshot_name(name).failed_with(Errc::invalid_argument)) << name;
  }
}

}  // namespace
}  // namespace helenus::node
