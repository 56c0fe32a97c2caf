#include "sim/checkers/register_checker.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/assert.h"

namespace helenus::sim {

namespace {

constexpr Tick kNever = UINT64_MAX;

using Operation = RegisterHistory::Operation;

struct Cluster {
  std::uint64_t value = 0;
  bool written = false;
  Tick write_invoked = 0;
  Tick first_return = kNever;
  Tick last_invocation = 0;
  bool is_forward() const { return first_return < last_invocation; }
};

std::string text_of(const Cluster& cluster) {
  const Tick begin = std::min(cluster.first_return, cluster.last_invocation);
  const Tick end = std::max(cluster.first_return, cluster.last_invocation);
  return fmt::format("{} in [{}, {}]", cluster.value, begin, end);
}

void include(Cluster& cluster, Tick invoked, Tick returned) {
  cluster.first_return = std::min(cluster.first_return, returned);
  cluster.last_invocation = std::max(cluster.last_invocation, invoked);
}

std::map<std::uint64_t, Cluster> clusters_of(const std::vector<Operation>& operations) {
  std::map<std::uint64_t, Cluster> clusters;
  Cluster& initial = clusters[RegisterHistory::kInitialValue];
  initial.written = true;
  initial.first_return = 0;
  for (const Operation& operation : operations) {
    if (!operation.is_write && !operation.returned) continue;
    Cluster& cluster = clusters[operation.value];
    cluster.value = operation.value;
    include(cluster, operation.invoked, operation.returned.value_or(kNever));
    if (!operation.is_write) continue;
    ASSERT(!cluster.written, "value {} is written twice", operation.value);
    cluster.written = true;
    cluster.write_invoked = operation.invoked;
  }
  return clusters;
}

}  // namespace

std::size_t RegisterHistory::invoke_write(std::uint32_t client, std::uint64_t value) {
  ASSERT(value != kInitialValue);
  operations_.push_back({.client = client,
                         .is_write = true,
                         .value = value,
                         .invoked = ++ticks_,
                         .returned = std::nullopt});
  return operations_.size() - 1;
}

std::size_t RegisterHistory::invoke_read(std::uint32_t client) {
  operations_.push_back({.client = client,
                         .is_write = false,
                         .value = 0,
                         .invoked = ++ticks_,
                         .returned = std::nullopt});
  return operations_.size() - 1;
}

void RegisterHistory::return_write(std::size_t operation) {
  operations_[operation].returned = ++ticks_;
}

void RegisterHistory::return_read(std::size_t operation, std::uint64_t value) {
  operations_[operation].value = value;
  operations_[operation].returned = ++ticks_;
}

void RegisterHistory::add_to(base::Digest& digest) const {
  for (const Operation& operation : operations_) {
    digest.add(operation.client);
    digest.add(operation.value);
    digest.add(operation.invoked);
    digest.add(operation.returned.value_or(kNever));
  }
}

std::vector<std::string> check_register(const std::vector<Operation>& operations) {
  std::vector<std::string> problems;
  std::vector<Cluster> forward;
  std::vector<Cluster> backward;
  for (const auto& [value, cluster] : clusters_of(operations)) {
    if (!cluster.written) {
      problems.push_back(fmt::format("value {} was read and never written", value));
      continue;
    }
    if (cluster.first_return < cluster.write_invoked) {
      problems.push_back(fmt::format("value {} was read before it was written", value));
    }
    (cluster.is_forward() ? forward : backward).push_back(cluster);
  }
  std::ranges::sort(forward, {}, &Cluster::first_return);
  for (std::size_t index = 1; index < forward.size(); ++index) {
    if (forward[index].first_return < forward[index - 1].last_invocation) {
      problems.push_back(fmt::format("the register must hold both {} and {}",
                                     text_of(forward[index - 1]), text_of(forward[index])));
    }
  }
  for (const Cluster& inner : backward) {
    // The last forward zone that begins before this one: if any contains it, then that does.
    const auto after =
        std::ranges::upper_bound(forward, inner.last_invocation, {}, &Cluster::first_return);
    if (after == forward.begin()) continue;
    const Cluster& outer = *std::prev(after);
    if (inner.first_return < outer.last_invocation) {
      problems.push_back(fmt::format("the register must hold {} all the time and {} within it",
                                     text_of(outer), text_of(inner)));
    }
  }
  return problems;
}

}  // namespace helenus::sim
