// Operations: + - * / % between numbers, a time and a duration, texts. They are functions like
// others; which one is meant follows from the operands and, where it is known, from what the result
// is for, by Cassandra's rules.
//
// The result of two numbers is floating if one of them is, and as wide as the wider one: int +
// float is a float, bigint + float a double, varint + int a varint, and whatever has a decimal in
// it a decimal. Integers wrap around. A result that cannot be is FUNCTION_FAILURE (1400).
#pragma once

#include <string_view>

#include "cql/errors/query_error.h"
#include "cql/parser/expression.h"
#include "cql/plan/functions.h"
#include "cql/plan/operand.h"

namespace helenus::cql {

// As many of them as a statement may have within one value: they nest.
inline constexpr std::size_t kOperatorsMax = 1000;

struct OperandText {
  const Operand& operand;
  std::string text;
};

char symbol_of(parser::ArithmeticOperator operation);

// `receiver` is what the result is for, or null. Errors: invalid.
QueryResult<Function> operation_between(parser::ArithmeticOperator operation,
                                        const OperandText& left, const OperandText& right,
                                        const model::DataType* receiver);
QueryResult<Function> negation_of(const OperandText& operand, const model::DataType* receiver);

// What an operation is as an operand of another one.
Operand result_between(parser::ArithmeticOperator operation, const Operand& left,
                       const Operand& right);
Operand result_of_negation(const Operand& operand);

}  // namespace helenus::cql
