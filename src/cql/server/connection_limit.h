// ConnectionLimit: so many connections of a node, whichever of its cores has them, and if wanted so
// many of one client's address (of IPv6 the first 64 bits). Connections come to cores as the system
// spreads them, which is not evenly: a limit for each core would refuse clients while others are
// free.
//
// Core affinity: none; shared by the servers of all cores.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/assert.h"
#include "cql/server/address_counters.h"
#include "runtime/address.h"

namespace helenus::cql {

class ConnectionLimit {
 public:
  struct PerAddress {
    std::size_t connections_max = 0;  // none if zero
    std::uint64_t hash_key = 0;       // drawn at random
  };
  enum class Admission : std::uint8_t { admitted, node_is_full, address_is_full };

  explicit ConnectionLimit(std::size_t connections_max) : ConnectionLimit(connections_max, {}) {}
  ConnectionLimit(std::size_t connections_max, PerAddress per_address)
      : connections_max_(connections_max), per_address_(per_address) {
    if (per_address_.connections_max > 0) by_address_.emplace(per_address_.hash_key);
  }
  ConnectionLimit(const ConnectionLimit&) = delete;
  ConnectionLimit& operator=(const ConnectionLimit&) = delete;

  // Whether one more may be served; it must leave then.
  [[nodiscard]] Admission try_enter(const runtime::Address& client) {
    if (current_.fetch_add(1, std::memory_order_relaxed) >= connections_max_) {
      current_.fetch_sub(1, std::memory_order_relaxed);
      return Admission::node_is_full;
    }
    if (!by_address_ || by_address_->add(client, 1) < per_address_.connections_max) {
      return Admission::admitted;
    }
    leave(client);
    return Admission::address_is_full;
  }
  void leave(const runtime::Address& client) {
    if (by_address_) by_address_->subtract(client, 1);
    const std::size_t before = current_.fetch_sub(1, std::memory_order_relaxed);
    ASSERT(before > 0);
  }

 private:
  const std::size_t connections_max_;
  const PerAddress per_address_;
  std::atomic<std::size_t> current_{0};
  std::optional<AddressCounters<std::uint32_t>> by_address_;
};

}  // namespace helenus::cql
