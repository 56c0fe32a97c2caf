#include "storage/log/log_options.h"

namespace helenus::storage {

using base::Errc;
using base::Error;

base::Result<void> CommitLogOptions::validate() const {
  if (segment_size < kSegmentSizeMin || segment_size > kSegmentSizeMax ||
      segment_size % kSegmentHeaderSize != 0) {
    return Error(Errc::invalid_argument, "segment_size {}: not a multiple of {} between {} and {}",
                 segment_size, kSegmentHeaderSize, kSegmentSizeMin, kSegmentSizeMax);
  }
  // The largest record must fit an empty segment, behind its first note.
  const std::uint64_t fixed = kSegmentHeaderSize + segment_reserve(kBatchAlignmentDirect) +
                              batch_footprint(4 * kSegmentsMax, kBatchAlignmentDirect);
  const std::uint64_t largest =
      batch_footprint(std::uint64_t{record_size_max} + kRecordOverheadMax, kBatchAlignmentDirect);
  if (record_size_max == 0 || record_size_max > kSegmentSizeMax || fixed + largest > segment_size) {
    return Error(Errc::invalid_argument, "record_size_max {}: does not fit a segment of {}",
                 record_size_max, segment_size);
  }
  // A buffer holds the largest record even when it begins in one segment and goes on in the next.
  if (staged_bytes_max < fixed + largest || staged_bytes_max > kSegmentSizeMax) {
    return Error(Errc::invalid_argument, "staged_bytes_max {}: not between {} and {}",
                 staged_bytes_max, fixed + largest, kSegmentSizeMax);
  }
  // One segment that is written, one that is ready.
  if (disk_bytes_max < 2 * segment_size) {
    return Error(Errc::invalid_argument, "disk_bytes_max {}: less than two segments of {}",
                 disk_bytes_max, segment_size);
  }
  if (spare_files_max > kSegmentsMax || waiters_max == 0) {
    return Error(Errc::invalid_argument, "spare_files_max {}, waiters_max {}", spare_files_max,
                 waiters_max);
  }
  const runtime::Duration shortest = std::chrono::microseconds(1);
  const runtime::Duration longest = std::chrono::hours(1);
  for (const runtime::Duration duration : {group_window, sync_period, claim_delay, retry_delay}) {
    if (duration < shortest || duration > longest) {
      return Error(Errc::invalid_argument, "a duration of {} ns: not between 1 us and 1 h",
                   duration.count());
    }
  }
  return {};
}

}  // namespace helenus::storage
