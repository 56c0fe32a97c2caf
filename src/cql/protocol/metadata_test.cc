#include "cql/protocol/metadata.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "cql/protocol/protocol_test_support.h"

namespace helenus::cql::protocol {
namespace {

using base::Bytes;
using base::Decoder;
using base::Encoder;
using model::DataType;
using model::TypeKind;

Bytes written(const DataType& type) {
  base::Buffer buffer;
  Encoder out(buffer);
  put_type(out, type);
  return std::move(buffer).freeze();
}

DataType reread(const DataType& type) {
  const Bytes bytes = written(type);
  Decoder in(bytes);
  DataType again = get_type(in);
  EXPECT_TRUE(in.finish().has_value()) << type.to_cql();
  return again;
}

std::string problem_of(base::ByteView bytes) {
  Decoder in(bytes);
  get_type(in);
  const auto status = in.status();
  return status ? "" : std::string(status.error().context());
}

DataType int_type() {
  return DataType(TypeKind::int_);
}

DataType address_type() {
  return *DataType::user_type("ks", "address",
                              {{.name = "street", .type = DataType::text()},
                               {.name = "numbers", .type = *DataType::list_of(int_type())}});
}

TEST(Type, NativesCrossTheWire) {
  for (std::uint16_t code = 0; code <= 0x1f; ++code) {
    const auto kind = model::type_kind_from(code);
    if (kind) EXPECT_EQ(reread(DataType(*kind)), DataType(*kind)) << code;
  }
}

TEST(Type, HasTheLayoutOfTheProtocol) {
  EXPECT_EQ(written(DataType::text()), from_hex("000d"));
  EXPECT_EQ(written(*DataType::map_of(int_type(), DataType::text())), from_hex("0021 0009 000d"));
  EXPECT_EQ(written(*DataType::list_of(*DataType::set_of(int_type()))), from_hex("0020 0022 0009"));
  EXPECT_EQ(written(*DataType::tuple_of({int_type(), DataType::text()})),
            from_hex("0031 0002 0009 000d"));
  EXPECT_EQ(written(address_type()), from_hex("0030 0002 6b73 0007 61646472657373 0002"
                                              "0006 737472656574 000d"
                                              "0007 6e756d62657273 0020 0009"));
}

TEST(Type, DurationIsCustomInThisVersion) {
  const Bytes bytes = written(DataType(TypeKind::duration));
  EXPECT_EQ(bytes.slice(0, 4), from_hex("0000 002c"));
  EXPECT_EQ(bytes.slice(4).text(), "org.apache.cassandra.db.marshal.DurationType");
  // Its own code, of version 5, is understood.
  Decoder in(bytes);
  EXPECT_EQ(get_type(in), DataType(TypeKind::duration));
}

TEST(Type, ComposedOnesCrossTheWireUnfrozen) {
  const DataType frozen = *DataType::list_of(address_type(), true);
  EXPECT_EQ(reread(frozen), frozen.unfrozen());
  EXPECT_EQ(reread(address_type()), address_type());
  const DataType tuple =
      *DataType::tuple_of({address_type(), *DataType::map_of(int_type(), frozen)});
  EXPECT_EQ(reread(tuple), tuple);
}

TEST(Type, SaysWhatWasWrong) {
  EXPECT_TRUE(problem_of(from_hex("000a")).contains("unknown"));
  EXPECT_TRUE(problem_of(from_hex("ffff")).contains("unknown"));
  EXPECT_TRUE(problem_of(from_hex("0000 0001 78")).contains("custom type is unknown"));
  EXPECT_TRUE(problem_of(from_hex("0031 ffff 0009")).contains("more elements"));
  EXPECT_TRUE(problem_of(from_hex("0021 0009")).contains("ends inside"));
}

TEST(Type, DoesNotNestForEver) {
  base::Buffer deep;
  Encoder out(deep);
  for (int i = 0; i < 100'000; ++i) out.u16_be(static_cast<std::uint16_t>(TypeKind::list));
  EXPECT_TRUE(problem_of(deep.view()).contains("nests too deep"));
  DataType deepest = int_type();
  while (deepest.depth() < model::kTypeDepthMax) deepest = *DataType::list_of(deepest);
  EXPECT_EQ(reread(deepest), deepest);
}

TEST(Type, DoesNotGrowForEver) {
  base::Buffer wide;
  Encoder out(wide);
  out.u16_be(static_cast<std::uint16_t>(TypeKind::tuple));
  out.u16_be(60'000);
  for (int i = 0; i < 60'000; ++i) out.u16_be(static_cast<std::uint16_t>(TypeKind::int_));
  EXPECT_TRUE(problem_of(wide.view()).contains("limits of types"));
}

TEST(EncodedColumns, NameTheirTableOnceIfItIsTheSame) {
  const std::vector<ColumnSpec> same = {
      {.keyspace = "k", .table = "t", .name = "a", .type = int_type()},
      {.keyspace = "k", .table = "t", .name = "b", .type = DataType::text()}};
  const EncodedColumns encoded(same);
  EXPECT_EQ(encoded.flags(), kMetadataGlobalTable);
  EXPECT_EQ(encoded.count(), 2U);
  EXPECT_EQ(encoded.specs(), from_hex("0001 6b 0001 74  0001 61 0009  0001 62 000d"));
  Decoder in(encoded.specs());
  EXPECT_EQ(get_columns(in, encoded.flags(), 2), same);
  EXPECT_TRUE(in.finish().has_value());

  auto different = same;
  different[1].table = "u";
  const EncodedColumns apart(different);
  EXPECT_EQ(apart.flags(), 0U);
  EXPECT_EQ(apart.specs(), from_hex("0001 6b 0001 74 0001 61 0009  0001 6b 0001 75 0001 62 000d"));
  Decoder in_apart(apart.specs());
  EXPECT_EQ(get_columns(in_apart, 0, 2), different);
}

TEST(EncodedColumns, OfNothingAreNothing) {
  EXPECT_EQ(EncodedColumns(std::span<const ColumnSpec>()).specs(), Bytes());
  EXPECT_EQ(EncodedColumns().flags(), 0U);
}

TEST(Columns, AreBoundedByTheirBytes) {
  const Bytes few = from_hex("0001 6b 0001 74 0001 61 0009");
  Decoder in(few);
  EXPECT_TRUE(get_columns(in, kMetadataGlobalTable, 0xffffffff).empty());
  EXPECT_FALSE(in.ok());
  base::Buffer long_name;
  Encoder out(long_name);
  put_string(out, std::string(kTableNameSizeMax + 1, 'k'));
  put_string(out, "t");
  for (int i = 0; i < 10; ++i) out.raw(from_hex("0000 0009"));
  Decoder in_long(long_name.view());
  get_columns(in_long, kMetadataGlobalTable, 10);
  EXPECT_FALSE(in_long.ok());
}

}  // namespace
}  // namespace helenus::cql::protocol
