// Functions of CQL that make one value of others: now(), toTimestamp(t), blobAsInt(b), cast(a as
// t).
//
// They are the same in terms (values of an INSERT) and in selectors. Names are looked up in lower
// case and without underscores, so that toTimestamp and to_timestamp are one. Aggregates are in
// selectors.h; token() is there and in restrictions.h, because it is about a table. Functions whose
// types depend on their arguments are in generic_functions.h.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cql/errors/query_error.h"
#include "cql/plan/moment.h"
#include "model/data_type.h"
#include "model/value.h"

namespace helenus::cql {

struct Function {
  using Arguments = std::span<const model::OptionalBytes>;
  // Never called with a null argument unless it takes them: the result then is null.
  using Body = QueryResult<model::OptionalBytes> (*)(const Function& function, Arguments arguments,
                                                     Moment& moment);

  std::string name;  // without its keyspace, which is always `system`
  std::vector<model::DataType> arguments;
  model::DataType returns;
  Body body = nullptr;
  bool takes_nulls = false;

  QueryResult<model::OptionalBytes> call(Arguments values, Moment& moment) const;
};

// What functions are looked up by.
std::string without_underscores(std::string_view name);

// All functions of that name, by their arguments; none if there is no such function.
std::vector<Function> functions_named(std::string_view name);

// toJson(x), of any type, and fromJson(text), for any type.
bool is_to_json(std::string_view name);
bool is_from_json(std::string_view name);
Function to_json_function(const model::DataType& type);
Function from_json_function(const model::DataType& type);

// cast(x as t). Errors: invalid when there is no such conversion.
QueryResult<Function> cast_function(const model::DataType& from, const model::DataType& to);

// Whether a value of `from` may stand where `to` is wanted.
bool is_assignable(const model::DataType& to, const model::DataType& from);

}  // namespace helenus::cql
