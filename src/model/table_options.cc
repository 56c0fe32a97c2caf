#include "model/table_options.h"

#include "base/assert.h"
#include "model/number.h"

namespace helenus::model {

using base::Errc;
using base::Error;
using base::Result;

namespace {

// Twenty years, Cassandra's limit on a time to live.
constexpr std::int32_t kTimeToLiveMax = 20 * 365 * 24 * 60 * 60;
// The smallest chance Cassandra's tables of bloom filters know.
constexpr double kFalsePositiveChanceMin = 6.71e-5;
constexpr std::size_t kTextShownMax = 64;

Result<void> at_least(std::int32_t minimum, std::string_view option, std::int32_t value) {
  if (value >= minimum) return {};
  return Error(Errc::invalid_argument, "{} must be greater than or equal to {} (got {})", option,
               minimum, value);
}

}  // namespace

std::string_view name_of(Conflicts conflicts) {
  switch (conflicts) {
    case Conflicts::lww:
      return "lww";
    case Conflicts::siblings:
      return "siblings";
  }
  UNREACHABLE("conflicts {}", static_cast<unsigned>(conflicts));
}

std::string_view name_of(CausalWrites causal_writes) {
  switch (causal_writes) {
    case CausalWrites::local:
      return "local";
    case CausalWrites::quorum:
      return "quorum";
  }
  UNREACHABLE("causal_writes {}", static_cast<unsigned>(causal_writes));
}

Result<Conflicts> parse_conflicts(std::string_view text) {
  for (const Conflicts candidate : {Conflicts::lww, Conflicts::siblings}) {
    if (text == name_of(candidate)) return candidate;
  }
  return Error(Errc::invalid_argument, "conflicts must be 'lww' or 'siblings' (got '{}')",
               text.substr(0, kTextShownMax));
}

Result<CausalWrites> parse_causal_writes(std::string_view text) {
  for (const CausalWrites candidate : {CausalWrites::local, CausalWrites::quorum}) {
    if (text == name_of(candidate)) return candidate;
  }
  return Error(Errc::invalid_argument, "causal_writes must be 'local' or 'quorum' (got '{}')",
               text.substr(0, kTextShownMax));
}

Result<void> validate(const TableOptions& options) {
  const double chance = options.bloom_filter_fp_chance;
  if (!(chance > kFalsePositiveChanceMin && chance <= 1.0)) {
    return Error(Errc::invalid_argument,
                 "bloom_filter_fp_chance must be larger than {} and less than or equal to 1.0 "
                 "(got {})",
                 float_to_text(kFalsePositiveChanceMin), float_to_text(chance));
  }
  if (!(options.crc_check_chance >= 0 && options.crc_check_chance <= 1.0)) {
    return Error(Errc::invalid_argument,
                 "crc_check_chance must be larger than or equal to 0 and smaller than or equal to "
                 "1.0 (got {})",
                 float_to_text(options.crc_check_chance));
  }
  TRY_VOID(at_least(0, "default_time_to_live", options.default_time_to_live));
  if (options.default_time_to_live > kTimeToLiveMax) {
    return Error(Errc::invalid_argument,
                 "default_time_to_live must be less than or equal to {} (got {})", kTimeToLiveMax,
                 options.default_time_to_live);
  }
  TRY_VOID(at_least(0, "gc_grace_seconds", options.gc_grace_seconds));
  TRY_VOID(at_least(1, "min_index_interval", options.min_index_interval));
  if (options.max_index_interval < options.min_index_interval) {
    return Error(Errc::invalid_argument,
                 "max_index_interval must be greater than or equal to min_index_interval ({}) "
                 "(got {})",
                 options.min_index_interval, options.max_index_interval);
  }
  TRY_VOID(at_least(0, "memtable_flush_period_in_ms", options.memtable_flush_period_in_ms));
  return at_least(0, "delete_memory", options.delete_memory_seconds);
}

}  // namespace helenus::model
