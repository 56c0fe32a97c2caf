// gather: asks as many replicas of a tablet as a level needs; when one fails, or does not answer
// for a while, another one. Only for what may be asked of several and twice: reads.
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include <absl/container/inlined_vector.h>
#include <fmt/format.h>

#include "base/result.h"
#include "model/node_id.h"
#include "replication/cluster/answer_times.h"
#include "replication/cluster/cluster_link.h"
#include "replication/cluster/requests_under_way.h"
#include "replication/map/level_rule.h"
#include "replication/map/replica_map.h"
#include "replication/messages/messages.h"
#include "replication/request/request_level.h"
#include "replication/request/speculation.h"
#include "runtime/clock.h"
#include "runtime/event.h"
#include "runtime/operation.h"
#include "runtime/task.h"
#include "runtime/task_group.h"

namespace helenus::replication {

// The members in the order in which they are asked: this node first, then those of its data centre,
// then as the placement has them; who is suspected last, and those that are down or in doubt not at
// all.
std::vector<const PlacedReplica*> in_order_of_asking(const PlacedTablet& tablet,
                                                     const ClusterLink& link);
// Whether they can meet the rule. Errors: unavailable, with the numbers in `report`.
base::Result<void> check_enough(const std::vector<const PlacedReplica*>& candidates,
                                const LevelRule& rule, LevelReport* report);

template <class Answer>
struct Gathered {
  model::NodeId from;
  Answer answer;
};

// How answers are waited for, beyond the level.
struct GatherOptions {
  AnswerTimes::Kind kind = AnswerTimes::Kind::point;
  Speculation speculation = {};
  // Who is told, if they are there. They outlive the task.
  RequestNotes* notes = nullptr;
  RequestUnderWay* request = nullptr;
};

using Places = absl::InlinedVector<CountedReplica, 8>;

// Who is asked, and what became of it: the part of gather() that does not wait.
class GatherPlan {
 public:
  GatherPlan(ClusterLink& link, const PlacedTablet& tablet, const LevelRule& rule);
  GatherPlan(const GatherPlan&) = delete;
  GatherPlan& operator=(const GatherPlan&) = delete;

  const std::vector<const PlacedReplica*>& candidates() const { return candidates_; }
  model::NodeId node(std::size_t index) const { return candidates_[index]->node; }
  // The first ones that meet the rule together: of each group as many as it requires. Once.
  std::vector<std::size_t> ask_first();
  // One more that could count; none is left.
  std::optional<std::size_t> ask_spare();
  bool has_spare() const { return spare().has_value(); }
  // How long one waits for those who are asked before another one is asked, too.
  std::optional<runtime::Duration> patience(AnswerTimes::Kind kind,
                                            const Speculation& speculation) const;

  void acknowledge(std::size_t index) { tally_->acknowledge(places_[index]); }
  // `with_error`: it said so itself.
  void fail(std::size_t index, bool with_error) {
    tally_->fail(places_[index]);
    errors_ += with_error ? 1 : 0;
  }
  bool met() const { return tally_->met(); }
  bool is_impossible() const { return tally_->is_impossible(); }
  void report_to(LevelReport* report) const;
  // The same where too few can be reached: it tells how many might have answered.
  void report_unavailable_to(LevelReport* report) const;
  const AckTally& tally() const { return *tally_; }

 private:
  std::optional<std::size_t> spare() const;

  ClusterLink& link_;
  const LevelRule& rule_;
  const std::vector<const PlacedReplica*> candidates_;
  Places places_;
  absl::InlinedVector<bool, 8> is_asked_;
  std::optional<AckTally> tally_;
  std::uint32_t errors_ = 0;
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

// Answers that come when nobody waits any more are dropped.
template <class Answer>
struct Closing {
  explicit Closing(runtime::Runtime& runtime)
      : state(std::make_shared<Gathering<Answer>>(runtime)) {}
  Closing(const Closing&) = delete;
  Closing& operator=(const Closing&) = delete;
  ~Closing() { state->open = false; }
  const std::shared_ptr<Gathering<Answer>> state;
};

// Says whose answers are waited for, while the plan is there.
class WaitingForReplicas {
 public:
  WaitingForReplicas(RequestUnderWay* request, const GatherPlan& plan) : request_(request) {
    if (request_ != nullptr) request_->enter("waits for replicas", &plan.tally());
  }
  WaitingForReplicas(const WaitingForReplicas&) = delete;
  WaitingForReplicas& operator=(const WaitingForReplicas&) = delete;
  ~WaitingForReplicas() {
    if (request_ != nullptr) request_->enter("merges answers");
  }

 private:
  RequestUnderWay* const request_;
};

// Nothing was heard.
inline bool is_silence(const base::Error& error) {
  return error.code() == base::Errc::timeout || error.code() == base::Errc::connection_lost ||
         error.code() == base::Errc::unavailable || error.code() == base::Errc::closed;
}

}  // namespace detail

// `ask` must not refer to the caller's frame: slow answers are waited for in the group when this
// has returned.
// Errors: unavailable (not enough are up), timeout, cancelled, or the error of a replica when too
// many failed.
template <class Answer>
runtime::Task<base::Result<std::vector<Gathered<Answer>>>> gather(
    ClusterLink& link, runtime::TaskGroup& group, const PlacedTablet& tablet, const LevelRule& rule,
    std::function<runtime::Task<base::Result<Answer>>(model::NodeId)> ask, GatherOptions options,
    runtime::Until until, LevelReport* report) {
  GatherPlan plan(link, tablet, rule);
  CO_TRY_VOID(check_enough(plan.candidates(), rule, report));
  const detail::WaitingForReplicas waiting(options.request, plan);
  const detail::Closing<Answer> gathering(link.runtime());
  detail::Gathering<Answer>& state = *gathering.state;
  const auto note = [&](std::string_view what, std::size_t index) {
    if (options.notes == nullptr) return;
    options.notes->note(fmt::format("{} {}", what, link.name_of(plan.node(index))));
  };
  const auto ask_one = [&](std::size_t index) {
    note("Asking", index);
    if (!group.try_spawn(
            detail::gather_one<Answer>(gathering.state, index, ask(plan.node(index))))) {
      state.arrived.emplace_back(index, base::Error(base::Errc::overloaded));
    }
  };
  const auto ask_spare = [&] {
    if (const auto spare = plan.ask_spare()) ask_one(*spare);
  };
  for (const std::size_t index : plan.ask_first()) ask_one(index);
  std::optional<runtime::Duration> patience = plan.patience(options.kind, options.speculation);
  if (options.speculation.kind == Speculation::Kind::always) {
    ask_spare();
    patience.reset();
  }
  auto ask_more_at = link.runtime().clock.now() + patience.value_or(runtime::Duration::max());
  std::vector<Gathered<Answer>> answers;
  std::optional<base::Error> failure;
  for (;;) {
    for (auto& [index, result] : std::exchange(state.arrived, {})) {
      note(result ? "Answer of" : "Failure of", index);
      if (result) {
        plan.acknowledge(index);
        answers.push_back({.from = plan.node(index), .answer = *std::move(result)});
        continue;
      }
      plan.fail(index, !detail::is_silence(result.error()));
      // What a replica said tells more than that another one said nothing; most of all that it
      // may answer by newer metadata.
      if (!failure || detail::is_silence(*failure) || is_stale(result.error())) {
        failure = std::move(result).error();
      }
      ask_spare();
    }
    state.news.reset();
    plan.report_to(report);
    if (plan.met()) break;
    if (plan.is_impossible()) {
      if (failure && failure->code() == base::Errc::unavailable) plan.report_unavailable_to(report);
      co_return failure ? *std::move(failure)
                        : base::Error(base::Errc::timeout, "too few replicas answered");
    }
    if (!state.arrived.empty()) continue;
    const bool may_ask_more = patience && plan.has_spare() && ask_more_at < until.deadline;
    runtime::Until wait = until;
    if (may_ask_more) wait.deadline = ask_more_at;
    const auto waited = co_await state.news.wait(std::move(wait));
    if (waited) continue;
    if (waited.error().code() != base::Errc::timeout || !may_ask_more) co_return waited.error();
    ask_spare();
    *patience *= 2;
    ask_more_at = link.runtime().clock.now() + *patience;
  }
  co_return answers;
}

}  // namespace helenus::replication
