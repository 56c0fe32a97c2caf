#include "base/codec.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <tuple>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "base/hash.h"

namespace helenus::base {
namespace {

using ::testing::HasSubstr;

enum class FieldKind {
  u8,
  u16_le,
  u32_le,
  u64_le,
  u16_be,
  u32_be,
  u64_be,
  varint,
  signed_varint,
  raw,
  prefixed
};
constexpr int kFieldKinds = 11;

// One field of a message; `number` or `text` is its value, as its kind says.
struct Field {
  FieldKind kind;
  std::uint64_t number = 0;
  std::string text;

  friend bool operator==(const Field&, const Field&) = default;
};

void encode(const Field& field, Encoder& out) {
  switch (field.kind) {
    case FieldKind::u8:
      return out.u8(static_cast<std::uint8_t>(field.number));
    case FieldKind::u16_le:
      return out.u16_le(static_cast<std::uint16_t>(field.number));
    case FieldKind::u32_le:
      return out.u32_le(static_cast<std::uint32_t>(field.number));
    case FieldKind::u64_le:
      return out.u64_le(field.number);
    case FieldKind::u16_be:
      return out.u16_be(static_cast<std::uint16_t>(field.number));
    case FieldKind::u32_be:
      return out.u32_be(static_cast<std::uint32_t>(field.number));
    case FieldKind::u64_be:
      return out.u64_be(field.number);
    case FieldKind::varint:
      return out.varint(field.number);
    case FieldKind::signed_varint:
      return out.signed_varint(static_cast<std::int64_t>(field.number));
    case FieldKind::raw:
      return out.raw(as_bytes(field.text));
    case FieldKind::prefixed:
      return out.prefixed(field.text);
  }
}

// Reads a field of the kind (and, for raw bytes, the size) of `like`.
Field decode(const Field& like, Decoder& in) {
  switch (like.kind) {
    case FieldKind::u8:
      return {like.kind, in.u8(), {}};
    case FieldKind::u16_le:
      return {like.kind, in.u16_le(), {}};
    case FieldKind::u32_le:
      return {like.kind, in.u32_le(), {}};
    case FieldKind::u64_le:
      return {like.kind, in.u64_le(), {}};
    case FieldKind::u16_be:
      return {like.kind, in.u16_be(), {}};
    case FieldKind::u32_be:
      return {like.kind, in.u32_be(), {}};
    case FieldKind::u64_be:
      return {like.kind, in.u64_be(), {}};
    case FieldKind::varint:
      return {like.kind, in.varint(), {}};
    case FieldKind::signed_varint:
      return {like.kind, static_cast<std::uint64_t>(in.signed_varint()), {}};
    case FieldKind::raw:
      return {like.kind, 0, std::string(as_text(in.raw(like.text.size())))};
    case FieldKind::prefixed:
      return {like.kind, 0, std::string(in.prefixed_text())};
  }
  UNREACHABLE();
}

Field field_of(int kind_index, std::uint64_t number, std::string text) {
  const auto kind = static_cast<FieldKind>(kind_index);
  switch (kind) {
    case FieldKind::u8:
      return {kind, number & 0xff, {}};
    case FieldKind::u16_le:
    case FieldKind::u16_be:
      return {kind, number & 0xffff, {}};
    case FieldKind::u32_le:
    case FieldKind::u32_be:
      return {kind, number & 0xffff'ffff, {}};
    case FieldKind::raw:
    case FieldKind::prefixed:
      return {kind, 0, std::move(text)};
    default:
      return {kind, number, {}};
  }
}

rc::Gen<std::uint64_t> any_number() {
  return rc::gen::map(rc::gen::pair(rc::gen::arbitrary<std::uint64_t>(), rc::gen::inRange(0, 64)),
                      [](const auto& pair) { return mix64(pair.first) >> pair.second; });
}

std::vector<Field> any_message() {
  const auto parts =
      *rc::gen::container<std::vector<std::tuple<int, std::uint64_t, std::string>>>(rc::gen::tuple(
          rc::gen::inRange(0, kFieldKinds), any_number(), rc::gen::arbitrary<std::string>()));
  std::vector<Field> message;
  for (const auto& [kind, number, text] : parts) message.push_back(field_of(kind, number, text));
  return message;
}

Bytes encoded(const std::vector<Field>& message) {
  Buffer buffer;
  Encoder out(buffer);
  for (const Field& field : message) encode(field, out);
  return std::move(buffer).freeze();
}

template <class Write>
std::string hex_of(Write write) {
  Buffer buffer;
  Encoder out(buffer);
  write(out);
  return to_hex(buffer.view());
}

Bytes bytes_of(std::initializer_list<int> values) {
  Buffer buffer;
  for (const int value : values) buffer.push_back(static_cast<std::byte>(value));
  return std::move(buffer).freeze();
}

std::string varint_problem(std::initializer_list<int> values) {
  const Bytes bytes = bytes_of(values);
  Decoder in(bytes);
  EXPECT_EQ(in.varint(), 0u);
  EXPECT_EQ(in.remaining(), 0u);
  const auto status = in.status();
  EXPECT_TRUE(status.failed_with(Errc::corrupt));
  return status ? "" : std::string(status.error().context());
}

RC_GTEST_PROP(Codec, AMessageComesBackAsItWentIn, ()) {
  const std::vector<Field> message = any_message();
  const Bytes bytes = encoded(message);
  Decoder in(bytes);
  for (const Field& field : message) RC_ASSERT(decode(field, in) == field);
  RC_ASSERT(in.finish().has_value());
}

RC_GTEST_PROP(Codec, EveryTruncationFailsAndStaysFailed, ()) {
  const std::vector<Field> message = any_message();
  const Bytes bytes = encoded(message);
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    const Bytes part = bytes.slice(0, size).compact();  // a block of its own, for asan to watch
    Decoder in(part);
    bool failed = false;
    for (const Field& field : message) {
      const Field read = decode(field, in);
      if (failed) RC_ASSERT(read.number == 0 && read.text.empty());
      failed = failed || !in.ok();
    }
    RC_ASSERT(failed);
    RC_ASSERT(in.finish().failed_with(Errc::corrupt));
    RC_ASSERT(in.remaining() == 0u);
  }
}

RC_GTEST_PROP(Codec, VarintSizeIsWhatTheEncoderWrites, ()) {
  const std::uint64_t number = *any_number();
  RC_ASSERT(encoded({{FieldKind::varint, number, {}}}).size() == varint_size(number));
}

RC_GTEST_PROP(Codec, ZigzagIsABijectionThatKeepsSmallSmall, (std::int64_t value)) {
  RC_ASSERT(unzigzag(zigzag(value)) == value);
  RC_ASSERT(zigzag(unzigzag(static_cast<std::uint64_t>(value))) ==
            static_cast<std::uint64_t>(value));
}

TEST(Codec, ZigzagOfTheExtremes) {
  static_assert(zigzag(0) == 0 && zigzag(-1) == 1 && zigzag(1) == 2 && zigzag(-2) == 3);
  static_assert(zigzag(std::numeric_limits<std::int64_t>::max()) == UINT64_MAX - 1);
  static_assert(zigzag(std::numeric_limits<std::int64_t>::min()) == UINT64_MAX);
  static_assert(unzigzag(UINT64_MAX) == std::numeric_limits<std::int64_t>::min());
}

TEST(Codec, BytesNeverChange) {
  EXPECT_EQ(hex_of([](Encoder& out) { out.u16_le(0x0102); }), "0201");
  EXPECT_EQ(hex_of([](Encoder& out) { out.u32_le(0x01020304); }), "04030201");
  EXPECT_EQ(hex_of([](Encoder& out) { out.u64_le(0x0102030405060708); }), "0807060504030201");
  EXPECT_EQ(hex_of([](Encoder& out) { out.u16_be(0x0102); }), "0102");
  EXPECT_EQ(hex_of([](Encoder& out) { out.u32_be(0x01020304); }), "01020304");
  EXPECT_EQ(hex_of([](Encoder& out) { out.u64_be(0x0102030405060708); }), "0102030405060708");
  EXPECT_EQ(hex_of([](Encoder& out) { out.varint(0); }), "00");
  EXPECT_EQ(hex_of([](Encoder& out) { out.varint(127); }), "7f");
  EXPECT_EQ(hex_of([](Encoder& out) { out.varint(128); }), "8001");
  EXPECT_EQ(hex_of([](Encoder& out) { out.varint(300); }), "ac02");
  EXPECT_EQ(hex_of([](Encoder& out) { out.varint(UINT64_MAX); }), "ffffffffffffffffff01");
  EXPECT_EQ(hex_of([](Encoder& out) { out.signed_varint(-65); }), "8101");
  EXPECT_EQ(hex_of([](Encoder& out) { out.prefixed("ab"); }), "026162");
  EXPECT_EQ(hex_of([](Encoder& out) { out.prefixed(""); }), "00");
}

TEST(Codec, VarintsOfEveryLengthComeBack) {
  for (unsigned bit = 0; bit < 64; ++bit) {
    for (const std::uint64_t number : {(std::uint64_t{1} << bit) - 1, std::uint64_t{1} << bit}) {
      const Bytes bytes = encoded({{FieldKind::varint, number, {}}});
      EXPECT_LE(bytes.size(), kVarintSizeMax);
      Decoder in(bytes);
      EXPECT_EQ(in.varint(), number);
      EXPECT_TRUE(in.finish());
    }
  }
}

TEST(Decoder, RefusesVarintsThatAreNotShortest) {
  EXPECT_THAT(varint_problem({0x80, 0x00}), HasSubstr("not in its shortest form"));
  EXPECT_THAT(varint_problem({0xff, 0x00}), HasSubstr("not in its shortest form"));
  EXPECT_THAT(varint_problem({0x80, 0x80, 0x00}), HasSubstr("not in its shortest form"));
  EXPECT_THAT(varint_problem({0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x00}),
              HasSubstr("not in its shortest form"));
}

TEST(Decoder, RefusesVarintsOfMoreThan64Bits) {
  EXPECT_THAT(varint_problem({0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02}),
              HasSubstr("exceeds 64 bits"));
  EXPECT_THAT(varint_problem({0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x81, 0x00}),
              HasSubstr("exceeds 64 bits"));
}

TEST(Decoder, RefusesVarintsThatEndTooEarly) {
  EXPECT_THAT(varint_problem({}), HasSubstr("ends inside a varint at byte 0 of 0"));
  EXPECT_THAT(varint_problem({0x80}), HasSubstr("ends inside a varint at byte 0 of 1"));
}

TEST(Decoder, ACountIsBoundedByTheBytesThatAreLeft) {
  const Bytes bytes = bytes_of({3, 0, 0, 0, 0, 0, 0});
  Decoder fits(bytes);
  EXPECT_EQ(fits.count(2), 3u);
  EXPECT_EQ(fits.remaining(), 6u);
  Decoder too_many(bytes);
  EXPECT_EQ(too_many.count(3), 0u);
  EXPECT_THAT(too_many.status().error().context(), HasSubstr("more elements than there are bytes"));

  const Bytes hostile = encoded({{FieldKind::varint, UINT64_MAX, {}}});
  Decoder huge(hostile);
  EXPECT_EQ(huge.count(1), 0u);
  EXPECT_FALSE(huge.ok());
}

TEST(Decoder, ALengthIsBoundedByTheBytesThatAreLeft) {
  const Bytes bytes = bytes_of({3, 'a', 'b'});
  Decoder in(bytes);
  EXPECT_TRUE(in.prefixed().empty());
  EXPECT_THAT(in.status().error().context(), HasSubstr("length exceeds what is left at byte 1"));

  const Bytes hostile = encoded({{FieldKind::varint, UINT64_MAX, {}}});
  Decoder huge(hostile);
  EXPECT_TRUE(huge.prefixed().empty());
  EXPECT_FALSE(huge.ok());
  Decoder raw(hostile);
  EXPECT_TRUE(raw.raw(SIZE_MAX).empty());
  EXPECT_THAT(raw.status().error().context(), HasSubstr("ends inside a byte string"));
}

TEST(Decoder, BytesLeftOverFailTheFinishButNotTheStatus) {
  const Bytes bytes = bytes_of({1, 2});
  Decoder in(bytes);
  EXPECT_EQ(in.u8(), 1);
  EXPECT_TRUE(in.status());
  EXPECT_EQ(in.finish().error().to_string(), "corrupt: has bytes left over at byte 1 of 2");
}

TEST(Decoder, TheFirstProblemWinsAndNothingIsReadAfterIt) {
  const Bytes bytes = bytes_of({1, 2, 3, 4, 5, 6, 7, 8});
  Decoder in(bytes);
  in.u8();
  in.fail("has a bad colour");
  EXPECT_EQ(in.u8(), 0);
  EXPECT_EQ(in.u32_be(), 0u);
  EXPECT_EQ(in.signed_varint(), 0);
  EXPECT_EQ(in.count(1), 0u);
  EXPECT_TRUE(in.prefixed_text().empty());
  in.fail("has a bad shape");
  EXPECT_EQ(in.finish().error().context(), "has a bad colour at byte 1 of 8");
}

TEST(Decoder, WhatItReturnsBorrowsFromItsInput) {
  const Bytes bytes = bytes_of({2, 'h', 'i'});
  Decoder in(bytes);
  EXPECT_EQ(in.prefixed().data(), bytes.data() + 1);
}

TEST(DecoderDeathTest, ElementsOfNoBytesCannotBeCounted) {
  Decoder in({});
  EXPECT_DEATH(in.count(0), "bytes_each_min > 0");
}

}  // namespace
}  // namespace helenus::base
