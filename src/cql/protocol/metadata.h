// Metadata of columns: their names and types as PREPARED and ROWS carry them.
//
// A type crosses the wire without `frozen`, which only matters to the schema: read back,
// collections and user types are not frozen. In version 4 a duration has no code of its own and
// travels as a custom type.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/codec.h"
#include "cql/protocol/primitives.h"
#include "model/data_type.h"

namespace helenus::cql::protocol {

struct ColumnSpec {
  std::string keyspace;
  std::string table;
  std::string name;
  model::DataType type;
  friend bool operator==(const ColumnSpec&, const ColumnSpec&) = default;
};

void put_type(base::Encoder& out, const model::DataType& type);
// Fails where types nest deeper than the model allows, and on custom types we do not know.
// What it returns then is of no meaning.
model::DataType get_type(base::Decoder& in);

// What a client reads at most: columns of a result, and bytes of the name of a keyspace or table,
// which every column repeats in memory but not in the frame.
inline constexpr std::size_t kColumnsMax = 65535;
inline constexpr std::size_t kTableNameSizeMax = 256;

// Flags of the metadata of rows and markers.
inline constexpr std::uint32_t kMetadataGlobalTable = 0x0001;
inline constexpr std::uint32_t kMetadataHasMorePages = 0x0002;
inline constexpr std::uint32_t kMetadataNone = 0x0004;
inline constexpr std::uint32_t kMetadataChanged = 0x0008;  // version 5: their new id is there

// The specifications of columns, encoded once for a statement and shared by all its answers. They
// name their table once if it is the same for all.
class EncodedColumns {
 public:
  // No columns at all.
  EncodedColumns() = default;
  // Requires: names and texts no longer than kShortSizeMax.
  explicit EncodedColumns(std::span<const ColumnSpec> columns);

  std::uint32_t count() const { return count_; }
  // kMetadataGlobalTable or nothing.
  std::uint32_t flags() const { return flags_; }
  // The table, if it is the same for all, then each column.
  const base::Bytes& specs() const { return specs_; }

 private:
  std::uint32_t count_ = 0;
  std::uint32_t flags_ = 0;
  base::Bytes specs_;
};

// `count` columns behind those flags, as EncodedColumns writes them.
std::vector<ColumnSpec> get_columns(base::Decoder& in, std::uint32_t flags, std::size_t count);

}  // namespace helenus::cql::protocol
