#include "storage/sstable/sstable_index.h"

#include "base/assert.h"

namespace helenus::storage {

bool IndexBuilder::is_full(std::size_t level) const {
  const BlockBuilder& node = levels_[level].node;
  if (node.entry_count() < kIndexNodeEntriesMin) return false;
  return node.entry_count() == Block::kEntriesMax ||
         node.size_estimate() >= (level == 0 ? options_.node_bytes : options_.upper_node_bytes);
}

void IndexBuilder::add_at(std::size_t level, base::ByteView separator, const IndexEntry& child) {
  ASSERT(level < kIndexDepthMax);
  if (level == levels_.size()) levels_.emplace_back();
  if (is_full(level)) {
    // Only now is it known that this node is not the root.
    base::Buffer last;
    last.append(levels_[level].node.last_key());
    add_at(level + 1, last.view(), put(level));
  }
  Level& open = levels_[level];
  if (open.node.empty()) open.first_ordinal = child.first_ordinal;
  open.node.add(whole_partition(separator), child.encode(), 0);
}

IndexEntry IndexBuilder::put(std::size_t level) {
  Level& open = levels_[level];
  payload_.clear();
  open.node.finish(payload_);
  return {.handle = sink_.put(BlockKind::index, payload_.view()),
          .first_ordinal = open.first_ordinal};
}

IndexBuilder::Root IndexBuilder::finish() {
  for (std::size_t level = 0; level < levels_.size(); ++level) {
    base::Buffer last;
    last.append(levels_[level].node.last_key());
    const bool is_root = level + 1 == levels_.size();
    const IndexEntry entry = put(level);
    if (is_root) return {.handle = entry.handle, .depth = level + 1};
    add_at(level + 1, last.view(), entry);
  }
  return {};
}

}  // namespace helenus::storage
