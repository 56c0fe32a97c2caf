#include "storage/sstable/block_cache.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "base/assert.h"
#include "base/hash.h"

namespace helenus::storage {

namespace {

constexpr std::size_t kSlotsMin = 64;
// The ghost is sized for blocks of this size.
constexpr std::size_t kBlockBytesTypical = std::size_t{8} << 10;
constexpr std::size_t kGhostEntriesMin = 64;

}  // namespace

// ---- the ghost

BlockCache::Ghost::Ghost(std::size_t entries_max)
    : entries_(std::bit_ceil(std::max(entries_max, kGhostEntriesMin))) {}

BlockCache::Ghost::Entry* BlockCache::Ghost::set_of(std::uint64_t hash) {
  const std::size_t sets = entries_.size() / kWays;
  return &entries_[((hash >> 32) & (sets - 1)) * kWays];
}

void BlockCache::Ghost::add(std::uint64_t hash) {
  if (++now_ == 0) {
    // Once in four billion evictions the moments would run over: forget everything.
    std::ranges::fill(entries_, Entry{});
    now_ = 1;
  }
  Entry* const set = set_of(hash);
  *std::min_element(set, set + kWays, [](const Entry& a, const Entry& b) {
    return a.moment < b.moment;
  }) = {.fingerprint = static_cast<std::uint32_t>(hash), .moment = now_};
}

bool BlockCache::Ghost::take(std::uint64_t hash, std::uint64_t window) {
  Entry* const set = set_of(hash);
  for (Entry* entry = set; entry != set + kWays; ++entry) {
    if (entry->moment == 0 || entry->fingerprint != static_cast<std::uint32_t>(hash)) continue;
    const bool recent = now_ - entry->moment < window;
    *entry = Entry{};
    return recent;
  }
  return false;
}

// ---- finding and keeping

BlockCache::BlockCache(std::size_t bytes_max)
    : bytes_max_(bytes_max),
      small_bytes_target_(bytes_max / 10),
      ghost_(bytes_max / kBlockBytesTypical),
      slots_(kSlotsMin) {}

BlockCache::~BlockCache() = default;

std::uint64_t BlockCache::open_file() {
  const std::uint64_t file = ++files_opened_;
  files_open_.insert(file);
  return file;
}

void BlockCache::close_file(std::uint64_t file) {
  const bool was_open = files_open_.erase(file) == 1;
  ASSERT(was_open, "file {}", file);
}

std::size_t BlockCache::charge_of(const Block& block) {
  return block.payload().size() + sizeof(base::detail::Block) + sizeof(Node) + 2 * sizeof(Slot);
}

std::uint64_t BlockCache::hash_of(const BlockAddress& address) {
  return base::mix64(address.offset + address.file * 0x9e3779b97f4a7c15);
}

const Block* BlockCache::find(const BlockAddress& address) {
  const std::size_t slot = slot_of(address, static_cast<std::uint32_t>(hash_of(address)));
  if (slots_[slot].node == kNone) {
    ++counters_.misses;
    return nullptr;
  }
  ++counters_.hits;
  Node& found = node(slots_[slot].node);
  if (found.uses < kUsesMax) ++found.uses;
  return &found.block;
}

void BlockCache::insert(const BlockAddress& address, Block block) {
  ASSERT_SLOW(files_open_.contains(address.file));
  const std::uint64_t hash = hash_of(address);
  const auto short_hash = static_cast<std::uint32_t>(hash);
  if (slots_[slot_of(address, short_hash)].node != kNone) return;
  const std::size_t charge = charge_of(block);
  if (charge > bytes_max_ / kShareMax) {
    ++counters_.refusals;
    return;
  }
  while (bytes_ + charge > bytes_max_) evict_one();
  const bool remembered = ghost_.take(hash, std::max<std::size_t>(block_count_, kGhostEntriesMin));
  if (remembered) ++counters_.ghost_hits;
  ++counters_.insertions;
  const std::uint32_t index = take_node();
  node(index) = {.address = address,
                 .block = std::move(block),
                 .charge = static_cast<std::uint32_t>(charge),
                 .hash = short_hash};
  bytes_ += charge;
  ++block_count_;
  push(remembered ? main_ : small_, index);
  if ((block_count_ + 1) * 2 > slots_.size()) grow_slots();
  put_slot(short_hash, index);
}

// ---- evicting

void BlockCache::push(Queue& queue, std::uint32_t index) {
  Node& pushed = node(index);
  pushed.next = kNone;
  if (queue.youngest == kNone) {
    queue.oldest = index;
  } else {
    node(queue.youngest).next = index;
  }
  queue.youngest = index;
  queue.bytes += pushed.charge;
}

std::uint32_t BlockCache::pop(Queue& queue) {
  const std::uint32_t index = queue.oldest;
  ASSERT(index != kNone);
  const Node& popped = node(index);
  queue.oldest = popped.next;
  if (queue.oldest == kNone) queue.youngest = kNone;
  queue.bytes -= popped.charge;
  return index;
}

void BlockCache::evict_one() {
  ASSERT(block_count_ > 0);
  const bool small_is_due = small_.bytes > small_bytes_target_ || main_.oldest == kNone;
  if (small_is_due && evict_from_small()) return;
  evict_from_main();
}

bool BlockCache::evict_from_small() {
  while (small_.oldest != kNone) {
    const std::uint32_t index = pop(small_);
    Node& oldest = node(index);
    if (oldest.uses >= kUsesToStay && is_wanted(oldest)) {
      oldest.uses = 0;
      push(main_, index);
      continue;
    }
    ghost_.add(hash_of(oldest.address));
    drop(index);
    return true;
  }
  return false;
}

void BlockCache::evict_from_main() {
  for (;;) {
    const std::uint32_t index = pop(main_);
    Node& oldest = node(index);
    if (oldest.uses == 0 || !is_wanted(oldest)) {
      drop(index);
      return;
    }
    --oldest.uses;
    push(main_, index);
  }
}

void BlockCache::drop(std::uint32_t index) {
  Node& dropped = node(index);
  remove_slot(slot_of(dropped.address, dropped.hash));
  bytes_ -= dropped.charge;
  --block_count_;
  ++counters_.evictions;
  dropped = Node{.next = free_node_};
  free_node_ = index;
}

std::uint32_t BlockCache::take_node() {
  if (free_node_ != kNone) return std::exchange(free_node_, node(free_node_).next);
  if (nodes_used_ == chunks_.size() * kNodesPerChunk) {
    chunks_.push_back(std::make_unique<Node[]>(kNodesPerChunk));
  }
  return nodes_used_++;
}

// ---- the table

std::size_t BlockCache::slot_of(const BlockAddress& address, std::uint32_t hash) {
  const std::size_t mask = slots_.size() - 1;
  for (std::size_t slot = hash & mask;; slot = (slot + 1) & mask) {
    if (slots_[slot].node == kNone) return slot;
    if (slots_[slot].hash == hash && node(slots_[slot].node).address == address) return slot;
  }
}

void BlockCache::put_slot(std::uint32_t hash, std::uint32_t index) {
  const std::size_t mask = slots_.size() - 1;
  std::size_t slot = hash & mask;
  while (slots_[slot].node != kNone) slot = (slot + 1) & mask;
  slots_[slot] = {.hash = hash, .node = index};
}

// Closes the gap by moving back those behind it that a search would not find across it.
void BlockCache::remove_slot(std::size_t gap) {
  const std::size_t mask = slots_.size() - 1;
  for (std::size_t slot = (gap + 1) & mask; slots_[slot].node != kNone; slot = (slot + 1) & mask) {
    const std::size_t home = slots_[slot].hash & mask;
    if (((slot - home) & mask) < ((slot - gap) & mask)) continue;
    slots_[gap] = slots_[slot];
    gap = slot;
  }
  slots_[gap] = Slot{};
}

void BlockCache::grow_slots() {
  std::vector<Slot> old(slots_.size() * 2);
  std::swap(old, slots_);
  for (const Slot& slot : old) {
    if (slot.node != kNone) put_slot(slot.hash, slot.node);
  }
}

}  // namespace helenus::storage
