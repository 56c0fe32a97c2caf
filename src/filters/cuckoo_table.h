// What cuckoo filters of every kind share: how many buckets a number of keys needs, and what the
// bytes of a table must look like before they are believed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/bytes.h"
#include "base/result.h"
#include "filters/bucket.h"
#include "filters/envelope.h"

namespace helenus::filters {

// How full a table is when it holds the keys it was made for. A search of kSearchedBucketsMax
// buckets fills a large table to 0.97; small tables vary more from one set of keys to the next and
// get slack on top.
inline constexpr double kLoadWanted = 0.95;

std::uint64_t buckets_for(std::uint64_t capacity);
std::uint64_t capacity_of(std::uint64_t bucket_count);

template <class Slots>
std::uint64_t occupied_slots(const std::byte* table, std::uint64_t bucket_count) {
  std::uint64_t occupied = 0;
  for (std::uint64_t bucket = 0; bucket < bucket_count; ++bucket) {
    occupied += Slots::occupied(Slots::load(table + bucket * Slots::kBytes));
  }
  return occupied;
}

// Whether an envelope's numbers and a body can be a cuckoo table. A table whose slots do not add up
// to the number of keys in the header would deny some of them; its size is what says so.
template <class Slots>
base::Result<void> check_bucket_table(const Envelope& envelope, base::ByteView body,
                                      std::uint64_t buckets_max) {
  using base::Errc;
  using base::Error;
  const std::uint64_t bucket_count = envelope.units;
  if (bucket_count == 0 || bucket_count > buckets_max) {
    return Error(Errc::corrupt, "a cuckoo filter of {} buckets", bucket_count);
  }
  const std::uint64_t slots_bytes = bucket_count * Slots::kBytes;
  if (body.size() != slots_bytes + Slots::kSlackBytes) {
    return Error(Errc::corrupt, "{} bytes for {} buckets", body.size(), bucket_count);
  }
  for (const std::byte padding : body.subspan(slots_bytes)) {
    if (padding != std::byte{0}) return Error(Errc::corrupt, std::string("padding is used"));
  }
  if (envelope.capacity == 0 || envelope.capacity > bucket_count * kSlotsPerBucket) {
    return Error(Errc::corrupt, "a capacity of {} keys in {} buckets", envelope.capacity,
                 bucket_count);
  }
  const std::uint64_t occupied = occupied_slots<Slots>(body.data(), bucket_count);
  if (occupied != envelope.size || occupied != envelope.population) {
    return Error(Errc::corrupt, "{} fingerprints of {} keys", occupied, envelope.size);
  }
  return {};
}

// Opens the bytes of a filter of that kind whose `slots` ("fingerprints", say) are of that width.
// Errors: corrupt, unsupported, invalid_argument for another kind or width of filter.
template <class Slots>
base::Result<Opened> unseal_bucket_table(const base::Bytes& encoded, Kind kind, unsigned width,
                                         std::string_view slots, std::uint64_t buckets_max) {
  TRY(Opened opened, unseal(encoded, kind));
  if (opened.envelope.width != width) {
    return base::Error(base::Errc::invalid_argument, "{} of {} bits where {} are wanted", slots,
                       opened.envelope.width, width);
  }
  TRY_VOID(check_bucket_table<Slots>(opened.envelope, opened.body, buckets_max));
  return opened;
}

}  // namespace helenus::filters
