// DiskReserve: what an engine keeps of its disks, so that a full one is survivable.
//
// What frees space takes some first: a delete is a record of the log and at last a merge, a dropped
// table is a smaller manifest beside the old one, and a start writes what the logs have into files
// before it lets them go. So each core keeps files that hold room and nothing else:
//
//   reserve-CCCC-deletes   for deletes, and the flushes that they need
//   reserve-CCCC-changes   for manifests and their like, and for the next start: a segment of the
//                          log, and some for small files
//
// in the first data directory, and in the log directory as well if that lies on another device.
//
// Who gets what:
//   write of data      while the reserve is whole and there is room for what memtables hold and a
//                      segment of the log more; refused otherwise: overloaded, "disk is full"
//   merge              what it finds, as long as what memtables hold has room; none of the reserve
//   delete, flush      the first file is given up when they find no space; after that, deletes are
//                      taken while what memtables hold has room
//   small file         both are given up when one that must be replaced finds no space: manifests
//                      and their like, and files of the node beside the engine's (make_room)
//   start              removes all of them once it knows that it goes on, and keeps them again
//
// While the disk is full memtables are flushed every two seconds, so that what they and the log
// hold takes less, and the log keeps no files for later.
//
// What must never lie:
//   - A refused write has left nothing: neither a dot nor a record.
//   - What memtables hold has room on the disk (`owed`), as far as this node alone decides that: so
//     that flushes, and the flushes of a start after a crash, find it. Others who fill the disk can
//     take it; then the reserve is what is left.
//   - Nothing is kept in the files of the reserve, so that losing or removing one loses nothing.
//
// How much room there is, is asked every second, ten times a second when there is little, and
// counted on in between; all cores share a disk evenly. When a disk has room again, and twice what
// is wanted, the reserve is made whole, and writes of data go on.
//
// Owns: the files. Borrows: the state. Core affinity: the engine's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "runtime/semaphore.h"
#include "runtime/task.h"
#include "storage/engine/engine_state.h"
#include "storage/engine/engine_types.h"
#include "storage/sstable/sstable_writer.h"

namespace helenus::storage {

class DiskReserve {
 public:
  explicit DiskReserve(EngineState& state);
  DiskReserve(const DiskReserve&) = delete;
  DiskReserve& operator=(const DiskReserve&) = delete;

  // Removes what was kept until the last stop. Requires: the start is not refused any more.
  static runtime::Task<base::Result<void>> give_up_all(runtime::Runtime& runtime,
                                                       const EngineOptions& options);
  // Keeps what there is room for, and what is asked of the disk's room from now on. Without an
  // EngineOptions::disk_reserve_bytes nothing is kept, and nothing refused. Called once, before the
  // log is opened, which takes room, too.
  runtime::Task<void> begin();
  // Looks at the disks. Runs once.
  runtime::Task<void> watch_loop();
  // Is called now and then while the disk is full: what can be done to have more room.
  void while_full(std::function<void()> act) { while_full_ = std::move(act); }

  // Whether writes of that kind find no room. The error they get.
  bool refuses(WriteKind kind);
  base::Error refusal() const;
  // Of a write that cannot be taken by reason of `why`.
  base::Error refusal_after(base::Error why) const;
  bool full() const { return full_; }
  // What it holds of disks.
  std::uint64_t bytes_held() const;

  // What flushes and merges have written, and what they have removed.
  void note_written(std::uint64_t bytes) { taken_ += signed_of(bytes); }
  void note_removed(std::uint64_t bytes) { taken_ -= signed_of(bytes); }
  // A write found no space: nothing is believed that was seen before.
  void found_no_space();
  // Gives up what is kept for deletes. Whether there is more room now.
  runtime::Task<bool> give_up_for_deletes();
  // Gives up what there is, for deletes first. Whether there is more room now; asked again, it may
  // have more.
  runtime::Task<bool> make_room();

  // Whether a merge of so many bytes has room.
  bool has_room_for(std::uint64_t bytes) const {
    return !on() || free_of_debt() >= signed_of(bytes);
  }
  // For what merges write; `next` has its say after it.
  class MergeThrottle final : public WriteThrottle {
   public:
    MergeThrottle(DiskReserve& reserve, WriteThrottle& next) : reserve_(reserve), next_(next) {}
    // Errors: no_space, when memtables need what is left; those of the next one.
    runtime::Task<base::Result<void>> before_write(std::size_t bytes) override;

   private:
    DiskReserve& reserve_;
    WriteThrottle& next_;
  };
  WriteThrottle& merge_throttle() { return merge_throttle_; }

 private:
  static constexpr runtime::Duration kLookPeriod = std::chrono::seconds(1);
  static constexpr runtime::Duration kLookPeriodFull = std::chrono::milliseconds(100);
  static constexpr runtime::Duration kActPeriod = std::chrono::seconds(2);

  enum class Purpose : std::uint8_t { deletes, changes };
  struct Part {
    Purpose purpose;
    std::string path;
    std::uint64_t bytes = 0;
    bool held = false;
  };

  static std::int64_t signed_of(std::uint64_t bytes) { return static_cast<std::int64_t>(bytes); }
  bool on() const { return !parts_.empty(); }
  bool whole() const;
  bool holds(Purpose purpose) const;
  std::uint64_t bytes_of(Purpose purpose, bool held) const;
  // What is free when everything in memory is in files; below zero if that does not fit.
  std::int64_t free_of_debt() const;
  std::uint64_t log_bytes() const;
  std::int64_t wanted() const { return signed_of(state_.options.log.segment_size); }

  runtime::Task<void> plan_parts();
  runtime::Task<void> look();
  // Requires: it is this caller's turn.
  runtime::Task<void> keep_parts();
  runtime::Task<bool> keep(Part& part);
  runtime::Task<bool> give_up(Purpose purpose);
  void judge();
  void set_full(bool full);

  EngineState& state_;
  MergeThrottle merge_throttle_;
  std::function<void()> while_full_;
  std::vector<Part> parts_;  // those for changes first
  bool log_is_apart_ = false;
  // Of a core's share, when it was seen last; what files have taken since, and what the log had.
  std::uint64_t free_ = UINT64_MAX / 4;
  std::uint64_t free_of_log_ = 0;  // where the log is apart
  std::int64_t taken_ = 0;
  std::uint64_t log_bytes_seen_ = 0;
  bool full_ = false;
  runtime::MonotonicTime acted_at_;
  runtime::Semaphore turn_;
};

}  // namespace helenus::storage
