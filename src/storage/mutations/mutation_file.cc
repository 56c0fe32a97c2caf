#include "storage/mutations/mutation_file.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/codec.h"
#include "causality/codec.h"
#include "storage/mutations/mutation_record.h"

namespace helenus::storage {

using base::Bytes;
using base::Errc;
using base::Error;
using base::Result;
using causality::Dot;
using runtime::Task;

namespace {

// Tells it from the metadata of a table's file, which begins with its version.
constexpr std::uint8_t kMagic = 'M';
constexpr std::uint8_t kVersion = 1;
// A tablet's id, the shortest clock and a timestamp.
constexpr std::size_t kTabletSizeMin = 1 + 4 + 1;
constexpr std::uint16_t kTabletSize = 8;

constexpr std::uint64_t kBehindAllTablets = UINT64_MAX;

void get_newest_operations(base::Decoder& in, MutationFileMetadata& metadata) {
  constexpr std::size_t kEntrySizeMin = 2;
  const std::size_t count = in.count(kEntrySizeMin);
  if (count == 0) in.fail("no operation ids are written down");
  std::optional<TabletId> before;
  for (std::size_t left = count; left > 0 && in.ok(); --left) {
    const TabletId tablet{in.varint()};
    const causality::OperationTime newest{in.signed_varint()};
    const auto at = metadata.find(tablet);
    if (at == metadata.end()) return in.fail("operation ids of a tablet without dots");
    if (before && *before >= tablet) in.fail("tablets out of order");
    if (newest == kNoOperation) in.fail("an absent operation id is written down");
    at->second.newest_operation = newest;
    before = tablet;
  }
}

Dot get_dot_key(base::Decoder& in) {
  Dot dot;
  const std::uint32_t node = in.u32_be();
  dot.actor = causality::actor_of(node, in.u32_be());
  dot.counter = in.u64_be();
  return dot;
}

void store_dot_key(std::byte* to, const Dot& dot) {
  base::store_be(to, dot.actor.node.value());
  base::store_be(to + 4, dot.actor.incarnation.value());
  base::store_be(to + 8, dot.counter);
}

}  // namespace

Bytes encode(const MutationFileMetadata& metadata) {
  base::Buffer buffer;
  base::Encoder out(buffer);
  out.u8(kMagic);
  out.u8(kVersion);
  out.varint(metadata.size());
  for (const auto& [tablet, mutations] : metadata) {
    out.varint(tablet.value());
    out.prefixed(causality::encoded(mutations.dots));
    out.signed_varint(mutations.largest.value());
  }
  const auto has_ids = [](const auto& entry) {
    return entry.second.newest_operation != kNoOperation;
  };
  const auto count = std::ranges::count_if(metadata, has_ids);
  if (count == 0) return std::move(buffer).freeze();
  out.varint(static_cast<std::uint64_t>(count));
  for (const auto& entry : metadata) {
    if (!has_ids(entry)) continue;
    out.varint(entry.first.value());
    out.signed_varint(entry.second.newest_operation.value());
  }
  return std::move(buffer).freeze();
}

Result<MutationFileMetadata> decode_mutation_file_metadata(const Bytes& bytes) {
  base::Decoder in(bytes);
  const std::uint8_t magic = in.u8();
  const std::uint8_t version = in.u8();
  if (in.ok() && (magic != kMagic || version != kVersion)) {
    return Error(Errc::unsupported, "not the metadata of a mutation file, or of version {}",
                 version);
  }
  MutationFileMetadata metadata;
  for (std::size_t left = in.count(kTabletSizeMin); left > 0 && in.ok(); --left) {
    const TabletId tablet{in.varint()};
    if (!metadata.empty() && metadata.rbegin()->first >= tablet) in.fail("tablets out of order");
    const base::ByteView encoded = in.prefixed();
    TabletMutations mutations;
    mutations.largest = causality::Timestamp{in.signed_varint()};
    TRY_VOID(in.status());
    TRY(mutations.dots, causality::decode_clock(Bytes::copy_of(encoded)));
    if (mutations.dots.empty() || !mutations.dots.closed().empty()) {
      return Error(Errc::corrupt, "tablet {} has no dots, or closed actors", tablet);
    }
    metadata.emplace_hint(metadata.end(), tablet, std::move(mutations));
  }
  if (in.ok() && in.remaining() > 0) get_newest_operations(in, metadata);
  TRY_VOID(in.finish());
  return metadata;
}

MutationKey mutation_key(TabletId tablet, Dot dot) {
  MutationKey key;
  base::store_be(key.data(), tablet.value());
  store_dot_key(key.data() + 8, dot);
  return key;
}

Result<TabletDot> decode_mutation_key(base::ByteView key) {
  if (key.size() != kMutationKeySize) {
    return Error(Errc::corrupt, "the key of a mutation has {} bytes", key.size());
  }
  base::Decoder in(key);
  TabletDot place;
  place.tablet = TabletId{in.u64_be()};
  place.dot = get_dot_key(in);
  TRY_VOID(in.finish());
  return place;
}

OperationKey operation_key(const IndexedOperation& indexed) {
  OperationKey key = operation_begin(indexed.tablet, indexed.operation);
  store_dot_key(key.data() + 32, indexed.dot);
  return key;
}

OperationKey operation_begin(TabletId tablet, const causality::OperationId& operation) {
  OperationKey key{};
  base::store_be(key.data(), kBehindAllTablets);
  base::store_be(key.data() + 8, tablet.value());
  std::ranges::copy(operation, key.begin() + 16);
  return key;
}

base::ByteView operations_begin() {
  static constexpr std::array<std::byte, 8> kBegin{
      std::byte{0xff}, std::byte{0xff}, std::byte{0xff}, std::byte{0xff},
      std::byte{0xff}, std::byte{0xff}, std::byte{0xff}, std::byte{0xff}};
  return kBegin;
}

bool is_operation_key(base::ByteView key) {
  return key.size() == kOperationKeySize && base::equal(key.first(8), operations_begin());
}

Result<IndexedOperation> decode_operation_key(base::ByteView key) {
  if (!is_operation_key(key)) {
    return Error(Errc::corrupt, "the key of an operation has {} bytes", key.size());
  }
  base::Decoder in(key.subspan(8));
  IndexedOperation indexed{};
  indexed.tablet = TabletId{in.u64_be()};
  const base::ByteView id = in.raw(indexed.operation.size());
  if (in.ok()) std::ranges::copy(id, indexed.operation.begin());
  indexed.dot = get_dot_key(in);
  TRY_VOID(in.finish());
  return indexed;
}

RowKey operation_row_key(const OperationKey& key) {
  return {.bytes = key, .partition_size = 2 * kTabletSize};
}

RowKey mutation_row_key(const MutationKey& key) {
  return {.bytes = key, .partition_size = kTabletSize};
}

void encode_mutation_value(TableId table, base::ByteView record, base::Buffer& out) {
  base::Encoder encoder(out);
  encoder.varint(table.value());
  encoder.raw(record);
}

Result<MutationValue> decode_mutation_value(const Bytes& value) {
  base::Decoder in(value);
  const TableId table{in.varint()};
  TRY_VOID(in.status());
  return MutationValue{.table = table, .record = value.slice(in.offset())};
}

Task<Result<std::vector<Dot>>> find_operation(std::shared_ptr<const MutationFile> file,
                                              TabletId tablet, causality::OperationId operation,
                                              runtime::Until until) {
  const auto cursor = file->reader->cursor({.until = std::move(until)});
  const OperationKey begin = operation_begin(tablet, operation);
  std::vector<Dot> dots;
  CO_TRY_VOID(co_await cursor->seek(begin));
  while (cursor->valid() && dots.size() < kAliasesMax) {
    auto indexed = decode_operation_key(cursor->key().bytes);
    if (!indexed) co_return std::move(indexed).error().within(file->reader->path());
    if (indexed->tablet != tablet || indexed->operation != operation) break;
    dots.push_back(indexed->dot);
    CO_TRY_VOID(co_await cursor->next());
  }
  co_return dots;
}

MutationFileWalk::MutationFileWalk(std::shared_ptr<const MutationFile> file, TabletId tablet,
                                   const causality::Clock& wanted, runtime::Until until)
    : file_(std::move(file)),
      tablet_(tablet),
      cursor_(file_->reader->cursor({.cache_use = CacheUse::bypass, .until = std::move(until)})) {
  ASSERT(wanted.closed().empty());
  for (const causality::Clock::Entry& entry : wanted.entries()) {
    for (const causality::CounterRange& range : entry.counters.ranges()) {
      ranges_.push_back({entry.actor, range.first, range.last});
    }
  }
}

Error MutationFileWalk::damaged(const char* what) const {
  return Error(Errc::corrupt, "{}: {} of tablet {}", file_->reader->path(), what, tablet_);
}

Task<Result<void>> MutationFileWalk::next() {
  current_.reset();
  if (wanted_ && wanted_->counter < ranges_[range_].last) {
    ++wanted_->counter;
    CO_TRY_VOID(co_await cursor_->next());
  } else {
    if (wanted_) ++range_;
    if (range_ == ranges_.size()) co_return {};
    wanted_ = Dot{ranges_[range_].actor, ranges_[range_].first};
    const MutationKey key = mutation_key(tablet_, *wanted_);
    CO_TRY_VOID(co_await cursor_->seek(key));
  }
  if (!cursor_->valid()) co_return damaged("the file ends before a mutation");
  CO_TRY(const auto place, decode_mutation_key(cursor_->key().bytes));
  if (place != TabletDot{tablet_, *wanted_}) co_return damaged("a mutation is missing");
  auto value = decode_mutation_value(cursor_->share_value());
  if (!value) co_return std::move(value).error().within(file_->reader->path());
  current_ = KeptMutation{.dot = *wanted_,
                          .table = value->table,
                          .timestamp = causality::kTimestampMin,
                          .record = std::move(value->record)};
  co_return {};
}

}  // namespace helenus::storage
