#include "cql/schema/availability.h"

#include <algorithm>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "cql/schema/system_schema.h"
#include "ring/placement.h"

namespace helenus::cql {

using model::Consistency;
using model::quorum_of;

namespace {

QueryError unavailable(Consistency level, std::uint32_t required, std::uint32_t alive,
                       std::string_view data_center = "") {
  std::string text = fmt::format("Cannot achieve consistency level {}", model::name_of(level));
  if (!data_center.empty()) text += fmt::format(" in DC {}", data_center);
  return {protocol::UnavailableDetails{.consistency = level,
                                       .required = static_cast<std::int32_t>(required),
                                       .alive = static_cast<std::int32_t>(alive)},
          std::move(text)};
}

// The system's own.
bool is_local(const model::Keyspace& keyspace) {
  const auto name = keyspace.replication.find("class");
  return name != keyspace.replication.end() && name->second == kLocalStrategy;
}

}  // namespace

Availability::Availability(const model::Keyspace& keyspace, std::string_view data_center) {
  if (is_local(keyspace)) return;
  is_checked_ = true;
  const auto strategy = ring::parse_strategy(keyspace.replication);
  if (!strategy) {
    problem_ = fmt::format("The replication of keyspace {} is not understood: {}", keyspace.name,
                           strategy.error().context());
    return;
  }
  if (const auto* simple = std::get_if<ring::SimpleStrategy>(&*strategy)) {
    all_ = {.factor = simple->factor, .alive = std::min(1U, simple->factor)};
    local_ = all_;
    return;
  }
  for (const auto& [name, factor] : std::get<ring::NetworkTopologyStrategy>(*strategy).factors) {
    const Replicas there{.factor = factor, .alive = name == data_center ? std::min(1U, factor) : 0};
    all_.factor += there.factor;
    all_.alive += there.alive;
    if (name == data_center) local_ = there;
    data_centers_[name] = there;
  }
}

QueryResult<void> Availability::check(Consistency level) const {
  if (!is_checked_) return {};
  if (!problem_.empty()) return QueryError(protocol::ErrorCode::server_error, problem_);
  const auto of = [&](const Replicas& replicas, std::uint32_t required) -> QueryResult<void> {
    if (replicas.alive >= required) return {};
    return unavailable(level, required, replicas.alive);
  };
  switch (level) {
    case Consistency::any:
      return {};
    case Consistency::one:
      return of(all_, 1);
    case Consistency::two:
      return of(all_, 2);
    case Consistency::three:
      return of(all_, 3);
    case Consistency::quorum:
    case Consistency::serial:
      return of(all_, quorum_of(all_.factor));
    case Consistency::all:
      return of(all_, all_.factor);
    case Consistency::local_one:
      return of(local_, 1);
    case Consistency::local_quorum:
    case Consistency::local_serial:
      return of(local_, quorum_of(local_.factor));
    case Consistency::each_quorum:
      for (const auto& [name, replicas] : data_centers_) {
        const std::uint32_t required = quorum_of(replicas.factor);
        if (replicas.alive < required) return unavailable(level, required, replicas.alive, name);
      }
      return data_centers_.empty() ? of(all_, quorum_of(all_.factor)) : QueryResult<void>();
  }
  return QueryError(
      protocol::ErrorCode::server_error,
      fmt::format("Consistency level {} is not understood", static_cast<unsigned>(level)));
}

std::vector<std::string> factor_warnings(const model::Keyspace& keyspace, const NodeCounts& nodes) {
  std::vector<std::string> warnings;
  const auto strategy = ring::parse_strategy(keyspace.replication);
  if (!strategy) return warnings;
  const auto warn = [&](std::uint32_t factor, std::uint32_t count, const std::string& where) {
    if (factor <= count || count == 0) return;
    warnings.push_back(fmt::format(
        "Your replication factor {} for keyspace {} is higher than the number of nodes {}{}",
        factor, keyspace.name, count, where));
  };
  if (const auto* simple = std::get_if<ring::SimpleStrategy>(&*strategy)) {
    std::uint32_t all = 0;
    for (const auto& [name, count] : nodes) all += count;
    warn(simple->factor, all, "");
    return warnings;
  }
  for (const auto& [name, factor] : std::get<ring::NetworkTopologyStrategy>(*strategy).factors) {
    const auto count = nodes.find(name);
    if (count != nodes.end()) warn(factor, count->second, " for datacenter " + name);
  }
  return warnings;
}

}  // namespace helenus::cql
