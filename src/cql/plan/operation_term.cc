#include "cql/plan/operation_term.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "cql/parser/error_text.h"
#include "cql/parser/to_text.h"
#include "cql/plan/generic_functions.h"
#include "cql/plan/operations.h"
#include "cql/schema/type_names.h"

namespace helenus::cql {

using model::DataType;

namespace {

constexpr std::size_t kShownMax = 200;

// Operands in messages: of a long chain, its beginning.
std::string shown(const parser::Expression& expression) {
  return parser::beginning_of(parser::to_text(expression, {}), kShownMax);
}

Operand operand_with(const parser::Expression& expression, const std::optional<DataType>& known) {
  if (const auto* literal = std::get_if<parser::Literal>(&expression.node)) {
    return Operand(*literal);
  }
  if (known) return Operand(*known);
  return Operand::unknown(std::holds_alternative<parser::Marker>(expression.node));
}

QueryResult<PlannedOperationPtr> plan_operand(const parser::Expression& expression,
                                              PlanScope& scope) {
  if (const auto* chain = std::get_if<parser::Arithmetic>(&expression.node)) {
    return plan_operation(*chain, scope);
  }
  if (const auto* negation = std::get_if<parser::Negation>(&expression.node)) {
    return plan_operation(*negation, scope);
  }
  // One in parentheses is no tuple here.
  const auto* tuple = std::get_if<parser::TupleLiteral>(&expression.node);
  if (tuple != nullptr && tuple->elements.size() == 1) {
    return plan_operand(tuple->elements.front(), scope);
  }
  auto leaf = std::make_unique<PlannedOperation>();
  leaf->leaf = &expression;
  leaf->operand = operand_of(expression, scope);
  leaf->text = shown(expression);
  return leaf;
}

// The one type of all that a function of that name could return.
std::optional<DataType> known_result(const parser::FunctionCall& call, PlanScope& scope) {
  const std::string& name = call.function->name.text;
  if (is_generic_function(without_underscores(name))) {
    auto function = generic_function_of(call, scope, nullptr);
    if (!function) return std::nullopt;
    return function->returns;
  }
  const std::vector<Function> candidates = functions_named(name);
  if (candidates.empty()) return std::nullopt;
  const DataType& first = candidates.front().returns;
  const bool same = std::ranges::all_of(
      candidates, [&](const Function& candidate) { return candidate.returns == first; });
  if (!same) return std::nullopt;
  return first;
}

template <class Node>
std::optional<DataType> known_operation(const Node& node, PlanScope& scope) {
  auto operation = plan_operation(node, scope);
  if (!operation) return std::nullopt;
  auto function = function_of(**operation, nullptr);
  if (!function) return std::nullopt;
  return function->returns;
}

}  // namespace

QueryResult<void> count_operator(PlanScope& scope) {
  TRY_VOID(scope.markers.turn());
  if (++scope.operators <= kOperatorsMax) return {};
  return invalid("more than {} operators", kOperatorsMax);
}

std::optional<DataType> known_type(const parser::Expression& expression, PlanScope& scope) {
  if (const auto* literal = std::get_if<parser::Literal>(&expression.node)) {
    return natural_type(*literal);
  }
  if (const auto* hint = std::get_if<parser::TypeHint>(&expression.node)) {
    auto type = resolve_type(*hint->type, scope.keyspace);
    if (!type) return std::nullopt;
    return *std::move(type);
  }
  if (const auto* call = std::get_if<parser::FunctionCall>(&expression.node)) {
    return known_result(*call, scope);
  }
  if (const auto* chain = std::get_if<parser::Arithmetic>(&expression.node)) {
    return known_operation(*chain, scope);
  }
  if (const auto* negation = std::get_if<parser::Negation>(&expression.node)) {
    return known_operation(*negation, scope);
  }
  return std::nullopt;
}

Operand operand_of(const parser::Expression& expression, PlanScope& scope) {
  return operand_with(expression, known_type(expression, scope));
}

QueryResult<Function> generic_function_of(const parser::FunctionCall& call, PlanScope& scope,
                                          const DataType* receiver) {
  std::vector<ArgumentHint> hints;
  for (const parser::Expression& argument : call.arguments) {
    TRY_VOID(scope.markers.turn());
    auto type = known_type(argument, scope);
    const Operand operand = operand_with(argument, type);
    hints.push_back({.type = std::move(type), .operand = operand, .text = shown(argument)});
  }
  return generic_function(without_underscores(call.function->name.text), hints, receiver);
}

QueryResult<PlannedOperationPtr> plan_operation(const parser::Arithmetic& chain, PlanScope& scope) {
  TRY(PlannedOperationPtr result, plan_operand(chain.operands.front(), scope));
  for (std::size_t i = 0; i < chain.operators.size(); ++i) {
    TRY_VOID(count_operator(scope));
    TRY(PlannedOperationPtr next, plan_operand(chain.operands[i + 1], scope));
    auto both = std::make_unique<PlannedOperation>();
    both->operation = chain.operators[i];
    both->operand = result_between(chain.operators[i], result->operand, next->operand);
    both->text = parser::beginning_of(
        fmt::format("{} {} {}", result->text, symbol_of(chain.operators[i]), next->text),
        kShownMax);
    both->parts.push_back(std::move(result));
    both->parts.push_back(std::move(next));
    result = std::move(both);
  }
  return result;
}

QueryResult<PlannedOperationPtr> plan_operation(const parser::Negation& negation,
                                                PlanScope& scope) {
  TRY_VOID(count_operator(scope));
  TRY(PlannedOperationPtr operand, plan_operand(*negation.operand, scope));
  auto result = std::make_unique<PlannedOperation>();
  result->operand = result_of_negation(operand->operand);
  result->text = "-" + operand->text;
  result->parts.push_back(std::move(operand));
  return result;
}

QueryResult<Function> function_of(const PlannedOperation& operation, const DataType* receiver) {
  const PlannedOperation& left = *operation.parts.front();
  if (!operation.operation) return negation_of({left.operand, left.text}, receiver);
  const PlannedOperation& right = *operation.parts.back();
  return operation_between(*operation.operation, {left.operand, left.text},
                           {right.operand, right.text}, receiver);
}

}  // namespace helenus::cql
