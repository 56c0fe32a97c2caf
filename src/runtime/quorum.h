// quorum: asks several, goes on when enough have answered.
//
// The tasks run in the caller's TaskGroup; one for which the group has no room fails at once with
// Errc::overloaded. The wait ends as soon as `needed` have succeeded, as soon as so many have
// failed that they no longer can, or when it is cut; the stragglers run on in the group, and their
// answers are dropped. They must not refer to the caller's frame.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "runtime/event.h"
#include "runtime/task_group.h"

namespace helenus::runtime {

template <class T>
struct QuorumOutcome {
  enum class Verdict : unsigned char { reached, unreachable, timeout, cancelled };
  struct Answer {
    std::size_t task;  // its index among those given
    T value;
  };
  struct Failure {
    std::size_t task;
    base::Error error;
  };

  Verdict verdict = Verdict::unreachable;
  std::vector<Answer> answers;  // in the order they came; more than needed if they came together
  std::vector<Failure> failures;

  bool reached() const { return verdict == Verdict::reached; }
};

namespace detail {

template <class T>
struct QuorumState {
  explicit QuorumState(Runtime& runtime) : decided(runtime) {}
  std::size_t needed = 0;
  std::size_t asked = 0;
  bool open = true;
  QuorumOutcome<T> outcome;
  Event decided;

  bool is_decided() const {
    return outcome.answers.size() >= needed || outcome.failures.size() > asked - needed;
  }
};

template <class T>
Task<void> quorum_member(std::shared_ptr<QuorumState<T>> state, std::size_t index,
                         Task<base::Result<T>> task) {
  auto result = co_await std::move(task);
  if (!state->open) co_return;
  if (result) {
    state->outcome.answers.push_back({index, *std::move(result)});
  } else {
    state->outcome.failures.push_back({index, std::move(result).error()});
  }
  if (state->is_decided()) state->decided.set();
}

}  // namespace detail

// Requires: needed <= tasks.size().
template <class T>
Task<QuorumOutcome<T>> quorum(Runtime& runtime, TaskGroup& group, std::size_t needed,
                              std::vector<Task<base::Result<T>>> tasks, Until until) {
  using Verdict = typename QuorumOutcome<T>::Verdict;
  ASSERT(needed <= tasks.size(), "{} of {}", needed, tasks.size());
  auto state = std::make_shared<detail::QuorumState<T>>(runtime);
  state->needed = needed;
  state->asked = tasks.size();
  for (std::size_t index = 0; index < tasks.size(); ++index) {
    if (group.try_spawn(detail::quorum_member<T>(state, index, std::move(tasks[index])))) continue;
    state->outcome.failures.push_back({index, base::Error(base::Errc::overloaded)});
  }
  base::Result<void> waited;
  if (!state->is_decided()) waited = co_await state->decided.wait(std::move(until));
  state->open = false;
  QuorumOutcome<T> outcome = std::move(state->outcome);
  if (outcome.answers.size() >= needed) {
    outcome.verdict = Verdict::reached;
  } else if (waited) {
    outcome.verdict = Verdict::unreachable;
  } else {
    outcome.verdict =
        waited.failed_with(base::Errc::cancelled) ? Verdict::cancelled : Verdict::timeout;
  }
  co_return outcome;
}

}  // namespace helenus::runtime
