// Bucket: four slots of 8, 12, 16 or 32 bits packed into one word, searched without a loop.
//
// A slot is a lane of the word, slot 0 lowest; zero means empty. In memory a bucket takes exactly
// four slots (4, 6, 8 or 16 bytes), little-endian. Comparing all four slots with a value is a few
// instructions on the whole word (SWAR): xor with the value in every lane turns "equal" into "zero
// lane", and zero lanes are found by arithmetic.
//
// Lookups, which only ask whether either of two buckets has a value, put both into one vector. It
// takes fewer instructions, and fewer instructions a lookup are more lookups in the window that a
// processor overlaps. These are the vector types of the compiler, not instructions of one machine:
// the result is the same everywhere.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "base/codec.h"

namespace helenus::filters {

inline constexpr unsigned kSlotsPerBucket = 4;

template <unsigned kBits>
struct Bucket {
  static_assert(kBits == 8 || kBits == 12 || kBits == 16 || kBits == 32);

  using Word =
      std::conditional_t<kBits == 8, std::uint32_t,
                         std::conditional_t<kBits == 32, unsigned __int128, std::uint64_t>>;
  using Slot = std::uint32_t;

  static constexpr std::size_t kBytes = kBits * kSlotsPerBucket / 8;
  // `load` and `store` touch a whole word: this many bytes after a bucket must exist, too.
  static constexpr std::size_t kSlackBytes = sizeof(Word) - kBytes;
  static constexpr Slot kSlotMask = static_cast<Slot>((std::uint64_t{1} << kBits) - 1);

  // One in each lane; the highest bit of each lane; all other bits of each lane; all lanes.
  static constexpr Word kOnes =
      Word{1} | (Word{1} << kBits) | (Word{1} << (2 * kBits)) | (Word{1} << (3 * kBits));
  static constexpr Word kHighs = kOnes << (kBits - 1);
  static constexpr Word kLows = kHighs - kOnes;
  static constexpr Word kLanes = kHighs | kLows;

  static Word load(const std::byte* bucket) {
    Word word;
    std::memcpy(&word, bucket, sizeof word);
    return from_little_endian(word) & kLanes;
  }
  // Leaves the bytes after the bucket as they are.
  static void store(std::byte* bucket, Word word) {
    if constexpr (kSlackBytes > 0) {
      Word old;
      std::memcpy(&old, bucket, sizeof old);
      word |= from_little_endian(old) & ~kLanes;
    }
    word = from_little_endian(word);
    std::memcpy(bucket, &word, sizeof word);
  }

  // Starts to bring in what `load` will touch: where buckets do not divide a cache line, one in ten
  // words has its end in the next line.
  static void prefetch(const std::byte* bucket) {
    __builtin_prefetch(bucket);
    if constexpr (kSlackBytes > 0) __builtin_prefetch(bucket + sizeof(Word) - 1);
  }

  static constexpr Slot slot(Word word, unsigned index) {
    return static_cast<Slot>(word >> (index * kBits)) & kSlotMask;
  }
  static constexpr Word with_slot(Word word, unsigned index, Slot value) {
    const unsigned shift = index * kBits;
    return (word & ~(Word{kSlotMask} << shift)) | (Word{value} << shift);
  }
  static constexpr Word in_every_slot(Slot value) { return kOnes * value; }

  // Whether any lane is zero. The subtraction borrows from a lane only when a lower one is zero,
  // so that the answer is exact although single bits of the result are not.
  static constexpr bool any_zero(Word word) { return ((word - kOnes) & ~word & kHighs) != 0; }
  // The same for two words at once.
  static constexpr bool any_zero(Word a, Word b) {
    return (((a - kOnes) & ~a) | ((b - kOnes) & ~b)) & kHighs;
  }
  // Whether any slot of the two buckets holds `value`.
  static bool any_equal(const std::byte* a, const std::byte* b, Slot value) {
    if constexpr (std::endian::native != std::endian::little) {
      const Word wanted = in_every_slot(value);
      return any_zero(load(a) ^ wanted, load(b) ^ wanted);
    } else if constexpr (kBits == 8) {
      // Two buckets fill one register: one comparison does for both.
      constexpr std::uint64_t kOnesOfBoth = kOnes | (std::uint64_t{kOnes} << 32);
      const std::uint64_t both = load(a) | (std::uint64_t{load(b)} << 32);
      const std::uint64_t differences = both ^ (kOnesOfBoth * value);
      return ((differences - kOnesOfBoth) & ~differences & (kOnesOfBoth << 7)) != 0;
    } else if constexpr (kBits == 12) {
      // The two bytes of each slot make a lane. Of an even slot the low twelve bits count, and the
      // product drops the others; the shift then drops the low four, which an odd slot shares.
      using Halves = Lanes<std::uint16_t>;
      constexpr Halves kEvenUp = {16, 1, 16, 1, 16, 1, 16, 1};
      const auto bytes = std::bit_cast<Lanes<std::uint8_t>>(both_of(a, b));
      const auto shared = std::bit_cast<Halves>(__builtin_shufflevector(
          bytes, bytes, 0, 1, 1, 2, 3, 4, 4, 5, 8, 9, 9, 10, 11, 12, 12, 13));
      return any(((shared * kEvenUp) >> 4) == Halves{} + static_cast<std::uint16_t>(value));
    } else if constexpr (kBits == 16) {
      return any(std::bit_cast<Lanes<std::uint16_t>>(both_of(a, b)) ==
                 Lanes<std::uint16_t>{} + static_cast<std::uint16_t>(value));
    } else {
      const Lanes<std::uint32_t> wanted = Lanes<std::uint32_t>{} + value;
      return any((lanes_at(a) == wanted) | (lanes_at(b) == wanted));
    }
  }
  // The highest bit of each zero lane, exactly: the addition never carries out of a lane.
  static constexpr Word zero_lanes(Word word) {
    return ~(((word & kLows) + kLows) | word) & kHighs;
  }

  static constexpr bool has_room(Word word) { return any_zero(word); }
  // The lowest empty slot. Requires: has_room(word).
  static constexpr unsigned empty_slot(Word word) { return lowest_lane(zero_lanes(word)); }
  static constexpr unsigned occupied(Word word) {
    return kSlotsPerBucket - lane_count(zero_lanes(word));
  }

  // The index of the lowest lane marked by `zero_lanes`. Requires: lanes != 0.
  static constexpr unsigned lowest_lane(Word lanes) {
    if constexpr (kBits == 32) {
      const auto low = static_cast<std::uint64_t>(lanes);
      const auto high = static_cast<std::uint64_t>(lanes >> 64);
      const int zeros = low != 0 ? std::countr_zero(low) : 64 + std::countr_zero(high);
      return static_cast<unsigned>(zeros) / kBits;
    } else {
      return static_cast<unsigned>(std::countr_zero(lanes)) / kBits;
    }
  }
  static constexpr unsigned lane_count(Word lanes) {
    if constexpr (kBits == 32) {
      return static_cast<unsigned>(std::popcount(static_cast<std::uint64_t>(lanes)) +
                                   std::popcount(static_cast<std::uint64_t>(lanes >> 64)));
    } else {
      return static_cast<unsigned>(std::popcount(lanes));
    }
  }

 private:
  // Sixteen bytes as lanes of T: what both GCC and Clang turn into vector instructions where the
  // processor has them, and into plain ones where it has not.
  template <class T>
  using Lanes [[gnu::vector_size(16)]] = T;

  static Lanes<std::uint64_t> both_of(const std::byte* a, const std::byte* b) {
    std::uint64_t low;
    std::uint64_t high;
    std::memcpy(&low, a, sizeof low);
    std::memcpy(&high, b, sizeof high);
    return Lanes<std::uint64_t>{low, high};
  }
  static Lanes<std::uint32_t> lanes_at(const std::byte* bucket) {
    Lanes<std::uint32_t> lanes;
    std::memcpy(&lanes, bucket, sizeof lanes);
    return lanes;
  }
  // Whether any lane of a comparison is true.
  template <class Comparison>
  static bool any(Comparison lanes) {
    const auto halves = std::bit_cast<Lanes<std::uint64_t>>(lanes);
    return (halves[0] | halves[1]) != 0;
  }

  static constexpr Word from_little_endian(Word word) {
    if constexpr (std::endian::native == std::endian::little) {
      return word;
    } else if constexpr (kBits == 32) {
      return (Word{std::byteswap(static_cast<std::uint64_t>(word))} << 64) |
             std::byteswap(static_cast<std::uint64_t>(word >> 64));
    } else {
      return std::byteswap(word);
    }
  }
};

}  // namespace helenus::filters
