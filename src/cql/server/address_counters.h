// AddressCounters: a number for every client's address (of IPv6 the first 64 bits), without a lock
// and without a list of addresses: in a few rows of counters, in each of which an address has the
// place that a keyed hash gives it, and the least of its counters is taken for its own (a count-min
// sketch). It is never too small; it is too large only where others meet the address in every row,
// which among 8192 connections hardly happens. Who does not know the key cannot bring it about.
//
// Core affinity: none; shared by all cores.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>

#include "base/assert.h"
#include "base/bytes.h"
#include "base/hash.h"
#include "runtime/address.h"

namespace helenus::cql {

template <class Number>
class AddressCounters {
 public:
  // The key is drawn at random.
  explicit AddressCounters(std::uint64_t hash_key)
      : hash_key_(hash_key), counters_(std::make_unique<Counters>()) {}

  // Adds to the number of the client; what it was before.
  Number add(const runtime::Address& client, Number number) {
    Number least = std::numeric_limits<Number>::max();
    for (std::size_t row = 0; row < kRows; ++row) {
      const Number before = counter_of(client, row).fetch_add(number, std::memory_order_relaxed);
      if (before < least) least = before;
    }
    return least;
  }
  // Requires: as much was added before.
  void subtract(const runtime::Address& client, Number number) {
    for (std::size_t row = 0; row < kRows; ++row) {
      const Number before = counter_of(client, row).fetch_sub(number, std::memory_order_relaxed);
      ASSERT(before >= number);
    }
  }

 private:
  static constexpr std::size_t kRows = 4;
  static constexpr std::size_t kColumns = 16'384;
  using Counters = std::array<std::array<std::atomic<Number>, kColumns>, kRows>;

  std::atomic<Number>& counter_of(const runtime::Address& client, std::size_t row) {
    // Of an IPv6 address the network: whoever has one has as many addresses as there are.
    const base::ByteView network = base::as_bytes(client.ip_bytes().substr(0, 8));
    return (*counters_)[row][base::hash64(network, hash_key_ + row) % kColumns];
  }

  const std::uint64_t hash_key_;
  const std::unique_ptr<Counters> counters_;
};

}  // namespace helenus::cql
