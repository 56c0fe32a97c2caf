#include "storage/sstable/sstable_writer.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "runtime/random.h"

namespace helenus::storage {

using base::ByteView;
using base::Errc;
using base::Error;
using base::Result;
using runtime::Task;

namespace {

// Of the buffers that are used again for every block.
constexpr std::size_t kCapacityKeptMax = std::size_t{1} << 20;

}  // namespace

// ---- creating

Task<Result<std::unique_ptr<SstableWriter>>> SstableWriter::create(runtime::Runtime& runtime,
                                                                   std::string path,
                                                                   Options options) {
  ASSERT(options.block_bytes > 0 && options.write_bytes > 0);
  FileId id;
  if (options.id.has_value()) {
    id = *options.id;
  } else {
    base::store_le(id.bytes.data(), runtime.random.next());
    base::store_le(id.bytes.data() + 8, runtime.random.next());
  }
  CO_TRY(auto file, co_await runtime.files.open(path, runtime::OpenOptions::create_new()));
  co_return std::unique_ptr<SstableWriter>(new SstableWriter(  // the constructor is private
      runtime, std::move(path), std::move(options), id, std::move(file)));
}

SstableWriter::SstableWriter(runtime::Runtime& runtime, std::string path, Options options,
                             FileId id, std::unique_ptr<runtime::File> file)
    : runtime_(runtime),
      path_(std::move(path)),
      options_(std::move(options)),
      id_(id),
      seal_(id),
      file_(std::move(file)),
      encoder_(options_.compression, options_.compression_level),
      index_(*this, options_.index),
      filter_(options_.filter) {
  statistics_.compression = options_.compression;
  SstableHeader{.id = id_}.encode(out_);
}

// ---- adding

Result<void> SstableWriter::check(const RowKey& key, ByteView value) const {
  if (fatal_error_.has_value()) return *fatal_error_;
  ASSERT(file_ != nullptr, "the writer is spent");
  if (key.bytes.size() > kRowKeySizeMax || key.partition_size > key.bytes.size()) {
    return Error(Errc::invalid_argument, "key of {} bytes, {} of its partition", key.bytes.size(),
                 key.partition_size);
  }
  if (value.size() > kValueSizeMax) {
    return Error(Errc::invalid_argument, "value of {} bytes, at most {} fit", value.size(),
                 kValueSizeMax);
  }
  if (key_count() > 0 && base::compare(last_key_.view(), key.bytes) >= 0) {
    return Error(Errc::invalid_argument, "key {} does not follow {}", base::to_hex(key.bytes, 64),
                 base::to_hex(last_key_.view(), 64));
  }
  return {};
}

runtime::MaybeTask<Result<void>> SstableWriter::add(RowKey key, ByteView value) {
  if (auto checked = check(key, value); !checked) [[unlikely]] {
    if (fatal_error_.has_value()) return checked;
    return fail(std::move(checked).error());
  }
  constexpr std::size_t kEntryOverhead = 8;
  const std::size_t entry_size = key.bytes.size() + value.size() + kEntryOverhead;
  if (!block_.empty() && (block_.entry_count() == kDataBlockEntriesMax ||
                          block_.size_estimate() + entry_size > options_.block_bytes)) {
    end_block(key.bytes);
  }
  count_row(key, value);
  const std::uint64_t hash = key_hash(key.bytes);
  filter_.add(hash);
  if (!std::exchange(partition_in_filter_, true) && key.partition_size < key.bytes.size()) {
    filter_.add(key_hash(key.partition()));
  }
  block_.add(key, value, hash);
  last_key_.clear();
  last_key_.append(key.bytes);
  if (out_.size() < options_.write_bytes) [[likely]] {
    return Result<void>{};
  }
  return write_out_or_fail();
}

void SstableWriter::count_row(const RowKey& key, ByteView value) {
  const std::size_t bytes = key.bytes.size() + value.size();
  const bool same_partition =
      partition_rows_ > 0 && base::equal(partition_.view(), key.partition());
  if (!same_partition) {
    if (partition_rows_ > 0) end_partition();
    partition_.clear();
    partition_.append(key.partition());
    partition_first_ordinal_ = statistics_.key_count;
    partition_in_filter_ = false;
  }
  if (statistics_.key_count == 0) statistics_.first_key = base::Bytes::copy_of(key.bytes);
  ++partition_rows_;
  partition_bytes_ += bytes;
  ++statistics_.key_count;
  statistics_.key_bytes += key.bytes.size();
  statistics_.value_bytes += value.size();
  statistics_.key_size_max = std::max<std::uint64_t>(statistics_.key_size_max, key.bytes.size());
  statistics_.value_size_max = std::max<std::uint64_t>(statistics_.value_size_max, value.size());
}

void SstableWriter::end_partition() {
  ++statistics_.partition_count;
  partition_bytes_histogram_.record(partition_bytes_);
  partition_rows_histogram_.record(partition_rows_);
  if (partition_bytes_ >= SstableStatistics::kWidePartitionBytesMin) {
    auto& wide = statistics_.wide_partitions;
    const auto place =
        std::ranges::upper_bound(wide, partition_bytes_, std::greater{}, &WidePartition::bytes);
    wide.insert(place, {.key = base::Bytes::copy_of(partition_.view()),
                        .first_ordinal = partition_first_ordinal_,
                        .row_count = partition_rows_,
                        .bytes = partition_bytes_});
    if (wide.size() > SstableStatistics::kWidePartitionsMax) wide.pop_back();
  }
  partition_rows_ = 0;
  partition_bytes_ = 0;
}

BlockHandle SstableWriter::put(BlockKind kind, ByteView payload) {
  const BlockHandle handle = encoder_.encode(seal_, kind, bytes(), payload, out_);
  if (kind == BlockKind::data) {
    ++statistics_.data_block_count;
    statistics_.data_payload_bytes += payload.size();
    statistics_.data_stored_bytes += handle.size;
  } else if (kind == BlockKind::index) {
    ++statistics_.index_block_count;
    statistics_.index_stored_bytes += handle.size;
  } else if (kind == BlockKind::filter) {
    ++statistics_.filter_block_count;
    statistics_.filter_stored_bytes += handle.size;
  }
  return handle;
}

void SstableWriter::end_block(std::optional<ByteView> next) {
  if (next.has_value()) {
    separate(block_.last_key(), *next, separator_);
  } else {
    separator_.clear();
    separator_.append(block_.last_key());
  }
  const std::uint64_t first_ordinal =
      std::exchange(block_first_ordinal_, block_first_ordinal_ + block_.entry_count());
  payload_.clear();
  block_.finish(payload_);
  const BlockHandle handle = put(BlockKind::data, payload_.view());
  index_.add(separator_.view(), {.handle = handle, .first_ordinal = first_ordinal});
  // What one huge value needed is given back.
  if (payload_.capacity() > kCapacityKeptMax) payload_ = base::Buffer();
  const bool is_last = !next.has_value();
  const bool may_cut = filter_index_.entry_count() + 1 < Block::kEntriesMax;
  if (filter_.hash_count() > 0 && (is_last || (filter_.full() && may_cut))) {
    end_filter(separator_.view());
  }
}

void SstableWriter::end_filter(ByteView separator) {
  statistics_.filter_hash_count += filter_.hash_count();
  const base::Bytes filter = filter_.finish();
  const IndexEntry entry{
      .handle = put(BlockKind::filter, filter),
      .first_ordinal = std::exchange(filter_first_ordinal_, block_first_ordinal_)};
  filter_index_.add(whole_partition(separator), entry.encode(), 0);
  // The rest of an open partition belongs to the next filter, too.
  partition_in_filter_ = false;
}

// ---- writing

Task<Result<void>> SstableWriter::write_out() {
  if (options_.throttle != nullptr) {
    CO_TRY_VOID(co_await options_.throttle->before_write(out_.size()));
  }
  CO_TRY_VOID(co_await file_->append(out_.view(), {.stop = options_.stop}));
  file_size_ += out_.size();
  if (out_.capacity() > std::max(4 * options_.write_bytes, kCapacityKeptMax)) {
    out_ = base::Buffer();
  }
  out_.clear();
  co_return {};
}

Task<Result<void>> SstableWriter::write_out_or_fail() {
  auto written = co_await write_out();
  if (written) co_return {};
  co_return co_await fail(std::move(written).error());
}

Task<Result<void>> SstableWriter::fail(Error error) {
  fatal_error_ = std::move(error).within(path_);
  co_await discard();
  co_return *fatal_error_;
}

Task<void> SstableWriter::discard() {
  if (file_ == nullptr) co_return;
  if (!fatal_error_.has_value()) fatal_error_ = Error(Errc::cancelled, "{} was discarded", path_);
  file_.reset();
  // If even removing fails the file stays, as after a crash; the first error is what matters.
  if (auto removed = co_await runtime_.files.remove(path_); !removed) {
    runtime_.logger("storage.sstable")
        .warn("unfinished file cannot be removed", base::kv("path", path_),
              base::kv("error", removed.error()));
  }
}

// ---- finishing

// Everything behind the data: the rest of the index, filter index, metadata, statistics, footer.
void SstableWriter::put_end(const base::Bytes& metadata) {
  SstableFooter footer;
  footer.id = id_;
  if (!block_.empty()) end_block(std::nullopt);
  if (partition_rows_ > 0) end_partition();
  const IndexBuilder::Root root = index_.finish();
  footer.root = root.handle;
  statistics_.index_depth = root.depth;
  if (!filter_index_.empty()) {
    payload_.clear();
    filter_index_.finish(payload_);
    footer.filter_index = put(BlockKind::filter_index, payload_.view());
  }
  if (!metadata.empty()) footer.metadata = put(BlockKind::metadata, metadata);
  statistics_.last_key = base::Bytes::copy_of(last_key_.view());
  const auto encode = [](const base::Histogram& histogram) {
    base::Buffer bytes;
    base::Encoder encoder(bytes);
    histogram.encode(encoder);
    return std::move(bytes).freeze();
  };
  statistics_.partition_bytes_histogram = encode(partition_bytes_histogram_);
  statistics_.partition_rows_histogram = encode(partition_rows_histogram_);
  payload_.clear();
  statistics_.encode(payload_);
  footer.statistics = put(BlockKind::statistics, payload_.view());
  footer.file_size = bytes() + SstableFooter::kSize;
  footer.encode(out_);
}

Task<Result<void>> SstableWriter::finish_file() {
  CO_TRY_VOID(co_await write_out());
  CO_TRY_VOID(co_await file_->sync({.stop = options_.stop}));
  co_return co_await file_->close();
}

Task<Result<SstableStatistics>> SstableWriter::finish(base::Bytes metadata) {
  if (fatal_error_.has_value()) co_return *fatal_error_;
  ASSERT(file_ != nullptr, "the writer is spent");
  Result<void> done;
  if (metadata.size() > kMetadataSizeMax) {
    done = Error(Errc::invalid_argument, "metadata of {} bytes, at most {} fit", metadata.size(),
                 kMetadataSizeMax);
  } else {
    put_end(metadata);
    done = co_await finish_file();
  }
  if (!done) {
    const auto failed = co_await fail(std::move(done).error());
    co_return failed.error();
  }
  file_.reset();
  co_return statistics_;
}

}  // namespace helenus::storage
