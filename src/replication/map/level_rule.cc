#include "replication/map/level_rule.h"

#include <algorithm>
#include <variant>

#include "base/assert.h"

namespace helenus::replication {

using model::Consistency;
using model::quorum_of;

namespace {

struct Factors {
  std::uint32_t all = 0;
  std::uint32_t local = 0;
  std::optional<DatacentreIndex> local_index;  // none: the strategy knows no data centres
  absl::InlinedVector<std::pair<DatacentreIndex, std::uint32_t>, 4> each;
};

// A data centre that has no nodes is not in the list; its replicas are wanted all the same.
constexpr DatacentreIndex kNowhere = UINT32_MAX;

DatacentreIndex index_of(std::span<const std::string> datacentres, std::string_view name) {
  const auto found = std::ranges::find(datacentres, name);
  return found == datacentres.end() ? kNowhere
                                    : static_cast<DatacentreIndex>(found - datacentres.begin());
}

Factors factors_of(const ring::Strategy& strategy, std::span<const std::string> datacentres,
                   std::string_view local) {
  Factors factors;
  if (const auto* simple = std::get_if<ring::SimpleStrategy>(&strategy)) {
    factors.all = simple->factor;
    factors.local = simple->factor;
    return factors;
  }
  factors.local_index = index_of(datacentres, local);
  for (const auto& [name, factor] : std::get<ring::NetworkTopologyStrategy>(strategy).factors) {
    if (factor == 0) continue;
    factors.all += factor;
    if (name == local) factors.local = factor;
    factors.each.emplace_back(index_of(datacentres, name), factor);
  }
  return factors;
}

}  // namespace

LevelRule LevelRule::of(const ring::Strategy& strategy, std::span<const std::string> datacentres,
                        std::string_view local, Consistency level) {
  const Factors factors = factors_of(strategy, datacentres, local);
  LevelRule rule;
  const auto all = [&](std::uint32_t required) {
    rule.groups_.push_back({.datacentre = {}, .required = required});
  };
  const auto here = [&](std::uint32_t required) {
    rule.groups_.push_back({.datacentre = factors.local_index, .required = required});
  };
  switch (level) {
    case Consistency::any:
    case Consistency::one:
      all(1);
      break;
    case Consistency::two:
      all(2);
      break;
    case Consistency::three:
      all(3);
      break;
    case Consistency::quorum:
    case Consistency::serial:
      all(quorum_of(factors.all));
      break;
    case Consistency::all:
      all(std::max(factors.all, 1U));
      break;
    case Consistency::local_one:
      here(1);
      break;
    case Consistency::local_quorum:
    case Consistency::local_serial:
      here(quorum_of(factors.local));
      break;
    case Consistency::each_quorum:
      for (const auto& [index, factor] : factors.each) {
        rule.groups_.push_back({.datacentre = index, .required = quorum_of(factor)});
      }
      if (factors.each.empty()) all(quorum_of(factors.all));
      break;
  }
  ASSERT(!rule.groups_.empty(), "level {}", static_cast<unsigned>(level));
  return rule;
}

LevelRule LevelRule::joint(const LevelRule& present, const LevelRule& next) {
  LevelRule rule = present;
  for (Group group : next.groups_) {
    group.set = ReplicaSets::next;
    rule.groups_.push_back(group);
  }
  return rule;
}

std::uint32_t LevelRule::required() const {
  std::uint32_t sum = 0;
  for (const Group& group : groups_) sum += group.required;
  return sum;
}

AckTally::AckTally(const LevelRule& rule, std::span<const CountedReplica> replicas)
    : rule_(rule), counts_(rule.groups().size()) {
  for (std::size_t i = 0; i < counts_.size(); ++i) {
    counts_[i].open = static_cast<std::uint32_t>(std::ranges::count_if(
        replicas, [&](CountedReplica replica) { return rule.groups()[i].counts(replica); }));
  }
}

void AckTally::acknowledge(CountedReplica replica) {
  for (std::size_t i = 0; i < counts_.size(); ++i) {
    if (!rule_.groups()[i].counts(replica)) continue;
    ASSERT(counts_[i].open > 0, "more answers than replicas");
    --counts_[i].open;
    ++counts_[i].acknowledged;
  }
}

void AckTally::fail(CountedReplica replica) {
  ++failed_;
  for (std::size_t i = 0; i < counts_.size(); ++i) {
    if (!rule_.groups()[i].counts(replica)) continue;
    ASSERT(counts_[i].open > 0, "more answers than replicas");
    --counts_[i].open;
  }
}

bool AckTally::met() const {
  for (std::size_t i = 0; i < counts_.size(); ++i) {
    if (counts_[i].acknowledged < rule_.groups()[i].required) return false;
  }
  return true;
}

bool AckTally::is_impossible() const {
  for (std::size_t i = 0; i < counts_.size(); ++i) {
    if (counts_[i].acknowledged + counts_[i].open < rule_.groups()[i].required) return true;
  }
  return false;
}

bool AckTally::still_counts(CountedReplica replica) const {
  for (std::size_t i = 0; i < counts_.size(); ++i) {
    const LevelRule::Group& group = rule_.groups()[i];
    if (group.counts(replica) && counts_[i].acknowledged < group.required) return true;
  }
  return false;
}

std::uint32_t AckTally::acknowledged() const {
  std::uint32_t sum = 0;
  for (const Count& count : counts_) sum += count.acknowledged;
  return sum;
}

std::optional<AckTally::Shortage> AckTally::shortage() const {
  for (std::size_t i = 0; i < counts_.size(); ++i) {
    const LevelRule::Group& group = rule_.groups()[i];
    if (counts_[i].acknowledged >= group.required) continue;
    return Shortage{.group = group, .alive = counts_[i].acknowledged + counts_[i].open};
  }
  return std::nullopt;
}

}  // namespace helenus::replication
