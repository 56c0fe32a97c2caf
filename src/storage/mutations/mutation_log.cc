#include "storage/mutations/mutation_log.h"

#include <utility>

#include "base/assert.h"

namespace helenus::storage {

using causality::Clock;
using causality::Dot;

void MutationLog::add(KeptMutation mutation, std::uint64_t sequence) {
  kept_.add(mutation.dot);
  const auto [at, added] = held_.try_emplace(mutation.dot, Held{.table = mutation.table,
                                                                .sequence = sequence,
                                                                .timestamp = mutation.timestamp,
                                                                .record = mutation.record,
                                                                .operation = mutation.operation});
  if (!added) return;
  memory_bytes_ += bytes_of(at->second);
  if (mutation.operation) by_operation_.emplace(*mutation.operation, mutation.dot);
}

std::vector<KeptMutation> MutationLog::of_table(TableId table, std::uint64_t sequence_last) const {
  std::vector<KeptMutation> mutations;
  for (const auto& [dot, held] : held_) {
    if (held.table != table || held.sequence > sequence_last) continue;
    mutations.push_back(kept_of(dot, held));
  }
  return mutations;
}

void MutationLog::moved_to_file(const std::vector<KeptMutation>& mutations) {
  for (const KeptMutation& mutation : mutations) erase(mutation.dot, mutation.dot);
}

void MutationLog::found_in_file(const Clock& dots) {
  kept_ = causality::join(kept_, dots);
}

void MutationLog::found_shed(const Clock& dots) {
  shed_ = causality::join(shed_, dots);
}

void MutationLog::shed(const Clock& dots) {
  kept_ = causality::subtract(kept_, dots);
  shed_ = causality::join(shed_, causality::subtract(dots, stable_));
}

void MutationLog::cover(const Clock& dots) {
  kept_ = causality::subtract(kept_, dots);
  shed_ = causality::subtract(shed_, dots);
  covered_ = causality::join(covered_, causality::subtract(dots, stable_));
  erase(dots);
}

void MutationLog::collect(const Clock& stable) {
  stable_ = causality::join(stable_, stable);
  kept_ = causality::subtract(kept_, stable);
  shed_ = causality::subtract(shed_, stable);
  covered_ = causality::subtract(covered_, stable);
  erase(stable);
  for (const causality::ClosedActors& closed : stable.closed()) {
    erase({{closed.node, closed.first}, 0}, {{closed.node, closed.last}, causality::kCounterMax});
  }
}

void MutationLog::erase(const Clock& dots) {
  if (held_.empty()) return;
  for (const Clock::Entry& entry : dots.entries()) {
    for (const causality::CounterRange& range : entry.counters.ranges()) {
      erase({entry.actor, range.first}, {entry.actor, range.last});
    }
  }
}

void MutationLog::erase(Dot first, Dot last) {
  const auto begin = held_.lower_bound(first);
  const auto end = held_.upper_bound(last);
  for (auto at = begin; at != end; ++at) {
    memory_bytes_ -= bytes_of(at->second);
    if (at->second.operation) by_operation_.erase({*at->second.operation, at->first});
  }
  held_.erase(begin, end);
}

std::optional<KeptMutation> MutationLog::find(const causality::OperationId& operation) const {
  const auto at = by_operation_.lower_bound({operation, Dot()});
  if (at == by_operation_.end() || at->first != operation) return std::nullopt;
  return kept_of(at->second, held_.at(at->second));
}

std::vector<KeptMutation> MutationLog::in_memory(const Clock& wanted, std::size_t bytes_max,
                                                 bool& all) const {
  ASSERT(wanted.closed().empty());
  all = false;
  std::vector<KeptMutation> mutations;
  std::size_t bytes = 0;
  for (const Clock::Entry& entry : wanted.entries()) {
    for (const causality::CounterRange& range : entry.counters.ranges()) {
      auto at = held_.lower_bound(Dot{entry.actor, range.first});
      for (; at != held_.end() && at->first <= Dot{entry.actor, range.last}; ++at) {
        if (bytes >= bytes_max && !mutations.empty()) return mutations;
        bytes += at->second.record.size();
        mutations.push_back(kept_of(at->first, at->second));
      }
    }
  }
  all = true;
  return mutations;
}

}  // namespace helenus::storage
