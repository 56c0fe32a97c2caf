#include "cql/catalog/catalog_document.h"

#include <algorithm>
#include <utility>

#include "base/codec.h"
#include "base/versioned_file.h"

namespace helenus::cql {

using base::Errc;
using base::Error;
using base::Result;
using storage::TableId;

namespace {

constexpr std::uint8_t kVersion = 1;

void get_storage(base::Decoder& in, CatalogDocument& document) {
  const std::size_t count = in.count(base::Uuid::kSize + 1);
  for (std::size_t i = 0; i < count && in.ok(); ++i) {
    const base::Uuid table = base::decode_uuid(in);
    const TableId id{in.varint()};
    if (!document.storage.empty() && table <= document.storage.rbegin()->first) {
      in.fail("tables are not in order");
    }
    document.storage.emplace_hint(document.storage.end(), table, id);
  }
}

void get_doomed(base::Decoder& in, CatalogDocument& document) {
  const std::size_t count = in.count(1);
  for (std::size_t i = 0; i < count && in.ok(); ++i) {
    const TableId id{in.varint()};
    if (!document.doomed.empty() && id <= *document.doomed.rbegin()) {
      in.fail("doomed tables are not in order");
    }
    document.doomed.insert(id);
  }
}

// Every id is given once, and all of them before the next one.
Result<void> check_ids(const CatalogDocument& document) {
  std::set<TableId> given = document.doomed;
  for (const auto& [table, id] : document.storage) {
    if (!given.insert(id).second) return Error(Errc::corrupt, "storage id {} is given twice", id);
  }
  if (!given.empty() && given.rbegin()->value() >= document.next_storage_id) {
    return Error(Errc::corrupt, "storage id {} is not below the next one", *given.rbegin());
  }
  return {};
}

}  // namespace

base::Bytes encode(const CatalogDocument& document) {
  base::Buffer buffer;
  base::Encoder out(buffer);
  out.u8(kVersion);
  out.varint(document.next_storage_id);
  out.varint(document.decided_version);
  out.varint(document.storage.size());
  for (const auto& [table, id] : document.storage) {
    out.raw(table.bytes());
    out.varint(id.value());
  }
  out.varint(document.doomed.size());
  for (const TableId id : document.doomed) out.varint(id.value());
  return std::move(buffer).freeze();
}

Result<CatalogDocument> decode_catalog_document(base::ByteView bytes) {
  base::Decoder in(bytes);
  const std::uint8_t version = in.u8();
  if (in.ok() && version != kVersion) return base::unsupported_version(version, kVersion);
  CatalogDocument document;
  document.next_storage_id = in.varint();
  document.decided_version = in.varint();
  get_storage(in, document);
  get_doomed(in, document);
  TRY_VOID(in.finish());
  TRY_VOID(check_ids(document));
  return document;
}

}  // namespace helenus::cql
