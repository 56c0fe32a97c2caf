// IncompleteRequests: how much memory the bodies of requests take that have not come whole, on all
// cores of a node.
//
// A body takes memory as it comes, and nobody but its client knows when the rest will. Without a
// limit of their own a few clients that send almost all of a large body, and then wait, would hold
// all there is for requests. So bodies that are coming in have a part of it: what is left is for
// requests that are there. And one address has less than all of that part: clients elsewhere get
// large requests through beside it.
//
//   bytes of all requests (ByteLimit)       |-------------------------------------------|
//   bodies that are coming in, of all       |-------------------------------|  three quarters
//   of one address                          |---------------|                  half of them
//
// One body of the largest size is always let in, where these parts are smaller.
//
// What finds no room keeps what it has and waits. Many that wait for one another would do so for
// ever; so one body at a time, that has the *turn*, is let in beside the parts and takes nothing of
// them. It waits for none of the others: it comes whole or is given up, and then the next one takes
// the turn. So bodies that their clients send to the end all come in, one after the other at the
// least, while there is memory for one more body besides those parts. Where there is not, or where
// who has the turn is slow, it is for those who wait to give up in time.
//
// Core affinity: none; shared by the servers of all cores.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "base/assert.h"
#include "cql/server/address_counters.h"
#include "runtime/address.h"

namespace helenus::cql {

class IncompleteRequests {
 public:
  struct Limits {
    std::size_t bytes_max = 0;
    std::size_t bytes_per_address_max = 0;
  };
  // Where all requests take so much, and one body so much.
  static Limits limits_within(std::size_t request_bytes_max, std::size_t body_size_max) {
    return {.bytes_max = std::max(request_bytes_max / 4 * 3, body_size_max),
            .bytes_per_address_max = std::max(request_bytes_max / 8 * 3, body_size_max)};
  }

  // The key is drawn at random.
  IncompleteRequests(Limits limits, std::uint64_t hash_key)
      : limits_(limits), by_address_(hash_key) {}
  IncompleteRequests(const IncompleteRequests&) = delete;
  IncompleteRequests& operator=(const IncompleteRequests&) = delete;

  // Without what has the turn.
  std::size_t bytes() const { return bytes_.load(std::memory_order_relaxed); }

  // What one body has; given back when destroyed. What it is of outlives it.
  class [[nodiscard]] Charge {
   public:
    Charge(IncompleteRequests& of, const runtime::Address& client) : of_(of), client_(client) {}
    Charge(const Charge&) = delete;
    Charge& operator=(const Charge&) = delete;
    ~Charge() { release(); }

    std::size_t bytes() const { return bytes_; }
    // Holds `bytes` from now on, unless it holds as many already. False, and nothing changes, when
    // they are not to be had and another one has the turn.
    [[nodiscard]] bool grow_to(std::size_t bytes) {
      if (bytes <= bytes_) return true;
      if (!has_turn_ && of_.take(client_, bytes - bytes_)) {
        bytes_ = bytes;
        return true;
      }
      if (!has_turn_ && !of_.try_take_turn()) return false;
      if (!has_turn_) of_.give_back(client_, bytes_);
      has_turn_ = true;
      bytes_ = bytes;
      return true;
    }
    void release() {
      const std::size_t bytes = std::exchange(bytes_, 0);
      if (std::exchange(has_turn_, false)) {
        of_.give_back_turn();
      } else if (bytes > 0) {
        of_.give_back(client_, bytes);
      }
    }

   private:
    IncompleteRequests& of_;
    const runtime::Address client_;
    std::size_t bytes_ = 0;
    bool has_turn_ = false;
  };

 private:
  // Two that ask at once may both be refused what one of them could have had.
  bool take(const runtime::Address& client, std::size_t bytes) {
    const std::size_t all = bytes_.fetch_add(bytes, std::memory_order_relaxed);
    const std::size_t own = by_address_.add(client, bytes);
    if (all + bytes <= limits_.bytes_max && own + bytes <= limits_.bytes_per_address_max) {
      return true;
    }
    give_back(client, bytes);
    return false;
  }
  bool try_take_turn() { return !turn_is_taken_.exchange(true, std::memory_order_relaxed); }
  void give_back_turn() { turn_is_taken_.store(false, std::memory_order_relaxed); }
  void give_back(const runtime::Address& client, std::size_t bytes) {
    by_address_.subtract(client, bytes);
    const std::size_t before = bytes_.fetch_sub(bytes, std::memory_order_relaxed);
    ASSERT(before >= bytes);
  }

  const Limits limits_;
  std::atomic<std::size_t> bytes_{0};
  std::atomic<bool> turn_is_taken_{false};
  AddressCounters<std::size_t> by_address_;
};

}  // namespace helenus::cql
