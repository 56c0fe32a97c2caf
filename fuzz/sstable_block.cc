// Fuzzes storage::Block: the input is a block's payload. What opens must answer every question
// inside its bytes, the same way forward, backward and at random. What also passes check() must
// find each of its keys, and building it again must give a block with the same entries.
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "storage/sstable/block.h"

namespace helenus::storage {
namespace {

struct Row {
  std::string key;
  std::uint16_t partition_size;
  std::string value;
  friend bool operator==(const Row&, const Row&) = default;
};

std::vector<Row> rows_of(const Block& block) {
  std::vector<Row> rows;
  base::Buffer scratch;
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < block.entry_count(); ++i) {
    const RowKey key = block.key(i, scratch);
    ASSERT(key.partition_size <= key.bytes.size() && key.bytes.size() <= kRowKeySizeMax);
    rows.push_back({std::string(base::as_text(key.bytes)), key.partition_size,
                    std::string(block.value(i).text())});
    bytes += block.value_view(i).size();
    ASSERT(block.lower_bound(key.bytes) <= block.entry_count());
  }
  ASSERT(bytes <= block.payload().size());
  return rows;
}

void check_cursor(const Block& block, const std::vector<Row>& rows) {
  BlockCursor cursor;
  cursor.enter(block);
  const auto check_at = [&](std::size_t i) {
    cursor.move_to(i);
    ASSERT(base::as_text(cursor.key().bytes) == rows[i].key);
    ASSERT(cursor.key().partition_size == rows[i].partition_size);
    ASSERT(base::as_text(cursor.value_view()) == rows[i].value);
  };
  for (std::size_t i = 0; i < rows.size(); ++i) check_at(i);
  for (std::size_t i = rows.size(); i > 0; --i) check_at(i - 1);
}

void check_sound(const Block& block, const std::vector<Row>& rows) {
  BlockBuilder builder({});
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const base::ByteView key = base::as_bytes(rows[i].key);
    ASSERT(block.lower_bound(key) == i);
    ASSERT(block.find(key, key_hash(key)) == i);
    builder.add({.bytes = key, .partition_size = rows[i].partition_size},
                base::as_bytes(rows[i].value), key_hash(key));
  }
  base::Buffer again;
  builder.finish(again);
  const auto rebuilt = Block::open(std::move(again).freeze());
  ASSERT(rebuilt.has_value() && rebuilt->check().has_value());
  ASSERT(rows_of(*rebuilt) == rows);
}

}  // namespace
}  // namespace helenus::storage

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace helenus;
  using namespace helenus::storage;
  const auto block = Block::open(base::Bytes::copy_of(std::as_bytes(std::span(data, size))));
  if (!block) return 0;
  const auto rows = rows_of(*block);
  check_cursor(*block, rows);
  if (block->check()) check_sound(*block, rows);
  return 0;
}
