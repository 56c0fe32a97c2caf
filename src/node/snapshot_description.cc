#include "node/snapshot_description.h"

#include <algorithm>
#include <limits>

#include "base/codec.h"
#include "base/versioned_file.h"
#include "model/schema.h"

namespace helenus::node {

using base::Errc;
using base::Error;
using base::Result;

namespace {

constexpr base::FileFormat kSnapshotFormat{.magic = "HLNSSNAP", .version = 1};

// The least that an encoded keyspace, and a table, takes.
constexpr std::size_t kKeyspaceBytesMin = 3;
constexpr std::size_t kTableBytesMin = 19;

std::string name_from(base::Decoder& in) {
  const std::string name(in.prefixed_text());
  if (name.size() > model::kNameSizeMax) in.fail("a name is too long");
  return name;
}

SnapshotDescription::Table table_from(base::Decoder& in) {
  SnapshotDescription::Table table;
  table.name = name_from(in);
  table.id = base::decode_uuid(in);
  table.storage = storage::TableId{in.varint()};
  const std::uint8_t kind = in.u8();
  if (kind > 1) in.fail("neither a table nor an index");
  table.is_index = kind == 1;
  return table;
}

SnapshotDescription::Keyspace keyspace_from(base::Decoder& in) {
  SnapshotDescription::Keyspace keyspace;
  keyspace.name = name_from(in);
  const std::uint64_t number = in.varint();
  if (number > std::numeric_limits<std::uint32_t>::max()) in.fail("no number of a keyspace");
  keyspace.number = model::KeyspaceNumber{static_cast<std::uint32_t>(number)};
  const std::size_t tables = in.count(kTableBytesMin);
  for (std::size_t i = 0; i < tables && in.ok(); ++i) keyspace.tables.push_back(table_from(in));
  return keyspace;
}

}  // namespace

Result<void> check_snapshot_name(std::string_view name) {
  const bool is_name = !name.empty() && name.size() <= kSnapshotNameSizeMax &&
                       !name.starts_with('.') && std::ranges::all_of(name, [](char c) {
                         return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                                (c >= '0' && c <= '9') || c == '_' || c == '-' || c == '.';
                       });
  if (is_name) return {};
  return Error(Errc::invalid_argument,
               "a snapshot is named by letters, digits, '_', '-' and '.', does not begin with '.' "
               "and has at most {} of them",
               kSnapshotNameSizeMax);
}

base::Bytes encode(const SnapshotDescription& description) {
  base::Buffer buffer;
  base::Encoder out(buffer);
  out.raw(description.node.value().bytes());
  out.u64_le(static_cast<std::uint64_t>(description.created.since_origin().count()));
  out.varint(description.files);
  out.varint(description.bytes);
  out.varint(description.keyspaces.size());
  for (const SnapshotDescription::Keyspace& keyspace : description.keyspaces) {
    out.prefixed(keyspace.name);
    out.varint(keyspace.number.value());
    out.varint(keyspace.tables.size());
    for (const SnapshotDescription::Table& table : keyspace.tables) {
      out.prefixed(table.name);
      out.raw(table.id.bytes());
      out.varint(table.storage.value());
      out.u8(table.is_index ? 1 : 0);
    }
  }
  return base::encode_file(kSnapshotFormat, buffer.view());
}

Result<SnapshotDescription> decode_snapshot_description(base::ByteView bytes) {
  TRY(const auto content, base::decode_file(kSnapshotFormat, bytes));
  base::Decoder in(content);
  SnapshotDescription description;
  description.node = model::NodeId(base::decode_uuid(in));
  description.created =
      runtime::WallTime(runtime::Duration(static_cast<std::int64_t>(in.u64_le())));
  description.files = in.varint();
  description.bytes = in.varint();
  const std::size_t keyspaces = in.count(kKeyspaceBytesMin);
  for (std::size_t i = 0; i < keyspaces && in.ok(); ++i) {
    description.keyspaces.push_back(keyspace_from(in));
  }
  TRY_VOID(in.finish());
  return description;
}

}  // namespace helenus::node
