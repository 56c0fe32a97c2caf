#include "cql/plan/value_guard.h"

#include <string_view>

#include "model/value.h"

namespace helenus::cql {

namespace {

struct Measured {
  std::string_view guardrail;
  std::string_view text;  // with places for the column, the size, the kind and the threshold
  const std::string& column;
  std::size_t size;
};

std::string violated(const Measured& measured, std::string_view kind, std::uint32_t threshold) {
  return fmt::format(
      "Guardrail {} violated: {}", measured.guardrail,
      fmt::format(fmt::runtime(measured.text), measured.column, measured.size, kind, threshold));
}

QueryResult<void> compare(const Measured& measured, std::uint32_t warn, std::uint32_t fail,
                          std::vector<std::string>& warnings) {
  if (fail > 0 && measured.size > fail) return invalid(violated(measured, "failure", fail));
  if (warn > 0 && measured.size > warn) warnings.push_back(violated(measured, "warning", warn));
  return {};
}

}  // namespace

QueryResult<void> ValueGuard::check(const model::Column& column, base::ByteView value) const {
  if (!column.type.is_collection()) {
    return compare(
        {.guardrail = "column_value_size",
         .text = "Value of column '{}' has size {}, this exceeds the {} threshold of {}.",
         .column = column.name,
         .size = value.size()},
        thresholds_.column_value_size_warn_threshold, thresholds_.column_value_size_fail_threshold,
        warnings_);
  }
  TRY_VOID(
      compare({.guardrail = "collection_size",
               .text = "Detected collection {} of size {}, this exceeds the {} threshold of {}.",
               .column = column.name,
               .size = value.size()},
              thresholds_.collection_size_warn_threshold,
              thresholds_.collection_size_fail_threshold, warnings_));
  return compare(
      {.guardrail = "items_per_collection",
       .text = "Detected collection {} with {} items, this exceeds the {} threshold of {}.",
       .column = column.name,
       .size = model::count_of_collection(value)},
      thresholds_.items_per_collection_warn_threshold,
      thresholds_.items_per_collection_fail_threshold, warnings_);
}

}  // namespace helenus::cql
