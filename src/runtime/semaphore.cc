#include "runtime/semaphore.h"

namespace helenus::runtime {

void Permit::release() {
  if (semaphore_ == nullptr) return;
  std::exchange(semaphore_, nullptr)->give_back(std::exchange(units_, 0));
}

Permit Semaphore::try_acquire(std::size_t units) {
  ASSERT(units > 0 && units <= units_total_, "{} of {} units", units, units_total_);
  if (!waiting_.empty() || units > units_free_) return {};
  units_free_ -= units;
  return {*this, units};
}

Task<base::Result<Permit>> Semaphore::acquire(std::size_t units, Until until) {
  if (Permit permit = try_acquire(units); permit.units() > 0) co_return std::move(permit);
  if (waiting_.size() >= waiters_max_) {
    co_return base::Error(base::Errc::overloaded, "{} wait already", waiting_.size());
  }
  auto woken = co_await waiting_.wait(std::move(until), units);
  if (!woken) {
    // The front may have been the large request that held the others back.
    hand_out();
    co_return std::move(woken).error();
  }
  co_return Permit(*this, units);
}

void Semaphore::give_back(std::size_t units) {
  units_free_ += units;
  ASSERT(units_free_ <= units_total_);
  hand_out();
}

void Semaphore::hand_out() {
  // Whoever is woken owns its units from here on, before it runs.
  while (!waiting_.empty() && waiting_.front().wanted <= units_free_) {
    units_free_ -= waiting_.front().wanted;
    waiting_.wake_one();
  }
}

}  // namespace helenus::runtime
