// DirectorySet: the directories an engine's folder is made of, and how a start notices that one of
// them is not of the same time as the others.
//
// The data directories and the log directory may lie on different disks, so one of them may be
// restored from a backup, swapped, emptied or left unmounted while the others stay. Each is sound
// by itself then, and together they lie: the log has let go what an older manifest does not have,
// or a newer manifest counts on records that an older log never had. Dots would be minted twice
// (S1) and data be missing without a word (S6). So what does not fit together is refused, before
// anything is changed, and the error names both sides. docs/adr/0021 says why it is not taken for a
// doubtful stop.
//
// What each directory knows (docs/formats/engine.md):
//   marker      in every directory: which folder it is of, which of its directories, and which
//               node's
//               in a data directory: the last start that was completed, as the log counts them
//               (`start`: an incarnation)
//               in the log directory: the last start before this one in which a log was written to
//   manifest    how many changes it has seen (`generation`), and how far the log was synced then
//               (`log_reached`)
//   generations in the log directory, one file of the start and one of each core: of shards a
//               generation that the manifest had before the logs let anything go
//
// Order of a start: the marker of the log directory; the new incarnation in the log's catalog; the
// markers of the data directories; what was replayed is flushed; the generations of the start; the
// old logs go; only then the first write.
//
// How they are compared. Let L be the incarnation in the catalog and W the last one with a log that
// was written to: L if one of its logs was, else what the log directory's marker says.
//   1. W <= start <= L for every data directory. A start that was cut short leaves start < L, and
//      then nothing was written since; a start that was completed leaves start = L. So start < W
//      means that the directory is older than the log, and start > L that the log is older.
//   2. generation >= what the log directory says of each shard. The log lets a segment go, and a
//      change of tables or tablets is told to the caller, only after that file says so. So a
//      smaller generation means a manifest older than the log, within one start. One that is older
//      and has all the generations that were noted has lost nothing: the log still has every record
//      since, and what merges of files have done is done again.
//   3. log_reached lies within the log of that core, if it is of incarnation L, and is not of a
//      later one. It was synced when the manifest was written, so a log that ends before it is
//      older than the manifest. (So are logs of which segments are missing: log_directory.h.)
//   4. A manifest's files are where it says they are (shard.h), and their numbers are not given
//      twice within a start: so of several data directories none is older than the manifests.
//   5. All is one node's: markers and manifests name it. A tablet is in the shard of its number,
//   and
//      there is no shard beyond those that the folder says it has.
//   6. Once a log was written to, the log directory has the generations of a start: without them
//      nothing shows that a manifest is older.
// While the first start has not been completed (W = 0), data directories without a marker are fine.
//
// A lost log that is accepted (EngineOptions::accept_lost_log_of_start) leaves files and manifests.
// A tablet may go on with them, since they are a consistent pair of data and clock, which is what
// theory S14 asks of a replica that re-enters. Let U be the dots whose records were in the logs
// alone. The pair is what the replica would be, had U never come:
//   - The clocks have nothing of U. A flush enters the dots of its memtable into the manifest, and
//     not all that the tablet had seen by then: a dot of another table that is still in memory
//     would be left claimed and without data, which is a delete (S6), and would spread as one.
//   - The files have nothing of U. They are written from memtables, and a memtable's dots enter the
//     manifest with its file.
//   - Nothing in the files was changed by U. A merge strips a context, or drops a version, by
//     knowledge of an instant at which it holds every fragment of the key and of the ranges over it
//     (merge_writer.h): so a dot of U that matters to the key would be in one of its fragments, in
//     a file. Dots of other keys and other tables in a context decide nothing about this one; that
//     they were stripped leaves a context as good as before.
//   - What was stable stays so: the members that have it have it.
// What remains of U is a name. Dots of it may be in contexts here, and some of the replica's own
// may have reached peers: so it mints under a new actor, and peers forget what they thought it had
// (S14). The new log counts its incarnations on from the largest that the data knows of, so that no
// position of the new log is taken for one of the old.
//
// What cannot be noticed here: all directories brought back to one earlier moment, as by the image
// of a virtual machine. The log's catalog notices a copy, but not an image with the same inodes:
// there a replica finds out from its peers (S13).
//
// Pure, but for reading and writing the files.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <absl/container/btree_map.h>

#include "base/bytes.h"
#include "base/result.h"
#include "base/uuid.h"
#include "runtime/runtime.h"
#include "runtime/task.h"
#include "storage/ids/log_position.h"
#include "storage/manifest/manifest.h"
#include "storage/mutations/mutation_record.h"

namespace helenus::storage {

// Which of the folder's directories the log's is.
inline constexpr std::uint32_t kLogDirectory = UINT32_MAX;

struct DirectoryMarker {
  base::Uuid folder;
  std::uint32_t index = 0;        // which of the data directories, or kLogDirectory
  std::uint32_t directories = 0;  // how many data directories there are
  // In a data directory the last start that was completed; in the log's the last one before the
  // newest with a log that was written to.
  std::uint32_t start = 0;
  std::optional<base::Uuid> node = {};  // whose; unknown before version 2
  friend bool operator==(const DirectoryMarker&, const DirectoryMarker&) = default;
};

// By shard.
using Generations = absl::btree_map<std::uint32_t, std::uint64_t>;

base::Bytes encode(const DirectoryMarker& marker);
// Errors: corrupt; unsupported (another version).
base::Result<DirectoryMarker> decode_directory_marker(base::ByteView bytes);
base::Bytes encode_generations(const Generations& generations);
// Errors: corrupt; unsupported (another version).
base::Result<Generations> decode_generations(base::ByteView bytes);

// The two kinds have different names: the logs may lie in a data directory.
enum class DirectoryKind : std::uint8_t { data, logs };
std::string directory_marker_path(const std::string& directory, DirectoryKind kind);
// Of the start, and of a core since.
std::string generations_path(const std::string& log_directory);
std::string generations_path(const std::string& log_directory, std::uint32_t core);

// Nothing if there is none. Errors: those of the file system and of decoding, naming the file.
runtime::Task<base::Result<std::optional<DirectoryMarker>>> read_directory_marker(
    runtime::Runtime& runtime, std::string directory, DirectoryKind kind);
// Durable when it returns.
runtime::Task<base::Result<void>> write_directory_marker(runtime::Runtime& runtime,
                                                         std::string directory, DirectoryKind kind,
                                                         DirectoryMarker marker);
// What all the files say, the largest of each shard. Errors: as above.
runtime::Task<base::Result<Generations>> read_generations(runtime::Runtime& runtime,
                                                          std::string log_directory);

// Removes those of cores, and what writing them left half done. Those of the start say as much, and
// there may be fewer cores now. Requires: those of the start are durable, and of all shards.
runtime::Task<base::Result<void>> remove_generations_of_cores(runtime::Runtime& runtime,
                                                              std::string log_directory);

// What a start finds.
struct DataDirectory {
  std::string directory;
  std::optional<DirectoryMarker> marker;
  bool has_engine_file = false;
};
struct CommitLogDirectory {
  std::string directory;
  std::optional<DirectoryMarker> marker;
  bool fresh = false;             // no catalog
  std::uint32_t incarnation = 0;  // L
  bool written = false;           // whether a log of it was
  std::vector<LogPosition> ends;  // of its logs, by core
  Generations generations;
  bool has_generations = false;  // of a start
};
struct ShardDirectory {
  std::string manifest_path;
  std::uint64_t generation = 0;
  // The latest incarnation that its tables know of.
  std::uint32_t incarnation = 0;
  std::optional<LogReached> log_reached;
  bool untouched = false;  // as it was when the folder was made
  std::vector<TabletId> tablets;
  std::optional<base::Uuid> node = {};
};
struct DirectorySet {
  std::vector<DataDirectory> data;
  CommitLogDirectory log;
  std::vector<ShardDirectory> shards;  // empty if the folder is new
  // Of the first data directory: shards that the folder does not say it has.
  std::vector<std::string> strange_shards;
  std::optional<base::Uuid> node = {};  // whose they are to be
};

// W of the comparison above.
std::uint32_t last_written_start(const CommitLogDirectory& log);
// The largest incarnation that anything in the data directories knows of.
std::uint32_t last_known_start(const DirectorySet& set);
// The logs are gone, and data directories know that there were some.
bool log_is_lost(const DirectorySet& set);
// Errors: corrupt, naming the directories that do not fit. A lost log is none of them.
base::Result<void> check_directory_set(const DirectorySet& set);

}  // namespace helenus::storage
