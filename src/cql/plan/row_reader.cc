#include "cql/plan/row_reader.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "base/codec.h"
#include "causality/counter.h"
#include "causality/resolve.h"
#include "model/element_key.h"
#include "model/partition_key.h"

namespace helenus::cql {

using base::Bytes;
using base::Result;
using causality::CellStore;
using causality::PartitionStore;
using causality::Policy;
using causality::Version;
using causality::VersionKind;
using model::ColumnKind;

causality::Policy policy_of(const model::Table& table) {
  if (table.is_counter()) return Policy::counter;
  return table.options.conflicts == model::Conflicts::siblings ? Policy::siblings : Policy::lww;
}

RowLayout::RowLayout(model::TablePtr table, std::vector<bool> wanted)
    : table_(std::move(table)),
      policy_(policy_of(*table_)),
      wanted_(std::move(wanted)),
      clustering_(table_->clustering_columns()) {
  ASSERT(wanted_.size() == table_->columns.size());
  index_by_id_.assign(table_->next_column_id, kNoColumn);
  for (std::size_t i = 0; i < table_->columns.size(); ++i) {
    const model::Column& column = table_->columns[i];
    if (column.id.value() < index_by_id_.size()) index_by_id_[column.id.value()] = i;
    if (column.type.is_multi_cell()) {
      (column.kind == ColumnKind::static_column ? static_has_elements_ : rows_have_elements_) =
          true;
    }
    if (!wanted_[i]) continue;
    wants_partition_key_ = wants_partition_key_ || column.kind == ColumnKind::partition_key;
    wants_clustering_ = wants_clustering_ || column.kind == ColumnKind::clustering;
    wants_static_ = wants_static_ || column.kind == ColumnKind::static_column;
  }
}

void RowReader::begin(Row& row) const {
  row.cells.clear();
  row.cells.resize(layout_.table().columns.size());
  row.partition = {};
  row.clustering = {};
  row.number_in_partition = 0;
}

Result<void> RowReader::read_partition_key(const Bytes& partition, Row& row) const {
  row.partition = partition;
  if (!layout_.wants_partition_key()) return {};
  TRY(const auto parts, model::split_row_key(partition));
  const std::size_t count = layout_.table().partition_key().size();
  TRY(const auto values, model::split_routing_key(count, parts.routing_key));
  const auto begin = partition.view().data();
  for (std::size_t i = 0; i < count; ++i) {
    if (!layout_.wants(i)) continue;
    const auto offset = values[i].empty() ? 0 : static_cast<std::size_t>(values[i].data() - begin);
    row.cells[i].value = partition.slice(offset, values[i].size());
  }
  return {};
}

Result<void> RowReader::read_clustering(const Bytes& clustering, Row& row) const {
  row.clustering = clustering;
  if (!layout_.wants_clustering()) return {};
  const std::size_t first = layout_.table().partition_key().size();
  TRY(auto values, model::decode_clustering(layout_.clustering(), clustering));
  for (std::size_t i = 0; i < values.size(); ++i) {
    row.cells[first + i].value = std::move(values[i]);
  }
  return {};
}

void RowReader::show(const Version& version, Cell* cell) {
  if (cell == nullptr) return;
  cell->value = version.value;
  cell->timestamp_us = version.timestamp.value();
  cell->expires_seconds.reset();
  if (version.expires) cell->expires_seconds = version.expires->value();
}

bool RowReader::read_cell(const CellStore& stored, Cell* cell) const {
  const auto versions = stored.versions();
  if (versions.empty()) return false;
  const Policy policy = layout_.policy();
  if (policy != Policy::counter && versions.size() == 1) {
    if (causality::shows_nothing(versions.front(), now_)) return false;
    show(versions.front(), cell);
    return true;
  }
  const auto seen = causality::visible(stored, policy, now_);
  if (seen.empty()) return false;
  if (policy == Policy::counter) {
    if (cell != nullptr) {
      const Version* newest = *std::ranges::max_element(
          seen, {}, [](const Version* version) { return version->timestamp; });
      show(*newest, cell);
      cell->value = model::bigint_value(causality::counter_value(stored));
    }
    return true;
  }
  const Version* best = *std::ranges::max_element(
      seen, [](const Version* a, const Version* b) { return causality::defeats(*a, *b) < 0; });
  show(*best, cell);
  return true;
}

bool RowReader::read_cells(const PartitionStore& stored, const Bytes& clustering, ColumnKind kind,
                           Row& row) const {
  const auto found = stored.rows().find(clustering);
  if (found == stored.rows().end()) return false;
  const bool range_delete = !stored.range_deletes().empty();
  bool live = false;
  for (const auto& [id, cell] : found->second.cells()) {
    const bool marker = id == model::kRowMarker;
    const std::size_t index = marker ? RowLayout::kNoColumn : layout_.index_of(id);
    if (marker ? kind != ColumnKind::regular : index == RowLayout::kNoColumn) continue;
    if (!marker && layout_.table().columns[index].kind != kind) continue;
    Cell* const into = !marker && layout_.wants(index) ? &row.cells[index] : nullptr;
    if (into == nullptr && live) continue;
    const bool shown =
        range_delete ? read_cell(stored.cell(clustering, id), into) : read_cell(cell, into);
    live = live || shown;
  }
  return live;
}

Result<bool> RowReader::read_element(const PartitionStore& stored, const Bytes& key,
                                     base::ByteView suffix, ColumnKind kind,
                                     RowElements& into) const {
  TRY(const model::ElementKey element, model::read_element_suffix(suffix));
  const std::size_t index = layout_.index_of(element.column);
  if (index == RowLayout::kNoColumn || layout_.table().columns[index].kind != kind) return false;
  const auto found = stored.rows().find(key);
  if (found == stored.rows().end()) return false;
  Cell cell;
  const bool shown = stored.range_deletes().empty()
                         ? read_cell(found->second.cell(element.column), &cell)
                         : read_cell(stored.cell(key, element.column), &cell);
  if (!shown || !layout_.wants(index)) return shown;
  const auto offset = static_cast<std::size_t>(element.name.data() - key.view().data());
  into.elements_.push_back({.column = index,
                            .cell = {.name = key.slice(offset),
                                     .timestamp_us = cell.timestamp_us,
                                     .expires_seconds = cell.expires_seconds},
                            .value = std::move(*cell.value)});
  into.bytes_ += key.size() + into.elements_.back().value.size();
  return true;
}

namespace {

// The value of a collection, element by element.
class CollectionWriter {
 public:
  CollectionWriter() { buffer_.extend(sizeof(std::int32_t)); }
  void add(base::ByteView part) {
    base::store_be(buffer_.extend(sizeof(std::int32_t)).data(),
                   static_cast<std::uint32_t>(part.size()));
    buffer_.append(part);
  }
  Bytes take(std::size_t count) && {
    base::store_be(buffer_.mutable_view().data(), static_cast<std::uint32_t>(count));
    return std::move(buffer_).freeze();
  }

 private:
  base::Buffer buffer_;
};

}  // namespace

Result<void> RowReader::read_elements(RowElements elements, bool reversed, Row& row) const {
  auto& all = elements.elements_;
  if (reversed) std::ranges::reverse(all);
  for (auto first = all.begin(); first != all.end();) {
    const std::size_t index = first->column;
    const auto last =
        std::find_if(first, all.end(), [&](const auto& other) { return other.column != index; });
    TRY_VOID(read_column_elements(std::span(first, last), row.cells[index]));
    first = last;
  }
  return {};
}

Result<void> RowReader::read_column_elements(std::span<RowElements::Element> elements,
                                             Cell& cell) const {
  const model::DataType& type = layout_.table().columns[elements.front().column].type;
  auto told = std::make_shared<std::vector<CellElement>>();
  told->reserve(elements.size());
  if (type.kind() == model::TypeKind::udt) {
    std::vector<model::OptionalBytes> fields(type.parts().size());
    for (RowElements::Element& element : elements) {
      TRY(const std::size_t field, model::named_field(element.cell.name));
      if (field >= fields.size()) continue;  // The type that the statement goes by is older.
      fields[field] = std::move(element.value);
      told->push_back(std::move(element.cell));
    }
    if (!told->empty()) cell.value = model::compose_tuple(fields);
  } else {
    CollectionWriter writer;
    for (RowElements::Element& element : elements) {
      if (type.kind() != model::TypeKind::list) {
        const bool is_set = type.kind() == model::TypeKind::set;
        TRY(const Bytes key,
            model::named_element(is_set ? type.element() : type.key(), element.cell.name));
        writer.add(key);
      }
      if (type.kind() != model::TypeKind::set) writer.add(element.value);
      told->push_back(std::move(element.cell));
    }
    cell.value = std::move(writer).take(told->size());
  }
  cell.elements = std::move(told);
  return {};
}

bool RowReader::read_regular(const PartitionStore& stored, const Bytes& clustering,
                             Row& row) const {
  return read_cells(stored, clustering, ColumnKind::regular, row);
}

bool RowReader::read_static(const PartitionStore& stored, Row& row) const {
  return read_cells(stored, {}, ColumnKind::static_column, row);
}

causality::Context RowReader::context_of(const storage::RowRead& read,
                                         const Bytes& clustering) const {
  std::vector<CellStore> cells;
  cells.push_back(read.partition.cell(clustering, model::kRowMarker));
  for (const model::Column& column : layout_.table().regular_columns()) {
    cells.push_back(read.partition.cell(clustering, column.id));
  }
  std::vector<const CellStore*> pointers;
  causality::Context context;
  // The clock is one of before: of what was on disk when the view was taken. A mutation of which a
  // version is here is in the row whole (docs/adr/0014), and was waited for, so it was seen.
  causality::Clock seen = read.clock;
  // What is deleted and gone may be unstable still, and is in no version (docs/adr/0012).
  context.floor = read.floor;
  for (const CellStore& cell : cells) {
    pointers.push_back(&cell);
    for (const Version& version : cell.versions()) {
      context.floor = std::max(context.floor, version.timestamp);
      seen.add(version.dot);
    }
  }
  context.epoch = causality::Epoch{1};
  context.dots = causality::context_of_read(pointers, seen);
  return context;
}

}  // namespace helenus::cql
