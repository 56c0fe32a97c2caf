// ByteBudget: so many bytes of memory for requests, shared by the connections of one core. It never
// waits: what does not fit is refused.
//
// Core affinity: one core.
#pragma once

#include <cstddef>
#include <utility>

#include "base/assert.h"

namespace helenus::cql {

class ByteBudget {
 public:
  explicit ByteBudget(std::size_t bytes_max) : bytes_max_(bytes_max) {}
  ByteBudget(const ByteBudget&) = delete;
  ByteBudget& operator=(const ByteBudget&) = delete;

  std::size_t bytes_max() const { return bytes_max_; }
  std::size_t bytes_used() const { return bytes_used_; }

  // A part of the budget; given back when destroyed. The budget outlives it.
  class [[nodiscard]] Charge {
   public:
    explicit Charge(ByteBudget& budget) : budget_(&budget) {}
    Charge(Charge&& other) noexcept
        : budget_(other.budget_), bytes_(std::exchange(other.bytes_, 0)) {}
    Charge& operator=(Charge&& other) noexcept {
      std::swap(budget_, other.budget_);
      std::swap(bytes_, other.bytes_);
      return *this;
    }
    ~Charge() { release(); }

    std::size_t bytes() const { return bytes_; }
    // Holds `bytes` from now on, unless it holds as many already. False, and nothing changes, when
    // they are not to be had.
    [[nodiscard]] bool grow_to(std::size_t bytes) {
      if (bytes <= bytes_) return true;
      if (bytes - bytes_ > budget_->bytes_max_ - budget_->bytes_used_) return false;
      budget_->bytes_used_ += bytes - std::exchange(bytes_, bytes);
      return true;
    }
    void release() { budget_->bytes_used_ -= std::exchange(bytes_, 0); }

   private:
    ByteBudget* budget_;
    std::size_t bytes_ = 0;
  };

 private:
  const std::size_t bytes_max_;
  std::size_t bytes_used_ = 0;
};

}  // namespace helenus::cql
