#include "cli/sstable_words.h"

#include <limits>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "causality/codec.h"
#include "causality/delta.h"
#include "storage/entry/entry.h"
#include "storage/manifest/knowledge.h"
#include "storage/mutations/mutation_file.h"
#include "storage/mutations/mutation_record.h"

namespace helenus::cli {

using Lines = std::vector<std::string>;

namespace {

void add_tablet(storage::TabletId id, const storage::TabletKnowledge& known, Lines& lines) {
  lines.push_back(fmt::format("tablet {} had seen {}", id, known.base));
  std::string stable = fmt::format("tablet {} knew to be stable {}", id, known.stable.dots);
  if (known.stable.wall) stable += fmt::format(", and expired up to {}", *known.stable.wall);
  lines.push_back(std::move(stable));
}

void add_garbage(storage::TabletId id, const storage::Garbage& garbage, Lines& lines) {
  const causality::WallTime end_of_time{std::numeric_limits<std::int64_t>::max()};
  lines.push_back(fmt::format("tablet {} has {} deletes and {} values that expire, none beyond {}",
                              id, garbage.deletes, garbage.expiring.expired_by(end_of_time),
                              garbage.up_to));
}

Lines words_of(const storage::SstableMetadata& metadata) {
  Lines lines = {fmt::format("table {}, freezes {} to {}, {} entries of ranges, {}", metadata.table,
                             metadata.freeze_first, metadata.freeze_last, metadata.deleted_ranges,
                             metadata.cells == 0
                                 ? "cells not counted"
                                 : fmt::format("{} cells and ranges", metadata.cells))};
  for (const auto& [id, known] : metadata.at_last_freeze) add_tablet(id, known, lines);
  for (const auto& [id, garbage] : metadata.garbage) add_garbage(id, garbage, lines);
  return lines;
}

Lines words_of(const storage::MutationFileMetadata& metadata) {
  Lines lines;
  for (const auto& [id, mutations] : metadata) {
    std::string line = fmt::format("mutations of tablet {}: {}", id, mutations.dots);
    if (mutations.largest != causality::kTimestampMin) {
      line += fmt::format(", timestamps up to {}", mutations.largest);
    }
    lines.push_back(std::move(line));
  }
  return lines;
}

Lines words_of(const storage::Entry& entry) {
  Lines lines;
  if (!entry.row_deletes().empty()) {
    lines.push_back(fmt::format("the row deleted: {}", entry.row_deletes()));
  }
  for (const auto& [column, cell] : entry.row().cells()) {
    lines.push_back(fmt::format("column {}: {}", column, cell));
  }
  if (!entry.depths().empty()) {
    lines.push_back(fmt::format("more ranges at depths {}", fmt::join(entry.depths(), ", ")));
  }
  for (const causality::RangeDelete& range_delete : entry.deleted_ranges()) {
    lines.push_back(fmt::format("{}: {}", range_delete.range, range_delete.store));
  }
  if (lines.empty()) lines.emplace_back("nothing");
  return lines;
}

base::Result<Lines> words_of_mutation(const base::Bytes& value) {
  TRY(const auto kept, storage::decode_mutation_value(value));
  TRY(const auto record, storage::decode_mutation(kept.record));
  TRY(const auto delta, causality::decode_delta(record.delta));
  return Lines{fmt::format("table {}, tablet {}, partition {}", kept.table, record.tablet,
                           base::to_hex(record.partition, 64)),
               fmt::format("{}", delta)};
}

base::Result<Lines> words_of_entry(const base::Bytes& value) {
  TRY(const auto entry, storage::decode_entry(value));
  return words_of(entry);
}

}  // namespace

FileKind file_kind_of(const base::Bytes& metadata) {
  if (storage::decode_sstable_metadata(metadata)) return FileKind::table;
  if (storage::decode_mutation_file_metadata(metadata)) return FileKind::mutations;
  return FileKind::other;
}

Lines metadata_in_words(const base::Bytes& metadata) {
  const auto of_table = storage::decode_sstable_metadata(metadata);
  if (of_table) return words_of(*of_table);
  if (const auto mutations = storage::decode_mutation_file_metadata(metadata)) {
    return words_of(*mutations);
  }
  return {fmt::format("not that of a table: {}", of_table.error())};
}

Lines entry_in_words(FileKind kind, const base::Bytes& value) {
  if (kind == FileKind::other) return {"not an entry of a table"};
  const auto words = kind == FileKind::mutations ? words_of_mutation(value) : words_of_entry(value);
  if (words) return *words;
  return {fmt::format("cannot be read: {}", words.error())};
}

}  // namespace helenus::cli
