// For tests: which filters the files in a folder have, as whoever opens them finds.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "runtime/runtime.h"
#include "runtime/task.h"
#include "storage/manifest/knowledge.h"
#include "storage/sstable/sstable_reader.h"

namespace helenus::storage::testing {

struct FileFilters {
  FilterKind kind = FilterKind::none;
  Compression compression = Compression::none;
  std::uint64_t keys = 0;
  std::size_t bytes = 0;  // of the filters, in memory

  friend bool operator==(const FileFilters&, const FileFilters&) = default;
};

// By path, and so by number where one folder is asked for. Mutation files are left out.
inline runtime::Task<base::Result<std::map<std::string, FileFilters>>> filters_in(
    runtime::Runtime& runtime, std::vector<std::string> folders) {
  std::map<std::string, FileFilters> all;
  SstableShared shared(1 << 20);
  for (const std::string& folder : folders) {
    CO_TRY(const auto entries, co_await runtime.files.list(folder));
    for (const auto& entry : entries) {
      const std::string path = folder + "/" + entry.name;
      if (!path.ends_with(".sst")) continue;
      CO_TRY(const auto reader,
             co_await SstableReader::open(runtime, shared, path, {}, runtime::Until::forever()));
      if (!decode_sstable_metadata(reader->metadata())) continue;
      FileFilters& file = all[path];
      if (!reader->filters().empty()) file.kind = reader->filters().front().kind();
      file.compression = reader->statistics().compression;
      file.keys = reader->statistics().key_count;
      file.bytes = reader->filter_bytes();
    }
  }
  co_return all;
}

}  // namespace helenus::storage::testing
