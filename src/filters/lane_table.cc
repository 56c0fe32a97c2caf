#include "filters/lane_table.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace helenus::filters {

namespace {

// The words of a block in which exactly the bits of `lanes` are set; the first lane_count are used.
std::array<std::uint64_t, kLanesMax> block_pattern(Lanes lanes, unsigned lane_count) {
  std::array<std::uint64_t, kLanesMax> words{};
  for (unsigned bit = 0; bit < lane_count * 64; ++bit) {
    const std::uint64_t value = (lanes >> (bit % lane_count)) & 1;
    words[bit / 64] |= value << (bit % 64);
  }
  return words;
}

}  // namespace

base::Result<LaneTable> LaneTable::zeroed(std::uint64_t positions, unsigned lanes) {
  ASSERT(positions > 0 && positions <= kPositionsMax && lanes > 0 && lanes <= kLanesMax);
  TRY(Table table, Table::zeroed(bytes_for(positions, lanes)));
  return LaneTable(std::move(table), positions, lanes);
}

LaneTable LaneTable::viewing(base::Bytes bytes, std::uint64_t positions, unsigned lanes) {
  ASSERT(bytes.size() == bytes_for(positions, lanes));
  return LaneTable(Table::viewing(std::move(bytes)), positions, lanes);
}

void LaneTable::clear(Lanes lanes, std::uint64_t first_block, std::uint64_t block_count) {
  ASSERT(first_block <= this->block_count() && block_count <= this->block_count() - first_block);
  const auto pattern = block_pattern(~lanes, lanes_);
  std::byte* at = table_.writable() + first_block * lanes_ * sizeof(std::uint64_t);
  for (std::uint64_t block = 0; block < block_count; ++block) {
    for (unsigned word = 0; word < lanes_; ++word, at += sizeof(std::uint64_t)) {
      base::store_le(at, base::load_le<std::uint64_t>(at) & pattern[word]);
    }
  }
}

void LaneTable::append_to(base::Buffer& out, Lanes kept) const {
  const auto pattern = block_pattern(kept, lanes_);
  const base::MutableByteView copy = out.extend(table_.size());
  std::ranges::copy(table_.view(), copy.begin());
  std::byte* at = copy.data();
  for (std::uint64_t block = 0; block < block_count(); ++block) {
    for (unsigned word = 0; word < lanes_; ++word, at += sizeof(std::uint64_t)) {
      base::store_le(at, base::load_le<std::uint64_t>(at) & pattern[word]);
    }
  }
}

bool LaneTable::ends_clean() const {
  const std::uint64_t used = positions_ * lanes_;
  const std::uint64_t first_byte = used / 8;
  const auto first = std::to_integer<unsigned>(table_.data()[first_byte]);
  if ((first >> (used % 8)) != 0) return false;
  return std::ranges::all_of(table_.view().subspan(first_byte + 1),
                             [](std::byte byte) { return byte == std::byte{0}; });
}

}  // namespace helenus::filters
