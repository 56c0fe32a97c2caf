#include "storage/entry/entry.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "causality/codec.h"
#include "storage/ids/row_key.h"

namespace helenus::storage {

using base::Errc;
using base::Error;
using base::Result;

namespace {

// What an entry begins with; later releases may have more of them.
enum class Form : std::uint8_t {
  plain = 1,  // a row without deletes of its own, or ranges
  deleted_row = 2,
  first_of_ranges = 3,  // ranges that are not all there are
};

}  // namespace

std::string encode_key(const EntryKey& key) {
  std::string bytes;
  bytes.reserve(key.partition.size() + 1 + key.clustering.size());
  bytes += base::as_text(key.partition);
  bytes += static_cast<char>(key.kind);
  bytes += base::as_text(key.clustering);
  return bytes;
}

EncodedKey::EncodedKey(const EntryKey& key) {
  bytes_.reserve(key.partition.size() + 1 + key.clustering.size());
  bytes_.insert(bytes_.end(), key.partition.begin(), key.partition.end());
  bytes_.push_back(std::byte{static_cast<std::uint8_t>(key.kind)});
  bytes_.insert(bytes_.end(), key.clustering.begin(), key.clustering.end());
}

EntryKey key_parts(base::ByteView bytes, std::size_t partition_size) {
  ASSERT(bytes.size() > partition_size);
  const auto kind = std::to_integer<std::uint8_t>(bytes[partition_size]);
  ASSERT(kind <= static_cast<std::uint8_t>(EntryKind::row), "kind {}", kind);
  return {.partition = bytes.first(partition_size),
          .kind = static_cast<EntryKind>(kind),
          .clustering = bytes.subspan(partition_size + 1)};
}

void Entry::clear() {
  row_.clear();
  if (!row_deletes_.empty()) row_deletes_ = {};
  if (!deleted_ranges_.empty()) deleted_ranges_ = {};
  depths_.clear();
}

void Entry::absorb(const Entry& other) {
  row_.absorb(other.row_);
  if (!other.row_deletes_.empty()) row_deletes_.absorb(other.row_deletes_);
  deleted_ranges_.absorb(other.deleted_ranges_);
  for (const RangeDepth depth : other.depths_) add_depth(depth);
}

void Entry::absorb(Entry&& other) {
  row_.absorb(std::move(other.row_));
  if (!other.row_deletes_.empty()) row_deletes_.absorb(std::move(other.row_deletes_));
  if (deleted_ranges_.empty()) {
    deleted_ranges_ = std::move(other.deleted_ranges_);
  } else {
    deleted_ranges_.absorb(other.deleted_ranges_);
  }
  for (const RangeDepth depth : other.depths_) add_depth(depth);
}

void Entry::absorb(causality::Delta delta, causality::Policy policy) {
  if (delta.deleted_ranges.empty()) {
    row_.absorb(causality::row_fragment_of(std::move(delta), policy));
    return;
  }
  const causality::PartitionStore fragment = causality::fragment_of(delta, policy);
  for (const causality::RangeDelete& range_delete : fragment.range_deletes())
    deleted_ranges_.absorb(range_delete);
}

void Entry::absorb_row_delete(const causality::Delta& delta, causality::Policy policy) {
  ASSERT(delta.cells.empty() && delta.deleted_ranges.size() == 1);
  const causality::PartitionStore fragment = causality::fragment_of(delta, policy);
  for (const causality::RangeDelete& range_delete : fragment.range_deletes()) {
    row_deletes_.absorb(range_delete.store);
  }
}

void Entry::add_depth(RangeDepth depth) {
  const auto at = std::ranges::lower_bound(depths_, depth);
  if (at == depths_.end() || *at != depth) depths_.insert(at, depth);
}

void encode(base::Encoder& out, const Entry& entry) {
  const bool row = !entry.row_.empty() || !entry.row_deletes_.empty();
  ASSERT(!row || !entry.holds_ranges(), "a row and ranges under one key");
  if (!entry.row_deletes_.empty()) {
    out.u8(static_cast<std::uint8_t>(Form::deleted_row));
    out.prefixed(causality::encoded(entry.row_deletes_));
    causality::encode(out, entry.row_);
    return;
  }
  out.u8(static_cast<std::uint8_t>(entry.depths_.empty() ? Form::plain : Form::first_of_ranges));
  if (!entry.depths_.empty()) {
    out.varint(entry.depths_.size());
    for (const RangeDepth depth : entry.depths_) out.varint(depth);
  }
  out.varint(entry.deleted_ranges().size());
  if (!entry.holds_ranges()) {
    causality::encode(out, entry.row_);
    return;
  }
  for (const causality::RangeDelete& range_delete : entry.deleted_ranges()) {
    out.prefixed(causality::encoded(range_delete));
  }
}

Result<Entry> decode_entry(const base::Bytes& bytes) {
  Entry entry;
  TRY_VOID(absorb_encoded(bytes, entry));
  return entry;
}

namespace {

base::Bytes slice_of(const base::Bytes& bytes, base::ByteView part) {
  return bytes.slice(static_cast<std::size_t>(part.data() - bytes.data()), part.size());
}

Result<causality::CellStore> decode_deletes(base::Decoder& in, const base::Bytes& bytes) {
  const base::ByteView encoded = in.prefixed();
  TRY_VOID(in.status());
  TRY(auto deletes, causality::decode_cell(slice_of(bytes, encoded)));
  if (deletes.empty()) return Error(Errc::corrupt, "the deletes of a row say nothing");
  return deletes;
}

Result<std::vector<RangeDepth>> decode_depths(base::Decoder& in) {
  const std::size_t count = in.count(1);
  if (count == 0) in.fail("no depth is named");
  std::vector<RangeDepth> depths;
  for (std::size_t index = 0; index < count && in.ok(); ++index) {
    const std::uint64_t depth = in.varint();
    if (depth == 0 || depth > 2 * kRowKeySizeMax) in.fail("a depth is out of range");
    if (!depths.empty() && depths.back() >= depth) in.fail("depths are out of order");
    depths.push_back(static_cast<RangeDepth>(depth));
  }
  TRY_VOID(in.status());
  return depths;
}

Result<causality::PartitionStore> decode_ranges(base::Decoder& in, std::size_t count,
                                                const base::Bytes& bytes) {
  causality::PartitionStore decoded;
  for (std::size_t index = 0; index < count; ++index) {
    const base::ByteView encoded = in.prefixed();
    TRY_VOID(in.status());
    TRY(const auto range_delete, causality::decode_range_delete(slice_of(bytes, encoded)));
    decoded.absorb(range_delete);
    const auto here = decoded.range_deletes();
    if (here.size() != index + 1 || here.back().range != range_delete.range) {
      return Error(Errc::corrupt, "a range is there twice, out of order or says nothing");
    }
  }
  TRY_VOID(in.finish());
  return decoded;
}

}  // namespace

Result<void> absorb_encoded(const base::Bytes& bytes, Entry& entry) {
  base::Decoder in(bytes);
  const std::uint8_t form = in.u8();
  TRY_VOID(in.status());
  std::size_t deleted_ranges = 0;
  bool row = true;
  switch (static_cast<Form>(form)) {
    case Form::plain:
      deleted_ranges = in.count(1);
      row = deleted_ranges == 0;
      break;
    case Form::deleted_row: {
      TRY(auto deletes, decode_deletes(in, bytes));
      entry.row_deletes_.absorb(std::move(deletes));
      break;
    }
    case Form::first_of_ranges: {
      TRY(const auto depths, decode_depths(in));
      for (const RangeDepth depth : depths) entry.add_depth(depth);
      deleted_ranges = in.count(1);
      row = false;
      break;
    }
    default:
      return Error(Errc::unsupported, "an entry of form {}", form);
  }
  TRY_VOID(in.status());
  if (!row) {
    TRY(auto decoded, decode_ranges(in, deleted_ranges, bytes));
    if (entry.deleted_ranges_.empty()) {
      entry.deleted_ranges_ = std::move(decoded);
    } else {
      entry.deleted_ranges_.absorb(decoded);
    }
    return {};
  }
  if (entry.row_.empty()) return causality::decode_row_into(entry.row_, bytes.slice(in.offset()));
  causality::RowStore decoded;
  TRY_VOID(causality::decode_row_into(decoded, bytes.slice(in.offset())));
  entry.row_.absorb(std::move(decoded));
  return {};
}

}  // namespace helenus::storage
