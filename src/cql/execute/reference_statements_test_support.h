// For tests: random statements about the tables of a ReferenceExecutor, each as CQL and as what it
// means. Few different values, so that statements meet.
//
// Statements are such that the outcome is known: a timestamp of the client's own lies above what
// may have been forgotten, and as often below what is remembered as not. Some of them must be
// refused.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/prng.h"
#include "cql/execute/reference_executor_test_support.h"

namespace helenus::cql::testing {

struct ReferenceStatement {
  std::string text;
  // One for each marker, serialized; none is null.
  std::vector<std::optional<std::string>> values;
  bool has_markers = false;
  // It reads, or it writes and has these effects.
  std::optional<ReferenceQuery> query;
  std::vector<ReferenceChange> changes;
  std::int64_t timestamp = 0;  // the client's default
  bool is_refused = false;     // as invalid
  std::optional<std::int32_t> page_size;
};

class ReferenceStatements {
 public:
  // Tables of several shapes; their clustering order depends on the seed, and whether they remember
  // deletes.
  static std::vector<ReferenceTable> tables(std::uint64_t seed);

  // The executor outlives it. Explicit timestamps may be left out: among several replicas a write
  // without one gets a larger one than it asked for while what it replaces is not stable.
  ReferenceStatements(std::uint64_t seed, const ReferenceExecutor& executor,
                      bool has_explicit_timestamps = true)
      : prng_(seed), executor_(executor), has_explicit_timestamps_(has_explicit_timestamps) {}

  // INSERT, UPDATE, DELETE or BATCH, sent at `now` (in seconds).
  ReferenceStatement write(std::int64_t now);
  ReferenceStatement read();

  base::Prng& prng() { return prng_; }

 private:
  // How one statement is written down.
  struct Writing {
    ReferenceStatement made;
    std::string value(const ReferenceOptional& value);
    std::string number(std::int64_t number);          // an int
    std::string big_number(std::int64_t big_number);  // a bigint
  };
  // One modification, as CQL.
  struct Modification {
    std::string text;
    std::vector<ReferenceChange> changes;
  };

  const ReferenceTable& table() const { return executor_.tables()[table_]; }
  void choose_table() { table_ = prng_.below(executor_.tables().size()); }
  bool chance(double probability) { return prng_.chance(probability); }
  ReferenceValue value(ReferenceType type);
  ReferenceOptional cell(ReferenceType type);
  std::vector<std::size_t> some_of(std::vector<std::size_t> columns, std::size_t at_least);

  // ---- Writes ----
  Modification modification(Writing& writing, bool may_be_explicit);
  Modification insert(Writing& writing, bool may_be_explicit);
  Modification update(Writing& writing, bool may_be_explicit);
  // All elements of the maps of which some were chosen.
  void add_whole_maps(std::vector<std::size_t>& columns) const;
  Modification delete_cells(Writing& writing, bool may_be_explicit);
  Modification delete_rows(Writing& writing, bool may_be_explicit);
  // " USING TTL 5 AND TIMESTAMP 7"; what it means goes into the changes.
  std::string using_clause(Writing& writing, std::vector<ReferenceChange>& changes,
                           bool may_be_explicit, bool may_expire);
  std::int64_t explicit_timestamp(const std::vector<ReferenceChange>& changes);
  // The partitions, then the rows, that all the relations name.
  std::vector<ReferenceKey> keys_of(const std::vector<ReferenceRelation>& relations) const;

  // ---- Relations ----
  std::vector<ReferenceRelation> equal_or_in(ReferenceKind kind, double in_probability);
  // Returns how many clustering columns are settled by = and IN.
  std::size_t clustering_relations(std::vector<ReferenceRelation>& into);
  void add_slices(std::size_t position, std::vector<ReferenceRelation>& into);
  ReferenceRelation one(std::size_t column, std::string comparison);
  ReferenceRelation several(std::size_t column, std::size_t count, std::string comparison);
  ReferenceRelation token_relation(bool lower);
  std::string relations_text(Writing& writing, const std::vector<ReferenceRelation>& relations);
  std::string relation_text(Writing& writing, const ReferenceRelation& relation);

  // ---- Reads ----
  struct Where {
    std::vector<ReferenceRelation> relations;
    bool one_partition = false;
    bool names_partitions = false;
    bool needs_filtering = false;
  };
  Where where(bool distinct);
  void add_filters(Where& where, std::size_t first_clustering, bool distinct);
  void choose_selectors(ReferenceQuery& query);
  std::string selectors_text(const ReferenceQuery& query) const;

  base::Prng prng_;
  const ReferenceExecutor& executor_;
  const bool has_explicit_timestamps_;
  std::size_t table_ = 0;
  std::int64_t now_ = 0;
  std::int64_t timestamp_ = 1'000'000;  // of the statement that is made
};

}  // namespace helenus::cql::testing
