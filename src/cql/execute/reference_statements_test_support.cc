#include "cql/execute/reference_statements_test_support.h"

#include <algorithm>
#include <array>
#include <iterator>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace helenus::cql::testing {

namespace {

constexpr std::int64_t kTimestampStep = 10;
constexpr std::int64_t kTimeToLiveMax = 40;
constexpr std::int32_t kDeleteMemory = 86'400;

using Kind = ReferenceKind;
using Type = ReferenceType;

}  // namespace

std::vector<ReferenceTable> ReferenceStatements::tables(std::uint64_t seed) {
  base::Prng prng(seed);
  const auto any = [&] { return prng.chance(0.5); };
  std::vector<ReferenceTable> tables = {
      {.name = "wide",
       .columns = {{"k", Type::int_, Kind::partition},
                   {"a", Type::int_, Kind::clustering, any()},
                   {"b", Type::int_, Kind::clustering, any()},
                   {"n[1]", Type::text, Kind::statics, false, "n"},
                   {"s", Type::int_, Kind::statics},
                   {"m[1]", Type::int_, Kind::regular, false, "m"},
                   {"m[2]", Type::int_, Kind::regular, false, "m"},
                   {"v", Type::int_, Kind::regular},
                   {"w", Type::text, Kind::regular}},
       .indexed = {2, 4, 7}},
      {.name = "composite",
       .columns = {{"i", Type::text, Kind::partition},
                   {"j", Type::int_, Kind::partition},
                   {"c", Type::text, Kind::clustering, any()},
                   {"d", Type::blob, Kind::clustering, any()},
                   {"e", Type::bigint, Kind::clustering, any()},
                   {"r", Type::text, Kind::statics},
                   {"s", Type::blob, Kind::statics},
                   {"x", Type::int_, Kind::regular}},
       .indexed = {3, 7}},
      {.name = "narrow",
       .columns = {{"k", Type::blob, Kind::partition},
                   {"m[-1]", Type::blob, Kind::regular, false, "m"},
                   {"m[0]", Type::blob, Kind::regular, false, "m"},
                   {"v", Type::int_, Kind::regular},
                   {"w", Type::text, Kind::regular},
                   {"x", Type::bigint, Kind::regular}},
       .indexed = {4}},
      {.name = "fading",
       .columns = {{"k", Type::bigint, Kind::partition},
                   {"c", Type::blob, Kind::clustering, any()},
                   {"v", Type::text, Kind::regular}},
       .default_time_to_live = 15,
       .indexed = {2}},
  };
  for (ReferenceTable& table : tables) {
    if (prng.chance(0.6)) table.delete_memory = kDeleteMemory;
  }
  return tables;
}

// ---- Values ----

ReferenceValue ReferenceStatements::value(Type type) {
  constexpr std::array<const char*, 5> kTexts = {"a", "b", "ab", "\xc3\xa4", ""};
  constexpr std::array<std::string_view, 5> kBlobs = {"\x01", {"\0", 1}, {"\0\0", 2}, "\xff", ""};
  ReferenceValue made;
  made.type = type;
  if (type == Type::text) {
    made.bytes = kTexts[prng_.below(kTexts.size())];
  } else if (type == Type::blob) {
    made.bytes = kBlobs[prng_.below(kBlobs.size())];
  } else {
    made.number = static_cast<std::int64_t>(prng_.below(5)) - 1;
  }
  return made;
}

ReferenceOptional ReferenceStatements::cell(Type type) {
  if (chance(0.15)) return std::nullopt;
  return value(type);
}

std::vector<std::size_t> ReferenceStatements::some_of(std::vector<std::size_t> columns,
                                                      std::size_t at_least) {
  prng_.shuffle(columns);
  columns.resize(prng_.between(std::min(at_least, columns.size()), columns.size()));
  return columns;
}

std::string ReferenceStatements::Writing::value(const ReferenceOptional& value) {
  if (!made.has_markers) return value ? value->literal() : "null";
  made.values.push_back(value ? std::optional(value->serialized()) : std::nullopt);
  return "?";
}

std::string ReferenceStatements::Writing::number(std::int64_t number) {
  return value(ReferenceValue::of_int(number));
}

std::string ReferenceStatements::Writing::big_number(std::int64_t big_number) {
  return value(ReferenceValue::of_bigint(big_number));
}

// ---- Relations ----

ReferenceRelation ReferenceStatements::one(std::size_t column, std::string comparison) {
  return several(column, 1, std::move(comparison));
}

ReferenceRelation ReferenceStatements::several(std::size_t column, std::size_t count,
                                               std::string comparison) {
  ReferenceRelation relation;
  const std::size_t values = comparison == "IN" ? prng_.between(1, 3) : 1;
  for (std::size_t i = 0; i < count; ++i) relation.columns.push_back(column + i);
  for (std::size_t i = 0; i < values; ++i) {
    ReferenceKey key;
    for (const std::size_t at : relation.columns) {
      ReferenceValue part = value(table().columns[at].type);
      // The only column of a partition key is not empty.
      const bool only = table().of(Kind::partition).size() == 1;
      while (only && at == 0 && part.type == Type::blob && part.bytes.empty()) {
        part = value(part.type);
      }
      key.push_back(std::move(part));
    }
    relation.values.push_back(std::move(key));
  }
  relation.comparison = std::move(comparison);
  return relation;
}

ReferenceRelation ReferenceStatements::token_relation(bool lower) {
  ReferenceRelation relation;
  ReferenceKey key;
  for (const std::size_t column : table().of(Kind::partition)) {
    relation.columns.push_back(column);
    key.push_back(one(column, "=").values[0][0]);
  }
  relation.token = ReferenceExecutor::token_of(key);
  if (chance(0.5)) relation.values.push_back(std::move(key));  // token(value) instead of a number
  relation.comparison = std::string(lower ? ">" : "<") + (chance(0.5) ? "=" : "");
  return relation;
}

std::vector<ReferenceRelation> ReferenceStatements::equal_or_in(Kind kind, double in_probability) {
  std::vector<ReferenceRelation> relations;
  for (const std::size_t column : table().of(kind)) {
    relations.push_back(one(column, chance(in_probability) ? "IN" : "="));
  }
  return relations;
}

void ReferenceStatements::add_slices(std::size_t position, std::vector<ReferenceRelation>& into) {
  const std::vector<std::size_t> columns = table().of(Kind::clustering);
  const auto bound = [&](const char* comparison) {
    const std::size_t count = chance(0.4) ? prng_.between(1, columns.size() - position) : 1;
    into.push_back(several(columns[position], count, comparison + std::string(chance(0.5), '=')));
  };
  const std::uint64_t kind = prng_.below(3);
  if (kind != 0) bound(">");
  if (kind != 1) bound("<");
}

std::size_t ReferenceStatements::clustering_relations(std::vector<ReferenceRelation>& into) {
  const std::vector<std::size_t> columns = table().of(Kind::clustering);
  std::size_t position = 0;
  while (position < columns.size() && chance(0.55)) {
    const std::size_t count = chance(0.2) ? prng_.between(1, columns.size() - position) : 1;
    into.push_back(several(columns[position], count, chance(0.25) ? "IN" : "="));
    position += count;
  }
  if (position < columns.size() && chance(0.5)) {
    add_slices(position, into);
    ++position;
  }
  return position;
}

std::string ReferenceStatements::relation_text(Writing& writing,
                                               const ReferenceRelation& relation) {
  std::vector<std::string> names;
  for (const std::size_t column : relation.columns) names.push_back(table().columns[column].name);
  const auto tuple = [&](const ReferenceKey& key) {
    std::vector<std::string> parts;
    for (const ReferenceValue& part : key) parts.push_back(writing.value(part));
    return fmt::format("{}", fmt::join(parts, ", "));
  };
  if (relation.token) {
    const std::string right = relation.values.empty()
                                  ? writing.big_number(*relation.token)
                                  : fmt::format("token({})", tuple(relation.values[0]));
    return fmt::format("token({}) {} {}", fmt::join(names, ", "), relation.comparison, right);
  }
  const bool is_tuple = names.size() > 1;
  std::vector<std::string> values;
  for (const ReferenceKey& key : relation.values) {
    values.push_back(is_tuple ? "(" + tuple(key) + ")" : tuple(key));
  }
  return fmt::format(
      fmt::runtime(is_tuple ? "({}) {} {}" : "{} {} {}"), fmt::join(names, ", "),
      relation.comparison,
      relation.comparison == "IN" ? fmt::format("({})", fmt::join(values, ", ")) : values[0]);
}

std::string ReferenceStatements::relations_text(Writing& writing,
                                                const std::vector<ReferenceRelation>& relations) {
  std::vector<std::string> texts;
  for (const ReferenceRelation& relation : relations) {
    texts.push_back(relation_text(writing, relation));
  }
  return fmt::format("{}", fmt::join(texts, " AND "));
}

// ---- Writes ----

std::vector<ReferenceKey> ReferenceStatements::keys_of(
    const std::vector<ReferenceRelation>& relations) const {
  std::vector<ReferenceKey> keys(1);
  for (const ReferenceRelation& relation : relations) {
    std::vector<ReferenceKey> longer;
    for (const ReferenceKey& key : keys) {
      for (const ReferenceKey& value : relation.values) {
        longer.push_back(key);
        std::ranges::copy(value, std::back_inserter(longer.back()));
      }
    }
    keys = std::move(longer);
  }
  return keys;
}

std::int64_t ReferenceStatements::explicit_timestamp(const std::vector<ReferenceChange>& changes) {
  std::int64_t forgotten = 0;
  std::vector<std::int64_t> known = {timestamp_, timestamp_ + 5, timestamp_ - 15,
                                     timestamp_ + 1000};
  for (const ReferenceChange& change : changes) {
    forgotten =
        std::max(forgotten, executor_.forgotten_up_to(change.table, change.partition, now_));
    std::ranges::copy(executor_.timestamps(change.table, change.partition),
                      std::back_inserter(known));
  }
  // Equal to what is there or is being written, just below, or just above.
  const std::int64_t chosen =
      known[prng_.below(known.size())] + static_cast<std::int64_t>(prng_.below(3)) - 1;
  return std::max(chosen, forgotten + 1);
}

std::string ReferenceStatements::using_clause(Writing& writing,
                                              std::vector<ReferenceChange>& changes,
                                              bool may_be_explicit, bool may_expire) {
  std::vector<std::string> parts;
  std::int64_t seconds = may_expire ? table().default_time_to_live : 0;
  if (may_expire && chance(0.25)) {
    seconds = static_cast<std::int64_t>(prng_.below(kTimeToLiveMax));
    parts.push_back("TTL " + writing.number(seconds));
  }
  if (may_be_explicit && chance(0.25) && has_explicit_timestamps_) {
    const std::int64_t timestamp = explicit_timestamp(changes);
    parts.push_back("TIMESTAMP " + writing.big_number(timestamp));
    for (ReferenceChange& change : changes) change.timestamp = timestamp;
  }
  for (ReferenceChange& change : changes) {
    if (seconds > 0) change.expires = now_ + seconds;
  }
  return parts.empty() ? "" : fmt::format(" USING {}", fmt::join(parts, " AND "));
}

ReferenceStatements::Modification ReferenceStatements::insert(Writing& writing,
                                                              bool may_be_explicit) {
  ReferenceChange change;
  change.table = table_;
  const auto statics = table().of(Kind::statics);
  const bool only_static = !statics.empty() && chance(0.1);
  std::vector<std::string> names;
  std::vector<std::string> values;
  const auto add = [&](std::size_t column, const ReferenceOptional& value) {
    names.push_back(table().columns[column].name);
    values.push_back(writing.value(value));
  };
  change.partition = keys_of(equal_or_in(Kind::partition, 0))[0];
  for (const std::size_t column : table().of(Kind::partition))
    add(column, change.partition[column]);
  if (!only_static) {
    for (const std::size_t column : table().of(Kind::clustering)) {
      change.clustering.push_back(value(table().columns[column].type));
      add(column, change.clustering.back());
    }
  }
  std::vector<std::size_t> written;
  if (!only_static) written = some_of(table().of(Kind::regular), 0);
  if (only_static || chance(0.2)) {
    std::ranges::copy(some_of(statics, 1), std::back_inserter(written));
  }
  // An INSERT names whole columns.
  std::erase_if(written, [&](std::size_t column) { return !table().columns[column].map.empty(); });
  if (only_static && written.empty()) written.push_back(statics.back());
  for (const std::size_t column : written) {
    change.cells.push_back({column, cell(table().columns[column].type)});
    add(column, change.cells.back().value);
  }
  change.marks_row = !only_static;
  Modification made;
  made.changes.push_back(std::move(change));
  const std::string using_text = using_clause(writing, made.changes, may_be_explicit, true);
  made.text = fmt::format("INSERT INTO {} ({}) VALUES ({}){}", table().name, fmt::join(names, ", "),
                          fmt::join(values, ", "), using_text);
  return made;
}

ReferenceStatements::Modification ReferenceStatements::update(Writing& writing,
                                                              bool may_be_explicit) {
  const auto statics = table().of(Kind::statics);
  const bool only_static = !statics.empty() && chance(0.15);
  std::vector<std::size_t> columns;
  if (!only_static) columns = some_of(table().of(Kind::regular), 1);
  if (only_static || chance(0.1)) {
    std::ranges::copy(some_of(statics, 1), std::back_inserter(columns));
  }
  std::vector<ReferenceChange::CellWrite> cells;
  for (const std::size_t column : columns) {
    cells.push_back({column, cell(table().columns[column].type)});
  }
  const auto partitions = equal_or_in(Kind::partition, 0.1);
  std::vector<ReferenceRelation> rows;
  if (!only_static) rows = equal_or_in(Kind::clustering, 0.1);
  Modification made;
  for (const ReferenceKey& partition : keys_of(partitions)) {
    for (const ReferenceKey& row : keys_of(rows)) {
      ReferenceChange change;
      change.table = table_;
      change.partition = partition;
      change.clustering = row;
      change.cells = cells;
      made.changes.push_back(std::move(change));
    }
  }
  // Markers have values in the order of the text.
  const std::string using_text = using_clause(writing, made.changes, may_be_explicit, true);
  std::vector<std::string> assignments;
  for (const auto& [column, value] : cells) {
    assignments.push_back(
        fmt::format("{} = {}", table().columns[column].name, writing.value(value)));
  }
  std::vector<ReferenceRelation> relations = partitions;
  std::ranges::copy(rows, std::back_inserter(relations));
  made.text = fmt::format("UPDATE {}{} SET {} WHERE ", table().name, using_text,
                          fmt::join(assignments, ", "));
  made.text += relations_text(writing, relations);
  return made;
}

void ReferenceStatements::add_whole_maps(std::vector<std::size_t>& columns) const {
  const auto chosen = columns;
  for (std::size_t i = 0; i < table().columns.size(); ++i) {
    const std::string& map = table().columns[i].map;
    const bool of_chosen = !map.empty() && std::ranges::any_of(chosen, [&](std::size_t column) {
      return column != i && table().columns[column].map == map;
    });
    if (of_chosen && std::ranges::find(columns, i) == columns.end()) columns.push_back(i);
  }
}

ReferenceStatements::Modification ReferenceStatements::delete_cells(Writing& writing,
                                                                    bool may_be_explicit) {
  const auto statics = table().of(Kind::statics);
  const bool only_static = !statics.empty() && chance(0.3);
  auto columns = some_of(only_static ? statics : table().of(Kind::regular), 1);
  const bool whole_maps = chance(0.4);
  if (whole_maps) add_whole_maps(columns);
  std::vector<ReferenceRelation> relations = equal_or_in(Kind::partition, 0.1);
  Modification made;
  const auto partitions = keys_of(relations);
  std::vector<ReferenceRelation> rows;
  if (!only_static) rows = equal_or_in(Kind::clustering, 0.1);
  std::vector<std::string> names;
  for (const std::size_t column : columns) {
    const ReferenceColumn& of = table().columns[column];
    const std::string& name = whole_maps && !of.map.empty() ? of.map : of.name;
    if (std::ranges::find(names, name) == names.end()) names.push_back(name);
  }
  for (const ReferenceKey& partition : partitions) {
    for (const ReferenceKey& row : keys_of(rows)) {
      ReferenceChange change;
      change.table = table_;
      change.partition = partition;
      change.clustering = row;
      for (const std::size_t column : columns) change.cells.push_back({column, std::nullopt});
      made.changes.push_back(std::move(change));
    }
  }
  const std::string using_text = using_clause(writing, made.changes, may_be_explicit, false);
  std::ranges::copy(rows, std::back_inserter(relations));
  made.text =
      fmt::format("DELETE {} FROM {}{} WHERE ", fmt::join(names, ", "), table().name, using_text);
  made.text += relations_text(writing, relations);
  return made;
}

ReferenceStatements::Modification ReferenceStatements::delete_rows(Writing& writing,
                                                                   bool may_be_explicit) {
  std::vector<ReferenceRelation> relations = equal_or_in(Kind::partition, 0.1);
  const auto partitions = keys_of(relations);
  std::vector<ReferenceRelation> rows;
  if (!table().of(Kind::clustering).empty() && chance(0.85)) clustering_relations(rows);
  Modification made;
  for (const ReferenceKey& partition : partitions) {
    ReferenceChange change;
    change.table = table_;
    change.partition = partition;
    change.rows = rows;
    made.changes.push_back(std::move(change));
  }
  const std::string using_text = using_clause(writing, made.changes, may_be_explicit, false);
  std::ranges::copy(rows, std::back_inserter(relations));
  made.text = fmt::format("DELETE FROM {}{} WHERE ", table().name, using_text);
  made.text += relations_text(writing, relations);
  return made;
}

ReferenceStatements::Modification ReferenceStatements::modification(Writing& writing,
                                                                    bool may_be_explicit) {
  choose_table();
  switch (prng_.below(10)) {
    case 0:
    case 1:
    case 2:
    case 3:
      return insert(writing, may_be_explicit);
    case 4:
    case 5:
    case 6:
      return update(writing, may_be_explicit);
    case 7:
      return delete_cells(writing, may_be_explicit);
    default:
      return delete_rows(writing, may_be_explicit);
  }
}

ReferenceStatement ReferenceStatements::write(std::int64_t now) {
  now_ = now;
  timestamp_ += kTimestampStep;
  Writing writing;
  writing.made.has_markers = chance(0.2);
  writing.made.timestamp = timestamp_;
  if (chance(0.85)) {
    Modification one = modification(writing, true);
    writing.made.text = std::move(one.text);
    writing.made.changes = std::move(one.changes);
    return std::move(writing.made);
  }
  // A timestamp stands on the batch or on its statements.
  const bool whole = chance(0.2) && has_explicit_timestamps_;
  std::vector<std::string> texts;
  const std::size_t count = prng_.between(1, 5);
  std::int64_t timestamp = 0;
  std::string& text = writing.made.text;
  text = chance(0.5) ? "BEGIN BATCH" : "BEGIN UNLOGGED BATCH";
  std::size_t hole = 0;
  if (whole) {
    text += " USING TIMESTAMP ";
    hole = writing.made.values.size();
    if (writing.made.has_markers) writing.made.values.emplace_back();
  }
  for (std::size_t i = 0; i < count; ++i) {
    Modification one = modification(writing, !whole);
    texts.push_back(std::move(one.text));
    std::ranges::move(one.changes, std::back_inserter(writing.made.changes));
  }
  if (whole) {
    timestamp = explicit_timestamp(writing.made.changes);
    for (ReferenceChange& change : writing.made.changes) change.timestamp = timestamp;
    if (writing.made.has_markers) {
      writing.made.values[hole] = ReferenceValue::of_bigint(timestamp).serialized();
    }
    text += writing.made.has_markers ? "?" : std::to_string(timestamp);
  }
  text += fmt::format(" {}; APPLY BATCH", fmt::join(texts, "; "));
  return std::move(writing.made);
}

// ---- Reads ----

void ReferenceStatements::add_filters(Where& where, std::size_t first_clustering, bool distinct) {
  constexpr std::array<const char*, 5> kComparisons = {"=", "<", "<=", ">", ">="};
  std::vector<std::size_t> columns = table().of(Kind::statics);
  if (!distinct) {
    std::ranges::copy(table().of(Kind::regular), std::back_inserter(columns));
    const auto clustering = table().of(Kind::clustering);
    // A column that follows on what is settled would not be filtered but looked up.
    for (std::size_t i = first_clustering + 1; i < clustering.size(); ++i) {
      columns.push_back(clustering[i]);
    }
  }
  std::erase_if(columns, [&](std::size_t column) { return !table().columns[column].map.empty(); });
  // A column has one lower bound and one upper bound at most.
  std::erase_if(columns, [&](std::size_t column) {
    return std::ranges::any_of(where.relations, [&](const ReferenceRelation& relation) {
      return std::ranges::find(relation.columns, column) != relation.columns.end();
    });
  });
  prng_.shuffle(columns);
  columns.resize(std::min<std::size_t>(columns.size(), prng_.between(1, 2)));
  for (const std::size_t column : columns) {
    where.relations.push_back(one(column, kComparisons[prng_.below(kComparisons.size())]));
    where.needs_filtering = true;
  }
}

ReferenceStatements::Where ReferenceStatements::where(bool distinct) {
  Where made;
  const std::uint64_t kind = prng_.below(10);
  if (kind < 6) {
    made.names_partitions = true;
    made.relations = equal_or_in(Kind::partition, kind == 0 ? 0.6 : 0);
    made.one_partition = std::ranges::none_of(
        made.relations, [](const ReferenceRelation& r) { return r.comparison == "IN"; });
  } else if (kind < 8) {
    const std::uint64_t sides = prng_.below(3);
    if (sides != 0) made.relations.push_back(token_relation(true));
    if (sides != 1) made.relations.push_back(token_relation(false));
  } else if (kind == 8 && chance(0.5)) {
    // A part of the partition key, or a slice of it.
    const std::size_t column = prng_.below(table().of(Kind::partition).size());
    const bool whole = table().of(Kind::partition).size() == 1;
    made.relations.push_back(one(column, whole ? ">" : "="));
    made.needs_filtering = true;
  }
  std::size_t settled = 0;
  if (!distinct && !table().of(Kind::clustering).empty() &&
      (made.names_partitions ? chance(0.7) : chance(0.15))) {
    const std::size_t before = made.relations.size();
    settled = clustering_relations(made.relations);
    if (!made.names_partitions && made.relations.size() > before) made.needs_filtering = true;
  }
  if (chance(0.2)) add_filters(made, settled, distinct);
  return made;
}

void ReferenceStatements::choose_selectors(ReferenceQuery& query) {
  using Selector = ReferenceSelector;
  if (query.group_by == 0 && !query.distinct && chance(0.05)) {
    query.selectors.push_back({Selector::Kind::count, 0});
    return;
  }
  for (std::size_t i = 0; i < table().columns.size(); ++i) {
    const Kind kind = table().columns[i].kind;
    const bool is_key = kind == Kind::partition || kind == Kind::clustering;
    if (query.distinct && kind != Kind::partition && kind != Kind::statics) continue;
    if (kind == Kind::partition || chance(0.8))
      query.selectors.push_back({Selector::Kind::column, i});
    if (!is_key && chance(0.2)) query.selectors.push_back({Selector::Kind::writetime, i});
    if (!is_key && chance(0.2)) query.selectors.push_back({Selector::Kind::ttl, i});
  }
  if (query.group_by > 0 && chance(0.5)) query.selectors.push_back({Selector::Kind::count, 0});
}

std::string ReferenceStatements::selectors_text(const ReferenceQuery& query) const {
  std::vector<std::string> texts;
  bool all = query.selectors.size() == table().columns.size() &&
             std::ranges::all_of(table().columns,
                                 [](const ReferenceColumn& column) { return column.map.empty(); });
  for (std::size_t i = 0; i < query.selectors.size(); ++i) {
    const auto& [kind, column] = query.selectors[i];
    const std::string& name = table().columns[column].name;
    all = all && kind == ReferenceSelector::Kind::column && column == i;
    switch (kind) {
      case ReferenceSelector::Kind::column:
        texts.push_back(name);
        break;
      case ReferenceSelector::Kind::writetime:
        texts.push_back(fmt::format("writetime({})", name));
        break;
      case ReferenceSelector::Kind::ttl:
        texts.push_back(fmt::format("ttl({})", name));
        break;
      case ReferenceSelector::Kind::count:
        texts.emplace_back("count(*)");
        break;
    }
  }
  return all ? "*" : fmt::format("{}", fmt::join(texts, ", "));
}

ReferenceStatement ReferenceStatements::read() {
  choose_table();
  Writing writing;
  ReferenceStatement& made = writing.made;
  made.has_markers = chance(0.2);
  if (chance(0.6)) made.page_size = static_cast<std::int32_t>(prng_.between(1, 5));
  ReferenceQuery query;
  query.table = table_;
  query.distinct = chance(0.08);
  const Where where = this->where(query.distinct);
  query.where = where.relations;
  const auto clustering = table().of(Kind::clustering);
  const std::size_t key_size = table().of(Kind::partition).size();
  if (!query.distinct && chance(0.12)) {
    query.group_by = prng_.between(key_size, key_size + clustering.size());
  }
  choose_selectors(query);
  std::string& text = made.text;
  text = fmt::format("SELECT {}{} FROM {}", query.distinct ? "DISTINCT " : "",
                     selectors_text(query), table().name);
  if (!query.where.empty()) text += " WHERE " + relations_text(writing, query.where);
  if (query.group_by > 0) {
    std::vector<std::string> names;
    for (std::size_t i = 0; i < query.group_by; ++i) names.push_back(table().columns[i].name);
    text += fmt::format(" GROUP BY {}", fmt::join(names, ", "));
  }
  const bool may_sort = where.one_partition || (where.names_partitions && !made.page_size &&
                                                query.group_by == 0 && !query.counts());
  if (may_sort && !query.distinct && !clustering.empty() && chance(0.4)) {
    query.ordered = true;
    query.reversed = chance(0.7);
    std::vector<std::string> orders;
    for (const std::size_t column : clustering) {
      const bool descending = table().columns[column].descending != query.reversed;
      orders.push_back(table().columns[column].name + (descending ? " DESC" : " ASC"));
    }
    orders.resize(prng_.between(1, orders.size()));
    text += fmt::format(" ORDER BY {}", fmt::join(orders, ", "));
  }
  const bool counts_all = query.counts() && query.group_by == 0;
  if (!query.distinct && !counts_all && chance(0.2)) {
    query.per_partition_limit = prng_.between(1, 3);
    text += " PER PARTITION LIMIT " +
            writing.number(static_cast<std::int64_t>(*query.per_partition_limit));
  }
  if (chance(0.25)) {
    query.limit = prng_.between(1, 8);
    text += " LIMIT " + writing.number(static_cast<std::int64_t>(*query.limit));
  }
  const bool may_be_refused = where.needs_filtering && chance(0.15);
  made.is_refused =
      may_be_refused && std::ranges::none_of(query.where, [&](const ReferenceRelation& relation) {
        return std::ranges::any_of(relation.columns, [&](std::size_t column) {
          return std::ranges::find(table().indexed, column) != table().indexed.end();
        });
      });
  if (where.needs_filtering && !made.is_refused) text += " ALLOW FILTERING";
  made.query = std::move(query);
  return std::move(made);
}

}  // namespace helenus::cql::testing
