#include "storage/mutations/mutation_file.h"

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
  TRY_VOID(in.finish());
  return metadata;
}

MutationKey mutation_key(TabletId tablet, Dot dot) {
  MutationKey key;
  base::store_be(key.data(), tablet.value());
  base::store_be(key.data() + 8, dot.actor.node.value());
  base::store_be(key.data() + 12, dot.actor.incarnation.value());
  base::store_be(key.data() + 16, dot.counter);
  return key;
}

Result<TabletDot> decode_mutation_key(base::ByteView key) {
  if (key.size() != kMutationKeySize) {
    return Error(Errc::corrupt, "the key of a mutation has {} bytes", key.size());
  }
  base::Decoder in(key);
  TabletDot place;
  place.tablet = TabletId{in.u64_be()};
  const std::uint32_t node = in.u32_be();
  place.dot.actor = causality::actor_of(node, in.u32_be());
  place.dot.counter = in.u64_be();
  TRY_VOID(in.finish());
  return place;
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
