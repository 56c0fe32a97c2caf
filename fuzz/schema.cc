// Fuzzes the schema's codec: what decodes encodes to the very bytes it came from, keeps the
// invariants of a table, and can be described; what storage keeps of its indexes can be read.
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/assert.h"
#include "model/describe.h"
#include "model/index_entries.h"
#include "model/schema_codec.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace helenus;
  const auto bytes = std::as_bytes(std::span(data, size));
  const auto schema = model::decode_schema(bytes);
  if (!schema) return 0;
  ASSERT(base::equal(model::encode(*schema), bytes));
  for (const auto& [name, keyspace] : schema->keyspaces()) {
    ASSERT(!model::describe_keyspace(*keyspace).empty());
    for (const auto& [type_name, type] : keyspace->types) {
      ASSERT(!model::describe_type(type).empty());
    }
    for (const auto& [table_name, table] : keyspace->tables) {
      ASSERT(model::validate(*table));
      ASSERT(!model::describe_table(*table).empty());
      for (const model::Index& index : table->indexes) {
        const auto defined = model::IndexEntries::define(*keyspace, *table, index);
        ASSERT(model::IndexEntries::read(defined));
      }
    }
  }
  return 0;
}
