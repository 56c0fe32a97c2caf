// WaitQueue: coroutines of one core that wait for something only their owner can tell. What
// semaphores, gates, channels and events are made of.
#pragma once

#include <cstddef>

#include "runtime/operation.h"

namespace helenus::runtime {

class WaitQueue {
 public:
  // `wanted` is the owner's to use: how many units a semaphore's waiter asks for.
  class Wait final : public Operation<void>, public ListHook<Wait> {
   public:
    Wait(WaitQueue& queue, std::size_t wanted_, Until until)
        : Operation(queue.runtime_, std::move(until)), wanted(wanted_), queue_(queue) {}
    // Still in the queue only when its core has halted: those who go on counting must not count it.
    ~Wait() {
      if (static_cast<ListHook<Wait>&>(*this).linked()) --queue_.size_;
    }
    const std::size_t wanted;

   private:
    friend class WaitQueue;
    void start() override { queue_.enter(*this); }
    void cancel() override { queue_.leave(*this); }
    WaitQueue& queue_;
  };

  explicit WaitQueue(Runtime& runtime) : runtime_(runtime) {}
  WaitQueue(const WaitQueue&) = delete;
  WaitQueue& operator=(const WaitQueue&) = delete;
  ~WaitQueue() { ASSERT(empty() || runtime_.executor.halted(), "destroyed with waiters"); }

  // Waits to be woken. Errors: timeout, cancelled, and whatever `wake_all` says.
  Wait wait(Until until, std::size_t wanted = 0) { return {*this, wanted, std::move(until)}; }

  bool empty() const { return size_ == 0; }
  std::size_t size() const { return size_; }
  // The one that has waited longest. Requires: !empty().
  const Wait& front() { return waits_.front(); }

  // Requires: !empty().
  void wake_one();
  void wake_all(const base::Result<void>& with = {});

  Runtime& runtime() { return runtime_; }

 private:
  void enter(Wait& wait);
  void leave(Wait& wait);

  Runtime& runtime_;
  IntrusiveList<Wait> waits_;
  std::size_t size_ = 0;
};

}  // namespace helenus::runtime
