// LogCatalog: the root of a folder of commit logs, one small file replaced as a whole.
//
// It says which logs there must be. Written at every start, before a log of the new incarnation
// takes its first record; so what it lists is never in doubt:
//   current    the logs begun at the last start: their id for each core. How far they got, they
//              tell themselves
//   recovered  logs of earlier incarnations that were replayed and are still needed: their segments
//              and their exact end, found at that start and durable since
// A segment of a log that is listed in neither is a leftover and is removed.
//
// The file also holds what theory S1 wants compared at the next start: the kernel's boot id, and
// this very file's device, inode and time of birth, which a copy of the folder does not have.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "runtime/file_system.h"
#include "runtime/runtime.h"
#include "runtime/task.h"
#include "storage/log/log_format.h"

namespace helenus::storage {

struct RecoveredLog {
  std::uint32_t incarnation = 0;
  std::uint32_t core = 0;
  std::uint64_t log_id = 0;
  std::vector<std::uint32_t> segments;  // that are still needed, ascending; not empty
  // Where the log ends. Its segment may be gone already; then all others end by themselves.
  std::uint32_t end_sequence = 0;
  std::uint64_t end_offset = 0;
  friend bool operator==(const RecoveredLog&, const RecoveredLog&) = default;
};

struct LogCatalog {
  static constexpr std::size_t kRecoveredMax = 4096;
  static constexpr std::size_t kFileSizeMax = std::size_t{16} << 20;

  std::uint32_t incarnation = 0;
  // A start since the last clear_tail_doubt() found that acknowledged records may be missing.
  bool in_doubt = false;
  std::string boot_id;
  runtime::FileIdentity identity;
  std::vector<std::uint64_t> current;   // log ids by core
  std::vector<RecoveredLog> recovered;  // ascending by incarnation and core
  friend bool operator==(const LogCatalog&, const LogCatalog&) = default;
};

base::Bytes encode(const LogCatalog& catalog);
// Errors: corrupt; unsupported (a newer version).
base::Result<LogCatalog> decode_log_catalog(base::ByteView bytes);

std::string log_catalog_path(const std::string& directory);

struct LoadedCatalog {
  LogCatalog catalog;
  // Whether the file is the one that was written, and not a copy.
  bool original = false;
};

// Nothing if the folder has none. Errors: those of the file system and of decoding.
runtime::Task<base::Result<std::optional<LoadedCatalog>>> load_log_catalog(
    runtime::Runtime& runtime, std::string directory);
// Replaces the file; durable when it returns success. Fills in `identity`. After an error or a
// crash either content may be there.
runtime::Task<base::Result<void>> store_log_catalog(runtime::Runtime& runtime,
                                                    std::string directory, LogCatalog catalog);

}  // namespace helenus::storage
