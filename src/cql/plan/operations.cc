#include "cql/plan/operations.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "base/assert.h"
#include "cql/plan/numbers.h"
#include "model/big_number.h"
#include "model/number.h"
#include "model/temporal.h"
#include "model/value.h"

namespace helenus::cql {

using base::Bytes;
using base::ByteView;
using model::DataType;
using model::NumberOperation;
using model::OptionalBytes;
using model::TypeKind;
using parser::ArithmeticOperator;

namespace {

// ---- Which there are ----

struct Candidate {
  TypeKind left;
  TypeKind right;
  TypeKind result;
};

constexpr std::array kNumbers = {TypeKind::tinyint, TypeKind::smallint, TypeKind::int_,
                                 TypeKind::bigint,  TypeKind::float_,   TypeKind::double_,
                                 TypeKind::decimal, TypeKind::varint,   TypeKind::counter};

constexpr int kAnyWidth = 100;

constexpr int width_of(TypeKind kind) {
  switch (kind) {
    case TypeKind::tinyint:
      return 1;
    case TypeKind::smallint:
      return 2;
    case TypeKind::int_:
    case TypeKind::float_:
      return 4;
    case TypeKind::bigint:
    case TypeKind::counter:
    case TypeKind::double_:
      return 8;
    default:
      return kAnyWidth;
  }
}

constexpr bool has_fractions(TypeKind kind) {
  return kind == TypeKind::float_ || kind == TypeKind::double_ || kind == TypeKind::decimal;
}

constexpr TypeKind result_kind(TypeKind left, TypeKind right) {
  const int width = std::max(width_of(left), width_of(right));
  if (has_fractions(left) || has_fractions(right)) {
    return width == 4 ? TypeKind::float_ : width == 8 ? TypeKind::double_ : TypeKind::decimal;
  }
  switch (width) {
    case 1:
      return TypeKind::tinyint;
    case 2:
      return TypeKind::smallint;
    case 4:
      return TypeKind::int_;
    case 8:
      return TypeKind::bigint;
    default:
      return TypeKind::varint;
  }
}

constexpr auto kOfNumbers = [] {
  std::array<Candidate, kNumbers.size() * kNumbers.size()> all{};
  std::size_t next = 0;
  for (const TypeKind left : kNumbers) {
    for (const TypeKind right : kNumbers) all[next++] = {left, right, result_kind(left, right)};
  }
  return all;
}();

constexpr Candidate kOfTimes[] = {
    {TypeKind::timestamp, TypeKind::duration, TypeKind::timestamp},
    {TypeKind::date, TypeKind::duration, TypeKind::date},
};

constexpr Candidate kOfTexts[] = {
    {TypeKind::varchar, TypeKind::varchar, TypeKind::varchar},
    {TypeKind::ascii, TypeKind::ascii, TypeKind::ascii},
    {TypeKind::ascii, TypeKind::varchar, TypeKind::varchar},
    {TypeKind::varchar, TypeKind::ascii, TypeKind::varchar},
};

template <class Visit>
void each_candidate(ArithmeticOperator operation, Visit visit) {
  for (const Candidate& candidate : kOfNumbers) visit(candidate);
  if (operation == ArithmeticOperator::add || operation == ArithmeticOperator::subtract) {
    for (const Candidate& candidate : kOfTimes) visit(candidate);
  }
  if (operation != ArithmeticOperator::add) return;
  for (const Candidate& candidate : kOfTexts) visit(candidate);
}

// What the operands leave of the candidates.
struct Choice {
  std::optional<Candidate> chosen;
  bool is_ambiguous = false;
};

Choice choose(ArithmeticOperator operation, const Operand& left, const Operand& right,
              const DataType* receiver) {
  std::optional<Candidate> exact;
  std::optional<Candidate> weak;
  std::optional<Candidate> as_wanted;
  std::size_t weak_count = 0;
  each_candidate(operation, [&](const Candidate& candidate) {
    if (exact) return;
    const Fit fits = std::min(left.fit(candidate.left), right.fit(candidate.right));
    if (fits == Fit::no) return;
    if (receiver != nullptr && !is_assignable(*receiver, DataType(candidate.result))) return;
    if (fits == Fit::exact) {
      exact = candidate;
      return;
    }
    weak = candidate;
    ++weak_count;
    if (receiver != nullptr && receiver->kind() == candidate.left &&
        receiver->kind() == candidate.right) {
      as_wanted = candidate;
    }
  });
  if (exact) return {.chosen = exact};
  if (weak_count <= 1) return {.chosen = weak};
  if (as_wanted && !left.is_marker() && !right.is_marker()) return {.chosen = as_wanted};
  return {.chosen = {}, .is_ambiguous = true};
}

// ---- What they do ----

using Calculated = base::Result<OptionalBytes>;

base::Error cannot_be(std::string words) {
  return {base::Errc::invalid_argument, std::move(words)};
}

NumberOperation number_operation(ArithmeticOperator operation) {
  switch (operation) {
    case ArithmeticOperator::add:
      return NumberOperation::add;
    case ArithmeticOperator::subtract:
      return NumberOperation::subtract;
    case ArithmeticOperator::multiply:
      return NumberOperation::multiply;
    case ArithmeticOperator::divide:
      return NumberOperation::divide;
    case ArithmeticOperator::remainder:
      break;
  }
  return NumberOperation::remainder;
}

// Wraps around, as the type that the result is made for does.
base::Result<std::int64_t> calculate_integers(ArithmeticOperator operation, std::int64_t a,
                                              std::int64_t b) {
  const auto left = static_cast<std::uint64_t>(a);
  const auto right = static_cast<std::uint64_t>(b);
  switch (operation) {
    case ArithmeticOperator::add:
      return static_cast<std::int64_t>(left + right);
    case ArithmeticOperator::subtract:
      return static_cast<std::int64_t>(left - right);
    case ArithmeticOperator::multiply:
      return static_cast<std::int64_t>(left * right);
    default:
      break;
  }
  if (b == 0) return cannot_be("/ by zero");
  if (b == -1)
    return operation == ArithmeticOperator::divide ? static_cast<std::int64_t>(0 - left) : 0;
  return operation == ArithmeticOperator::divide ? a / b : a % b;
}

template <class Floating>
Floating calculate_floating(ArithmeticOperator operation, Floating a, Floating b) {
  switch (operation) {
    case ArithmeticOperator::add:
      return a + b;
    case ArithmeticOperator::subtract:
      return a - b;
    case ArithmeticOperator::multiply:
      return a * b;
    case ArithmeticOperator::divide:
      return a / b;
    case ArithmeticOperator::remainder:
      break;
  }
  return std::fmod(a, b);
}

Calculated calculate_numbers(ArithmeticOperator operation, const Function& function, const Bytes& a,
                             const Bytes& b) {
  const TypeKind left = function.arguments[0].kind();
  const TypeKind right = function.arguments[1].kind();
  const TypeKind result = function.returns.kind();
  if (is_integer(result)) {
    TRY(const std::int64_t x, read_integer(left, a));
    TRY(const std::int64_t y, read_integer(right, b));
    TRY(const std::int64_t value, calculate_integers(operation, x, y));
    return OptionalBytes(integer_value(result, value));
  }
  if (is_floating(result)) {
    TRY(const Number x, read_number(left, a));
    TRY(const Number y, read_number(right, b));
    if (result == TypeKind::float_) {
      return OptionalBytes(model::float_value(calculate_floating(
          operation, static_cast<float>(x.floating), static_cast<float>(y.floating))));
    }
    return OptionalBytes(
        model::double_value(calculate_floating(operation, x.floating, y.floating)));
  }
  const NumberOperation exact = number_operation(operation);
  TRY(const Bytes x, exact_number(result, left, a));
  TRY(const Bytes y, exact_number(result, right, b));
  if (result == TypeKind::varint) {
    TRY(Bytes value, model::calculate_varint(exact, x, y));
    return OptionalBytes(std::move(value));
  }
  TRY(Bytes value, model::calculate_decimal(exact, x, y));
  return OptionalBytes(std::move(value));
}

constexpr std::int64_t kDayMilliseconds = 86'400'000;
constexpr std::int64_t kNanosecondsInMillisecond = 1'000'000;

// As a calendar does: a month later is the same day, or the last of that month.
std::int64_t months_later(std::int64_t days, std::int64_t months) {
  model::CivilDate date = model::civil_from_days(days);
  const std::int64_t month = date.year * 12 + static_cast<std::int64_t>(date.month) - 1 + months;
  date.year = month >= 0 ? month / 12 : -((11 - month) / 12);
  date.month = static_cast<unsigned>(month - date.year * 12) + 1;
  while (!model::is_date(date)) --date.day;
  return model::days_from_civil(date);
}

// Milliseconds since 1970. Errors: out of range.
base::Result<std::int64_t> later(std::int64_t time, const model::Duration& duration, int sign) {
  std::int64_t days = time / kDayMilliseconds;
  std::int64_t rest = time % kDayMilliseconds;
  if (rest < 0) {
    rest += kDayMilliseconds;
    --days;
  }
  if (duration.months != 0) days = months_later(days, std::int64_t{sign} * duration.months);
  days += std::int64_t{sign} * duration.days;
  rest += sign * (duration.nanoseconds / kNanosecondsInMillisecond);
  std::int64_t result = 0;
  if (__builtin_mul_overflow(days, kDayMilliseconds, &result) ||
      __builtin_add_overflow(result, rest, &result)) {
    return cannot_be("the time is beyond the range of timestamps");
  }
  return result;
}

Calculated calculate_times(ArithmeticOperator operation, const Function& function, ByteView a,
                           ByteView b) {
  TRY(const model::Duration duration, model::read_duration(b));
  const int sign = operation == ArithmeticOperator::add ? 1 : -1;
  if (function.returns.kind() == TypeKind::timestamp) {
    TRY(const std::int64_t time, model::read_bigint(a));
    TRY(const std::int64_t value, later(time, duration, sign));
    return OptionalBytes(model::bigint_value(value));
  }
  if (duration.nanoseconds != 0) {
    return cannot_be(fmt::format("The duration must have a day precision. Was: {}",
                                 model::duration_to_text(duration)));
  }
  constexpr std::int64_t kEpoch = std::int64_t{1} << 31;
  TRY(const std::int32_t raw, model::read_int(a));
  const std::int64_t days = std::int64_t{static_cast<std::uint32_t>(raw)} - kEpoch;
  TRY(const std::int64_t value, later(days * kDayMilliseconds, duration, sign));
  const std::int64_t result = value / kDayMilliseconds;
  if (result < -kEpoch || result >= kEpoch) {
    return cannot_be("the date is beyond the range of dates");
  }
  return OptionalBytes(model::date_value(result));
}

QueryError operation_failed(ArithmeticOperator operation, const Function& function,
                            const base::Error& error) {
  const std::string left = function.arguments[0].to_cql();
  const std::string right = function.arguments[1].to_cql();
  const char symbol = symbol_of(operation);
  return {protocol::FunctionFailureDetails{.keyspace = "system",
                                           .function = std::string(1, symbol),
                                           .argument_types = {left, right}},
          fmt::format("the operation '{} {} {}' failed: {}", left, symbol, right, error.context())};
}

template <ArithmeticOperator kOperation>
QueryResult<OptionalBytes> operate(const Function& function, Function::Arguments arguments,
                                   Moment& /*moment*/) {
  const Bytes& left = *arguments[0];
  const Bytes& right = *arguments[1];
  if (function.returns.is_text()) {
    base::Buffer both;
    both.append(left.view());
    both.append(right.view());
    return OptionalBytes(std::move(both).freeze());
  }
  // What is empty is no number, and no time.
  if (left.empty() || right.empty()) return OptionalBytes();
  auto value = function.arguments[1].kind() == TypeKind::duration
                   ? calculate_times(kOperation, function, left, right)
                   : calculate_numbers(kOperation, function, left, right);
  if (!value) return operation_failed(kOperation, function, value.error());
  return *std::move(value);
}

Function::Body body_of(ArithmeticOperator operation) {
  switch (operation) {
    case ArithmeticOperator::add:
      return &operate<ArithmeticOperator::add>;
    case ArithmeticOperator::subtract:
      return &operate<ArithmeticOperator::subtract>;
    case ArithmeticOperator::multiply:
      return &operate<ArithmeticOperator::multiply>;
    case ArithmeticOperator::divide:
      return &operate<ArithmeticOperator::divide>;
    case ArithmeticOperator::remainder:
      break;
  }
  return &operate<ArithmeticOperator::remainder>;
}

std::string_view name_of(ArithmeticOperator operation) {
  switch (operation) {
    case ArithmeticOperator::add:
      return "_add";
    case ArithmeticOperator::subtract:
      return "_substract";  // as Cassandra spells it, in names of markers
    case ArithmeticOperator::multiply:
      return "_multiply";
    case ArithmeticOperator::divide:
      return "_divide";
    case ArithmeticOperator::remainder:
      break;
  }
  return "_modulo";
}

QueryResult<OptionalBytes> negate(const Function& function, Function::Arguments arguments,
                                  Moment& /*moment*/) {
  const TypeKind kind = function.returns.kind();
  const Bytes& value = *arguments[0];
  if (value.empty()) return OptionalBytes();
  if (kind == TypeKind::varint) {
    TRY(Bytes negated, model::negate_varint(value));
    return OptionalBytes(std::move(negated));
  }
  if (kind == TypeKind::decimal) {
    TRY(Bytes negated, model::negate_decimal(value));
    return OptionalBytes(std::move(negated));
  }
  if (is_floating(kind)) {
    TRY(const double number, read_floating(kind, value));
    return OptionalBytes(floating_value(kind, -number));
  }
  TRY(const std::int64_t number, read_integer(kind, value));
  return OptionalBytes(
      integer_value(kind, static_cast<std::int64_t>(0 - static_cast<std::uint64_t>(number))));
}

struct NegationChoice {
  std::optional<TypeKind> chosen;
  bool is_ambiguous = false;
};

NegationChoice choose_negation(const Operand& operand, const DataType* receiver) {
  std::optional<TypeKind> weak;
  bool several = false;
  for (const TypeKind kind : kNumbers) {
    if (receiver != nullptr && !is_assignable(*receiver, DataType(kind))) continue;
    if (operand.fit(kind) == Fit::exact) return {.chosen = kind};
    if (operand.fit(kind) == Fit::no) continue;
    several = weak.has_value();
    weak = kind;
  }
  if (several) return {.chosen = {}, .is_ambiguous = true};
  return {.chosen = weak};
}

// What an operation is of by itself fits exactly; what it could be made, weakly. What cannot be
// decided is refused later, in words of its own.
Operand result_of(std::optional<TypeKind> natural) {
  Operand result = Operand::unknown(false);
  if (natural) result.set(*natural, Fit::exact);
  return result;
}

}  // namespace

char symbol_of(ArithmeticOperator operation) {
  switch (operation) {
    case ArithmeticOperator::add:
      return '+';
    case ArithmeticOperator::subtract:
      return '-';
    case ArithmeticOperator::multiply:
      return '*';
    case ArithmeticOperator::divide:
      return '/';
    case ArithmeticOperator::remainder:
      break;
  }
  return '%';
}

QueryResult<Function> operation_between(ArithmeticOperator operation, const OperandText& left,
                                        const OperandText& right, const DataType* receiver) {
  const Choice choice = choose(operation, left.operand, right.operand, receiver);
  if (choice.is_ambiguous) {
    return invalid(
        "Ambiguous '{}' operation with args {} and {}: use type hint to disambiguate, example "
        "'(int) ?'",
        symbol_of(operation), left.text, right.text);
  }
  if (!choice.chosen) {
    return invalid("the '{}' operation is not supported between {} and {}", symbol_of(operation),
                   left.text, right.text);
  }
  return Function{.name = std::string(name_of(operation)),
                  .arguments = {DataType(choice.chosen->left), DataType(choice.chosen->right)},
                  .returns = DataType(choice.chosen->result),
                  .body = body_of(operation)};
}

QueryResult<Function> negation_of(const OperandText& operand, const DataType* receiver) {
  const NegationChoice choice = choose_negation(operand.operand, receiver);
  if (choice.is_ambiguous) return invalid("Ambiguous negation: use type casts to disambiguate");
  if (!choice.chosen) return invalid("the '-' operation is not supported for {}", operand.text);
  const DataType type(*choice.chosen);
  return Function{.name = "_negate", .arguments = {type}, .returns = type, .body = &negate};
}

Operand result_between(ArithmeticOperator operation, const Operand& left, const Operand& right) {
  const Choice choice = choose(operation, left, right, nullptr);
  if (!choice.chosen) return result_of(std::nullopt);
  return result_of(choice.chosen->result);
}

Operand result_of_negation(const Operand& operand) {
  return result_of(choose_negation(operand, nullptr).chosen);
}

}  // namespace helenus::cql
