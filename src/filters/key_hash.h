// KeyHash: what a filter knows of a key, 64 well-mixed bits.
//
// A filter never sees keys. Who probes many filters with one key hashes it once; who probes one
// filter passes the key itself and the conversion hashes it:
//
//   const KeyHash hash(key);                       // XXH3-64 of the key's bytes, seed 0
//   for (const auto& table : tables) table.filter.contains(hash);
//   filter.contains("alice");                      // the same, in one step
//
// The hash of a key is part of what a stored filter means: a filter written with one hash function
// and read with another denies keys that are in it.
#pragma once

#include <concepts>
#include <cstdint>
#include <string_view>

#include "base/bytes.h"
#include "base/hash.h"

namespace helenus::filters {

class KeyHash {
 public:
  constexpr KeyHash() = default;
  // Requires: every bit of `hash` depends on the whole key, as XXH3, SipHash or MurmurHash3 make
  // it; filters take bucket, fingerprint and tags from different bits of it.
  constexpr explicit KeyHash(std::uint64_t hash) : value_(hash) {}
  // The hash of a key: a ByteView, Bytes, a string or a literal (without its final zero).
  template <std::convertible_to<base::ByteView> Key>
  KeyHash(const Key& key) : value_(base::hash64(base::ByteView(key))) {}  // NOLINT: on purpose
  template <std::convertible_to<std::string_view> Key>
  KeyHash(const Key& key)  // NOLINT: on purpose
      : value_(base::hash64(base::as_bytes(std::string_view(key)))) {}

  // The hash of a key that is an integer. A bijection, so that different keys never collide.
  static constexpr KeyHash of_integer(std::uint64_t key) {
    return KeyHash(base::mix64(key + 0x9e3779b97f4a7c15));
  }

  constexpr std::uint64_t value() const { return value_; }

  friend constexpr bool operator==(KeyHash, KeyHash) = default;
  friend constexpr auto operator<=>(KeyHash, KeyHash) = default;

 private:
  std::uint64_t value_ = 0;
};

static_assert(sizeof(KeyHash) == 8);

}  // namespace helenus::filters
