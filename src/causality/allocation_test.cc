// Hostile counts buy no memory. The operators new of this program remember the largest request, so
// it has no other tests.
#include <algorithm>
#include <cstdlib>
#include <new>

#include <gtest/gtest.h>

#include "base/codec.h"
#include "causality/codec.h"

namespace {

std::size_t& largest_request() {
  static std::size_t bytes = 0;
  return bytes;
}

}  // namespace

void* operator new(std::size_t size) {
  largest_request() = std::max(largest_request(), size);
  return std::malloc(size);
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}

namespace helenus::causality {
namespace {

constexpr std::size_t kHostileBytes = 1 << 20;
// Room for the elements that a decoder prepares for (codec.cc), none of them larger than this.
constexpr std::size_t kRequestMax = 1024 * 128;

// `head`, then a count of as many elements of `bytes_each_min` as there are bytes for, then bytes
// of which no element can be made.
base::Bytes hostile(base::ByteView head, std::size_t bytes_each_min) {
  base::Buffer bytes(kHostileBytes + 64);
  base::Encoder out(bytes);
  out.raw(head);
  out.varint(kHostileBytes / bytes_each_min);
  std::ranges::fill(bytes.extend(kHostileBytes), std::byte{0xff});
  return std::move(bytes).freeze();
}

template <class Decode>
void expect_cheaply_refused(const base::Bytes& bytes, Decode decode) {
  largest_request() = 0;
  EXPECT_TRUE(decode(bytes).failed_with(base::Errc::corrupt));
  EXPECT_LE(largest_request(), kRequestMax);
}

TEST(HostileCounts, TakeNoMemoryAheadOfTheBytes) {
  constexpr std::byte kVersion[] = {std::byte{kFormatVersion}};
  expect_cheaply_refused(hostile(kVersion, 4), decode_clock);
  expect_cheaply_refused(hostile(kVersion, 5), decode_cell);
  expect_cheaply_refused(hostile(kVersion, 4), decode_row);
}

TEST(HostileCounts, OfRangesMarksChangesAndRangesTakeNoneEither) {
  base::Buffer no_actors;
  base::Encoder clock(no_actors);
  clock.u8(kFormatVersion);
  clock.varint(0);
  expect_cheaply_refused(hostile(no_actors.view(), 3), decode_clock);

  base::Buffer one_actor;
  base::Encoder ranges(one_actor);
  for (const std::uint8_t byte :
       {kFormatVersion, std::uint8_t{1}, std::uint8_t{1}, std::uint8_t{1}})
    ranges.u8(byte);
  // The head of counters is twice the ranges.
  expect_cheaply_refused(hostile(one_actor.view(), 1), decode_clock);

  Delta delta;
  delta.dot = {actor_of(1, 1), 1};
  const base::Bytes empty = encoded(delta);
  // Without its two last counts, those of changes and ranges.
  const base::ByteView head = empty.view().first(empty.size() - 2);
  expect_cheaply_refused(hostile(head, 2), decode_delta);
  base::Buffer without_changes;
  without_changes.append(head);
  without_changes.push_back(std::byte{0});
  expect_cheaply_refused(hostile(without_changes.view(), 1), decode_delta);
}

}  // namespace
}  // namespace helenus::causality
