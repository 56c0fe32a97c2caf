#include "storage/memtable/memtable.h"

#include <algorithm>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/codec.h"
#include "causality/codec.h"
#include "storage/ids/row_key.h"

namespace helenus::storage {

namespace {

// The part of a delta that concerns one row. Of operation ids only increments keep one.
causality::Delta restricted_to(const causality::Delta& delta,
                               std::span<const causality::CellChange> cells) {
  const bool increments = !cells.empty() && cells.front().kind == causality::VersionKind::increment;
  return {.dot = delta.dot,
          .context = delta.context,
          .timestamp = delta.timestamp,
          .operation = increments ? delta.operation : std::nullopt,
          .cells = {cells.begin(), cells.end()},
          .deleted_ranges = {}};
}

// The part that deletes these ranges.
causality::Delta restricted_to(const causality::Delta& delta,
                               std::vector<causality::RowRange> deleted_ranges) {
  causality::Delta part = restricted_to(delta, std::span<const causality::CellChange>());
  part.deleted_ranges = std::move(deleted_ranges);
  part.remembered_until = delta.remembered_until;
  return part;
}

// Takes keys by a function, so that unequal heads do not fetch their memory.
// A short key's head is filled up with zeros: unequal heads prove everything, equal ones nothing.
template <class KeyOfA, class KeyOfB>
absl::weak_ordering order_of(std::uint64_t head_a, KeyOfA key_a, std::uint64_t head_b,
                             KeyOfB key_b) {
  if (head_a != head_b) {
    return head_a < head_b ? absl::weak_ordering::less : absl::weak_ordering::greater;
  }
  const std::strong_ordering order = base::compare(key_a(), key_b());
  if (order == 0) return absl::weak_ordering::equivalent;
  return order < 0 ? absl::weak_ordering::less : absl::weak_ordering::greater;
}

// The row that a range holds if it holds one alone, and one that can have an entry.
const causality::RowKey* only_row_of(const causality::RowRange& row_range,
                                     base::ByteView partition) {
  if (!row_range.from || row_range != causality::range_of_row(*row_range.from)) return nullptr;
  return partition.size() + 1 + row_range.from->size() <= kRowKeySizeMax ? &*row_range.from
                                                                         : nullptr;
}

}  // namespace

Memtable::Key::Key(base::ByteView bytes) : head(0), bytes(bytes) {
  if (bytes.size() >= sizeof head) {
    head = base::load_be<std::uint64_t>(bytes.data());
    return;
  }
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    head |= std::to_integer<std::uint64_t>(bytes[i]) << (56 - 8 * i);
  }
}

absl::weak_ordering Memtable::Order::operator()(const Position& a, const Position& b) const {
  return order_of(a.head, [&] { return a.node->key(); }, b.head, [&] { return b.node->key(); });
}

absl::weak_ordering Memtable::Order::operator()(const Position& a, const Key& b) const {
  return order_of(a.head, [&] { return a.node->key(); }, b.head, [&] { return b.bytes; });
}

absl::weak_ordering Memtable::Order::operator()(const Key& a, const Position& b) const {
  return order_of(a.head, [&] { return a.bytes; }, b.head, [&] { return b.node->key(); });
}

void Memtable::apply(base::ByteView partition, const causality::Delta& delta,
                     base::ByteView encoded, std::uint64_t sequence) {
  ASSERT(!frozen_);
  const std::span<const causality::CellChange> cells = delta.cells;
  const bool one_row = !cells.empty() && cells.front().row == cells.back().row;
  if (one_row && delta.deleted_ranges.empty()) {
    add({partition, EntryKind::row, cells.front().row}, Form::delta, encoded, sequence);
    return;
  }
  if (cells.empty()) {
    apply_ranges(partition, delta, encoded, sequence);
    return;
  }
  for (auto first = cells.begin(); first != cells.end();) {
    const auto last = std::find_if(first, cells.end(), [&](const causality::CellChange& change) {
      return change.row != first->row;
    });
    const base::Bytes part = causality::encoded(restricted_to(delta, std::span(first, last)));
    add({partition, EntryKind::row, first->row}, Form::delta, part, sequence);
    first = last;
  }
  if (!delta.deleted_ranges.empty()) {
    causality::Delta part = restricted_to(delta, delta.deleted_ranges);
    part.timestamp = causality::timestamp_of_range_deletes(delta);
    apply_ranges(partition, part, causality::encoded(part), sequence);
  }
}

void Memtable::apply_ranges(base::ByteView partition, const causality::Delta& delta,
                            base::ByteView encoded, std::uint64_t sequence) {
  std::vector<causality::RowRange> ranges;
  for (const causality::RowRange& row_range : delta.deleted_ranges) {
    const causality::RowKey* row = only_row_of(row_range, partition);
    if (row == nullptr) {
      ranges.push_back(row_range);
    } else if (delta.deleted_ranges.size() == 1) {
      add({partition, EntryKind::row, *row}, Form::row_delete, encoded, sequence);
    } else {
      const causality::Delta part = restricted_to(delta, std::vector{row_range});
      add({partition, EntryKind::row, *row}, Form::row_delete, causality::encoded(part), sequence);
    }
  }
  if (ranges.empty()) return;
  ++range_writes_;
  const bool stay_together = together(partition, ranges.size());
  if (stay_together && ranges.size() == delta.deleted_ranges.size()) {
    add({partition, EntryKind::deleted_ranges, {}}, Form::delta, encoded, sequence);
    return;
  }
  causality::Delta part = restricted_to(delta, std::move(ranges));
  if (stay_together) {
    add({partition, EntryKind::deleted_ranges, {}}, Form::delta, causality::encoded(part),
        sequence);
  } else {
    apply_ranges(partition, std::move(part), sequence);
  }
}

bool Memtable::together(base::ByteView partition, std::size_t ranges) const {
  if (ranges > kRangesTogetherMax) return false;
  const std::string key = encode_key({partition, EntryKind::deleted_ranges, {}});
  const Node* node = node_at(base::as_bytes(key), hash_of(base::as_bytes(key)));
  if (node == nullptr) return true;
  std::size_t bytes = 0;
  for (const Fragment* each = node->newest; each != nullptr; each = each->next) {
    bytes += each->size;
    if (bytes > kRangesTogetherBytesMax) return false;
  }
  return true;
}

void Memtable::apply_ranges(base::ByteView partition, causality::Delta ranges,
                            std::uint64_t sequence) {
  std::map<std::string, std::vector<causality::RowRange>> by_path;
  Entry first;
  for (const causality::RowRange& row_range : ranges.deleted_ranges) {
    const RangeDepth depth = depth_of(row_range, partition.size());
    const std::string path = depth == 0 ? std::string() : range_path(*row_range.from, depth);
    by_path[path].push_back(row_range);
    const std::string key =
        encode_key({partition, EntryKind::deleted_ranges, base::as_bytes(path)});
    // Where there is something already, its depth is named.
    if (depth != 0 && !contains(base::as_bytes(key))) first.add_depth(depth);
  }
  if (!first.empty()) {
    base::Buffer buffer;
    base::Encoder out(buffer);
    encode(out, first);
    add({partition, EntryKind::deleted_ranges, {}}, Form::depths, buffer.view(), sequence);
  }
  for (auto& [path, deleted_ranges] : by_path) {
    ranges.deleted_ranges = std::move(deleted_ranges);
    add({partition, EntryKind::deleted_ranges, base::as_bytes(path)}, Form::delta,
        causality::encoded(ranges), sequence);
  }
}

Memtable::Node* Memtable::node_at(base::ByteView key, std::uint32_t hash) const {
  return nodes_.find(hash, [key](const Node& node) { return base::equal(node.key(), key); });
}

Entry Memtable::find(base::ByteView key) const {
  const Node* node = node_at(key, hash_of(key));
  return node == nullptr ? Entry() : merge(*node);
}

std::optional<std::uint64_t> Memtable::absorb_into(base::ByteView key, Entry& entry) const {
  const Node* node = node_at(key, hash_of(key));
  if (node == nullptr) return std::nullopt;
  entry.absorb(merge(*node));
  return node->sequence;
}

std::size_t Memtable::fragment_count(base::ByteView key) const {
  const Node* node = node_at(key, hash_of(key));
  return node == nullptr ? 0 : node->length;
}

bool Memtable::contains_partition(base::ByteView partition) const {
  const auto at = keys_.lower_bound(Key(partition));
  return at != keys_.end() && base::as_text(at->node->key()).starts_with(base::as_text(partition));
}

Memtable::Node& Memtable::node_of(const EntryKey& key) {
  const EncodedKey encoded(key);
  const base::ByteView bytes = encoded.view();
  const std::uint32_t hash = hash_of(bytes);
  if (Node* node = node_at(bytes, hash)) return *node;
  std::byte* memory = arena_.allocate(sizeof(Node) + bytes.size(), alignof(Node));
  auto* node = ::new (memory) Node();
  node->key_size = static_cast<std::uint32_t>(bytes.size());
  node->partition_size = static_cast<std::uint32_t>(key.partition.size());
  std::memcpy(memory + sizeof(Node), bytes.data(), bytes.size());
  ++generation_;
  // Keys that come in order, as a load of sorted rows has them, need no descent.
  keys_.insert(keys_.end(), Position{Key(bytes).head, node});
  nodes_.insert(hash, *node);
  return *node;
}

void Memtable::add(const EntryKey& key, Form form, base::ByteView encoded, std::uint64_t sequence) {
  Node& node = node_of(key);
  push(node, form, encoded);
  node.sequence = sequence;
  if (should_merge(node)) {
    Entry entry = merge(node);
    entry.apply_range_deletes();
    base::Buffer merged;
    base::Encoder out(merged);
    encode(out, entry);
    node.newest = nullptr;
    node.length = 0;
    push(node, Form::merged, merged.view());
    node.read_since_merge = false;
  }
  node.reads_since_write = 0;
}

bool Memtable::should_merge(const Node& node) {
  if (node.length > kFragmentsPerKeyMax &&
      node.merged_bytes / kMergedPerWrittenMax <= node.written_bytes) {
    return true;
  }
  const bool is_read_mostly = node.reads_since_write == kReadsOfReadMostly && node.length > 1;
  const bool is_read = node.read_since_merge && node.length > kFragmentsPerReadKeyMax;
  return (is_read_mostly || is_read) && node.merged_bytes / 2 <= node.written_bytes;
}

void Memtable::push(Node& node, Form form, base::ByteView encoded) {
  ASSERT(encoded.size() <= std::numeric_limits<std::uint32_t>::max());
  const auto size = static_cast<std::uint32_t>(encoded.size());
  std::byte* memory = arena_.allocate(sizeof(Fragment) + size, alignof(Fragment));
  const auto* fragment = ::new (memory) Fragment{.next = node.newest, .size = size, .form = form};
  std::memcpy(memory + sizeof(Fragment), encoded.data(), size);
  node.newest = fragment;
  ++node.length;
  if (form == Form::merged) {
    node.merged_bytes = size;
    node.written_bytes = 0;
  } else {
    // A sum beyond all bounds only says that there is much to merge.
    node.written_bytes +=
        std::min(size, std::numeric_limits<std::uint32_t>::max() - node.written_bytes);
  }
  largest_key_bytes_ =
      std::max(largest_key_bytes_, std::size_t{node.merged_bytes} + node.written_bytes);
}

Entry Memtable::merge(const Node& node) const {
  node.read_since_merge = true;
  if (node.reads_since_write < kReadsOfReadMostly) ++node.reads_since_write;
  Entry merged;
  for (const Fragment* at = node.newest; at != nullptr; at = at->next) {
    const base::Bytes bytes = base::Bytes::copy_of(at->bytes());
    if (at->form == Form::delta || at->form == Form::row_delete) {
      auto delta = causality::decode_delta(bytes);
      ASSERT(delta.has_value(), "memory of ours: {}", delta.error().to_string());
      if (at->form == Form::row_delete) {
        merged.absorb_row_delete(*delta, policy_);
      } else {
        merged.absorb(*std::move(delta), policy_);
      }
    } else {
      auto entry = decode_entry(bytes);
      ASSERT(entry.has_value(), "memory of ours: {}", entry.error().to_string());
      merged.absorb(*std::move(entry));
    }
  }
  return merged;
}

void Memtable::Cursor::stand_on(Keys::const_iterator at) {
  node_ = at == memtable_->keys_.end() ? nullptr : at->node;
  at_ = at;
  generation_ = memtable_->generation_;
}

void Memtable::Cursor::seek_last() {
  const Keys& keys = memtable_->keys_;
  stand_on(keys.empty() ? keys.end() : std::prev(keys.end()));
}

void Memtable::Cursor::seek(base::ByteView key) {
  stand_on(memtable_->keys_.lower_bound(Key(key)));
}

void Memtable::Cursor::seek_before(base::ByteView key) {
  const auto at = memtable_->keys_.lower_bound(Key(key));
  stand_on(at == memtable_->keys_.begin() ? memtable_->keys_.end() : std::prev(at));
}

void Memtable::Cursor::next() {
  stand_on(in_place() ? std::next(at_) : memtable_->keys_.upper_bound(Key(key())));
}

void Memtable::Cursor::previous() {
  seek_before(key());
}

}  // namespace helenus::storage
