#include "storage/engine/directory_set.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/codec.h"
#include "base/versioned_file.h"
#include "runtime/file_system.h"
#include "runtime/files.h"

namespace helenus::storage {

using base::Errc;
using base::Error;
using base::Result;
using runtime::Task;

namespace {

constexpr base::FileFormat kMarkerFormat{.magic = "HLNSPLCE", .version = 2};
// Without the node.
constexpr base::FileFormat kMarkerFormatV1{.magic = "HLNSPLCE", .version = 1};
constexpr base::FileFormat kGenerationsFormat{.magic = "HLNSGNRT", .version = 1};
constexpr std::string_view kGenerationsPrefix = "generations-";
constexpr std::size_t kMarkerSize = kMarkerFormat.frame_size() + 2 * base::Uuid::kSize + 3 * 4;
// A shard and its generation take at most 3 and 10 bytes.
constexpr std::size_t kGenerationsSizeMax = std::size_t{64} << 10;

}  // namespace

base::Bytes encode(const DirectoryMarker& marker) {
  base::Buffer body;
  base::Encoder out(body);
  out.raw(marker.folder.bytes());
  out.u32_le(marker.index);
  out.u32_le(marker.directories);
  out.u32_le(marker.start);
  out.raw(marker.node.value_or(base::Uuid()).bytes());
  return base::encode_file(kMarkerFormat, body.view());
}

Result<DirectoryMarker> decode_directory_marker(base::ByteView bytes) {
  const bool is_first = base::file_version(kMarkerFormat, bytes) == kMarkerFormatV1.version;
  TRY(const auto body, base::decode_file(is_first ? kMarkerFormatV1 : kMarkerFormat, bytes));
  base::Decoder in(body);
  DirectoryMarker marker{.folder = base::decode_uuid(in)};
  marker.index = in.u32_le();
  marker.directories = in.u32_le();
  marker.start = in.u32_le();
  if (!is_first) {
    const base::Uuid node = base::decode_uuid(in);
    if (node != base::Uuid()) marker.node = node;
  }
  TRY_VOID(in.finish());
  return marker;
}

base::Bytes encode_generations(const Generations& generations) {
  base::Buffer body;
  base::Encoder out(body);
  out.varint(generations.size());
  for (const auto& [shard, generation] : generations) {
    out.varint(shard);
    out.varint(generation);
  }
  return base::encode_file(kGenerationsFormat, body.view());
}

Result<Generations> decode_generations(base::ByteView bytes) {
  TRY(const auto body, base::decode_file(kGenerationsFormat, bytes));
  base::Decoder in(body);
  Generations generations;
  for (std::size_t left = in.count(2); left > 0 && in.ok(); --left) {
    const std::uint64_t shard = in.varint();
    if (shard >= kShardsMax) in.fail("a shard's number is too large");
    const auto number = static_cast<std::uint32_t>(shard);
    if (!generations.empty() && generations.rbegin()->first >= number) {
      in.fail("shards are out of order");
    }
    generations.emplace_hint(generations.end(), number, in.varint());
  }
  TRY_VOID(in.finish());
  return generations;
}

// ---- Files ----

std::string directory_marker_path(const std::string& directory, DirectoryKind kind) {
  return directory + (kind == DirectoryKind::data ? "/place" : "/log-place");
}

std::string generations_path(const std::string& log_directory) {
  return fmt::format("{}/{}start", log_directory, kGenerationsPrefix);
}

std::string generations_path(const std::string& log_directory, std::uint32_t core) {
  return fmt::format("{}/{}{:04}", log_directory, kGenerationsPrefix, core);
}

Task<Result<std::optional<DirectoryMarker>>> read_directory_marker(runtime::Runtime& runtime,
                                                                   std::string directory,
                                                                   DirectoryKind kind) {
  const std::string path = directory_marker_path(directory, kind);
  const auto bytes = co_await runtime::read_file(runtime, path, kMarkerSize);
  if (bytes.failed_with(Errc::not_found)) co_return std::nullopt;
  if (!bytes) co_return bytes.error();
  auto marker = decode_directory_marker(*bytes);
  if (!marker) co_return std::move(marker).error().within(path);
  co_return *marker;
}

Task<Result<void>> write_directory_marker(runtime::Runtime& runtime, std::string directory,
                                          DirectoryKind kind, DirectoryMarker marker) {
  return runtime::replace_file(runtime, directory_marker_path(directory, kind), encode(marker));
}

Task<Result<Generations>> read_generations(runtime::Runtime& runtime, std::string log_directory) {
  CO_TRY(const auto entries, co_await runtime.files.list(log_directory));
  Generations all;
  for (const runtime::DirectoryEntry& entry : entries) {
    const bool one = entry.name.starts_with(kGenerationsPrefix) && !entry.name.ends_with(".new");
    if (!one) continue;
    const std::string path = log_directory + "/" + entry.name;
    CO_TRY(const auto bytes, co_await runtime::read_file(runtime, path, kGenerationsSizeMax));
    auto some = decode_generations(bytes);
    if (!some) co_return std::move(some).error().within(path);
    for (const auto& [shard, generation] : *some) {
      all[shard] = std::max(all[shard], generation);
    }
  }
  co_return all;
}

Task<Result<void>> remove_generations_of_cores(runtime::Runtime& runtime,
                                               std::string log_directory) {
  CO_TRY(const auto entries, co_await runtime.files.list(log_directory));
  const std::string of_start = generations_path(log_directory);
  for (const runtime::DirectoryEntry& entry : entries) {
    const std::string path = log_directory + "/" + entry.name;
    if (!entry.name.starts_with(kGenerationsPrefix) || path == of_start) continue;
    CO_TRY_VOID(co_await runtime.files.remove(path));
  }
  co_return {};
}

// ---- Comparing ----

std::uint32_t last_written_start(const CommitLogDirectory& log) {
  return log.written || !log.marker ? log.incarnation : log.marker->start;
}

std::uint32_t last_known_start(const DirectorySet& set) {
  std::uint32_t last = 0;
  for (const DataDirectory& data : set.data) {
    if (data.marker) last = std::max(last, data.marker->start);
  }
  for (const ShardDirectory& shard : set.shards) {
    last = std::max(last, shard.incarnation);
    if (shard.log_reached) last = std::max(last, shard.log_reached->position.segment.incarnation);
  }
  return last;
}

bool log_is_lost(const DirectorySet& set) {
  const bool marked = std::ranges::any_of(
      set.data, [](const DataDirectory& data) { return data.marker.has_value(); });
  const bool used =
      std::ranges::any_of(set.shards, [](const ShardDirectory& shard) { return !shard.untouched; });
  return set.log.fresh && (marked || used);
}

namespace {

constexpr std::string_view kRemedy =
    "restore all directories from the same backup, or move the logs away and open what is left "
    "with accept_lost_log_of_start";

// The marker of the log directory, or of any data directory if there is none.
const DirectoryMarker* folder_marker(const DirectorySet& set) {
  if (set.log.marker) return &*set.log.marker;
  for (const DataDirectory& data : set.data) {
    if (data.marker) return &*data.marker;
  }
  return nullptr;
}

Result<void> check_unmarked(const DirectorySet& set, const DirectoryMarker& known,
                            std::uint32_t index) {
  const DataDirectory& data = set.data[index];
  // The first start was cut short: nothing was written since.
  if (last_written_start(set.log) == 0) return {};
  std::uint32_t count = 0;
  for (const DataDirectory& other : set.data) {
    if (other.marker) count = std::max(count, other.marker->directories);
  }
  if (index >= count && index > 0 && !data.has_engine_file) return {};  // it is a new one
  return Error(Errc::corrupt,
               "{}: is not data directory {} of folder {}, or is older than the logs in {}: it has "
               "no marker; {}",
               data.directory, index, known.folder, set.log.directory, kRemedy);
}

Result<void> check_node(const DirectorySet& set, const std::string& path,
                        const std::optional<base::Uuid>& node) {
  if (!set.node || !node || *node == *set.node) return {};
  return Error(Errc::corrupt,
               "{} is of node {}, and this is node {}: give each node the folders that are its own",
               path, *node, *set.node);
}

// What the manifests say of tablets fits together.
Result<void> check_shards(const DirectorySet& set) {
  if (!set.strange_shards.empty()) {
    return Error(Errc::corrupt,
                 "{}: the folder has {} shards by its file \"engine\", which is another folder's; "
                 "restore it",
                 set.strange_shards.front(), set.shards.size());
  }
  for (std::uint32_t number = 0; number < set.shards.size(); ++number) {
    const ShardDirectory& shard = set.shards[number];
    for (const TabletId tablet : shard.tablets) {
      if (tablet.value() % set.shards.size() == number) continue;
      return Error(Errc::corrupt, "{}: tablet {} is of another shard; restore the manifest",
                   shard.manifest_path, tablet);
    }
    TRY_VOID(check_node(set, shard.manifest_path, shard.node));
  }
  return {};
}

Result<void> check_data_directory(const DirectorySet& set, const DirectoryMarker& known,
                                  std::uint32_t index) {
  const DataDirectory& data = set.data[index];
  if (!data.marker) return check_unmarked(set, known, index);
  TRY_VOID(check_node(set, data.directory, data.marker->node));
  if (data.marker->folder != known.folder) {
    return Error(Errc::corrupt, "{} is of folder {}, and {} is of folder {}", data.directory,
                 data.marker->folder, set.log.directory, known.folder);
  }
  if (data.marker->index != index) {
    return Error(Errc::corrupt, "{}: is data directory {} of folder {}, and was given as {}",
                 data.directory, data.marker->index, known.folder, index);
  }
  if (set.log.fresh) return {};
  const std::uint32_t written = last_written_start(set.log);
  if (data.marker->start < written) {
    return Error(Errc::corrupt,
                 "{} is older than the logs in {}: it was last opened at start {}, and logs were "
                 "written to at start {}; {}",
                 data.directory, set.log.directory, data.marker->start, written, kRemedy);
  }
  if (data.marker->start > set.log.incarnation) {
    return Error(Errc::corrupt,
                 "the logs in {} are older than {}: they know of start {}, it was opened at start "
                 "{}; {}",
                 set.log.directory, data.directory, set.log.incarnation, data.marker->start,
                 kRemedy);
  }
  return {};
}

Result<void> check_shard_directory(const CommitLogDirectory& log, const ShardDirectory& shard,
                                   std::uint32_t number) {
  const auto noted = log.generations.find(number);
  if (noted != log.generations.end() && shard.generation < noted->second) {
    return Error(Errc::corrupt,
                 "{} is older than the logs in {}: it is generation {}, and the logs have let go "
                 "what generation {} has; {}",
                 shard.manifest_path, log.directory, shard.generation, noted->second, kRemedy);
  }
  const auto log_is_older = [&](const auto& what) {
    return Error(Errc::corrupt, "the logs in {} are older than {}, which was written {}; {}",
                 log.directory, shard.manifest_path, what, kRemedy);
  };
  if (shard.incarnation > log.incarnation) {
    return log_is_older(
        fmt::format("at start {}, and they know of start {}", shard.incarnation, log.incarnation));
  }
  if (!shard.log_reached) return {};
  const auto& [core, reached] = *shard.log_reached;
  if (reached.segment.incarnation < log.incarnation) return {};
  const bool within = reached.segment.incarnation == log.incarnation && core < log.ends.size() &&
                      reached <= log.ends[core];
  if (within) return {};
  return log_is_older(fmt::format("when that of core {} had come to {}", core, reached));
}

}  // namespace

Result<void> check_directory_set(const DirectorySet& set) {
  if (!set.log.marker && !set.log.fresh) {
    return Error(Errc::corrupt,
                 "{}: the logs are not of the folder in {}, or are older: no marker; {}",
                 set.log.directory, set.data.front().directory, kRemedy);
  }
  TRY_VOID(check_shards(set));
  if (set.log.marker) TRY_VOID(check_node(set, set.log.directory, set.log.marker->node));
  if (const DirectoryMarker* known = folder_marker(set); known != nullptr) {
    for (std::uint32_t index = 0; index < set.data.size(); ++index) {
      TRY_VOID(check_data_directory(set, *known, index));
    }
  }
  if (set.log.fresh) return {};
  if (last_written_start(set.log) > 0 && !set.log.has_generations) {
    return Error(Errc::corrupt, "{} is missing; {}", generations_path(set.log.directory), kRemedy);
  }
  for (std::uint32_t number = 0; number < set.shards.size(); ++number) {
    TRY_VOID(check_shard_directory(set.log, set.shards[number], number));
  }
  return {};
}

}  // namespace helenus::storage
