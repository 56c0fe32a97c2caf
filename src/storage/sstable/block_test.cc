#include "storage/sstable/block.h"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "base/prng.h"

namespace helenus::storage {
namespace {

using base::as_bytes;
using base::as_text;
using base::Errc;

struct Row {
  std::string key;
  std::string value;
  std::uint16_t partition_size;
};

base::Bytes build(const std::vector<Row>& rows, BlockBuilder::Shape shape = {}) {
  BlockBuilder builder(shape);
  for (const Row& row : rows) {
    builder.add({.bytes = as_bytes(row.key), .partition_size = row.partition_size},
                as_bytes(row.value), key_hash(as_bytes(row.key)));
  }
  base::Buffer out;
  const std::size_t estimate = builder.size_estimate();
  builder.finish(out);
  EXPECT_LE(out.size(), estimate);
  return std::move(out).freeze();
}

Block open(base::Bytes payload) {
  auto block = Block::open(std::move(payload));
  EXPECT_TRUE(block.has_value()) << block.error().to_string();
  return block.has_value() ? *block : Block();
}

std::vector<Row> rows_of(std::vector<std::string> keys) {
  std::ranges::sort(keys);
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  std::vector<Row> rows;
  for (const std::string& key : keys) {
    rows.push_back({.key = key,
                    .value = "value of " + key,
                    .partition_size = static_cast<std::uint16_t>(key.size())});
  }
  return rows;
}

// Everything a block can be asked, against the rows it was made of.
void expect_answers_as(const Block& block, const std::vector<Row>& rows,
                       const std::vector<std::string>& probes) {
  ASSERT_EQ(block.entry_count(), rows.size());
  const auto checked = block.check();
  EXPECT_TRUE(checked.has_value()) << checked.error().to_string();
  base::Buffer scratch;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const RowKey key = block.key(i, scratch);
    EXPECT_EQ(as_text(key.bytes), rows[i].key);
    EXPECT_EQ(key.partition_size, rows[i].partition_size);
    EXPECT_EQ(as_text(block.value_view(i)), rows[i].value);
    EXPECT_EQ(block.value(i).text(), rows[i].value);
  }
  for (const std::string& probe : probes) {
    const auto place = std::ranges::lower_bound(rows, probe, {}, &Row::key);
    const auto index = static_cast<std::size_t>(place - rows.begin());
    EXPECT_EQ(block.lower_bound(as_bytes(probe)), index) << probe;
    const auto found = block.find(as_bytes(probe), key_hash(as_bytes(probe)));
    const bool there = place != rows.end() && place->key == probe;
    EXPECT_EQ(found, there ? std::optional(index) : std::nullopt) << probe;
  }
}

std::vector<std::string> keys_of(const std::vector<Row>& rows) {
  std::vector<std::string> keys;
  for (const Row& row : rows) keys.push_back(row.key);
  return keys;
}

TEST(Block, OneEntryIsABlock) {
  const std::vector<Row> rows = {{"k", "v", 1}};
  expect_answers_as(open(build(rows)), rows, {"", "a", "k", "k\0", "kk", "z"});
}

TEST(Block, EmptyKeyAndEmptyValueAreAnEntry) {
  const std::vector<Row> rows = {{"", "", 0}, {std::string(1, '\0'), "", 1}};
  expect_answers_as(open(build(rows)), rows, {"", std::string(1, '\0'), std::string(2, '\0'), "a"});
}

TEST(Block, KeysThatDifferOnlyByTrailingZerosAreToldApart) {
  std::vector<std::string> keys;
  for (std::size_t zeros = 0; zeros < 40; ++zeros) keys.push_back("key" + std::string(zeros, '\0'));
  const std::vector<Row> rows = rows_of(keys);
  keys.push_back("key" + std::string(40, '\0'));
  expect_answers_as(open(build(rows)), rows, keys);
}

TEST(Block, ManyGroupsWithEqualHeadsAreSearchedByTheirKeys) {
  // Two partitions in one block: inside each, the eight bytes behind the shared prefix are alike.
  std::vector<std::string> keys;
  for (const char* partition : {"partition-one-", "partition-two-"}) {
    for (int i = 0; i < 60; ++i) keys.push_back(partition + fmt::format("{:03}", i * 2));
  }
  const std::vector<Row> rows = rows_of(keys);
  std::vector<std::string> probes = keys_of(rows);
  for (const std::string& key : keys_of(rows)) {
    probes.push_back(key + "x");
    probes.push_back(key.substr(0, key.size() - 1));
  }
  expect_answers_as(open(build(rows)), rows, probes);
  expect_answers_as(open(build(rows, {.group_shift = 2, .tags = false})), rows, probes);
}

TEST(Block, ValueOfMegabytesAndKeyOfTheLargestSizeFit) {
  std::vector<Row> rows;
  rows.push_back({std::string(kRowKeySizeMax, 'a'), std::string(3 << 20, 'x'), 10});
  rows.push_back({std::string(kRowKeySizeMax - 1, 'a') + "b", "small", 65535});
  rows.push_back({"b", std::string(70000, 'y'), 1});
  expect_answers_as(open(build(rows)), rows, keys_of(rows));
}

TEST(Block, PartitionSizesComeBackHoweverTheyAreStored) {
  std::vector<Row> whole, uniform, each;
  for (int i = 0; i < 40; ++i) {
    const std::string key = fmt::format("partition/{:04}", i);
    const auto size = static_cast<std::uint16_t>(key.size());
    whole.push_back({key, "v", size});
    uniform.push_back({key, "v", 9});
    each.push_back({key, "v", static_cast<std::uint16_t>(i % 10)});
  }
  for (const auto* rows : {&whole, &uniform, &each}) {
    expect_answers_as(open(build(*rows)), *rows, keys_of(*rows));
  }
  EXPECT_EQ(build(whole).size(), build(uniform).size());
  EXPECT_EQ(build(each).size(), build(uniform).size() + 2 * each.size());
}

TEST(Block, SharedPrefixesAreStoredOncePerGroup) {
  const std::string prefix(1000, 'p');
  std::vector<std::string> keys;
  for (int i = 0; i < 128; ++i) keys.push_back(prefix + fmt::format("{:03}", i));
  std::vector<Row> rows = rows_of(keys);
  for (Row& row : rows) row.value.clear();
  EXPECT_LT(build(rows).size(), 8 * 1000 + 128 * 16);
  expect_answers_as(open(build(rows)), rows, keys);
}

TEST(Block, ACursorWalksBothWays) {
  std::vector<std::string> keys;
  for (int i = 0; i < 100; ++i) keys.push_back(fmt::format("{:03}", i));
  const std::vector<Row> rows = rows_of(keys);
  BlockCursor cursor;
  cursor.enter(open(build(rows)));
  const auto expect_at = [&](std::size_t i) {
    cursor.move_to(i);
    EXPECT_EQ(as_text(cursor.key().bytes), rows[i].key);
    EXPECT_EQ(as_text(cursor.value_view()), rows[i].value);
    EXPECT_EQ(cursor.value().text(), rows[i].value);
  };
  for (std::size_t i = 0; i < rows.size(); ++i) expect_at(i);
  for (std::size_t i = rows.size(); i > 0; --i) expect_at(i - 1);
  base::Prng prng(1);
  for (int i = 0; i < 300; ++i) expect_at(prng.below(rows.size()));
}

TEST(Block, AValueOutlivesItsBlock) {
  base::Bytes value;
  {
    const Block block = open(build(rows_of({"a", "b"})));
    value = block.value(1);
  }
  EXPECT_EQ(value.text(), "value of b");
}

TEST(BlockBuilder, IsEmptyAndAsGoodAsNewAfterFinish) {
  BlockBuilder builder({});
  base::Buffer first, second;
  for (base::Buffer* out : {&first, &second}) {
    EXPECT_TRUE(builder.empty());
    builder.add(whole_partition(as_bytes("k")), as_bytes(std::string(2 << 20, 'v')),
                key_hash(as_bytes("k")));
    builder.finish(*out);
  }
  EXPECT_TRUE(base::equal(first.view(), second.view()));
}

// Keys over few letters, so that prefixes are shared and probes hit and just miss.
std::string key_from(base::Prng& prng) {
  std::string key(prng.below(14), '\0');
  for (char& byte : key)
    byte =
        "\x00"
        "ab\xff"[prng.below(4)];
  if (prng.chance(0.3)) key.insert(0, "a shared beginning");
  return key;
}

RC_GTEST_PROP(Block, AnswersAsASortedListWould, (std::uint64_t seed)) {
  base::Prng prng(seed);
  std::vector<std::string> keys(prng.between(1, 300));
  for (std::string& key : keys) key = key_from(prng);
  std::vector<Row> rows = rows_of(keys);
  for (Row& row : rows) {
    row.value.assign(prng.chance(0.05) ? prng.below(40000) : prng.below(30), 'v');
    row.partition_size = static_cast<std::uint16_t>(prng.between(0, row.key.size()));
  }
  for (int i = 0; i < 100; ++i) keys.push_back(key_from(prng));
  const BlockBuilder::Shape shape{.group_shift = static_cast<unsigned>(prng.below(7)),
                                  .tags = prng.chance(0.5)};
  expect_answers_as(open(build(rows, shape)), rows, keys);
}

// ---- hostile bytes

// Asks everything of whatever opens: the sanitizers see what goes astray.
void exercise(const Block& block) {
  base::Buffer scratch;
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < block.entry_count(); ++i) {
    const RowKey key = block.key(i, scratch);
    ASSERT_LE(key.partition_size, key.bytes.size());
    bytes += block.value(i).size();
    ASSERT_LE(block.lower_bound(key.bytes), block.entry_count());
    (void)block.find(key.bytes, key_hash(key.bytes));
  }
  ASSERT_LE(bytes, block.payload().size());
  (void)block.check();
}

TEST(Block, EveryFlippedBitIsAnErrorOrStaysInsideTheBlock) {
  std::vector<Row> rows = rows_of({"aa", "ab", "abc", "b", "ba", "bb", "c"});
  rows[3].partition_size = 0;
  const base::Bytes good = build(rows, {.group_shift = 1, .tags = true});
  for (std::size_t bit = 0; bit < good.size() * 8; ++bit) {
    base::Buffer damaged;
    damaged.append(good);
    damaged.mutable_view()[bit / 8] ^= std::byte(1u << (bit % 8));
    if (const auto block = Block::open(std::move(damaged).freeze()); block) exercise(*block);
  }
}

TEST(Block, EveryTruncationIsAnError) {
  const base::Bytes good = build(rows_of({"aa", "ab", "abc", "b"}), {.group_shift = 1});
  for (std::size_t size = 0; size < good.size(); ++size) {
    EXPECT_TRUE(Block::open(good.slice(0, size)).failed_with(Errc::corrupt)) << size;
  }
}

TEST(Block, CheckFindsKeysOutOfOrderAndWrongTags) {
  const base::Bytes good = build(rows_of({"aa1", "aa2", "aa3"}));
  const auto damaged_at = [&](std::size_t offset, unsigned mask) {
    base::Buffer damaged;
    damaged.append(good);
    damaged.mutable_view()[offset] ^= std::byte(mask);
    return open(std::move(damaged).freeze()).check();
  };
  const std::size_t tags = Block::kHeaderSize + 16;
  EXPECT_TRUE(damaged_at(tags, 1).failed_with(Errc::corrupt));
  EXPECT_TRUE(damaged_at(Block::kHeaderSize, 1).failed_with(Errc::corrupt)) << "a head";
  const auto place = as_text(good.view()).find("aa123");
  ASSERT_NE(place, std::string_view::npos);
  EXPECT_TRUE(damaged_at(place + 3, 8).failed_with(Errc::corrupt)) << "order";
}

RC_GTEST_PROP(Block, RandomBytesNeverLeadOutside, (std::uint64_t seed)) {
  base::Prng prng(seed);
  base::Buffer bytes;
  for (std::byte& byte : bytes.extend(prng.below(200))) {
    byte = prng.chance(0.5) ? std::byte{0} : std::byte(prng.below(16));
  }
  if (const auto block = Block::open(std::move(bytes).freeze()); block) exercise(*block);
}

}  // namespace
}  // namespace helenus::storage
