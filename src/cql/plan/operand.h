// Operand: what is known of an operand, or of a function's argument, before the type is decided
// that it is to have. A column has one type; a literal could be of several and prefers one; a
// marker could be of any. Cassandra's rules choose among the operations and functions by that.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "cql/parser/expression.h"
#include "model/data_type.h"
#include "model/literal.h"

namespace helenus::cql {

enum class Fit : std::uint8_t { no, weak, exact };

// What a literal is of by itself; nothing for null.
std::optional<model::DataType> natural_type(const parser::Literal& literal);
// Requires: not null.
model::LiteralKind literal_kind(parser::LiteralKind kind);

class Operand {
 public:
  // Fits nothing.
  Operand() = default;
  // Of a type that is known.
  explicit Operand(const model::DataType& type);
  explicit Operand(const parser::Literal& literal);
  // Of any type at all: a marker, or something that will be refused in words of its own.
  static Operand unknown(bool is_marker);

  Fit fit(model::TypeKind wanted) const { return fits_[index_of(wanted)]; }
  void set(model::TypeKind wanted, Fit fit) { fits_[index_of(wanted)] = fit; }
  bool is_marker() const { return is_marker_; }

 private:
  static constexpr std::size_t kKinds = 0x41;
  static std::size_t index_of(model::TypeKind kind) { return static_cast<std::size_t>(kind); }

  std::array<Fit, kKinds> fits_{};
  bool is_marker_ = false;
};

}  // namespace helenus::cql
