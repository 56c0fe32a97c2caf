// For tests: one simulated machine that runs bodies, crashes, and keeps its disk.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/assert.h"
#include "base/bytes.h"
#include "runtime/runtime.h"
#include "runtime/task.h"
#include "sim/world.h"
#include "storage/log/commit_log.h"
#include "storage/log/log_directory.h"

namespace helenus::storage::testing {

inline constexpr const char* kLogFolder = "/data/commitlog";

// Small segments, so that a short history changes them often.
inline CommitLogOptions small_log(LogSyncMode mode = LogSyncMode::batch) {
  CommitLogOptions options;
  options.sync_mode = mode;
  options.segment_size = 64 << 10;
  options.record_size_max = 8 << 10;
  options.staged_bytes_max = 64 << 10;
  options.disk_bytes_max = 64 * options.segment_size;
  return options;
}

class LogWorld {
 public:
  using Body = std::function<runtime::Task<void>(runtime::Runtime&)>;

  explicit LogWorld(std::uint64_t seed = 1, std::uint16_t cores = 1,
                    const sim::WorldOptions& options = {})
      : world_(seed, options),
        machine_(world_.add_machine({.name = "store", .cores = cores}, {})) {}

  // Runs the body to its end, in virtual time.
  void run(Body body) {
    start(std::move(body));
    const bool returned =
        world_.run_until([&] { return !machine_.is_up(); }, std::chrono::hours(1));
    ASSERT(returned, "the body waits for something that never happens");
    machine_.kill();
  }
  // Starts the body; the caller makes the world go on.
  void start(Body body) {
    body_ = std::move(body);
    machine_.set_process(
        [this](runtime::Runtime& runtime) { return std::make_unique<Process>(runtime, body_); });
    machine_.start();
  }

  sim::World& world() { return world_; }
  sim::Machine& machine() { return machine_; }
  sim::SimDisk& disk() { return machine_.disk(); }
  sim::DiskFaults& faults() { return machine_.disk_queue().faults; }

  // ---- The files, from outside; what is written is durable ----
  std::vector<std::string> segment_paths() {
    std::vector<std::string> paths;
    const auto entries = disk().list(kLogFolder);
    for (const auto& entry : *entries) {
      if (parse_segment_file_name(entry.name))
        paths.push_back(std::string(kLogFolder) + "/" + entry.name);
    }
    return paths;
  }
  std::string read(const std::string& path) {
    const auto inode = disk().find(path);
    std::string bytes(disk().size(*inode), '\0');
    disk().read(*inode, 0, {reinterpret_cast<std::byte*>(bytes.data()), bytes.size()});
    return bytes;
  }
  void write(const std::string& path, std::uint64_t offset, std::string_view bytes) {
    const auto inode = disk().open(path, runtime::OpenOptions::read_write());
    ASSERT(disk().write(*inode, offset, base::as_bytes(bytes)).has_value());
    disk().sync(*inode, disk().sync_mark(*inode), 0);
    sync_names();
  }
  void flip_bit(const std::string& path, std::uint64_t bit) {
    const char byte = static_cast<char>(read(path)[bit / 8] ^ (1 << (bit % 8)));
    write(path, bit / 8, {&byte, 1});
  }
  void remove(const std::string& path) {
    ASSERT(disk().remove(path).has_value());
    sync_names();
  }
  void sync_names() {
    const auto folder = disk().find_directory(kLogFolder);
    disk().commit_names(*folder, disk().names_mark());
  }

 private:
  class Process final : public sim::Process {
   public:
    Process(runtime::Runtime& runtime, const Body& body) : runtime_(runtime), body_(body) {}
    runtime::Task<void> run(runtime::StopToken) override { co_await body_(runtime_); }

   private:
    runtime::Runtime& runtime_;
    const Body& body_;
  };

  Body body_;
  sim::World world_;
  sim::Machine& machine_;
};

struct Replayed {
  TableId table;
  std::string bytes;
  LogPosition position;
  std::uint32_t core = 0;
  friend bool operator==(const Replayed&, const Replayed&) = default;
};

// What a start finds.
struct Recovery {
  std::optional<base::Error> error;
  LogOpenReport report;
  std::vector<Replayed> records;

  std::vector<std::string> texts() const {
    std::vector<std::string> texts;
    for (const Replayed& record : records) texts.push_back(record.bytes);
    return texts;
  }
};

inline runtime::Task<base::Result<void>> replay_all(LogDirectory& folder,
                                                    std::vector<Replayed>& into) {
  while (true) {
    CO_TRY(auto batch, co_await folder.next_batch());
    if (!batch) co_return {};
    while (const auto record = batch->records.next()) {
      into.push_back({.table = record->table,
                      .bytes = std::string(base::as_text(record->bytes)),
                      .position = record->position,
                      .core = batch->core});
    }
  }
}

// Opens the folder, replays it, and leaves it as it is.
inline runtime::Task<void> look(runtime::Runtime& runtime, Recovery& recovery) {
  recovery = {};
  auto folder = co_await LogDirectory::open(runtime, kLogFolder);
  if (!folder) {
    recovery.error = std::move(folder).error();
    co_return;
  }
  recovery.report = (*folder)->report();
  auto replayed = co_await replay_all(**folder, recovery.records);
  if (!replayed) recovery.error = std::move(replayed).error();
  auto closed = co_await (*folder)->close();
  ASSERT(closed.has_value(), "{}", closed.error().to_string());
}

inline Recovery recover(LogWorld& world) {
  Recovery recovery;
  world.run([&](runtime::Runtime& runtime) { return look(runtime, recovery); });
  return recovery;
}

// An opened folder with its logs, replayed and begun.
struct OpenLogs {
  std::unique_ptr<LogDirectory> folder;
  std::vector<std::unique_ptr<CommitLog>> logs;
  std::vector<Replayed> replayed;
};

inline runtime::Task<base::Result<OpenLogs>> open_logs(runtime::Runtime& runtime,
                                                       CommitLogOptions options,
                                                       std::uint32_t cores = 1) {
  OpenLogs open;
  CO_TRY(open.folder, co_await LogDirectory::open(runtime, kLogFolder));
  CO_TRY_VOID(co_await replay_all(*open.folder, open.replayed));
  CO_TRY(auto shares, co_await open.folder->begin(cores, options));
  for (LogShare& share : shares) {
    CO_TRY(auto log, co_await CommitLog::open(runtime, std::move(share), options));
    open.logs.push_back(std::move(log));
  }
  co_return std::move(open);
}

inline runtime::Task<base::Result<void>> stop_logs(OpenLogs& open) {
  for (auto& log : open.logs) CO_TRY_VOID(co_await log->stop());
  co_return co_await open.folder->close();
}

}  // namespace helenus::storage::testing
