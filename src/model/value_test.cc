#include "model/value.h"

#include <algorithm>
#include <limits>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "base/codec.h"
#include "model/generators_test_support.h"
#include "model/literal.h"
#include "model/number.h"
#include "model/utf8.h"

namespace helenus::model {
namespace {

using base::Bytes;
using base::ByteView;
using base::Errc;
using testing::draw_type;
using testing::draw_value;
using testing::draw_value_like;

DataType of(TypeKind kind) {
  return DataType(kind);
}

Bytes from_hex(std::string_view hex) {
  return *parse_literal(of(TypeKind::blob), LiteralKind::blob, hex);
}

std::string hex(const Bytes& bytes) {
  return base::to_hex(bytes);
}

struct Sized {
  TypeKind kind;
  std::vector<std::size_t> good;
  std::string_view message;  // for five bytes
};

TEST(Validate, FixedSizesAreThoseOfCassandra) {
  const std::vector<Sized> table = {
      {TypeKind::boolean, {0, 1}, "Expected 1 or 0 byte value (5)"},
      {TypeKind::tinyint, {1}, "Expected 1 byte for a tinyint (5)"},
      {TypeKind::smallint, {2}, "Expected 2 bytes for a smallint (5)"},
      {TypeKind::int_, {0, 4}, "Expected 4 or 0 byte int (5)"},
      {TypeKind::bigint, {0, 8}, "Expected 8 or 0 byte long (5)"},
      {TypeKind::counter, {0, 8}, "Expected 8 or 0 byte long (5)"},
      {TypeKind::timestamp, {0, 8}, "Expected 8 or 0 byte long for date (5)"},
      {TypeKind::date, {4}, "Expected 4 byte long for date (5)"},
      {TypeKind::time, {8}, "Expected 8 byte long for time (5)"},
      {TypeKind::float_, {0, 4}, "Expected 4 or 0 byte value for a float (5)"},
      {TypeKind::double_, {0, 8}, "Expected 8 or 0 byte value for a double (5)"},
      {TypeKind::uuid, {0, 16}, "UUID should be 16 or 0 bytes (5)"},
      {TypeKind::inet, {0, 4, 16}, "Expected 4 or 16 byte inetaddress; got 5"},
  };
  for (const auto& [kind, good, message] : table) {
    for (std::size_t size = 0; size < 18; ++size) {
      const Bytes bytes = text_value(std::string(size, '\0'));
      const bool wanted = std::ranges::find(good, size) != good.end();
      EXPECT_EQ(validate(of(kind), bytes).has_value(), wanted) << of(kind).to_cql() << size;
    }
    EXPECT_EQ(validate(of(kind), text_value("12345")).error().context(), message);
  }
}

TEST(Validate, TextsAreCheckedCharacterByCharacter) {
  EXPECT_TRUE(validate(of(TypeKind::ascii), text_value("a\x7f")));
  EXPECT_FALSE(validate(of(TypeKind::ascii), text_value("\xc2\x80")));
  for (const std::string_view good :
       {"", "plain and longer than eight bytes", "\xc2\x80", "\xdf\xbf", "\xe0\xa0\x80",
        "\xed\x9f\xbf", "\xee\x80\x80", "\xef\xbf\xbf", "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf"}) {
    EXPECT_TRUE(validate(DataType::text(), text_value(good))) << hex(text_value(good));
  }
  for (const std::string_view bad :
       {"\x80", "\xc0\x80", "\xc1\xbf", "\xc2", "\xe0\x9f\xbf", "\xed\xa0\x80", "\xe2\x82",
        "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xff", "12345678\xc2"}) {
    EXPECT_FALSE(validate(DataType::text(), text_value(bad))) << hex(text_value(bad));
  }
}

TEST(Validate, NumbersHaveALimit) {
  EXPECT_TRUE(validate(of(TypeKind::varint), text_value(std::string(kVarintBytesMax, 'x'))));
  EXPECT_FALSE(validate(of(TypeKind::varint), text_value(std::string(kVarintBytesMax + 1, 'x'))));
  EXPECT_TRUE(validate(of(TypeKind::decimal), text_value(std::string(kVarintBytesMax + 4, 'x'))));
  EXPECT_FALSE(validate(of(TypeKind::decimal), text_value(std::string(kVarintBytesMax + 5, 'x'))));
  EXPECT_FALSE(validate(of(TypeKind::decimal), text_value("1234")));
}

TEST(Validate, TimesAreWithinADay) {
  EXPECT_TRUE(validate(of(TypeKind::time), bigint_value(86'399'999'999'999)));
  EXPECT_FALSE(validate(of(TypeKind::time), bigint_value(86'400'000'000'000)));
  EXPECT_FALSE(validate(of(TypeKind::time), bigint_value(-1)));
}

TEST(Validate, TimeuuidsAreOfVersionOne) {
  const Bytes random = uuid_value(*base::Uuid::parse("550e8400-e29b-41d4-a716-446655440000"));
  EXPECT_TRUE(validate(of(TypeKind::uuid), random));
  EXPECT_TRUE(validate(of(TypeKind::timeuuid), random).failed_with(Errc::invalid_argument));
}

TEST(Validate, CollectionsAreCheckedInDepth) {
  const DataType list = testing::list_type(of(TypeKind::int_));
  EXPECT_TRUE(validate(list, from_hex("0x00000000")));
  EXPECT_TRUE(validate(list, from_hex("0x000000010000000400000007")));
  for (const std::string_view bad :
       {"0x", "0x0000", "0xffffffff", "0x7fffffff", "0x00000001", "0x00000001ffffffff",
        "0x000000010000000300000007", "0x0000000100000004000000", "0x0000000000"}) {
    EXPECT_TRUE(validate(list, from_hex(bad)).failed_with(Errc::invalid_argument)) << bad;
  }
  const DataType map = testing::map_type(DataType::text(), of(TypeKind::int_));
  EXPECT_TRUE(validate(map, from_hex("0x0000000100000001610000000400000007")));
  EXPECT_FALSE(validate(map, from_hex("0x000000010000000161")));
  EXPECT_FALSE(validate(map, from_hex("0x0000000100000001ff0000000400000007")));
}

TEST(Validate, TuplesMayEndEarlyButNotLate) {
  const DataType tuple = testing::tuple_type({of(TypeKind::int_), DataType::text()});
  EXPECT_TRUE(validate(tuple, {}));
  EXPECT_TRUE(validate(tuple, from_hex("0xffffffff")));
  EXPECT_TRUE(validate(tuple, from_hex("0x0000000400000007")));
  EXPECT_TRUE(validate(tuple, from_hex("0x00000004000000070000000161")));
  for (const std::string_view bad :
       {"0x00", "0x0000000400", "0x0000000300000007", "0x0000000400000007ffffffffffffffff"}) {
    EXPECT_FALSE(validate(tuple, from_hex(bad))) << bad;
  }
}

RC_GTEST_PROP(Validate, DrawnValuesAreGoodAndHostileOnesSafe, ()) {
  const DataType type = draw_type(3);
  const Bytes good = draw_value(type);
  RC_ASSERT(validate(type, good).has_value());
  const auto size = *rc::gen::inRange<std::size_t>(0, 24);
  const Bytes hostile = testing::draw_bytes(size, testing::any_bytes());
  to_text(type, hostile);
  const auto ordering = compare(type, hostile, good);
  RC_ASSERT(std::is_eq(compare(type, hostile, hostile)));
  RC_ASSERT((0 <=> ordering) == compare(type, good, hostile));
  if (validate(type, hostile)) RC_ASSERT(normalise(type, hostile).has_value());
}

RC_GTEST_PROP(Normalise, IsIdempotentAndKeepsWhatIsSorted, ()) {
  const DataType type = draw_type(3);
  const Bytes value = draw_value(type);
  const auto once = normalise(type, value);
  RC_ASSERT(once.has_value());
  RC_ASSERT(*normalise(type, *once) == *once);
  RC_ASSERT((type.is_native() == false || *once == value));
}

TEST(Normalise, SetsAndMapsAreSortedAndTheLastOfEqualStays) {
  const DataType set = testing::set_type(of(TypeKind::decimal));
  const std::vector<Bytes> elements = {*decimal_from_text("2"), *decimal_from_text("1.0"),
                                       *decimal_from_text("1.00")};
  const std::vector<Bytes> sorted = {*decimal_from_text("1.00"), *decimal_from_text("2")};
  EXPECT_EQ(*normalise(set, compose_list(elements)), compose_list(sorted));
  const DataType map = testing::map_type(DataType::text(), of(TypeKind::int_));
  const Bytes composed = compose_map(DataType::text(), {{text_value("b"), int_value(1)},
                                                        {text_value("a"), int_value(2)},
                                                        {text_value("b"), int_value(3)}});
  EXPECT_EQ(to_text(map, composed), "{'a': 2, 'b': 3}");
  const DataType nested = testing::list_type(set);
  const std::vector<Bytes> inner = {compose_list(elements)};
  EXPECT_EQ(to_text(nested, *normalise(nested, compose_list(inner))), "[{1.00, 2}]");
}

// Lets work go on so often.
class Looks final : public base::Pace {
 public:
  explicit Looks(unsigned most) : left_(most) {}
  unsigned left() const { return left_; }

 private:
  base::Result<void> look() override {
    if (left_ == 0) return base::Error(Errc::timeout);
    --left_;
    return {};
  }
  unsigned left_;
};

TEST(Normalise, LongValuesAreGoneThroughAtAPace) {
  constexpr int kElements = 10'000;
  constexpr unsigned kMany = 1'000'000;
  constexpr unsigned kStepsBetweenLooks = 32;
  std::vector<Bytes> elements;
  for (int i = kElements; i > 0; --i) elements.push_back(int_value(i));
  const Bytes of_set = compose_list(elements);
  // The same elements, every other one a key.
  base::Buffer entries;
  base::Encoder(entries).u32_be(kElements / 2);
  entries.append(of_set.view().subspan(sizeof(std::uint32_t)));
  const Bytes of_map = std::move(entries).freeze();
  const DataType set = testing::set_type(of(TypeKind::int_));
  const DataType map = testing::map_type(of(TypeKind::int_), of(TypeKind::int_));
  for (const auto& [type, value] : {std::pair(set, of_set), std::pair(map, of_map)}) {
    // Taken apart, validated, sorted and put together, each element by itself.
    Looks enough(kMany);
    const auto paced = normalise(type, value, &enough);
    ASSERT_TRUE(paced.has_value());
    EXPECT_EQ(*paced, *normalise(type, value));
    EXPECT_GT(kMany - enough.left(), 4U * kElements / 2 / kStepsBetweenLooks);
    for (const unsigned few : {0U, 10U, 1000U}) {
      Looks too_few(few);
      EXPECT_TRUE(normalise(type, value, &too_few).failed_with(Errc::timeout)) << few;
    }
  }
}

TEST(Normalise, TuplesThatEndEarlyStayAsTheyAre) {
  const DataType tuple =
      testing::tuple_type({testing::set_type(of(TypeKind::int_)), of(TypeKind::int_)});
  EXPECT_EQ(*normalise(tuple, Bytes()), Bytes());
  EXPECT_EQ(hex(*normalise(tuple, from_hex("0x0000000400000000"))), "0000000400000000");
}

TEST(Normalise, RefusesWhatDoesNotValidate) {
  EXPECT_TRUE(normalise(of(TypeKind::int_), text_value("abc")).failed_with(Errc::invalid_argument));
}

// Values in the order of their type, each before the next.
void expect_ascending(const DataType& type, const std::vector<Bytes>& values) {
  for (std::size_t a = 0; a < values.size(); ++a) {
    for (std::size_t b = 0; b < values.size(); ++b) {
      EXPECT_EQ(compare(type, values[a], values[b]), std::weak_ordering(a <=> b))
          << type.to_cql() << " " << a << " " << b;
    }
  }
}

TEST(Compare, NativesGoByCassandrasOrder) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  expect_ascending(of(TypeKind::boolean), {{}, boolean_value(false), boolean_value(true)});
  expect_ascending(of(TypeKind::tinyint),
                   {tinyint_value(-128), tinyint_value(-1), tinyint_value(0), tinyint_value(127)});
  expect_ascending(of(TypeKind::smallint), {smallint_value(-256), smallint_value(255)});
  expect_ascending(of(TypeKind::int_), {{}, int_value(-1), int_value(0), int_value(1 << 20)});
  expect_ascending(of(TypeKind::bigint), {{}, bigint_value(-1), bigint_value(0)});
  expect_ascending(of(TypeKind::timestamp), {{}, bigint_value(-1), bigint_value(0)});
  expect_ascending(of(TypeKind::date), {date_value(-1), date_value(0), date_value(1)});
  expect_ascending(of(TypeKind::double_), {{},
                                           double_value(-kInfinity),
                                           double_value(-1),
                                           double_value(-0.0),
                                           double_value(0.0),
                                           double_value(1),
                                           double_value(kInfinity),
                                           double_value(std::numeric_limits<double>::quiet_NaN())});
  expect_ascending(
      DataType::text(),
      {{}, text_value("a"), text_value("aa"), text_value("b"), text_value("\xc3\xa9")});
  expect_ascending(of(TypeKind::inet), {{},
                                        from_hex("0x01020304"),
                                        from_hex("0x01020304000000000000000000000000"),
                                        from_hex("0xff000001")});
  expect_ascending(of(TypeKind::varint), {{},
                                          varint_value(-1000),
                                          varint_value(-1),
                                          varint_value(0),
                                          varint_value(200),
                                          varint_value(1000)});
  expect_ascending(of(TypeKind::decimal), {{},
                                           *decimal_from_text("-1e9"),
                                           *decimal_from_text("-0.5"),
                                           *decimal_from_text("0"),
                                           *decimal_from_text("1e-9"),
                                           *decimal_from_text("1"),
                                           *decimal_from_text("9.99"),
                                           *decimal_from_text("10")});
}

TEST(Compare, EqualNumbersOfDifferentSpellingAreEquivalent) {
  EXPECT_TRUE(std::is_eq(
      compare(of(TypeKind::decimal), *decimal_from_text("1.0"), *decimal_from_text("1.00"))));
  EXPECT_TRUE(std::is_eq(compare(of(TypeKind::varint), from_hex("0x0001"), from_hex("0x01"))));
  EXPECT_TRUE(std::is_eq(compare(of(TypeKind::double_), from_hex("0x7ff8000000000001"),
                                 from_hex("0xfff8000000000000"))));
  EXPECT_TRUE(std::is_eq(compare(of(TypeKind::boolean), from_hex("0x01"), from_hex("0x02"))));
}

TEST(Compare, UuidsGoByVersionThenTimeThenBytes) {
  const auto uuid = [](std::string_view text) { return uuid_value(*base::Uuid::parse(text)); };
  expect_ascending(of(TypeKind::uuid), {{},
                                        uuid("ffffffff-0000-1000-8000-000000000000"),
                                        uuid("00000000-0001-1000-8000-000000000000"),
                                        uuid("00000000-0001-1000-ff00-000000000000"),
                                        uuid("00000000-0000-4000-8000-000000000000"),
                                        uuid("10000000-0000-4000-8000-000000000000")});
  // The clock and node of a timeuuid go byte by byte, and signed.
  expect_ascending(of(TypeKind::timeuuid), {{},
                                            uuid("ffffffff-0000-1000-8080-808080808080"),
                                            uuid("ffffffff-0000-1000-8080-80808080807f"),
                                            uuid("ffffffff-0000-1000-8080-000000000000"),
                                            uuid("00000000-0001-1000-8000-000000000000"),
                                            uuid("00000000-0000-1001-8000-000000000000")});
}

TEST(Compare, ComposedValuesGoElementByElement) {
  const DataType list = testing::list_type(of(TypeKind::int_));
  const auto list_of = [](const std::vector<int>& numbers) {
    std::vector<Bytes> elements;
    for (const int number : numbers) elements.push_back(int_value(number));
    return compose_list(elements);
  };
  expect_ascending(list, {list_of({}), list_of({-1}), list_of({1}), list_of({1, 0}), list_of({2})});
  const DataType map = testing::map_type(of(TypeKind::int_), of(TypeKind::int_));
  const auto map_of = [](std::vector<MapEntry> entries) {
    return compose_map(DataType(TypeKind::int_), std::move(entries));
  };
  expect_ascending(map, {map_of({}), map_of({{int_value(1), int_value(1)}}),
                         map_of({{int_value(1), int_value(2)}}),
                         map_of({{int_value(1), int_value(2)}, {int_value(2), int_value(0)}}),
                         map_of({{int_value(2), int_value(0)}})});
  const DataType tuple = testing::tuple_type({of(TypeKind::int_), of(TypeKind::int_)});
  const auto tuple_of = [](const std::vector<OptionalBytes>& elements) {
    return compose_tuple(elements);
  };
  expect_ascending(tuple, {{},
                           tuple_of({std::nullopt, int_value(5)}),
                           tuple_of({int_value(1)}),
                           tuple_of({int_value(1), Bytes()}),
                           tuple_of({int_value(1), int_value(0)})});
  EXPECT_TRUE(
      std::is_eq(compare(tuple, tuple_of({int_value(1)}), tuple_of({int_value(1), std::nullopt}))));
}

RC_GTEST_PROP(Compare, IsAnOrder, ()) {
  const DataType type = draw_type(3);
  const Bytes a = draw_value(type);
  const Bytes b = draw_value_like(type, a);
  const Bytes c = draw_value_like(type, b);
  RC_ASSERT(std::is_eq(compare(type, a, a)));
  RC_ASSERT((0 <=> compare(type, a, b)) == compare(type, b, a));
  if (compare(type, a, b) <= 0 && compare(type, b, c) <= 0)
    RC_ASSERT(std::is_lteq(compare(type, a, c)));
}

TEST(Order, DurationsHaveNone) {
  EXPECT_FALSE(is_ordered(of(TypeKind::duration)));
  EXPECT_FALSE(is_ordered(testing::list_type(of(TypeKind::duration))));
  EXPECT_TRUE(is_ordered(testing::list_type(of(TypeKind::int_))));
}

TEST(Text, ComposedValuesPrintAsLiterals) {
  const std::vector<Bytes> texts = {text_value("it's"), text_value("")};
  EXPECT_EQ(to_text(testing::list_type(DataType::text()), compose_list(texts)), "['it''s', '']");
  EXPECT_EQ(to_text(testing::set_type(DataType::text()), compose_list({})), "{}");
  const std::vector<OptionalBytes> fields = {text_value("x"), std::nullopt};
  EXPECT_EQ(to_text(testing::address_type(), compose_tuple(fields)), "{street: 'x', number: null}");
  EXPECT_EQ(to_text(testing::tuple_type({of(TypeKind::blob), of(TypeKind::int_)}),
                    from_hex("0x00000002cafe")),
            "(0xcafe, null)");
  EXPECT_EQ(to_text(of(TypeKind::int_), text_value("abc")), "0x616263");  // no int
  EXPECT_EQ(to_text(of(TypeKind::int_), {}), "");
}

TEST(Composed, SplitsGiveBackWhatWasComposed) {
  const std::vector<Bytes> elements = {text_value("a"), Bytes(), text_value("bc")};
  const Bytes list = compose_list(elements);
  EXPECT_EQ(hex(list),
            "00000003"
            "0000000161"
            "00000000"
            "000000026263");
  const auto split = split_collection(list);
  ASSERT_EQ(split->size(), 3U);
  EXPECT_EQ(base::as_text((*split)[2]), "bc");
  const std::vector<OptionalBytes> tuple = {std::nullopt, text_value("x")};
  const Bytes composed = compose_tuple(tuple);
  EXPECT_EQ(hex(composed),
            "ffffffff"
            "0000000178");
  const auto parts = split_tuple(3, composed);
  ASSERT_EQ(parts->size(), 3U);
  EXPECT_FALSE((*parts)[0]);
  EXPECT_EQ(base::as_text(*(*parts)[1]), "x");
  EXPECT_FALSE((*parts)[2]);
}

TEST(Native, BytesAreThoseOfTheProtocol) {
  EXPECT_EQ(hex(int_value(-2)), "fffffffe");
  EXPECT_EQ(hex(bigint_value(1)), "0000000000000001");
  EXPECT_EQ(hex(smallint_value(-1)), "ffff");
  EXPECT_EQ(hex(tinyint_value(-128)), "80");
  EXPECT_EQ(hex(date_value(0)), "80000000");
  EXPECT_EQ(hex(float_value(1.5F)), "3fc00000");
  EXPECT_EQ(hex(varint_value(0)), "00");
  EXPECT_EQ(hex(varint_value(-128)), "80");
  EXPECT_EQ(hex(duration_value({.months = 1, .days = 2, .nanoseconds = 3})), "020406");
  EXPECT_EQ(hex(duration_value({.months = -1, .days = 0, .nanoseconds = -64})), "01007f");
  EXPECT_EQ(hex(duration_value({.months = 0, .days = 64, .nanoseconds = 0})), "00808000");
  EXPECT_EQ(hex(duration_value(
                {.months = 0, .days = 0, .nanoseconds = std::numeric_limits<std::int64_t>::max()})),
            "0000fffffffffffffffffe");
}

TEST(Native, ReadersTakeExactSizesOnly) {
  EXPECT_EQ(read_int(int_value(7)), 7);
  EXPECT_EQ(read_bigint(bigint_value(-7)), -7);
  EXPECT_EQ(read_smallint(smallint_value(-7)), -7);
  EXPECT_EQ(read_tinyint(tinyint_value(-7)), -7);
  EXPECT_EQ(read_double(double_value(0.5)), 0.5);
  EXPECT_EQ(read_float(float_value(0.5F)), 0.5F);
  EXPECT_EQ(read_boolean(boolean_value(true)), true);
  EXPECT_TRUE(read_int({}).failed_with(Errc::invalid_argument));
  EXPECT_TRUE(read_uuid(text_value("x")).failed_with(Errc::invalid_argument));
}

RC_GTEST_PROP(Native, DurationsReadBack, ()) {
  const Bytes bytes = testing::draw_native(TypeKind::duration);
  RC_ASSERT(duration_value(*read_duration(bytes)) == bytes);
}

TEST(Native, BadDurationsAreRefused) {
  for (const std::string_view bad :
       {"0x", "0x0000", "0x000000ff", "0x02010000", "0x0201", "0x02000100", "0xff00000000",
        "0xf1000000000000", "0x00f10000000000", "0x020100"}) {
    EXPECT_FALSE(read_duration(from_hex(bad))) << bad;
  }
}

}  // namespace
}  // namespace helenus::model
