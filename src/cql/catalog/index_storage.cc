#include "cql/catalog/index_storage.h"

#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "model/index_entries.h"

namespace helenus::cql {

storage::DeriveEntries read_index_definition(const base::Bytes& definition) {
  auto read = model::IndexEntries::read(definition.view());
  if (!read) return {};
  const auto entries = std::make_shared<const model::IndexEntries>(*std::move(read));
  return [entries](base::ByteView tablet_from, base::ByteView partition,
                   std::span<const causality::CellChange> cells,
                   std::vector<storage::DerivedEntry>& into) {
    std::vector<model::IndexedCell> made;
    entries->derive(tablet_from, partition, cells, made);
    for (model::IndexedCell& entry : made) {
      into.push_back({.partition = std::move(entry.partition), .cell = std::move(entry.cell)});
    }
  };
}

}  // namespace helenus::cql
