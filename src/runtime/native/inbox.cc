#include "runtime/native/inbox.h"

#include <algorithm>
#include <cerrno>
#include <iterator>

#include <sys/eventfd.h>

#include "base/assert.h"
#include "runtime/native/system_error.h"

namespace helenus::runtime::native {

base::Result<std::unique_ptr<Inbox>> Inbox::open(std::uint32_t cores) {
  Descriptor wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake.valid()) return system_error(errno, "make an event descriptor");
  return std::unique_ptr<Inbox>(new Inbox(cores, std::move(wake)));
}

base::Result<void> Inbox::send(CoreId from, CoreMessage message, Post post) {
  {
    const MutexLock lock(mutex_);
    if (closed_) return base::Error(base::Errc::closed);
    if (post == Post::limited) {
      std::size_t& waiting_from = waiting_from_[from.value()];
      if (waiting_from >= Cores::kWaitingMax) return base::Error(base::Errc::overloaded);
      ++waiting_from;
    }
    letters_.push_back({std::move(message), post});
    waiting_.store(true, std::memory_order_seq_cst);
  }
  wake_if_asleep();
  return {};
}

void Inbox::hand_back(PoolJob& job) {
  {
    const MutexLock lock(mutex_);
    jobs_.push_back(&job);
    waiting_.store(true, std::memory_order_seq_cst);
  }
  wake_if_asleep();
}

void Inbox::close() {
  const MutexLock lock(mutex_);
  closed_ = true;
}

void Inbox::wake_if_asleep() {
  if (!asleep_.load(std::memory_order_seq_cst) || !asleep_.exchange(false)) return;
  const std::uint64_t one = 1;
  // The counter cannot overflow: it would take 2^64 wake-ups.
  const auto written = ::write(wake_.number(), &one, sizeof one);
  ASSERT(written == sizeof one, "cannot wake a loop: {}", system_text(errno));
}

void Inbox::take(std::vector<Letter>& letters, std::vector<PoolJob*>& jobs) {
  const MutexLock lock(mutex_);
  if (letters.empty()) {
    std::swap(letters, letters_);
  } else {
    std::ranges::move(letters_, std::back_inserter(letters));
    letters_.clear();
  }
  jobs.insert(jobs.end(), jobs_.begin(), jobs_.end());
  jobs_.clear();
  std::ranges::fill(waiting_from_, 0);
  waiting_.store(false, std::memory_order_relaxed);
}

bool Inbox::prepare_to_sleep() {
  asleep_.store(true, std::memory_order_seq_cst);
  if (!waiting_.load(std::memory_order_seq_cst)) return true;
  awake();
  return false;
}

}  // namespace helenus::runtime::native
