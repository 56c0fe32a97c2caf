// LogSegmentReader: one segment of a commit log, read batch by batch, without holding more of it in
// memory than one batch and a read-ahead.
//
// It says what lies in the file and judges nothing: where the bytes stop being a batch, next()
// returns nothing, and whether that is a torn tail or damage is for the caller to weigh, with the
// help of search_claims().
//
// Owned by one coroutine at a time. Every error names the file, and the offset where it has one.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/bytes.h"
#include "base/result.h"
#include "runtime/file_system.h"
#include "runtime/runtime.h"
#include "runtime/task.h"
#include "storage/log/log_format.h"

namespace helenus::storage {

class LogSegmentReader {
  struct Private {
    explicit Private() = default;
  };

 public:
  struct Batch {
    BatchHeader header;
    std::uint64_t offset = 0;
    base::ByteView body;  // until the next call
  };

  // Opens the file and reads its header. Errors: those of the file system; corrupt, unsupported.
  static runtime::Task<base::Result<std::unique_ptr<LogSegmentReader>>> open(
      runtime::Runtime& runtime, std::string path);

  // For open().
  LogSegmentReader(Private, std::unique_ptr<runtime::File> file, std::string path)
      : file_(std::move(file)), path_(std::move(path)) {}

  const SegmentHeader& header() const { return header_; }
  const std::string& path() const { return path_; }
  std::uint64_t file_size() const { return file_size_; }
  // Where the next batch would begin.
  std::uint64_t offset() const { return offset_; }

  // The next batch, or nothing if there is no whole one. Errors: those of reading.
  runtime::Task<base::Result<std::optional<Batch>>> next();
  // Looks for headers of batches from offset() to the end of the file.
  runtime::Task<base::Result<LogClaims>> search_claims();

  runtime::Task<base::Result<void>> close();

 private:
  // The bytes of the file in [offset, offset + size), fewer only at its end or the segment's.
  runtime::Task<base::Result<base::ByteView>> bytes_at(std::uint64_t offset, std::size_t size);

  std::unique_ptr<runtime::File> file_;
  std::string path_;
  std::uint64_t file_size_ = 0;
  SegmentHeader header_;
  std::uint64_t offset_ = kSegmentHeaderSize;
  // window_ holds the file's bytes from window_offset_ on.
  base::Buffer window_;
  std::uint64_t window_offset_ = 0;
};

}  // namespace helenus::storage
