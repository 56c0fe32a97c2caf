// Fuzzes the catalog's document: what decodes encodes to the very bytes it came from, and gives no
// storage id twice.
#include "cql/catalog/catalog_document.h"

#include <cstddef>
#include <cstdint>
#include <set>
#include <span>

#include "base/assert.h"
#include "base/bytes.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace helenus;
  const auto bytes = std::as_bytes(std::span(data, size));
  const auto document = cql::decode_catalog_document(bytes);
  if (!document) return 0;
  ASSERT(base::equal(cql::encode(*document), bytes));
  std::set<storage::TableId> given = document->doomed;
  for (const auto& [table, id] : document->storage) ASSERT(given.insert(id).second);
  ASSERT(given.empty() || given.rbegin()->value() < document->next_storage_id);
  return 0;
}
