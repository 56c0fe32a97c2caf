#include "cql/plan/generic_functions.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "base/assert.h"
#include "cql/plan/masks.h"
#include "cql/plan/numbers.h"
#include "cql/plan/similarity.h"
#include "cql/plan/total.h"
#include "model/big_number.h"
#include "model/value.h"

namespace helenus::cql {

using base::Bytes;
using base::ByteView;
using model::DataType;
using model::OptionalBytes;
using model::TypeKind;

namespace {

using Hints = std::span<const ArgumentHint>;
using Given = QueryResult<OptionalBytes>;

// ---- Of numbers ----

// As Java casts a double to an int or a bigint.
std::int64_t to_integer(TypeKind kind, double value) {
  const bool is_wide = kind == TypeKind::bigint || kind == TypeKind::counter;
  if (std::isnan(value)) return 0;
  const auto least = is_wide ? std::numeric_limits<std::int64_t>::min()
                             : std::int64_t{std::numeric_limits<std::int32_t>::min()};
  const auto most = is_wide ? std::numeric_limits<std::int64_t>::max()
                            : std::int64_t{std::numeric_limits<std::int32_t>::max()};
  if (value <= static_cast<double>(least)) return least;
  if (value >= static_cast<double>(most)) return most;
  return static_cast<std::int64_t>(value);
}

// Of types that have a size of their own. Narrower integers have the lowest bits of the result.
template <class Calculate>
base::Result<Bytes> with_double(TypeKind kind, const Bytes& bytes, Calculate calculate) {
  if (is_floating(kind)) {
    TRY(const double value, read_floating(kind, bytes));
    return floating_value(kind, calculate(value));
  }
  TRY(const std::int64_t value, read_integer(kind, bytes));
  return integer_value(kind, to_integer(kind, calculate(static_cast<double>(value))));
}

bool has_any_size(TypeKind kind) {
  return kind == TypeKind::varint || kind == TypeKind::decimal;
}

template <model::Transcendental kFunction>
Given transcendental(const Function& function, Function::Arguments arguments, Moment& /*moment*/) {
  const TypeKind kind = function.returns.kind();
  const Bytes& bytes = *arguments[0];
  if (bytes.empty()) return OptionalBytes();
  if (!has_any_size(kind)) {
    TRY(Bytes value, with_double(kind, bytes, [](double number) {
          if constexpr (kFunction == model::Transcendental::exp) return std::exp(number);
          if constexpr (kFunction == model::Transcendental::ln) return std::log(number);
          return std::log10(number);
        }));
    return OptionalBytes(std::move(value));
  }
  TRY(const Bytes number, exact_number(TypeKind::decimal, kind, bytes));
  TRY(Bytes value, model::calculate_decimal(kFunction, number));
  if (kind == TypeKind::decimal) return OptionalBytes(std::move(value));
  TRY(Bytes whole, model::decimal_to_varint(value));
  return OptionalBytes(std::move(whole));
}

Given absolute(const Function& function, Function::Arguments arguments, Moment& /*moment*/) {
  const TypeKind kind = function.returns.kind();
  const Bytes& bytes = *arguments[0];
  if (bytes.empty()) return OptionalBytes();
  if (is_floating(kind)) {
    TRY(const double value, read_floating(kind, bytes));
    return OptionalBytes(floating_value(kind, std::abs(value)));
  }
  if (is_integer(kind)) {
    TRY(const std::int64_t value, read_integer(kind, bytes));
    const auto bits = static_cast<std::uint64_t>(value);
    return OptionalBytes(
        integer_value(kind, static_cast<std::int64_t>(value < 0 ? 0 - bits : bits)));
  }
  const std::size_t sign_at = kind == TypeKind::decimal ? sizeof(std::int32_t) : 0;
  if (std::to_integer<unsigned>(bytes[sign_at]) < 0x80) return OptionalBytes(bytes);
  TRY(Bytes value,
      kind == TypeKind::decimal ? model::negate_decimal(bytes) : model::negate_varint(bytes));
  return OptionalBytes(std::move(value));
}

// Half up, as Java does: -2.5 becomes -2.
Given round(const Function& function, Function::Arguments arguments, Moment& /*moment*/) {
  const TypeKind kind = function.returns.kind();
  const Bytes& bytes = *arguments[0];
  if (bytes.empty()) return OptionalBytes();
  if (kind == TypeKind::decimal) {
    TRY(Bytes value, model::round_decimal(bytes));
    return OptionalBytes(std::move(value));
  }
  if (!is_floating(kind)) return OptionalBytes(bytes);
  TRY(const double value, read_floating(kind, bytes));
  const TypeKind whole = kind == TypeKind::float_ ? TypeKind::int_ : TypeKind::bigint;
  const double below = std::floor(value);
  const double nearest = value - below >= 0.5 ? below + 1 : below;
  return OptionalBytes(floating_value(kind, static_cast<double>(to_integer(whole, nearest))));
}

// ---- Of collections ----

Given map_keys(const Function& function, Function::Arguments arguments, Moment& /*moment*/) {
  TRY(const auto entries, model::split_map(*arguments[0]));
  std::vector<Bytes> keys;
  keys.reserve(entries.size());
  for (const auto& [key, value] : entries) keys.push_back(Bytes::copy_of(key));
  return OptionalBytes(model::compose_set(function.returns.element(), std::move(keys)));
}

Given map_values(const Function& /*function*/, Function::Arguments arguments, Moment& /*moment*/) {
  TRY(const auto entries, model::split_map(*arguments[0]));
  std::vector<Bytes> values;
  values.reserve(entries.size());
  for (const auto& [key, value] : entries) values.push_back(Bytes::copy_of(value));
  return OptionalBytes(model::compose_list(values));
}

Given collection_count(const Function& /*function*/, Function::Arguments arguments,
                       Moment& /*moment*/) {
  const std::size_t count = model::count_of_collection(*arguments[0]);
  return OptionalBytes(model::int_value(static_cast<std::int32_t>(count)));
}

template <bool kGreatest>
Given collection_extreme(const Function& function, Function::Arguments arguments,
                         Moment& /*moment*/) {
  TRY(const auto elements, model::split_collection(*arguments[0]));
  const DataType& type = function.arguments[0].element();
  std::optional<ByteView> best;
  for (const ByteView element : elements) {
    if (best) {
      const auto order = model::compare(type, element, *best);
      if (kGreatest ? order <= 0 : order >= 0) continue;
    }
    best = element;
  }
  if (!best) return OptionalBytes();
  return OptionalBytes(Bytes::copy_of(*best));
}

template <bool kAverage>
Given collection_total(const Function& function, Function::Arguments arguments,
                       Moment& /*moment*/) {
  TRY(const auto elements, model::split_collection(*arguments[0]));
  const TypeKind kind = function.returns.kind();
  Total total;
  for (const ByteView element : elements) TRY_VOID(total.add(kind, Bytes::copy_of(element)));
  TRY(Bytes value, kAverage ? total.average(kind) : total.sum(kind));
  return OptionalBytes(std::move(value));
}

// ---- Which function is meant ----

enum class Takes : std::uint8_t { number, map, collection, set_or_list, numbers, any };

using Make = QueryResult<Function> (*)(std::string_view name, Function::Body body,
                                       std::vector<DataType> types);

QueryResult<Function> same_type(std::string_view name, Function::Body body,
                                std::vector<DataType> types) {
  const DataType type = types[0];
  return Function{
      .name = std::string(name), .arguments = std::move(types), .returns = type, .body = body};
}

QueryResult<Function> element_type(std::string_view name, Function::Body body,
                                   std::vector<DataType> types) {
  const DataType type = types[0].element();
  return Function{
      .name = std::string(name), .arguments = std::move(types), .returns = type, .body = body};
}

QueryResult<Function> a_count(std::string_view name, Function::Body body,
                              std::vector<DataType> types) {
  return Function{.name = std::string(name),
                  .arguments = std::move(types),
                  .returns = DataType(TypeKind::int_),
                  .body = body};
}

QueryResult<Function> set_of_keys(std::string_view name, Function::Body body,
                                  std::vector<DataType> types) {
  TRY(DataType type, DataType::set_of(types[0].key(), true));
  return Function{
      .name = std::string(name), .arguments = std::move(types), .returns = type, .body = body};
}

QueryResult<Function> list_of_values(std::string_view name, Function::Body body,
                                     std::vector<DataType> types) {
  TRY(DataType type, DataType::list_of(types[0].mapped(), true));
  return Function{
      .name = std::string(name), .arguments = std::move(types), .returns = type, .body = body};
}

struct Known {
  std::string_view name;       // as it is looked up
  std::string_view full_name;  // as messages have it
  Takes takes;
  Function::Body body;
  Make make;
};

constexpr Known kOfOneArgument[] = {
    {"abs", "abs", Takes::number, &absolute, &same_type},
    {"exp", "exp", Takes::number, &transcendental<model::Transcendental::exp>, &same_type},
    {"log", "log", Takes::number, &transcendental<model::Transcendental::ln>, &same_type},
    {"log10", "log10", Takes::number, &transcendental<model::Transcendental::log10>, &same_type},
    {"round", "round", Takes::number, &round, &same_type},
    {"mapkeys", "map_keys", Takes::map, &map_keys, &set_of_keys},
    {"mapvalues", "map_values", Takes::map, &map_values, &list_of_values},
    {"collectioncount", "collection_count", Takes::collection, &collection_count, &a_count},
    {"collectionmin", "collection_min", Takes::set_or_list, &collection_extreme<false>,
     &element_type},
    {"collectionmax", "collection_max", Takes::set_or_list, &collection_extreme<true>,
     &element_type},
    {"collectionsum", "collection_sum", Takes::numbers, &collection_total<false>, &element_type},
    {"collectionavg", "collection_avg", Takes::numbers, &collection_total<true>, &element_type},
};

const Known* find_known(std::string_view name) {
  const auto* const found = std::ranges::find(kOfOneArgument, name, &Known::name);
  return found == std::end(kOfOneArgument) ? nullptr : found;
}

bool takes(Takes what, const DataType& type) {
  const bool is_series = type.kind() == TypeKind::list || type.kind() == TypeKind::set;
  switch (what) {
    case Takes::number:
      return is_number(type.kind());
    case Takes::map:
      return type.kind() == TypeKind::map;
    case Takes::collection:
      return type.is_collection();
    case Takes::set_or_list:
      return is_series;
    case Takes::numbers:
      return is_series && is_number(type.element().kind());
    case Takes::any:
      break;
  }
  return true;
}

std::string_view name_of(Takes what) {
  switch (what) {
    case Takes::number:
      return "numeric";
    case Takes::map:
      return "map";
    case Takes::collection:
      return "collection";
    case Takes::set_or_list:
      return "set or list";
    case Takes::numbers:
      return "numeric set/list";
    case Takes::any:
      break;
  }
  return "any";
}

QueryError cannot_infer(const ArgumentHint& hint, std::string_view name) {
  return invalid(
      "Cannot infer type of argument {} in call to function system.{}: use type casts to "
      "disambiguate",
      hint.text, name);
}

QueryResult<Function> of_one_argument(const Known& known, Hints hints, const DataType* receiver) {
  if (hints.size() != 1) {
    return invalid(
        "Invalid number of arguments in call to function system.{}: 1 required but {} provided",
        known.full_name, hints.size());
  }
  const ArgumentHint& hint = hints[0];
  std::optional<DataType> type = hint.type;
  // A literal is of the type that the result is for.
  const bool as_wanted = known.takes == Takes::number && receiver != nullptr &&
                         is_number(receiver->kind()) &&
                         hint.operand.fit(receiver->kind()) != Fit::no;
  if (as_wanted) type = *receiver;
  if (!type) return cannot_infer(hint, known.full_name);
  if (!takes(known.takes, *type)) {
    return invalid("Function system.{} requires a {} argument, but found argument {} of type {}",
                   known.full_name, name_of(known.takes), hint.text, type->to_cql());
  }
  return known.make(known.full_name, known.body, {*type});
}

}  // namespace

bool is_generic_function(std::string_view name) {
  return find_known(name) != nullptr || is_mask(name) || is_similarity(name);
}

QueryResult<Function> generic_function(std::string_view name, Hints hints,
                                       const DataType* receiver) {
  if (const Known* const known = find_known(name)) {
    return of_one_argument(*known, hints, receiver);
  }
  if (is_similarity(name)) return similarity_function(name, hints);
  return mask_function(name, hints, receiver);
}

}  // namespace helenus::cql
