// ConnectionLimit: so many connections of a node, whichever of its cores has them. Connections come
// to cores as the system spreads them, which is not evenly: a limit for each core would refuse
// clients while others are free.
//
// Core affinity: none; shared by the servers of all cores.
#pragma once

#include <atomic>
#include <cstddef>

#include "base/assert.h"

namespace helenus::cql {

class ConnectionLimit {
 public:
  explicit ConnectionLimit(std::size_t connections_max) : connections_max_(connections_max) {}
  ConnectionLimit(const ConnectionLimit&) = delete;
  ConnectionLimit& operator=(const ConnectionLimit&) = delete;

  // Whether one more may be served; it must leave then.
  [[nodiscard]] bool try_enter() {
    if (current_.fetch_add(1, std::memory_order_relaxed) < connections_max_) return true;
    current_.fetch_sub(1, std::memory_order_relaxed);
    return false;
  }
  void leave() {
    const std::size_t before = current_.fetch_sub(1, std::memory_order_relaxed);
    ASSERT(before > 0);
  }

 private:
  const std::size_t connections_max_;
  std::atomic<std::size_t> current_{0};
};

}  // namespace helenus::cql
