#include "storage/row_scopes.h"

#include <algorithm>
#include <utility>

namespace helenus::storage {

using base::Result;
using runtime::Task;

bool RowScopes::Level::serves(base::ByteView key) const {
  if (!loaded) return false;
  if (!has_digits(key, depth)) return too_short;
  return !too_short && same_digits(key, base::as_bytes(row), depth);
}

bool RowScopes::serves(base::ByteView partition, base::ByteView row) const {
  return partition_ == base::as_text(partition) &&
         std::ranges::all_of(levels_, [&](const Level& level) { return level.serves(row); });
}

Task<Result<void>> RowScopes::load(const TableView& view, base::ByteView partition,
                                   base::ByteView row, runtime::Until until, ReadTrace& trace) {
  if (partition_ != base::as_text(partition)) {
    partition_.reset();
    levels_.clear();
    const std::string key = encode_key({partition, EntryKind::scopes, {}});
    CO_TRY(together_, co_await view.find(base::as_bytes(key), until, trace));
    for (const ScopeDepth depth : together_.depths()) levels_.emplace_back().depth = depth;
    partition_ = std::string(base::as_text(partition));
  }
  for (Level& level : levels_) {
    if (level.serves(row)) continue;
    level.loaded = false;
    level.entry.clear();
    level.too_short = !has_digits(row, level.depth);
    if (!level.too_short) {
      ++trace.scope_paths_read;
      level.row.assign(base::as_text(row));
      const std::string path = scope_path(row, level.depth);
      const std::string key = encode_key({partition, EntryKind::scopes, base::as_bytes(path)});
      CO_TRY(level.entry, co_await view.find(base::as_bytes(key), until, trace));
    }
    level.loaded = true;
  }
  co_return {};
}

void RowScopes::add_to(causality::PartitionStore& partition, const causality::RowKey& row) const {
  const auto add = [&](const Entry& entry) {
    for (const causality::ScopedStore& scoped : entry.scopes()) {
      if (scoped.scope.contains(row)) partition.absorb(scoped);
    }
  };
  add(together_);
  for (const Level& level : levels_) add(level.entry);
}

}  // namespace helenus::storage
