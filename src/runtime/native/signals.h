// SignalWatcher: SIGINT and SIGTERM as an orderly event.
//
// The signals are blocked in every thread and read from a descriptor by a thread of the watcher's
// own, so that they are noticed even when every core is stuck. The first one asks for a stop; the
// second ends the process at once with kForcedExitCode, whatever it is doing. SIGPIPE and SIGXFSZ
// are ignored: a broken stream and a file at its limit are errors of the call that meets them.
//
// One at a time in a process. Open it before any other thread is made: threads inherit what is
// blocked. Undoes all of it when destroyed.
#pragma once

#include <csignal>
#include <functional>
#include <memory>
#include <thread>
#include <utility>

#include "base/result.h"
#include "runtime/native/descriptor.h"

namespace helenus::runtime::native {

class SignalWatcher {
 public:
  // As shells report a program that was interrupted.
  static constexpr int kForcedExitCode = 130;

  // From here on the signals wait to be read.
  static base::Result<std::unique_ptr<SignalWatcher>> open();
  ~SignalWatcher();
  SignalWatcher(const SignalWatcher&) = delete;
  SignalWatcher& operator=(const SignalWatcher&) = delete;

  // Begins to read them. `on_first` is called on the watcher's thread with the signal's number.
  base::Result<void> start(std::function<void(int)> on_first);
  // Reads no more of them. Harmless when not started.
  void stop();

 private:
  SignalWatcher(Descriptor signals, Descriptor end)
      : signals_(std::move(signals)), end_(std::move(end)) {}
  void watch();

  Descriptor signals_;
  Descriptor end_;
  std::function<void(int)> on_first_;
  sigset_t mask_before_{};
  struct sigaction pipe_before_{};
  struct sigaction file_size_before_{};
  std::thread thread_;
};

}  // namespace helenus::runtime::native
