// StatementPlan: any statement, from its text to what can be executed, and PreparedStatements: the
// plans that clients asked to be kept.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <absl/container/flat_hash_map.h>

#include "base/bytes.h"
#include "base/uuid.h"
#include "cql/catalog/catalog.h"
#include "cql/errors/query_error.h"
#include "cql/parser/ast.h"
#include "cql/plan/modification_plan.h"
#include "cql/plan/select_plan.h"
#include "cql/protocol/metadata.h"
#include "cql/protocol/request.h"

namespace helenus::cql {

// Immutable. It keeps what it was planned against.
struct StatementPlan {
  // Statements about the schema, the session or rights stay as they were parsed.
  using What = std::variant<SelectPlan, ModificationPlan, BatchPlan, parser::Statement>;

  What what;
  std::vector<protocol::ColumnSpec> markers;
  std::vector<std::uint16_t> partition_markers;
  CatalogPtr catalog;
  std::uint64_t text_hash = 0;

  // Of the rows it gives; none for what gives none.
  const std::vector<protocol::ColumnSpec>& result_columns() const;
};
using PlanPtr = std::shared_ptr<const StatementPlan>;

// Errors: a syntax error; invalid for a text that is too long; those of planning.
QueryResult<PlanPtr> plan_statement(std::string_view text, CatalogPtr catalog,
                                    const std::string& session_keyspace);

// The prepared statements of a node, by their ids; at most so many and so many bytes of text, of
// which those used longest ago go first.
class PreparedStatements {
 public:
  struct Limits {
    std::size_t statements_max = 10'000;
    std::size_t bytes_max = std::size_t{64} << 20;
  };
  // What a plan is taken to cost besides its text, and for each byte of it.
  static constexpr std::size_t kStatementBytes = 4096;
  static constexpr std::size_t kBytesPerCharacter = 8;

  struct Statement {
    protocol::PreparedId id{};
    std::string text;
    std::string keyspace;  // in force when it was prepared
    PlanPtr plan;
    bool columns_changed = false;  // since it was first prepared
  };

  explicit PreparedStatements(Limits limits) : limits_(limits) {}

  void put(Statement statement);
  // Null when it is not there. The pointer is good until the next call.
  Statement* find(base::ByteView id);
  void erase(const protocol::PreparedId& id);

  std::size_t size() const { return by_use_.size(); }
  std::uint64_t evicted() const { return evicted_; }

 private:
  using Uses = std::list<Statement>;
  static std::size_t cost_of(const Statement& statement) {
    return kStatementBytes + (statement.text.size() * kBytesPerCharacter);
  }

  const Limits limits_;
  std::size_t bytes_ = 0;
  std::uint64_t evicted_ = 0;
  Uses by_use_;  // the newest first
  absl::flat_hash_map<base::Uuid, Uses::iterator> by_id_;
};

}  // namespace helenus::cql
