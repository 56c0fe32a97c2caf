// For tests: what CQL statements mean, by maps in memory and nothing else. It is too simple to be
// wrong and far too slow to be used: a WHERE clause is asked of every row, there are no pages, and
// all values ever written are compared with one another.
//
// What it takes from Helenus rather than from Cassandra: a write without a timestamp of its own has
// seen all that was written before it, and replaces it whatever the timestamps are. A write or a
// delete with USING TIMESTAMP wins by its timestamp, as in Cassandra, cell by cell, whether the
// cell is there or not: deletes are remembered if they have a timestamp of their own, or if the
// table remembers all of them. Against other deletes, and values that expired, it may win or lose,
// for they are forgotten (forgotten_up_to()).
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

namespace helenus::cql::testing {

enum class ReferenceType : std::uint8_t { int_, bigint, text, blob };

// A value of one of those types. Values of one type are ordered as CQL orders them.
struct ReferenceValue {
  ReferenceType type = ReferenceType::int_;
  std::int64_t number = 0;  // of int and bigint
  std::string bytes;        // of text and blob

  static ReferenceValue of_int(std::int64_t number) { return {.number = number, .bytes = {}}; }
  static ReferenceValue of_bigint(std::int64_t number) {
    return {.type = ReferenceType::bigint, .number = number, .bytes = {}};
  }
  std::string literal() const;
  std::string serialized() const;
  friend auto operator<=>(const ReferenceValue&, const ReferenceValue&) = default;
};
using ReferenceKey = std::vector<ReferenceValue>;
using ReferenceOptional = std::optional<ReferenceValue>;  // none is null

enum class ReferenceKind : std::uint8_t { partition, clustering, statics, regular };

struct ReferenceColumn {
  std::string name;
  ReferenceType type = ReferenceType::int_;
  ReferenceKind kind = ReferenceKind::regular;
  bool descending = false;
  // Of the element of a map, which is a cell like others: "m" of m[1]. Its name is "m[1]".
  std::string map = {};
};

// Columns stand in the order of SELECT *: by kind, statics and regular ones by name.
struct ReferenceTable {
  std::string name;
  std::vector<ReferenceColumn> columns;
  std::int32_t default_time_to_live = 0;
  std::int32_t delete_memory = 0;  // none, or longer than a test
  // Columns with an index: it changes no answer, but what needs ALLOW FILTERING.
  std::vector<std::size_t> indexed = {};

  std::vector<std::size_t> of(ReferenceKind kind) const;
  std::string create() const;
  std::vector<std::string> create_indexes() const;
};

// A relation of a WHERE clause: columns, or the token of the partition key, compared with a value
// or, for IN, with several.
struct ReferenceRelation {
  std::vector<std::size_t> columns;
  std::string comparison;  // = < <= > >= IN
  std::vector<ReferenceKey> values;
  std::optional<std::int64_t> token;  // instead of values
};

// What one statement does in one place; a batch is several of them.
struct ReferenceChange {
  struct CellWrite {
    std::size_t column = 0;
    ReferenceOptional value;  // none deletes the cell
  };

  std::size_t table = 0;
  ReferenceKey partition;
  std::optional<std::int64_t> timestamp;  // of USING TIMESTAMP
  // Either cells of a row and static ones ...
  ReferenceKey clustering;
  std::vector<CellWrite> cells;
  std::optional<std::int64_t> expires;
  bool marks_row = false;  // an INSERT
  // ... or whole rows are deleted: those that match; all, and the static one, if nothing is said.
  std::optional<std::vector<ReferenceRelation>> rows;
};

struct ReferenceSelector {
  enum class Kind : std::uint8_t { column, writetime, ttl, count };
  Kind kind = Kind::column;
  std::size_t column = 0;
};

struct ReferenceQuery {
  std::size_t table = 0;
  std::vector<ReferenceSelector> selectors;
  std::vector<ReferenceRelation> where;
  bool distinct = false;
  std::size_t group_by = 0;  // so many columns of the primary key; 0 for no GROUP BY
  bool ordered = false;      // by clustering columns over all partitions
  bool reversed = false;
  std::optional<std::size_t> limit;
  std::optional<std::size_t> per_partition_limit;

  bool counts() const;
};

class ReferenceExecutor {
 public:
  explicit ReferenceExecutor(std::vector<ReferenceTable> tables);

  const std::vector<ReferenceTable>& tables() const { return tables_; }
  // One request. `timestamp` is that of changes without one of their own.
  void apply(const std::vector<ReferenceChange>& changes, std::int64_t timestamp);
  // Rows as texts: literals with commas between them.
  std::vector<std::string> select(const ReferenceQuery& query, std::int64_t now) const;

  // A write up to this timestamp may meet something that is dead, and known or forgotten.
  std::int64_t forgotten_up_to(std::size_t table, const ReferenceKey& key, std::int64_t now) const;
  // Of all cells of the partition, and all deletes of it.
  std::vector<std::int64_t> timestamps(std::size_t table, const ReferenceKey& key) const;
  static std::int64_t token_of(const ReferenceKey& partition);

 private:
  static constexpr std::size_t kMarker = static_cast<std::size_t>(-1);
  // In the place of all cells of a row that are not there: what deleted them.
  static constexpr std::size_t kUnwritten = static_cast<std::size_t>(-2);

  struct Cell {
    ReferenceOptional value;  // none: a delete
    std::int64_t timestamp = 0;
    std::optional<std::int64_t> expires;

    bool is_live(std::int64_t now) const { return value && (!expires || *expires > now); }
    // At equal timestamps a delete beats a value that expires, that one any other; then the later
    // expiry, then the larger bytes.
    auto strength() const {
      return std::tuple(timestamp, !value, expires.has_value(), expires.value_or(0),
                        value ? value->serialized() : std::string());
    }
  };
  using Cells = std::map<std::size_t, Cell>;  // by column
  // Of rows that match; of all, and the static one, if nothing is said.
  struct Delete {
    std::vector<ReferenceRelation> rows;
    std::int64_t timestamp = 0;
    bool is_explicit = false;
  };
  // Partitions of a table lie in the order of tokens, then of the bytes that storage makes of keys.
  using Place = std::tuple<std::int64_t, std::string>;
  struct Partition {
    Place place;
    ReferenceKey key;
    Cells statics;
    std::map<ReferenceKey, Cells> rows;
    std::vector<Delete> deletes;  // all there ever were, in their order
    std::int64_t forgotten_up_to = INT64_MIN;
  };
  // What the changes of one timestamp do to one partition.
  struct Mutation {
    std::map<std::pair<std::optional<ReferenceKey>, std::size_t>, Cell> cells;  // no key: static
    std::vector<std::vector<ReferenceRelation>> deletes;
  };
  struct FoundRow {
    const Partition* partition = nullptr;
    const ReferenceKey* clustering = nullptr;  // none for a static row without rows
    const Cells* cells = nullptr;
  };

  static Place place_of(const ReferenceKey& key);
  void gather(const ReferenceChange& change, Mutation& into, std::int64_t timestamp) const;
  // Without the cells that a delete of the same timestamp in the same request beats.
  Mutation without_deleted(Mutation mutation, const Mutation& plain, const ReferenceTable& table,
                           const Partition& partition) const;
  void apply(const Mutation& mutation, const ReferenceTable& table, Partition& partition,
             std::int64_t timestamp, bool is_explicit) const;
  // What a row that was never written has.
  Cells unwritten(const ReferenceTable& table, const Partition& partition,
                  const ReferenceKey& row) const;
  bool deletes(const Delete& deleted, const ReferenceTable& table, const Partition& partition,
               const ReferenceKey& row) const;
  static void erase(Cells& cells, const Delete& deleted);
  static void write(Cells& cells, std::size_t column, const Cell& cell, bool is_explicit);
  const Cell* cell_of(const ReferenceTable& table, const FoundRow& row, std::size_t column) const;
  ReferenceOptional value_of(const ReferenceTable& table, const FoundRow& row, std::size_t column,
                             std::int64_t now) const;
  bool matches(const ReferenceTable& table, const FoundRow& row,
               const std::vector<ReferenceRelation>& where, std::int64_t now) const;
  static bool names_partitions(const ReferenceTable& table, const ReferenceQuery& query);
  void find_rows(const ReferenceQuery& query, const Partition& partition, std::int64_t now,
                 std::vector<FoundRow>& rows) const;
  bool comes_before(const ReferenceTable& table, const FoundRow& a, const FoundRow& b) const;
  std::string shown(const ReferenceQuery& query, const std::vector<FoundRow>& group,
                    std::int64_t now) const;

  const std::vector<ReferenceTable> tables_;
  std::vector<std::map<Place, Partition>> data_;  // by table
};

}  // namespace helenus::cql::testing
