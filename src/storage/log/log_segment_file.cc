#include "storage/log/log_segment_file.h"

#include "runtime/files.h"

namespace helenus::storage {

using base::Errc;
using base::Result;
using runtime::File;
using runtime::OpenOptions;
using runtime::Task;
using runtime::Until;

static_assert(kBatchAlignmentDirect % runtime::kDirectAlignment == 0);
static_assert(kSegmentHeaderSize % runtime::kDirectAlignment == 0);

namespace {

constexpr std::string_view kScratchPrefix = "scratch-";

bool cannot_be_direct(const Result<std::unique_ptr<File>>& opened) {
  return opened.failed_with(Errc::invalid_argument) || opened.failed_with(Errc::unsupported);
}

}  // namespace

std::string scratch_file_name(std::uint32_t core, std::uint64_t number) {
  return fmt::format("{}{:04}-{:010}.log", kScratchPrefix, core, number);
}

bool is_scratch_file_name(std::string_view name) {
  return name.starts_with(kScratchPrefix);
}

Task<Result<PreparedSegment>> prepare_segment_file(runtime::Runtime& runtime, std::string path,
                                                   SegmentHeader header, DirectIo direct) {
  OpenOptions options{.write = true, .create = true};
  options.direct = direct != DirectIo::off && header.alignment == kBatchAlignmentDirect;
  auto opened = co_await runtime.files.open(path, options);
  if (options.direct && direct == DirectIo::automatic && cannot_be_direct(opened)) {
    options.direct = false;
    opened = co_await runtime.files.open(path, options);
  }
  if (!opened) co_return std::move(opened).error();
  header.alignment = options.direct ? kBatchAlignmentDirect : kBatchAlignmentBuffered;
  auto file = *std::move(opened);
  CO_TRY_VOID(co_await file->preallocate(header.segment_size));
  base::Buffer block(kSegmentHeaderSize, runtime::kDirectAlignment);
  encode_segment_header(header, block.extend(kSegmentHeaderSize));
  CO_TRY_VOID(co_await file->write_at(0, block.view(), Until::forever()));
  co_return PreparedSegment{.file = std::move(file), .header = header};
}

Task<Result<void>> publish_segment_file(runtime::Runtime& runtime, std::unique_ptr<File> file,
                                        std::string to) {
  const std::string from = file->path();
  CO_TRY_VOID(co_await file->sync(Until::forever()));
  CO_TRY_VOID(co_await file->close());
  CO_TRY_VOID(co_await runtime.files.rename(from, to));
  co_return co_await runtime.files.sync_directory(runtime::directory_of(to));
}

Task<Result<std::unique_ptr<File>>> open_segment_file(runtime::Runtime& runtime, std::string path,
                                                      const SegmentHeader& header) {
  OpenOptions options{.write = true};
  options.direct = header.alignment == kBatchAlignmentDirect;
  co_return co_await runtime.files.open(std::move(path), options);
}

}  // namespace helenus::storage
