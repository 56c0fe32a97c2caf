#include "filters/sliced_forgetful.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <string>

#include "base/assert.h"
#include "base/codec.h"
#include "filters/envelope.h"
#include "filters/overlap.h"

namespace helenus::filters {

using base::Errc;
using base::Error;

namespace {

// A table that takes over is larger than the one before by a factor between these, as the load of
// the last slice asks for.
constexpr std::uint64_t kGrowthMin = 2;
constexpr std::uint64_t kGrowthMax = 4;
constexpr double kHeadroom = 1.5;
// Where memory is short, a table this much smaller than the one before is not worth its probes.
constexpr std::uint64_t kShrunkMax = 8;
// A table is too large when less than one part in so many of it is in use.
constexpr std::uint64_t kIdleParts = 8;
constexpr std::uint64_t kSweepBytesPerAdvance = 16 * 1024;

// Of eight tables, each with half of what is left, the last has one part in 256.
constexpr double kRatePartsMax = 1024;

constexpr std::size_t kHeadBytes = 64;
constexpr std::size_t kGenerationBytes = 64;

}  // namespace

base::Result<void> SlicedForgetful::check(const Options& options) {
  const bool slices_sound = options.slices == 0 || (options.slices >= SliceRing::kSlicesMin &&
                                                    options.slices <= kLanesMax);
  const bool sound = options.window > 0 && options.capacity > 0 &&
                     options.capacity <= kCapacityMax && options.rate_max >= kRateMin &&
                     options.rate_max <= kRateMax && slices_sound &&
                     options.sizing <= Sizing::adaptive && options.memory_bytes_max > 0 &&
                     options.memory_bytes_max <= kTableBytesMax;
  if (sound) return {};
  return Error(Errc::invalid_argument,
               "a sliced filter for {} keys in {} slices at a rate of {}, window {}, {} bytes",
               options.capacity, options.slices, options.rate_max, options.window,
               options.memory_bytes_max);
}

// An adaptive filter keeps the other half for the tables that will take over.
double SlicedForgetful::first_rate_part(const Options& options) {
  return options.sizing == Sizing::adaptive ? options.rate_max / 2 : options.rate_max;
}

base::Result<SlicedForgetful::Options> SlicedForgetful::options_for_memory(
    Ticks window, std::uint64_t keys, std::uint64_t memory_bytes) {
  if (window == 0 || keys == 0 || keys > kCapacityMax / 2) {
    return Error(Errc::invalid_argument, "a window of {} that brings {} keys", window, keys);
  }
  // A slice more than those of the window, and each with a little in hand: it takes keys until the
  // next one has been swept.
  const auto options_at = [&](double rate_max) {
    Options options{.window = window, .rate_max = rate_max};
    const unsigned slices = SliceRing::shape_for(keys, first_rate_part(options), 0).slices;
    const std::uint64_t keys_per_slice = (keys + slices - 2) / (slices - 1);
    options.capacity = slices * (keys_per_slice + keys_per_slice / 16 + 2);
    return options;
  };
  const auto fits = [&](double rate_max) {
    const Options options = options_at(rate_max);
    const auto shape = SliceRing::shape_for(options.capacity, first_rate_part(options), 0);
    return shape.is_sound() && shape.memory_bytes() <= memory_bytes;
  };
  if (!fits(kRateMax)) {
    return Error(Errc::invalid_argument, "{} keys do not fit in {} bytes", keys, memory_bytes);
  }
  if (fits(kRateMin)) return options_at(kRateMin);
  double low = std::log(kRateMin);
  double high = std::log(kRateMax);
  for (int step = 0; step < 40; ++step) {
    const double middle = (low + high) / 2;
    (fits(std::exp(middle)) ? high : low) = middle;
  }
  return options_at(std::exp(high));
}

base::Result<SlicedForgetful> SlicedForgetful::with_options(const Options& options) {
  TRY_VOID(check(options));
  SlicedForgetful filter(options);
  const double rate = first_rate_part(options);
  const auto shape = SliceRing::shape_for(options.capacity, rate, options.slices);
  if (!shape.is_sound() || shape.memory_bytes() > options.memory_bytes_max) {
    return Error(Errc::invalid_argument, "{} keys take more than {} bytes", options.capacity,
                 options.memory_bytes_max);
  }
  TRY(SliceRing ring, SliceRing::with_shape(shape));
  filter.generations_.push_back({std::move(ring), options.capacity, rate, 0});
  return filter;
}

base::Result<SlicedForgetful> SlicedForgetful::with_shape(const SliceRing::Shape& shape,
                                                          Ticks window) {
  const double rate = shape.is_sound() ? shape.rate_when_full() : 0;
  if (!shape.is_sound() || window == 0 || shape.capacity() > kCapacityMax || !(rate <= kRateMax)) {
    return Error(Errc::invalid_argument, "{} slices of {} bits, {} probes, {} keys; window {}",
                 shape.slices, shape.bits, shape.probes, shape.keys_per_slice, window);
  }
  SlicedForgetful filter({.window = window,
                          .rate_max = std::max(rate, kRateMin),
                          .capacity = shape.capacity(),
                          .slices = shape.slices,
                          .sizing = Sizing::fixed});
  TRY(SliceRing ring, SliceRing::with_shape(shape));
  filter.generations_.push_back({std::move(ring), shape.capacity(), filter.options_.rate_max, 0});
  return filter;
}

Ticks SlicedForgetful::slice_ticks(const SliceRing::Shape& shape) const {
  const Ticks parts = shape.slices - 1;
  return options_.window / parts + (options_.window % parts == 0 ? 0 : 1);
}

double SlicedForgetful::rate_left() const {
  double left = options_.rate_max;
  for (const Generation& generation : generations_) left -= generation.rate_part;
  return left;
}

void SlicedForgetful::advance_to(Ticks now) {
  if (now > now_) {
    now_ = now;
    is_shedding_ = false;
    for (Generation& generation : generations_) generation.ring.expire(now_, options_.window);
    const auto newest = generations_.end() - 1;
    const auto silent = std::remove_if(generations_.begin(), newest,
                                       [](const Generation& old) { return !old.ring.has_live(); });
    generations_.erase(silent, newest);
    shrink_if_idle();
  }
  newest().sweep(kSweepBytesPerAdvance / (8 * shape().slices));
}

void SlicedForgetful::shrink_if_idle() {
  const Generation& newest = generations_.back();
  // Two windows: its slices tell of its own time, and not every lull is worth a new table.
  const bool is_settled = generations_.size() == 1 && (now_ - newest.began) / 2 >= options_.window;
  const bool is_idle = newest.capacity > options_.capacity && size() < newest.capacity / kIdleParts;
  if (options_.sizing != Sizing::adaptive || !is_settled || !is_idle) return;
  take_over(std::max(options_.capacity, kGrowthMin * size()));
}

bool SlicedForgetful::grow() {
  // The load of the last slice, which is full, for a whole window.
  const SliceRing& ring = generations_.back().ring;
  const std::uint64_t before = generations_.back().capacity;
  double wanted = 0;
  if (ring.current() != SliceRing::kNone) {
    const Slice& last = ring.slice(ring.current());
    const auto ticks = static_cast<double>(now_ - last.first + 1);
    wanted = static_cast<double>(last.keys) / ticks * static_cast<double>(options_.window);
  }
  const double largest = static_cast<double>(std::min(before, kCapacityMax / kGrowthMax));
  wanted = std::clamp(kHeadroom * wanted, kGrowthMin * largest, kGrowthMax * largest);
  return take_over(static_cast<std::uint64_t>(wanted));
}

bool SlicedForgetful::take_over(std::uint64_t capacity) {
  if (options_.sizing != Sizing::adaptive || generations_.size() >= kTablesMax) return false;
  const std::uint64_t used = memory_bytes();
  const std::uint64_t room = options_.memory_bytes_max - std::min(used, options_.memory_bytes_max);
  // What is left is used up only by bytes that say so.
  const double rate = rate_left() / 2;
  if (!(rate > options_.rate_max / kRatePartsMax)) return false;
  const std::uint64_t smallest = std::max<std::uint64_t>(1, this->capacity() / kShrunkMax);
  auto shape = SliceRing::shape_for(capacity, rate, options_.slices);
  // What the memory allows: memory is nearly proportional to keys, and a few steps are enough.
  for (int step = 0; step < 8 && shape.memory_bytes() > room; ++step) {
    const double part = static_cast<double>(room) / static_cast<double>(shape.memory_bytes());
    capacity = static_cast<std::uint64_t>(static_cast<double>(capacity) * part * 0.98);
    if (capacity < smallest) return false;
    shape = SliceRing::shape_for(capacity, rate, options_.slices);
  }
  if (!shape.is_sound() || shape.memory_bytes() > room) return false;
  auto ring = SliceRing::with_shape(shape);
  if (!ring) return false;
  newest().close();
  generations_.push_back({*std::move(ring), capacity, rate, now_});
  return true;
}

bool SlicedForgetful::insert(KeyHash key) {
  // Having been refused once, it tries again for a larger table when time has moved.
  const bool has_room = make_room() || (!is_shedding_ && grow() && make_room());
  is_shedding_ = !has_room;
  if (has_room) newest().add(key, now_);
  return has_room;
}

Admission SlicedForgetful::insert_if_absent(KeyHash key) {
  for (std::size_t i = 0; i + 1 < generations_.size(); ++i) {
    if (generations_[i].ring.contains(key)) return Admission::present;
  }
  if (make_room()) {
    is_shedding_ = false;
    return newest().add_if_absent(key, now_) ? Admission::inserted : Admission::present;
  }
  if (newest().contains(key)) return Admission::present;
  return insert(key) ? Admission::inserted : Admission::shed;
}

void SlicedForgetful::prefetch(KeyHash key) const {
  for (const Generation& generation : generations_) generation.ring.prefetch(key);
}

void SlicedForgetful::contains_batch(std::span<const KeyHash> keys, std::span<bool> answers) const {
  overlap_lookups(*this, keys, answers);
}

std::uint64_t SlicedForgetful::size() const {
  std::uint64_t size = 0;
  for (const Generation& generation : generations_) size += generation.ring.size();
  return size;
}

unsigned SlicedForgetful::live_slice_count() const {
  unsigned count = 0;
  for (const Generation& generation : generations_) count += generation.ring.live_count();
  return count;
}

std::uint64_t SlicedForgetful::memory_bytes() const {
  std::uint64_t bytes = 0;
  for (const Generation& generation : generations_) bytes += generation.ring.memory_bytes();
  return bytes;
}

double SlicedForgetful::false_positive_rate() const {
  double none = 0;
  for (const Generation& generation : generations_) {
    none += std::log1p(-generation.ring.rate_by_fill());
  }
  return -std::expm1(none);
}

double SlicedForgetful::rate_by_equation() const {
  double none = 0;
  for (const Generation& generation : generations_) {
    none += std::log1p(-generation.ring.rate_by_equation());
  }
  return -std::expm1(none);
}

base::Bytes SlicedForgetful::encode() const {
  base::Buffer body;
  base::Encoder encoder(body);
  const auto pad_to = [&](std::size_t size) {
    while (body.size() < size) encoder.u8(0);
  };
  encoder.u64_le(options_.window);
  encoder.u64_le(now_);
  encoder.u64_le(std::bit_cast<std::uint64_t>(options_.rate_max));
  encoder.u64_le(options_.capacity);
  encoder.u64_le(options_.memory_bytes_max);
  encoder.u8(static_cast<std::uint8_t>(options_.slices));
  encoder.u8(static_cast<std::uint8_t>(options_.sizing));
  pad_to(kHeadBytes);
  std::uint64_t population = 0;
  for (const Generation& generation : generations_) {
    const SliceRing& ring = generation.ring;
    const std::size_t begin = body.size();
    encoder.u64_le(generation.capacity);
    encoder.u64_le(std::bit_cast<std::uint64_t>(generation.rate_part));
    encoder.u64_le(generation.began);
    encoder.u64_le(ring.shape().bits);
    encoder.u64_le(ring.shape().keys_per_slice);
    encoder.u8(static_cast<std::uint8_t>(ring.shape().probes));
    encoder.u8(static_cast<std::uint8_t>(ring.shape().slices));
    // A slice without keys yet is not worth remembering.
    const bool takes_keys =
        ring.current() != SliceRing::kNone && ring.slice(ring.current()).keys > 0;
    encoder.u8(static_cast<std::uint8_t>(takes_keys ? ring.current() : SliceRing::kNone));
    pad_to(begin + kGenerationBytes);
    ring.append_to(body);
    for (unsigned lane = 0; lane < ring.shape().slices; ++lane) population += ring.slice(lane).bits;
  }
  return seal({.kind = Kind::sliced_forgetful,
               .width = static_cast<std::uint8_t>(generations_.size()),
               .size = size(),
               .capacity = capacity(),
               .units = shape().bits,
               .population = population},
              body.view());
}

base::Result<SlicedForgetful> SlicedForgetful::decode(const base::Bytes& encoded) {
  TRY(Opened opened, unseal(encoded, Kind::sliced_forgetful));
  const Envelope& envelope = opened.envelope;
  TRY(SlicedForgetful filter, decode_body(opened.body, envelope.width));
  std::uint64_t population = 0;
  for (const Generation& generation : filter.generations_) {
    for (unsigned lane = 0; lane < generation.ring.shape().slices; ++lane) {
      population += generation.ring.slice(lane).bits;
    }
  }
  const bool sound = filter.size() == envelope.size && filter.capacity() == envelope.capacity &&
                     filter.shape().bits == envelope.units && population == envelope.population;
  if (!sound) return Error(Errc::corrupt, std::string("a sliced filter's header contradicts it"));
  return filter;
}

base::Result<SlicedForgetful> SlicedForgetful::decode_body(const base::Bytes& body,
                                                           std::uint8_t table_count) {
  if (body.size() < kHeadBytes || table_count == 0 || table_count > kTablesMax) {
    return Error(Errc::corrupt, "{} tables in {} bytes", table_count, body.size());
  }
  base::Decoder in(body.view().first(kHeadBytes));
  Options options{.window = in.u64_le()};
  const Ticks now = in.u64_le();
  options.rate_max = std::bit_cast<double>(in.u64_le());
  options.capacity = in.u64_le();
  options.memory_bytes_max = in.u64_le();
  options.slices = in.u8();
  options.sizing = Sizing{in.u8()};
  std::uint64_t zeros = 0;
  while (in.remaining() > 0) zeros |= in.u8();
  if (zeros != 0 || !check(options)) {
    return Error(Errc::corrupt, std::string("a sliced filter of no such options"));
  }
  SlicedForgetful filter(options);
  filter.now_ = now;
  std::size_t offset = kHeadBytes;
  for (unsigned i = 0; i < table_count; ++i) {
    TRY(Generation generation, filter.decode_generation(body, offset));
    filter.generations_.push_back(std::move(generation));
  }
  if (offset != body.size()) return Error(Errc::corrupt, std::string("a sliced filter goes on"));
  return filter;
}

base::Result<SlicedForgetful::Generation> SlicedForgetful::decode_generation(
    const base::Bytes& body, std::size_t& offset) const {
  const auto cut = [] { return Error(Errc::corrupt, std::string("a sliced filter is cut")); };
  if (body.size() - offset < kGenerationBytes) return cut();
  base::Decoder in(body.view().subspan(offset, kGenerationBytes));
  offset += kGenerationBytes;
  const std::uint64_t capacity = in.u64_le();
  const double rate_part = std::bit_cast<double>(in.u64_le());
  const Ticks began = in.u64_le();
  SliceRing::Shape shape{.bits = in.u64_le()};
  shape.keys_per_slice = in.u64_le();
  shape.probes = in.u8();
  shape.slices = in.u8();
  const unsigned current = in.u8();
  std::uint64_t zeros = 0;
  while (in.remaining() > 0) zeros |= in.u8();
  const bool rate_sound = rate_part > 0 && rate_part <= rate_left() + options_.rate_max * 1e-9;
  // A table of many keys and few bits would ask for much memory when it grows.
  const bool sound = zeros == 0 && shape.is_sound() && capacity <= kCapacityMax &&
                     (capacity + shape.slices - 1) / shape.slices == shape.keys_per_slice &&
                     began <= now_ && rate_sound &&
                     shape.rate_when_full() <= rate_part * (1 + 1e-9);
  if (!sound) return Error(Errc::corrupt, std::string("a sliced filter's table of no such shape"));
  const std::size_t bytes = SliceRing::encoded_bytes(shape);
  if (body.size() - offset < bytes) return cut();
  TRY(SliceRing ring, SliceRing::decode(shape, current, now_, body.slice(offset, bytes)));
  offset += bytes;
  return Generation{std::move(ring), capacity, rate_part, began};
}

}  // namespace helenus::filters
