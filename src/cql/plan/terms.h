// Terms: what stands for a value in a statement. A literal, a marker, a collection of terms, a call
// of a function; compiled once against the type that is wanted, evaluated at every execution.
//
//   TRY(Term term, compile_term(expression, {keyspace, table, "c", type}, scope));     planning
//   TRY(TermValue value, term.evaluate(evaluation));                                   executing
//
// What can be known when planning is: a literal that does not fit is refused there, and constants
// are values already. Messages are Cassandra's.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/pace.h"
#include "cql/errors/query_error.h"
#include "cql/parser/expression.h"
#include "cql/plan/functions.h"
#include "cql/plan/moment.h"
#include "cql/protocol/metadata.h"
#include "cql/protocol/request.h"
#include "model/data_type.h"
#include "model/schema.h"
#include "model/value.h"

namespace helenus::cql {

// A value, null, or "leave it alone".
struct TermValue {
  using Kind = protocol::Value::Kind;
  Kind kind = Kind::null;
  base::Bytes bytes;  // empty unless kind is bytes

  static TermValue of(base::Bytes bytes) { return {Kind::bytes, std::move(bytes)}; }
  static TermValue null() { return {}; }
  static TermValue unset() { return {Kind::unset, {}}; }
  bool is_null() const { return kind == Kind::null; }
  bool is_unset() const { return kind == Kind::unset; }
  bool has_bytes() const { return kind == Kind::bytes; }
};

// What the client bound to the markers, by their index.
using BoundValues = absl::InlinedVector<TermValue, 6>;

class ValueGuard;

// What an evaluation goes by: at that pace, if there is one.
struct Evaluation {
  const BoundValues& values;
  Moment& moment;
  base::Pace* pace = nullptr;
  const ValueGuard* guard = nullptr;  // of what is set or added, if anything is to be looked for

  // To be called for whatever a client may send many of. Errors: of the pace.
  base::Result<void> turn() const { return base::Pace::turn(pace); }
};

// The markers of a statement, as they become known while it is planned. Where a name is given to a
// marker it is that; else that of what it is for.
class MarkerTypes {
 public:
  // The statement is planned at that pace, if there is one.
  explicit MarkerTypes(const std::vector<std::optional<std::string>>& names,
                       base::Pace* pace = nullptr)
      : names_(names), specs_(names.size()), pace_(pace) {}

  // To be called for every term, and whatever else there may be many of. Errors: of the pace.
  base::Result<void> turn() { return base::Pace::turn(pace_); }

  void set(std::uint16_t index, protocol::ColumnSpec spec);
  std::size_t count() const { return specs_.size(); }
  // Errors: invalid for a marker whose type nothing told, or whose name is too long for metadata.
  QueryResult<std::vector<protocol::ColumnSpec>> take() &&;

 private:
  const std::vector<std::optional<std::string>>& names_;
  std::vector<std::optional<protocol::ColumnSpec>> specs_;
  base::Pace* const pace_;
};

// Where a statement is planned.
struct PlanScope {
  const model::Keyspace& keyspace;  // of the statement's table: its types are those of its hints
  MarkerTypes& markers;
  std::size_t operators = 0;  // met so far (operation_term.h)
};

class Term {
 public:
  enum class Kind : std::uint8_t { constant, marker, list, set, map, tuple, vector, function };

  static Term constant(model::DataType type, TermValue value);
  // The value of that index, which no marker of the statement has.
  static Term of_value(std::uint16_t index, model::DataType type);

  const model::DataType& type() const { return type_; }
  bool is_constant() const { return kind_ == Kind::constant; }
  // The index, of a bare marker.
  std::optional<std::uint16_t> marker() const;
  // Of a bare marker that is bound to a collection: how many elements that says it has, before
  // anybody looked whether it is one; else 0.
  std::size_t count_bound(const Evaluation& evaluation) const;

  // A value that validates and is normalised. Errors: invalid.
  QueryResult<TermValue> evaluate(const Evaluation& evaluation) const;

 private:
  friend class TermCompiler;
  friend QueryResult<Term> compile_tuple(const parser::TupleLiteral& literal,
                                         const std::vector<protocol::ColumnSpec>& receivers,
                                         const model::DataType& type, PlanScope& scope);
  Term(Kind kind, model::DataType type) : kind_(kind), type_(std::move(type)) {}

  QueryResult<TermValue> evaluate_marker(const Evaluation& evaluation) const;
  QueryResult<TermValue> evaluate_collection(const Evaluation& evaluation) const;
  QueryResult<TermValue> evaluate_tuple(const Evaluation& evaluation) const;
  QueryResult<TermValue> evaluate_function(const Evaluation& evaluation) const;

  Kind kind_;
  model::DataType type_;
  TermValue constant_;
  std::uint16_t marker_ = 0;
  std::vector<Term> parts_;  // of a map: key, value, key, value, ...
  std::shared_ptr<const Function> function_;
};

// A tuple whose parts are for columns of their own, as in (a, b) = (?, ?). Requires: as many
// elements as receivers, of the types that the tuple has.
QueryResult<Term> compile_tuple(const parser::TupleLiteral& literal,
                                const std::vector<protocol::ColumnSpec>& receivers,
                                const model::DataType& type, PlanScope& scope);

// `receiver` says what the term is for: its type and the name that messages give it.
QueryResult<Term> compile_term(const parser::Expression& expression,
                               const protocol::ColumnSpec& receiver, PlanScope& scope);

}  // namespace helenus::cql
