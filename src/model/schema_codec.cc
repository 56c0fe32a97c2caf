#include "model/schema_codec.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <utility>

#include "base/assert.h"
#include "base/codec.h"
#include "base/hash.h"
#include "model/value.h"

namespace helenus::model {

using base::Buffer;
using base::Bytes;
using base::ByteView;
using base::Decoder;
using base::Encoder;
using base::Errc;
using base::Error;
using base::Result;

namespace {

constexpr std::uint8_t kVersion = 1;

// How a user-defined type is written: mentioned by name where the keyspace declares it, written out
// where it may be gone, in dropped columns.
enum class UserTypes : std::uint8_t { mentioned, written_out };

// ---- encoding

void put(Encoder& out, bool value) {
  out.u8(value ? 1 : 0);
}
void put(Encoder& out, double value) {
  out.u64_le(std::bit_cast<std::uint64_t>(value));
}
void put(Encoder& out, const OptionMap& map) {
  out.varint(map.size());
  for (const auto& [key, value] : map) {
    out.prefixed(key);
    out.prefixed(value);
  }
}

void put(Encoder& out, const DataType& type, UserTypes user_types) {
  out.u8(static_cast<std::uint8_t>(type.kind()));
  if (type.is_native()) return;
  put(out, type.is_frozen());
  if (type.kind() == TypeKind::udt) {
    out.prefixed(type.name());
    put(out, user_types == UserTypes::written_out);
    if (user_types == UserTypes::mentioned) return;
  }
  if (type.kind() == TypeKind::vector) {
    out.varint(type.dimension());
    return;
  }
  out.varint(type.parts().size());
  for (std::size_t index = 0; index < type.parts().size(); ++index) {
    if (type.kind() == TypeKind::udt) out.prefixed(type.field_names()[index]);
    put(out, type.parts()[index], user_types);
  }
}

void put(Encoder& out, const TableOptions& options) {
  out.prefixed(options.additional_write_policy);
  put(out, options.bloom_filter_fp_chance);
  put(out, options.caching);
  put(out, options.cdc);
  out.prefixed(options.comment);
  put(out, options.compaction);
  put(out, options.compression);
  put(out, options.crc_check_chance);
  out.signed_varint(options.default_time_to_live);
  out.varint(options.extensions.size());
  for (const auto& [key, value] : options.extensions) {
    out.prefixed(key);
    out.prefixed(value.view());
  }
  out.signed_varint(options.gc_grace_seconds);
  out.signed_varint(options.max_index_interval);
  out.prefixed(options.memtable);
  out.signed_varint(options.memtable_flush_period_in_ms);
  out.signed_varint(options.min_index_interval);
  out.prefixed(options.read_repair);
  out.prefixed(options.speculative_retry);
  out.u8(static_cast<std::uint8_t>(options.conflicts));
  put(out, options.filter);
  out.u8(static_cast<std::uint8_t>(options.causal_writes));
  out.signed_varint(options.delete_memory_seconds);
}

void put(Encoder& out, const Table& table) {
  out.prefixed(table.name);
  out.raw(table.id.bytes());
  out.varint(table.next_column_id);
  out.varint(table.columns.size());
  for (const Column& column : table.columns) {
    out.prefixed(column.name);
    out.u8(static_cast<std::uint8_t>(column.kind));
    out.varint(column.position);
    put(out, column.descending);
    out.varint(column.id.value());
    put(out, column.type, UserTypes::mentioned);
  }
  out.varint(table.dropped_columns.size());
  for (const DroppedColumn& column : table.dropped_columns) {
    out.prefixed(column.name);
    out.u8(static_cast<std::uint8_t>(column.kind));
    out.signed_varint(column.dropped_at_us);
    out.varint(column.id.value());
    put(out, column.type, UserTypes::written_out);
  }
  put(out, table.options);
}

void put(Encoder& out, const Keyspace& keyspace) {
  out.prefixed(keyspace.name);
  put(out, keyspace.durable_writes);
  put(out, keyspace.replication);
  const auto types = types_in_order_of_use(keyspace);
  out.varint(types.size());
  for (const DataType& type : types) {
    out.prefixed(type.name());
    out.varint(type.parts().size());
    for (std::size_t index = 0; index < type.parts().size(); ++index) {
      out.prefixed(type.field_names()[index]);
      put(out, type.parts()[index], UserTypes::mentioned);
    }
  }
  out.varint(keyspace.tables.size());
  for (const auto& [name, table] : keyspace.tables) put(out, *table);
}

// Behind all keyspaces, if there are any.
void put_indexes(Encoder& out, const Schema& schema) {
  std::size_t tables = 0;
  for (const auto& [name, keyspace] : schema.keyspaces()) {
    tables += static_cast<std::size_t>(std::ranges::count_if(
        keyspace->tables, [](const auto& table) { return !table.second->indexes.empty(); }));
  }
  if (tables == 0) return;
  out.varint(tables);
  for (const auto& [name, keyspace] : schema.keyspaces()) {
    for (const auto& [table_name, table] : keyspace->tables) {
      if (table->indexes.empty()) continue;
      out.prefixed(name);
      out.prefixed(table_name);
      out.varint(table->indexes.size());
      for (const Index& index : table->indexes) {
        out.prefixed(index.name);
        out.raw(index.id.bytes());
        out.varint(index.column.value());
        out.u8(static_cast<std::uint8_t>(index.target));
        put(out, index.is_custom);
        put(out, index.options);
      }
    }
  }
}

// ---- decoding

bool get_bool(Decoder& in) {
  const std::uint8_t value = in.u8();
  if (value > 1) in.fail("a truth value of neither 0 nor 1");
  return value == 1;
}
double get_double(Decoder& in) {
  return std::bit_cast<double>(in.u64_le());
}
std::string get_text(Decoder& in) {
  return std::string(in.prefixed_text());
}
std::int32_t get_i32(Decoder& in) {
  const std::int64_t value = in.signed_varint();
  if (value < std::numeric_limits<std::int32_t>::min() ||
      value > std::numeric_limits<std::int32_t>::max()) {
    in.fail("a number of more than 32 bits");
    return 0;
  }
  return static_cast<std::int32_t>(value);
}
std::uint32_t get_u32(Decoder& in) {
  const std::uint64_t value = in.varint();
  if (value > std::numeric_limits<std::uint32_t>::max()) {
    in.fail("a number of more than 32 bits");
    return 0;
  }
  return static_cast<std::uint32_t>(value);
}
template <class Enum>
Enum get_enum(Decoder& in, Enum max) {
  const std::uint8_t value = in.u8();
  if (value > static_cast<std::uint8_t>(max)) {
    in.fail("a choice that is none");
    return max;
  }
  return static_cast<Enum>(value);
}

// Entries in the order of their keys, none twice: equal maps have equal bytes.
template <class Map, class GetValue>
Map get_map(Decoder& in, GetValue get_value) {
  Map map;
  const std::size_t count = in.count(2);
  for (std::size_t index = 0; index < count && in.ok(); ++index) {
    std::string key = get_text(in);
    if (!map.empty() && key <= map.rbegin()->first) in.fail("keys out of order");
    map.emplace_hint(map.end(), std::move(key), get_value(in));
  }
  return map;
}

OptionMap get_options_map(Decoder& in) {
  return get_map<OptionMap>(in, get_text);
}

// Reads types of one keyspace, whose declared ones they may mention.
class TypeReader {
 public:
  TypeReader(Decoder& in, const Keyspace& keyspace) : in_(in), keyspace_(keyspace) {}

  Result<DataType> read(std::size_t depth = 1) {
    const auto kind = type_kind_from(in_.u8());
    if (!kind || depth > kTypeDepthMax) {
      in_.fail("a type that is none");
      return in_.status().error();
    }
    if (is_native(*kind)) return DataType(*kind);
    const bool frozen = get_bool(in_);
    if (*kind == TypeKind::udt) return read_user_type(frozen, depth);
    if (*kind == TypeKind::vector) return read_vector(frozen);
    const std::size_t count = in_.count(1);
    std::vector<DataType> parts;
    for (std::size_t index = 0; index < count && in_.ok(); ++index) {
      TRY(DataType part, read(depth + 1));
      parts.push_back(std::move(part));
    }
    TRY_VOID(in_.status());
    return composed(*kind, frozen, std::move(parts));
  }

  Result<std::vector<UserTypeField>> read_fields(std::size_t depth) {
    std::vector<UserTypeField> fields;
    const std::size_t count = in_.count(2);
    for (std::size_t index = 0; index < count && in_.ok(); ++index) {
      std::string name = get_text(in_);
      TRY(DataType type, read(depth));
      fields.push_back({.name = std::move(name), .type = std::move(type)});
    }
    TRY_VOID(in_.status());
    return fields;
  }

 private:
  Result<DataType> composed(TypeKind kind, bool frozen, std::vector<DataType> parts) {
    const std::size_t wanted = kind == TypeKind::map ? 2 : 1;
    if (kind == TypeKind::tuple) {
      if (!frozen) in_.fail("a tuple that is not frozen");
      TRY_VOID(in_.status());
      return DataType::tuple_of(std::move(parts));
    }
    if (parts.size() != wanted) in_.fail("a collection of the wrong number of types");
    TRY_VOID(in_.status());
    switch (kind) {
      case TypeKind::list:
        return DataType::list_of(parts[0], frozen);
      case TypeKind::set:
        return DataType::set_of(parts[0], frozen);
      case TypeKind::map:
        return DataType::map_of(parts[0], parts[1], frozen);
      default:
        UNREACHABLE("type {}", static_cast<unsigned>(kind));
    }
  }

  Result<DataType> read_vector(bool frozen) {
    const std::uint64_t dimension = in_.varint();
    if (!frozen) in_.fail("a vector that is not frozen");
    TRY_VOID(in_.status());
    return DataType::vector_of(dimension);
  }

  Result<DataType> read_user_type(bool frozen, std::size_t depth) {
    std::string name = get_text(in_);
    if (get_bool(in_)) {
      TRY(auto fields, read_fields(depth + 1));
      return DataType::user_type(keyspace_.name, std::move(name), std::move(fields), frozen);
    }
    const auto declared = keyspace_.find_type(name);
    if (!declared) in_.fail("a user-defined type that is not declared");
    TRY_VOID(in_.status());
    return frozen ? declared->frozen() : *declared;
  }

  Decoder& in_;
  const Keyspace& keyspace_;
};

TableOptions get_options(Decoder& in) {
  TableOptions options;
  options.additional_write_policy = get_text(in);
  options.bloom_filter_fp_chance = get_double(in);
  options.caching = get_options_map(in);
  options.cdc = get_bool(in);
  options.comment = get_text(in);
  options.compaction = get_options_map(in);
  options.compression = get_options_map(in);
  options.crc_check_chance = get_double(in);
  options.default_time_to_live = get_i32(in);
  options.extensions = get_map<decltype(options.extensions)>(
      in, [](Decoder& from) { return Bytes::copy_of(from.prefixed()); });
  options.gc_grace_seconds = get_i32(in);
  options.max_index_interval = get_i32(in);
  options.memtable = get_text(in);
  options.memtable_flush_period_in_ms = get_i32(in);
  options.min_index_interval = get_i32(in);
  options.read_repair = get_text(in);
  options.speculative_retry = get_text(in);
  options.conflicts = get_enum(in, Conflicts::siblings);
  options.filter = get_options_map(in);
  options.causal_writes = get_enum(in, CausalWrites::quorum);
  options.delete_memory_seconds = get_i32(in);
  return options;
}

Result<std::vector<Column>> get_columns(Decoder& in, const Keyspace& keyspace) {
  constexpr std::size_t kBytesMin = 6;
  std::vector<Column> columns;
  const std::size_t count = in.count(kBytesMin);
  for (std::size_t index = 0; index < count && in.ok(); ++index) {
    std::string name = get_text(in);
    const auto kind = get_enum(in, ColumnKind::regular);
    const std::uint32_t position = get_u32(in);
    const bool descending = get_bool(in);
    const causality::ColumnId id(get_u32(in));
    TRY(DataType type, TypeReader(in, keyspace).read());
    columns.push_back({.name = std::move(name),
                       .kind = kind,
                       .position = position,
                       .type = std::move(type),
                       .descending = descending,
                       .id = id});
  }
  TRY_VOID(in.status());
  return columns;
}

Result<std::vector<DroppedColumn>> get_dropped_columns(Decoder& in, const Keyspace& keyspace) {
  constexpr std::size_t kBytesMin = 5;
  std::vector<DroppedColumn> columns;
  const std::size_t count = in.count(kBytesMin);
  for (std::size_t index = 0; index < count && in.ok(); ++index) {
    std::string name = get_text(in);
    const auto kind = get_enum(in, ColumnKind::regular);
    const std::int64_t dropped_at_us = in.signed_varint();
    const causality::ColumnId id(get_u32(in));
    TRY(DataType type, TypeReader(in, keyspace).read());
    columns.push_back({.name = std::move(name),
                       .kind = kind,
                       .type = std::move(type),
                       .dropped_at_us = dropped_at_us,
                       .id = id});
  }
  TRY_VOID(in.status());
  return columns;
}

Result<Table> get_table(Decoder& in, const Keyspace& keyspace) {
  Table table;
  table.keyspace = keyspace.name;
  table.name = get_text(in);
  const ByteView id = in.raw(base::Uuid::kSize);
  TRY_VOID(in.status());
  TRY(table.id, read_uuid(id));
  table.next_column_id = get_u32(in);
  TRY(table.columns, get_columns(in, keyspace));
  TRY(table.dropped_columns, get_dropped_columns(in, keyspace));
  table.options = get_options(in);
  TRY_VOID(in.status());
  TRY_VOID(validate(table));
  return table;
}

Result<Keyspace> get_keyspace(Decoder& in) {
  Keyspace keyspace;
  keyspace.name = get_text(in);
  keyspace.durable_writes = get_bool(in);
  keyspace.replication = get_options_map(in);
  const std::size_t type_count = in.count(2);
  for (std::size_t index = 0; index < type_count && in.ok(); ++index) {
    std::string name = get_text(in);
    TRY(auto fields, TypeReader(in, keyspace).read_fields(2));
    TRY(DataType type, DataType::user_type(keyspace.name, name, std::move(fields)));
    if (!keyspace.types.emplace(std::move(name), std::move(type)).second) {
      in.fail("a type declared twice");
    }
  }
  const std::size_t table_count = in.count(base::Uuid::kSize);
  for (std::size_t index = 0; index < table_count && in.ok(); ++index) {
    TRY(Table table, get_table(in, keyspace));
    if (!keyspace.tables.empty() && table.name <= keyspace.tables.rbegin()->first) {
      in.fail("tables out of order");
    }
    std::string name = table.name;
    keyspace.tables.emplace(std::move(name), std::make_shared<const Table>(std::move(table)));
  }
  TRY_VOID(in.status());
  return keyspace;
}

Result<std::vector<Index>> get_indexes_of_table(Decoder& in) {
  constexpr std::size_t kIndexSizeMin = base::Uuid::kSize + 5;
  std::vector<Index> indexes;
  const std::size_t count = in.count(kIndexSizeMin);
  for (std::size_t index = 0; index < count && in.ok(); ++index) {
    Index made;
    made.name = get_text(in);
    const ByteView id = in.raw(base::Uuid::kSize);
    TRY_VOID(in.status());
    TRY(made.id, read_uuid(id));
    made.column = causality::ColumnId(get_u32(in));
    made.target = get_enum(in, IndexTarget::full);
    made.is_custom = get_bool(in);
    made.options = get_options_map(in);
    indexes.push_back(std::move(made));
  }
  TRY_VOID(in.status());
  return indexes;
}

Result<Schema> get_indexes(Decoder& in, Schema schema) {
  const std::size_t tables = in.count(4);
  for (std::size_t i = 0; i < tables && in.ok(); ++i) {
    const std::string keyspace = get_text(in);
    const std::string name = get_text(in);
    TRY(auto indexes, get_indexes_of_table(in));
    const TablePtr found = schema.find_table(keyspace, name);
    if (found == nullptr) return Error(Errc::corrupt, "indexes of a table that is not there");
    Table table = *found;
    table.indexes = std::move(indexes);
    TRY_VOID(validate(table));
    schema = schema.with(std::move(table));
  }
  return schema;
}

Result<Schema> get_schema(Decoder& in) {
  Schema schema;
  std::string previous;
  const std::size_t count = in.count(4);
  for (std::size_t index = 0; index < count && in.ok(); ++index) {
    TRY(Keyspace keyspace, get_keyspace(in));
    if (index > 0 && keyspace.name <= previous) in.fail("keyspaces out of order");
    previous = keyspace.name;
    schema = schema.with(std::move(keyspace));
  }
  if (in.ok() && in.remaining() > 0) {
    TRY(schema, get_indexes(in, std::move(schema)));
  }
  TRY_VOID(in.finish());
  return schema;
}

}  // namespace

Bytes encode(const Schema& schema) {
  Buffer out;
  Encoder encoder(out);
  encoder.u8(kVersion);
  encoder.varint(schema.keyspaces().size());
  for (const auto& [name, keyspace] : schema.keyspaces()) put(encoder, *keyspace);
  put_indexes(encoder, schema);
  return std::move(out).freeze();
}

Result<Schema> decode_schema(ByteView bytes) {
  Decoder in(bytes);
  const std::uint8_t version = in.u8();
  TRY_VOID(in.status());
  if (version > kVersion) {
    return Error(Errc::unsupported, "a schema of version {}, newest known {}", version, kVersion);
  }
  if (version == 0) return Error(Errc::corrupt, "a schema of version 0");
  auto schema = get_schema(in);
  // Whatever a part of it is accused of, these bytes are no schema.
  if (!schema) return Error(Errc::corrupt, "a schema: {}", schema.error().to_string());
  if (!base::equal(encode(*schema), bytes)) {
    return Error(Errc::corrupt, "a schema that is not written in the one way there is");
  }
  return schema;
}

base::Uuid schema_version(const Schema& schema) {
  const base::Hash128 hash = base::hash128(encode(schema));
  base::Uuid::Octets octets{};
  base::store_be(octets.data(), hash.high);
  base::store_be(octets.data() + 8, hash.low);
  octets[6] = (octets[6] & std::byte{0x0f}) | std::byte{0x80};
  octets[8] = (octets[8] & std::byte{0x3f}) | std::byte{0x80};
  return base::Uuid(octets);
}

}  // namespace helenus::model
