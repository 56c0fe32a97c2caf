#include "storage/sstable/block.h"

#include <algorithm>
#include <bit>

namespace helenus::storage {

using base::ByteView;
using base::Errc;
using base::Error;
using base::Result;

namespace {

// The first eight bytes of a key as a number that sorts as they do. Shorter keys are filled up with
// zeros, so equal heads prove nothing and unequal ones everything.
std::uint64_t head_of(ByteView key) {
  if (key.size() >= 8) return base::load_be<std::uint64_t>(key.data());
  std::uint64_t head = 0;
  for (std::size_t i = 0; i < key.size(); ++i) {
    head |= std::to_integer<std::uint64_t>(key[i]) << (56 - 8 * i);
  }
  return head;
}

std::uint8_t tag_of(std::uint64_t hash) {
  return static_cast<std::uint8_t>(hash >> 56);
}

Error corrupt(const char* problem, std::size_t offset) {
  return Error(Errc::corrupt, "{} at byte {} of the block", problem, offset);
}

// The first byte of a prefix that differs decides; a key that ends inside it is below it.
std::strong_ordering compare_with_prefix(ByteView key, ByteView prefix) {
  return base::compare(key.first(std::min(key.size(), prefix.size())), prefix);
}

// The first of [low, high) for which the predicate, true up to some point, is false. The choice is
// a conditional move where the predicate is a plain comparison: nothing to mispredict.
template <class Predicate>
std::size_t partition_point(std::size_t low, std::size_t high, Predicate&& predicate) {
  for (std::size_t left = high - low; left > 0;) {
    const std::size_t half = left / 2;
    const bool before = predicate(low + half);
    low = before ? low + half + 1 : low;
    left = before ? left - half - 1 : half;
  }
  return low;
}

}  // namespace

// ---- opening

Result<Block> Block::open(base::Bytes payload) {
  if (payload.size() < kHeaderSize) return corrupt("ends inside the header", payload.size());
  Block block;
  const std::byte* at = payload.data();
  block.flags_ = base::load_le<std::uint8_t>(at);
  block.group_shift_ = base::load_le<std::uint8_t>(at + 1);
  block.entry_count_ = base::load_le<std::uint16_t>(at + 2);
  block.prefix_size_ = base::load_le<std::uint16_t>(at + 4);
  block.partition_size_ = base::load_le<std::uint16_t>(at + 6);
  block.payload_ = std::move(payload);
  TRY_VOID(block.validate_tables());
  TRY_VOID(block.validate_groups());
  return block;
}

std::size_t Block::tables_size() const {
  return kHeaderSize + kGroupEntrySize * group_count() + (has_tags() ? entry_count_ : 0) +
         (partitions() == Partitions::each ? std::size_t{2} * entry_count_ : 0);
}

Result<void> Block::validate_tables() {
  if ((flags_ & ~kFlagsKnown) != 0 || partitions() > Partitions::each) {
    return corrupt("unknown flags", 0);
  }
  if (group_shift_ > kGroupShiftMax) return corrupt("groups are too large", 1);
  if (entry_count_ == 0) return corrupt("holds no entry", 2);
  if (partitions() != Partitions::uniform && partition_size_ != 0) {
    return corrupt("partition size is given twice", 6);
  }
  if (payload_.size() < tables_size()) return corrupt("ends inside the tables", payload_.size());
  return {};
}

// Groups of keys follow the tables without a gap, values follow the groups, and nothing follows
// the values: the offsets say only what could be computed, and must agree.
Result<void> Block::validate_groups() const {
  const std::size_t size = payload_.size();
  const std::size_t width = wide() ? 4 : 2;
  std::size_t keys_at = tables_size();
  std::size_t values_at = values_offset(0);
  for (std::size_t index = 0; index < group_count(); ++index) {
    const std::size_t entries = entries_in(index);
    if (keys_offset(index) != keys_at) return corrupt("keys are not where they must be", keys_at);
    if (values_offset(index) != values_at) {
      return corrupt("values are not where they must be", keys_at);
    }
    if (size - keys_at < 2 + 2 * width * entries) return corrupt("ends inside a group", size);
    const Group parts = group(index);
    for (std::size_t i = 1; i < entries; ++i) {
      if (parts.end(parts.key_ends, i) < parts.end(parts.key_ends, i - 1) ||
          parts.end(parts.value_ends, i) < parts.end(parts.value_ends, i - 1)) {
        return corrupt("ends do not ascend", keys_at);
      }
    }
    if (parts.prefix_size < prefix_size_) return corrupt("prefix is too short", keys_at);
    keys_at += 2 + 2 * width * entries + parts.prefix_size + parts.end(parts.key_ends, entries - 1);
    values_at += parts.end(parts.value_ends, entries - 1);
    if (keys_at > size || values_at > size) return corrupt("ends inside a group", size);
    TRY_VOID(validate_partition_sizes(index, parts));
  }
  if (keys_at != values_offset(0)) return corrupt("values do not follow the keys", keys_at);
  if (values_at != size) return corrupt("has bytes left over", values_at);
  return {};
}

Result<void> Block::validate_partition_sizes(std::size_t group_index, const Group& parts) const {
  const std::size_t first = group_index << group_shift_;
  for (std::size_t i = 0; i < entries_in(group_index); ++i) {
    const std::size_t key_size = parts.prefix_size + parts.rest(i).size();
    if (key_size > kRowKeySizeMax) return corrupt("key is too long", keys_offset(group_index));
    if (partition_size(first + i, key_size) > key_size) {
      return corrupt("partition's part is longer than the key", keys_offset(group_index));
    }
  }
  return {};
}

// ---- searching

std::uint64_t Block::head_at(const std::byte* from, std::size_t size) const {
  if (size >= 8) return base::load_be<std::uint64_t>(from);
  if (size == 0) return 0;
  // One load and a mask, where eight bytes can be read without leaving the payload.
  if (payload_.data() + payload_.size() - from >= 8) [[likely]] {
    return base::load_be<std::uint64_t>(from) & (~std::uint64_t{0} << (64 - 8 * size));
  }
  return head_of({from, size});
}

bool Block::begins_at_or_before(std::size_t group_index, ByteView key) const {
  const Group parts = group(group_index);
  const ByteView prefix(parts.prefix + prefix_size_, parts.prefix_size - prefix_size_);
  const std::strong_ordering order = compare_with_prefix(key, prefix);
  if (order != 0) return order > 0;
  return base::compare(parts.rest(0), key.subspan(prefix.size())) <= 0;
}

std::size_t Block::lower_bound_in(std::size_t group_index, ByteView key) const {
  const Group parts = group(group_index);
  const std::size_t first = group_index << group_shift_;
  const std::size_t entries = entries_in(group_index);
  const ByteView prefix(parts.prefix + prefix_size_, parts.prefix_size - prefix_size_);
  const std::strong_ordering order = compare_with_prefix(key, prefix);
  if (order != 0) return order < 0 ? first : first + entries;
  const ByteView wanted = key.subspan(prefix.size());
  const std::uint64_t wanted_head = head_of(wanted);
  const std::size_t below = partition_point(0, entries, [&](std::size_t index) {
    const ByteView rest = parts.rest(index);
    const std::uint64_t rest_head = head_at(rest.data(), rest.size());
    return rest_head != wanted_head ? rest_head < wanted_head : base::compare(rest, wanted) < 0;
  });
  return first + below;
}

std::size_t Block::lower_bound(ByteView key) const {
  const std::byte* block_prefix = group(0).prefix;
  const std::strong_ordering order = compare_with_prefix(key, {block_prefix, prefix_size_});
  if (order != 0) return order < 0 ? 0 : entry_count_;
  const ByteView wanted = key.subspan(prefix_size_);
  const std::uint64_t wanted_head = head_of(wanted);

  // Groups with a smaller head begin before the key, those with a larger one behind it; where heads
  // are equal, the keys have to be looked at.
  const std::size_t smaller =
      partition_point(0, group_count(), [&](std::size_t g) { return head(g) < wanted_head; });
  std::size_t groups = smaller;
  if (smaller < group_count() && head(smaller) == wanted_head) {
    const std::size_t equal_end = partition_point(
        smaller, group_count(), [&](std::size_t g) { return head(g) <= wanted_head; });
    groups = partition_point(smaller, equal_end,
                             [&](std::size_t g) { return begins_at_or_before(g, wanted); });
  }
  return groups == 0 ? 0 : lower_bound_in(groups - 1, wanted);
}

std::optional<std::size_t> Block::find(ByteView key, std::uint64_t hash) const {
  if (!has_tags()) {
    const std::size_t index = lower_bound(key);
    if (index == entry_count_) return std::nullopt;
    const Group parts = group(index >> group_shift_);
    const ByteView rest = parts.rest(index & (group_size() - 1));
    const bool same = key.size() == parts.prefix_size + rest.size() &&
                      base::equal(key.subspan(parts.prefix_size), rest) &&
                      base::equal(key.first(parts.prefix_size), {parts.prefix, parts.prefix_size});
    return same ? std::optional(index) : std::nullopt;
  }
  const std::byte* const begin = tags();
  const std::byte* at = begin;
  const std::byte* const end = begin + entry_count_;
  while (at != end) {
    at = static_cast<const std::byte*>(
        std::memchr(at, tag_of(hash), static_cast<std::size_t>(end - at)));
    if (at == nullptr) return std::nullopt;
    const auto index = static_cast<std::size_t>(at - begin);
    const Group parts = group(index >> group_shift_);
    const ByteView rest = parts.rest(index & (group_size() - 1));
    if (key.size() == parts.prefix_size + rest.size() &&
        base::equal(key.subspan(parts.prefix_size), rest) &&
        base::equal(key.first(parts.prefix_size), {parts.prefix, parts.prefix_size})) {
      return index;
    }
    ++at;
  }
  return std::nullopt;
}

// ---- entries

ByteView Block::value_view(std::size_t index) const {
  ASSERT_SLOW(index < entry_count_);
  return group(index >> group_shift_).value(index & (group_size() - 1));
}

base::Bytes Block::value(std::size_t index) const {
  const ByteView view = value_view(index);
  return payload_.slice(static_cast<std::size_t>(view.data() - payload_.data()), view.size());
}

RowKey Block::key(std::size_t index, base::Buffer& out) const {
  ASSERT_SLOW(index < entry_count_);
  const Group parts = group(index >> group_shift_);
  out.clear();
  out.append({parts.prefix, parts.prefix_size});
  out.append(parts.rest(index & (group_size() - 1)));
  return {.bytes = out.view(), .partition_size = partition_size(index, out.size())};
}

Result<void> Block::check() const {
  base::Buffer previous;
  base::Buffer current;
  base::Buffer first;
  const ByteView block_prefix = key(0, first).bytes.first(prefix_size_);
  for (std::size_t index = 0; index < entry_count_; ++index) {
    const std::size_t group_index = index >> group_shift_;
    const ByteView bytes = key(index, current).bytes;
    if (index > 0 && base::compare(previous.view(), bytes) >= 0) {
      return Error(Errc::corrupt, "key {} of the block does not ascend", index);
    }
    if (!base::equal(bytes.first(prefix_size_), block_prefix)) {
      return Error(Errc::corrupt, "key {} lacks the prefix of the block", index);
    }
    if ((index & (group_size() - 1)) == 0 &&
        head(group_index) != head_of(bytes.subspan(prefix_size_))) {
      return Error(Errc::corrupt, "head of group {} is not its first key's", group_index);
    }
    if (has_tags() && std::to_integer<std::uint8_t>(tags()[index]) != tag_of(key_hash(bytes))) {
      return Error(Errc::corrupt, "tag of key {} is not its hash's", index);
    }
    std::swap(previous, current);
  }
  return {};
}

// ---- building

BlockBuilder::BlockBuilder(Shape shape) : shape_(shape) {
  ASSERT(shape.group_shift <= Block::kGroupShiftMax);
}

void BlockBuilder::add(RowKey key, ByteView value, std::uint64_t hash) {
  ASSERT(key.bytes.size() <= kRowKeySizeMax && key.partition_size <= key.bytes.size());
  ASSERT(value.size() <= kValueSizeMax && entry_count() < Block::kEntriesMax);
  ASSERT_SLOW(empty() || base::compare(last_key(), key.bytes) < 0);
  keys_.append(key.bytes);
  values_.append(value);
  key_ends_.push_back(static_cast<std::uint32_t>(keys_.size()));
  value_ends_.push_back(static_cast<std::uint32_t>(values_.size()));
  if (shape_.tags) tags_.push_back(tag_of(hash));
  partition_sizes_.push_back(key.partition_size);
}

std::size_t BlockBuilder::size_estimate() const {
  constexpr std::size_t kEntryOverhead = 4 + 4 + 1 + 2;
  return Block::kHeaderSize + keys_.size() + values_.size() + kEntryOverhead * entry_count() +
         (Block::kGroupEntrySize + 2) * group_count();
}

Block::Partitions BlockBuilder::partitions() const {
  bool whole = true;
  bool uniform = true;
  for (std::size_t i = 0; i < entry_count(); ++i) {
    whole = whole && partition_sizes_[i] == key_at(i).size();
    uniform = uniform && partition_sizes_[i] == partition_sizes_[0];
  }
  if (whole) return Block::Partitions::whole_key;
  return uniform ? Block::Partitions::uniform : Block::Partitions::each;
}

// Everything in front of the groups, but for the offsets, which are not known yet.
void BlockBuilder::put_tables(base::Buffer& out, std::size_t begin, std::size_t prefix_size,
                              bool wide) const {
  const Block::Partitions encoding = partitions();
  const auto flags = static_cast<unsigned>(wide ? Block::kFlagWide : 0) |
                     static_cast<unsigned>(shape_.tags ? Block::kFlagTags : 0) |
                     static_cast<unsigned>(encoding) << Block::kPartitionsShift;
  base::Encoder encoder(out);
  encoder.u8(static_cast<std::uint8_t>(flags));
  encoder.u8(static_cast<std::uint8_t>(shape_.group_shift));
  encoder.u16_le(static_cast<std::uint16_t>(entry_count()));
  encoder.u16_le(static_cast<std::uint16_t>(prefix_size));
  encoder.u16_le(encoding == Block::Partitions::uniform ? partition_sizes_[0] : 0);
  ASSERT(out.size() - begin == Block::kHeaderSize);
  for (std::size_t group = 0; group < group_count(); ++group) {
    encoder.u64_be(head_of(key_at(group << shape_.group_shift).subspan(prefix_size)));
  }
  out.extend(8 * group_count());
  encoder.raw(std::as_bytes(std::span(tags_)));
  if (encoding == Block::Partitions::each) {
    for (const std::uint16_t size : partition_sizes_) encoder.u16_le(size);
  }
}

void BlockBuilder::put_group(base::Buffer& out, std::size_t first, std::size_t last,
                             bool wide) const {
  const std::size_t prefix_size = common_prefix_size(key_at(first), key_at(last));
  const std::size_t width = wide ? 4 : 2;
  const std::size_t entries = last - first + 1;
  std::byte* ends = out.extend(2 + 2 * width * entries).data();
  base::store_le(ends, static_cast<std::uint16_t>(prefix_size));
  ends += 2;
  const auto put = [&](std::size_t at, std::size_t end) {
    if (wide) {
      base::store_le(ends + 4 * at, static_cast<std::uint32_t>(end));
    } else {
      base::store_le(ends + 2 * at, static_cast<std::uint16_t>(end));
    }
  };
  const std::size_t keys_begin = first == 0 ? 0 : key_ends_[first - 1];
  const std::size_t values_begin = first == 0 ? 0 : value_ends_[first - 1];
  for (std::size_t i = 0; i < entries; ++i) {
    put(i, key_ends_[first + i] - keys_begin - (i + 1) * prefix_size);
    put(entries + i, value_ends_[first + i] - values_begin);
  }
  out.append(key_at(first).first(prefix_size));
  for (std::size_t i = first; i <= last; ++i) out.append(key_at(i).subspan(prefix_size));
}

void BlockBuilder::finish(base::Buffer& out) {
  ASSERT(!empty());
  const std::size_t begin = out.size();
  const std::size_t prefix_size = common_prefix_size(first_key(), last_key());
  // No group's ends can exceed two bytes when everything together does not.
  const bool wide = keys_.size() + values_.size() > UINT16_MAX;
  const std::size_t group_size = std::size_t{1} << shape_.group_shift;
  out.reserve(begin + size_estimate());
  put_tables(out, begin, prefix_size, wide);
  const std::size_t offsets_at = begin + Block::kHeaderSize + 8 * group_count();
  const auto put_offset = [&](std::size_t at, std::size_t offset) {
    ASSERT(offset <= UINT32_MAX);
    base::store_le(out.data() + offsets_at + at, static_cast<std::uint32_t>(offset));
  };
  for (std::size_t first = 0; first < entry_count(); first += group_size) {
    put_offset(8 * (first >> shape_.group_shift), out.size() - begin);
    put_group(out, first, std::min(first + group_size, entry_count()) - 1, wide);
  }
  for (std::size_t first = 0; first < entry_count(); first += group_size) {
    const std::size_t values_begin = first == 0 ? 0 : value_ends_[first - 1];
    put_offset(8 * (first >> shape_.group_shift) + 4, out.size() - begin + values_begin);
  }
  out.append(values_.view());
  clear();
}

void BlockBuilder::clear() {
  // The memory of an ordinary block is used again, that of an extraordinary one given back.
  constexpr std::size_t kCapacityKeptMax = std::size_t{1} << 20;
  for (base::Buffer* buffer : {&keys_, &values_}) {
    if (buffer->capacity() > kCapacityKeptMax) *buffer = base::Buffer();
    buffer->clear();
  }
  key_ends_.clear();
  value_ends_.clear();
  tags_.clear();
  partition_sizes_.clear();
}

// ---- walking

void BlockCursor::enter_group(std::size_t group_index) {
  group_index_ = group_index;
  group_ = block_.group(group_index);
  key_.clear();
  key_.append({group_.prefix, group_.prefix_size});
}

}  // namespace helenus::storage
