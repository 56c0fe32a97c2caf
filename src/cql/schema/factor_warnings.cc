#include "cql/schema/factor_warnings.h"

#include <variant>

#include <fmt/format.h>

#include "ring/placement.h"

namespace helenus::cql {

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
