// ResultSet: the answer to a statement: its rows, and what the server said beside them.
//
//   for (const Row row : result.rows()) {
//     TRY(const auto id, row.get<std::int64_t>("id"));
//     TRY(const auto note, row.get<std::optional<std::string>>("note"));   // null allowed
//   }
//
// It owns its bytes; Rows and Cells borrow from it. Cells are a stranger's bytes: they are decoded
// when asked for, and what is no value of its type is an error.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <ranges>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "base/uuid.h"
#include "cql/protocol/metadata.h"
#include "cql/protocol/response.h"
#include "model/data_type.h"
#include "model/value.h"

namespace helenus::client {

namespace detail {
template <class T>
struct OptionalOf : std::false_type {};
template <class T>
struct OptionalOf<std::optional<T>> : std::true_type {};
}  // namespace detail

// One value of a row. It borrows from its ResultSet.
class Cell {
 public:
  Cell(const model::DataType& type [[clang::lifetimebound]], model::OptionalView bytes)
      : type_(type), bytes_(bytes) {}

  const model::DataType& type() const { return type_; }
  bool is_null() const { return !bytes_.has_value(); }
  // As it came; none is null.
  model::OptionalView bytes() const { return bytes_; }
  // As a literal of CQL: 'it''s', {1, 2}, null.
  std::string to_text() const;

  // T is one of
  //   integers     of tinyint, smallint, int, bigint, counter, varint; milliseconds of timestamp,
  //                nanoseconds of time, days since 1970 of date
  //   bool, float, double (of float too), base::Uuid (of timeuuid too), std::string (of ascii too)
  //   base::Bytes  of any type, as it came
  // or an optional of these, where null is none.
  // Errors: not_found for null; invalid_argument for another type, for bytes that are no value, and
  // for an integer that T has no room for.
  template <class T>
  base::Result<T> get() const {
    if constexpr (detail::OptionalOf<T>::value) {
      if (is_null()) return T();
      TRY(auto value, get<typename T::value_type>());
      return T(std::move(value));
    } else if constexpr (std::same_as<T, bool>) {
      return boolean();
    } else if constexpr (std::integral<T>) {
      TRY(const std::int64_t value, integer());
      if (!std::in_range<T>(value)) {
        return base::Error(base::Errc::invalid_argument, "{} is out of range", value);
      }
      return static_cast<T>(value);
    } else if constexpr (std::same_as<T, float>) {
      return single();
    } else if constexpr (std::same_as<T, double>) {
      return floating();
    } else if constexpr (std::same_as<T, base::Uuid>) {
      return uuid();
    } else if constexpr (std::same_as<T, std::string>) {
      return text();
    } else {
      static_assert(std::same_as<T, base::Bytes>, "a cell is not read as this type");
      return blob();
    }
  }

 private:
  // The bytes, if the type is one of these. Errors: not_found, invalid_argument.
  base::Result<base::ByteView> of_kind(std::initializer_list<model::TypeKind> kinds) const;
  base::Result<bool> boolean() const;
  base::Result<std::int64_t> integer() const;
  base::Result<float> single() const;
  base::Result<double> floating() const;
  base::Result<base::Uuid> uuid() const;
  base::Result<std::string> text() const;
  base::Result<base::Bytes> blob() const;

  const model::DataType& type_;
  model::OptionalView bytes_;
};

class Row {
 public:
  // Requires: as many cells as columns.
  Row(std::span<const cql::protocol::ColumnSpec> columns, std::vector<model::OptionalView> cells);

  std::size_t size() const { return cells_.size(); }
  // Requires: index < size().
  Cell cell(std::size_t index) const;
  // Errors: not_found.
  base::Result<Cell> cell(std::string_view name) const;

  template <class T>
  base::Result<T> get(std::size_t index) const {
    return cell(index).get<T>();
  }
  template <class T>
  base::Result<T> get(std::string_view name) const {
    TRY(const Cell found, cell(name));
    return found.get<T>();
  }

 private:
  std::span<const cql::protocol::ColumnSpec> columns_;
  std::vector<model::OptionalView> cells_;
};

class ResultSet {
 public:
  ResultSet() = default;  // of a statement that answers no rows
  // Requires: the message is a RESULT, and not of a PREPARE. Errors: corrupt.
  static base::Result<ResultSet> of(cql::protocol::DecodedResponse response);

  std::span<const cql::protocol::ColumnSpec> columns() const [[clang::lifetimebound]] {
    return columns_;
  }
  // The first of that name.
  std::optional<std::size_t> column_index(std::string_view name) const;

  std::size_t size() const { return row_offsets_.size(); }
  bool empty() const { return row_offsets_.empty(); }
  // Requires: index < size(). Cost: linear in the columns.
  Row row(std::size_t index) const [[clang::lifetimebound]];
  auto rows() const [[clang::lifetimebound]] {
    return std::views::iota(std::size_t{0}, size()) |
           std::views::transform([this](std::size_t index) { return row(index); });
  }

  // Where the next page begins; none if this is the last one.
  const std::optional<base::Bytes>& paging_state() const { return paging_state_; }
  const std::vector<std::string>& warnings() const { return prefix_.warnings; }
  // The value of a key of the custom payload; none if absent or null.
  std::optional<base::Bytes> payload(std::string_view key) const;
  const std::vector<cql::protocol::OwnedPayloadEntry>& payload() const { return prefix_.payload; }
  const std::optional<base::Uuid>& tracing() const { return prefix_.tracing; }
  // What USE answers.
  const std::optional<std::string>& keyspace() const { return keyspace_; }
  // What a change of the schema answers, if it changed something.
  const std::optional<cql::protocol::SchemaChange>& schema_change() const { return schema_change_; }

 private:
  base::Result<void> take_rows(cql::protocol::RowsResult rows);

  cql::protocol::ResponsePrefix prefix_;
  std::vector<cql::protocol::ColumnSpec> columns_;
  base::Bytes cells_;
  std::vector<std::uint32_t> row_offsets_;  // into cells_
  std::optional<base::Bytes> paging_state_;
  std::optional<std::string> keyspace_;
  std::optional<cql::protocol::SchemaChange> schema_change_;
};

}  // namespace helenus::client
