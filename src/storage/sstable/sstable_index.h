// IndexBuilder: the tree over the data blocks of an sstable, built while they are written.
//
// The model is a B-tree made from left to right. A node is a Block whose keys separate its children
// (no key below a child is above the child's separator, every key behind it is) and whose values
// are IndexEntry. A node that is full goes to the file at once and becomes one entry of the level
// above, so memory holds one open node a level, whatever the size of the file. What is left on top
// is the root, which readers keep in memory.
//
// Nodes directly above data are about as large as data blocks, as they share the cache with them;
// higher ones are larger, so that the root of a file of 100 GiB still stands directly above them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/bytes.h"
#include "storage/sstable/block.h"
#include "storage/sstable/block_codec.h"
#include "storage/sstable/sstable_format.h"

namespace helenus::storage {

// Takes finished payloads and says where they will lie.
class BlockSink {
 public:
  virtual BlockHandle put(BlockKind kind, base::ByteView payload) = 0;

 protected:
  ~BlockSink() = default;
};

class IndexBuilder {
 public:
  struct Options {
    std::size_t node_bytes = std::size_t{16} << 10;         // directly above data
    std::size_t upper_node_bytes = std::size_t{256} << 10;  // higher up
  };
  struct Root {
    BlockHandle handle;
    std::size_t depth = 0;  // levels of nodes, this one included
  };

  // The sink outlives the builder.
  IndexBuilder(BlockSink& sink, Options options) : sink_(sink), options_(options) {}

  // Requires: separators ascend.
  void add(base::ByteView separator, const IndexEntry& child) { add_at(0, separator, child); }
  // Writes what is open and returns the root; a tree without children has none.
  Root finish();

 private:
  struct Level {
    BlockBuilder node{{.group_shift = kGroupShift, .tags = false}};
    std::uint64_t first_ordinal = 0;
  };
  static constexpr unsigned kGroupShift = 4;

  void add_at(std::size_t level, base::ByteView separator, const IndexEntry& child);
  bool is_full(std::size_t level) const;
  // Puts the open node of the level into the file; it is empty afterwards.
  IndexEntry put(std::size_t level);

  BlockSink& sink_;
  const Options options_;
  std::vector<Level> levels_;
  base::Buffer payload_;
};

}  // namespace helenus::storage
