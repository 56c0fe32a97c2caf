// Fuzzes the catalog's document behind a sound checksum: what decodes encodes to the very bytes it
// came from, and names a storage id for every table and no other.
#include "cql/catalog/catalog_document.h"

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/assert.h"
#include "base/codec.h"
#include "base/crc32c.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace helenus;
  const auto bytes = std::as_bytes(std::span(data, size));
  std::ignore = cql::decode_catalog_document(bytes);
  base::Buffer sound;
  base::Encoder out(sound);
  out.raw(bytes);
  out.u32_le(base::crc32c(bytes));
  const auto document = cql::decode_catalog_document(sound.view());
  if (!document) return 0;
  ASSERT(base::equal(cql::encode(*document), sound.view()));
  std::size_t tables = 0;
  for (const auto& [name, keyspace] : document->users.keyspaces()) {
    for (const auto& [table_name, table] : keyspace->tables) {
      ASSERT(document->storage.contains(table->id));
      ++tables;
    }
  }
  ASSERT(tables == document->storage.size());
  for (const auto& [table, id] : document->storage) {
    ASSERT(id.value() < document->next_storage_id && !document->doomed.contains(id));
  }
  return 0;
}
