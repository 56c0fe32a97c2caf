#include "model/data_type.h"

#include <gtest/gtest.h>

#include "model/generators_test_support.h"
#include "model/identifier.h"

namespace helenus::model {
namespace {

using base::Errc;

DataType int_type() {
  return DataType(TypeKind::int_);
}

TEST(DataType, PrintsAsCassandraDoes) {
  EXPECT_EQ(int_type().to_cql(), "int");
  EXPECT_EQ(DataType::text().to_cql(), "text");
  EXPECT_EQ(DataType::list_of(int_type())->to_cql(), "list<int>");
  EXPECT_EQ(DataType::list_of(int_type(), true)->to_cql(), "frozen<list<int>>");
  EXPECT_EQ(DataType::map_of(DataType::text(), *DataType::list_of(int_type()))->to_cql(),
            "map<text, frozen<list<int>>>");
  EXPECT_EQ(DataType::tuple_of({int_type(), DataType::text()})->to_cql(),
            "frozen<tuple<int, text>>");
  EXPECT_EQ(testing::address_type(false).to_cql(), "address");
  EXPECT_EQ(DataType::set_of(testing::address_type())->to_cql(), "set<frozen<address>>");
  EXPECT_EQ(DataType::user_type("ks", "Mixed", {})->to_cql(), "\"Mixed\"");
}

TEST(DataType, NativeNamesReadBack) {
  for (unsigned number = 0; number < 0x200; ++number) {
    const auto kind = type_kind_from(static_cast<std::uint16_t>(number));
    if (!kind || !is_native(*kind)) continue;
    const DataType type(*kind);
    EXPECT_EQ(DataType::native_named(type.to_cql()), type) << number;
  }
  EXPECT_EQ(DataType::native_named("varchar"), DataType::text());
  EXPECT_FALSE(DataType::native_named("list"));
  EXPECT_FALSE(type_kind_from(0x0a));  // the old code of text, which nobody sends
  EXPECT_FALSE(type_kind_from(0x109));
}

TEST(DataType, WhatIsWithinACollectionIsFrozen) {
  const DataType inner = *DataType::list_of(int_type());
  ASSERT_TRUE(inner.is_multi_cell());
  const DataType outer = *DataType::set_of(inner);
  EXPECT_TRUE(outer.is_multi_cell());
  EXPECT_TRUE(outer.element().is_frozen());
  EXPECT_FALSE(outer.frozen().is_multi_cell());
  EXPECT_EQ(outer.frozen().unfrozen(), outer);
  EXPECT_NE(outer.frozen(), outer);
}

TEST(DataType, FreezingAUserTypeFreezesItsFields) {
  const DataType type =
      *DataType::user_type("ks", "t", {{.name = "l", .type = *DataType::list_of(int_type())}});
  EXPECT_TRUE(type.parts()[0].is_multi_cell());
  EXPECT_FALSE(type.frozen().parts()[0].is_multi_cell());
}

TEST(DataType, DeepNestingIsRefused) {
  DataType type = int_type();
  while (type.depth() < kTypeDepthMax) type = *DataType::list_of(type);
  EXPECT_TRUE(DataType::list_of(type).failed_with(Errc::invalid_argument));
  EXPECT_TRUE(DataType::tuple_of({type}).failed_with(Errc::invalid_argument));
}

TEST(DataType, TypesThatWouldExplodeAreRefused) {
  // Each type mentions the one before twice: written out, sizes double.
  DataType type = int_type();
  for (int step = 0; step < 40; ++step) {
    auto next =
        DataType::user_type("ks", "t" + std::to_string(step),
                            {{.name = "a", .type = type}, {.name = "b", .type = type}}, true);
    if (!next) {
      EXPECT_TRUE(next.failed_with(Errc::invalid_argument));
      EXPECT_LE(type.part_count(), kTypePartsMax);
      return;
    }
    type = *next;
  }
  FAIL() << "grew to " << type.part_count();
}

TEST(DataType, AChangedUserTypeIsReplacedWhereverItIs) {
  const DataType changed =
      *DataType::user_type("ks", "address", {{.name = "street", .type = DataType::text()}});
  const DataType holder =
      *DataType::map_of(int_type(), *DataType::list_of(testing::address_type()));
  ASSERT_TRUE(holder.mentions_user_type("ks", "address"));
  ASSERT_FALSE(holder.mentions_user_type("other", "address"));
  const DataType after = *holder.with_user_type(changed);
  EXPECT_EQ(after.mapped().element(), changed.frozen());
  EXPECT_TRUE(after.is_multi_cell());
  EXPECT_EQ(*int_type().with_user_type(changed), int_type());
}

TEST(DataType, FieldsOfAUserTypeAreFoundByName) {
  EXPECT_EQ(testing::address_type().field_index("number"), 1U);
  EXPECT_FALSE(testing::address_type().field_index("city"));
}

TEST(Identifier, OnlyPlainNamesGoWithoutQuotes) {
  EXPECT_EQ(to_cql_identifier("users_2"), "users_2");
  EXPECT_EQ(to_cql_identifier("Users"), "\"Users\"");
  EXPECT_EQ(to_cql_identifier("select"), "\"select\"");
  EXPECT_EQ(to_cql_identifier("ttl"), "ttl");
  EXPECT_EQ(to_cql_identifier("2nd"), "\"2nd\"");
  EXPECT_EQ(to_cql_identifier("a\"b"), "\"a\"\"b\"");
  EXPECT_EQ(to_cql_identifier(""), "\"\"");
  EXPECT_EQ(to_cql_string("it's"), "'it''s'");
}

}  // namespace
}  // namespace helenus::model
