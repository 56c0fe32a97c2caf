#include "model/element_key.h"

#include <array>
#include <utility>

#include "base/codec.h"

namespace helenus::model {

using base::Buffer;
using base::Bytes;
using base::ByteView;
using base::Errc;
using base::Error;
using base::Result;
using causality::ColumnId;

namespace {

constexpr std::size_t kMarkSize = 2;
constexpr std::size_t kColumnSize = sizeof(std::uint32_t);
constexpr std::size_t kFieldSize = sizeof(std::uint16_t);

}  // namespace

Result<ElementKey> read_element_suffix(ByteView behind_row) {
  if (!is_element_suffix(behind_row) || behind_row.size() < kMarkSize + kColumnSize) {
    return Error(Errc::corrupt, "{} bytes behind a row's key are no element's", behind_row.size());
  }
  return ElementKey{.column = ColumnId(base::load_be<std::uint32_t>(behind_row.data() + kMarkSize)),
                    .name = behind_row.subspan(kMarkSize + kColumnSize)};
}

Bytes element_suffix(ColumnId column, ByteView name) {
  Buffer out(kMarkSize + kColumnSize + name.size());
  out.push_back(std::byte{0});
  out.push_back(std::byte{0});
  base::store_be(out.extend(kColumnSize).data(), column.value());
  out.append(name);
  return std::move(out).freeze();
}

ClusteringRange element_suffixes(ColumnId column) {
  return rows_with_prefix(element_suffix(column, {}));
}

ClusteringRange static_rows() {
  return {.from = {}, .to = all_clustered_rows().from};
}

Result<Bytes> element_name(const DataType& type, ByteView value) {
  const ClusteringColumn column{.type = type.frozen()};
  return encode_clustering({&column, 1}, {&value, 1});
}

Result<Bytes> named_element(const DataType& type, ByteView name) {
  const ClusteringColumn column{.type = type.frozen()};
  TRY(auto values, decode_clustering({&column, 1}, name));
  if (values.size() != 1) return Error(Errc::corrupt, "an element without a name");
  return std::move(values.front());
}

Bytes field_name(std::size_t field) {
  Buffer out(kFieldSize);
  base::store_be(out.extend(kFieldSize).data(), static_cast<std::uint16_t>(field));
  return std::move(out).freeze();
}

Result<std::size_t> named_field(ByteView name) {
  if (name.size() != kFieldSize) {
    return Error(Errc::corrupt, "a field's name of {} bytes", name.size());
  }
  return std::size_t{base::load_be<std::uint16_t>(name.data())};
}

Bytes joined_key(const Bytes& row, const Bytes& suffix) {
  if (suffix.empty()) return row;
  if (row.empty()) return suffix;
  Buffer out(row.size() + suffix.size());
  out.append(row.view());
  out.append(suffix.view());
  return std::move(out).freeze();
}

}  // namespace helenus::model
