// ConnectionLimit: so many connections of a node, whichever of its cores has them, and if wanted so
// many of one client's address (of IPv6 the first 64 bits). Connections come to cores as the system
// spreads them, which is not evenly: a limit for each core would refuse clients while others are
// free.
//
// Addresses are counted without a lock and without a list of them: in a few rows of counters, in
// each of which an address has the place that a keyed hash gives it, and the least of its counters
// is taken for its own (a count-min sketch). It is never too small; it is too large only where
// other clients meet the address in every row, which among 8192 connections hardly happens, and by
// one connection or two when it does. Who does not know the key cannot bring it about.
//
// Core affinity: none; shared by the servers of all cores.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/assert.h"
#include "base/bytes.h"
#include "base/hash.h"
#include "runtime/address.h"

namespace helenus::cql {

class ConnectionLimit {
 public:
  struct PerAddress {
    std::size_t connections_max = 0;  // none if zero
    std::uint64_t hash_key = 0;       // drawn at random
  };
  enum class Entry : std::uint8_t { admitted, node_is_full, address_is_full };

  explicit ConnectionLimit(std::size_t connections_max) : ConnectionLimit(connections_max, {}) {}
  ConnectionLimit(std::size_t connections_max, PerAddress per_address)
      : connections_max_(connections_max), per_address_(per_address) {
    if (per_address_.connections_max > 0) counters_ = std::make_unique<Counters>();
  }
  ConnectionLimit(const ConnectionLimit&) = delete;
  ConnectionLimit& operator=(const ConnectionLimit&) = delete;

  // Whether one more may be served; it must leave then.
  [[nodiscard]] Entry try_enter(const runtime::Address& client) {
    if (current_.fetch_add(1, std::memory_order_relaxed) >= connections_max_) {
      current_.fetch_sub(1, std::memory_order_relaxed);
      return Entry::node_is_full;
    }
    if (counters_ == nullptr || count(client) < per_address_.connections_max) {
      return Entry::admitted;
    }
    leave(client);
    return Entry::address_is_full;
  }
  void leave(const runtime::Address& client) {
    if (counters_ != nullptr) {
      for (std::size_t row = 0; row < kRows; ++row) {
        counter_of(client, row).fetch_sub(1, std::memory_order_relaxed);
      }
    }
    const std::size_t before = current_.fetch_sub(1, std::memory_order_relaxed);
    ASSERT(before > 0);
  }

 private:
  static constexpr std::size_t kRows = 4;
  static constexpr std::size_t kColumns = 16'384;
  using Counters = std::array<std::array<std::atomic<std::uint32_t>, kColumns>, kRows>;

  std::atomic<std::uint32_t>& counter_of(const runtime::Address& client, std::size_t row) {
    // Of an IPv6 address the network: whoever has one has as many addresses as there are.
    const base::ByteView network = base::as_bytes(client.ip_bytes().substr(0, 8));
    return (*counters_)[row][base::hash64(network, per_address_.hash_key + row) % kColumns];
  }
  // Adds one; how many there were.
  std::size_t count(const runtime::Address& client) {
    std::size_t least = SIZE_MAX;
    for (std::size_t row = 0; row < kRows; ++row) {
      const std::size_t before = counter_of(client, row).fetch_add(1, std::memory_order_relaxed);
      if (before < least) least = before;
    }
    return least;
  }

  const std::size_t connections_max_;
  const PerAddress per_address_;
  std::atomic<std::size_t> current_{0};
  std::unique_ptr<Counters> counters_;
};

}  // namespace helenus::cql
