#include "filters/hash_ring.h"

#include <vector>

namespace helenus::filters {

namespace {

// Nodes a sector on average at most, 7 of 10 places and 5 of 7: more, and the ring is cut into
// twice as many sectors. The part of searches that meet a second line is then 0.022 and 0.038.
constexpr std::uint64_t kNodesPerFineSector = 7;
constexpr std::uint64_t kNodesPerCoarseSector = 5;
// Half as many sectors when they would be three quarters full: far enough from the whole that a
// ring which grows and shrinks is not cut all the time.
constexpr std::uint64_t kMergedQuarters = 3;
constexpr unsigned kBitsMax = 28;

}  // namespace

HashRing::HashRing(std::span<const PlacedNode> nodes) : size_(nodes.size()) {
  unsigned bits = 0;
  while (size_ > room_in(bits) && bits < kBitsMax) ++bits;
  make_sectors(bits, nodes);
}

std::uint32_t HashRing::crowd_at(Position position) const {
  return of_sectors([=](const auto& sectors) { return sectors.crowd_at(position); });
}

std::uint64_t HashRing::longest_gap() const {
  return of_sectors([](const auto& sectors) { return sectors.longest_gap(); });
}

bool HashRing::is_taken(Position position) const {
  return of_sectors([=](const auto& sectors) { return sectors.is_taken(position); });
}

std::uint64_t HashRing::memory_bytes() const {
  return of_sectors([](const auto& sectors) { return sectors.memory_bytes(); });
}

std::uint64_t HashRing::room_in(unsigned bits) {
  return (bits >= kFineBits ? kNodesPerFineSector : kNodesPerCoarseSector) << bits;
}

void HashRing::add(Position position, Node node) {
  is_fine() ? fine_.add(position, node) : coarse_.add(position, node);
  ++size_;
  if (size_ > room_in(bits_) && bits_ < kBitsMax) cut_into(bits_ + 1);
}

void HashRing::remove(Position position) {
  is_fine() ? fine_.remove(position) : coarse_.remove(position);
  --size_;
  if (bits_ > 0 && size_ * 4 < room_in(bits_ - 1) * kMergedQuarters) cut_into(bits_ - 1);
}

void HashRing::renumber(Position position, Node node) {
  is_fine() ? fine_.renumber(position, node) : coarse_.renumber(position, node);
}

void HashRing::cut_into(unsigned bits) {
  const std::vector<PlacedNode> nodes =
      of_sectors([](const auto& sectors) { return sectors.nodes(); });
  make_sectors(bits, nodes);
}

void HashRing::make_sectors(unsigned bits, std::span<const PlacedNode> nodes) {
  coarse_ = {};
  fine_ = {};
  bits_ = bits;
  if (is_fine()) {
    fine_ = Fine(bits, nodes);
  } else {
    coarse_ = Coarse(bits, nodes);
  }
}

}  // namespace helenus::filters
