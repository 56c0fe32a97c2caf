// The values of an INSERT JSON.
#include <algorithm>
#include <string_view>
#include <utility>

#include <absl/container/flat_hash_map.h>

#include "base/assert.h"
#include "cql/plan/modification_plan.h"
#include "model/json.h"

namespace helenus::cql {

QueryResult<BoundValues> values_of_json(const ModificationPlan& plan,
                                        const Evaluation& evaluation) {
  ASSERT(plan.json && plan.json->first_value >= evaluation.values.size());
  TRY(const TermValue text, plan.json->text.evaluate(evaluation));
  if (!text.has_bytes()) return invalid("Got null for INSERT JSON values");
  TRY(const model::JsonValue json, model::parse_json(text.bytes.text(), evaluation.pace));
  if (json.kind == model::JsonValue::Kind::null) return invalid("Got null for INSERT JSON values");
  if (json.kind != model::JsonValue::Kind::object) {
    return invalid("Could not decode JSON string as a map: {}", text.bytes.text().substr(0, 64));
  }
  absl::flat_hash_map<std::string, std::size_t> index_of;
  const std::vector<model::Column>& columns = plan.table->columns;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    TRY_VOID(evaluation.turn());
    index_of.emplace(columns[i].name, i);
  }
  BoundValues values = evaluation.values;
  values.resize(plan.json->first_value + columns.size());
  if (plan.json->default_unset) {
    std::fill(values.begin() + static_cast<std::ptrdiff_t>(plan.json->first_value), values.end(),
              TermValue::unset());
  }
  for (std::size_t i = 0; i < json.parts.size(); ++i) {
    TRY_VOID(evaluation.turn());
    const auto found = index_of.find(model::name_of_json(json.names[i]));
    if (found == index_of.end()) {
      return invalid("JSON values map contains unrecognized column: {}",
                     std::string_view(json.names[i]).substr(0, 64));
    }
    const model::Column& column = columns[found->second];
    auto value = model::from_json(column.type, json.parts[i], evaluation.pace);
    if (!value && !value.failed_with(base::Errc::invalid_argument)) return value.error();
    if (!value) {
      return invalid("Error decoding JSON value for {}: {}", column.name, value.error().context());
    }
    values[plan.json->first_value + found->second] =
        *value ? TermValue::of(**std::move(value)) : TermValue::null();
  }
  return values;
}

}  // namespace helenus::cql
