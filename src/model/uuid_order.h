// UUIDs as bytes whose memcmp order is Cassandra's order of them, and back.
//
// A uuid goes by its version; those of version 1 then by their time; then by their bytes. A
// timeuuid goes by its time, and then by its other eight bytes, each of them signed.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/assert.h"
#include "base/bytes.h"
#include "base/codec.h"
#include "base/uuid.h"

namespace helenus::model {

using UuidOrder = std::array<std::byte, base::Uuid::kSize + 1>;
using TimeuuidOrder = std::array<std::byte, base::Uuid::kSize>;

namespace detail {

// time_low, time_mid, time_high_and_version to time_high_and_version, time_mid, time_low, and back.
constexpr std::uint64_t time_first(std::uint64_t high) {
  return high << 48 | (high << 16 & 0xffff00000000) | high >> 32;
}
constexpr std::uint64_t time_last(std::uint64_t ordered) {
  return ordered << 32 | (ordered >> 16 & 0xffff0000) | ordered >> 48;
}
inline constexpr std::uint64_t kSignBits = 0x8080808080808080;

}  // namespace detail

// Requires, all: a view of the size of a Uuid, or of the order's.
inline TimeuuidOrder order_of_timeuuid(base::ByteView uuid) {
  ASSERT(uuid.size() == base::Uuid::kSize);
  TimeuuidOrder order{};
  const auto high = base::load_be<std::uint64_t>(uuid.data());
  const auto low = base::load_be<std::uint64_t>(uuid.data() + 8);
  base::store_be(order.data(), detail::time_first(high));
  base::store_be(order.data() + 8, low ^ detail::kSignBits);
  return order;
}

inline base::Uuid timeuuid_of(base::ByteView order) {
  ASSERT(order.size() == base::Uuid::kSize);
  base::Uuid::Octets octets{};
  const auto high = base::load_be<std::uint64_t>(order.data());
  const auto low = base::load_be<std::uint64_t>(order.data() + 8);
  base::store_be(octets.data(), detail::time_last(high));
  base::store_be(octets.data() + 8, low ^ detail::kSignBits);
  return base::Uuid(octets);
}

inline UuidOrder order_of_uuid(base::ByteView uuid) {
  ASSERT(uuid.size() == base::Uuid::kSize);
  UuidOrder order{};
  order[0] = uuid[6] >> 4;
  const auto high = base::load_be<std::uint64_t>(uuid.data());
  base::store_be(order.data() + 1, order[0] == std::byte{1} ? detail::time_first(high) : high);
  base::store_be(order.data() + 9, base::load_be<std::uint64_t>(uuid.data() + 8));
  return order;
}

inline base::Uuid uuid_of(base::ByteView order) {
  ASSERT(order.size() == base::Uuid::kSize + 1);
  base::Uuid::Octets octets{};
  const auto high = base::load_be<std::uint64_t>(order.data() + 1);
  base::store_be(octets.data(), order[0] == std::byte{1} ? detail::time_last(high) : high);
  base::store_be(octets.data() + 8, base::load_be<std::uint64_t>(order.data() + 9));
  return base::Uuid(octets);
}

}  // namespace helenus::model
