#include "cql/plan/terms.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "base/assert.h"
#include "cql/parser/to_text.h"
#include "cql/plan/generic_functions.h"
#include "cql/plan/operation_term.h"
#include "cql/schema/type_names.h"
#include "model/literal.h"

namespace helenus::cql {

using base::Bytes;
using model::DataType;
using model::OptionalBytes;
using model::TypeKind;
using protocol::ColumnSpec;

// ---- Markers ----

void MarkerTypes::set(std::uint16_t index, ColumnSpec spec) {
  ASSERT(index < specs_.size());
  if (names_[index]) spec.name = *names_[index];
  specs_[index] = std::move(spec);
}

QueryResult<std::vector<ColumnSpec>> MarkerTypes::take() && {
  std::vector<ColumnSpec> specs;
  specs.reserve(specs_.size());
  for (auto& spec : specs_) {
    if (!spec) return invalid("Cannot determine the type of a bind marker");
    TRY_VOID(check_name_size(spec->name));
    specs.push_back(std::move(*spec));
  }
  return specs;
}

// ---- Compiling ----

namespace {

QueryError wrong_literal(std::string_view what, const ColumnSpec& receiver) {
  return invalid("Invalid {} literal for {} of type {}", what, receiver.name,
                 receiver.type.to_cql());
}

ColumnSpec part_of(const ColumnSpec& receiver, std::string name, const DataType& type) {
  return {receiver.keyspace, receiver.table, std::move(name), type};
}

}  // namespace

class TermCompiler {
 public:
  TermCompiler(const ColumnSpec& receiver, PlanScope& scope) : receiver_(receiver), scope_(scope) {}

  QueryResult<Term> operator()(const parser::Literal& literal) {
    if (literal.kind == parser::LiteralKind::null) {
      return Term::constant(receiver_.type, TermValue::null());
    }
    const model::LiteralKind kind = literal_kind(literal.kind);
    if (!model::accepts(receiver_.type, kind)) {
      return invalid("Invalid {} constant ({}) for \"{}\" of type {}", model::name_of(kind),
                     literal.text, receiver_.name, receiver_.type.to_cql());
    }
    TRY(Bytes value, model::parse_literal(receiver_.type, kind, literal.text));
    return Term::constant(receiver_.type, TermValue::of(std::move(value)));
  }

  QueryResult<Term> operator()(const parser::Marker& marker) {
    Term term(Term::Kind::marker, receiver_.type);
    term.marker_ = marker.index;
    scope_.markers.set(marker.index, receiver_);
    return term;
  }

  QueryResult<Term> operator()(const parser::ListLiteral& list) {
    if (receiver_.type.kind() == TypeKind::vector) return vector(list);
    if (receiver_.type.kind() != TypeKind::list) return wrong_literal("list", receiver_);
    Term term(Term::Kind::list, receiver_.type);
    TRY_VOID(add_elements(term, list.elements));
    return folded(std::move(term));
  }

  QueryResult<Term> operator()(const parser::SetLiteral& set) {
    if (set.elements.empty() && receiver_.type.kind() == TypeKind::map) {
      return folded(Term(Term::Kind::map, receiver_.type));
    }
    if (receiver_.type.kind() != TypeKind::set) return wrong_literal("set", receiver_);
    Term term(Term::Kind::set, receiver_.type);
    TRY_VOID(add_elements(term, set.elements));
    return folded(std::move(term));
  }

  QueryResult<Term> operator()(const parser::MapLiteral& map) {
    if (receiver_.type.kind() != TypeKind::map) return wrong_literal("map", receiver_);
    Term term(Term::Kind::map, receiver_.type);
    const ColumnSpec key =
        part_of(receiver_, fmt::format("key({})", receiver_.name), receiver_.type.key());
    const ColumnSpec value =
        part_of(receiver_, fmt::format("value({})", receiver_.name), receiver_.type.mapped());
    for (const parser::MapEntry& entry : map.entries) {
      TRY(Term key_term, compile_term(entry.key, key, scope_));
      TRY(Term value_term, compile_term(entry.value, value, scope_));
      term.parts_.push_back(std::move(key_term));
      term.parts_.push_back(std::move(value_term));
    }
    return folded(std::move(term));
  }

  QueryResult<Term> operator()(const parser::UserTypeLiteral& literal) {
    const DataType& type = receiver_.type;
    if (type.kind() != TypeKind::udt) return wrong_literal("user type", receiver_);
    std::vector<Term> parts;
    for (const DataType& part : type.parts()) {
      parts.push_back(Term::constant(part, TermValue::null()));
    }
    for (const parser::UserTypeField& field : literal.fields) {
      const auto index = type.field_index(field.name.text);
      if (!index) {
        return invalid("Unknown field '{}' in value of user defined type {}", field.name.text,
                       type.name());
      }
      const ColumnSpec spec = part_of(
          receiver_, fmt::format("{}.{}", receiver_.name, field.name.text), type.parts()[*index]);
      TRY(parts[*index], compile_term(field.value, spec, scope_));
    }
    Term term(Term::Kind::tuple, type);
    term.parts_ = std::move(parts);
    return folded(std::move(term));
  }

  QueryResult<Term> operator()(const parser::TupleLiteral& literal) {
    const DataType& type = receiver_.type;
    if (type.kind() != TypeKind::tuple) {
      if (literal.elements.size() == 1) return compile_term(literal.elements[0], receiver_, scope_);
      return wrong_literal("tuple", receiver_);
    }
    if (literal.elements.size() > type.parts().size()) {
      return invalid(
          "Invalid tuple literal for {}: too many elements. Type {} expects {} but got {}",
          receiver_.name, type.to_cql(), type.parts().size(), literal.elements.size());
    }
    Term term(Term::Kind::tuple, type);
    for (std::size_t i = 0; i < literal.elements.size(); ++i) {
      const ColumnSpec spec =
          part_of(receiver_, fmt::format("{}[{}]", receiver_.name, i), type.parts()[i]);
      TRY(Term part, compile_term(literal.elements[i], spec, scope_));
      term.parts_.push_back(std::move(part));
    }
    return folded(std::move(term));
  }

  QueryResult<Term> operator()(const parser::FunctionCall& call) {
    const std::string& name = call.function->name.text;
    if (is_from_json(name) && call.arguments.size() == 1) {
      return compile_call(from_json_function(receiver_.type), call.arguments);
    }
    if (is_generic_function(without_underscores(name))) {
      TRY(const Function function, generic_function_of(call, scope_, &receiver_.type));
      return compile_call(function, call.arguments);
    }
    const std::vector<Function> candidates = functions_named(name);
    if (candidates.empty()) return invalid("Unknown function '{}'", name);
    std::optional<QueryError> first_error;
    for (const Function& candidate : candidates) {
      if (candidate.arguments.size() != call.arguments.size()) continue;
      auto term = compile_call(candidate, call.arguments);
      if (term) return term;
      if (!first_error) first_error = std::move(term).error();
    }
    if (first_error) return *std::move(first_error);
    return invalid(
        "Invalid number of arguments in call to function system.{}: {} required but {} "
        "provided",
        name, candidates.front().arguments.size(), call.arguments.size());
  }

  QueryResult<Term> operator()(const parser::TypeHint& hint) {
    TRY(const DataType type, resolve_type(*hint.type, scope_.keyspace));
    const auto value = [&] { return parser::to_text(*hint.operand, {}); };
    const auto* const literal = std::get_if<parser::Literal>(&hint.operand->node);
    if (literal != nullptr && literal->kind != parser::LiteralKind::null &&
        !model::accepts(type, literal_kind(literal->kind))) {
      return invalid("Cannot cast value {} to type {}", value(), type.to_cql());
    }
    if (!is_assignable(receiver_.type, type)) {
      return invalid("Cannot assign value ({}){} to {} of type {}", parser::to_text(*hint.type),
                     value(), receiver_.name, receiver_.type.to_cql());
    }
    return compile_term(*hint.operand, part_of(receiver_, receiver_.name, type), scope_);
  }

  QueryResult<Term> operator()(const parser::Arithmetic& chain) {
    TRY(const auto operation, plan_operation(chain, scope_));
    return compile_operation(*operation);
  }

  QueryResult<Term> operator()(const parser::Negation& negation) {
    TRY(const auto operation, plan_operation(negation, scope_));
    return compile_operation(*operation);
  }

  template <class Other>
  QueryResult<Term> operator()(const Other& /*node*/) {
    return invalid("This expression is not supported as the value of {}", receiver_.name);
  }

 private:
  QueryResult<Term> vector(const parser::ListLiteral& list) {
    const std::size_t wanted = receiver_.type.dimension();
    if (list.elements.size() != wanted) {
      return invalid("Invalid vector literal for {} of type {}; expected {} elements, but given {}",
                     receiver_.name, receiver_.type.to_cql(), wanted, list.elements.size());
    }
    Term term(Term::Kind::vector, receiver_.type);
    TRY_VOID(add_elements(term, list.elements));
    return folded(std::move(term));
  }

  QueryResult<void> add_elements(Term& term, const std::vector<parser::Expression>& elements) {
    const ColumnSpec spec =
        part_of(receiver_, fmt::format("value({})", receiver_.name), receiver_.type.element());
    for (const parser::Expression& element : elements) {
      TRY(Term part, compile_term(element, spec, scope_));
      term.parts_.push_back(std::move(part));
    }
    return {};
  }

  QueryResult<Term> compile_operation(const PlannedOperation& operation) {
    TRY_VOID(scope_.markers.turn());
    if (operation.leaf != nullptr) return compile_term(*operation.leaf, receiver_, scope_);
    TRY(Function function, function_of(operation, &receiver_.type));
    Term term(Term::Kind::function, receiver_.type);
    for (std::size_t i = 0; i < operation.parts.size(); ++i) {
      const ColumnSpec spec = part_of(receiver_, fmt::format("arg{}(system.{})", i, function.name),
                                      function.arguments[i]);
      TRY(Term part, TermCompiler(spec, scope_).compile_operation(*operation.parts[i]));
      term.parts_.push_back(std::move(part));
    }
    term.function_ = std::make_shared<Function>(std::move(function));
    return term;
  }

  QueryResult<Term> compile_call(const Function& function,
                                 const std::vector<parser::Expression>& arguments) {
    if (!is_assignable(receiver_.type, function.returns)) {
      return invalid(
          "Type error: cannot assign result of function system.{} (type {}) to {} (type {})",
          function.name, function.returns.to_cql(), receiver_.name, receiver_.type.to_cql());
    }
    Term term(Term::Kind::function, receiver_.type);
    term.function_ = std::make_shared<Function>(function);
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      const ColumnSpec spec = part_of(receiver_, fmt::format("arg{}(system.{})", i, function.name),
                                      function.arguments[i]);
      TRY(Term part, compile_term(arguments[i], spec, scope_));
      term.parts_.push_back(std::move(part));
    }
    return term;
  }

  friend QueryResult<Term> compile_tuple(const parser::TupleLiteral& literal,
                                         const std::vector<ColumnSpec>& receivers,
                                         const DataType& type, PlanScope& scope);

  // A composed term all of whose parts are known is known itself.
  static QueryResult<Term> folded(Term term) {
    if (!std::ranges::all_of(term.parts_, &Term::is_constant)) return term;
    const BoundValues none;
    Moment moment(runtime::WallTime{}, base::Prng(0));
    TRY(TermValue value, term.evaluate({none, moment}));
    return Term::constant(term.type(), std::move(value));
  }

  const ColumnSpec& receiver_;
  PlanScope& scope_;
};

QueryResult<Term> compile_term(const parser::Expression& expression, const ColumnSpec& receiver,
                               PlanScope& scope) {
  TRY_VOID(scope.markers.turn());
  return std::visit(TermCompiler(receiver, scope), expression.node);
}

QueryResult<Term> compile_tuple(const parser::TupleLiteral& literal,
                                const std::vector<ColumnSpec>& receivers, const DataType& type,
                                PlanScope& scope) {
  ASSERT(literal.elements.size() == receivers.size());
  Term term(Term::Kind::tuple, type);
  for (std::size_t i = 0; i < receivers.size(); ++i) {
    TRY(Term part, compile_term(literal.elements[i], receivers[i], scope));
    term.parts_.push_back(std::move(part));
  }
  return TermCompiler::folded(std::move(term));
}

// ---- Evaluating ----

Term Term::constant(DataType type, TermValue value) {
  Term term(Kind::constant, std::move(type));
  term.constant_ = std::move(value);
  return term;
}

Term Term::of_value(std::uint16_t index, DataType type) {
  Term term(Kind::marker, std::move(type));
  term.marker_ = index;
  return term;
}

std::optional<std::uint16_t> Term::marker() const {
  if (kind_ != Kind::marker) return std::nullopt;
  return marker_;
}

std::size_t Term::count_bound(const Evaluation& evaluation) const {
  if (kind_ != Kind::marker || !evaluation.values[marker_].has_bytes()) return 0;
  return model::count_of_collection(evaluation.values[marker_].bytes);
}

QueryResult<TermValue> Term::evaluate(const Evaluation& evaluation) const {
  switch (kind_) {
    case Kind::constant:
      return constant_;
    case Kind::marker:
      return evaluate_marker(evaluation);
    case Kind::list:
    case Kind::set:
    case Kind::map:
    case Kind::vector:
      return evaluate_collection(evaluation);
    case Kind::tuple:
      return evaluate_tuple(evaluation);
    case Kind::function:
      return evaluate_function(evaluation);
  }
  UNREACHABLE("a kind of term");
}

QueryResult<TermValue> Term::evaluate_marker(const Evaluation& evaluation) const {
  ASSERT(marker_ < evaluation.values.size());
  const TermValue& bound = evaluation.values[marker_];
  if (!bound.has_bytes()) return bound;
  TRY(Bytes value, model::normalise(type_, bound.bytes, evaluation.pace));
  return TermValue::of(std::move(value));
}

QueryResult<TermValue> Term::evaluate_collection(const Evaluation& evaluation) const {
  std::vector<Bytes> values;
  values.reserve(parts_.size());
  for (const Term& part : parts_) {
    TRY(TermValue value, part.evaluate(evaluation));
    if (value.is_unset()) return invalid("unset value is not supported inside collections");
    if (value.is_null()) return invalid("null is not supported inside collections");
    values.push_back(std::move(value.bytes));
  }
  if (kind_ == Kind::list) return TermValue::of(model::compose_list(values));
  if (kind_ == Kind::vector) {
    for (const Bytes& value : values) {
      if (value.size() != model::kVectorElementSize) {
        return invalid("an element of a vector is empty");
      }
    }
    return TermValue::of(model::compose_vector(values));
  }
  if (kind_ == Kind::set) {
    return TermValue::of(model::compose_set(type_.element(), std::move(values)));
  }
  std::vector<model::MapEntry> entries;
  for (std::size_t i = 0; i + 1 < values.size(); i += 2) {
    entries.emplace_back(std::move(values[i]), std::move(values[i + 1]));
  }
  return TermValue::of(model::compose_map(type_.key(), std::move(entries)));
}

QueryResult<TermValue> Term::evaluate_tuple(const Evaluation& evaluation) const {
  std::vector<OptionalBytes> values;
  values.reserve(parts_.size());
  for (const Term& part : parts_) {
    TRY(TermValue value, part.evaluate(evaluation));
    if (value.is_unset()) return invalid("Invalid unset value for a field of a tuple");
    values.push_back(value.has_bytes() ? OptionalBytes(std::move(value.bytes)) : std::nullopt);
  }
  return TermValue::of(model::compose_tuple(values));
}

QueryResult<TermValue> Term::evaluate_function(const Evaluation& evaluation) const {
  std::vector<OptionalBytes> arguments;
  arguments.reserve(parts_.size());
  for (const Term& part : parts_) {
    TRY(TermValue value, part.evaluate(evaluation));
    if (value.is_unset()) {
      return invalid("Invalid unset value for argument in call to function {}", function_->name);
    }
    arguments.push_back(value.has_bytes() ? OptionalBytes(std::move(value.bytes)) : std::nullopt);
  }
  TRY(OptionalBytes result, function_->call(arguments, evaluation.moment));
  return result ? TermValue::of(std::move(*result)) : TermValue::null();
}

}  // namespace helenus::cql
