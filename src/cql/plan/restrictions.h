// Restrictions: what a WHERE clause says, sorted by how it is answered.
//
//   partitions     every partition-key column by = or IN: these partitions and no others
//   tokens         token(k) between bounds: a range of the ring
//   rows           clustering columns by = and IN, then one slice: ranges of bytes in a partition
//   filters        everything else, asked of every row read; only with ALLOW FILTERING, or if an
//                  index tells which rows to read
//
// The rules, and the words in which they are told, are Cassandra's: which relations may stand
// together, which need ALLOW FILTERING, which a statement that writes does not take.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "cql/errors/query_error.h"
#include "cql/parser/expression.h"
#include "cql/plan/predicate.h"
#include "cql/plan/row.h"
#include "cql/plan/terms.h"
#include "model/clustering_key.h"
#include "model/keyspace_number.h"
#include "model/schema.h"
#include "model/token.h"
#include "replication/request/read_request.h"

namespace helenus::cql {

enum class StatementKind : std::uint8_t { select, insert, update, delete_ };
// "SELECT".
std::string_view name_of(StatementKind kind);

// The refusal of what would read more than it shows.
QueryError needs_allow_filtering();
// Errors: invalid for a name that is no column's.
QueryResult<std::size_t> column_index(const model::Table& table, std::string_view name);

// Whether storage takes a key of these parts. Errors: invalid.
QueryResult<void> check_key_sizes(std::size_t partition, std::size_t row);

// Where an index is asked: encoded values from one to all that begin with the other
// (model/index_entries.h).
struct BoundIndex {
  std::string name;
  base::Bytes from;
  base::Bytes to;
  bool is_one_value = false;  // then they are the same
};

// What a statement is about, once its markers have values.
struct BoundRestrictions {
  // Partitions as storage knows them, in the order of their keys' types, each once; else a range of
  // them.
  bool by_key = false;
  std::vector<base::Bytes> partitions;
  storage::KeyRange range;
  // Of every partition, ascending and disjoint. All rows but the static one if nothing restricts
  // them; in a table without clustering columns the one there is.
  std::vector<model::ClusteringRange> rows;
  std::vector<BoundPredicate> filters;
  // Which rows there may be that match the filters, if that can be told; never by key.
  std::optional<BoundIndex> index;
};

// One row, as storage knows it.
struct BoundPrimaryKey {
  base::Bytes partition;
  base::Bytes clustering;  // empty in a table without clustering columns
};

class Restrictions {
 public:
  struct Rules {
    StatementKind kind = StatementKind::select;
    model::KeyspaceNumber keyspace;  // of the table
    bool allow_filtering = false;
    // The statement touches static columns only (an UPDATE, INSERT or DELETE of such): clustering
    // columns may be missing.
    bool only_static = false;
    // A DELETE of whole rows: slices and missing clustering columns are ranges to be deleted.
    bool whole_rows = false;
  };

  // Errors: invalid.
  static QueryResult<Restrictions> plan(const std::vector<parser::Relation>& relations,
                                        const model::TablePtr& table, Rules rules,
                                        PlanScope& scope);
  // Of an INSERT, whose columns say where the row is.
  static QueryResult<Restrictions> of_keys(std::vector<Predicate> equalities,
                                           const model::TablePtr& table, Rules rules);

  // Every partition-key column has its values.
  bool names_partitions() const { return names_partitions_; }
  // So has every clustering column: each range of rows is one row.
  bool names_rows() const { return names_rows_; }
  // At most one row, whatever is bound.
  bool names_one_row() const { return names_rows_ && !has_in_; }
  bool restricts_clustering() const { return restricts_clustering_; }
  bool restricts_regular() const { return restricts_regular_; }
  bool has_slice() const { return lower_ || upper_; }
  // Whether the column has just one value.
  bool has_one_value(std::size_t column) const;
  // The one that tells which rows may match; null if none does.
  const model::Index* index() const { return index_ ? &table_->indexes[index_->number] : nullptr; }
  // The columns that filters look at.
  std::vector<std::size_t> columns_filtered() const;
  // For each column of the partition key the marker that binds it; none unless all are bound.
  std::vector<std::uint16_t> partition_markers() const;

  // Errors: invalid.
  QueryResult<BoundRestrictions> bind(const Evaluation& evaluation) const;

  // Every column of the key by = and a value of its own, and nothing else.
  bool is_row_key() const;
  // The row so named, without what several would take; as bind() tells it, errors too.
  // Requires: is_row_key().
  QueryResult<BoundPrimaryKey> bind_row(const Evaluation& evaluation) const;

 private:
  friend class RestrictionsPlanner;

  // A token: as a number, or of values of the partition key.
  struct TokenBound {
    std::vector<Term> values;
    bool is_number = false;
    bool inclusive = false;
  };

  void sort_keys(std::vector<KeyValues>& keys) const;
  QueryResult<std::vector<base::Bytes>> bind_partitions(const Evaluation& evaluation) const;
  QueryResult<storage::KeyRange> bind_tokens(const Evaluation& evaluation) const;
  QueryResult<std::optional<model::Token>> token_of(const std::optional<TokenBound>& bound,
                                                    const Evaluation& evaluation) const;
  QueryResult<std::vector<model::ClusteringRange>> bind_rows(const Evaluation& evaluation) const;

  model::TablePtr table_;
  model::KeyspaceNumber keyspace_;
  std::vector<model::ClusteringColumn> clustering_;
  bool names_partitions_ = false;
  bool names_rows_ = false;
  bool has_in_ = false;
  bool restricts_clustering_ = false;
  bool restricts_regular_ = false;
  // = or IN, in the order of the partition key, if names_partitions_.
  std::vector<Predicate> partition_;
  std::optional<TokenBound> token_from_;
  std::optional<TokenBound> token_to_;
  // = or IN, in the order of the clustering columns; then a slice.
  std::vector<Predicate> prefix_;
  std::optional<Predicate> lower_;
  std::optional<Predicate> upper_;
  std::vector<Predicate> filters_;
  struct IndexUse {
    std::size_t number = 0;  // in Table::indexes
    // In filters_: one value, or one bound or two.
    std::vector<std::size_t> filters;
  };
  std::optional<BoundIndex> bind_index(const std::vector<BoundPredicate>& filters) const;
  std::optional<IndexUse> index_;
};

}  // namespace helenus::cql
