#include "storage/log/log_segment_reader.h"

#include <algorithm>
#include <utility>

namespace helenus::storage {

using base::ByteView;
using base::Error;
using base::Result;
using runtime::Task;
using runtime::Until;

namespace {

constexpr std::size_t kReadAhead = std::size_t{256} << 10;

}  // namespace

Task<Result<std::unique_ptr<LogSegmentReader>>> LogSegmentReader::open(runtime::Runtime& runtime,
                                                                       std::string path) {
  CO_TRY(auto file, co_await runtime.files.open(path, runtime::OpenOptions::read_only()));
  auto reader = std::make_unique<LogSegmentReader>(Private{}, std::move(file), path);
  CO_TRY(reader->file_size_, co_await reader->file_->size());
  // Until the header is known, it is all that may be read.
  reader->header_.segment_size = kSegmentHeaderSize;
  CO_TRY(const auto bytes, co_await reader->bytes_at(0, kSegmentHeaderSize));
  auto header = decode_segment_header(bytes);
  if (!header) co_return std::move(header).error().within(path + " at offset 0");
  reader->header_ = *header;
  co_return std::move(reader);
}

Task<Result<ByteView>> LogSegmentReader::bytes_at(std::uint64_t offset, std::size_t size) {
  const std::uint64_t end = std::min(header_.segment_size, file_size_);
  const std::uint64_t left = end - std::min(offset, end);
  const auto wanted = static_cast<std::size_t>(std::min<std::uint64_t>(size, left));
  if (offset < window_offset_ || offset + wanted > window_offset_ + window_.size()) {
    const auto ahead =
        static_cast<std::size_t>(std::min<std::uint64_t>(std::max(wanted, kReadAhead), left));
    window_.clear();
    window_offset_ = offset;
    const auto into = window_.extend(ahead);
    auto got = co_await file_->read_at(offset, into, Until::forever());
    if (!got) {
      window_.clear();
      co_return std::move(got).error().within(fmt::format("{} at offset {}", path_, offset));
    }
    window_.truncate(*got);
  }
  const std::size_t begin = offset - window_offset_;
  co_return window_.view().subspan(begin, std::min(wanted, window_.size() - begin));
}

Task<Result<std::optional<LogSegmentReader::Batch>>> LogSegmentReader::next() {
  CO_TRY(const auto head, co_await bytes_at(offset_, kBatchHeaderSize));
  if (head.size() < kBatchHeaderSize) co_return std::nullopt;
  const auto header = decode_batch_header(header_, offset_, head);
  if (!header) co_return std::nullopt;
  CO_TRY(const auto whole, co_await bytes_at(offset_, kBatchHeaderSize + header->body_size));
  if (whole.size() < kBatchHeaderSize + header->body_size) co_return std::nullopt;
  const ByteView body = whole.subspan(kBatchHeaderSize);
  if (!body_matches(header_, offset_, *header, body)) co_return std::nullopt;
  const Batch batch{.header = *header, .offset = offset_, .body = body};
  offset_ += batch_footprint(header->body_size, header_.alignment);
  co_return batch;
}

Task<Result<LogClaims>> LogSegmentReader::search_claims() {
  LogClaims claims;
  for (std::uint64_t at = offset_; at < header_.segment_size; at += kReadAhead) {
    CO_TRY(const auto window, co_await bytes_at(at, kReadAhead));
    if (window.empty()) break;
    collect_claims(header_, at, window, claims);
  }
  co_return claims;
}

Task<Result<void>> LogSegmentReader::close() {
  co_return co_await file_->close();
}

}  // namespace helenus::storage
