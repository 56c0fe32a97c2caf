#include "cql/protocol/primitives.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "cql/protocol/protocol_test_support.h"

namespace helenus::cql::protocol {
namespace {

using base::Bytes;
using base::Decoder;
using base::Encoder;

template <class Put>
Bytes written(Put put) {
  base::Buffer buffer;
  Encoder out(buffer);
  put(out);
  return std::move(buffer).freeze();
}

template <class Get>
std::string problem_of(std::string_view hex, Get get) {
  const Bytes bytes = from_hex(hex);
  Decoder in(bytes);
  get(in);
  const auto status = in.status();
  return status ? "" : std::string(status.error().context());
}

TEST(Primitives, AreWrittenAsTheProtocolSays) {
  EXPECT_EQ(written([](Encoder& out) { put_string(out, "ab"); }), from_hex("0002 6162"));
  EXPECT_EQ(written([](Encoder& out) { put_long_string(out, "ab"); }), from_hex("00000002 6162"));
  EXPECT_EQ(written([](Encoder& out) { put_short_bytes(out, from_hex("ff")); }),
            from_hex("0001 ff"));
  EXPECT_EQ(written([](Encoder& out) { put_bytes(out, std::nullopt); }), from_hex("ffffffff"));
  EXPECT_EQ(written([](Encoder& out) { put_bytes(out, base::ByteView()); }), from_hex("00000000"));
  EXPECT_EQ(written([](Encoder& out) { put_value(out, Value::null()); }), from_hex("ffffffff"));
  EXPECT_EQ(written([](Encoder& out) { put_value(out, Value::unset()); }), from_hex("fffffffe"));
  const std::vector<std::string> list = {"a", ""};
  EXPECT_EQ(written([&](Encoder& out) { put_string_list(out, list); }),
            from_hex("0002 0001 61 0000"));
  EXPECT_EQ(written([](Encoder& out) { put_consistency(out, Consistency::local_one); }),
            from_hex("000a"));
  Inet v4{.octets = {std::byte{127}, {}, {}, std::byte{1}}, .size = 4, .port = 9042};
  EXPECT_EQ(written([&](Encoder& out) { put_inet(out, v4); }), from_hex("04 7f000001 00002352"));
}

TEST(Primitives, ReadBackWhatTheyWrote) {
  Inet v6{.octets = {}, .size = 16, .port = 7};
  v6.octets[15] = std::byte{1};
  const std::vector<PayloadEntry> payload = {{.key = "k", .value = base::as_bytes("v")},
                                             {.key = "", .value = std::nullopt}};
  const auto uuid = *base::Uuid::parse("f81d4fae-7dec-11d0-a765-00a0c91e6bf6");
  const Bytes bytes = written([&](Encoder& out) {
    put_inet(out, v6);
    put_payload(out, payload);
    put_uuid(out, uuid);
    put_value(out, Value::of(base::as_bytes("x")));
    put_value(out, Value::unset());
    put_value(out, Value::null());
    put_value(out, Value::of({}));
    put_long_string(out, "grüße");
  });
  Decoder in(bytes);
  EXPECT_EQ(get_inet(in), v6);
  EXPECT_EQ(get_payload(in), payload);
  EXPECT_EQ(base::decode_uuid(in), uuid);
  EXPECT_EQ(get_value(in), Value::of(base::as_bytes("x")));
  EXPECT_EQ(get_value(in), Value::unset());
  EXPECT_EQ(get_value(in), Value::null());
  EXPECT_EQ(get_value(in), Value::of({}));
  EXPECT_EQ(get_long_string(in), "grüße");
  EXPECT_TRUE(in.finish().has_value());
}

TEST(Primitives, SayWhatWasWrong) {
  EXPECT_TRUE(problem_of("0002 61", get_string).contains("ends inside"));
  EXPECT_TRUE(problem_of("0001 ff", get_string).contains("UTF-8"));
  EXPECT_TRUE(problem_of("ffffffff", get_long_string).contains("negative"));
  EXPECT_TRUE(problem_of("7fffffff 61", get_long_string).contains("ends inside"));
  EXPECT_TRUE(problem_of("fffffffd", get_value).contains("less than -2"));
  EXPECT_TRUE(problem_of("000b", get_consistency).contains("consistency"));
  EXPECT_TRUE(problem_of("05 0000000000 00000000", get_inet).contains("neither 4 nor 16"));
  EXPECT_TRUE(problem_of("ffff 0000", get_string_list).contains("more elements"));
  EXPECT_TRUE(problem_of("ffff 0000", get_payload).contains("more elements"));
  EXPECT_TRUE(
      problem_of("ffffffff", [](Decoder& in) { get_int_count(in, 1); }).contains("negative"));
  EXPECT_TRUE(
      problem_of("7fffffff", [](Decoder& in) { get_int_count(in, 1); }).contains("more elements"));
  EXPECT_EQ(problem_of("80000000", [](Decoder& in) { EXPECT_FALSE(get_bytes(in).has_value()); }),
            "");
}

TEST(Primitives, TakeTextsThatAreUtf8) {
  const auto taken = [](std::string_view hex) {
    const Bytes text = from_hex(hex);
    const Bytes bytes = written([&](Encoder& out) { put_short_bytes(out, text); });
    Decoder in(bytes);
    return base::equal(base::as_bytes(get_string(in)), text) && in.finish().has_value();
  };
  for (const auto* hex : {"", "00", "7f", "c280", "dfbf", "e0a080", "ed9fbf", "ee8080", "efbfbf",
                          "f0908080", "f48fbfbf", "6162636465666768 c3a9 6162636465666768"}) {
    EXPECT_TRUE(taken(hex)) << hex;
  }
  for (const auto* hex :
       {"80", "bf", "c080", "c1bf", "c2", "c241", "e09fbf", "eda080", "edbfbf", "e0a0", "f08fbfbf",
        "f4908080", "f5808080", "ff", "f09080", "6162636465666768 ff", "61626364656667 e282"}) {
    EXPECT_FALSE(taken(hex)) << hex;
  }
}

TEST(Utf8, IsCutBetweenCharacters) {
  EXPECT_EQ(cut_utf8("grüße", 5), "grü");
  EXPECT_EQ(cut_utf8("grüße", 3), "gr");
  EXPECT_EQ(cut_utf8("grüße", 100), "grüße");
  EXPECT_EQ(cut_utf8("ü", 1), "");
}

RC_GTEST_PROP(Primitives, NeverReadPastTheirEnd, (const std::vector<std::uint8_t>& input)) {
  const Bytes bytes = Bytes::copy_of(std::as_bytes(std::span(input)));
  Decoder in(bytes);
  get_payload(in);
  get_inet(in);
  get_string_list(in);
  get_value(in);
  RC_ASSERT(in.offset() <= bytes.size());
}

}  // namespace
}  // namespace helenus::cql::protocol
