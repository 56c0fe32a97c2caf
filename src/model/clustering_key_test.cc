#include "model/clustering_key.h"

#include <algorithm>
#include <string>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "model/generators_test_support.h"
#include "model/number.h"
#include "model/value.h"

namespace helenus::model {
namespace {

using base::Bytes;
using base::ByteView;
using testing::draw_columns;
using testing::draw_type;
using testing::draw_value;
using testing::draw_value_like;
using testing::views;

std::weak_ordering compare_rows(const std::vector<ClusteringColumn>& columns,
                                const std::vector<Bytes>& a, const std::vector<Bytes>& b) {
  for (std::size_t index = 0; index < std::min(a.size(), b.size()); ++index) {
    const auto ordering = compare(columns[index].type, a[index], b[index]);
    if (ordering != 0) return columns[index].descending ? 0 <=> ordering : ordering;
  }
  return a.size() <=> b.size();
}

// What a failing property says of its case.
std::string told(const std::vector<ClusteringColumn>& columns, const std::vector<Bytes>& row) {
  std::string text;
  for (std::size_t index = 0; index < row.size(); ++index) {
    text += columns[index].type.to_cql() + (columns[index].descending ? " desc 0x" : " 0x") +
            base::to_hex(row[index]) + "\n";
  }
  return text;
}

std::string encoded_hex(const ClusteringColumn& column, const Bytes& value) {
  const ByteView view = value;
  return base::to_hex(*encode_clustering({&column, 1}, {&view, 1}));
}

ClusteringColumn ascending(TypeKind kind) {
  return {.type = DataType(kind), .descending = false};
}

TEST(ClusteringKey, BytesOfTheFormatNeverChange) {
  EXPECT_EQ(encoded_hex(ascending(TypeKind::int_), int_value(1)), "0380000001");
  EXPECT_EQ(encoded_hex(ascending(TypeKind::int_), int_value(-1)), "037fffffff");
  EXPECT_EQ(encoded_hex(ascending(TypeKind::int_), {}), "02");
  EXPECT_EQ(encoded_hex({.type = DataType(TypeKind::int_), .descending = true}, int_value(1)),
            "fc7ffffffe");
  EXPECT_EQ(encoded_hex(ascending(TypeKind::varchar), text_value(std::string_view("a\0b", 3))),
            "6100ff620001");
  EXPECT_EQ(encoded_hex(ascending(TypeKind::varchar), {}), "0001");
  EXPECT_EQ(encoded_hex({.type = DataType(TypeKind::varchar), .descending = true}, text_value("a")),
            "fc9efffe");
  EXPECT_EQ(encoded_hex(ascending(TypeKind::boolean), boolean_value(true)), "0301");
  EXPECT_EQ(encoded_hex(ascending(TypeKind::double_), double_value(1.0)), "03bff0000000000000");
  EXPECT_EQ(encoded_hex(ascending(TypeKind::double_), double_value(-1.0)), "03400fffffffffffff");
  EXPECT_EQ(encoded_hex(ascending(TypeKind::varint), varint_value(256)), "03820100");
  EXPECT_EQ(encoded_hex(ascending(TypeKind::varint), varint_value(-1)), "037eff");
  EXPECT_EQ(encoded_hex(ascending(TypeKind::decimal), *decimal_from_text("12.50")),
            "03028000000000000002"
            "02030600");
  EXPECT_EQ(encoded_hex(ascending(TypeKind::decimal), *decimal_from_text("-12.50")),
            "03007ffffffffffffffd"
            "fdfcf9ff");
  EXPECT_EQ(encoded_hex(ascending(TypeKind::decimal), *decimal_from_text("0.00")), "0301");
  EXPECT_EQ(encoded_hex(ascending(TypeKind::timeuuid),
                        uuid_value(*base::Uuid::parse("01020304-0506-1708-890a-0b0c0d0e0f10"))),
            "03170805060102030409"
            "8a8b8c8d8e8f90");
  const ClusteringColumn list{.type = testing::list_type(DataType::text()), .descending = false};
  const std::vector<Bytes> elements = {text_value("a"), text_value("")};
  EXPECT_EQ(encoded_hex(list, compose_list(elements)),
            "03"
            "03610001"
            "030001"
            "00");
  const ClusteringColumn udt{.type = testing::address_type(), .descending = false};
  const std::vector<OptionalBytes> fields = {std::nullopt, int_value(1)};
  EXPECT_EQ(encoded_hex(udt, compose_tuple(fields)),
            "03"
            "01"
            "0380000001"
            "00");
}

TEST(ClusteringKey, EqualDecimalsAreOneKeyAndComeBackWithoutTrailingZeros) {
  const ClusteringColumn column = ascending(TypeKind::decimal);
  const auto back = [&](std::string_view text) {
    const Bytes value = *decimal_from_text(text);
    const ByteView view = value;
    const Bytes key = *encode_clustering({&column, 1}, {&view, 1});
    return decimal_to_text((*decode_clustering({&column, 1}, key))[0]);
  };
  EXPECT_EQ(back("1.00"), "1");
  EXPECT_EQ(back("100"), "100");
  EXPECT_EQ(back("1e2"), "100");
  EXPECT_EQ(back("-0.50"), "-0.5");
  EXPECT_EQ(back("0.000"), "0");
  EXPECT_EQ(back("1e2147483647"), "1E+2147483647");
}

RC_GTEST_PROP(ClusteringKey, BytesCompareAsValuesDo, ()) {
  const auto count = *rc::gen::inRange<std::size_t>(1, 4);
  const auto columns = draw_columns(count, 3);
  std::vector<Bytes> a;
  std::vector<Bytes> b;
  for (const ClusteringColumn& column : columns) {
    a.push_back(draw_value(column.type));
    b.push_back(draw_value_like(column.type, a.back()));
  }
  b.resize(*rc::gen::inRange<std::size_t>(0, count + 1));
  RC_LOG() << told(columns, a) << told(columns, b);
  const Bytes key_a = *encode_clustering(columns, views(a));
  const Bytes key_b = *encode_clustering(columns, views(b));
  const std::weak_ordering by_bytes = base::compare(key_a, key_b);
  RC_ASSERT(by_bytes == compare_rows(columns, a, b));
}

RC_GTEST_PROP(ClusteringKey, ValuesComeBackEqual, ()) {
  const auto columns = draw_columns(*rc::gen::inRange<std::size_t>(1, 4), 3);
  std::vector<Bytes> row;
  for (const ClusteringColumn& column : columns) row.push_back(draw_value(column.type));
  row.resize(*rc::gen::inRange<std::size_t>(0, columns.size() + 1));
  RC_LOG() << told(columns, row);
  const Bytes key = *encode_clustering(columns, views(row));
  const auto back = decode_clustering(columns, key);
  RC_ASSERT(back.has_value());
  RC_ASSERT(back->size() == row.size());
  RC_ASSERT(std::is_eq(compare_rows(columns, *back, row)));
  RC_ASSERT(*encode_clustering(columns, views(*back)) == key);
}

RC_GTEST_PROP(ClusteringKey, ValuesOfMostTypesComeBackByteForByte, ()) {
  const auto kind = *rc::gen::elementOf(testing::ordered_natives());
  RC_PRE(kind != TypeKind::decimal && kind != TypeKind::varint && kind != TypeKind::float_ &&
         kind != TypeKind::double_);
  const ClusteringColumn column{.type = DataType(kind), .descending = *rc::gen::arbitrary<bool>()};
  const Bytes value = draw_value(column.type);
  const ByteView view = value;
  const Bytes key = *encode_clustering({&column, 1}, {&view, 1});
  RC_ASSERT(*decode_clustering({&column, 1}, key) == std::vector{value});
}

RC_GTEST_PROP(ClusteringKey, HostileBytesDecodeOrFail, ()) {
  const auto columns = draw_columns(*rc::gen::inRange<std::size_t>(1, 3), 3);
  const auto size = *rc::gen::inRange<std::size_t>(0, 24);
  std::vector<int> alphabet = testing::any_bytes();
  alphabet.insert(alphabet.end(), {0x03, 0x03, 0xfc, 0xfd});
  const Bytes bytes = testing::draw_bytes(size, alphabet);
  const auto values = decode_clustering(columns, bytes);
  if (!values) return;
  for (std::size_t index = 0; index < values->size(); ++index) {
    RC_ASSERT(validate(columns[index].type, (*values)[index]).has_value());
  }
}

TEST(ClusteringKey, DamagedKeysAreRefused) {
  const std::vector<ClusteringColumn> columns = {ascending(TypeKind::int_)};
  const auto refused = [&](std::string_view bytes) {
    return decode_clustering(columns, base::as_bytes(bytes)).failed_with(base::Errc::corrupt);
  };
  using namespace std::string_view_literals;
  EXPECT_TRUE(refused("\x03\x80\0\0"sv));        // ends inside a number
  EXPECT_TRUE(refused("\x07\x80\0\0\1"sv));      // no such mark
  EXPECT_TRUE(refused("\x03\x80\0\0\1\x03"sv));  // goes on behind the last column
  const std::vector<ClusteringColumn> text = {ascending(TypeKind::varchar)};
  EXPECT_FALSE(decode_clustering(text, base::as_bytes("a"sv)));
  EXPECT_FALSE(decode_clustering(text, base::as_bytes("a\0\5"sv)));
  EXPECT_FALSE(decode_clustering(text, base::as_bytes("\xff\0\1"sv)));  // no UTF-8
}

TEST(ClusteringKey, ValuesThatAreNoneOfTheirTypeAreRefused) {
  const ClusteringColumn column = ascending(TypeKind::int_);
  const Bytes value = text_value("abc");
  const ByteView view = value;
  EXPECT_TRUE(
      (encode_clustering({&column, 1}, {&view, 1}).failed_with(base::Errc::invalid_argument)));
}

TEST(ClusteringKey, UnsortedSetsAreTheSameKeyAsSortedOnes) {
  const ClusteringColumn column{.type = testing::set_type(DataType(TypeKind::int_)),
                                .descending = false};
  const std::vector<Bytes> unsorted = {int_value(2), int_value(1), int_value(2)};
  EXPECT_EQ(encoded_hex(column, compose_list(unsorted)),
            encoded_hex(column, compose_set(DataType(TypeKind::int_), unsorted)));
}

TEST(ClusteringKey, AFieldAddedToATypeLeavesOldKeysAsTheyAre) {
  const DataType older = testing::address_type();
  const DataType newer = *DataType::user_type("ks", "address",
                                              {{.name = "street", .type = DataType::text()},
                                               {.name = "number", .type = DataType(TypeKind::int_)},
                                               {.name = "city", .type = DataType::text()}},
                                              true);
  const std::vector<OptionalBytes> fields = {text_value("x"), int_value(7)};
  const Bytes value = compose_tuple(fields);
  EXPECT_EQ(encoded_hex({.type = older, .descending = false}, value),
            encoded_hex({.type = newer, .descending = false}, value));
}

// ---- slices

bool contains(const ClusteringRange& range, const Bytes& key) {
  return range.from <= key && (!range.to || key < *range.to);
}

struct DrawnBound {
  std::vector<Bytes> values;
  std::vector<ByteView> borrowed;
  bool inclusive = true;
};

std::optional<DrawnBound> draw_bound(const std::vector<ClusteringColumn>& columns,
                                     std::size_t first) {
  if (first == columns.size() || *rc::gen::inRange(0, 3) == 0) return std::nullopt;
  DrawnBound bound;
  const auto count = *rc::gen::inRange<std::size_t>(1, columns.size() - first + 1);
  for (std::size_t index = 0; index < count; ++index) {
    bound.values.push_back(draw_value(columns[first + index].type));
  }
  bound.borrowed = views(bound.values);
  bound.inclusive = *rc::gen::arbitrary<bool>();
  return bound;
}

std::optional<ClusteringBound> as_bound(const std::optional<DrawnBound>& bound) {
  if (!bound) return std::nullopt;
  return ClusteringBound{.values = bound->borrowed, .inclusive = bound->inclusive};
}

bool satisfies(const std::vector<ClusteringColumn>& columns, std::size_t first,
               const std::vector<Bytes>& row, const std::optional<DrawnBound>& bound,
               bool greater) {
  if (!bound) return true;
  for (std::size_t index = 0; index < bound->values.size(); ++index) {
    const auto ordering =
        compare(columns[first + index].type, row[first + index], bound->values[index]);
    if (ordering != 0) return greater ? ordering > 0 : ordering < 0;
  }
  return bound->inclusive;
}

std::vector<ClusteringColumn> draw_small_columns() {
  static const std::vector<TypeKind> kKinds = {TypeKind::boolean, TypeKind::blob, TypeKind::tinyint,
                                               TypeKind::varint};
  std::vector<ClusteringColumn> columns;
  const auto count = *rc::gen::inRange<std::size_t>(1, 4);
  for (std::size_t index = 0; index < count; ++index) {
    columns.push_back(
        {.type = DataType(*rc::gen::elementOf(kKinds)), .descending = *rc::gen::arbitrary<bool>()});
  }
  return columns;
}

RC_GTEST_PROP(ClusteringSlice, HoldsExactlyTheRowsBetweenItsBounds, ()) {
  const auto columns = draw_small_columns();
  std::vector<Bytes> row;
  for (const ClusteringColumn& column : columns) row.push_back(draw_value(column.type));
  const auto equal_count = *rc::gen::inRange<std::size_t>(0, columns.size() + 1);
  std::vector<Bytes> equal;
  for (std::size_t index = 0; index < equal_count; ++index) {
    equal.push_back(draw_value_like(columns[index].type, row[index]));
    if (*rc::gen::inRange(0, 2) == 0) equal.back() = row[index];
  }
  const auto lower = draw_bound(columns, equal_count);
  const auto upper = draw_bound(columns, equal_count);

  bool wanted = true;
  for (std::size_t index = 0; index < equal_count; ++index) {
    wanted = wanted && compare(columns[index].type, row[index], equal[index]) == 0;
  }
  wanted = wanted && satisfies(columns, equal_count, row, lower, true) &&
           satisfies(columns, equal_count, row, upper, false);

  const auto ranges = slice(columns, views(equal), as_bound(lower), as_bound(upper));
  RC_ASSERT(ranges.has_value());
  const Bytes key = *encode_clustering(columns, views(row));
  const auto holding =
      std::ranges::count_if(*ranges, [&](const auto& range) { return contains(range, key); });
  RC_ASSERT(holding == (wanted ? 1 : 0));
  for (std::size_t index = 0; index < ranges->size(); ++index) {
    const ClusteringRange& range = (*ranges)[index];
    RC_ASSERT(!contains(range, Bytes()));  // the static row
    RC_ASSERT((!range.to || range.from < *range.to));
    RC_ASSERT((index == 0 || *(*ranges)[index - 1].to < range.from));
  }
}

RC_GTEST_PROP(ClusteringSlice, PrefixCoversExactlyItsContinuations, ()) {
  const auto columns = draw_columns(2, 2);
  std::vector<Bytes> row = {draw_value(columns[0].type), draw_value(columns[1].type)};
  const std::vector<Bytes> prefix = {draw_value_like(columns[0].type, row[0])};
  const auto range = rows_with_prefix(*encode_clustering(columns, views(prefix)));
  const bool wanted = compare(columns[0].type, prefix[0], row[0]) == 0;
  RC_ASSERT(contains(range, *encode_clustering(columns, views(row))) == wanted);
}

TEST(ClusteringSlice, SingleColumnSlicesAreOneRange) {
  const std::vector<ClusteringColumn> columns = {
      {.type = DataType(TypeKind::int_), .descending = true}};
  const Bytes one = int_value(1);
  const Bytes three = int_value(3);
  const ByteView low = one;
  const ByteView high = three;
  const auto ranges = slice(columns, {}, ClusteringBound{.values = {&low, 1}, .inclusive = true},
                            ClusteringBound{.values = {&high, 1}, .inclusive = false});
  ASSERT_EQ(ranges->size(), 1U);
  EXPECT_EQ(base::to_hex((*ranges)[0].from), "fc7ffffffd");  // 2, the first below 3
  EXPECT_EQ(base::to_hex(*(*ranges)[0].to), "fc7fffffff");
}

TEST(ClusteringSlice, NothingIsBetweenBoundsThatCross) {
  const std::vector<ClusteringColumn> columns = {
      {.type = DataType(TypeKind::int_), .descending = false}};
  const Bytes one = int_value(1);
  const ByteView view = one;
  const ClusteringBound exclusive{.values = {&view, 1}, .inclusive = false};
  EXPECT_TRUE(slice(columns, {}, exclusive, exclusive)->empty());
}

TEST(ClusteringSlice, WithoutBoundsEveryRowButTheStaticOne) {
  const std::vector<ClusteringColumn> columns = {
      {.type = DataType(TypeKind::int_), .descending = false}};
  EXPECT_EQ(*slice(columns, {}, std::nullopt, std::nullopt), std::vector{all_clustered_rows()});
}

TEST(ClusteringSlice, SuccessorOfAPrefixSkipsWhatCannotGrow) {
  using namespace std::string_view_literals;
  EXPECT_EQ(successor_of_prefix(base::as_bytes("a\xff\xff"sv))->text(), "b");
  EXPECT_EQ(successor_of_prefix(base::as_bytes("ab"sv))->text(), "ac");
  EXPECT_FALSE(successor_of_prefix(base::as_bytes("\xff\xff"sv)));
  EXPECT_FALSE(successor_of_prefix({}));
}

}  // namespace
}  // namespace helenus::model
