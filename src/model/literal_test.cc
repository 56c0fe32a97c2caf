#include "model/literal.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "model/generators_test_support.h"
#include "model/value.h"

namespace helenus::model {
namespace {

using base::Bytes;
using base::Errc;

struct Known {
  TypeKind type;
  LiteralKind kind;
  std::string_view text;
  std::string_view hex;
};

TEST(Literal, KnownBytes) {
  const std::vector<Known> table = {
      {TypeKind::tinyint, LiteralKind::integer, "-128", "80"},
      {TypeKind::smallint, LiteralKind::integer, "32767", "7fff"},
      {TypeKind::int_, LiteralKind::integer, "-2147483648", "80000000"},
      {TypeKind::bigint, LiteralKind::integer, "9223372036854775807", "7fffffffffffffff"},
      {TypeKind::counter, LiteralKind::integer, "1", "0000000000000001"},
      {TypeKind::varint, LiteralKind::integer, "18446744073709551615", "00ffffffffffffffff"},
      {TypeKind::decimal, LiteralKind::integer, "5", "0000000005"},
      {TypeKind::decimal, LiteralKind::floating, "1.50", "000000020096"},
      {TypeKind::float_, LiteralKind::floating, "1.5", "3fc00000"},
      {TypeKind::float_, LiteralKind::integer, "1", "3f800000"},
      {TypeKind::double_, LiteralKind::floating, "-Infinity", "fff0000000000000"},
      {TypeKind::double_, LiteralKind::floating, "NaN", "7ff8000000000000"},
      {TypeKind::boolean, LiteralKind::boolean, "TRUE", "01"},
      {TypeKind::boolean, LiteralKind::boolean, "false", "00"},
      {TypeKind::varchar, LiteralKind::string, "a\xc3\xa9", "61c3a9"},
      {TypeKind::ascii, LiteralKind::string, "", ""},
      {TypeKind::blob, LiteralKind::blob, "0xCAfe", "cafe"},
      {TypeKind::blob, LiteralKind::blob, "0x", ""},
      {TypeKind::inet, LiteralKind::string, "127.0.0.1", "7f000001"},
      {TypeKind::inet, LiteralKind::string, "::1", "00000000000000000000000000000001"},
      {TypeKind::inet, LiteralKind::string, "::", "00000000000000000000000000000000"},
      {TypeKind::inet, LiteralKind::string, "2001:DB8::", "20010db8000000000000000000000000"},
      {TypeKind::inet, LiteralKind::string, "1:2:3:4:5:6:7:8", "00010002000300040005000600070008"},
      {TypeKind::inet, LiteralKind::string, "64:ff9b::1.2.3.4", "0064ff9b000000000000000001020304"},
      {TypeKind::inet, LiteralKind::string, "::ffff:1.2.3.4", "01020304"},
      {TypeKind::uuid, LiteralKind::uuid, "550E8400-e29b-41d4-a716-446655440000",
       "550e8400e29b41d4a716446655440000"},
      {TypeKind::timeuuid, LiteralKind::uuid, "550e8400-e29b-11d4-a716-446655440000",
       "550e8400e29b11d4a716446655440000"},
      {TypeKind::timestamp, LiteralKind::integer, "-1", "ffffffffffffffff"},
      {TypeKind::timestamp, LiteralKind::string, "1970-01-01T00:00:01Z", "00000000000003e8"},
      {TypeKind::date, LiteralKind::string, "1970-01-02", "80000001"},
      {TypeKind::date, LiteralKind::integer, "2147483649", "80000001"},
      {TypeKind::time, LiteralKind::string, "00:00:00.000000001", "0000000000000001"},
      {TypeKind::duration, LiteralKind::duration, "1mo2d3ns", "020406"},
  };
  for (const auto& [type, kind, text, hex] : table) {
    ASSERT_TRUE(accepts(DataType(type), kind)) << text;
    const auto value = parse_literal(DataType(type), kind, text);
    ASSERT_TRUE(value) << text << ": " << value.error().to_string();
    EXPECT_EQ(base::to_hex(*value), hex) << text;
  }
}

struct Refused {
  TypeKind type;
  LiteralKind kind;
  std::string_view text;
  std::string_view message;
};

TEST(Literal, RefusalsAreInCassandrasWords) {
  const std::vector<Refused> table = {
      {TypeKind::tinyint, LiteralKind::integer, "128", "Unable to make byte from '128'"},
      {TypeKind::smallint, LiteralKind::integer, "-32769", "Unable to make short from '-32769'"},
      {TypeKind::int_, LiteralKind::integer, "2147483648", "Unable to make int from '2147483648'"},
      {TypeKind::bigint, LiteralKind::integer, "9223372036854775808",
       "Unable to make long from '9223372036854775808'"},
      {TypeKind::inet, LiteralKind::string, "localhost",
       "Unable to make inet address from 'localhost'"},
      {TypeKind::timeuuid, LiteralKind::uuid, "550e8400-e29b-41d4-a716-446655440000",
       "TimeUUID supports only version 1 UUIDs"},
      {TypeKind::blob, LiteralKind::blob, "0xabc", "cannot parse '0xabc' as hex bytes"},
      {TypeKind::blob, LiteralKind::blob, "0xzz", "cannot parse '0xzz' as hex bytes"},
      {TypeKind::ascii, LiteralKind::string, "\xc3\xa9",
       "Invalid ASCII character in string literal"},
      {TypeKind::varchar, LiteralKind::string, "\xff", "String didn't validate."},
      {TypeKind::date, LiteralKind::string, "yesterday",
       "Unable to coerce 'yesterday' to a formatted date (long)"},
      {TypeKind::duration, LiteralKind::integer, "5", "Unable to convert '5' to a duration"},
      {TypeKind::varint, LiteralKind::integer, "x", "unable to make int from 'x'"},
      {TypeKind::decimal, LiteralKind::floating, "NaN", "unable to make BigDecimal from 'NaN'"},
      {TypeKind::float_, LiteralKind::floating, "x", "Unable to make float from 'x'"},
      {TypeKind::double_, LiteralKind::floating, "x", "Unable to make double from 'x'"},
      {TypeKind::boolean, LiteralKind::boolean, "yes", "Unable to make boolean from 'yes'"},
      {TypeKind::uuid, LiteralKind::uuid, "x", "Unable to make UUID from 'x'"},
      {TypeKind::timeuuid, LiteralKind::uuid, "x", "Unknown timeuuid representation: x"},
  };
  for (const auto& [type, kind, text, message] : table) {
    const auto value = parse_literal(DataType(type), kind, text);
    ASSERT_TRUE(value.failed_with(Errc::invalid_argument)) << text;
    EXPECT_EQ(value.error().context(), message);
  }
}

TEST(Literal, AddressesThatAreNoneAreRefused) {
  for (const std::string_view text :
       {"", "1.2.3", "1.2.3.4.5", "256.1.1.1", "1.2.3.-4", "1..2.3", ":", ":::", "1:2:3:4:5:6:7",
        "1:2:3:4:5:6:7:8:9", "::1::", "12345::", "1:2:3:4:5:6:7::8", "::1.2.3",
        "1.2.3.4::", "fe80::1%eth0", "g::", "1:", ":1"}) {
    EXPECT_FALSE(parse_literal(DataType(TypeKind::inet), LiteralKind::string, text)) << text;
  }
}

TEST(Literal, LongTextsDoNotComeBackWhole) {
  const std::string text(100'000, '9');
  const auto value = parse_literal(DataType(TypeKind::int_), LiteralKind::integer, text);
  ASSERT_FALSE(value);
  EXPECT_LT(value.error().context().size(), 200U);
}

TEST(Literal, KindsFitTypesAsInCassandra) {
  const auto fits = [](TypeKind type, LiteralKind kind) { return accepts(DataType(type), kind); };
  EXPECT_FALSE(fits(TypeKind::int_, LiteralKind::string));
  EXPECT_FALSE(fits(TypeKind::varchar, LiteralKind::integer));
  EXPECT_FALSE(fits(TypeKind::uuid, LiteralKind::string));
  EXPECT_FALSE(fits(TypeKind::int_, LiteralKind::floating));
  EXPECT_FALSE(fits(TypeKind::duration, LiteralKind::string));
  EXPECT_TRUE(fits(TypeKind::duration, LiteralKind::integer));
  EXPECT_FALSE(fits(TypeKind::varchar, LiteralKind::blob));
  EXPECT_FALSE(accepts(testing::list_type(DataType::text()), LiteralKind::string));
  EXPECT_EQ(name_of(LiteralKind::blob), "HEX");
}

LiteralKind kind_of_text(TypeKind type, const std::string& text) {
  if (text.starts_with('\'')) return LiteralKind::string;
  switch (type) {
    case TypeKind::boolean:
      return LiteralKind::boolean;
    case TypeKind::uuid:
    case TypeKind::timeuuid:
      return LiteralKind::uuid;
    case TypeKind::blob:
      return LiteralKind::blob;
    case TypeKind::duration:
      return LiteralKind::duration;
    case TypeKind::float_:
    case TypeKind::double_:
    case TypeKind::decimal:
      return LiteralKind::floating;
    default:
      return LiteralKind::integer;
  }
}

std::string without_quotes(const std::string& text) {
  if (!text.starts_with('\'')) return text;
  std::string inner = text.substr(1, text.size() - 2);
  for (std::size_t at = inner.find("''"); at != std::string::npos; at = inner.find("''", at + 1)) {
    inner.erase(at, 1);
  }
  return inner;
}

RC_GTEST_PROP(Literal, PrintedValuesReadBack, ()) {
  auto kinds = testing::ordered_natives();
  kinds.push_back(TypeKind::duration);
  const DataType type(*rc::gen::elementOf(kinds));
  const Bytes value = testing::draw_native(type.kind());
  RC_PRE(!value.empty() || type.is_text() || type.kind() == TypeKind::blob);
  const std::string text = to_text(type, value);
  RC_LOG() << type.to_cql() << " " << text;
  const auto back = parse_literal(type, kind_of_text(type.kind(), text), without_quotes(text));
  RC_ASSERT(back.has_value());
  const bool mapped = type.kind() == TypeKind::inet && back->size() != value.size();
  RC_ASSERT((mapped || std::is_eq(compare(type, *back, value))));
}

}  // namespace
}  // namespace helenus::model
