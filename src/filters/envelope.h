// Envelope: what every encoded filter begins with, and the checks every decoder starts with.
//
// An encoded filter is a header of 64 bytes and a body, each with its checksum; the layout is in
// docs/formats/filters.md. The header's size keeps a body that is read into aligned memory aligned
// to cache lines. Everything in a header is hostile until `unseal` has said yes, and even then it
// is only undamaged and consistent with the body's size: each filter checks the meaning of its
// numbers itself.
#pragma once

#include <cstdint>

#include "base/bytes.h"
#include "base/result.h"

namespace helenus::filters {

enum class Kind : std::uint8_t {
  bloom = 1,
  blocked_bloom = 2,
  cuckoo = 3,
  adaptive_cuckoo = 4,
  resident_keys = 5,
  forgetful_bloom = 6,
  sliced_forgetful = 7,
  adaptive_forgetful = 8,
  dynamic_cuckoo = 16,
  consistent_cuckoo = 17,
};

inline constexpr std::size_t kEnvelopeBytes = 64;

struct Envelope {
  Kind kind{};
  std::uint8_t width = 0;        // bits a slot, or probes a key
  std::uint64_t size = 0;        // keys in the filter
  std::uint64_t capacity = 0;    // keys it was made for
  std::uint64_t units = 0;       // buckets, blocks, bits or slots
  std::uint64_t population = 0;  // what the body must add up to; each filter says what it counts

  friend bool operator==(const Envelope&, const Envelope&) = default;
};

struct Opened {
  Envelope envelope;
  base::Bytes body;
};

base::Bytes seal(const Envelope& envelope, base::ByteView body);

// How many bytes of `encoded`, at its beginning, are one sealed filter: for bytes that go on with
// something else. Errors: corrupt when they are not that many. Nothing else is checked.
base::Result<std::size_t> sealed_bytes(base::ByteView encoded);

// The header and the body, which is a slice of `encoded`. Errors: corrupt for bytes that are cut,
// too long, damaged or not a filter; unsupported for a later version or an unknown kind. Reads the
// whole body once.
base::Result<Opened> unseal(const base::Bytes& encoded);

// `unseal`, and that it is of this kind; another known kind is an invalid argument.
base::Result<Opened> unseal(const base::Bytes& encoded, Kind kind);

}  // namespace helenus::filters
