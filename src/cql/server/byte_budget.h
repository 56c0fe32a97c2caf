// ByteBudget: so many bytes of memory for requests or results, shared by the connections of one
// core; ByteLimit: so many of a node, shared by the budgets of its cores. They never wait: what
// does not fit is refused.
//
// A part of the node's bytes for each core would either be too small for the largest request or add
// up to more than the node may take. So a core has what it needs as long as the node has it.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <utility>

#include "base/assert.h"

namespace helenus::cql {

// Core affinity: none.
class ByteLimit {
 public:
  explicit ByteLimit(std::size_t bytes_max) : bytes_max_(bytes_max) {}
  ByteLimit(const ByteLimit&) = delete;
  ByteLimit& operator=(const ByteLimit&) = delete;

  std::size_t bytes_max() const { return bytes_max_; }
  std::size_t bytes_taken() const { return bytes_taken_.load(std::memory_order_relaxed); }

  // False, and nothing changes, when they are not to be had.
  [[nodiscard]] bool try_take(std::size_t bytes) {
    std::size_t taken = bytes_taken_.load(std::memory_order_relaxed);
    do {
      if (bytes > bytes_max_ - taken) return false;
    } while (!bytes_taken_.compare_exchange_weak(taken, taken + bytes, std::memory_order_relaxed));
    return true;
  }
  void give_back(std::size_t bytes) {
    const std::size_t before = bytes_taken_.fetch_sub(bytes, std::memory_order_relaxed);
    ASSERT(before >= bytes);
  }

 private:
  const std::size_t bytes_max_;
  std::atomic<std::size_t> bytes_taken_{0};
};

// Core affinity: one core.
class ByteBudget {
 public:
  // A budget takes of a limit in pieces, so that small requests seldom touch what cores share.
  static constexpr std::size_t kPiece = std::size_t{64} << 10;

  // Of the limit, if there is one, and not more than `bytes_max`.
  explicit ByteBudget(std::size_t bytes_max, std::shared_ptr<ByteLimit> limit = nullptr)
      : bytes_max_(bytes_max), limit_(std::move(limit)) {}
  ByteBudget(const ByteBudget&) = delete;
  ByteBudget& operator=(const ByteBudget&) = delete;
  // Requires: no charge is left, unless the world has ended (a simulated crash).
  ~ByteBudget() {
    if (limit_ != nullptr) limit_->give_back(bytes_taken_);
  }

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
      if (!budget_->use(bytes - bytes_)) return false;
      bytes_ = bytes;
      return true;
    }
    void release() {
      if (bytes_ > 0) budget_->free(std::exchange(bytes_, 0));
    }

   private:
    ByteBudget* budget_;
    std::size_t bytes_ = 0;
  };

 private:
  static std::size_t in_pieces(std::size_t bytes) { return (bytes + kPiece - 1) / kPiece * kPiece; }

  bool use(std::size_t bytes) {
    if (bytes > bytes_max_ - bytes_used_) return false;
    const std::size_t needed = bytes_used_ + bytes;
    if (limit_ != nullptr && needed > bytes_taken_) {
      std::size_t wanted = in_pieces(needed);
      if (!limit_->try_take(wanted - bytes_taken_)) {
        wanted = needed;  // the last bytes there are
        if (!limit_->try_take(wanted - bytes_taken_)) return false;
      }
      bytes_taken_ = wanted;
    }
    bytes_used_ = needed;
    return true;
  }
  void free(std::size_t bytes) {
    bytes_used_ -= bytes;
    if (limit_ == nullptr) return;
    const std::size_t wanted = in_pieces(bytes_used_);
    if (wanted < bytes_taken_) limit_->give_back(std::exchange(bytes_taken_, wanted) - wanted);
  }

  const std::size_t bytes_max_;
  const std::shared_ptr<ByteLimit> limit_;
  std::size_t bytes_used_ = 0;
  std::size_t bytes_taken_ = 0;  // of the limit
};

}  // namespace helenus::cql
