// The catalog's document: what the catalog keeps, as bytes (docs/formats/catalog.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>

#include "base/bytes.h"
#include "base/result.h"
#include "base/uuid.h"
#include "model/schema.h"
#include "storage/ids/table_id.h"

namespace helenus::cql {

struct CatalogDocument {
  // It is one record of the commit log, which ends at 16 MiB.
  static constexpr std::size_t kSizeMax = std::size_t{8} << 20;

  model::Schema users;
  // By the tables' ids in the schema.
  std::map<base::Uuid, storage::TableId> storage;
  // In the engine, or about to be, and of no table.
  std::set<storage::TableId> doomed;
  std::uint64_t next_storage_id = 0;
  // Of whoever decides on the schema: with which version of its it was `users`. Zero: with none.
  std::uint64_t decided_version = 0;

  friend bool operator==(const CatalogDocument&, const CatalogDocument&) = default;
};

base::Bytes encode(const CatalogDocument& document);
// Every table of the schema has a storage id, and nothing else has. Errors: corrupt, unsupported.
base::Result<CatalogDocument> decode_catalog_document(base::ByteView bytes);

}  // namespace helenus::cql
