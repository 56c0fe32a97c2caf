#include "model/index_entries.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "model/element_key.h"
#include "model/partition_key.h"
#include "model/schema_codec.h"

namespace helenus::model {

using base::Bytes;
using base::ByteView;
using base::Errc;
using base::Error;
using base::Result;
using causality::CellChange;
using causality::ColumnId;
using causality::VersionKind;

namespace {

constexpr std::size_t kHeadSize = 12;  // keyspace and token
constexpr std::byte kValueMark{1};

Bytes cut(ByteView bytes, std::size_t size) {
  return Bytes::copy_of(bytes.first(std::min(bytes.size(), size)));
}

Bytes together(ByteView a, ByteView b) {
  base::Buffer out(a.size() + b.size());
  out.append(a);
  out.append(b);
  return std::move(out).freeze();
}

CellChange pointer_to(ByteView partition, ByteView clustering) {
  CellChange cell;
  cell.column = ColumnId(static_cast<std::uint32_t>(partition.size()));
  if (partition.size() + clustering.size() > IndexEntries::kCandidateSizeMax) clustering = {};
  cell.row = cut(together(partition, clustering), IndexEntries::kCandidateSizeMax);
  return cell;
}

}  // namespace

IndexEntries::IndexEntries(const Table& table, const Index& index)
    : kind_(table.find(index.column)->kind),
      position_(table.find(index.column)->position),
      column_(index.column),
      target_(index.target),
      type_(table.find(index.column)->type),
      partition_columns_(table.partition_key().size()),
      clustering_(table.clustering_columns()) {}

Bytes IndexEntries::define(const Keyspace& keyspace, const Table& table, const Index& index) {
  Keyspace part;
  part.name = keyspace.name;
  part.types = keyspace.types;
  Table needed;
  needed.keyspace = table.keyspace;
  needed.name = table.name;
  needed.id = table.id;
  for (const Column& column : table.columns) {
    const bool in_key = column.kind <= ColumnKind::clustering;
    if (!in_key && column.id != index.column) continue;
    needed.columns.push_back(column);
    needed.next_column_id = std::max(needed.next_column_id, column.id.value() + 1);
  }
  std::erase_if(part.types, [&](const auto& type) {
    return std::ranges::none_of(needed.columns, [&](const Column& column) {
      return column.type.mentions_user_type(keyspace.name, type.first);
    });
  });
  needed.indexes.push_back(index);
  part.tables.emplace(table.name, std::make_shared<const Table>(std::move(needed)));
  return model::encode(Schema().with(std::move(part)));
}

Result<IndexEntries> IndexEntries::read(ByteView definition) {
  TRY(const Schema schema, decode_schema(definition));
  for (const auto& [name, keyspace] : schema.keyspaces()) {
    for (const auto& [table_name, table] : keyspace->tables) {
      if (!table->indexes.empty()) return IndexEntries(*table, table->indexes.front());
    }
  }
  return Error(Errc::corrupt, "the definition of an index has none");
}

bool IndexEntries::is_ordered() const {
  return !type_.mentions(TypeKind::udt);
}

Result<Bytes> IndexEntries::encoded(const DataType& type, ByteView value) const {
  if (!is_ordered()) return Bytes();
  const ClusteringColumn column{.type = type.frozen()};
  TRY(const Bytes whole, encode_clustering({&column, 1}, {&value, 1}));
  return cut(whole, kValueSizeMax);
}

Result<Bytes> IndexEntries::encode(ByteView value) const {
  switch (target_) {
    case IndexTarget::values:
      return encoded(type_.kind() == TypeKind::map ? type_.mapped() : type_.element(), value);
    case IndexTarget::keys:
      return encoded(type_.key(), value);
    default:
      return encoded(type_, value);
  }
}

Result<Bytes> IndexEntries::encode(ByteView key, ByteView value) const {
  ASSERT(target_ == IndexTarget::entries);
  TRY(const Bytes first, encoded(type_.key(), key));
  TRY(const Bytes second, encoded(type_.mapped(), value));
  return cut(together(first, second), kValueSizeMax);
}

std::optional<Bytes> IndexEntries::element_of(const CellChange& cell, std::size_t row_size) const {
  const auto element = read_element_suffix(cell.row.view().subspan(row_size));
  if (!element || element->column != column_) return std::nullopt;
  Result<Bytes> value = Error(Errc::corrupt);
  const bool is_of_name = target_ == IndexTarget::keys ||
                          (target_ == IndexTarget::values && type_.kind() == TypeKind::set);
  if (is_of_name) {
    return is_ordered() ? cut(element->name, kValueSizeMax) : Bytes();
  }
  if (target_ == IndexTarget::values) {
    value = encode(cell.value);
  } else if (target_ == IndexTarget::entries) {
    if (!is_ordered()) return Bytes();
    const Bytes name = cut(element->name, kValueSizeMax);
    const auto mapped = encoded(type_.mapped(), cell.value);
    if (!mapped) return std::nullopt;
    return cut(together(name, *mapped), kValueSizeMax);
  }
  return value ? std::optional(*std::move(value)) : std::nullopt;
}

std::optional<Bytes> IndexEntries::value_of(const CellChange& cell, std::size_t row_size,
                                            ByteView partition) const {
  if (kind_ == ColumnKind::partition_key) {
    const auto key = split_row_key(partition);
    if (!key) return std::nullopt;
    const auto values = split_routing_key(partition_columns_, key->routing_key);
    if (!values) return std::nullopt;
    auto value = encode((*values)[position_]);
    return value ? std::optional(*std::move(value)) : std::nullopt;
  }
  if (kind_ == ColumnKind::clustering) {
    const auto values = decode_clustering(clustering_, cell.row.view().first(row_size));
    if (!values || position_ >= values->size()) return std::nullopt;
    auto value = encode((*values)[position_]);
    return value ? std::optional(*std::move(value)) : std::nullopt;
  }
  if (type_.is_multi_cell()) return element_of(cell, row_size);
  if (cell.column != column_ || cell.row.size() != row_size) return std::nullopt;
  auto value = encode(cell.value);
  return value ? std::optional(*std::move(value)) : std::nullopt;
}

void IndexEntries::derive(ByteView tablet_from, ByteView partition,
                          std::span<const CellChange> cells, std::vector<IndexedCell>& into) const {
  const bool is_key = kind_ <= ColumnKind::clustering;
  const std::size_t first = into.size();
  for (const CellChange& cell : cells) {
    if (cell.kind != VersionKind::value) continue;
    // Most cells are of other columns.
    if (!is_key && !type_.is_multi_cell() && cell.column != column_) continue;
    const auto row_size = row_size_of(clustering_, cell.row);
    if (!row_size) continue;
    const auto value = value_of(cell, *row_size, partition);
    if (!value) continue;
    const bool whole = kind_ == ColumnKind::partition_key || kind_ == ColumnKind::static_column;
    const ByteView row = whole ? ByteView() : cell.row.view().first(*row_size);
    IndexedCell entry{.partition = partition_of(tablet_from, *value),
                      .cell = pointer_to(partition, row)};
    // A row is there as long as any of its cells is.
    if (!is_key) entry.cell.expires = cell.expires;
    const auto is_same = [&](const IndexedCell& other) {
      return other.partition == entry.partition && other.cell.row == entry.cell.row &&
             other.cell.column == entry.cell.column;
    };
    const auto before = std::span(into).subspan(first);
    if (is_key && !before.empty() && is_same(before.back())) continue;
    into.push_back(std::move(entry));
  }
}

Bytes IndexEntries::partition_of(ByteView tablet_from, ByteView encoded) {
  base::Buffer out(kHeadSize + 1 + encoded.size());
  out.append(tablet_from.first(std::min(tablet_from.size(), kHeadSize)));
  while (out.size() < kHeadSize) out.push_back(std::byte{0});
  out.push_back(kValueMark);
  out.append(encoded);
  return std::move(out).freeze();
}

Result<IndexCandidate> IndexEntries::candidate_of(ByteView row, ColumnId column) {
  const std::size_t size = column.value();
  if (row.empty()) return Error(Errc::corrupt, "an index entry of nothing");
  if (row.size() < size) {
    return IndexCandidate{.what = IndexCandidate::What::prefix, .partition = Bytes::copy_of(row)};
  }
  if (row.size() == size) {
    return IndexCandidate{.what = IndexCandidate::What::partition,
                          .partition = Bytes::copy_of(row)};
  }
  return IndexCandidate{.what = IndexCandidate::What::row,
                        .partition = Bytes::copy_of(row.first(size)),
                        .clustering = Bytes::copy_of(row.subspan(size))};
}

}  // namespace helenus::model
