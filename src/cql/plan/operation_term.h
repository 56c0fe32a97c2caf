// Operations and calls in terms, before their types are decided: which function each is follows
// from its operands first, and then from what its result is for.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cql/errors/query_error.h"
#include "cql/parser/expression.h"
#include "cql/plan/functions.h"
#include "cql/plan/operand.h"
#include "cql/plan/terms.h"

namespace helenus::cql {

// To be called for every operator of a statement. Errors: invalid, when they are too many.
QueryResult<void> count_operator(PlanScope& scope);

// The type that an expression has by itself, whatever it is for; none of a marker, of null, and of
// what several functions could be.
std::optional<model::DataType> known_type(const parser::Expression& expression, PlanScope& scope);
// What is known of it as an operand.
Operand operand_of(const parser::Expression& expression, PlanScope& scope);

// The generic function that is called (generic_functions.h), whose result is for `receiver` or for
// what is not known. Errors: invalid.
QueryResult<Function> generic_function_of(const parser::FunctionCall& call, PlanScope& scope,
                                          const model::DataType* receiver);

// A tree of operations. It points into the syntax tree, which outlives it.
struct PlannedOperation {
  const parser::Expression* leaf = nullptr;             // of what is no operation
  std::optional<parser::ArithmeticOperator> operation;  // none: a negation
  std::vector<std::unique_ptr<PlannedOperation>> parts;
  Operand operand;
  std::string text;  // for messages
};

using PlannedOperationPtr = std::unique_ptr<PlannedOperation>;

// Errors: invalid.
QueryResult<PlannedOperationPtr> plan_operation(const parser::Arithmetic& chain, PlanScope& scope);
QueryResult<PlannedOperationPtr> plan_operation(const parser::Negation& negation, PlanScope& scope);

// Requires: no leaf. Errors: invalid.
QueryResult<Function> function_of(const PlannedOperation& operation,
                                  const model::DataType* receiver);

}  // namespace helenus::cql
