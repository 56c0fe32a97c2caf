// Catalog: which keyspaces, tables and types there are, and where the rows of each table are kept.
//
//   auto catalog = co_await Catalog::open(runtime, tablets, coordinator, options);
//   CatalogPtr now = catalog->snapshot();                      for one request, or for one plan
//   co_await catalog->change(statement, session_keyspace, until);
//
// What it keeps is one document (catalog_document.h) in a table of its own of the storage engine.
// Readers hold immutable snapshots. Changes go one after the other; a change is in the snapshot,
// and told to listeners, when it is durable and before change() returns.
//
// Who decides. Alone, the catalog does. In a cluster the schema is part of what the nodes agree on:
// then change() asks the authority, and what was decided, here or elsewhere, comes by adopt(), in
// the order of its versions. The version that the document was made from is in the document, so
// that after a crash nothing older is taken for news.
//
// Storage ids. Every table has a storage::TableId that is given once: a new one at CREATE and at
// TRUNCATE, so that neither what a log still holds of the old rows nor a request that began before
// can put anything into the new ones. The document names the ids in use and those that are doomed:
// about to be created, or to be dropped. Whatever a crash leaves between the document and the
// engine is a doomed table, and start drops it.
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
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/log.h"
#include "base/result.h"
#include "base/uuid.h"
#include "cql/catalog/catalog_document.h"
#include "cql/catalog/catalog_snapshot.h"
#include "cql/catalog/context_token.h"
#include "cql/errors/query_error.h"
#include "cql/parser/ast.h"
#include "cql/protocol/response.h"
#include "cql/schema/schema_change.h"
#include "model/schema.h"
#include "replication/tablets/tablet_directory.h"
#include "runtime/cores.h"
#include "runtime/runtime.h"
#include "runtime/semaphore.h"
#include "runtime/task.h"
#include "runtime/task_group.h"

namespace helenus::replication {
class Coordinator;
}

namespace helenus::cql {

class CatalogView;

// A statement that changes the schema, as a function of the schema that it meets and of the data
// centres there are. Pure: it may be asked several times, and the last answer counts.
using SchemaFunction = std::function<QueryResult<SchemaTransition>(
    const model::Schema& users, std::span<const std::string> data_centers)>;

// Decides on changes in the catalog's stead. Returns the change, or none if there was nothing to
// do, when what was decided is in this catalog (Catalog::adopt) and wherever else it must be.
// Called on the catalog's core. What the function refers to lives as long as the task.
using SchemaAuthority =
    std::function<runtime::Task<QueryResult<std::optional<protocol::SchemaChange>>>(
        SchemaFunction function, runtime::Until until)>;

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
  // None: the catalog decides.
  SchemaAuthority authority = {};
  // How many changes may wait for their turn.
  std::size_t changes_waiting_max = 128;
  // How long a change waits for its document to be in a file; see Catalog::move_to_file().
  runtime::Duration file_wait = std::chrono::seconds(10);
  // How long a change waits for the storage that nobody needs any more to be dropped; what is left
  // then is dropped behind its back.
  runtime::Duration drop_wait = std::chrono::seconds(10);
};

class Catalog final : public CatalogReader {
  struct Private {
    explicit Private() = default;
  };

 public:
  // The engine's table in which the document lies. No other table has this id.
  static constexpr storage::TableId kStorageTable{1};

  using Change = protocol::SchemaChange;
  // Called on the catalog's core when a change is in the snapshot; quick, and starts no change.
  using Listener = std::function<void(const Change&)>;

  // Reads what is there and finishes what a crash left half done. Errors: corrupt, unsupported; of
  // the engine. Requires: both outlive the catalog.
  static runtime::Task<base::Result<std::unique_ptr<Catalog>>> open(
      runtime::Runtime& runtime, replication::TabletDirectory& tablets,
      replication::Coordinator& coordinator, CatalogOptions options);
  // For open().
  Catalog(Private, runtime::Runtime& runtime, replication::TabletDirectory& tablets,
          replication::Coordinator& coordinator, CatalogOptions options);
  Catalog(const Catalog&) = delete;
  Catalog& operator=(const Catalog&) = delete;

  // Executes a statement that changes the schema; see schema_change.h for which ones there are and
  // for their errors. None: there was nothing to do (IF EXISTS, IF NOT EXISTS), which is answered
  // with a Void. `session_keyspace` is empty before a USE. Errors besides: overloaded, timeouts and
  // failures of the engine as server errors; the outcome is then unknown to the client.
  // Requires: is_schema_change(statement).
  runtime::Task<QueryResult<std::optional<Change>>> change(parser::Statement statement,
                                                           std::string session_keyspace,
                                                           runtime::Until until);
  // Makes the schema and the tables those that were decided, and tells listeners what is new. What
  // is older than what is here changes nothing: only a crash makes that happen, and the decision of
  // which the document remained will come again. Errors: as those of change(), after which it may
  // be asked again: either nothing has happened, or all of it.
  runtime::Task<base::Result<void>> adopt(DecidedSchema decided, runtime::Until until);
  // What was adopted last; zero if nothing ever was.
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
  // What a cell of the catalog's own table holds; none if nothing was written.
  runtime::Task<base::Result<std::optional<base::Bytes>>> read_cell(base::Bytes partition);
  runtime::Task<base::Result<void>> write_cell(base::Bytes partition, base::Bytes value,
                                               runtime::Until admitted);
  // Makes the document durable in the log. When it fails, either nothing was written or writing has
  // ended for good; patience that ends once the document has its place in the log ends nothing.
  runtime::Task<base::Result<void>> store(CatalogDocument document, runtime::Until admitted);
  // Tables of the engine are made and dropped only once the document is in a file.
  runtime::Task<base::Result<void>> move_to_file();
  // A new table of the engine, doomed until the document names it.
  runtime::Task<base::Result<storage::TableId>> make_storage(storage::TableOptions options,
                                                             runtime::Until until);
  // Where the tables of the next schema lie: where they did, or in new ones of the engine.
  runtime::Task<base::Result<CatalogSnapshot::StorageIds>> storage_for(const model::Schema& next,
                                                                       runtime::Until until);
  // Makes the document and the snapshot those; what is no longer in use is dropped.
  runtime::Task<base::Result<void>> replace(DecidedSchema next, CatalogSnapshot::StorageIds storage,
                                            runtime::Until until);
  // The present one with other tables of the engine, or other keyspaces.
  DecidedSchema present_with(model::Schema users) const;
  runtime::Task<void> drop_doomed();
  // Requires: none of them will ever be used again.
  runtime::Task<void> drop(std::set<storage::TableId> doomed);
  // Tells the engine what the snapshot says about files, where it was told something else.
  runtime::Task<void> alter_storage();
  void publish(const model::Schema& users, CatalogSnapshot::StorageIds storage, bool has_all_rows);
  runtime::Task<QueryResult<std::optional<Change>>> change_alone(const SchemaFunction& function,
                                                                 runtime::Until until);
  runtime::Task<void> tell_all(Change change);
  // To all views.
  runtime::Task<void> spread_snapshot();
  runtime::Task<void> spread(const Change& change);
  runtime::Task<void> tell(CatalogView& view, std::function<void()> what);

  runtime::Runtime& runtime_;
  replication::TabletDirectory& tablets_;
  replication::Coordinator& coordinator_;
  const CatalogOptions options_;
  base::Logger log_;
  ContextSecret context_secret_;
  runtime::Semaphore turn_;  // of whoever changes
  std::uint64_t next_storage_id_ = kStorageTable.value() + 1;
  std::set<storage::TableId> doomed_;  // see CatalogDocument
  std::uint64_t decided_version_ = 0;
  // What the engine is known to have been told of tables.
  std::map<storage::TableId, storage::TableOptions> told_;
  std::vector<Listener> listeners_;
  std::vector<CatalogView*> views_;
  runtime::TaskGroup drops_;
};

}  // namespace helenus::cql
