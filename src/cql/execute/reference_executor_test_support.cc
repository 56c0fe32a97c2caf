#include "cql/execute/reference_executor_test_support.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/bytes.h"
#include "base/codec.h"
#include "model/partition_key.h"
#include "ring/murmur3.h"

namespace helenus::cql::testing {

namespace {

std::string type_name(ReferenceType type) {
  constexpr const char* kNames[] = {"int", "bigint", "text", "blob"};
  return kNames[static_cast<std::size_t>(type)];
}

template <class Number>
std::string big_endian(Number number) {
  std::string bytes(sizeof(Number), '\0');
  for (std::size_t i = 0; i < sizeof(Number); ++i) {
    bytes[i] = static_cast<char>(number >> (8 * (sizeof(Number) - 1 - i)));
  }
  return bytes;
}

// The bytes of a partition key, and its token.
std::pair<std::int64_t, std::string> routed(const ReferenceKey& key) {
  std::vector<std::string> values;
  for (const ReferenceValue& value : key) values.push_back(value.serialized());
  std::vector<base::ByteView> views;
  for (const std::string& value : values) views.push_back(base::as_bytes(value));
  const auto routing_key = model::make_routing_key(views);
  std::string text(reinterpret_cast<const char*>(routing_key->data()), routing_key->size());
  return {ring::token_of(*routing_key).value(), std::move(text)};
}

bool compares(std::strong_ordering order, const std::string& comparison) {
  if (comparison == "=" || comparison == "IN") return order == 0;
  if (comparison == "<") return order < 0;
  if (comparison == "<=") return order <= 0;
  return comparison == ">" ? order > 0 : order >= 0;
}

}  // namespace

std::string ReferenceValue::literal() const {
  if (type == ReferenceType::text) return "'" + bytes + "'";
  if (type == ReferenceType::blob) return "0x" + base::to_hex(base::as_bytes(bytes));
  return std::to_string(number);
}

std::string ReferenceValue::serialized() const {
  if (type == ReferenceType::int_) return big_endian(static_cast<std::uint32_t>(number));
  if (type == ReferenceType::bigint) return big_endian(static_cast<std::uint64_t>(number));
  return bytes;
}

std::vector<std::size_t> ReferenceTable::of(ReferenceKind kind) const {
  std::vector<std::size_t> found;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (columns[i].kind == kind) found.push_back(i);
  }
  return found;
}

std::string ReferenceTable::create() const {
  std::vector<std::string> defined;
  std::vector<std::string> partition;
  std::vector<std::string> clustering;
  std::vector<std::string> order;
  for (const ReferenceColumn& column : columns) {
    const char* const statically = column.kind == ReferenceKind::statics ? " static" : "";
    if (column.map.empty()) {
      defined.push_back(fmt::format("{} {}{}", column.name, type_name(column.type), statically));
    } else if (&column == &*std::ranges::find(columns, column.map, &ReferenceColumn::map)) {
      defined.push_back(
          fmt::format("{} map<int, {}>{}", column.map, type_name(column.type), statically));
    }
    if (column.kind == ReferenceKind::partition) partition.push_back(column.name);
    if (column.kind == ReferenceKind::clustering) {
      clustering.push_back(", " + column.name);
      order.push_back(column.name + (column.descending ? " DESC" : " ASC"));
    }
  }
  std::string text =
      fmt::format("CREATE TABLE {} ({}, PRIMARY KEY (({}){})) WITH comment = ''", name,
                  fmt::join(defined, ", "), fmt::join(partition, ", "), fmt::join(clustering, ""));
  if (!order.empty()) text += fmt::format(" AND CLUSTERING ORDER BY ({})", fmt::join(order, ", "));
  if (default_time_to_live > 0) {
    text += fmt::format(" AND default_time_to_live = {}", default_time_to_live);
  }
  if (delete_memory > 0) text += fmt::format(" AND delete_memory = {}", delete_memory);
  return text;
}

std::vector<std::string> ReferenceTable::create_indexes() const {
  std::vector<std::string> texts;
  for (const std::size_t column : indexed) {
    texts.push_back(fmt::format("CREATE INDEX ON {} ({}) USING 'sai'", name, columns[column].name));
  }
  return texts;
}

bool ReferenceQuery::counts() const {
  return std::ranges::any_of(selectors, [](const ReferenceSelector& selector) {
    return selector.kind == ReferenceSelector::Kind::count;
  });
}

ReferenceExecutor::ReferenceExecutor(std::vector<ReferenceTable> tables)
    : tables_(std::move(tables)), data_(tables_.size()) {}

std::int64_t ReferenceExecutor::token_of(const ReferenceKey& partition) {
  return routed(partition).first;
}

ReferenceExecutor::Place ReferenceExecutor::place_of(const ReferenceKey& key) {
  auto [token, bytes] = routed(key);
  return {token, big_endian(static_cast<std::uint16_t>(bytes.size())) + bytes};
}

// ---- Writing ----

void ReferenceExecutor::gather(const ReferenceChange& change, Mutation& into,
                               std::int64_t timestamp) const {
  if (change.rows) {
    into.deletes.push_back(*change.rows);
    return;
  }
  const ReferenceTable& table = tables_[change.table];
  const auto add = [&](std::size_t column, bool is_static, const ReferenceOptional& value) {
    Cell cell{.value = value, .timestamp = timestamp, .expires = {}};
    if (value) cell.expires = change.expires;
    const std::pair at(is_static ? std::nullopt : std::optional(change.clustering), column);
    const auto [there, is_new] = into.cells.try_emplace(at, cell);
    if (!is_new && cell.strength() > there->second.strength()) there->second = cell;
  };
  if (change.marks_row) add(kMarker, false, ReferenceValue());
  for (const auto& [column, value] : change.cells) {
    add(column, table.columns[column].kind == ReferenceKind::statics, value);
  }
}

void ReferenceExecutor::apply(const std::vector<ReferenceChange>& changes, std::int64_t timestamp) {
  using Stamp = std::pair<std::int64_t, bool>;  // and whether it is explicit
  std::map<std::tuple<std::size_t, Place, Stamp>, Mutation> mutations;
  for (const ReferenceChange& change : changes) {
    const Place place = place_of(change.partition);
    Partition& partition = data_[change.table][place];
    partition.place = place;
    partition.key = change.partition;
    const Stamp stamp(change.timestamp.value_or(timestamp), change.timestamp.has_value());
    gather(change, mutations[{change.table, place, stamp}], stamp.first);
  }
  for (const auto& [key, mutation] : mutations) {
    const auto& [table, place, stamp] = key;
    const auto beside = mutations.find({table, place, {stamp.first, false}});
    const bool has_beside = stamp.second && beside != mutations.end();
    Partition& partition = data_[table][place];
    apply(has_beside ? without_deleted(mutation, beside->second, tables_[table], partition)
                     : mutation,
          tables_[table], partition, stamp.first, stamp.second);
  }
}

ReferenceExecutor::Mutation ReferenceExecutor::without_deleted(Mutation mutation,
                                                               const Mutation& plain,
                                                               const ReferenceTable& table,
                                                               const Partition& partition) const {
  std::erase_if(mutation.cells, [&](const auto& written) {
    const auto& [row, column] = written.first;
    const auto there = plain.cells.find(written.first);
    if (there != plain.cells.end() && !there->second.value) return true;
    const FoundRow found{&partition, row ? &*row : nullptr, nullptr};
    return std::ranges::any_of(plain.deletes, [&](const auto& relations) {
      return relations.empty() || (row && matches(table, found, relations, 0));
    });
  });
  return mutation;
}

void ReferenceExecutor::apply(const Mutation& mutation, const ReferenceTable& table,
                              Partition& partition, std::int64_t timestamp,
                              bool is_explicit) const {
  const bool is_remembered = is_explicit || table.delete_memory > 0;
  const auto forget = [&] {
    if (is_remembered) return;
    partition.forgotten_up_to = std::max(partition.forgotten_up_to, timestamp);
  };
  for (const auto& relations : mutation.deletes) {
    const Delete deleted{.rows = relations, .timestamp = timestamp, .is_explicit = is_explicit};
    for (auto& [row, cells] : partition.rows) {
      if (deletes(deleted, table, partition, row)) erase(cells, deleted);
    }
    if (relations.empty()) erase(partition.statics, deleted);
    partition.deletes.push_back(deleted);
    forget();
  }
  for (const auto& [at, cell] : mutation.cells) {
    const auto& [row, column] = at;
    const bool is_deleted = std::ranges::any_of(mutation.deletes, [&](const auto& relations) {
      return row ? deletes({.rows = relations}, table, partition, *row) : relations.empty();
    });
    if (is_deleted) continue;
    if (!cell.value) forget();
    if (row && !partition.rows.contains(*row)) {
      partition.rows[*row] = unwritten(table, partition, *row);
    }
    write(row ? partition.rows[*row] : partition.statics, column, cell, is_explicit);
  }
}

bool ReferenceExecutor::deletes(const Delete& deleted, const ReferenceTable& table,
                                const Partition& partition, const ReferenceKey& row) const {
  return matches(table, {&partition, &row, nullptr}, deleted.rows, 0);
}

ReferenceExecutor::Cells ReferenceExecutor::unwritten(const ReferenceTable& table,
                                                      const Partition& partition,
                                                      const ReferenceKey& row) const {
  Cells cells;
  for (const Delete& deleted : partition.deletes) {
    if (deletes(deleted, table, partition, row)) erase(cells, deleted);
  }
  return cells;
}

void ReferenceExecutor::erase(Cells& cells, const Delete& deleted) {
  const Cell nothing{.value = {}, .timestamp = deleted.timestamp, .expires = {}};
  for (auto& [column, cell] : cells) write(cells, column, nothing, deleted.is_explicit);
  write(cells, kUnwritten, nothing, deleted.is_explicit);
}

void ReferenceExecutor::write(Cells& cells, std::size_t column, const Cell& cell,
                              bool is_explicit) {
  auto there = cells.find(column);
  if (there == cells.end()) there = cells.find(kUnwritten);
  if (is_explicit && there != cells.end() && there->second.strength() >= cell.strength()) return;
  cells[column] = cell;
}

std::int64_t ReferenceExecutor::forgotten_up_to(std::size_t table, const ReferenceKey& key,
                                                std::int64_t now) const {
  const auto found = data_[table].find(place_of(key));
  if (found == data_[table].end()) return INT64_MIN;
  std::int64_t last = found->second.forgotten_up_to;
  const auto look = [&](const Cells& cells) {
    for (const auto& [column, cell] : cells) {
      if (cell.value && !cell.is_live(now)) last = std::max(last, cell.timestamp);
    }
  };
  look(found->second.statics);
  for (const auto& [row, cells] : found->second.rows) look(cells);
  return last;
}

std::vector<std::int64_t> ReferenceExecutor::timestamps(std::size_t table,
                                                        const ReferenceKey& key) const {
  std::vector<std::int64_t> all;
  const auto found = data_[table].find(place_of(key));
  if (found == data_[table].end()) return all;
  for (const auto& [column, cell] : found->second.statics) all.push_back(cell.timestamp);
  for (const auto& [row, cells] : found->second.rows) {
    for (const auto& [column, cell] : cells) all.push_back(cell.timestamp);
  }
  for (const Delete& deleted : found->second.deletes) all.push_back(deleted.timestamp);
  return all;
}

// ---- Reading ----

const ReferenceExecutor::Cell* ReferenceExecutor::cell_of(const ReferenceTable& table,
                                                          const FoundRow& row,
                                                          std::size_t column) const {
  const bool is_static = table.columns[column].kind == ReferenceKind::statics;
  const Cells* cells = is_static ? &row.partition->statics : row.cells;
  if (cells == nullptr) return nullptr;
  const auto found = cells->find(column);
  return found == cells->end() ? nullptr : &found->second;
}

ReferenceOptional ReferenceExecutor::value_of(const ReferenceTable& table, const FoundRow& row,
                                              std::size_t column, std::int64_t now) const {
  const ReferenceKind kind = table.columns[column].kind;
  if (kind == ReferenceKind::partition) return row.partition->key[column];
  if (kind == ReferenceKind::clustering) {
    if (row.clustering == nullptr) return std::nullopt;
    return (*row.clustering)[column - row.partition->key.size()];
  }
  const Cell* cell = cell_of(table, row, column);
  return cell != nullptr && cell->is_live(now) ? cell->value : std::nullopt;
}

bool ReferenceExecutor::matches(const ReferenceTable& table, const FoundRow& row,
                                const std::vector<ReferenceRelation>& where,
                                std::int64_t now) const {
  return std::ranges::all_of(where, [&](const ReferenceRelation& relation) {
    if (relation.token) {
      return compares(token_of(row.partition->key) <=> *relation.token, relation.comparison);
    }
    ReferenceKey values;
    for (const std::size_t column : relation.columns) {
      const ReferenceOptional value = value_of(table, row, column, now);
      if (!value) return false;
      values.push_back(*value);
    }
    return std::ranges::any_of(relation.values, [&](const ReferenceKey& wanted) {
      return compares(values <=> wanted, relation.comparison);
    });
  });
}

void ReferenceExecutor::find_rows(const ReferenceQuery& query, const Partition& partition,
                                  std::int64_t now, std::vector<FoundRow>& rows) const {
  const ReferenceTable& table = tables_[query.table];
  const auto is_live = [&](const auto& cell) { return cell.second.is_live(now); };
  std::vector<FoundRow> found;
  for (const auto& [key, cells] : partition.rows) {
    if (std::ranges::any_of(cells, is_live)) found.push_back({&partition, &key, &cells});
  }
  // A partition without rows is shown by its static row, unless something is asked of rows.
  const bool asks_rows = std::ranges::any_of(query.where, [&](const ReferenceRelation& relation) {
    return std::ranges::any_of(relation.columns, [&](std::size_t column) {
      const ReferenceKind kind = table.columns[column].kind;
      return kind == ReferenceKind::clustering || kind == ReferenceKind::regular;
    });
  });
  if (found.empty() && !asks_rows && std::ranges::any_of(partition.statics, is_live)) {
    found.push_back({&partition, nullptr, nullptr});
  }
  std::erase_if(found, [&](const FoundRow& row) { return !matches(table, row, query.where, now); });
  std::ranges::sort(found, [&](const FoundRow& a, const FoundRow& b) {
    return query.reversed ? comes_before(table, b, a) : comes_before(table, a, b);
  });
  if (query.distinct && found.size() > 1) found.resize(1);
  std::ranges::move(found, std::back_inserter(rows));
}

bool ReferenceExecutor::comes_before(const ReferenceTable& table, const FoundRow& a,
                                     const FoundRow& b) const {
  const std::size_t first = a.partition->key.size();
  if (a.clustering == nullptr || b.clustering == nullptr) {
    return a.clustering == nullptr && b.clustering != nullptr;
  }
  for (std::size_t i = 0; i < a.clustering->size(); ++i) {
    const auto order = (*a.clustering)[i] <=> (*b.clustering)[i];
    if (order != 0) return table.columns[first + i].descending ? order > 0 : order < 0;
  }
  return false;
}

std::string ReferenceExecutor::shown(const ReferenceQuery& query,
                                     const std::vector<FoundRow>& group, std::int64_t now) const {
  const ReferenceTable& table = tables_[query.table];
  std::vector<std::string> cells;
  for (const ReferenceSelector& selector : query.selectors) {
    std::string text = "null";
    if (selector.kind == ReferenceSelector::Kind::count) {
      text = std::to_string(group.size());
    } else if (!group.empty()) {
      const ReferenceOptional value = value_of(table, group.front(), selector.column, now);
      const Cell* cell = cell_of(table, group.front(), selector.column);
      if (value && selector.kind == ReferenceSelector::Kind::column) text = value->literal();
      if (value && selector.kind == ReferenceSelector::Kind::writetime) {
        text = std::to_string(cell->timestamp);
      }
      if (value && selector.kind == ReferenceSelector::Kind::ttl && cell->expires) {
        text = std::to_string(*cell->expires - now);
      }
    }
    cells.push_back(std::move(text));
  }
  return fmt::format("{}", fmt::join(cells, ", "));
}

// Each column of the partition key has its values: then partitions come in the order of these.
bool ReferenceExecutor::names_partitions(const ReferenceTable& table, const ReferenceQuery& query) {
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    if (table.columns[i].kind != ReferenceKind::partition) continue;
    const bool named = std::ranges::any_of(query.where, [&](const ReferenceRelation& relation) {
      return !relation.token && (relation.comparison == "=" || relation.comparison == "IN") &&
             relation.columns.front() == i;
    });
    if (!named) return false;
  }
  return true;
}

std::vector<std::string> ReferenceExecutor::select(const ReferenceQuery& query,
                                                   std::int64_t now) const {
  const ReferenceTable& table = tables_[query.table];
  std::vector<FoundRow> rows;
  std::vector<const Partition*> partitions;
  for (const auto& [place, partition] : data_[query.table]) partitions.push_back(&partition);
  if (names_partitions(table, query)) {
    std::ranges::sort(partitions, {}, [](const Partition* partition) { return partition->key; });
  }
  for (const Partition* const partition : partitions) find_rows(query, *partition, now, rows);
  if (query.ordered) {
    std::vector<const FoundRow*> sorted;
    for (const FoundRow& row : rows) sorted.push_back(&row);
    std::ranges::sort(sorted, [&](const FoundRow* a, const FoundRow* b) {
      if (comes_before(table, *a, *b)) return !query.reversed;
      if (comes_before(table, *b, *a)) return query.reversed;
      return std::less<>()(a, b);
    });
    std::vector<FoundRow> in_order;
    for (const FoundRow* const row : sorted) in_order.push_back(*row);
    rows = std::move(in_order);
  }
  const auto same_group = [&](const FoundRow& a, const FoundRow& b) {
    for (std::size_t i = 0; i < query.group_by; ++i) {
      if (value_of(table, a, i, now) != value_of(table, b, i, now)) return false;
    }
    return query.group_by > 0 || query.counts();
  };
  std::vector<std::vector<FoundRow>> groups;
  for (const FoundRow& row : rows) {
    if (groups.empty() || !same_group(groups.back().front(), row)) groups.emplace_back();
    groups.back().push_back(row);
  }
  // Something is said of no rows at all, too.
  if (groups.empty() && query.counts() && query.group_by == 0) groups.emplace_back();
  std::vector<std::string> texts;
  std::map<const Partition*, std::size_t> per_partition;
  for (const auto& group : groups) {
    if (query.limit && texts.size() == *query.limit) break;
    const Partition* partition = group.empty() ? nullptr : group.front().partition;
    if (query.per_partition_limit && per_partition[partition]++ >= *query.per_partition_limit) {
      continue;
    }
    texts.push_back(shown(query, group, now));
  }
  return texts;
}

}  // namespace helenus::cql::testing
