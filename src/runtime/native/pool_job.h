// PoolJob: work that blocks, done by a thread of the pool and finished on the core that asked.
#pragma once

#include "runtime/intrusive_list.h"

namespace helenus::runtime::native {

class Inbox;

// Lives in its owner. From submission until finish() is called it belongs to the pool.
class PoolJob : public ListHook<PoolJob> {
 public:
  explicit PoolJob(Inbox& home) : home_(home) {}

  // On a thread of the pool.
  virtual void work() = 0;
  // On the home core, after work(). May destroy the job.
  virtual void finish() = 0;

  Inbox& home() { return home_; }

 protected:
  ~PoolJob() = default;

 private:
  Inbox& home_;
};

}  // namespace helenus::runtime::native
