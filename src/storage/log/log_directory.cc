#include "storage/log/log_directory.h"

#include <algorithm>
#include <ranges>
#include <utility>

#include "base/assert.h"
#include "runtime/clock.h"
#include "runtime/files.h"
#include "runtime/random.h"
#include "storage/log/log_segment_file.h"

namespace helenus::storage {

using base::Errc;
using base::Error;
using base::kv;
using base::Result;
using runtime::Runtime;
using runtime::Task;
using runtime::Until;

namespace {

constexpr std::size_t kCatalogWaitersMax = 1024;

// Makes the folder, durably: its own name lies in its parent, and so on up. A start that was killed
// may have left a folder that exists and is not durable, so all of them are synced at every start.
Task<Result<void>> make_durable_directories(Runtime& runtime, std::string directory) {
  CO_TRY_VOID(co_await runtime.files.make_directories(directory));
  std::string inner = directory;
  for (std::string outer = runtime::directory_of(inner); outer != inner;
       outer = runtime::directory_of(inner)) {
    auto synced = co_await runtime.files.sync_directory(outer);
    // Where we may not even look, we have made nothing.
    if (synced.failed_with(Errc::permission_denied)) break;
    if (!synced) co_return std::move(synced).error();
    inner = std::move(outer);
  }
  co_return {};
}

Error damage(const std::string& path, std::uint64_t offset, std::string_view what) {
  return Error(Errc::corrupt, "{} at offset {}: {}", path, offset, what);
}

}  // namespace

std::string_view name_of(LastStop stop) {
  switch (stop) {
    case LastStop::fresh:
      return "fresh";
    case LastStop::clean:
      return "clean";
    case LastStop::killed:
      return "killed";
    case LastStop::power_lost:
      return "power_lost";
    case LastStop::copied:
      return "copied";
  }
  return "unknown";
}

LogDirectory::LogDirectory(Private, Runtime& runtime, std::string directory)
    : runtime_(runtime),
      directory_(std::move(directory)),
      log_(runtime.logger("storage.log_directory")),
      catalog_turn_(runtime, 1, kCatalogWaitersMax) {}

LogDirectory::~LogDirectory() = default;

Task<Result<std::unique_ptr<LogDirectory>>> LogDirectory::open(Runtime& runtime,
                                                               std::string directory) {
  auto folder = std::make_unique<LogDirectory>(Private{}, runtime, std::move(directory));
  CO_TRY_VOID(co_await folder->load());
  co_return std::move(folder);
}

std::string LogDirectory::path_of(const OldLog& log, std::uint32_t sequence) const {
  return directory_ + "/" + segment_file_name({log.incarnation, sequence}, log.core);
}

Task<Result<void>> LogDirectory::load() {
  CO_TRY_VOID(co_await make_durable_directories(runtime_, directory_));
  CO_TRY(lock_, co_await runtime_.files.lock(directory_ + "/lock"));
  CO_TRY(auto loaded, co_await load_log_catalog(runtime_, directory_));
  CO_TRY(const auto entries, co_await runtime_.files.list(directory_));
  for (const auto& entry : entries) names_.push_back(entry.name);
  const bool fresh = !loaded.has_value();
  const bool original = !fresh && loaded->original;
  if (!fresh) catalog_ = std::move(loaded->catalog);
  // A boot without a name could be any.
  same_boot_ = original && !runtime_.boot_id.empty() && catalog_.boot_id == runtime_.boot_id;

  report_.incarnation = catalog_.incarnation;
  CO_TRY_VOID(check_listing());
  CO_TRY_VOID(co_await check_unlisted());
  for (const RecoveredLog& recovered : catalog_.recovered) {
    CO_TRY_VOID(co_await add_recovered(recovered));
  }
  for (std::uint32_t core = 0; core < catalog_.current.size(); ++core) {
    CO_TRY_VOID(co_await judge_current(core));
  }
  report_.last_stop = fresh ? LastStop::fresh : original ? LastStop::clean : LastStop::copied;
  judge_last_stop();
  log_.info("opened", kv("directory", directory_), kv("last_stop", name_of(report_.last_stop)),
            kv("tail_may_be_lost", report_.tail_may_be_lost), kv("logs", report_.logs),
            kv("segments", report_.segments), kv("torn_bytes", report_.torn_bytes));
  co_return {};
}

// Names alone show a segment that no log of the catalog can have.
Result<void> LogDirectory::check_listing() {
  for (const std::string& name : names_) {
    const auto segment = parse_segment_file_name(name);
    if (segment && segment->id.incarnation == catalog_.incarnation &&
        segment->core >= catalog_.current.size()) {
      return Error(Errc::corrupt, "{}/{}: the catalog knows of no log for core {}", directory_,
                   name, segment->core);
    }
  }
  return {};
}

// A begin() that did not come to its end leaves segments that nobody has written to. If somebody
// has, then the catalog is older than the logs: lost, or restored without them.
Task<Result<void>> LogDirectory::check_unlisted() {
  for (const std::string& name : names_) {
    const auto segment = parse_segment_file_name(name);
    if (!segment || segment->id.incarnation <= catalog_.incarnation) continue;
    const std::string path = directory_ + "/" + name;
    CO_TRY(auto reader, co_await LogSegmentReader::open(runtime_, path));
    CO_TRY(const auto claims, co_await reader->search_claims());
    CO_TRY_VOID(co_await reader->close());
    if (claims.end > 0) {
      co_return damage(path, kSegmentHeaderSize,
                       "holds records of an incarnation that the catalog does not know");
    }
  }
  co_return {};
}

Task<Result<void>> LogDirectory::add_recovered(RecoveredLog recovered) {
  OldLog log{.incarnation = recovered.incarnation,
             .core = recovered.core,
             .log_id = recovered.log_id,
             .segments = {},
             .end_sequence = recovered.end_sequence,
             .end_offset = recovered.end_offset};
  for (const std::uint32_t sequence : recovered.segments) {
    CO_TRY_VOID(co_await check_present(log, sequence));
    log.segments.push_back({.sequence = sequence, .tables = {}});
  }
  report_.segments += log.segments.size();
  ++report_.logs;
  logs_.push_back(std::move(log));
  co_return {};
}

Task<Result<std::unique_ptr<LogSegmentReader>>> LogDirectory::open_segment(const OldLog& log,
                                                                           std::uint32_t sequence) {
  const std::string name = segment_file_name({log.incarnation, sequence}, log.core);
  const std::string path = path_of(log, sequence);
  if (!std::ranges::binary_search(names_, name)) {
    co_return damage(path, 0, "the segment is missing");
  }
  CO_TRY(auto reader, co_await LogSegmentReader::open(runtime_, path));
  const SegmentHeader& header = reader->header();
  if (header.id != SegmentId{log.incarnation, sequence} || header.core != log.core ||
      header.log_id != log.log_id) {
    co_return damage(path, 0, "the header is another segment's");
  }
  // The whole size was durable before the file got its name; only the end of an old log is trimmed.
  const bool trimmed = !log.current && sequence == log.end_sequence;
  const std::uint64_t size = trimmed ? log.end_offset : header.segment_size;
  if (reader->file_size() < size) {
    co_return damage(path, reader->file_size(), "the file is shorter than it was");
  }
  co_return std::move(reader);
}

Task<Result<void>> LogDirectory::check_present(const OldLog& log, std::uint32_t sequence) {
  CO_TRY(auto reader, co_await open_segment(log, sequence));
  co_return co_await reader->close();
}

Task<Result<LogDirectory::Scan>> LogDirectory::scan(const OldLog& log, std::uint32_t sequence) {
  CO_TRY(auto reader, co_await open_segment(log, sequence));
  const std::string& path = reader->path();
  Scan scan{.header = reader->header(), .live = {}, .finished = {}, .claims = {}};
  while (!scan.finished) {
    const std::uint64_t offset = reader->offset();
    CO_TRY(const auto batch, co_await reader->next());
    if (!batch) break;
    if (batch->header.synced_sequence == sequence) scan.synced_offset = batch->header.synced_offset;
    const BatchKind kind = batch->header.kind;
    if (kind == BatchKind::live) {
      auto live = decode_live(batch->body, sequence);
      if (!live) co_return std::move(live).error().within(fmt::format("{} at {}", path, offset));
      scan.live = *std::move(live);
    } else if (offset == kSegmentHeaderSize) {
      co_return damage(path, offset, "a segment begins with a note of the log's segments");
    }
    if (kind == BatchKind::end || kind == BatchKind::seal) scan.finished = kind;
  }
  scan.end = reader->offset();
  if (!scan.finished) {
    CO_TRY(scan.claims, co_await reader->search_claims());
  }
  CO_TRY_VOID(co_await reader->close());
  co_return scan;
}

Result<void> LogDirectory::check_claims(const OldLog& log, const Scan& scan) const {
  const std::uint32_t sequence = scan.header.id.sequence;
  const std::string path = path_of(log, sequence);
  if (scan.claims.synced_sequence == sequence && scan.claims.synced_offset > scan.end) {
    return damage(path, scan.end, "no whole batch, though the log was synced further");
  }
  if (same_boot_ && scan.claims.written_offset > scan.end) {
    return damage(path, scan.end, "no whole batch, though the log was written further");
  }
  return {};
}

Task<Result<void>> LogDirectory::judge_current(std::uint32_t core) {
  OldLog log{.incarnation = catalog_.incarnation,
             .core = core,
             .log_id = catalog_.current[core],
             .segments = {},
             .current = true};
  std::vector<std::uint32_t> sequences;
  for (const std::string& name : names_) {
    const auto segment = parse_segment_file_name(name);
    if (segment && segment->id.incarnation == log.incarnation && segment->core == core) {
      sequences.push_back(segment->id.sequence);
    }
  }
  if (sequences.empty()) co_return damage(path_of(log, 1), 0, "the segment is missing");

  // From the newest down to the last that was used.
  LogClaims all_claims;
  for (const std::uint32_t sequence : sequences | std::views::reverse) {
    CO_TRY(const Scan found, co_await scan(log, sequence));
    CO_TRY_VOID(check_claims(log, found));
    if (!found.finished && found.claims.end > found.end) {
      report_.torn_bytes += found.claims.end - found.end;
    }
    if (std::pair(found.claims.synced_sequence, found.claims.synced_offset) >
        std::pair(all_claims.synced_sequence, all_claims.synced_offset)) {
      all_claims = found.claims;
    }
    log.sync_mode = found.header.sync_mode;
    log.end_sequence = sequence;
    log.end_offset = found.end;
    log.synced_offset = found.synced_offset;
    if (!found.used()) continue;
    report_.written = true;
    log.sealed = found.finished == BatchKind::seal;
    for (const std::uint32_t live : found.live)
      log.segments.push_back({.sequence = live, .tables = {}});
    break;
  }
  if (log.segments.empty() && sequences.front() != 1) {
    co_return damage(path_of(log, 1), 0, "the segment is missing");
  }
  if (std::pair(all_claims.synced_sequence, std::uint64_t{all_claims.synced_offset}) >
      std::pair(log.end_sequence, log.end_offset)) {
    co_return damage(path_of(log, log.end_sequence), log.end_offset,
                     "no whole batch, though the log was synced further");
  }
  for (const Segment& segment : log.segments) {
    CO_TRY_VOID(co_await check_present(log, segment.sequence));
  }
  report_.segments += log.segments.size();
  ++report_.logs;
  report_.ends.push_back({{log.incarnation, log.end_sequence}, log.end_offset});
  logs_.push_back(std::move(log));
  co_return {};
}

void LogDirectory::judge_last_stop() {
  bool sealed = true;
  bool periodic = false;
  for (const OldLog& log : logs_) {
    if (!log.current) continue;
    sealed = sealed && log.sealed;
    periodic = periodic || log.sync_mode == LogSyncMode::periodic;
  }
  if (report_.last_stop == LastStop::clean && !sealed) {
    report_.last_stop = same_boot_ ? LastStop::killed : LastStop::power_lost;
  }
  report_.tail_may_be_lost = catalog_.in_doubt || report_.last_stop == LastStop::copied ||
                             (periodic && report_.last_stop != LastStop::clean);
}

Task<Result<bool>> LogDirectory::open_next_segment() {
  if (reader_ != nullptr) {
    CO_TRY_VOID(co_await std::exchange(reader_, nullptr)->close());
    ++replay_segment_;
  }
  while (replay_log_ < logs_.size() && replay_segment_ >= logs_[replay_log_].segments.size()) {
    ++replay_log_;
    replay_segment_ = 0;
  }
  if (replay_log_ >= logs_.size()) co_return false;
  const OldLog& log = logs_[replay_log_];
  CO_TRY(reader_, co_await open_segment(log, log.segments[replay_segment_].sequence));
  co_return true;
}

// The next batch of any kind in the whole replay.
Task<Result<std::optional<LogSegmentReader::Batch>>> LogDirectory::next_raw_batch() {
  while (!replay_done_) {
    if (reader_ != nullptr) {
      const OldLog& log = logs_[replay_log_];
      const bool last = log.segments[replay_segment_].sequence == log.end_sequence;
      const std::uint64_t offset = reader_->offset();
      if (!last || offset < log.end_offset) {
        CO_TRY(auto batch, co_await reader_->next());
        if (!batch) co_return damage(reader_->path(), offset, "no whole batch");
        if (last || batch->header.kind != BatchKind::end) co_return batch;
      } else if (offset > log.end_offset) {
        co_return damage(reader_->path(), log.end_offset, "the log does not end where it did");
      }
    }
    CO_TRY(const bool more, co_await open_next_segment());
    replay_done_ = !more;
  }
  co_return std::nullopt;
}

Result<ReplayedBatch> LogDirectory::take(const LogSegmentReader::Batch& batch) {
  const OldLog& log = logs_[replay_log_];
  const LogPosition position{reader_->header().id, batch.offset + kBatchHeaderSize};
  const RecordCursor records(batch.body, batch.header.count, position);
  absl::btree_set<TableId>& tables = logs_[replay_log_].segments[replay_segment_].tables;
  RecordCursor check = records;
  while (const auto record = check.next()) {
    tables.insert(record->table);
    summary_.record_bytes += record->bytes.size();
  }
  if (auto whole = check.status(); !whole) return std::move(whole).error().within(reader_->path());
  summary_.records += batch.header.count;
  ++summary_.batches;
  return ReplayedBatch{.core = log.core, .log_id = log.log_id, .records = records};
}

Task<Result<std::optional<ReplayedBatch>>> LogDirectory::next_batch() {
  while (true) {
    CO_TRY(const auto batch, co_await next_raw_batch());
    if (!batch) co_return std::nullopt;
    if (batch->header.kind != BatchKind::data || batch->header.count == 0) continue;
    CO_TRY(const auto replayed, take(*batch));
    co_return replayed;
  }
}

// Makes durable what was replayed, wherever it may still be in the page cache only: at the end of a
// log whose process was killed, and anywhere in a copied folder.
Task<Result<void>> LogDirectory::make_replayed_durable() {
  const bool copied = report_.last_stop == LastStop::copied;
  for (const OldLog& log : logs_) {
    for (const Segment& segment : log.segments) {
      const bool is_end = log.current && !log.sealed && segment.sequence == log.end_sequence;
      if (!copied && !is_end) continue;
      const std::uint64_t from = is_end ? log.synced_offset : log.end_offset;
      CO_TRY_VOID(co_await write_again(path_of(log, segment.sequence), from, log.end_offset));
    }
  }
  co_return {};
}

// Writes what the file holds between the two offsets once more, and syncs. A sync alone would not
// do: after one that failed, the page cache may show as clean what never reached the disk.
Task<Result<void>> LogDirectory::write_again(std::string path, std::uint64_t from,
                                             std::uint64_t to) {
  constexpr std::uint64_t kChunk = std::uint64_t{256} << 10;
  CO_TRY(auto file, co_await runtime_.files.open(path, {.write = true}));
  base::Buffer chunk(kChunk);
  while (from < to) {
    chunk.clear();
    const auto into = chunk.extend(std::min(kChunk, to - from));
    CO_TRY(const auto got, co_await file->read_at(from, into, Until::forever()));
    if (got < into.size()) co_return damage(path, from + got, "the file is shorter than it was");
    CO_TRY_VOID(co_await file->write_at(from, chunk.view(), Until::forever()));
    from += got;
  }
  CO_TRY_VOID(co_await file->sync(Until::forever()));
  co_return co_await file->close();
}

Task<Result<LogShare>> LogDirectory::make_seat(std::uint32_t core, const CommitLogOptions& options,
                                               std::uint32_t incarnation) {
  const SegmentHeader header{.id = {incarnation, 1},
                             .core = core,
                             .log_id = runtime_.random.next(),
                             .salt = runtime_.random.next(),
                             .segment_size = options.segment_size,
                             .alignment = options.alignment_wanted(),
                             .sync_mode = options.sync_mode,
                             .created = runtime_.clock.wall_now()};
  const std::string scratch = directory_ + "/" + scratch_file_name(core, 0);
  CO_TRY(auto prepared, co_await prepare_segment_file(runtime_, scratch, header, options.direct));
  const std::string path = directory_ + "/" + segment_file_name(header.id, core);
  CO_TRY_VOID(co_await publish_segment_file(runtime_, std::move(prepared.file), path));
  co_return LogShare{.directory = directory_, .first = prepared.header};
}

Task<Result<std::vector<LogShare>>> LogDirectory::begin(std::uint32_t cores,
                                                        CommitLogOptions options,
                                                        std::uint32_t incarnation_known) {
  ASSERT(replay_done_ && !begun_);
  CO_TRY_VOID(options.validate());
  if (cores == 0 || cores > kCoresMax) {
    co_return Error(Errc::invalid_argument, "{} cores: not between 1 and {}", cores, kCoresMax);
  }
  CO_TRY_VOID(co_await make_replayed_durable());
  std::uint32_t incarnation = std::max(catalog_.incarnation, incarnation_known);
  for (const std::string& name : names_) {
    const auto segment = parse_segment_file_name(name);
    if (segment) incarnation = std::max(incarnation, segment->id.incarnation);
  }
  if (incarnation == UINT32_MAX) co_return Error(Errc::overloaded, "out of incarnations");
  ++incarnation;

  std::vector<LogShare> shares;
  std::vector<std::uint64_t> current;
  for (std::uint32_t core = 0; core < cores; ++core) {
    CO_TRY(auto share, co_await make_seat(core, options, incarnation));
    current.push_back(share.first.log_id);
    shares.push_back(std::move(share));
  }
  for (OldLog& log : logs_) {
    std::erase_if(log.segments, [](const Segment& segment) { return segment.tables.empty(); });
  }
  std::erase_if(logs_, [](const OldLog& log) { return log.segments.empty(); });
  if (logs_.size() > LogCatalog::kRecoveredMax) {
    co_return Error(Errc::overloaded, "{}: {} logs of earlier starts wait to be flushed",
                    directory_, logs_.size());
  }
  catalog_.incarnation = incarnation;
  catalog_.in_doubt = report_.tail_may_be_lost;
  catalog_.boot_id = runtime_.boot_id;
  catalog_.current = std::move(current);
  CO_TRY_VOID(co_await store_log_catalog(runtime_, directory_, catalog_now()));
  begun_ = true;
  co_await remove_leftovers();
  co_await trim_ends();
  co_return shares;
}

LogCatalog LogDirectory::catalog_now() const {
  LogCatalog catalog = catalog_;
  catalog.recovered.clear();
  for (const OldLog& log : logs_) {
    RecoveredLog recovered{.incarnation = log.incarnation,
                           .core = log.core,
                           .log_id = log.log_id,
                           .segments = {},
                           .end_sequence = log.end_sequence,
                           .end_offset = log.end_offset};
    for (const Segment& segment : log.segments) recovered.segments.push_back(segment.sequence);
    catalog.recovered.push_back(std::move(recovered));
  }
  return catalog;
}

// What cannot be removed now is tried again at the next start.
Task<void> LogDirectory::remove_leftovers() {
  const auto listed = [this](const SegmentFileName& name) {
    return std::ranges::any_of(logs_, [&](const OldLog& log) {
      return log.incarnation == name.id.incarnation && log.core == name.core &&
             std::ranges::find(log.segments, name.id.sequence, &Segment::sequence) !=
                 log.segments.end();
    });
  };
  for (const std::string& name : names_) {
    const auto segment = parse_segment_file_name(name);
    const bool leftover = segment
                              ? segment->id.incarnation < catalog_.incarnation && !listed(*segment)
                              : is_scratch_file_name(name);
    if (!leftover) continue;
    const auto removed = co_await runtime_.files.remove(directory_ + "/" + name);
    if (!removed && !removed.failed_with(Errc::not_found)) {
      log_.warn("cannot remove a leftover", kv("file", name), kv("error", removed.error()));
    }
  }
}

// Gives back the room that was reserved behind the end of each log.
Task<void> LogDirectory::trim_ends() {
  for (const OldLog& log : logs_) {
    if (!log.current || log.segments.back().sequence != log.end_sequence) continue;
    const std::string path = path_of(log, log.end_sequence);
    auto file = co_await runtime_.files.open(path, {.write = true});
    if (!file) continue;
    const auto trimmed = co_await (*file)->truncate(log.end_offset);
    if (!trimmed) log_.warn("cannot trim", kv("file", path), kv("error", trimmed.error()));
    const auto closed = co_await (*file)->close();
    if (!closed) log_.warn("cannot close", kv("file", path), kv("error", closed.error()));
  }
}

Task<Result<void>> LogDirectory::clear_tail_doubt() {
  return store_doubt(false);
}

Task<Result<void>> LogDirectory::note_doubt() {
  return store_doubt(true);
}

Task<Result<void>> LogDirectory::store_doubt(bool in_doubt) {
  ASSERT(begun_);
  CO_TRY(const auto turn, co_await catalog_turn_.acquire(1, Until::forever()));
  if (catalog_.in_doubt == in_doubt) co_return {};
  LogCatalog settled = catalog_now();
  settled.in_doubt = in_doubt;
  CO_TRY_VOID(co_await store_log_catalog(runtime_, directory_, settled));
  catalog_.in_doubt = in_doubt;
  co_return {};
}

Task<Result<void>> LogDirectory::release(std::vector<TableId> tables) {
  ASSERT(begun_);
  CO_TRY(const auto turn, co_await catalog_turn_.acquire(1, Until::forever()));
  for (OldLog& log : logs_) {
    for (Segment& segment : log.segments) {
      for (const TableId table : tables) segment.tables.erase(table);
    }
  }
  co_return co_await drop_unneeded();
}

Task<Result<void>> LogDirectory::drop_unneeded() {
  std::vector<std::string> dropped;
  for (OldLog& log : logs_) {
    for (const Segment& segment : log.segments) {
      if (segment.tables.empty()) dropped.push_back(path_of(log, segment.sequence));
    }
    std::erase_if(log.segments, [](const Segment& segment) { return segment.tables.empty(); });
  }
  std::erase_if(logs_, [](const OldLog& log) { return log.segments.empty(); });
  if (dropped.empty()) co_return {};
  // The catalog first: a segment it lists must be there.
  CO_TRY_VOID(co_await store_log_catalog(runtime_, directory_, catalog_now()));
  for (const std::string& path : dropped) {
    const auto removed = co_await runtime_.files.remove(path);
    if (!removed) log_.warn("cannot remove", kv("file", path), kv("error", removed.error()));
  }
  co_return {};
}

std::size_t LogDirectory::recovered_segments() const {
  std::size_t count = 0;
  for (const OldLog& log : logs_) count += log.segments.size();
  return count;
}

std::vector<TableId> LogDirectory::tables_unreleased() const {
  absl::btree_set<TableId> tables;
  for (const OldLog& log : logs_) {
    for (const Segment& segment : log.segments) {
      tables.insert(segment.tables.begin(), segment.tables.end());
    }
  }
  return {tables.begin(), tables.end()};
}

Task<Result<void>> LogDirectory::close() {
  if (reader_ != nullptr) CO_TRY_VOID(co_await std::exchange(reader_, nullptr)->close());
  lock_ = nullptr;
  co_return {};
}

}  // namespace helenus::storage
