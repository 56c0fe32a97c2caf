#include "cql/protocol/metadata.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>
#include <utility>

namespace helenus::cql::protocol {

using base::Decoder;
using base::Encoder;
using model::DataType;
using model::TypeKind;

namespace {

constexpr std::uint16_t kTypeCustom = 0x0000;
constexpr std::string_view kDurationClass = "org.apache.cassandra.db.marshal.DurationType";
constexpr std::string_view kVectorClass = "org.apache.cassandra.db.marshal.VectorType(";
constexpr std::string_view kVectorOfFloats = "org.apache.cassandra.db.marshal.FloatType , ";
constexpr std::size_t kTypeSizeMin = sizeof(std::uint16_t);
constexpr std::size_t kFieldSizeMin = sizeof(std::uint16_t) + kTypeSizeMin;
constexpr std::size_t kColumnSizeMin = sizeof(std::uint16_t) + kTypeSizeMin;

// What stands for a type that could not be read.
DataType no_type() {
  return DataType(TypeKind::blob);
}

DataType or_fail(Decoder& in, base::Result<DataType> type) {
  if (type) return *std::move(type);
  in.fail("a type is beyond the limits of types");
  return no_type();
}

DataType get_nested(Decoder& in, std::size_t depth_left);

DataType get_tuple(Decoder& in, std::size_t depth_left) {
  const std::size_t count = get_short_count(in, kTypeSizeMin);
  std::vector<DataType> elements;
  for (std::size_t index = 0; index < count && in.ok(); ++index) {
    elements.push_back(get_nested(in, depth_left));
  }
  if (!in.ok()) return no_type();
  return or_fail(in, DataType::tuple_of(std::move(elements)));
}

DataType get_user_type(Decoder& in, std::size_t depth_left) {
  std::string keyspace(get_string(in));
  std::string name(get_string(in));
  const std::size_t count = get_short_count(in, kFieldSizeMin);
  std::vector<model::UserTypeField> fields;
  for (std::size_t index = 0; index < count && in.ok(); ++index) {
    std::string field(get_string(in));
    fields.push_back({.name = std::move(field), .type = get_nested(in, depth_left)});
  }
  if (!in.ok()) return no_type();
  return or_fail(in, DataType::user_type(std::move(keyspace), std::move(name), std::move(fields)));
}

DataType get_composed(Decoder& in, TypeKind kind, std::size_t depth_left) {
  if (depth_left == 0) {
    in.fail("a type nests too deep");
    return no_type();
  }
  if (kind == TypeKind::tuple) return get_tuple(in, depth_left - 1);
  if (kind == TypeKind::udt) return get_user_type(in, depth_left - 1);
  const DataType first = get_nested(in, depth_left - 1);
  if (!in.ok()) return no_type();
  if (kind == TypeKind::list) return or_fail(in, DataType::list_of(first));
  if (kind == TypeKind::set) return or_fail(in, DataType::set_of(first));
  const DataType second = get_nested(in, depth_left - 1);
  if (!in.ok()) return no_type();
  return or_fail(in, DataType::map_of(first, second));
}

// VectorType(FloatType , 3), each with its package.
std::optional<DataType> vector_named(std::string_view name) {
  if (!name.starts_with(kVectorClass) || !name.ends_with(")")) return std::nullopt;
  name.remove_prefix(kVectorClass.size());
  name.remove_suffix(1);
  if (!name.starts_with(kVectorOfFloats)) return std::nullopt;
  name.remove_prefix(kVectorOfFloats.size());
  std::uint32_t dimension = 0;
  const auto read = std::from_chars(name.data(), name.data() + name.size(), dimension);
  if (read.ec != std::errc() || read.ptr != name.data() + name.size()) return std::nullopt;
  auto type = DataType::vector_of(dimension);
  if (!type) return std::nullopt;
  return *std::move(type);
}

DataType get_custom(Decoder& in) {
  const std::string_view name = get_string(in);
  if (name == kDurationClass) return DataType(TypeKind::duration);
  if (auto vector = vector_named(name)) return *std::move(vector);
  in.fail("a custom type is unknown");
  return no_type();
}

DataType get_nested(Decoder& in, std::size_t depth_left) {
  const std::uint16_t code = in.u16_be();
  if (!in.ok()) return no_type();
  if (code == kTypeCustom) return get_custom(in);
  const std::optional<TypeKind> kind = model::type_kind_from(code);
  if (!kind || *kind == TypeKind::vector) {
    in.fail("the code of a type is unknown");
    return no_type();
  }
  if (model::is_native(*kind)) return DataType(*kind);
  return get_composed(in, *kind, depth_left);
}

}  // namespace

void put_type(Encoder& out, const DataType& type) {
  if (type.kind() == TypeKind::duration) {
    out.u16_be(kTypeCustom);
    put_string(out, kDurationClass);
    return;
  }
  if (type.kind() == TypeKind::vector) {
    out.u16_be(kTypeCustom);
    put_string(out, fmt::format("{}{}{})", kVectorClass, kVectorOfFloats, type.dimension()));
    return;
  }
  out.u16_be(static_cast<std::uint16_t>(type.kind()));
  if (type.kind() == TypeKind::udt) {
    put_string(out, type.keyspace());
    put_string(out, type.name());
  }
  if (type.kind() == TypeKind::udt || type.kind() == TypeKind::tuple) {
    out.u16_be(static_cast<std::uint16_t>(type.parts().size()));
  }
  for (std::size_t index = 0; index < type.parts().size(); ++index) {
    if (type.kind() == TypeKind::udt) put_string(out, type.field_names()[index]);
    put_type(out, type.parts()[index]);
  }
}

DataType get_type(Decoder& in) {
  return get_nested(in, model::kTypeDepthMax);
}

EncodedColumns::EncodedColumns(std::span<const ColumnSpec> columns)
    : count_(static_cast<std::uint32_t>(columns.size())) {
  if (columns.empty()) return;
  const ColumnSpec& first = columns.front();
  const bool one_table = std::ranges::all_of(columns, [&](const ColumnSpec& column) {
    return column.keyspace == first.keyspace && column.table == first.table;
  });
  base::Buffer buffer;
  Encoder out(buffer);
  if (one_table) {
    flags_ = kMetadataGlobalTable;
    put_string(out, first.keyspace);
    put_string(out, first.table);
  }
  for (const ColumnSpec& column : columns) {
    if (!one_table) {
      put_string(out, column.keyspace);
      put_string(out, column.table);
    }
    put_string(out, column.name);
    put_type(out, column.type);
  }
  specs_ = std::move(buffer).freeze();
}

std::vector<ColumnSpec> get_columns(Decoder& in, std::uint32_t flags, std::size_t count) {
  const bool one_table = (flags & kMetadataGlobalTable) != 0;
  std::string_view keyspace;
  std::string_view table;
  if (one_table) {
    keyspace = get_string(in);
    table = get_string(in);
  }
  if (keyspace.size() > kTableNameSizeMax || table.size() > kTableNameSizeMax) {
    in.fail("the name of a keyspace or table is too long");
  }
  if (count > kColumnsMax || count > in.remaining() / kColumnSizeMin) {
    in.fail("counts more columns than there are bytes for");
    return {};
  }
  std::vector<ColumnSpec> columns;
  for (std::size_t index = 0; index < count && in.ok(); ++index) {
    if (!one_table) {
      keyspace = get_string(in);
      table = get_string(in);
    }
    std::string name(get_string(in));
    columns.push_back({.keyspace = std::string(keyspace),
                       .table = std::string(table),
                       .name = std::move(name),
                       .type = get_type(in)});
  }
  return columns;
}

}  // namespace helenus::cql::protocol
