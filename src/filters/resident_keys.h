// ResidentKeys: which key sits in which slot of an adaptive filter, exactly.
//
// An adaptive filter can only change how it stores a key if someone tells it the key again. That
// is this array: one key hash a slot, 8 bytes each, owned by whoever owns the filter and kept
// wherever that is cheap. While a filter is filled it must be at hand, because insertions move
// keys. Once it is full (an sstable's filter is, when the sstable is written) nothing moves any
// more: write it out with `encode`, drop it, and fetch single entries when a false positive or an
// erasure asks for them. Entry `slot` is 8 bytes, little-endian, at kEnvelopeBytes + 8 * slot.
#pragma once

#include <cstdint>
#include <utility>

#include "base/bytes.h"
#include "base/codec.h"
#include "base/result.h"
#include "filters/key_hash.h"
#include "filters/table.h"

namespace helenus::filters {

class ResidentKeys {
 public:
  static constexpr std::size_t kEntryBytes = 8;

  // Errors: invalid_argument for no slots or more than fit kTableBytesMax; overloaded when there is
  // no memory for them.
  static base::Result<ResidentKeys> for_slots(std::uint64_t slot_count);

  std::uint64_t slot_count() const { return table_.size() / kEntryBytes; }

  // What was put there last. Requires: slot < slot_count().
  KeyHash at(std::uint64_t slot) const {
    ASSERT_SLOW(slot < slot_count());
    return KeyHash(base::load_le<std::uint64_t>(table_.data() + slot * kEntryBytes));
  }
  void put(std::uint64_t slot, KeyHash key) {
    ASSERT_SLOW(slot < slot_count());
    base::store_le(table_.writable() + slot * kEntryBytes, key.value());
  }

  base::Bytes encode() const;
  // Errors: corrupt, unsupported, invalid_argument when the bytes are a filter.
  static base::Result<ResidentKeys> decode(const base::Bytes& encoded);

 private:
  explicit ResidentKeys(Table table) : table_(std::move(table)) {}

  Table table_;
};

}  // namespace helenus::filters
