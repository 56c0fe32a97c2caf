// Catalog: which keyspaces, tables and types there are, and where the rows of each table are kept.
//
//   Catalog catalog(runtime, tablets, options);
//   co_await catalog.adopt(decided, until);                   what is known of the schema
//   CatalogPtr now = catalog.snapshot();                      for one request, or for one plan
//   co_await catalog.change(statement, session_keyspace, until);
//
// Who decides. The schema is part of what the nodes of a cluster agree on, and is kept with it: a
// start makes the catalog of it anew. A statement is a question to the authority, and what was
// decided, here or elsewhere, comes by adopt(), in the order of its versions. Readers hold
// immutable snapshots. Changes go one after the other; a change is in the snapshot, and told to
// listeners, before change() returns.
//
// Where rows lie. The rows of a table lie in the engine under a storage id, which was decided as
// well: a new one at CREATE and at TRUNCATE, and none is ever given again. So neither what a log
// still holds of rows that are gone nor a request that began before can put anything into the new
// ones: it names the id that it knows.
//
// Crashes. There is nothing to remember between the schema and the engine, as adopt() makes the
// engine's tables equal to what was decided, from whatever it finds there:
//   1. ids that the schema names and the engine has not are made, empty;
//   2. the snapshot names them, on all cores;
//   3. ids below the first that was not given yet, which the schema does not name, are dropped.
// A crash in 1 or before 2 leaves tables that nothing was written to: the next adopt() makes what
// is missing, or drops what a newer schema does not name. A crash before or in 3 leaves tables that
// no snapshot names any more: the next adopt() finds them in the engine and drops them. It does so
// by any document, older or newer: an id that was given and is not named will not be named again.
// An id that was not given yet is of a newer document than this one, and is left alone.
//
// Cores. Every core that plans statements has a view (catalog_view.h). A change is in all views
// before change() returns, and before the storage it no longer needs is dropped.
//
// Core affinity: the core of its Runtime; snapshots go anywhere.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/log.h"
#include "base/result.h"
#include "base/uuid.h"
#include "cql/catalog/catalog_snapshot.h"
#include "cql/catalog/context_token.h"
#include "cql/catalog/schema_authority.h"
#include "cql/errors/query_error.h"
#include "cql/parser/ast.h"
#include "cql/protocol/response.h"
#include "model/schema.h"
#include "replication/tablets/tablet_directory.h"
#include "runtime/cores.h"
#include "runtime/runtime.h"
#include "runtime/semaphore.h"
#include "runtime/task.h"
#include "runtime/task_group.h"
#include "storage/ids/table_id.h"

namespace helenus::cql {

class CatalogView;

// What an authority decided.
struct DecidedSchema {
  model::Schema users;
  CatalogSnapshot::StorageIds storage;  // of every table and index of `users`, and of no other
  CatalogSnapshot::KeyspaceNumbers keyspaces;
  storage::TableId next_storage;  // the first that was not given yet
  ContextSecret context_secret;   // the same in every decision
  std::uint64_t version = 0;      // above zero; grows with every decision
  bool has_all_rows = true;
};

struct CatalogOptions {
  // Keyspaces that are always there and that no statement changes; not persisted.
  model::Schema system;
  // The data centre of this node: what NetworkTopologyStrategy may name if it is alone.
  std::string data_center = "datacenter1";
  // How many changes may wait for their turn.
  std::size_t changes_waiting_max = 128;
  // How long a change waits for the storage that nobody needs any more to be dropped; what is left
  // then is dropped behind its back.
  runtime::Duration drop_wait = std::chrono::seconds(10);
};

class Catalog final : public CatalogReader {
 public:
  using Change = protocol::SchemaChange;
  // Called on the catalog's core when a change is in the snapshot; quick, and starts no change.
  using Listener = std::function<void(const Change&)>;

  // Without keyspaces but the system's, until something is adopted. The tablets outlive it.
  Catalog(runtime::Runtime& runtime, replication::TabletDirectory& tablets, CatalogOptions options);
  Catalog(const Catalog&) = delete;
  Catalog& operator=(const Catalog&) = delete;

  // Who decides from now on. Requires: it outlives the last change.
  void decide_by(SchemaAuthority& authority) { authority_ = &authority; }
  // Executes a statement that changes the schema; see schema_change.h for which ones there are and
  // for their errors. None: there was nothing to do (IF EXISTS, IF NOT EXISTS), which is answered
  // with a Void. `session_keyspace` is empty before a USE. Errors besides: overloaded, timeouts and
  // failures of the engine as server errors; the outcome is then unknown to the client.
  // Requires: is_schema_change(statement); there is an authority.
  runtime::Task<QueryResult<std::optional<Change>>> change(parser::Statement statement,
                                                           std::string session_keyspace,
                                                           runtime::Until until);
  // Makes the schema and the tables those that were decided, and tells listeners what is new. What
  // is not newer than what was adopted in this life changes nothing. Errors: overloaded, timeouts,
  // failures of the engine, after which it may be asked again: the snapshot is as it was, and
  // tables that were made for it are used, or dropped, by what is adopted next.
  runtime::Task<base::Result<void>> adopt(DecidedSchema decided, runtime::Until until);
  // What was adopted last; zero if nothing was in this life.
  std::uint64_t decided_version() const { return decided_version_; }
  // While it is held nothing changes. Errors: overloaded, and those of the wait.
  runtime::Task<base::Result<runtime::Permit>> hold_still(runtime::Until until) {
    return turn_.acquire(1, std::move(until));
  }

  // Empties a table, on all nodes. Requires: `table` is of a table's definition that is not
  // virtual; one that was dropped meanwhile is an error (invalid), and so is a node that has not
  // all rows. Errors besides: as of change(). Requires: there is an authority.
  runtime::Task<QueryResult<void>> truncate(base::Uuid table, runtime::Until until);

  // What clients' contexts are authenticated with, on every node of the cluster. May be asked on
  // any core, and looked at there as soon as something was adopted; never changes after that.
  const ContextSecret& context_secret() const { return context_secret_; }

  // Waits for what is being made or dropped. Called once, when no change is under way and none will
  // come.
  runtime::Task<void> stop();

  // For ever: what a listener refers to outlives the catalog.
  void add_listener(Listener listener) { listeners_.push_back(std::move(listener)); }

  // Keeps the view up to date, and tells its listeners of changes. Requires: it has the snapshot of
  // this moment; it outlives the last change.
  void attach(CatalogView& view);
  runtime::CoreId home() const { return runtime_.cores.here(); }

 private:
  using Storage = std::map<storage::TableId, storage::TableOptions>;

  // Makes what the engine lacks of it.
  runtime::Task<base::Result<void>> make_storage(Storage wanted, runtime::Until until);
  runtime::Task<void> make(Storage missing, std::shared_ptr<base::Result<void>> outcome);
  // Drops what was given once and is in no table of the snapshot.
  runtime::Task<void> drop_unused(storage::TableId next);
  // Requires: none of them will ever be used again.
  runtime::Task<void> drop(std::set<storage::TableId> unused);
  // Tells the engine what the schema says about files, where it was told something else.
  runtime::Task<void> alter_storage(Storage wanted);
  // Whether the snapshot says something else.
  bool is_news(const DecidedSchema& decided) const;
  void publish(DecidedSchema decided);
  runtime::Task<void> tell_all(Change change);
  // To all views.
  runtime::Task<void> spread_snapshot();
  runtime::Task<void> spread(const Change& change);
  runtime::Task<void> tell(CatalogView& view, std::function<void()> what);

  runtime::Runtime& runtime_;
  replication::TabletDirectory& tablets_;
  const CatalogOptions options_;
  base::Logger log_;
  ContextSecret context_secret_;
  runtime::Semaphore turn_;  // of whoever changes
  SchemaAuthority* authority_ = nullptr;
  std::uint64_t decided_version_ = 0;
  // What the engine is known to have been told of tables.
  Storage told_;
  // In the engine, and of no table.
  std::set<storage::TableId> unused_;
  std::vector<Listener> listeners_;
  std::vector<CatalogView*> views_;
  runtime::TaskGroup makes_;
  runtime::TaskGroup drops_;
};

}  // namespace helenus::cql
