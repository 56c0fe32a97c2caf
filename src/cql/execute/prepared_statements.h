// PreparedStatements: the statements that clients of one core have prepared, and their plans.
//
// A plan belongs to one snapshot of the catalog, and is made anew when the catalog has changed. If
// the statement's columns are others now the client is told to prepare it again (UNPREPARED), since
// it would read rows by what it was told before. Its id stays, and when one client has prepared it
// again others may still go by the old columns: the protocol's version 4 has no name for a version
// of metadata. So that its columns have ever changed is remembered, and rows of such a statement
// carry their metadata, whatever the client asks: drivers go by what a result says of itself first.
//
// Cores. A statement is kept where it was prepared, and other cores borrow it when a client of
// theirs executes it: a client is told UNPREPARED only if no core has it. That its columns have
// changed travels with it, and who prepares it asks the others what they have told.
//
// Core affinity: the core of runtime and catalog, which outlive it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "cql/catalog/catalog_view.h"
#include "cql/errors/query_error.h"
#include "cql/execute/prepared_statement_cache.h"
#include "cql/plan/statement_plan.h"
#include "cql/protocol/response.h"
#include "runtime/cores.h"
#include "runtime/runtime.h"
#include "runtime/stop_token.h"
#include "runtime/task.h"
#include "runtime/time.h"

namespace helenus::cql {

class PreparedStatements {
 public:
  // `peer_timeout`: how long other cores are waited for.
  PreparedStatements(runtime::Runtime& runtime, const CatalogView& catalog,
                     PreparedStatementCache::Limits limits, runtime::Duration peer_timeout)
      : runtime_(runtime), catalog_(catalog), peer_timeout_(peer_timeout), cache_(limits) {}
  PreparedStatements(const PreparedStatements&) = delete;
  PreparedStatements& operator=(const PreparedStatements&) = delete;

  // Those of the node's other cores, which outlive its last request. None unless told.
  struct Peer {
    runtime::CoreId core;
    PreparedStatements* statements = nullptr;
  };
  void set_peers(std::vector<Peer> peers) { peers_ = std::move(peers); }
  bool has_peers() const { return !peers_.empty(); }

  // Plans the statement and keeps it. Errors: those of planning.
  [[gnu::noinline]] runtime::Task<QueryResult<protocol::PreparedResult>> prepare(
      std::string_view text, std::string keyspace, runtime::StopToken stop);

  // The statement of this core, with its plan made anew if the catalog has changed; null if it is
  // not here, or if what clients were told of it no longer holds: until one has prepared it again.
  // Good until the next call.
  const PreparedStatement* current(base::ByteView id);

  struct Found {
    PlanPtr plan;
    bool columns_changed = false;  // since it was first prepared
  };
  // The current one, to be kept. Errors: unprepared.
  QueryResult<Found> find(base::ByteView id);
  // One that find() does not find: the other cores are asked, and the first that has it lends it.
  // `id` outlives the task. Errors: as of find().
  [[gnu::noinline]] runtime::Task<QueryResult<Found>> borrow(base::ByteView id,
                                                             runtime::StopToken stop);

  // The text of a statement of this core; null if it is not here. Good until the next call.
  const std::string* text_of(base::ByteView id);

  std::size_t size() const { return cache_.size(); }
  std::uint64_t evicted() const { return cache_.evicted(); }

 private:
  // A statement was prepared here: whether some core has told clients of other columns. Each that
  // has remembers that there are these, too. It is here already, so of two cores that prepare it at
  // once one at least hears of the other. `statement` outlives the task.
  runtime::Task<bool> columns_differ_on_peers(const PreparedStatement& statement,
                                              runtime::StopToken stop);
  static runtime::Task<base::Result<bool>> columns_differ_on_core(
      PreparedStatements& there, const PreparedStatement& statement);
  // Nothing if it is not here, or is no longer as clients were told.
  std::optional<PreparedStatement> lend(base::ByteView id);
  static runtime::Task<base::Result<std::optional<PreparedStatement>>> lend_on_core(
      PreparedStatements& there, base::ByteView id);

  runtime::Runtime& runtime_;
  const CatalogView& catalog_;
  const runtime::Duration peer_timeout_;
  PreparedStatementCache cache_;
  std::vector<Peer> peers_;
};

}  // namespace helenus::cql
