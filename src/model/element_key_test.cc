// Keys of elements: where they sort, and that they are told apart from those of rows.
#include "model/element_key.h"

#include <compare>
#include <string>
#include <string_view>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "model/generators_test_support.h"
#include "model/value.h"

namespace helenus::model {
namespace {

using base::Bytes;
using base::ByteView;
using causality::ColumnId;

Bytes row_key_of(const ClusteringColumn& column, const Bytes& value) {
  const ByteView view = value;
  return encode_clustering({&column, 1}, {&view, 1}).value();
}

TEST(ElementKey, ElementsSortBehindTheirRowAndBeforeTheNext) {
  const ClusteringColumn column{.type = DataType(TypeKind::int_)};
  const Bytes row = row_key_of(column, int_value(1));
  const Bytes next = row_key_of(column, int_value(2));
  const Bytes element = joined_key(row, element_suffix(ColumnId(3), field_name(0)));
  EXPECT_LT(row, element);
  EXPECT_LT(element, next);
  const ClusteringRange all = rows_with_prefix(row);
  EXPECT_LE(all.from, row);
  EXPECT_LT(element, *all.to);
  EXPECT_LE(*all.to, next);
}

TEST(ElementKey, ThoseOfAStaticRowSortBeforeAllRows) {
  const Bytes element = element_suffix(ColumnId(0xffffffff), field_name(0xffff));
  EXPECT_LT(element, *static_rows().to);
  EXPECT_LT(element, all_clustered_rows().from);
  EXPECT_EQ(row_size_of({}, element).value(), 0U);
}

TEST(ElementKey, AColumnsElementsAreOneRange) {
  const ClusteringRange range = element_suffixes(ColumnId(7));
  const Bytes element = element_suffix(ColumnId(7), field_name(5));
  EXPECT_LE(range.from, element);
  EXPECT_LT(element, *range.to);
  EXPECT_LT(element_suffix(ColumnId(6), field_name(0xffff)), range.from);
  EXPECT_LE(*range.to, element_suffix(ColumnId(8), {}));
}

RC_GTEST_PROP(ElementKey, IsTakenApartIntoWhatItWasMadeOf, ()) {
  const ClusteringColumn column = testing::draw_columns(1, 3).front();
  const Bytes row = row_key_of(column, testing::draw_value(column.type));
  const auto id = ColumnId(*rc::gen::arbitrary<std::uint32_t>());
  const std::string name = *rc::gen::arbitrary<std::string>();
  const Bytes key = joined_key(row, element_suffix(id, base::as_bytes(name)));
  RC_ASSERT(!is_element_suffix(row));
  RC_ASSERT(row >= all_clustered_rows().from);
  RC_ASSERT(row_size_of({&column, 1}, row).value() == row.size());
  RC_ASSERT(row_size_of({&column, 1}, key).value() == row.size());
  const auto element = read_element_suffix(key.view().subspan(row.size()));
  RC_ASSERT(element.has_value());
  RC_ASSERT(element->column == id);
  RC_ASSERT(base::as_text(element->name) == name);
}

RC_GTEST_PROP(ElementKey, NamesSortAsTheirElementsDo, ()) {
  const DataType type = testing::draw_columns(1, 3).front().type;
  const Bytes a = testing::draw_value(type);
  const Bytes b = testing::draw_value_like(type, a);
  const auto order = compare(type, a, b);
  const Bytes name_a = element_name(type, a).value();
  const Bytes name_b = element_name(type, b).value();
  RC_ASSERT(std::is_lt(order) == (name_a < name_b));
  RC_ASSERT(std::is_eq(order) == (name_a == name_b));
  RC_ASSERT(std::is_eq(compare(type, named_element(type, name_a).value(), a)));
}

TEST(ElementKey, WhatIsNoneIsAnError) {
  EXPECT_FALSE(read_element_suffix(base::as_bytes("")).has_value());
  EXPECT_FALSE(read_element_suffix(base::as_bytes("\1\2\3\4\5\6\7")).has_value());
  EXPECT_FALSE(read_element_suffix(base::as_bytes(std::string_view("\0\0\1", 3))).has_value());
  EXPECT_FALSE(named_field(base::as_bytes("abc")).has_value());
  const ClusteringColumn column{.type = DataType(TypeKind::int_)};
  EXPECT_FALSE(row_size_of({&column, 1}, base::as_bytes("\3\1")).has_value());
}

}  // namespace
}  // namespace helenus::model
