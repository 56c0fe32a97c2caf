#include "client/result_set.h"

#include <algorithm>
#include <variant>

#include "base/assert.h"
#include "base/codec.h"

namespace helenus::client {

using base::Bytes;
using base::ByteView;
using base::Errc;
using base::Error;
using base::Result;
using cql::protocol::ColumnSpec;
using model::TypeKind;

namespace {

Result<std::int64_t> read_varint(ByteView bytes) {
  if (bytes.empty() || bytes.size() > sizeof(std::int64_t)) {
    return Error(Errc::invalid_argument, "a varint of {} bytes", bytes.size());
  }
  const bool negative = (bytes.front() & std::byte{0x80}) != std::byte{0};
  std::uint64_t value = negative ? ~std::uint64_t{0} : 0;
  for (const std::byte octet : bytes) value = value << 8 | std::to_integer<std::uint64_t>(octet);
  return static_cast<std::int64_t>(value);
}

// Days since 1970.
Result<std::int64_t> read_date(ByteView bytes) {
  constexpr std::int64_t kEpoch = std::int64_t{1} << 31;
  TRY(const std::int32_t days, model::read_int(bytes));
  return std::int64_t{static_cast<std::uint32_t>(days)} - kEpoch;
}

}  // namespace

// ---- Cell ----

std::string Cell::to_text() const {
  return bytes_ ? model::to_text(type_, *bytes_) : "null";
}

Result<ByteView> Cell::of_kind(std::initializer_list<TypeKind> kinds) const {
  if (!bytes_) return Error(Errc::not_found, "the cell is null");
  if (std::ranges::find(kinds, type_.kind()) == kinds.end()) {
    return Error(Errc::invalid_argument, "a cell of type {} is asked for as another",
                 type_.to_cql());
  }
  return *bytes_;
}

Result<bool> Cell::boolean() const {
  TRY(const ByteView bytes, of_kind({TypeKind::boolean}));
  return model::read_boolean(bytes);
}

Result<std::int64_t> Cell::integer() const {
  TRY(const ByteView bytes, of_kind({TypeKind::tinyint, TypeKind::smallint, TypeKind::int_,
                                     TypeKind::bigint, TypeKind::counter, TypeKind::varint,
                                     TypeKind::timestamp, TypeKind::time, TypeKind::date}));
  switch (type_.kind()) {
    case TypeKind::tinyint:
      return model::read_tinyint(bytes);
    case TypeKind::smallint:
      return model::read_smallint(bytes);
    case TypeKind::int_:
      return model::read_int(bytes);
    case TypeKind::varint:
      return read_varint(bytes);
    case TypeKind::date:
      return read_date(bytes);
    default:
      return model::read_bigint(bytes);
  }
}

Result<float> Cell::single() const {
  TRY(const ByteView bytes, of_kind({TypeKind::float_}));
  return model::read_float(bytes);
}

Result<double> Cell::floating() const {
  TRY(const ByteView bytes, of_kind({TypeKind::float_, TypeKind::double_}));
  if (type_.kind() == TypeKind::double_) return model::read_double(bytes);
  TRY(const float value, model::read_float(bytes));
  return double{value};
}

Result<base::Uuid> Cell::uuid() const {
  TRY(const ByteView bytes, of_kind({TypeKind::uuid, TypeKind::timeuuid}));
  return model::read_uuid(bytes);
}

Result<std::string> Cell::text() const {
  TRY(const ByteView bytes, of_kind({TypeKind::ascii, TypeKind::varchar}));
  TRY_VOID(model::validate(type_, bytes));
  return std::string(base::as_text(bytes));
}

Result<Bytes> Cell::blob() const {
  if (!bytes_) return Error(Errc::not_found, "the cell is null");
  return Bytes::copy_of(*bytes_);
}

// ---- Row ----

Row::Row(std::span<const ColumnSpec> columns, std::vector<model::OptionalView> cells)
    : columns_(columns), cells_(std::move(cells)) {
  ASSERT(columns_.size() == cells_.size());
}

Cell Row::cell(std::size_t index) const {
  ASSERT(index < cells_.size(), "column {} of {}", index, cells_.size());
  return {columns_[index].type, cells_[index]};
}

Result<Cell> Row::cell(std::string_view name) const {
  const auto found = std::ranges::find(columns_, name, &ColumnSpec::name);
  if (found == columns_.end()) return Error(Errc::not_found, "no column is named {}", name);
  return cell(static_cast<std::size_t>(found - columns_.begin()));
}

// ---- ResultSet ----

Result<ResultSet> ResultSet::of(cql::protocol::DecodedResponse response) {
  ResultSet result;
  result.prefix_ = std::move(response.prefix);
  if (auto* rows = std::get_if<cql::protocol::RowsResult>(&response.message)) {
    TRY_VOID(result.take_rows(std::move(*rows)));
  } else if (auto* use = std::get_if<cql::protocol::SetKeyspaceResult>(&response.message)) {
    result.keyspace_ = std::move(use->keyspace);
  } else if (auto* change = std::get_if<cql::protocol::SchemaChangeResult>(&response.message)) {
    result.schema_change_ = std::move(change->change);
  } else {
    ASSERT(std::holds_alternative<cql::protocol::VoidResult>(response.message));
  }
  return result;
}

Result<void> ResultSet::take_rows(cql::protocol::RowsResult rows) {
  if (rows.columns.size() != rows.column_count) {
    return Error(Errc::corrupt, "rows come without the types of their columns");
  }
  if (rows.column_count == 0 && rows.row_count > 0) {
    return Error(Errc::corrupt, "{} rows have no columns", rows.row_count);
  }
  if (rows.rows.size() > std::numeric_limits<std::uint32_t>::max()) {
    return Error(Errc::corrupt, "{} bytes of rows", rows.rows.size());
  }
  columns_ = std::move(rows.columns);
  cells_ = std::move(rows.rows);
  paging_state_ = std::move(rows.paging_state);
  row_offsets_.reserve(rows.row_count);
  base::Decoder in(cells_);
  for (std::uint32_t row = 0; row < rows.row_count; ++row) {
    row_offsets_.push_back(static_cast<std::uint32_t>(in.offset()));
    for (std::uint32_t column = 0; column < rows.column_count; ++column) {
      cql::protocol::get_bytes(in);
    }
  }
  return in.finish();
}

std::optional<std::size_t> ResultSet::column_index(std::string_view name) const {
  const auto found = std::ranges::find(columns_, name, &ColumnSpec::name);
  if (found == columns_.end()) return std::nullopt;
  return static_cast<std::size_t>(found - columns_.begin());
}

Row ResultSet::row(std::size_t index) const {
  ASSERT(index < size(), "row {} of {}", index, size());
  base::Decoder in(cells_.view().subspan(row_offsets_[index]));
  std::vector<model::OptionalView> cells;
  cells.reserve(columns_.size());
  for (std::size_t column = 0; column < columns_.size(); ++column) {
    cells.push_back(cql::protocol::get_bytes(in));
  }
  return {columns_, std::move(cells)};
}

std::optional<Bytes> ResultSet::payload(std::string_view key) const {
  const auto found =
      std::ranges::find(prefix_.payload, key, &cql::protocol::OwnedPayloadEntry::key);
  if (found == prefix_.payload.end()) return std::nullopt;
  return found->value;
}

}  // namespace helenus::client
