// Making the files of segments, so that a file with a segment's name always has a whole header.
//
// A new or recycled file is prepared under a scratch name (room reserved, header written), synced,
// renamed, and its directory synced. Every crash therefore leaves either no file of that name or
// one whose header is durable: a segment whose header cannot be read is damage, never a torn
// creation. Scratch files that a crash leaves behind are removed at the next start.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "runtime/file_system.h"
#include "runtime/runtime.h"
#include "runtime/task.h"
#include "storage/log/log_format.h"

namespace helenus::storage {

// Whether a log is written past the page cache. Automatic: where every write is followed by a
// sync, if the file system can.
enum class DirectIo : unsigned char { automatic, on, off };

// A name for a file that is nobody's segment at the moment.
std::string scratch_file_name(std::uint32_t core, std::uint64_t number);
bool is_scratch_file_name(std::string_view name);

struct PreparedSegment {
  std::unique_ptr<runtime::File> file;
  SegmentHeader header;  // with the alignment that the file system can do
};

// Opens or creates `path`, reserves the room and writes the header. An error is no harm: nothing
// depends on the file yet. Errors: no_space, and all others of the file system.
runtime::Task<base::Result<PreparedSegment>> prepare_segment_file(runtime::Runtime& runtime,
                                                                  std::string path,
                                                                  SegmentHeader header,
                                                                  DirectIo direct);

// Makes the prepared file the segment `to`, durably. An error other than no_space is a failed sync
// or worse, after which the directory is in doubt.
runtime::Task<base::Result<void>> publish_segment_file(runtime::Runtime& runtime,
                                                       std::unique_ptr<runtime::File> file,
                                                       std::string to);

// Opens a segment for appending to it.
runtime::Task<base::Result<std::unique_ptr<runtime::File>>> open_segment_file(
    runtime::Runtime& runtime, std::string path, const SegmentHeader& header);

}  // namespace helenus::storage
