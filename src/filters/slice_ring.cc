#include "filters/slice_ring.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <vector>

#include "base/assert.h"
#include "base/codec.h"
#include "filters/forgetful_rates.h"

namespace helenus::filters {

using base::Errc;
using base::Error;

namespace {

constexpr std::size_t kAlignment = 64;

std::size_t aligned(std::size_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

// Bits a key that a window brings takes, with a slice in hand for the keys of now.
double bits_per_windowed_key(unsigned slices, double rate_max) {
  return std::log2(slices / rate_max) * slices / (slices - 1);
}

unsigned best_slices(double rate_max) {
  constexpr unsigned kSlicesChosenMin = 3;
  unsigned best = kSlicesChosenMin;
  for (unsigned slices = best + 1; slices <= kLanesMax; ++slices) {
    if (bits_per_windowed_key(slices, rate_max) < bits_per_windowed_key(best, rate_max)) {
      best = slices;
    }
  }
  return best;
}

}  // namespace

bool SliceRing::Shape::is_sound() const {
  return bits > 0 && bits <= LaneTable::kPositionsMax && probes > 0 && probes <= kProbesMax &&
         slices >= kSlicesMin && slices <= kLanesMax && keys_per_slice > 0 &&
         keys_per_slice <= kCapacityMax;
}

double SliceRing::Shape::rate_when_full() const {
  return sliced_rate(std::vector<double>(slices, bloom_fill(bits, probes, keys_per_slice)), probes);
}

SliceRing::Shape SliceRing::shape_for(std::uint64_t capacity, double rate_max, unsigned slices) {
  ASSERT(capacity > 0 && capacity <= kCapacityMax && rate_max > 0 && rate_max < 1);
  Shape shape;
  shape.slices = slices == 0 ? best_slices(rate_max) : slices;
  shape.keys_per_slice = (capacity + shape.slices - 1) / shape.slices;
  const double slice_rate = rate_max / shape.slices;
  shape.probes =
      std::clamp(static_cast<unsigned>(std::lround(-std::log2(slice_rate))), 1U, kProbesMax);
  const double fill = std::pow(slice_rate, 1.0 / shape.probes);
  const double bits = -static_cast<double>(shape.probes * shape.keys_per_slice) / std::log1p(-fill);
  // How many bits a number of keys sets is a draw: two standard deviations of it in hand.
  shape.bits = static_cast<std::uint64_t>(std::ceil(bits + 2 * std::sqrt(bits))) + 1;
  return shape;
}

base::Result<SliceRing> SliceRing::with_shape(const Shape& shape) {
  ASSERT(shape.is_sound());
  TRY(LaneTable table, LaneTable::zeroed(shape.bits, shape.slices));
  return SliceRing(shape, std::move(table));
}

std::uint64_t SliceRing::size() const {
  std::uint64_t size = 0;
  for (const Slice& slice : slices_) size += slice.keys;
  return size;
}

double SliceRing::rate_by_fill() const {
  std::vector<double> fills;
  for (unsigned lane = 0; lane < shape_.slices; ++lane) {
    fills.push_back(static_cast<double>(slices_[lane].bits) / static_cast<double>(shape_.bits));
  }
  return sliced_rate(fills, shape_.probes);
}

double SliceRing::rate_by_equation() const {
  std::vector<double> fills;
  for (unsigned lane = 0; lane < shape_.slices; ++lane) {
    fills.push_back(bloom_fill(shape_.bits, shape_.probes, slices_[lane].keys));
  }
  return sliced_rate(fills, shape_.probes);
}

void SliceRing::expire(Ticks now, Ticks window) {
  if (now - oldest_last_ <= window) return;
  oldest_last_ = now;  // what comes from now on is not older
  for (Lanes lanes = live_; lanes != 0; lanes &= lanes - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(lanes));
    const Slice& slice = slices_[lane];
    if (slice.keys == 0) continue;
    if (now - slice.last <= window) {
      oldest_last_ = std::min(oldest_last_, slice.last);
      continue;
    }
    if (lane == current_) current_ = kNone;
    live_ &= ~(Lanes{1} << lane);
    slices_[lane] = {};
  }
}

bool SliceRing::sweep(std::uint64_t blocks) {
  if (swept_ == 0) {
    swept_ = table_.all() & ~live_ & ~clean_;
    swept_blocks_ = 0;
    if (swept_ == 0) return true;
  }
  const std::uint64_t count = std::min(blocks, table_.block_count() - swept_blocks_);
  table_.clear(swept_, swept_blocks_, count);
  swept_blocks_ += count;
  if (swept_blocks_ == table_.block_count()) {
    clean_ |= swept_;
    swept_ = 0;
  }
  return (live_ | clean_) == table_.all();
}

bool SliceRing::make_room(Ticks now, Ticks slice_ticks) {
  // A sweep ends within a small part of a slice, and so delays the next slice by no more.
  constexpr std::uint64_t kSweepPart = 64;
  if ((live_ | clean_) != table_.all()) {
    sweep(table_.block_count() * kSweepPart / shape_.keys_per_slice + 1);
  }
  if (current_ != kNone) {
    const Slice& slice = slices_[current_];
    const bool is_full = slice.keys >= shape_.keys_per_slice;
    const bool is_due = slice.keys > 0 && now - slice.first >= slice_ticks;
    if (!is_full && (!is_due || clean_ == 0)) return true;
  }
  // After a jump of time lanes may have expired that no call has swept: they are swept now, and
  // only where there are none a key is refused.
  while (clean_ == 0 && live_ != table_.all()) sweep(table_.block_count());
  if (clean_ == 0) return false;
  current_ = static_cast<unsigned>(std::countr_zero(clean_));
  clean_ &= ~(Lanes{1} << current_);
  live_ |= Lanes{1} << current_;
  return true;
}

void SliceRing::count_key(Ticks now, unsigned bits) {
  Slice& slice = slices_[current_];
  if (slice.keys == 0) slice.first = now;
  slice.last = now;
  ++slice.keys;
  slice.bits += bits;
}

void SliceRing::add(KeyHash key, Ticks now) {
  count_key(now, table_.add(key, shape_.probes, Lanes{1} << current_));
}

bool SliceRing::add_if_absent(KeyHash key, Ticks now) {
  const auto added = table_.add_unless(key, shape_.probes, live_, Lanes{1} << current_,
                                       [](Lanes) { return true; });
  if (!added.present) count_key(now, added.bits);
  return !added.present;
}

void SliceRing::close() {
  if (current_ == kNone) return;
  if (slices_[current_].keys == 0) {
    live_ &= ~(Lanes{1} << current_);
    clean_ |= Lanes{1} << current_;
  }
  current_ = kNone;
}

std::size_t SliceRing::head_bytes(const Shape& shape) {
  return aligned(shape.slices * 4 * sizeof(std::uint64_t));
}

std::size_t SliceRing::encoded_bytes(const Shape& shape) {
  return head_bytes(shape) + aligned(shape.memory_bytes());
}

void SliceRing::append_to(base::Buffer& out) const {
  const std::size_t begin = out.size();
  base::Encoder encoder(out);
  for (unsigned lane = 0; lane < shape_.slices; ++lane) {
    const Slice& slice = slices_[lane];
    for (const std::uint64_t field : {slice.first, slice.last, slice.keys, slice.bits}) {
      encoder.u64_le(field);
    }
  }
  while (out.size() - begin < head_bytes(shape_)) encoder.u8(0);
  table_.append_to(out, live_);
  while (out.size() - begin < encoded_bytes(shape_)) encoder.u8(0);
}

base::Result<SliceRing> SliceRing::decode(const Shape& shape, unsigned current, Ticks now,
                                          const base::Bytes& encoded) {
  ASSERT(shape.is_sound() && encoded.size() == encoded_bytes(shape));
  const std::size_t head = head_bytes(shape);
  const auto table_bytes = static_cast<std::size_t>(shape.memory_bytes());
  SliceRing ring(shape,
                 LaneTable::viewing(encoded.slice(head, table_bytes), shape.bits, shape.slices));
  base::Decoder in(encoded.view());
  for (unsigned lane = 0; lane < shape.slices; ++lane) {
    Slice& slice = ring.slices_[lane];
    for (std::uint64_t* field : {&slice.first, &slice.last, &slice.keys, &slice.bits}) {
      *field = in.u64_le();
    }
    if (slice.keys > 0) ring.live_ |= Lanes{1} << lane;
  }
  ring.clean_ = ring.table_.all() & ~ring.live_;
  ring.current_ = current;
  const auto is_zero = [](std::byte byte) { return byte == std::byte{0}; };
  const bool padded = std::ranges::all_of(in.raw(head - in.offset()), is_zero) &&
                      std::ranges::all_of(encoded.view().subspan(head + table_bytes), is_zero);
  if (!padded) return Error(Errc::corrupt, std::string("padding is used"));
  TRY_VOID(ring.validate(now));
  return ring;
}

base::Result<void> SliceRing::validate(Ticks now) const {
  if (!table_.ends_clean()) return Error(Errc::corrupt, std::string("padding is used"));
  const auto bits = table_.count();
  for (unsigned lane = 0; lane < shape_.slices; ++lane) {
    const Slice& slice = slices_[lane];
    const bool is_empty = slice == Slice{};
    const std::uint64_t keys_min = (slice.bits + shape_.probes - 1) / shape_.probes;
    const bool sound = slice.bits == bits[lane] && slice.keys <= shape_.keys_per_slice &&
                       keys_min <= slice.keys && (slice.bits > 0) == (slice.keys > 0) &&
                       (slice.keys > 0 || is_empty) && slice.first <= slice.last &&
                       slice.last <= now;
    if (!sound) {
      return Error(Errc::corrupt, "a slice of {} keys, {} bits, of which {} are set", slice.keys,
                   slice.bits, bits[lane]);
    }
  }
  const bool current_lives =
      current_ == kNone || (current_ < shape_.slices && slices_[current_].keys > 0);
  if (!current_lives) return Error(Errc::corrupt, "slice {} takes no keys", current_);
  return {};
}

}  // namespace helenus::filters
