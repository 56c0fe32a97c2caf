// run_on: runs a part of this task on another core, and waits for it to its end.
//
//   const auto read = [key](Runtime& there, Until until) { return read_on_core(there, key, until);
//   }; auto row = co_await run_on<Row>(rt, owner, read, until);
//
// It differs from call_on in what happens when the wait is cut: the stop travels to the other core,
// the task ends there in its own time, and only then does the wait end. So nothing is left behind,
// and what the function borrows from the caller's frame stays where it is as long as it is used
// (nobody else may change it meanwhile). The result that was on its way is not lost: a task that
// succeeds after all is a success.
//
// `until` over there has the caller's deadline and a stop token of that core; the caller's own
// token never leaves its core. The function is kept until its task has ended: its captures may be
// used throughout. The task has the caller's priority over there.
//
// Requires: the other core runs until the task has ended, as it does while the program runs.
#pragma once

#include <functional>
#include <memory>
#include <utility>

#include "runtime/cores.h"
#include "runtime/operation.h"
#include "runtime/stop_token.h"
#include "runtime/task.h"
#include "runtime/task_group.h"

namespace helenus::runtime {

template <class T>
using CoreWork = std::move_only_function<Task<base::Result<T>>(Runtime& there, Until until)>;

namespace detail {

// The caller's side. It lives in the caller's frame until the answer has come.
template <class T>
class CoreRun final : public Operation<T> {
 public:
  CoreRun(Runtime& here, CoreId to, CoreWork<T> work, Until until)
      : Operation<T>(here, until), to_(to), deadline_(until.deadline), work_(std::move(work)) {}

 private:
  // Touched over there alone. A stop may arrive when the task has ended, and its answer too: so it
  // belongs to the messages, and not to either side.
  struct Remote {
    StopSource* running = nullptr;
    bool stopped = false;
  };

  static Task<void> serve(Runtime& there, CoreId caller, CoreRun* waiting, CoreWork<T> work,
                          MonotonicTime deadline, std::shared_ptr<Remote> remote) {
    StopSource stop;
    if (remote->stopped) stop.request_stop();
    remote->running = &stop;
    auto result = co_await work(there, Until{.deadline = deadline, .stop = stop.token()});
    remote->running = nullptr;
    answer(there, caller, waiting, std::move(result));
  }
  static void answer(Runtime& there, CoreId caller, CoreRun* waiting, base::Result<T> result) {
    there.cores.reply(caller, [waiting, result = std::move(result)](Runtime&) mutable {
      waiting->complete(std::move(result));
    });
  }

  void start() override {
    const CoreId caller = this->runtime().cores.here();
    const Priority priority = this->runtime().executor.running();
    auto sent = this->runtime().cores.send(to_, [caller, priority, waiting = this,
                                                 work = std::move(work_), deadline = deadline_,
                                                 remote = remote_](Runtime& there) mutable {
      if (there.cores.guests().size() >= Cores::kGuestsMax) {
        answer(there, caller, waiting, base::Error(base::Errc::overloaded));
        return;
      }
      there.cores.guests().spawn(
          serve(there, caller, waiting, std::move(work), deadline, std::move(remote)), priority);
    });
    if (!sent) this->complete(std::move(sent).error());
  }
  // One message for each that was accepted, so as bounded as an answer is.
  void cancel() override {
    this->runtime().cores.reply(to_, [remote = remote_](Runtime&) {
      remote->stopped = true;
      if (remote->running != nullptr) remote->running->request_stop();
    });
  }

  const CoreId to_;
  const MonotonicTime deadline_;
  CoreWork<T> work_;
  std::shared_ptr<Remote> remote_ = std::make_shared<Remote>();
};

}  // namespace detail

// Errors: those of the task; overloaded, closed (that core: nothing was run); timeout, cancelled
// (the task has ended, too).
template <class T>
detail::CoreRun<T> run_on(Runtime& here, CoreId to, CoreWork<T> work, Until until) {
  return {here, to, std::move(work), std::move(until)};
}

}  // namespace helenus::runtime
