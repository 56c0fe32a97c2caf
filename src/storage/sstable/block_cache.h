// BlockCache: the decoded blocks of one core, limited by bytes, and not washed out by scans.
//
// The policy is S3-FIFO (Yang et al., "FIFO queues are all you need for cache eviction", SOSP
// 2023). A block enters a small queue that holds a tenth of the bytes; when it comes to its end
// unused it leaves, and only its address is remembered for a while (the ghost). A block that was
// used again, or that returns while remembered, enters the main queue, where a used block is given
// another round. So what a scan touches once passes through the small queue and displaces nothing.
// A hit is a table lookup and a saturating count: no list is touched, unlike in LRU.
//
// Memory: the bytes that the cache keeps alive, its own records included, never exceed the limit. A
// block evicted while someone reads it lives until that reader lets go, at that reader's expense.
//
// Core affinity: belongs to one core.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include <absl/container/flat_hash_set.h>

#include "storage/sstable/block.h"

namespace helenus::storage {

struct BlockAddress {
  std::uint64_t file = 0;  // from BlockCache::open_file()
  std::uint64_t offset = 0;
  friend bool operator==(const BlockAddress&, const BlockAddress&) = default;
};

class BlockCache {
 public:
  struct Counters {
    std::uint64_t hits = 0;
    std::uint64_t misses = 0;
    std::uint64_t insertions = 0;
    std::uint64_t evictions = 0;
    std::uint64_t ghost_hits = 0;  // insertions of what had been evicted a little before
    std::uint64_t refusals = 0;    // blocks too large for the cache
  };

  // The share of the limit above which a single block is not kept: one large value must not
  // displace thousands of blocks.
  static constexpr std::size_t kShareMax = 8;

  explicit BlockCache(std::size_t bytes_max);
  ~BlockCache();
  BlockCache(const BlockCache&) = delete;
  BlockCache& operator=(const BlockCache&) = delete;

  // A number to address a file's blocks by; never given twice.
  std::uint64_t open_file();
  // The file's blocks will not be asked for again: they leave at their next turn.
  void close_file(std::uint64_t file);

  // Null if it is not here. The pointer lives until the next insert().
  const Block* find(const BlockAddress& address);
  // Keeps the block if it can; one that is here already stays.
  void insert(const BlockAddress& address, Block block);

  std::size_t bytes() const { return bytes_; }
  std::size_t bytes_max() const { return bytes_max_; }
  std::size_t block_count() const { return block_count_; }
  const Counters& counters() const { return counters_; }

  // What keeping this block costs, records included.
  static std::size_t charge_of(const Block& block);

 private:
  static constexpr std::uint32_t kNone = UINT32_MAX;
  static constexpr std::uint8_t kUsesMax = 3;
  // Uses in the small queue that make a block worth keeping.
  static constexpr std::uint8_t kUsesToStay = 1;
  static constexpr std::size_t kNodesPerChunk = 1024;

  struct Node {
    BlockAddress address = {};
    Block block = {};
    std::uint32_t charge = 0;
    std::uint32_t next = kNone;  // towards the younger ones
    std::uint32_t hash = 0;
    std::uint8_t uses = 0;
  };
  // First in, first out; linked through the nodes.
  struct Queue {
    std::uint32_t oldest = kNone;
    std::uint32_t youngest = kNone;
    std::size_t bytes = 0;
  };
  struct Slot {
    std::uint32_t hash = 0;
    std::uint32_t node = kNone;
  };
  // Addresses evicted lately, as fingerprints with the moment of eviction (a count of evictions):
  // sets of kWays, the oldest of a set is overwritten.
  class Ghost {
   public:
    explicit Ghost(std::size_t entries_max);
    void add(std::uint64_t hash);
    // Whether it was evicted within the last `window` evictions; forgets it.
    bool take(std::uint64_t hash, std::uint64_t window);

   private:
    static constexpr std::size_t kWays = 4;
    struct Entry {
      std::uint32_t fingerprint = 0;
      std::uint32_t moment = 0;  // zero: empty
    };
    Entry* set_of(std::uint64_t hash);

    std::vector<Entry> entries_;
    std::uint32_t now_ = 0;
  };

  static std::uint64_t hash_of(const BlockAddress& address);
  Node& node(std::uint32_t index) {
    return chunks_[index / kNodesPerChunk][index % kNodesPerChunk];
  }

  std::size_t slot_of(const BlockAddress& address, std::uint32_t hash);
  void put_slot(std::uint32_t hash, std::uint32_t index);
  void remove_slot(std::size_t slot);
  void grow_slots();

  std::uint32_t take_node();
  void push(Queue& queue, std::uint32_t index);
  std::uint32_t pop(Queue& queue);
  bool is_wanted(const Node& node) const { return files_open_.contains(node.address.file); }
  void evict_one();
  // Whether something was evicted: false if all of the small queue moved to the main one.
  bool evict_from_small();
  void evict_from_main();
  void drop(std::uint32_t index);

  const std::size_t bytes_max_;
  const std::size_t small_bytes_target_;
  std::size_t bytes_ = 0;
  std::size_t block_count_ = 0;
  Queue small_;
  Queue main_;
  Ghost ghost_;
  std::vector<Slot> slots_;  // linear probing; a power of two, at most half full
  std::vector<std::unique_ptr<Node[]>> chunks_;
  std::uint32_t nodes_used_ = 0;
  std::uint32_t free_node_ = kNone;
  absl::flat_hash_set<std::uint64_t> files_open_;
  std::uint64_t files_opened_ = 0;
  Counters counters_;
};

}  // namespace helenus::storage
