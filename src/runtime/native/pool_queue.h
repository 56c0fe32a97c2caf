// PoolQueue: carries out file requests of one core by the thread pool, with calls that block. Where
// the kernel refuses io_uring.
#pragma once

#include <atomic>
#include <cerrno>

#include "runtime/native/file_request.h"
#include "runtime/native/thread_pool.h"

namespace helenus::runtime::native {

class PoolQueue final : public FileQueue {
 public:
  explicit PoolQueue(ThreadPool& pool) : pool_(pool) {}

  void start(FileRequest& request) override {
    if (auto submitted = pool_.submit(request); !submitted) {
      request.give_up(EAGAIN);
      request.finish();
    }
  }
  void cut(FileRequest& request) override {
    request.cut.store(true, std::memory_order_relaxed);
    if (!pool_.withdraw(request)) return;
    request.give_up(ECANCELED);
    request.finish();
  }

 private:
  ThreadPool& pool_;
};

}  // namespace helenus::runtime::native
