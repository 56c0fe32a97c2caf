#include "cql/plan/selectors.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "base/codec.h"
#include "cql/plan/numbers.h"
#include "cql/plan/restrictions.h"
#include "cql/schema/type_names.h"
#include "model/element_key.h"
#include "model/json.h"
#include "model/literal.h"
#include "model/partition_key.h"
#include "ring/murmur3.h"

namespace helenus::cql {

using base::Bytes;
using base::ByteView;
using model::ColumnKind;
using model::DataType;
using model::OptionalBytes;
using model::Table;
using model::TypeKind;
using protocol::ColumnSpec;

bool Selector::has_aggregate() const {
  return is_aggregate() || std::ranges::any_of(parts_, &Selector::has_aggregate);
}

void Selector::mark(std::vector<bool>& columns) const {
  if (kind_ == Kind::column || kind_ == Kind::writetime || kind_ == Kind::max_writetime ||
      kind_ == Kind::ttl) {
    columns[column_] = true;
  }
  for (const Selector& part : parts_) part.mark(columns);
}

// ---- Planning ----

namespace {

struct Named {
  Selector selector;
  std::string name;  // of the result's column
};

bool is_summable(const DataType& type) {
  return is_integer(type.kind()) || is_floating(type.kind());
}

std::optional<Selector::Kind> aggregate_named(std::string_view name) {
  if (name == "count") return Selector::Kind::count;
  if (name == "min") return Selector::Kind::minimum;
  if (name == "max") return Selector::Kind::maximum;
  if (name == "sum") return Selector::Kind::sum;
  if (name == "avg") return Selector::Kind::average;
  return std::nullopt;
}

// What a literal is of by itself, where nothing tells.
std::optional<TypeKind> natural_type(const parser::Literal& literal) {
  switch (literal.kind) {
    case parser::LiteralKind::string:
      return TypeKind::varchar;
    case parser::LiteralKind::integer:
      return literal.text.size() < 10 ? TypeKind::int_ : TypeKind::bigint;
    case parser::LiteralKind::floating:
      return TypeKind::double_;
    case parser::LiteralKind::boolean:
      return TypeKind::boolean;
    case parser::LiteralKind::duration:
      return TypeKind::duration;
    case parser::LiteralKind::uuid:
      return TypeKind::uuid;
    case parser::LiteralKind::blob:
      return TypeKind::blob;
    case parser::LiteralKind::null:
      break;
  }
  return std::nullopt;
}

// Whether a selector's type is known without that of what it is passed to.
bool has_own_type(const parser::Expression& expression) {
  return std::holds_alternative<parser::Column>(expression.node) ||
         std::holds_alternative<parser::CountRows>(expression.node) ||
         std::holds_alternative<parser::CellProperty>(expression.node) ||
         std::holds_alternative<parser::Cast>(expression.node) ||
         std::holds_alternative<parser::TypeHint>(expression.node) ||
         std::holds_alternative<parser::FunctionCall>(expression.node) ||
         std::holds_alternative<parser::Selection>(expression.node);
}

}  // namespace

class SelectorCompiler {
 public:
  // `wanted` is the type that a function's argument has, for literals and markers.
  SelectorCompiler(const Table& table, PlanScope& scope, const parser::Expression& expression,
                   const DataType* wanted)
      : table_(table), scope_(scope), expression_(expression), wanted_(wanted) {}

  QueryResult<Named> compile() {
    TRY_VOID(scope_.markers.turn());
    return std::visit(*this, expression_.node);
  }

  QueryResult<Named> operator()(const parser::Column& column) {
    TRY(const std::size_t index, column_index(table_, column.name.text));
    Selector selector(Selector::Kind::column, table_.columns[index].type);
    selector.column_ = index;
    return Named{std::move(selector), column.name.text};
  }

  QueryResult<Named> operator()(const parser::CountRows& /*count*/) {
    return Named{Selector(Selector::Kind::count_rows, DataType(TypeKind::bigint)), "count"};
  }

  QueryResult<Named> operator()(const parser::CellProperty& property) {
    return cell_property(property.kind == parser::CellPropertyKind::writetime
                             ? Selector::Kind::writetime
                             : Selector::Kind::ttl,
                         *property.of);
  }

  QueryResult<Named> operator()(const parser::Cast& cast) {
    TRY(Named operand, SelectorCompiler(table_, scope_, *cast.operand, nullptr).compile());
    TRY(const DataType type, resolve_type(*cast.type, scope_.keyspace));
    // A cast to the type that it has already is none.
    if (type == operand.selector.type()) return operand;
    TRY(Function function, cast_function(operand.selector.type(), type));
    Selector selector(Selector::Kind::function, type);
    selector.function_ = std::make_shared<Function>(std::move(function));
    selector.parts_.push_back(std::move(operand.selector));
    return Named{std::move(selector), fmt::format("cast({} as {})", operand.name, type.to_cql())};
  }

  QueryResult<Named> operator()(const parser::TypeHint& hint) {
    TRY(const DataType type, resolve_type(*hint.type, scope_.keyspace));
    TRY(Named named, of_term(*hint.operand, type));
    named.name = fmt::format("({}){}", type.to_cql(), named.name);
    return named;
  }

  QueryResult<Named> operator()(const parser::FunctionCall& call) {
    const std::string& name = call.function->name.text;
    if (name == "token") return token(call);
    if (name == "maxwritetime" && call.arguments.size() == 1) {
      return cell_property(Selector::Kind::max_writetime, call.arguments.front());
    }
    if (const auto kind = aggregate_named(name)) return aggregate(*kind, call);
    if (is_to_json(name)) return to_json(call);
    const std::vector<Function> candidates = functions_named(name);
    if (candidates.empty()) return invalid("Unknown function '{}'", name);
    const auto takes_as_many = [&](const Function& candidate) {
      return candidate.arguments.size() == call.arguments.size();
    };
    if (std::ranges::none_of(candidates, takes_as_many)) {
      return invalid(
          "Invalid number of arguments in call to function system.{}: {} required but {} "
          "provided",
          name, candidates.front().arguments.size(), call.arguments.size());
    }
    TRY(TypedArguments typed, typed_arguments(call));
    std::optional<QueryError> first_error;
    for (const Function& candidate : candidates) {
      if (!takes_as_many(candidate)) continue;
      auto named = function(candidate, call, typed);
      if (named) return named;
      if (!first_error) first_error = std::move(named).error();
    }
    return *std::move(first_error);
  }

  QueryResult<Named> operator()(const parser::Selection& selection) {
    TRY(Named whole, SelectorCompiler(table_, scope_, *selection.from, nullptr).compile());
    for (const parser::SelectionStep& step : selection.steps) {
      if (const auto* field = std::get_if<parser::FieldStep>(&step)) {
        TRY(whole, field_of(std::move(whole), field->field.text));
      } else if (const auto* element = std::get_if<parser::ElementStep>(&step)) {
        TRY(whole, element_of(std::move(whole), *element->key));
      } else {
        TRY(whole, slice_of(std::move(whole), std::get<parser::SliceStep>(step)));
      }
    }
    return whole;
  }

  QueryResult<Named> operator()(const parser::Literal& literal) {
    if (wanted_ != nullptr) return of_term(expression_, *wanted_);
    const auto kind = natural_type(literal);
    if (!kind) return invalid("Cannot infer type for term null in selection clause");
    return of_term(expression_, DataType(*kind));
  }

  template <class Other>
  QueryResult<Named> operator()(const Other& /*node*/) {
    if (wanted_ != nullptr) return of_term(expression_, *wanted_);
    return invalid(
        "Cannot infer type for a term in selection clause (try using a cast to force a "
        "type)");
  }

 private:
  QueryResult<Named> of_term(const parser::Expression& expression, const DataType& type) {
    TRY(Term term,
        compile_term(expression, {table_.keyspace, table_.name, "[selection]", type}, scope_));
    std::string name = "?";
    if (const auto* literal = std::get_if<parser::Literal>(&expression.node)) {
      name = literal->kind == parser::LiteralKind::string ? fmt::format("'{}'", literal->text)
                                                          : literal->text;
    }
    Selector selector(Selector::Kind::term, type);
    selector.term_ = std::move(term);
    return Named{std::move(selector), std::move(name)};
  }

  // writetime(c), ttl(c), and of a part of it. What is in elements has one of each.
  QueryResult<Named> cell_property(Selector::Kind kind, const parser::Expression& of) {
    const char* const function = kind == Selector::Kind::writetime       ? "writetime"
                                 : kind == Selector::Kind::max_writetime ? "maxwritetime"
                                                                         : "ttl";
    const auto* selection = std::get_if<parser::Selection>(&of.node);
    const auto* named =
        std::get_if<parser::Column>(selection == nullptr ? &of.node : &selection->from->node);
    if (named == nullptr) return invalid("{} is of a column", function);
    TRY(const std::size_t index, column_index(table_, named->name.text));
    const model::Column& column = table_.columns[index];
    if (column.kind == ColumnKind::partition_key || column.kind == ColumnKind::clustering) {
      return invalid("Cannot use selection function {} on PRIMARY KEY part {}",
                     kind == Selector::Kind::writetime ? "writeTime" : function, column.name);
    }
    const DataType one(kind == Selector::Kind::ttl ? TypeKind::int_ : TypeKind::bigint);
    Named made{Selector(kind, one), column.name};
    made.selector.column_ = index;
    if (column.type.is_multi_cell()) {
      made.selector.of_type_ = std::make_shared<const DataType>(column.type);
      made.selector.extent_ = Selector::Extent::all;
    }
    if (selection != nullptr) TRY_VOID(narrow(made, *selection, column));
    const Selector::Extent extent = made.selector.extent_;
    if (kind != Selector::Kind::max_writetime &&
        (extent == Selector::Extent::all || extent == Selector::Extent::slice)) {
      TRY(made.selector.type_, DataType::list_of(one, true));
    }
    made.name = fmt::format("{}({})", function, made.name);
    return made;
  }

  // To one element, a slice or a field of the column. Elements of what is frozen are no cells.
  QueryResult<void> narrow(Named& made, const parser::Selection& selection,
                           const model::Column& column) {
    const DataType& type = column.type;
    if (selection.steps.size() != 1) {
      return invalid("Only an element or a field of column {} itself has a time of its own",
                     column.name);
    }
    const parser::SelectionStep& step = selection.steps.front();
    // Refuses what selecting it would refuse, and names it alike.
    TRY(Named part, (*this)(selection));
    made.name = part.name;
    if (!type.is_multi_cell()) return {};
    if (const auto* field = std::get_if<parser::FieldStep>(&step)) {
      made.selector.extent_ = Selector::Extent::element;
      made.selector.field_ = type.field_index(field->field.text);
      return {};
    }
    made.selector.extent_ = std::holds_alternative<parser::ElementStep>(step)
                                ? Selector::Extent::element
                                : Selector::Extent::slice;
    made.selector.parts_.assign(part.selector.parts_.begin() + 1, part.selector.parts_.end());
    return {};
  }

  QueryResult<Named> to_json(const parser::FunctionCall& call) {
    const std::string& name = call.function->name.text;
    if (call.arguments.size() != 1) {
      return invalid(
          "Invalid number of arguments in call to function system.{}: 1 required but {} provided",
          name, call.arguments.size());
    }
    TRY(Named part, SelectorCompiler(table_, scope_, call.arguments.front(), nullptr).compile());
    Selector selector(Selector::Kind::function, DataType::text());
    selector.function_ = std::make_shared<Function>(to_json_function(part.selector.type()));
    selector.parts_.push_back(std::move(part.selector));
    return Named{std::move(selector), fmt::format("system.{}({})", name, part.name)};
  }

  QueryResult<Named> token(const parser::FunctionCall& call) {
    const auto keys = table_.partition_key();
    if (call.arguments.size() != keys.size()) {
      return invalid(
          "Invalid number of arguments in call to function token: {} required but {} "
          "provided",
          keys.size(), call.arguments.size());
    }
    Selector selector(Selector::Kind::token, DataType(TypeKind::bigint));
    std::vector<std::string> names;
    for (std::size_t i = 0; i < keys.size(); ++i) {
      TRY(Named part, SelectorCompiler(table_, scope_, call.arguments[i], &keys[i].type).compile());
      if (!is_assignable(keys[i].type, part.selector.type())) {
        return invalid(
            "Type error: {} cannot be passed as argument {} of function system.token of "
            "type {}",
            part.name, i, keys[i].type.to_cql());
      }
      names.push_back(std::move(part.name));
      selector.parts_.push_back(std::move(part.selector));
    }
    return Named{std::move(selector), fmt::format("system.token({})", fmt::join(names, ", "))};
  }

  QueryResult<Named> aggregate(Selector::Kind kind, const parser::FunctionCall& call) {
    const std::string& name = call.function->name.text;
    if (call.arguments.size() != 1) {
      return invalid(
          "Invalid number of arguments in call to function system.{}: 1 required but {} "
          "provided",
          name, call.arguments.size());
    }
    // count(1) counts rows.
    if (kind == Selector::Kind::count &&
        std::holds_alternative<parser::Literal>(call.arguments.front().node)) {
      return (*this)(parser::CountRows());
    }
    TRY(Named part, SelectorCompiler(table_, scope_, call.arguments.front(), nullptr).compile());
    if (part.selector.has_aggregate()) {
      return invalid("aggregate functions cannot be used as arguments of aggregate functions");
    }
    const DataType type = part.selector.type();
    if ((kind == Selector::Kind::sum || kind == Selector::Kind::average) && !is_summable(type)) {
      return invalid(
          "Invalid call to function {}, none of its type signatures match (known type "
          "signatures: those of numbers; varint and decimal are not supported)",
          name);
    }
    if (kind != Selector::Kind::count && type.is_multi_cell()) {
      return invalid("Invalid call to function {} on the non-frozen column {}", name, part.name);
    }
    Selector selector(kind, kind == Selector::Kind::count ? DataType(TypeKind::bigint)
                            : type.is_counter()           ? DataType(TypeKind::bigint)
                                                          : type);
    selector.parts_.push_back(std::move(part.selector));
    return Named{std::move(selector), fmt::format("system.{}({})", name, part.name)};
  }

  // The arguments of a call that have a type of their own, whichever function is meant. Each is
  // compiled once, not once for every function of the name: calls within calls would take time
  // exponential in their depth.
  using TypedArguments = std::vector<std::optional<Named>>;

  QueryResult<TypedArguments> typed_arguments(const parser::FunctionCall& call) {
    TypedArguments typed(call.arguments.size());
    for (std::size_t i = 0; i < typed.size(); ++i) {
      if (!has_own_type(call.arguments[i])) continue;
      TRY(typed[i], SelectorCompiler(table_, scope_, call.arguments[i], nullptr).compile());
    }
    return typed;
  }

  // Takes the typed arguments only when it succeeds.
  QueryResult<Named> function(const Function& function, const parser::FunctionCall& call,
                              TypedArguments& typed) {
    TypedArguments terms(typed.size());
    for (std::size_t i = 0; i < typed.size(); ++i) {
      const DataType& wanted = function.arguments[i];
      if (!typed[i]) {
        TRY(terms[i], SelectorCompiler(table_, scope_, call.arguments[i], &wanted).compile());
      }
      const Named& part = typed[i] ? *typed[i] : *terms[i];
      if (!is_assignable(wanted, part.selector.type())) {
        return invalid(
            "Type error: {} cannot be passed as argument {} of function system.{} of "
            "type {}",
            part.name, i, function.name, wanted.to_cql());
      }
    }
    Selector selector(Selector::Kind::function, function.returns);
    std::vector<std::string> names;
    for (std::size_t i = 0; i < typed.size(); ++i) {
      Named& part = typed[i] ? *typed[i] : *terms[i];
      names.push_back(std::move(part.name));
      selector.parts_.push_back(std::move(part.selector));
    }
    selector.function_ = std::make_shared<Function>(function);
    return Named{std::move(selector),
                 fmt::format("system.{}({})", call.function->name.text, fmt::join(names, ", "))};
  }

  QueryResult<Named> field_of(Named whole, const std::string& field) {
    const DataType type = whole.selector.type();
    if (type.kind() != TypeKind::udt) {
      return invalid("Invalid field selection: {} of type {} is not a user type", whole.name,
                     type.to_cql());
    }
    const auto index = type.field_index(field);
    if (!index) return invalid("{} of type {} has no field {}", whole.name, type.to_cql(), field);
    Selector selector(Selector::Kind::field, type.parts()[*index]);
    selector.column_ = *index;
    selector.parts_.push_back(std::move(whole.selector));
    return Named{std::move(selector), fmt::format("{}.{}", whole.name, field)};
  }

  QueryResult<Named> element_of(Named whole, const parser::Expression& key) {
    const DataType type = whole.selector.type();
    if (type.kind() == TypeKind::list) {
      return invalid("Element selection is only allowed on sets and maps, but {} is a list",
                     whole.name);
    }
    const bool of_set = type.kind() == TypeKind::set;
    if (!of_set && type.kind() != TypeKind::map) {
      return invalid("Invalid element selection: {} is of type {} is not a collection", whole.name,
                     type.to_cql());
    }
    // An element of a set stands for itself, if it is there.
    TRY(Named part, of_term(key, of_set ? type.element() : type.key()));
    Selector selector(Selector::Kind::element, of_set ? type.element() : type.mapped());
    selector.parts_.push_back(std::move(whole.selector));
    selector.parts_.push_back(std::move(part.selector));
    return Named{std::move(selector), fmt::format("{}[{}]", whole.name, part.name)};
  }

  QueryResult<Named> slice_of(Named whole, const parser::SliceStep& slice) {
    const DataType type = whole.selector.type();
    if (type.kind() != TypeKind::set && type.kind() != TypeKind::map) {
      return invalid("Slice selection is only allowed on sets and maps, but {} is of type {}",
                     whole.name, type.to_cql());
    }
    const DataType& bound = type.kind() == TypeKind::set ? type.element() : type.key();
    Selector selector(Selector::Kind::slice, type);
    selector.parts_.push_back(std::move(whole.selector));
    std::string name = whole.name + "[";
    for (const auto* end : {&slice.from, &slice.to}) {
      Named part{Selector(Selector::Kind::term, bound), ""};
      part.selector.term_ = Term::constant(bound, TermValue::null());
      if (*end) {
        TRY(part, of_term(***end, bound));
      }
      selector.parts_.push_back(std::move(part.selector));
      name += part.name + (end == &slice.from ? ".." : "]");
    }
    return Named{std::move(selector), std::move(name)};
  }

  const Table& table_;
  PlanScope& scope_;
  const parser::Expression& expression_;
  const DataType* wanted_;
};

Selection Selection::all_columns(const Table& table) {
  Selection selection;
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    selection.selectors_.push_back(Selector::of_column(i, table.columns[i].type));
    selection.columns_.push_back(
        {table.keyspace, table.name, table.columns[i].name, table.columns[i].type});
  }
  return selection;
}

QueryResult<Selection> Selection::plan(const std::vector<parser::Selector>& selectors,
                                       const Table& table, PlanScope& scope) {
  if (selectors.empty()) return all_columns(table);
  Selection selection;
  for (const parser::Selector& selector : selectors) {
    TRY(Named named, SelectorCompiler(table, scope, selector.expression, nullptr).compile());
    if (selector.alias) named.name = selector.alias->text;
    TRY_VOID(check_name_size(named.name));
    selection.columns_.push_back(
        {table.keyspace, table.name, std::move(named.name), named.selector.type()});
    selection.has_aggregate_ = selection.has_aggregate_ || named.selector.has_aggregate();
    selection.selectors_.push_back(std::move(named.selector));
  }
  return selection;
}

Selection Selection::as_json(const Table& table) const {
  Selection json;
  json.has_aggregate_ = has_aggregate_;
  json.selectors_.push_back(Selector::json_of(selectors_, columns_));
  json.columns_.push_back({table.keyspace, table.name, "[json]", DataType::text()});
  return json;
}

void Selection::mark(std::vector<bool>& columns) const {
  for (const Selector& selector : selectors_) selector.mark(columns);
}

// ---- Of one row ----

namespace {

OptionalBytes element_of_set(const DataType& type, const Bytes& set, const Bytes& element) {
  const auto elements = model::split_collection(set);
  if (!elements) return std::nullopt;
  for (const base::ByteView there : *elements) {
    if (model::compare(type.element(), there, element) == 0) return element;
  }
  return std::nullopt;
}

OptionalBytes element_of(const DataType& type, const OptionalBytes& collection,
                         const OptionalBytes& key) {
  if (!collection || !key) return std::nullopt;
  if (type.kind() == TypeKind::set) return element_of_set(type, *collection, *key);
  const auto entries = model::split_map(*collection);
  if (!entries) return std::nullopt;
  for (const auto& [entry_key, value] : *entries) {
    if (model::compare(type.key(), entry_key, *key) == 0) return Bytes::copy_of(value);
  }
  return std::nullopt;
}

// The elements, or the entries, from one to another, both included.
OptionalBytes slice_of_value(const DataType& type, const std::vector<OptionalBytes>& values) {
  if (!values[0]) return std::nullopt;
  const bool of_set = type.kind() == TypeKind::set;
  const DataType& bound = of_set ? type.element() : type.key();
  const auto is_within = [&](ByteView key) {
    return (!values[1] || model::compare(bound, key, *values[1]) >= 0) &&
           (!values[2] || model::compare(bound, key, *values[2]) <= 0);
  };
  std::vector<Bytes> elements;
  std::vector<model::MapEntry> entries;
  if (of_set) {
    const auto all = model::split_collection(*values[0]);
    if (!all) return std::nullopt;
    for (const ByteView element : *all) {
      if (is_within(element)) elements.push_back(Bytes::copy_of(element));
    }
  } else {
    const auto all = model::split_map(*values[0]);
    if (!all) return std::nullopt;
    for (const auto& [key, value] : *all) {
      if (is_within(key)) entries.emplace_back(Bytes::copy_of(key), Bytes::copy_of(value));
    }
  }
  if (elements.empty() && entries.empty() && type.is_multi_cell()) return std::nullopt;
  return of_set ? model::compose_set(bound, std::move(elements))
                : model::compose_map(bound, std::move(entries));
}

OptionalBytes field_of_value(const DataType& type, const OptionalBytes& value, std::size_t field) {
  if (!value) return std::nullopt;
  const auto fields = model::split_tuple(type.parts().size(), *value);
  if (!fields || !(*fields)[field]) return std::nullopt;
  return Bytes::copy_of(*(*fields)[field]);
}

QueryResult<OptionalBytes> token_of_values(const std::vector<OptionalBytes>& values) {
  std::vector<ByteView> views;
  for (const OptionalBytes& value : values) {
    if (!value) return OptionalBytes();
    views.push_back(value->view());
  }
  TRY(const Bytes routing_key, model::make_routing_key(views));
  return OptionalBytes(model::bigint_value(ring::token_of(routing_key).value()));
}

}  // namespace

QueryResult<OptionalBytes> Selector::combine(std::vector<OptionalBytes> values,
                                             const Evaluation& evaluation) const {
  switch (kind_) {
    case Kind::token:
      return token_of_values(values);
    case Kind::function:
      return function_->call(values, evaluation.moment);
    case Kind::element:
      return element_of(parts_[0].type(), values[0], values[1]);
    case Kind::slice:
      return slice_of_value(parts_[0].type(), values);
    case Kind::field:
      return field_of_value(parts_[0].type(), values[0], column_);
    case Kind::json:
      return OptionalBytes(json_text(values));
    default:
      UNREACHABLE("a selector that combines");
  }
}

namespace {

OptionalBytes ttl_of(const std::optional<std::int64_t>& expires, const Evaluation& evaluation) {
  if (!expires) return std::nullopt;
  const std::int64_t left = *expires - evaluation.moment.seconds().value();
  return model::int_value(static_cast<std::int32_t>(left));
}

// A list in which elements may be null.
Bytes list_with_nulls(const std::vector<OptionalBytes>& elements) {
  constexpr std::uint32_t kNull = 0xffffffff;
  base::Buffer out;
  base::Encoder(out).u32_be(static_cast<std::uint32_t>(elements.size()));
  for (const OptionalBytes& element : elements) {
    base::Encoder(out).u32_be(element ? static_cast<std::uint32_t>(element->size()) : kNull);
    if (element) out.append(element->view());
  }
  return std::move(out).freeze();
}

// Nothing for null.
QueryResult<Bytes> name_of_element(const DataType& type, const OptionalBytes& element) {
  if (!element) return Bytes();
  TRY(Bytes name,
      model::element_name(type.kind() == TypeKind::set ? type.element() : type.key(), *element));
  return name;
}

}  // namespace

QueryResult<OptionalBytes> Selector::property_of(const Row& row,
                                                 const Evaluation& evaluation) const {
  const Cell& cell = row.cells[column_];
  if (!cell.value) return OptionalBytes();
  if (extent_ != Extent::cell) return property_of_elements(cell, evaluation);
  if (kind_ == Kind::ttl) return ttl_of(cell.expires_seconds, evaluation);
  return OptionalBytes(model::bigint_value(cell.timestamp_us));
}

QueryResult<OptionalBytes> Selector::property_of_elements(const Cell& cell,
                                                          const Evaluation& evaluation) const {
  if (cell.elements == nullptr) return OptionalBytes();
  Bytes from;
  Bytes to;
  if (field_) {
    from = model::field_name(*field_);
  } else if (!parts_.empty()) {
    TRY(const OptionalBytes first, parts_.front().of_row(Row(), evaluation));
    if (!first && extent_ == Extent::element) return OptionalBytes();
    TRY(from, name_of_element(*of_type_, first));
    TRY(const OptionalBytes last, parts_.back().of_row(Row(), evaluation));
    TRY(to, name_of_element(*of_type_, last));
  }
  std::vector<OptionalBytes> told;
  std::optional<std::int64_t> newest;
  for (const CellElement& element : *cell.elements) {
    if (extent_ == Extent::element ? element.name != from
                                   : element.name < from || (!to.empty() && to < element.name)) {
      continue;
    }
    if (of_type_->kind() == TypeKind::udt && extent_ == Extent::all) {
      TRY(const std::size_t field, model::named_field(element.name));
      told.resize(field);  // those between are null
    }
    newest = std::max(newest.value_or(element.timestamp_us), element.timestamp_us);
    told.push_back(kind_ == Kind::ttl ? ttl_of(element.expires_seconds, evaluation)
                                      : OptionalBytes(model::bigint_value(element.timestamp_us)));
  }
  if (told.empty()) return OptionalBytes();
  if (kind_ == Kind::max_writetime) return OptionalBytes(model::bigint_value(*newest));
  if (extent_ == Extent::element) return told.front();
  if (of_type_->kind() == TypeKind::udt) told.resize(of_type_->parts().size());
  return OptionalBytes(list_with_nulls(told));
}

QueryResult<OptionalBytes> Selector::of_row(const Row& row, const Evaluation& evaluation) const {
  switch (kind_) {
    case Kind::column:
      return row.cells[column_].value;
    case Kind::writetime:
    case Kind::max_writetime:
    case Kind::ttl:
      return property_of(row, evaluation);
    case Kind::term: {
      TRY(TermValue value, term_->evaluate(evaluation));
      return value.has_bytes() ? OptionalBytes(std::move(value.bytes)) : std::nullopt;
    }
    default:
      break;
  }
  std::vector<OptionalBytes> values;
  values.reserve(parts_.size());
  for (const Selector& part : parts_) {
    TRY(OptionalBytes value, part.of_row(row, evaluation));
    values.push_back(std::move(value));
  }
  return combine(std::move(values), evaluation);
}

Selector Selector::json_of(std::vector<Selector> parts, const std::vector<ColumnSpec>& columns) {
  Selector selector(Kind::json, DataType::text());
  selector.parts_ = std::move(parts);
  for (const ColumnSpec& column : columns) selector.names_.push_back(model::json_name(column.name));
  return selector;
}

Bytes Selector::json_text(const std::vector<OptionalBytes>& values) const {
  std::string text = "{";
  for (std::size_t i = 0; i < values.size(); ++i) {
    text += fmt::format("{}{}: {}", i > 0 ? ", " : "", names_[i],
                        values[i] ? model::to_json(parts_[i].type(), *values[i]) : "null");
  }
  return model::text_value(text + "}");
}

Selector Selector::of_column(std::size_t column, DataType type) {
  Selector selector(Kind::column, std::move(type));
  selector.column_ = column;
  return selector;
}

}  // namespace helenus::cql
