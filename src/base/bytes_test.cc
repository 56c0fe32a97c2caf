#include "base/bytes.h"

#include <array>
#include <bit>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace helenus::base {
namespace {

bool is_aligned(const void* pointer, std::size_t alignment) {
  return std::bit_cast<std::uintptr_t>(pointer) % alignment == 0;
}

Buffer buffer_of(std::string_view text) {
  Buffer buffer;
  buffer.append(text);
  return buffer;
}

TEST(Bytes, CopiesWhatItIsGiven) {
  std::string text = "hello";
  const Bytes bytes = Bytes::copy_of(text);
  text[0] = 'j';
  EXPECT_EQ(bytes.text(), "hello");
  EXPECT_EQ(bytes[1], std::byte{'e'});
}

TEST(Bytes, EmptyOnesOwnNothing) {
  EXPECT_TRUE(Bytes().empty());
  EXPECT_TRUE(Bytes::copy_of("").empty());
  EXPECT_TRUE(Bytes::copy_of("abc").slice(3).empty());
  EXPECT_EQ(Bytes::copy_of("abc").slice(1, 0).data(), nullptr);
  EXPECT_EQ(Bytes(), Bytes::copy_of(""));
}

TEST(Bytes, StaticOnesAreNeverCopied) {
  static constexpr std::string_view kText = "static";
  const Bytes bytes = Bytes::of_static(kText);
  const auto* const memory = as_bytes(kText).data();
  EXPECT_EQ(bytes.data(), memory);
  EXPECT_EQ(Bytes(bytes).data(), memory);
  EXPECT_EQ(bytes.slice(2).data(), memory + 2);
  EXPECT_EQ(bytes.compact().data(), memory);
}

TEST(Bytes, CopiesAndSlicesShareTheBlockAndOutliveTheOriginal) {
  Bytes slice;
  {
    const Bytes original = Bytes::copy_of("the quick brown fox");
    const Bytes copy = original;  // NOLINT: the copy is the point
    EXPECT_EQ(copy.data(), original.data());
    slice = copy.slice(4, 5);
    EXPECT_EQ(slice.data(), original.data() + 4);
  }
  EXPECT_EQ(slice.text(), "quick");
  EXPECT_EQ(slice.slice(1, 3).text(), "uic");
}

TEST(Bytes, MovingLeavesAnEmptyOneBehind) {
  Bytes original = Bytes::copy_of("moved");
  const auto* const memory = original.data();
  Bytes target = std::move(original);
  EXPECT_EQ(target.data(), memory);
  EXPECT_TRUE(original.empty());  // NOLINT: the moved-from state is the contract under test
  original = Bytes::copy_of("again");
  EXPECT_EQ(original.text(), "again");
}

TEST(Bytes, SurvivesAssignmentToItselfAndOfItsOwnSlice) {
  Bytes bytes = Bytes::copy_of("abcdef");
  const Bytes& same = bytes;
  bytes = same;
  EXPECT_EQ(bytes.text(), "abcdef");
  bytes = bytes.slice(2, 2);
  EXPECT_EQ(bytes.text(), "cd");
}

TEST(Bytes, CompactLeavesTheBigBlockAndSharesATightOne) {
  Buffer big(1 << 20);
  big.append("needle");
  const Bytes in_big = std::move(big).freeze();
  const Bytes tight = in_big.compact();
  EXPECT_NE(tight.data(), in_big.data());
  EXPECT_EQ(tight, in_big);
  EXPECT_EQ(tight.compact().data(), tight.data());
  EXPECT_NE(tight.slice(1).compact().data(), tight.data() + 1);
  EXPECT_TRUE(Bytes().compact().empty());
}

TEST(Bytes, FormatsAsHexCutToALogLine) {
  EXPECT_EQ(fmt::format("{}", Bytes::copy_of("az")), "617a");
  const std::string text(40, 'a');
  std::string expected;
  for (int index = 0; index < 32; ++index) expected += "61";
  EXPECT_EQ(fmt::format("{}", Bytes::copy_of(text)), expected + "...");
}

TEST(Bytes, HexIsLowerCaseAndStopsWhereToldTo) {
  const std::array<std::byte, 3> bytes = {std::byte{0x00}, std::byte{0xab}, std::byte{0x7f}};
  EXPECT_EQ(to_hex(bytes), "00ab7f");
  EXPECT_EQ(to_hex(bytes, 3), "00ab7f");
  EXPECT_EQ(to_hex(bytes, 2), "00ab...");
  EXPECT_EQ(to_hex(bytes, 0), "...");
  EXPECT_EQ(to_hex({}), "");
}

TEST(Bytes, OrderIsByUnsignedByteThenByLength) {
  EXPECT_LT(Bytes::copy_of("a"), Bytes::copy_of("b"));
  EXPECT_LT(Bytes::copy_of("ab"), Bytes::copy_of("abc"));
  EXPECT_LT(Bytes(), Bytes::copy_of("a"));
  EXPECT_LT(Bytes::copy_of("\x7f"), Bytes::copy_of("\x80"));
  EXPECT_EQ(compare(as_bytes("x"), as_bytes("x")), std::strong_ordering::equal);
}

RC_GTEST_PROP(Bytes, CompareAgreesWithUnsignedStrings,
              (const std::vector<std::uint8_t>& a, const std::vector<std::uint8_t>& b)) {
  const ByteView view_a = std::as_bytes(std::span(a));
  const ByteView view_b = std::as_bytes(std::span(b));
  RC_ASSERT(compare(view_a, view_b) == (a <=> b));
  RC_ASSERT(equal(view_a, view_b) == (a == b));
}

RC_GTEST_PROP(Bytes, SlicesOfSlicesAgreeWithSubstrings, (std::string text)) {
  Bytes bytes = Bytes::copy_of(text);
  while (!text.empty()) {
    const auto offset = *rc::gen::inRange<std::size_t>(0, text.size() + 1);
    const auto count = *rc::gen::inRange<std::size_t>(0, text.size() - offset + 1);
    if (count == text.size()) break;
    text = text.substr(offset, count);
    bytes = bytes.slice(offset, count);
    RC_ASSERT(bytes.text() == text);
  }
}

TEST(BytesDeathTest, ReachingOutsideIsAMistake) {
  const Bytes bytes = Bytes::copy_of("abc");
  EXPECT_DEATH((void)bytes[3], "index < size");
  EXPECT_DEATH((void)bytes.slice(4), "offset <= size");
  EXPECT_DEATH((void)bytes.slice(2, 2), "slice 2\\+2 of 3");
  EXPECT_DEATH((void)bytes.slice(1, SIZE_MAX), "slice 1\\+");
}

TEST(Buffer, GrowsAndKeepsWhatItHeld) {
  Buffer buffer;
  EXPECT_EQ(buffer.capacity(), 0u);
  EXPECT_TRUE(buffer.view().empty());
  std::string expected;
  for (int index = 0; index < 10'000; ++index) {
    buffer.push_back(static_cast<std::byte>(index));
    expected += static_cast<char>(index);
  }
  EXPECT_EQ(as_text(buffer.view()), expected);
  EXPECT_LT(buffer.capacity(), 2 * 10'001u);
}

TEST(Buffer, FreezingHandsOverTheMemory) {
  Buffer buffer = buffer_of("frozen");
  const auto* const memory = buffer.data();
  const Bytes bytes = std::move(buffer).freeze();
  EXPECT_EQ(bytes.data(), memory);
  EXPECT_EQ(bytes.text(), "frozen");
  EXPECT_TRUE(buffer.empty());  // NOLINT: the state after freezing is the contract under test
  buffer.append("anew");
  EXPECT_EQ(as_text(buffer.view()), "anew");
  EXPECT_EQ(bytes.text(), "frozen");
}

TEST(Buffer, AnEmptyOneFreezesToEmptyBytes) {
  Buffer buffer(100);
  EXPECT_TRUE(std::move(buffer).freeze().empty());
}

TEST(Buffer, KeepsItsAlignmentWhenItGrows) {
  for (const std::size_t alignment : {1u, 8u, 16u, 64u, 512u, 4096u}) {
    Buffer buffer(1, alignment);
    EXPECT_TRUE(is_aligned(buffer.data(), alignment));
    buffer.extend(100'000);
    EXPECT_TRUE(is_aligned(buffer.data(), alignment));
    const Bytes bytes = std::move(buffer).freeze();
    EXPECT_TRUE(is_aligned(bytes.data(), alignment));
  }
}

TEST(Buffer, ReservedMemoryDoesNotMove) {
  Buffer buffer;
  buffer.reserve(1000);
  const auto* const memory = buffer.data();
  buffer.extend(1000);
  EXPECT_EQ(buffer.data(), memory);
  buffer.reserve(10);
  EXPECT_EQ(buffer.data(), memory);
}

TEST(Buffer, TruncateAndClearKeepTheMemory) {
  Buffer buffer = buffer_of("abcdef");
  const std::size_t capacity = buffer.capacity();
  buffer.truncate(2);
  EXPECT_EQ(as_text(buffer.view()), "ab");
  buffer.clear();
  EXPECT_TRUE(buffer.empty());
  EXPECT_EQ(buffer.capacity(), capacity);
}

TEST(Buffer, MovesLikeAValue) {
  Buffer first = buffer_of("first");
  Buffer second = buffer_of("second");
  second = std::move(first);
  EXPECT_EQ(as_text(second.view()), "first");
  EXPECT_TRUE(first.empty());  // NOLINT: the moved-from state is the contract under test
}

TEST(BufferDeathTest, SizesBeyondTheLimitAreMistakesNotWraparounds) {
  Buffer buffer = buffer_of("abc");
  EXPECT_DEATH(buffer.extend(SIZE_MAX), "bytes more than 3");
  EXPECT_DEATH(buffer.extend(Buffer::kCapacityMax), "bytes more than 3");
  EXPECT_DEATH(buffer.reserve(SIZE_MAX), "capacity");
  EXPECT_DEATH(buffer.truncate(4), "size <= size_");
  EXPECT_DEATH(Buffer(SIZE_MAX - 8), "capacity");
  EXPECT_DEATH(Buffer(1, 3), "alignment 3");
  EXPECT_DEATH(Buffer(1, 2 * Buffer::kAlignmentMax), "alignment");
}

}  // namespace
}  // namespace helenus::base
