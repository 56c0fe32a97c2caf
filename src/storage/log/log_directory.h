// LogDirectory: the folder of a node's commit logs: what they held at start, what is still needed
// of it, and the places of the new ones.
//
//   auto folder = co_await LogDirectory::open(rt, "data/commitlog");    lock, judge every log
//   while (batch = co_await folder->next_batch()) ...                   replay, log by log
//   auto shares = co_await folder->begin(cores, options);                a new incarnation
//   auto log = co_await CommitLog::open(rt_of_core, shares[core], ...);  on each core
//   co_await folder->clear_tail_doubt();            once a doubt has been acted on, durably
//   co_await folder->release({table});    when what was replayed for it is in sstables
//   co_await folder->close();             after the logs have stopped
//
// The model. Every start of the engine is an incarnation with one log for each core; a log is never
// written to again after its incarnation ended, so a restart with another number of cores is
// nothing special: all logs of the folder are replayed, by whoever opens it. The catalog
// (log_catalog.h) says which logs there must be.
//
// How a log is judged. Segments are written one after the other, and a segment is synced to its
// `end` batch before the next one takes its first write; one write is under way at a time. So:
//   - A file with a segment's name has a durable header (log_segment_file.h). A header that cannot
//     be read, or is another segment's, is damage; so is a file that is shorter than it was made.
//   - Segments are looked at from the newest down. One without a whole batch at its start was
//     prepared and not used, or its first write was torn. The first used one is the last of the
//     log, L; its newest note names the segments that must exist. One that is missing is an error.
//     Files that the note does not name are leftovers of a purge whose directory was not synced.
//   - A segment before L must hold whole batches up to its `end`. Anything else is damage.
//   - L may stop anywhere: at its `end` (the next segment was not used yet), at its `seal` (the log
//     was stopped on purpose: a clean stop), or where there is no whole batch. In that case every
//     batch header further on is a witness. If one says that the log had been *synced* past that
//     place, then bytes that were durable are gone: damage. If the kernel has not been restarted
//     since, nothing that was *written* may be missing either, so then a header that says the log
//     had been written past that place is as good. If no header says so, what is missing belongs
//     to writes that were never acknowledged (batch, group), or were acknowledged within the last
//     period (periodic): a torn tail, which ends the log and is counted.
//   - The one batch nothing can witness for is the very last. Unless more records follow soon, the
//     log therefore writes a batch without records behind it; so only what was written within the
//     last `claim_delay` before a crash may be damaged without being told from torn.
//   - Zeros, bytes of an earlier life of a recycled file, and batches that lie where they were not
//     written fail the seeded checksums (log_format.h): all are "no whole batch".
//   - What was judged stays judged: begin() makes L durable, since a killed process may leave its
//     end in the page cache only (and a failed sync may leave it there looking clean, so the end is
//     written again), and enters the end into the catalog. From then on any byte missing before it
//     is damage.
// Damage is an error (Errc::corrupt) that names file and offset; the folder then does not open, and
// nothing is changed in it.
//
// How the last stop is judged (theory S1), over all logs of the last incarnation:
//   fresh       there was none
//   copied      the catalog is not the file that was written: a copied or restored folder. Whoever
//               runs in the original may have minted dots that are not here
//   clean       every log ends in a seal
//   killed      no seal, the same boot: what was written is there, unless a sync failed
//   power_lost  no seal, another boot
// In periodic mode acknowledged records may be missing after every stop but a clean one, the same
// boot or not, and no dot may be minted twice (theory S1). After a failed sync the kernel takes
// what it could not write for clean and may drop it from memory while the machine runs on, so a
// kill that follows one may have lost what a kill alone does not. Whether one failed nobody can
// tell: a note of it could be written only after the failure, and a crash in between, or the same
// broken disk, would take it. The seal is the other way round: it is written after a sync of
// everything that succeeded, and a log that failed writes none. So what decides is what is there,
// and nothing that had to happen in a moment of trouble. In the other modes nothing is acknowledged
// that was not synced. A doubt outlives the start that found it: until clear_tail_doubt() every
// start reports it again, so that a crash before the engine took new actor ids does not make it
// forget to.
//
// Core affinity: the core that opened it. Requires: outlives the CommitLogs of its shares.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <absl/container/btree_set.h>

#include "base/log.h"
#include "base/result.h"
#include "runtime/file_system.h"
#include "runtime/runtime.h"
#include "runtime/semaphore.h"
#include "runtime/task.h"
#include "storage/log/log_catalog.h"
#include "storage/log/log_format.h"
#include "storage/log/log_options.h"
#include "storage/log/log_segment_reader.h"

namespace helenus::storage {

enum class LastStop : unsigned char { fresh, clean, killed, power_lost, copied };

std::string_view name_of(LastStop stop);

struct LogOpenReport {
  LastStop last_stop = LastStop::fresh;
  // Acknowledged records may be missing, at this start or at one that was never settled: actor ids
  // must not be used again (theory S1, S14).
  bool tail_may_be_lost = false;
  // The last incarnation; whether one of its logs was ever written to; where they end, by core.
  std::uint32_t incarnation = 0;
  bool written = false;
  std::vector<LogPosition> ends;
  std::size_t logs = 0;
  std::size_t segments = 0;
  // Of batches that were not whole. At least: what left no trace cannot be counted.
  std::uint64_t torn_bytes = 0;
};

struct ReplaySummary {
  std::uint64_t batches = 0;
  std::uint64_t records = 0;
  std::uint64_t record_bytes = 0;
};

// Some records of one log, in its order. Borrows from the LogDirectory until its next call.
struct ReplayedBatch {
  std::uint32_t core = 0;
  std::uint64_t log_id = 0;
  RecordCursor records;  // never fails: what it walks was checked
};

// Where a CommitLog is to write: its first segment, made and durable.
struct LogShare {
  std::string directory;
  SegmentHeader first;
};

class LogDirectory {
  struct Private {
    explicit Private() = default;
  };

 public:
  // Errors: locked (another process has the folder); corrupt; unsupported; of the file system.
  static runtime::Task<base::Result<std::unique_ptr<LogDirectory>>> open(runtime::Runtime& runtime,
                                                                         std::string directory);
  // For open().
  LogDirectory(Private, runtime::Runtime& runtime, std::string directory);
  ~LogDirectory();
  LogDirectory(const LogDirectory&) = delete;
  LogDirectory& operator=(const LogDirectory&) = delete;

  const LogOpenReport& report() const { return report_; }

  // Acknowledged records are missing, by what the caller knows. Requires: before begin().
  void doubt() { report_.tail_may_be_lost = true; }

  // The next records; nothing after the last. Logs come by incarnation and core, records of a log
  // in its order. A record may have been replayed at an earlier start, and its table may have it
  // already: applying must be idempotent. Errors: corrupt; of the file system.
  runtime::Task<base::Result<std::optional<ReplayedBatch>>> next_batch();
  const ReplaySummary& replayed() const { return summary_; }

  // Starts a new incarnation with a log for each core. When it returns, what was replayed is
  // durable, and so is where each old log ends. The incarnation is greater than all before it, and
  // than `incarnation_known`. Requires: next_batch() has come to its end.
  // Errors: invalid_argument; overloaded (too many old logs wait to be released); of the files.
  runtime::Task<base::Result<std::vector<LogShare>>> begin(std::uint32_t cores,
                                                           CommitLogOptions options,
                                                           std::uint32_t incarnation_known = 0);

  // The same after begin(): it is found by the next start.
  runtime::Task<base::Result<void>> note_doubt();
  // What tail_may_be_lost warned of has been dealt with, durably.
  runtime::Task<base::Result<void>> clear_tail_doubt();

  // What was replayed for these tables is durable elsewhere, or they are dropped. A segment whose
  // tables are all released is removed. Requires: begin() succeeded. After an error its file may
  // stay until the next start.
  runtime::Task<base::Result<void>> release(std::vector<TableId> tables);
  // Segments of earlier incarnations that are kept, and the tables that hold them.
  std::size_t recovered_segments() const;
  std::vector<TableId> tables_unreleased() const;

  // Gives the folder free. Requires: the logs of its shares have stopped.
  runtime::Task<base::Result<void>> close();

 private:
  struct Segment {
    std::uint32_t sequence = 0;
    absl::btree_set<TableId> tables;  // with records in it that are not released
  };
  // A log of an earlier incarnation.
  struct OldLog {
    std::uint32_t incarnation = 0;
    std::uint32_t core = 0;
    std::uint64_t log_id = 0;
    std::vector<Segment> segments;  // ascending
    std::uint32_t end_sequence = 0;
    std::uint64_t end_offset = 0;
    bool current = false;  // of the last incarnation: judged at this start
    std::uint64_t synced_offset = kSegmentHeaderSize;  // of the end's segment, as far as known
    bool sealed = false;
    LogSyncMode sync_mode = LogSyncMode::batch;
  };
  // What scanning a segment from its start gave.
  struct Scan {
    SegmentHeader header;
    std::uint64_t end = 0;                             // where the last whole batch ends
    std::uint64_t synced_offset = kSegmentHeaderSize;  // what whole batches say
    std::vector<std::uint32_t> live;                   // the newest note
    std::optional<BatchKind> finished;                 // end or seal
    LogClaims claims;                                  // of what lies behind, if not finished
    bool used() const { return end > kSegmentHeaderSize; }
  };

  std::string path_of(const OldLog& log, std::uint32_t sequence) const;

  runtime::Task<base::Result<void>> load();
  base::Result<void> check_listing();
  runtime::Task<base::Result<void>> check_unlisted();
  runtime::Task<base::Result<void>> add_recovered(RecoveredLog recovered);
  runtime::Task<base::Result<void>> judge_current(std::uint32_t core);
  runtime::Task<base::Result<Scan>> scan(const OldLog& log, std::uint32_t sequence);
  base::Result<void> check_claims(const OldLog& log, const Scan& scan) const;
  runtime::Task<base::Result<std::unique_ptr<LogSegmentReader>>> open_segment(
      const OldLog& log, std::uint32_t sequence);
  runtime::Task<base::Result<void>> check_present(const OldLog& log, std::uint32_t sequence);
  void judge_last_stop();
  runtime::Task<base::Result<void>> store_doubt(bool in_doubt);

  runtime::Task<base::Result<bool>> open_next_segment();
  runtime::Task<base::Result<std::optional<LogSegmentReader::Batch>>> next_raw_batch();
  base::Result<ReplayedBatch> take(const LogSegmentReader::Batch& batch);

  runtime::Task<base::Result<void>> make_replayed_durable();
  runtime::Task<base::Result<void>> write_again(std::string path, std::uint64_t from,
                                                std::uint64_t to);
  runtime::Task<base::Result<LogShare>> make_seat(std::uint32_t core,
                                                  const CommitLogOptions& options,
                                                  std::uint32_t incarnation);
  LogCatalog catalog_now() const;
  runtime::Task<base::Result<void>> drop_unneeded();
  runtime::Task<void> remove_leftovers();
  runtime::Task<void> trim_ends();

  runtime::Runtime& runtime_;
  const std::string directory_;
  base::Logger log_;
  std::unique_ptr<runtime::FileLock> lock_;
  bool same_boot_ = false;
  LogCatalog catalog_;
  std::vector<std::string> names_;  // of the folder's files, sorted
  std::vector<OldLog> logs_;        // by incarnation and core
  LogOpenReport report_;
  // Replay: where it is.
  std::size_t replay_log_ = 0;
  std::size_t replay_segment_ = 0;
  std::unique_ptr<LogSegmentReader> reader_;
  bool replay_done_ = false;
  ReplaySummary summary_;
  bool begun_ = false;
  runtime::Semaphore catalog_turn_;  // one change of the catalog at a time
};

}  // namespace helenus::storage
