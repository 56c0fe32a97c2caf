#include "storage/sstable/block_cache.h"

#include <cmath>
#include <list>
#include <string>
#include <unordered_map>
#include <vector>

#include <gtest/gtest.h>

#include "base/prng.h"

namespace helenus::storage {
namespace {

using base::as_bytes;

// A block that says where it belongs, of about that many bytes.
Block block_for(const BlockAddress& address, std::size_t bytes = 1000) {
  BlockBuilder builder({});
  const std::string key = fmt::format("{}/{}", address.file, address.offset);
  builder.add(whole_partition(as_bytes(key)), as_bytes(std::string(bytes, 'x')),
              key_hash(as_bytes(key)));
  base::Buffer payload;
  builder.finish(payload);
  return *Block::open(std::move(payload).freeze());
}

std::string name_in(const Block& block) {
  base::Buffer scratch;
  return std::string(base::as_text(block.key(0, scratch).bytes));
}

TEST(BlockCache, GivesBackWhatItKeeps) {
  BlockCache cache(1 << 20);
  const std::uint64_t file = cache.open_file();
  EXPECT_EQ(cache.find({file, 5}), nullptr);
  cache.insert({file, 5}, block_for({file, 5}));
  const Block* found = cache.find({file, 5});
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(name_in(*found), fmt::format("{}/5", file));
  EXPECT_EQ(cache.find({file, 6}), nullptr);
  EXPECT_EQ(cache.find({file + 1, 5}), nullptr);
  EXPECT_EQ(cache.counters().hits, 1u);
  EXPECT_EQ(cache.counters().misses, 3u);
}

TEST(BlockCache, ABlockInsertedTwiceStaysTheFirst) {
  BlockCache cache(1 << 20);
  const std::uint64_t file = cache.open_file();
  cache.insert({file, 5}, block_for({file, 5}));
  cache.insert({file, 5}, block_for({file, 999}));
  EXPECT_EQ(name_in(*cache.find({file, 5})), fmt::format("{}/5", file));
  EXPECT_EQ(cache.block_count(), 1u);
}

TEST(BlockCache, NeverKeepsMoreThanItsLimitAndNeverConfusesBlocks) {
  constexpr std::size_t kBytesMax = 100'000;
  BlockCache cache(kBytesMax);
  const std::uint64_t file = cache.open_file();
  const std::uint64_t other = cache.open_file();
  base::Prng prng(1);
  for (int i = 0; i < 20'000; ++i) {
    const BlockAddress address{prng.chance(0.5) ? file : other, prng.below(300)};
    if (const Block* found = cache.find(address); found != nullptr) {
      ASSERT_EQ(name_in(*found), fmt::format("{}/{}", address.file, address.offset));
    } else {
      cache.insert(address, block_for(address, prng.below(5000)));
    }
    ASSERT_LE(cache.bytes(), kBytesMax);
  }
  EXPECT_GT(cache.counters().evictions, 1000u);
  EXPECT_GT(cache.counters().ghost_hits, 0u);
  EXPECT_EQ(cache.counters().insertions - cache.counters().evictions, cache.block_count());
}

TEST(BlockCache, ABlockTooLargeForItIsNotKept) {
  BlockCache cache(100'000);
  const std::uint64_t file = cache.open_file();
  cache.insert({file, 1}, block_for({file, 1}, 100'000 / BlockCache::kShareMax));
  EXPECT_EQ(cache.find({file, 1}), nullptr);
  EXPECT_EQ(cache.counters().refusals, 1u);
  EXPECT_EQ(cache.bytes(), 0u);
}

TEST(BlockCache, ALimitOfZeroKeepsNothing) {
  BlockCache cache(0);
  const std::uint64_t file = cache.open_file();
  cache.insert({file, 1}, block_for({file, 1}));
  EXPECT_EQ(cache.find({file, 1}), nullptr);
}

TEST(BlockCache, AnEvictedBlockLivesAsLongAsAValueOfItIsHeld) {
  BlockCache cache(20'000);
  const std::uint64_t file = cache.open_file();
  Block block = block_for({file, 0});
  const base::Bytes value = block.value(0);
  cache.insert({file, 0}, std::move(block));
  for (std::uint64_t i = 1; i < 200; ++i) cache.insert({file, i}, block_for({file, i}));
  EXPECT_EQ(cache.find({file, 0}), nullptr);
  EXPECT_EQ(value.text(), std::string(1000, 'x'));
}

TEST(BlockCache, BlocksOfAClosedFileMakeRoomHoweverOftenTheyWereUsed) {
  constexpr std::size_t kBytesMax = 100'000;
  BlockCache cache(kBytesMax);
  const std::uint64_t dead = cache.open_file();
  const std::uint64_t live = cache.open_file();
  for (std::uint64_t i = 0; i < 60; ++i) {
    cache.insert({dead, i}, block_for({dead, i}));
    for (int use = 0; use < 5; ++use) (void)cache.find({dead, i});
  }
  cache.close_file(dead);
  // One pass of a live file through the cache is enough: each dead block goes at its first turn.
  for (std::uint64_t i = 0; i < 100; ++i) {
    cache.insert({live, i}, block_for({live, i}));
    (void)cache.find({live, i});
  }
  for (std::uint64_t i = 0; i < 60; ++i) EXPECT_EQ(cache.find({dead, i}), nullptr) << i;
}

TEST(BlockCache, AScanDoesNotWashOutWhatIsInUse) {
  BlockCache cache(200'000);
  const std::uint64_t file = cache.open_file();
  const std::uint64_t scanned = cache.open_file();
  for (int round = 0; round < 4; ++round) {
    for (std::uint64_t i = 0; i < 100; ++i) {
      if (cache.find({file, i}) == nullptr) cache.insert({file, i}, block_for({file, i}));
    }
  }
  for (std::uint64_t i = 0; i < 10'000; ++i) {
    cache.insert({scanned, i}, block_for({scanned, i}));
  }
  int kept = 0;
  for (std::uint64_t i = 0; i < 100; ++i) kept += cache.find({file, i}) != nullptr ? 1 : 0;
  EXPECT_GE(kept, 95);
}

// ---- against LRU

class Lru {
 public:
  explicit Lru(std::size_t entries_max) : entries_max_(entries_max) {}
  bool use(std::uint64_t key) {
    if (const auto found = places_.find(key); found != places_.end()) {
      order_.splice(order_.begin(), order_, found->second);
      return true;
    }
    order_.push_front(key);
    places_[key] = order_.begin();
    if (order_.size() > entries_max_) {
      places_.erase(order_.back());
      order_.pop_back();
    }
    return false;
  }

 private:
  std::size_t entries_max_;
  std::list<std::uint64_t> order_;
  std::unordered_map<std::uint64_t, std::list<std::uint64_t>::iterator> places_;
};

// Zipf's law with exponent one over [0, count), by inverting its integral.
std::uint64_t zipf(base::Prng& prng, std::uint64_t count) {
  return static_cast<std::uint64_t>(std::pow(static_cast<double>(count), prng.unit())) - 1;
}

struct HitRates {
  double cache;
  double lru;
};

// Hits among point reads, by Zipf over 20,000 blocks with room for 2,000, while scans over other
// blocks pass through at `scan_share` of all accesses.
HitRates replay(double scan_share) {
  constexpr std::uint64_t kBlocks = 20'000;
  constexpr std::uint64_t kRoom = 2'000;
  constexpr std::uint64_t kAccesses = 400'000;
  const std::size_t charge = BlockCache::charge_of(block_for({1, 1'000'000}, 64));
  BlockCache cache(kRoom * charge);
  Lru lru(kRoom);
  const std::uint64_t file = cache.open_file();
  base::Prng prng(7);
  std::uint64_t scan_at = 0, reads = 0, cache_hits = 0, lru_hits = 0;
  for (std::uint64_t i = 0; i < kAccesses; ++i) {
    const bool scans = prng.chance(scan_share);
    const std::uint64_t offset = 1'000'000 + (scans ? kBlocks + scan_at++ % (10 * kBlocks)
                                                    : base::mix64(zipf(prng, kBlocks)) % kBlocks);
    const bool hit = cache.find({file, offset}) != nullptr;
    if (!hit) cache.insert({file, offset}, block_for({file, offset}, 64));
    const bool lru_hit = lru.use(offset);
    if (scans || i < kAccesses / 4) continue;
    ++reads;
    cache_hits += hit ? 1 : 0;
    lru_hits += lru_hit ? 1 : 0;
  }
  return {static_cast<double>(cache_hits) / static_cast<double>(reads),
          static_cast<double>(lru_hits) / static_cast<double>(reads)};
}

TEST(BlockCache, BeatsLruOnSkewedReadsAndByMoreWhenScansPassThrough) {
  const HitRates quiet = replay(0);
  const HitRates busy = replay(0.5);
  RecordProperty("quiet_hit_rates", fmt::format("{:.3f} lru {:.3f}", quiet.cache, quiet.lru));
  RecordProperty("busy_hit_rates", fmt::format("{:.3f} lru {:.3f}", busy.cache, busy.lru));
  EXPECT_GT(quiet.cache, quiet.lru);
  EXPECT_GT(busy.cache, busy.lru + 0.05);
  EXPECT_GT(busy.cache, quiet.cache - 0.05) << "scans cost little";
}

}  // namespace
}  // namespace helenus::storage
