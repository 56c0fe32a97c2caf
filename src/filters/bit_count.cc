#include "filters/bit_count.h"

#include <bit>
#include <cstring>

namespace helenus::filters {

std::uint64_t count_bits(base::ByteView bytes) {
  std::uint64_t count = 0;
  while (bytes.size() >= sizeof(std::uint64_t)) {
    std::uint64_t word;
    std::memcpy(&word, bytes.data(), sizeof word);
    count += static_cast<unsigned>(std::popcount(word));
    bytes = bytes.subspan(sizeof word);
  }
  for (const std::byte byte : bytes) {
    count += static_cast<unsigned>(std::popcount(std::to_integer<unsigned>(byte)));
  }
  return count;
}

base::Result<void> check_bit_table(const Envelope& envelope, base::ByteView body, unsigned probes) {
  using base::Errc;
  using base::Error;
  if (envelope.size > envelope.capacity) {
    return Error(Errc::corrupt, "{} keys in a filter for {}", envelope.size, envelope.capacity);
  }
  const std::uint64_t set = count_bits(body);
  if (set != envelope.population) {
    return Error(Errc::corrupt, "{} bits set where {} should be", set, envelope.population);
  }
  if ((set == 0) != (envelope.size == 0) || (set + probes - 1) / probes > envelope.size) {
    return Error(Errc::corrupt, "{} bits set by {} keys", set, envelope.size);
  }
  return {};
}

}  // namespace helenus::filters
