// ThreadPool: a few threads for system calls that block, shared by all cores of the process.
//
// Jobs start in the order submitted. The pool is asked to stop only when nothing is submitted to
// it any more; what is queued by then is still done.
//
// Threads: any.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "base/result.h"
#include "runtime/intrusive_list.h"
#include "runtime/native/descriptor.h"
#include "runtime/native/mutex.h"
#include "runtime/native/pool_job.h"

namespace helenus::runtime::native {

class ThreadPool {
 public:
  // Jobs that may wait for a thread.
  static constexpr std::size_t kQueuedMax = 65536;

  // Requires: threads > 0. Errors: overloaded when the system gives no more threads.
  static base::Result<std::unique_ptr<ThreadPool>> open(std::size_t threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  // Errors: overloaded when kQueuedMax wait; the job then stays the caller's.
  base::Result<void> submit(PoolJob& job);
  // Takes back a job that no thread has begun. Says no if it is too late: finish() will come.
  bool withdraw(PoolJob& job);
  // Closes the descriptor in the background: the last close of a removed file takes its time.
  void close_later(Descriptor descriptor);

 private:
  ThreadPool() = default;
  void serve();

  Mutex mutex_;
  Condition arrived_;
  IntrusiveList<PoolJob> queue_ GUARDED_BY(mutex_);
  std::size_t queued_ GUARDED_BY(mutex_) = 0;
  std::size_t idle_ GUARDED_BY(mutex_) = 0;
  std::vector<Descriptor> to_close_ GUARDED_BY(mutex_);
  bool stopping_ GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
};

}  // namespace helenus::runtime::native
