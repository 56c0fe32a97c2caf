// Inbox: how other threads reach an event loop. Cores leave messages, the pool hands back finished
// work, and the loop is woken if it sleeps.
//
// Wake-ups are coalesced: only the first to arrive after the loop announced that it would sleep
// pays for a system call. The announcement and the look at the inbox, against the arrival and the
// look at the announcement, are Dekker's handshake: both sides write before they read, so at least
// one sees the other.
//
// Threads: `send`, `hand_back`, `close` from any; the rest from the loop's own.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "base/result.h"
#include "runtime/cores.h"
#include "runtime/native/descriptor.h"
#include "runtime/native/mutex.h"
#include "runtime/native/pool_job.h"
#include "runtime/runtime.h"

namespace helenus::runtime::native {

// How a message travels.
enum class Post : unsigned char {
  limited,  // refused when too many wait
  answer,   // always accepted: what it answers was limited
  control,  // of the host itself: always accepted and not counted
};

struct Letter {
  CoreMessage message;
  Post post;
};

class Inbox {
 public:
  static base::Result<std::unique_ptr<Inbox>> open(std::uint32_t cores);

  // Errors: closed; overloaded when Cores::kWaitingMax limited ones from that core are waiting.
  base::Result<void> send(CoreId from, CoreMessage message, Post post);
  // The job's finish() will run on the loop.
  void hand_back(PoolJob& job);
  // From now on messages are refused.
  void close();

  // Readable when the loop must wake; to be watched edge-triggered.
  int wake_descriptor() const { return wake_.number(); }
  // Whether anything may be waiting; costs a load.
  bool waiting() const { return waiting_.load(std::memory_order_acquire); }
  // Moves what is waiting to the end of `letters` and `jobs`, in order of arrival.
  void take(std::vector<Letter>& letters, std::vector<PoolJob*>& jobs);
  // Announces that the loop is going to sleep. Says no if something is waiting already.
  bool prepare_to_sleep();
  void awake() { asleep_.store(false, std::memory_order_relaxed); }

 private:
  Inbox(std::uint32_t cores, Descriptor wake) : wake_(std::move(wake)), waiting_from_(cores) {}
  void wake_if_asleep();

  const Descriptor wake_;
  std::atomic<bool> waiting_{false};
  std::atomic<bool> asleep_{false};
  Mutex mutex_;
  bool closed_ GUARDED_BY(mutex_) = false;
  std::vector<Letter> letters_ GUARDED_BY(mutex_);
  std::vector<PoolJob*> jobs_ GUARDED_BY(mutex_);
  std::vector<std::size_t> waiting_from_ GUARDED_BY(mutex_);
};

}  // namespace helenus::runtime::native
