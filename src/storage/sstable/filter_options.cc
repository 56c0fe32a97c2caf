#include "storage/sstable/filter_options.h"

#include "base/assert.h"

namespace helenus::storage {

using base::Errc;
using base::Error;
using base::Result;

std::string_view name_of(FilterKind kind) {
  switch (kind) {
    case FilterKind::none:
      return "none";
    case FilterKind::cuckoo:
      return "cuckoo";
    case FilterKind::bloom:
      return "bloom";
    case FilterKind::consistent_cuckoo:
      return "consistent_cuckoo";
  }
  UNREACHABLE("filter kind {}", static_cast<int>(kind));
}

std::optional<FilterKind> filter_kind_named(std::string_view name) {
  for (const auto kind : kFilterKinds) {
    if (name == name_of(kind)) return kind;
  }
  return std::nullopt;
}

Result<void> validate(const TableFilter& filter) {
  const auto refuse = [&](std::string_view why) {
    return Error(Errc::invalid_argument, "a filter '{}' {}", name_of(filter.kind), why);
  };
  const std::optional<double>& rate = filter.false_positive_rate;
  const std::optional<double>& bits = filter.bits_per_hash;
  if ((rate || bits) && !has_size(filter.kind)) return refuse("has neither a rate nor bits a hash");
  if (rate && bits) return refuse("has a rate or bits a hash, not both");
  // Said so that what is no number does not fit.
  if (rate && !(*rate >= rate_min(filter.kind) && *rate <= kFilterRateMax)) {
    return refuse("has no such rate");
  }
  if (bits && !(*bits >= kFilterBitsMin && *bits <= kFilterBitsMax)) {
    return refuse("has no such number of bits a hash");
  }
  return {};
}

FilterOptions chosen(const FilterOptions& node, const std::optional<TableFilter>& table) {
  FilterOptions options = node;
  if (!table) return options;
  options.kind = table->kind;
  if (table->false_positive_rate) {
    options.false_positive_rate = *table->false_positive_rate;
    options.bits_per_hash = std::nullopt;
  }
  if (table->bits_per_hash) options.bits_per_hash = table->bits_per_hash;
  return options;
}

}  // namespace helenus::storage
