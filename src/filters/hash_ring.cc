#include "filters/hash_ring.h"

#include <algorithm>
#include <utility>

namespace helenus::filters {

namespace {

// Nodes a sector on average: more, and the ring is cut into twice as many; fewer, into half. That
// they are far apart is what keeps a ring that grows and shrinks from being cut all the time.
constexpr std::uint64_t kNodesPerSectorMax = 12;
constexpr std::uint64_t kNodesPerSectorMin = 3;
constexpr HashRing::Position kPadding = UINT32_MAX;

}  // namespace

void HashRing::Sector::set_capacity(std::uint32_t wanted) {
  const std::uint32_t rounded = (wanted + kWordsStep - 1) / kWordsStep * kWordsStep;
  auto larger = std::make_unique_for_overwrite<std::uint32_t[]>(std::size_t{2} * rounded);
  std::copy_n(positions(), count, larger.get());
  std::fill(larger.get() + count, larger.get() + rounded, kPadding);
  std::copy_n(nodes(), count, larger.get() + rounded);
  std::fill(larger.get() + rounded + count, larger.get() + std::size_t{2} * rounded, 0);
  words = std::move(larger);
  capacity = rounded;
}

void HashRing::Sector::insert(Position position, Node node) {
  if (count == capacity) set_capacity(count + 1);
  const std::uint32_t index = count_before(position);
  std::copy_backward(positions() + index, positions() + count, positions() + count + 1);
  std::copy_backward(nodes() + index, nodes() + count, nodes() + count + 1);
  positions()[index] = position;
  nodes()[index] = node;
  ++count;
}

void HashRing::Sector::erase(std::uint32_t index) {
  std::copy(positions() + index + 1, positions() + count, positions() + index);
  std::copy(nodes() + index + 1, nodes() + count, nodes() + index);
  --count;
  positions()[count] = kPadding;
  if (count == 0) {
    words.reset();
    capacity = 0;
  } else if (count + 2 * kWordsStep <= capacity) {
    set_capacity(count);
  }
}

HashRing::Node HashRing::first_node_after(std::uint64_t sector) const {
  ASSERT(size_ > 0);
  do {
    sector = sector + 1 == sectors_.size() ? 0 : sector + 1;
  } while (sectors_[sector].count == 0);
  return sectors_[sector].nodes()[0];
}

std::uint64_t HashRing::longest_gap() const {
  // Twice round, for the gap that the ring's beginning lies in.
  std::uint64_t longest = 0;
  std::uint64_t empty = 0;
  for (std::uint64_t i = 0; i < 2 * sectors_.size(); ++i) {
    empty = sectors_[i & (sectors_.size() - 1)].count == 0 ? empty + 1 : 0;
    longest = std::max(longest, empty);
  }
  return std::min<std::uint64_t>(longest, sectors_.size());
}

std::uint32_t HashRing::index_of(const Sector& sector, Position position) const {
  const std::uint32_t index = sector.count_before(position);
  ASSERT(index < sector.count && sector.positions()[index] == position);
  return index;
}

bool HashRing::is_taken(Position position) const {
  const Sector& sector = sectors_[sector_of(position)];
  const std::uint32_t index = sector.count_before(position);
  return index < sector.count && sector.positions()[index] == position;
}

void HashRing::add(Position position, Node node) {
  ASSERT(!is_taken(position));
  sectors_[sector_of(position)].insert(position, node);
  ++size_;
  if (size_ > sectors_.size() * kNodesPerSectorMax && shift_ > 0) cut_into(33 - shift_);
}

void HashRing::remove(Position position) {
  Sector& sector = sectors_[sector_of(position)];
  sector.erase(index_of(sector, position));
  --size_;
  if (size_ < sectors_.size() * kNodesPerSectorMin && shift_ < 32) cut_into(31 - shift_);
}

void HashRing::renumber(Position position, Node node) {
  Sector& sector = sectors_[sector_of(position)];
  sector.nodes()[index_of(sector, position)] = node;
}

void HashRing::cut_into(unsigned bits) {
  std::vector<Sector> old = std::exchange(sectors_, std::vector<Sector>(std::size_t{1} << bits));
  shift_ = 32 - bits;
  for (const Sector& from : old) {
    for (std::uint32_t i = 0; i < from.count; ++i) {
      const Position position = from.positions()[i];
      sectors_[sector_of(position)].insert(position, from.nodes()[i]);
    }
  }
}

std::uint64_t HashRing::memory_bytes() const {
  std::uint64_t bytes = sectors_.size() * sizeof(Sector);
  for (const Sector& sector : sectors_) bytes += sector.capacity * 2 * sizeof(std::uint32_t);
  return bytes;
}

}  // namespace helenus::filters
