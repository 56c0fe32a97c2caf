#include "storage/manifest/garbage.h"

#include <utility>

namespace helenus::storage {

using causality::Clock;
using causality::WallTime;

namespace {

constexpr std::uint8_t kStepBitsMax = 62;
// More cannot be in a file; keeps sums from overflowing.
constexpr std::uint64_t kCountMax = std::uint64_t{1} << 48;
// A time and a count.
constexpr std::size_t kStepSizeMin = 9;

void raise(Clock& up_to, const causality::Dot& dot) {
  up_to.add(causality::DotRange{dot.actor, 1, dot.counter});
}

void count_cell(const causality::CellStore& cell, Garbage& garbage) {
  if (cell.versions().empty()) {
    ++garbage.deletes;
    for (const Clock::Entry& entry : cell.context().entries()) {
      raise(garbage.up_to, {entry.actor, cell.context().max_of(entry.actor)});
    }
    return;
  }
  for (const causality::Version& version : cell.versions()) {
    if (version.expires) {
      garbage.expiring.add(*version.expires);
    } else if (version.kind == causality::VersionKind::deletion ||
               causality::is_record(version.kind)) {
      ++garbage.deletes;
    } else if (version.kind == causality::VersionKind::increment &&
               (cell.versions().size() > 1 || !version.value.empty())) {
      ++garbage.increments;
    } else if (version.kind == causality::VersionKind::folded) {
      ++garbage.increments;
    } else {
      continue;
    }
    raise(garbage.up_to, version.dot);
  }
}

}  // namespace

void ExpiryHistogram::add(WallTime expires) {
  ++counts_[step_of(expires.value())];
  while (counts_.size() > kStepsMax) widen();
}

void ExpiryHistogram::widen() {
  ++step_bits_;
  for (const auto& [step, count] : std::exchange(counts_, {})) counts_[step_of(step)] += count;
}

std::uint64_t ExpiryHistogram::expired_by(WallTime now) const {
  std::uint64_t expired = 0;
  for (const auto& [step, count] : counts_) {
    if (step > now.value()) break;
    expired += count;
  }
  return expired;
}

void encode(base::Encoder& out, const ExpiryHistogram& histogram) {
  out.u8(histogram.step_bits_);
  out.varint(histogram.counts_.size());
  for (const auto& [step, count] : histogram.counts_) {
    out.u64_le(static_cast<std::uint64_t>(step));
    out.varint(count);
  }
}

ExpiryHistogram decode_expiry_histogram(base::Decoder& in) {
  ExpiryHistogram histogram;
  histogram.step_bits_ = in.u8();
  const std::size_t steps = in.count(kStepSizeMin);
  if (histogram.step_bits_ > kStepBitsMax || steps > ExpiryHistogram::kStepsMax) {
    in.fail("a histogram of expiries is too wide");
    return {};
  }
  for (std::size_t index = 0; index < steps && in.ok(); ++index) {
    const auto step = static_cast<std::int64_t>(in.u64_le());
    const std::uint64_t count = in.varint();
    if (step != histogram.step_of(step)) in.fail("an expiry is no step");
    if (count == 0 || count > kCountMax) in.fail("a count of expiries is out of range");
    auto& counts = histogram.counts_;
    if (!counts.empty() && counts.rbegin()->first >= step) in.fail("expiries are out of order");
    counts.emplace_hint(counts.end(), step, count);
  }
  return histogram;
}

Collectable Garbage::collectable(const causality::Stability& stable) const {
  if (empty() || !stable.dots.covers(up_to)) return {};
  return {.expired = stable.wall ? expiring.expired_by(*stable.wall) : 0,
          .deletes = deletes,
          .increments = increments};
}

namespace {

causality::Timestamp newest_in(const causality::CellStore& cell) {
  causality::Timestamp newest = causality::kTimestampMin;
  for (const causality::Version& version : cell.versions()) {
    newest = std::max(newest, version.timestamp);
  }
  return newest;
}

}  // namespace

causality::Timestamp newest_write(const Entry& entry) {
  causality::Timestamp newest = newest_in(entry.row_deletes());
  for (const auto& [column, cell] : entry.row().cells()) newest = std::max(newest, newest_in(cell));
  for (const causality::RangeDelete& range_delete : entry.deleted_ranges()) {
    newest = std::max(newest, newest_in(range_delete.store));
  }
  return newest;
}

std::uint64_t count_garbage(const Entry& entry, Garbage& garbage) {
  for (const auto& [column, cell] : entry.row().cells()) count_cell(cell, garbage);
  for (const causality::RangeDelete& range_delete : entry.deleted_ranges())
    count_cell(range_delete.store, garbage);
  const std::uint64_t counted = entry.row().cells().size() + entry.deleted_ranges().size();
  if (entry.row_deletes().empty()) return counted;
  count_cell(entry.row_deletes(), garbage);
  return counted + 1;
}

}  // namespace helenus::storage
