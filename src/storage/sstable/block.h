// Block: a few dozen sorted entries in one piece of memory, searched in place. BlockBuilder makes
// one, BlockCursor walks one. Pure: bytes in, bytes out. docs/formats/sstable.md has the layout.
//
// The model: entries come in groups of 2^group_shift (the restart points). A group stores the
// prefix that all its keys share once, then the rest of each key, and where each rest and each
// value ends; so any key of it can be had without decoding its neighbours, backward as well as
// forward. In front of all groups stand, close together, what searches touch first:
//   heads   eight bytes of each group's first key, behind the prefix shared by the whole block,
//           as numbers: finding a group is a binary search in one or two cache lines
//   tags    a byte of each key's hash: finding one key is a scan of two cache lines, and then
//           mostly one comparison
// Values lie behind all keys, so that searching keys does not drag them through the cache.
//
// Hostile bytes: Block::open() proves that every offset lies inside the payload, so everything
// else may go without checks. It does not prove that keys ascend: check() does that.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/assert.h"
#include "base/bytes.h"
#include "base/codec.h"
#include "base/result.h"
#include "storage/ids/row_key.h"

namespace helenus::storage {

// An immutable, validated block. A value: copying one shares its bytes.
class Block {
 public:
  static constexpr std::size_t kHeaderSize = 8;
  static constexpr unsigned kGroupShiftMax = 6;
  static constexpr std::size_t kEntriesMax = 65535;

  // Errors: corrupt, with the offset inside the payload.
  static base::Result<Block> open(base::Bytes payload);

  Block() = default;

  // Never zero, but in a Block made by the default constructor.
  std::size_t entry_count() const { return entry_count_; }
  const base::Bytes& payload() const { return payload_; }

  // The first entry whose key is not below `key`; entry_count() if there is none.
  std::size_t lower_bound(base::ByteView key) const;
  // The entry of exactly this key. Requires: hash == key_hash(key).
  std::optional<std::size_t> find(base::ByteView key, std::uint64_t hash) const;

  // All below require: index < entry_count().
  base::ByteView value_view(std::size_t index) const;
  // Keeps the whole block alive.
  base::Bytes value(std::size_t index) const;
  // Replaces `out` by the key and returns it as a view of `out`.
  RowKey key(std::size_t index, base::Buffer& out) const;
  std::uint16_t partition_size(std::size_t index, std::size_t key_size) const;

  // What open() leaves out because a checksum vouches for it: keys ascend strictly, heads, prefixes
  // and tags are those of the keys. Errors: corrupt.
  base::Result<void> check() const;

 private:
  friend class BlockBuilder;
  friend class BlockCursor;

  // How the partition sizes of the entries are stored.
  enum class Partitions : std::uint8_t { whole_key = 0, uniform = 1, each = 2 };
  static constexpr std::uint8_t kFlagWide = 1;  // ends take four bytes, not two
  static constexpr std::uint8_t kFlagTags = 2;
  static constexpr unsigned kPartitionsShift = 2;
  static constexpr std::uint8_t kFlagsKnown = 0x0f;
  // Of a group's part of the tables: a head, an offset of keys, an offset of values.
  static constexpr std::size_t kGroupEntrySize = 8 + 4 + 4;

  // One group, taken apart. Key j is prefix + rests[end(j - 1), end(j)).
  struct Group {
    const std::byte* key_ends;
    const std::byte* value_ends;
    const std::byte* prefix;
    const std::byte* rests;
    const std::byte* values;
    std::uint32_t prefix_size;
    bool wide;

    std::size_t end(const std::byte* ends, std::size_t index) const {
      return wide ? base::load_le<std::uint32_t>(ends + 4 * index)
                  : base::load_le<std::uint16_t>(ends + 2 * index);
    }
    base::ByteView piece(const std::byte* from, const std::byte* ends, std::size_t index) const {
      const std::size_t begin = index == 0 ? 0 : end(ends, index - 1);
      return {from + begin, end(ends, index) - begin};
    }
    base::ByteView rest(std::size_t index) const { return piece(rests, key_ends, index); }
    base::ByteView value(std::size_t index) const { return piece(values, value_ends, index); }
  };

  base::Result<void> validate_tables();
  base::Result<void> validate_groups() const;
  base::Result<void> validate_partition_sizes(std::size_t group, const Group& parts) const;

  bool wide() const { return (flags_ & kFlagWide) != 0; }
  bool has_tags() const { return (flags_ & kFlagTags) != 0; }
  Partitions partitions() const { return static_cast<Partitions>(flags_ >> kPartitionsShift); }
  std::size_t group_size() const { return std::size_t{1} << group_shift_; }
  std::size_t group_count() const { return (entry_count_ + group_size() - 1) >> group_shift_; }
  std::size_t entries_in(std::size_t group) const {
    const std::size_t before = group << group_shift_;
    const std::size_t left = entry_count_ - before;
    return left < group_size() ? left : group_size();
  }
  const std::byte* heads() const { return payload_.data() + kHeaderSize; }
  std::uint64_t head(std::size_t group) const {
    return base::load_be<std::uint64_t>(heads() + 8 * group);
  }
  const std::byte* offsets(std::size_t group) const {
    return heads() + 8 * group_count() + 8 * group;
  }
  std::size_t keys_offset(std::size_t group) const {
    return base::load_le<std::uint32_t>(offsets(group));
  }
  std::size_t values_offset(std::size_t group) const {
    return base::load_le<std::uint32_t>(offsets(group) + 4);
  }
  const std::byte* tags() const { return heads() + kGroupEntrySize * group_count(); }
  const std::byte* partition_sizes() const { return tags() + (has_tags() ? entry_count_ : 0); }
  std::size_t tables_size() const;

  Group group(std::size_t index) const;
  // Whether the group's first key is <= the key, both behind the block's prefix.
  bool begins_at_or_before(std::size_t group_index, base::ByteView key) const;
  std::size_t lower_bound_in(std::size_t group_index, base::ByteView key) const;
  // The eight bytes at `from`, of which `size` belong to the key, as a head.
  std::uint64_t head_at(const std::byte* from, std::size_t size) const;

  base::Bytes payload_;
  std::uint16_t entry_count_ = 0;
  std::uint16_t prefix_size_ = 0;  // shared by all keys of the block
  std::uint16_t partition_size_ = 0;
  std::uint8_t group_shift_ = 0;
  std::uint8_t flags_ = 0;
};

// Gathers entries in ascending order and lays them out. Reusable: finish() empties it.
class BlockBuilder {
 public:
  struct Shape {
    unsigned group_shift = 4;
    bool tags = true;
  };

  explicit BlockBuilder(Shape shape);

  // Copies both. Requires: the key is above the last one; sizes within kRowKeySizeMax and
  // kValueSizeMax; entry_count() < Block::kEntriesMax; hash == key_hash(key.bytes) if the shape
  // has tags.
  void add(RowKey key, base::ByteView value, std::uint64_t hash);

  std::size_t entry_count() const { return key_ends_.size(); }
  bool empty() const { return key_ends_.empty(); }
  // What has been gathered, before shared prefixes are taken out: no less than finish() will give.
  std::size_t size_estimate() const;
  // Requires: !empty().
  base::ByteView last_key() const { return key_at(entry_count() - 1); }
  base::ByteView first_key() const { return key_at(0); }

  // Appends the payload to `out`. Requires: !empty().
  void finish(base::Buffer& out);

 private:
  base::ByteView key_at(std::size_t index) const {
    const std::size_t begin = index == 0 ? 0 : key_ends_[index - 1];
    return keys_.view().subspan(begin, key_ends_[index] - begin);
  }
  base::ByteView values_between(std::size_t first, std::size_t last) const {
    const std::size_t begin = first == 0 ? 0 : value_ends_[first - 1];
    return values_.view().subspan(begin, value_ends_[last] - begin);
  }
  std::size_t group_count() const {
    return (entry_count() + (std::size_t{1} << shape_.group_shift) - 1) >> shape_.group_shift;
  }
  Block::Partitions partitions() const;
  void put_tables(base::Buffer& out, std::size_t begin, std::size_t prefix_size, bool wide) const;
  void put_group(base::Buffer& out, std::size_t first, std::size_t last, bool wide) const;
  void clear();

  const Shape shape_;
  base::Buffer keys_;
  base::Buffer values_;
  std::vector<std::uint32_t> key_ends_;
  std::vector<std::uint32_t> value_ends_;
  std::vector<std::uint8_t> tags_;
  std::vector<std::uint16_t> partition_sizes_;
};

// Stands on one entry of a block, or on none. Shares the block.
class BlockCursor {
 public:
  BlockCursor() = default;

  // Enters a block, standing nowhere yet.
  void enter(Block block) {
    block_ = std::move(block);
    group_index_ = SIZE_MAX;
  }
  void leave() { enter(Block()); }
  const Block& block() const { return block_; }

  // Requires: index < block().entry_count().
  void move_to(std::size_t index) {
    const std::size_t group_index = index >> block_.group_shift_;
    if (group_index != group_index_) enter_group(group_index);
    index_ = index;
    in_group_ = index & (block_.group_size() - 1);
    const base::ByteView rest = group_.rest(in_group_);
    key_.truncate(group_.prefix_size);
    key_.append(rest);
  }
  std::size_t index() const { return index_; }

  // All require having moved to an entry. Valid until the cursor moves.
  RowKey key() const {
    return {.bytes = key_.view(), .partition_size = block_.partition_size(index_, key_.size())};
  }
  base::ByteView value_view() const { return group_.value(in_group_); }
  // Keeps the block alive.
  base::Bytes value() const {
    const base::ByteView view = value_view();
    return block_.payload_.slice(static_cast<std::size_t>(view.data() - block_.payload_.data()),
                                 view.size());
  }

 private:
  void enter_group(std::size_t group_index);

  Block block_;
  std::size_t index_ = 0;
  std::size_t in_group_ = 0;
  std::size_t group_index_ = SIZE_MAX;
  Block::Group group_{};
  base::Buffer key_;
};

inline std::uint16_t Block::partition_size(std::size_t index, std::size_t key_size) const {
  switch (partitions()) {
    case Partitions::whole_key:
      return static_cast<std::uint16_t>(key_size);
    case Partitions::uniform:
      return partition_size_;
    case Partitions::each:
      return base::load_le<std::uint16_t>(partition_sizes() + 2 * index);
  }
  UNREACHABLE();
}

inline Block::Group Block::group(std::size_t index) const {
  const std::byte* at = payload_.data() + keys_offset(index);
  const std::size_t ends_size = entries_in(index) * (wide() ? 4 : 2);
  const std::uint32_t prefix = base::load_le<std::uint16_t>(at);
  const std::byte* ends = at + 2;
  return {.key_ends = ends,
          .value_ends = ends + ends_size,
          .prefix = ends + 2 * ends_size,
          .rests = ends + 2 * ends_size + prefix,
          .values = payload_.data() + values_offset(index),
          .prefix_size = prefix,
          .wide = wide()};
}

}  // namespace helenus::storage
