// gather: asks as many replicas of a tablet as a level needs; when one fails, or does not answer
// for a while, another one. Only for what may be asked of several and twice: reads.
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/result.h"
#include "model/node_id.h"
#include "replication/cluster/cluster_link.h"
#include "replication/map/level_rule.h"
#include "replication/map/replica_map.h"
#include "replication/request/request_level.h"
#include "runtime/clock.h"
#include "runtime/event.h"
#include "runtime/operation.h"
#include "runtime/task.h"
#include "runtime/task_group.h"

namespace helenus::replication {

// The members in the order in which they are asked: this node first, then as the placement has
// them; those that are down not at all.
std::vector<const PlacedReplica*> in_order_of_asking(const PlacedTablet& tablet,
                                                     const ClusterLink& link);
// The first of them that meet the rule together. Errors: unavailable, with the numbers in `report`.
base::Result<std::size_t> count_needed(const std::vector<const PlacedReplica*>& candidates,
                                       const LevelRule& rule, LevelReport* report);

template <class Answer>
struct Gathered {
  model::NodeId from;
  Answer answer;
};

namespace detail {

template <class Answer>
struct Gathering {
  explicit Gathering(runtime::Runtime& runtime) : news(runtime) {}
  runtime::Event news;
  bool open = true;
  std::vector<std::pair<std::size_t, base::Result<Answer>>> arrived;
};

template <class Answer>
runtime::Task<void> gather_one(std::shared_ptr<Gathering<Answer>> state, std::size_t index,
                               runtime::Task<base::Result<Answer>> task) {
  auto result = co_await std::move(task);
  if (!state->open) co_return;
  state->arrived.emplace_back(index, std::move(result));
  state->news.set();
}

}  // namespace detail

// `ask` must not refer to the caller's frame: slow answers are waited for in the group when this
// has returned. `patience`: after so long without an answer another one is asked.
// Errors: unavailable (not enough are up), timeout, cancelled, or the error of a replica when too
// many failed.
template <class Answer>
runtime::Task<base::Result<std::vector<Gathered<Answer>>>> gather(
    ClusterLink& link, runtime::TaskGroup& group, const PlacedTablet& tablet, const LevelRule& rule,
    std::function<runtime::Task<base::Result<Answer>>(model::NodeId)> ask,
    runtime::Duration patience, runtime::Until until, LevelReport* report) {
  const auto candidates = in_order_of_asking(tablet, link);
  CO_TRY(const std::size_t needed, count_needed(candidates, rule, report));
  auto state = std::make_shared<detail::Gathering<Answer>>(link.runtime());
  std::vector<DatacentreIndex> places;
  for (const PlacedReplica* replica : candidates) places.push_back(replica->datacentre);
  AckTally tally(rule, places);
  std::size_t asked = 0;
  const auto ask_next = [&] {
    const std::size_t index = asked++;
    if (!group.try_spawn(detail::gather_one<Answer>(state, index, ask(candidates[index]->node)))) {
      state->arrived.emplace_back(index, base::Error(base::Errc::overloaded));
      state->news.set();
    }
  };
  while (asked < needed) ask_next();
  std::vector<Gathered<Answer>> answers;
  std::optional<base::Error> failure;
  while (!tally.met()) {
    for (auto& [index, result] : std::exchange(state->arrived, {})) {
      if (result) {
        tally.acknowledge(places[index]);
        answers.push_back({.from = candidates[index]->node, .answer = *std::move(result)});
        continue;
      }
      tally.fail(places[index]);
      failure = std::move(result).error();
      if (asked < candidates.size()) ask_next();
    }
    state->news.reset();
    if (report != nullptr) {
      report->received = tally.acknowledged();
      report->failed = tally.failed();
    }
    if (tally.met()) break;
    if (tally.is_impossible()) {
      state->open = false;
      co_return failure ? *std::move(failure)
                        : base::Error(base::Errc::timeout, "too few replicas answered");
    }
    if (!state->arrived.empty()) continue;
    runtime::Until wait = until;
    const auto patient_until = link.runtime().clock.now() + patience;
    const bool may_ask_more = asked < candidates.size();
    if (may_ask_more) wait.deadline = std::min(wait.deadline, patient_until);
    const auto waited = co_await state->news.wait(std::move(wait));
    if (waited) continue;
    const bool is_over = waited.error().code() != base::Errc::timeout || !may_ask_more ||
                         link.runtime().clock.now() >= until.deadline;
    if (is_over) {
      state->open = false;
      co_return waited.error();
    }
    ask_next();
  }
  state->open = false;
  co_return answers;
}

}  // namespace helenus::replication
