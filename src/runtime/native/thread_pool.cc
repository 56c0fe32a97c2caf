#include "runtime/native/thread_pool.h"

#include <system_error>
#include <utility>

#include "base/assert.h"
#include "runtime/native/inbox.h"
#include "runtime/native/system_error.h"

namespace helenus::runtime::native {

base::Result<std::unique_ptr<ThreadPool>> ThreadPool::open(std::size_t threads) {
  ASSERT(threads > 0);
  auto pool = std::unique_ptr<ThreadPool>(new ThreadPool);
  try {
    for (std::size_t i = 0; i < threads; ++i) {
      pool->threads_.emplace_back([&pool = *pool] { pool.serve(); });
    }
  } catch (const std::system_error& error) {
    return system_error(error.code().value(), "start a thread of the pool");
  }
  return pool;
}

ThreadPool::~ThreadPool() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
  }
  arrived_.notify_all();
  for (auto& thread : threads_) thread.join();
}

base::Result<void> ThreadPool::submit(PoolJob& job) {
  const MutexLock lock(mutex_);
  ASSERT(!stopping_);
  if (queued_ >= kQueuedMax) {
    return base::Error(base::Errc::overloaded, "{} jobs wait for the thread pool", queued_);
  }
  queue_.push_back(job);
  ++queued_;
  if (idle_ > 0) arrived_.notify_one();
  return {};
}

bool ThreadPool::withdraw(PoolJob& job) {
  const MutexLock lock(mutex_);
  if (!job.linked()) return false;
  job.unlink();
  --queued_;
  return true;
}

void ThreadPool::close_later(Descriptor descriptor) {
  const MutexLock lock(mutex_);
  ASSERT(!stopping_);
  to_close_.push_back(std::move(descriptor));
  if (idle_ > 0) arrived_.notify_one();
}

void ThreadPool::serve() {
  for (;;) {
    PoolJob* job = nullptr;
    std::vector<Descriptor> closing;
    {
      const MutexLock lock(mutex_);
      ++idle_;
      while (queue_.empty() && to_close_.empty() && !stopping_) arrived_.wait(mutex_);
      --idle_;
      if (queue_.empty() && to_close_.empty()) return;
      closing = std::exchange(to_close_, {});
      if (!queue_.empty()) {
        job = &queue_.pop_front();
        --queued_;
      }
    }
    if (job != nullptr) {
      job->work();
      job->home().hand_back(*job);
    }
  }
}

}  // namespace helenus::runtime::native
