#include "cql/plan/selectors.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "cql/parser/error_text.h"
#include "cql/parser/to_text.h"
#include "cql/plan/generic_functions.h"
#include "cql/plan/numbers.h"
#include "cql/plan/operation_term.h"
#include "cql/plan/operations.h"
#include "cql/plan/restrictions.h"
#include "cql/schema/type_names.h"

namespace helenus::cql {

using model::ColumnKind;
using model::DataType;
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

constexpr std::size_t kShownOperand = 200;  // of an operand in a message

struct Named {
  Selector selector;
  std::string name;  // of the result's column
};

std::optional<Selector::Kind> aggregate_named(std::string_view name) {
  if (name == "count") return Selector::Kind::count;
  if (name == "min") return Selector::Kind::minimum;
  if (name == "max") return Selector::Kind::maximum;
  if (name == "sum") return Selector::Kind::sum;
  if (name == "avg") return Selector::Kind::average;
  return std::nullopt;
}

bool is_in_parentheses(const parser::Expression& expression) {
  const auto* tuple = std::get_if<parser::TupleLiteral>(&expression.node);
  return tuple != nullptr && tuple->elements.size() == 1;
}

// Whether a selector's type is known without that of what it is passed to.
bool has_own_type(const parser::Expression& expression) {
  return std::holds_alternative<parser::Column>(expression.node) ||
         std::holds_alternative<parser::CountRows>(expression.node) ||
         std::holds_alternative<parser::CellProperty>(expression.node) ||
         std::holds_alternative<parser::Cast>(expression.node) ||
         std::holds_alternative<parser::TypeHint>(expression.node) ||
         std::holds_alternative<parser::FunctionCall>(expression.node) ||
         std::holds_alternative<parser::Selection>(expression.node) ||
         std::holds_alternative<parser::Arithmetic>(expression.node) ||
         std::holds_alternative<parser::Negation>(expression.node) || is_in_parentheses(expression);
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
    if (is_generic_function(without_underscores(name))) return generic(call);
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
    const auto type = natural_type(literal);
    if (!type) return invalid("Cannot infer type for term null in selection clause");
    return of_term(expression_, *type);
  }

  QueryResult<Named> operator()(const parser::Arithmetic& chain) {
    TRY(Open result, open(chain.operands.front()));
    for (std::size_t i = 0; i < chain.operators.size(); ++i) {
      TRY_VOID(count_operator(scope_));
      TRY(Open next, open(chain.operands[i + 1]));
      TRY(Function function, operation_between(chain.operators[i], {result.operand, result.text()},
                                               {next.operand, next.text()}, nullptr));
      TRY(Named left, closed(std::move(result), function.arguments[0]));
      TRY(Named right, closed(std::move(next), function.arguments[1]));
      std::string name =
          fmt::format("{} {} {}", left.name, symbol_of(chain.operators[i]), right.name);
      TRY_VOID(check_name_size(name));
      result.operand = Operand(function.returns);
      result.named = called(std::move(function), std::move(name));
      result.named->selector.parts_.push_back(std::move(left.selector));
      result.named->selector.parts_.push_back(std::move(right.selector));
    }
    return *std::move(result.named);
  }

  QueryResult<Named> operator()(const parser::Negation& negation) {
    TRY_VOID(count_operator(scope_));
    TRY(Open operand, open(*negation.operand));
    TRY(Function function, negation_of({operand.operand, operand.text()}, nullptr));
    TRY(Named part, closed(std::move(operand), function.arguments[0]));
    Named result = called(std::move(function), "-" + part.name);
    result.selector.parts_.push_back(std::move(part.selector));
    return result;
  }

  // One in parentheses is no tuple, unless one is wanted.
  QueryResult<Named> operator()(const parser::TupleLiteral& tuple) {
    if (wanted_ != nullptr) return of_term(expression_, *wanted_);
    if (tuple.elements.size() != 1) return no_type();
    TRY(Named inner, SelectorCompiler(table_, scope_, tuple.elements.front(), nullptr).compile());
    inner.name = fmt::format("({})", inner.name);
    return inner;
  }

  template <class Other>
  QueryResult<Named> operator()(const Other& /*node*/) {
    if (wanted_ != nullptr) return of_term(expression_, *wanted_);
    return no_type();
  }

 private:
  static QueryError no_type() {
    return invalid(
        "Cannot infer type for a term in selection clause (try using a cast to force a "
        "type)");
  }

  // An operand, or an argument, whose type may still be open.
  struct Open {
    const parser::Expression* expression = nullptr;
    Operand operand;
    std::optional<Named> named;  // if it has a type of its own
    std::string text() const {
      if (named) return named->name;
      return parser::beginning_of(parser::to_text(*expression, {}), kShownOperand);
    }
  };

  QueryResult<Open> open(const parser::Expression& expression) {
    Open result;
    result.expression = &expression;
    if (has_own_type(expression)) {
      TRY(result.named, SelectorCompiler(table_, scope_, expression, nullptr).compile());
      result.operand = Operand(result.named->selector.type());
    } else if (const auto* literal = std::get_if<parser::Literal>(&expression.node)) {
      result.operand = Operand(*literal);
    } else {
      result.operand = Operand::unknown(std::holds_alternative<parser::Marker>(expression.node));
    }
    return result;
  }

  QueryResult<Named> closed(Open open, const DataType& type) {
    if (open.named) return *std::move(open.named);
    return of_term(*open.expression, type);
  }

  static Named called(Function function, std::string name) {
    Selector selector(Selector::Kind::function, function.returns);
    selector.function_ = std::make_shared<Function>(std::move(function));
    return Named{std::move(selector), std::move(name)};
  }

  QueryResult<Named> generic(const parser::FunctionCall& call) {
    const std::string& name = call.function->name.text;
    std::vector<Open> arguments;
    std::vector<ArgumentHint> hints;
    for (const parser::Expression& argument : call.arguments) {
      TRY(Open next, open(argument));
      ArgumentHint hint{.type = {}, .operand = next.operand, .text = next.text()};
      const auto* literal = std::get_if<parser::Literal>(&argument.node);
      if (next.named) hint.type = next.named->selector.type();
      if (literal != nullptr) hint.type = natural_type(*literal);
      hints.push_back(std::move(hint));
      arguments.push_back(std::move(next));
    }
    TRY(const Function function, generic_function(without_underscores(name), hints, nullptr));
    TypedArguments typed(arguments.size());
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      typed[i] = std::move(arguments[i].named);
    }
    return this->function(function, call, typed);
  }

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
    const bool is_total = kind == Selector::Kind::sum || kind == Selector::Kind::average;
    if (is_total && !is_number(type.kind())) {
      return invalid(
          "Invalid call to function {}, none of its type signatures match (known type signatures: "
          "those of numbers)",
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

}  // namespace helenus::cql
