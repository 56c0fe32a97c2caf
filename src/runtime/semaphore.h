// Semaphore: a number of units to share on one core, handed out first come, first served.
//
// A large request is not overtaken by small ones behind it, so nobody starves. The waiters are
// bounded too: beyond `waiters_max` an acquire fails with Errc::overloaded at once.
#pragma once

#include <cstddef>
#include <utility>

#include "runtime/task.h"
#include "runtime/wait_queue.h"

namespace helenus::runtime {

class Semaphore;

// Units held; given back when destroyed. The semaphore outlives it.
class [[nodiscard]] Permit {
 public:
  Permit() = default;
  Permit(Permit&& other) noexcept
      : semaphore_(std::exchange(other.semaphore_, nullptr)),
        units_(std::exchange(other.units_, 0)) {}
  Permit& operator=(Permit other) noexcept {
    std::swap(semaphore_, other.semaphore_);
    std::swap(units_, other.units_);
    return *this;
  }
  ~Permit() { release(); }

  std::size_t units() const { return units_; }
  void release();

 private:
  friend class Semaphore;
  Permit(Semaphore& semaphore, std::size_t units) : semaphore_(&semaphore), units_(units) {}

  Semaphore* semaphore_ = nullptr;
  std::size_t units_ = 0;
};

class Semaphore {
 public:
  Semaphore(Runtime& runtime, std::size_t units, std::size_t waiters_max)
      : units_total_(units), units_free_(units), waiters_max_(waiters_max), waiting_(runtime) {}
  ~Semaphore() {
    ASSERT(units_free_ == units_total_ || waiting_.runtime().executor.halted(), "{} units are out",
           units_total_ - units_free_);
  }

  // Requires: 0 < units <= the total. Errors: timeout, cancelled, overloaded. Units that are free
  // and that nobody waits for are handed out whatever `until` says.
  Task<base::Result<Permit>> acquire(std::size_t units, Until until);
  // Now or not at all: an empty Permit (units() == 0) means no. Requires: as for acquire.
  Permit try_acquire(std::size_t units);

  std::size_t units_free() const { return units_free_; }
  std::size_t units_total() const { return units_total_; }
  std::size_t waiters() const { return waiting_.size(); }

 private:
  friend class Permit;
  void give_back(std::size_t units);
  void hand_out();

  const std::size_t units_total_;
  std::size_t units_free_;
  const std::size_t waiters_max_;
  WaitQueue waiting_;
};

}  // namespace helenus::runtime
