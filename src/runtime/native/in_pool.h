// InPool<T>: awaits a function that blocks, run on the thread pool.
//
//   auto info = co_await InPool<FileInfo>(runtime, pool, inbox, [path] { return info_of(path); });
//
// It cannot be cut: the function runs to its end. What it captures travels to the other thread and
// comes back with the result.
#pragma once

#include <functional>
#include <optional>
#include <utility>

#include "runtime/native/thread_pool.h"
#include "runtime/operation.h"

namespace helenus::runtime::native {

template <class T>
class [[nodiscard]] InPool final : public Operation<T>, private PoolJob {
 public:
  using Function = std::move_only_function<base::Result<T>()>;

  InPool(Runtime& runtime, ThreadPool& pool, Inbox& home, Function function)
      : Operation<T>(runtime, Until::forever()),
        PoolJob(home),
        pool_(pool),
        function_(std::move(function)) {}

 private:
  void start() override {
    if (auto submitted = pool_.submit(*this); !submitted) {
      this->complete(std::move(submitted).error());
    }
  }
  void cancel() override {}
  void work() override { outcome_.emplace(function_()); }
  void finish() override { this->complete(std::move(*outcome_)); }

  ThreadPool& pool_;
  Function function_;
  std::optional<base::Result<T>> outcome_;
};

}  // namespace helenus::runtime::native
