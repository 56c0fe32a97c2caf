#include "sim/scenarios/rows/statements.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "model/value.h"

namespace helenus::sim {

namespace {

using Column = RowsShape::Column;

template <class T>
bool contains(const std::vector<T>& all, const T& one) {
  return std::ranges::find(all, one) != all.end();
}

constexpr std::int64_t kTtlsSeconds[] = {3, RowsStatements::kTtlSecondsMax};
constexpr std::int64_t kV = RowsPart::kValue;

// Makes a write of one partition.
class WriteMaker {
 public:
  WriteMaker(const RowsShape& shape, std::size_t keyspace, std::int32_t partition)
      : shape_(shape),
        table_(shape.keyspaces[keyspace].table()),
        keyspace_(keyspace),
        partition_(partition) {}

  void insert(std::int32_t row, std::optional<std::int64_t> ttl) {
    add(fmt::format("INSERT INTO {} (k, c, v, w) VALUES (?, ?, ?, ?){}", table_,
                    ttl ? fmt::format(" USING TTL {}", *ttl) : ""),
        {partition_, row, kV, kV});
    put(row, Column::v);
    put(row, Column::w);
    write_.ttl_seconds = ttl;
  }
  void update(std::int32_t row, Column column, std::optional<std::int64_t> ttl) {
    add(fmt::format("UPDATE {}{} SET {} = ? WHERE k = ? AND c = ?", table_,
                    ttl ? fmt::format(" USING TTL {}", *ttl) : "", RowsShape::text_of(column)),
        {kV, partition_, row});
    put(row, column);
    write_.ttl_seconds = ttl;
  }
  void update_static() {
    add(fmt::format("UPDATE {} SET s = ? WHERE k = ?", table_), {kV, partition_});
    put(0, Column::s);
  }
  void delete_cell(std::int32_t row, Column column) {
    add(fmt::format("DELETE {} FROM {} WHERE k = ? AND c = ?", RowsShape::text_of(column), table_),
        {partition_, row});
    remove(row, column);
  }
  // The map as a whole: one element, or none.
  void replace_map(std::int32_t row, bool with_element) {
    if (with_element) {
      add(fmt::format("UPDATE {} SET m = {{0: ?}} WHERE k = ? AND c = ?", table_),
          {kV, partition_, row});
      put(row, Column::m0);
    } else {
      add(fmt::format("DELETE m FROM {} WHERE k = ? AND c = ?", table_), {partition_, row});
      remove(row, Column::m0);
    }
    remove(row, Column::m1);
  }
  void delete_row(std::int32_t row) {
    add(fmt::format("DELETE FROM {} WHERE k = ? AND c = ?", table_), {partition_, row});
    remove_row(row);
  }
  void delete_rows(std::int32_t from, std::int32_t end) {
    add(fmt::format("DELETE FROM {} WHERE k = ? AND c >= ? AND c < ?", table_),
        {partition_, from, end});
    for (std::int32_t row = from; row < std::min(end, RowsShape::kRows); ++row) remove_row(row);
  }
  void delete_partition() {
    add(fmt::format("DELETE FROM {} WHERE k = ?", table_), {partition_});
    remove(0, Column::s);
    for (std::int32_t row = 0; row < RowsShape::kRows; ++row) remove_row(row);
  }
  RowsWrite take() && { return std::move(write_); }

 private:
  void add(std::string text, std::vector<std::int64_t> values) {
    write_.parts.push_back({.text = std::move(text), .values = std::move(values)});
  }
  void put(std::int32_t row, Column column) {
    write_.puts.push_back(shape_.cell(keyspace_, partition_, row, column));
  }
  void remove(std::int32_t row, Column column) {
    write_.deletes.push_back(shape_.cell(keyspace_, partition_, row, column));
  }
  void remove_row(std::int32_t row) {
    for (const Column column : RowsShape::kColumnsOfRow) remove(row, column);
  }

  const RowsShape& shape_;
  const std::string table_;
  const std::size_t keyspace_;
  const std::int32_t partition_;
  RowsWrite write_;
};

bool is_bigint(std::int64_t marker) {
  return marker == RowsPart::kValue;
}

}  // namespace

std::vector<client::BoundValue> RowsPart::bound(RowsHistory::Value value) const {
  std::vector<client::BoundValue> all;
  for (const std::int64_t marker : values) {
    all.emplace_back(is_bigint(marker) ? model::bigint_value(static_cast<std::int64_t>(value))
                                       : model::int_value(static_cast<std::int32_t>(marker)));
  }
  return all;
}

std::string RowsPart::literally(RowsHistory::Value value) const {
  std::string said;
  auto next = values.begin();
  for (const char letter : text) {
    if (letter != '?') {
      said += letter;
      continue;
    }
    said += is_bigint(*next) ? fmt::format("{}", value) : fmt::format("{}", *next);
    ++next;
  }
  return said;
}

std::string RowsWrite::to_string(RowsHistory::Value value) const {
  std::vector<std::string> texts;
  for (const RowsPart& part : parts) texts.push_back(part.literally(value));
  return fmt::format("{}", fmt::join(texts, " + "));
}

// ---- Writes ----

std::int32_t RowsStatements::draw_partition_to_write() {
  for (;;) {
    const auto partition =
        static_cast<std::int32_t>(dice_.below(static_cast<std::uint64_t>(shape_.partitions)));
    if (shape_.may_write(client_, partition)) return partition;
  }
}

RowsWrite RowsStatements::draw_write(std::size_t keyspace) {
  WriteMaker maker(shape_, keyspace, draw_partition_to_write());
  const std::int32_t row = draw_row();
  const Column column = RowsShape::kColumnsOfRow[dice_.below(std::size(RowsShape::kColumnsOfRow))];
  std::optional<std::int64_t> ttl;
  if (dice_.chance(0.15)) ttl = kTtlsSeconds[dice_.below(std::size(kTtlsSeconds))];
  const std::uint64_t kind = dice_.below(22);
  if (kind < 6) {
    maker.insert(row, ttl);
  } else if (kind < 9) {
    maker.update(row, column, ttl);
  } else if (kind < 11) {
    maker.update_static();
  } else if (kind < 13) {
    maker.delete_cell(row, column);
  } else if (kind < 16) {
    maker.delete_row(row);
  } else if (kind < 17) {
    maker.delete_rows(row, row + static_cast<std::int32_t>(dice_.between(1, 3)));
  } else if (kind < 18) {
    maker.delete_partition();
  } else if (kind < 20) {
    maker.replace_map(row, dice_.chance(0.7));
  } else {
    maker.insert(row, std::nullopt);
    maker.update_static();
    maker.delete_row((row + 1) % RowsShape::kRows);
    if (dice_.chance(0.5)) maker.update((row + 2) % RowsShape::kRows, column, std::nullopt);
  }
  return std::move(maker).take();
}

// ---- Reads ----

std::vector<std::int32_t> RowsStatements::draw_some(std::int32_t bound) {
  std::vector<std::int32_t> all;
  for (std::int32_t i = 0; i < bound; ++i) all.push_back(i);
  dice_.shuffle(all);
  all.resize(dice_.between(1, all.size()));
  std::ranges::sort(all);
  return all;
}

namespace {

std::vector<std::int32_t> up_to(std::int32_t bound) {
  std::vector<std::int32_t> all;
  for (std::int32_t i = 0; i < bound; ++i) all.push_back(i);
  return all;
}

}  // namespace

RowsRead RowsStatements::draw_read(std::size_t keyspace) {
  const std::string from =
      fmt::format("SELECT k, c, s, v, w, m FROM {}", shape_.keyspaces[keyspace].table());
  const auto k =
      static_cast<std::int32_t>(dice_.below(static_cast<std::uint64_t>(shape_.partitions)));
  const std::int32_t c = draw_row();
  RowsRead read{
      .part = {}, .keyspace = keyspace, .partitions = {k}, .rows = up_to(RowsShape::kRows)};
  if (dice_.chance(0.5)) read.page_size = static_cast<std::int32_t>(dice_.between(1, 5));
  const std::uint64_t kind = dice_.below(12);
  if (kind < 3) {
    read.part = {.text = from + " WHERE k = ? AND c = ?", .values = {k, c}};
    read.rows = {c};
    read.is_of_whole_partitions = false;
  } else if (kind < 6) {
    read.part = {.text = from + " WHERE k = ?", .values = {k}};
    if (dice_.chance(0.3)) read.part.text += " ORDER BY c DESC";
  } else if (kind < 8) {
    const auto end = static_cast<std::int32_t>(
        dice_.between(static_cast<std::uint64_t>(c) + 1, RowsShape::kRows));
    read.part = {.text = from + " WHERE k = ? AND c >= ? AND c < ?", .values = {k, c, end}};
    std::erase_if(read.rows, [&](std::int32_t row) { return row < c || row >= end; });
    read.is_of_whole_partitions = false;
  } else if (kind < 9) {
    read.rows = draw_some(RowsShape::kRows);
    read.part = {
        .text = fmt::format("{} WHERE k = ? AND c IN ({})", from, fmt::join(read.rows, ", ")),
        .values = {k}};
    read.is_of_whole_partitions = false;
  } else if (kind < 10) {
    read.partitions = draw_some(shape_.partitions);
    read.part = {.text = fmt::format("{} WHERE k IN ({})", from, fmt::join(read.partitions, ", "))};
  } else {
    read.partitions = up_to(shape_.partitions);
    read.part = {.text = from};
  }
  return read;
}

RowsRead read_of_partition(const RowsShape& shape, std::size_t keyspace, std::int32_t partition) {
  return {.part = {.text = fmt::format(
                       "SELECT k, c, s, v, w, m, writetime(s), writetime(v), writetime(w), "
                       "writetime(m) FROM {} WHERE k = ?",
                       shape.keyspaces[keyspace].table()),
                   .values = {partition}},
          .keyspace = keyspace,
          .partitions = {partition},
          .rows = up_to(RowsShape::kRows)};
}

// ---- What was seen ----

void RowsSeen::note(std::int32_t partition, std::int32_t row, Column column,
                    std::optional<std::int64_t> value) {
  RowsHistory::Seen seen{.cell = shape_.cell(read_.keyspace, partition, row, column),
                         .value = std::nullopt};
  if (value) seen.value = static_cast<RowsHistory::Value>(*value);
  seen_.push_back(seen);
}

std::optional<std::string> RowsSeen::add(const client::ResultSet& page) {
  for (const client::Row row : page.rows()) {
    if (auto problem = add(row)) return problem;
  }
  return std::nullopt;
}

namespace {

// What is under 0 and 1 in the map of a row; nothing if it is no such map.
std::optional<std::array<std::optional<std::int64_t>, 2>> elements_of(const client::Row& row) {
  std::array<std::optional<std::int64_t>, 2> elements;
  const auto m = row.get<std::optional<base::Bytes>>("m");
  if (!m) return std::nullopt;
  if (!*m) return elements;
  const auto entries = model::split_map(**m);
  if (!entries) return std::nullopt;
  for (const auto& [key, value] : *entries) {
    const auto element = model::read_int(key);
    const auto number = model::read_bigint(value);
    if (!element || !number || *element < 0 || *element > 1) return std::nullopt;
    elements[static_cast<std::size_t>(*element)] = *number;
  }
  return elements;
}

}  // namespace

std::optional<std::string> RowsSeen::add(const client::Row& row) {
  const auto k = row.get<std::int32_t>("k");
  const auto c = row.get<std::optional<std::int32_t>>("c");
  if (!k || !c) return "a row without a key";
  const bool is_asked_for = contains(read_.partitions, *k) &&
                            (*c ? contains(read_.rows, **c) : read_.is_of_whole_partitions);
  if (!is_asked_for) return fmt::format("a row that was not asked for: k={}", *k);
  const std::pair name(*k, c->value_or(-1));
  if (contains(rows_, name)) {
    return fmt::format("the row k={} c={} comes twice", name.first, name.second);
  }
  rows_.push_back(name);
  if (!contains(partitions_, *k)) partitions_.push_back(*k);
  const auto value_of = [&](std::string_view column) {
    return row.get<std::optional<std::int64_t>>(column).value_or(std::nullopt);
  };
  note(*k, 0, Column::s, value_of("s"));
  if (!*c) return std::nullopt;
  note(*k, **c, Column::v, value_of("v"));
  note(*k, **c, Column::w, value_of("w"));
  const auto elements = elements_of(row);
  if (!elements) return "a map that is none";
  note(*k, **c, Column::m0, elements->at(0));
  note(*k, **c, Column::m1, elements->at(1));
  return std::nullopt;
}

std::vector<RowsHistory::Seen> RowsSeen::take() && {
  for (const std::int32_t k : read_.partitions) {
    for (const std::int32_t c : read_.rows) {
      if (contains(rows_, std::pair(k, c))) continue;
      for (const Column column : RowsShape::kColumnsOfRow) note(k, c, column, std::nullopt);
    }
    if (read_.is_of_whole_partitions && !contains(partitions_, k)) {
      note(k, 0, Column::s, std::nullopt);
    }
  }
  return std::move(seen_);
}

}  // namespace helenus::sim
