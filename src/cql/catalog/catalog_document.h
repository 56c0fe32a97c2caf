// The catalog's document: what the catalog keeps of its own, as bytes (docs/formats/catalog.md):
// which tables of the storage engine hold the rows of which table.
#pragma once

#include <cstdint>
#include <map>
#include <set>

#include "base/bytes.h"
#include "base/result.h"
#include "base/uuid.h"
#include "storage/ids/table_id.h"

namespace helenus::cql {

struct CatalogDocument {
  // By the tables' ids in the schema.
  std::map<base::Uuid, storage::TableId> storage;
  // In the engine, or about to be, and of no table.
  std::set<storage::TableId> doomed;
  std::uint64_t next_storage_id = 0;
  // The newest version of the metadata by which a table was made or dropped.
  std::uint64_t decided_version = 0;

  friend bool operator==(const CatalogDocument&, const CatalogDocument&) = default;
};

base::Bytes encode(const CatalogDocument& document);
// No id is given twice. Errors: corrupt, unsupported.
base::Result<CatalogDocument> decode_catalog_document(base::ByteView bytes);

}  // namespace helenus::cql
