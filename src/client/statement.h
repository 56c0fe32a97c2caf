// Statements as callers make them: texts, prepared ones and batches, with bound values, and how a
// request is to be done. Plain values that own what they hold.
//
//   Query{.text = "SELECT v FROM t WHERE k = ?", .values = {model::int_value(7)}}
//   Execution{.prepared = insert, .values = {model::int_value(7), BoundValue::null()}}
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "cql/protocol/metadata.h"
#include "cql/protocol/request.h"
#include "cql/protocol/response.h"
#include "model/consistency.h"

namespace helenus::client {

// What is bound to a marker; the functions of model/value.h make the bytes.
class BoundValue {
 public:
  BoundValue(base::Bytes bytes)  // NOLINT: {model::int_value(1), model::text_value("x")}
      : kind_(cql::protocol::Value::Kind::bytes), bytes_(std::move(bytes)) {}
  // Deletes the cell.
  static BoundValue null() { return BoundValue(cql::protocol::Value::Kind::null); }
  // Leaves the cell alone.
  static BoundValue unset() { return BoundValue(cql::protocol::Value::Kind::unset); }

  std::size_t size() const { return bytes_.size(); }
  cql::protocol::Value view() const [[clang::lifetimebound]] {
    return {.kind = kind_, .bytes = bytes_};
  }

 private:
  explicit BoundValue(cql::protocol::Value::Kind kind) : kind_(kind) {}
  cql::protocol::Value::Kind kind_;
  base::Bytes bytes_;
};

// What a server said of a statement it prepared. Nodes of one cluster give a text the same id, so
// it serves for all of them; one that does not know it is told the text again by a Session.
struct PreparedStatement {
  std::string text;
  base::Bytes id;
  std::vector<cql::protocol::ColumnSpec> markers;
  // For each column of the partition key the marker that binds it; none unless all are bound.
  std::vector<std::uint16_t> partition_key_markers;
  std::vector<cql::protocol::ColumnSpec> columns;
};
using Prepared = std::shared_ptr<const PreparedStatement>;

struct Query {
  std::string text;
  std::vector<BoundValue> values = {};
  std::vector<std::string> names = {};  // none, or one a value
};

struct Execution {
  Prepared prepared;  // never null
  std::vector<BoundValue> values = {};
};

struct Batch {
  using Type = cql::protocol::BatchType;
  Type type = Type::logged;
  std::vector<std::variant<Query, Execution>> statements;  // queries without names
};

using Statement = std::variant<Query, Execution, Batch>;

// The prepared statement of that id that `statement` executes; null if there is none.
Prepared find_prepared(const Statement& statement, base::ByteView id);
// How many prepared statements it executes.
std::size_t prepared_count(const Statement& statement);

struct RequestOptions {
  model::Consistency consistency = model::Consistency::local_one;
  std::optional<model::Consistency> serial_consistency = std::nullopt;
  std::optional<std::int64_t> default_timestamp_us = std::nullopt;
  // Rows of a page; without it the server sends what it sends. No batch has pages.
  std::optional<std::int32_t> page_size = std::nullopt;
  // Where the page begins, as ResultSet::paging_state() of the page before said.
  std::optional<base::Bytes> paging_state = std::nullopt;
  // The custom payload, for instance {"helenus-context", ...}.
  std::vector<cql::protocol::OwnedPayloadEntry> payload = {};
  bool tracing = false;
};

// The request of a statement; it borrows from both. Its stream is to be set. Errors:
// invalid_argument for what the protocol has no room for, or for more than `size_max` bytes.
base::Result<cql::protocol::Request> make_request(const Statement& statement
                                                  [[clang::lifetimebound]],
                                                  const RequestOptions& options
                                                  [[clang::lifetimebound]],
                                                  std::size_t size_max);

}  // namespace helenus::client
