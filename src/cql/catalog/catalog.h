// Catalog: which keyspaces, tables and types there are, and where the rows of each table are kept.
//
//   auto catalog = co_await Catalog::open(runtime, tablets, local_store, options);
//   co_await catalog->adopt(decided, until);                   what is known of the schema
//   CatalogPtr now = catalog->snapshot();                      for one request, or for one plan
//   co_await catalog->change(statement, session_keyspace, until);
//
// Who decides. The schema is part of what the nodes of a cluster agree on, and is kept with it: a
// start makes the catalog of it anew. A statement is a question to the authority, and what was
// decided, here or elsewhere, comes by adopt(), in the order of its versions. Readers hold
// immutable snapshots. Changes go one after the other; a change is in the snapshot, and told to
// listeners, before change() returns.
//
// What it keeps. Every table has a storage::TableId that is given once: a new one at CREATE and at
// TRUNCATE, so that neither what a log still holds of the old rows nor a request that began before
// can put anything into the new ones. Which ids these are is true of this node alone, and in one
// document (catalog_document.h) of the local store. It names the ids in use and those that are
// doomed: about to be created, or to be dropped. An id is in it before the engine has the table,
// and names its table before that is in a snapshot. So whatever a crash leaves between the document
// and the engine is a doomed table, which start drops; and a table that is in the document and not
// in the schema was dropped while this node was down, unless the document is of a newer version:
// then its schema will come again, and nothing is dropped until it does.
//
// Cores. Every core that plans statements has a view (catalog_view.h). A change is in all views
// before change() returns, and before the storage it no longer needs is dropped.
//
// Core affinity: the core whose Runtime opened it; snapshots go anywhere.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
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
#include "storage/local/local_store.h"

namespace helenus::cql {

class CatalogView;

// What an authority decided.
struct DecidedSchema {
  model::Schema users;
  std::uint64_t version = 0;  // above zero; grows with every decision
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
  struct Private {
    explicit Private() = default;
  };

 public:
  // In the local store.
  static constexpr std::string_view kDocumentName = "tables";
  static constexpr std::string_view kContextSecretName = "context-secret";

  using Change = protocol::SchemaChange;
  // Called on the catalog's core when a change is in the snapshot; quick, and starts no change.
  using Listener = std::function<void(const Change&)>;

  // Reads what is there and finishes what a crash left half done. Errors: corrupt, also if there
  // are tables and no document; unsupported; of the engine, of the file system. Requires: both
  // outlive the catalog.
  static runtime::Task<base::Result<std::unique_ptr<Catalog>>> open(
      runtime::Runtime& runtime, replication::TabletDirectory& tablets, storage::LocalStore& local,
      CatalogOptions options);
  // For open().
  Catalog(Private, runtime::Runtime& runtime, replication::TabletDirectory& tablets,
          storage::LocalStore& local, CatalogOptions options);
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
  // is older than what was adopted in this life changes nothing. Errors: overloaded, timeouts,
  // failures of the engine and of the local store, after which it may be asked again: either
  // nothing has happened, or all of it.
  runtime::Task<base::Result<void>> adopt(DecidedSchema decided, runtime::Until until);
  // What was adopted last; zero if nothing was in this life.
  std::uint64_t decided_version() const { return decided_version_; }
  // While it is held nothing changes. Errors: overloaded, and those of the wait.
  runtime::Task<base::Result<runtime::Permit>> hold_still(runtime::Until until) {
    return turn_.acquire(1, std::move(until));
  }

  // Empties a table, on this node. Requires: `table` is of a table's definition that is not
  // virtual; one that was dropped meanwhile is an error (invalid), and so is a node that has not
  // all rows.
  runtime::Task<QueryResult<void>> truncate(base::Uuid table, runtime::Until until);

  // Of this folder, made with it: what clients' contexts are authenticated with. Never changes; may
  // be asked on any core.
  const ContextSecret& context_secret() const { return context_secret_; }

  // Waits for what is being dropped. Called once, when no change is under way and none will come.
  runtime::Task<void> stop() { return drops_.join(); }

  // For ever: what a listener refers to outlives the catalog.
  void add_listener(Listener listener) { listeners_.push_back(std::move(listener)); }

  // Keeps the view up to date, and tells its listeners of changes. Requires: it has the snapshot of
  // this moment; it outlives the last change.
  void attach(CatalogView& view);
  runtime::CoreId home() const { return runtime_.cores.here(); }

 private:
  runtime::Task<base::Result<void>> load();
  runtime::Task<base::Result<void>> load_context_secret();
  // Makes the document durable, as the members below say. After an error it is as they say, or as
  // it was before.
  runtime::Task<base::Result<void>> store(std::uint64_t decided_version);
  // A new table of the engine, doomed until the document names it.
  runtime::Task<base::Result<storage::TableId>> make_storage(storage::TableOptions options,
                                                             runtime::Until until);
  // Makes tables of the engine for those of the schema that have none, and notes them in the
  // document.
  runtime::Task<base::Result<void>> make_storage_for(const model::Schema& next,
                                                     std::uint64_t version, runtime::Until until);
  // Dooms what lies in no table of the snapshot, and drops what is doomed.
  runtime::Task<void> let_go_of_unused();
  runtime::Task<void> drop_doomed();
  // Requires: none of them will ever be used again.
  runtime::Task<void> drop(std::set<storage::TableId> doomed);
  // Tells the engine what the snapshot says about files, where it was told something else.
  runtime::Task<void> alter_storage();
  void publish(const model::Schema& users, bool has_all_rows);
  runtime::Task<void> tell_all(Change change);
  // To all views.
  runtime::Task<void> spread_snapshot();
  runtime::Task<void> spread(const Change& change);
  runtime::Task<void> tell(CatalogView& view, std::function<void()> what);

  runtime::Runtime& runtime_;
  replication::TabletDirectory& tablets_;
  storage::LocalStore& local_;
  const CatalogOptions options_;
  base::Logger log_;
  ContextSecret context_secret_;
  runtime::Semaphore turn_;  // of whoever changes
  SchemaAuthority* authority_ = nullptr;
  std::uint64_t decided_version_ = 0;
  // See CatalogDocument.
  CatalogSnapshot::StorageIds storage_;
  std::set<storage::TableId> doomed_;
  std::uint64_t next_storage_id_ = 1;
  std::uint64_t stored_version_ = 0;
  // The last write of the document failed: it may name what is doomed here as in use.
  bool document_is_in_doubt_ = false;
  // What the engine is known to have been told of tables.
  std::map<storage::TableId, storage::TableOptions> told_;
  std::vector<Listener> listeners_;
  std::vector<CatalogView*> views_;
  runtime::TaskGroup drops_;
};

}  // namespace helenus::cql
