// LogSegmentSupply: the files of one running log: makes the next segment ahead of need, closes what
// is finished, and uses the files of segments nobody needs again.
//
// Recycling: a file that was written before has its blocks; overwriting them spares the file system
// a change of its own metadata at every sync. The salt in each segment's header keeps the bytes of
// its earlier life from being taken for records (log_format.h).
//
// The disk limit counts every file, spare ones too; a spare file becomes a segment whatever the
// limit, since nothing grows. A next segment that cannot be made is no failure of the log: it is
// tried again after a while, and whenever a file comes back. A failed sync while making one is.
//
// Core affinity: the log's core. Its owner runs run() and stops it.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/log.h"
#include "base/result.h"
#include "runtime/file_system.h"
#include "runtime/runtime.h"
#include "runtime/task.h"
#include "runtime/wait_queue.h"
#include "storage/log/log_format.h"
#include "storage/log/log_options.h"

namespace helenus::storage {

class LogSegmentSupply {
 public:
  struct Ready {
    SegmentHeader header;
    std::unique_ptr<runtime::File> file;
  };

  // Told on the log's core, from inside run().
  class Listener {
   public:
    // There is a next segment, or it could not be made.
    virtual void on_supply_changed() = 0;
    // Final: a sync failed.
    virtual void on_supply_failed(base::Error error) = 0;

   protected:
    ~Listener() = default;
  };

  struct Counts {
    std::uint64_t created = 0;
    std::uint64_t recycled = 0;
    std::uint64_t removed = 0;
  };

  // `first` is the header of the log's first segment, whose file exists.
  LogSegmentSupply(runtime::Runtime& runtime, std::string directory, const SegmentHeader& first,
                   const CommitLogOptions& options, Listener& listener);
  // Requires: run() has ended, or the core has halted.
  ~LogSegmentSupply();

  // Works until stop().
  runtime::Task<void> run();
  void stop();
  // Closes what is open and removes the files that hold no records. Requires: run() has ended.
  runtime::Task<base::Result<void>> close();

  bool ready() const { return next_.has_value(); }
  // The next segment; another one is made. Requires: ready().
  Ready take();
  // There may be room again: one that could not be made is tried now.
  void try_again();
  // Whether files of segments that nobody needs are kept for later ones; they are at first. If not,
  // those that are kept go.
  void set_keeps_spares(bool keeps);
  // Why there is none. Requires: !ready().
  base::Error why_not_ready() const;
  // Whether it is only being made.
  bool coming() const { return !ready() && !problem_ && !at_limit(); }

  // The segment is full and synced.
  void finished(std::unique_ptr<runtime::File> file);
  // Nobody needs the segment, and a synced note says so.
  void give_back(SegmentId segment);

  std::uint64_t disk_bytes() const { return files_ * first_.segment_size; }
  std::size_t spare_files() const { return spares_.size() + (ready() ? 1 : 0); }
  const Counts& counts() const { return counts_; }

 private:
  std::string path_of(const std::string& name) const { return directory_ + "/" + name; }
  std::string path_of(SegmentId id) const { return path_of(segment_file_name(id, first_.core)); }
  bool at_limit() const;
  bool next_due() const;
  void wake();

  runtime::Task<void> close_finished();
  runtime::Task<void> recycle(SegmentId segment);
  runtime::Task<void> remove_spare();
  runtime::Task<void> make_next();
  runtime::Task<base::Result<void>> try_make_next(std::string scratch);
  runtime::Task<bool> remove(std::string path);

  runtime::Runtime& runtime_;
  const std::string directory_;
  const SegmentHeader first_;
  const CommitLogOptions& options_;
  Listener& listener_;
  base::Logger log_;
  bool stopping_ = false;

  std::uint64_t files_ = 1;
  std::uint32_t sequence_;  // of the newest segment made
  std::optional<Ready> next_;
  std::optional<base::Error> problem_;
  runtime::MonotonicTime retry_at_;
  std::vector<std::string> spares_;
  bool keeps_spares_ = true;
  std::uint64_t scratch_count_ = 0;
  std::deque<SegmentId> given_back_;
  std::deque<std::unique_ptr<runtime::File>> finished_;
  Counts counts_;
  runtime::WaitQueue work_;
};

}  // namespace helenus::storage
