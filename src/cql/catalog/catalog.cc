#include "cql/catalog/catalog.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <iterator>
#include <map>
#include <utility>
#include <variant>

#include "base/assert.h"
#include "cql/catalog/catalog_document.h"
#include "cql/catalog/catalog_view.h"
#include "cql/schema/filter_properties.h"
#include "cql/schema/schema_difference.h"
#include "runtime/clock.h"
#include "runtime/random.h"
#include "runtime/run_on.h"
#include "runtime/sleep.h"

namespace helenus::cql {

using base::Errc;
using base::Error;
using base::kv;
using base::Result;
using model::Schema;
using runtime::Task;
using runtime::Until;
using storage::TableId;

namespace {

constexpr runtime::Duration kTellAgainAfter = std::chrono::milliseconds(1);

std::int64_t microseconds(runtime::WallTime time) {
  return std::chrono::duration_cast<std::chrono::microseconds>(time.since_origin()).count();
}

storage::TableOptions storage_options(const model::Table& table) {
  storage::TableOptions options;
  if (table.is_counter()) {
    options.policy = causality::Policy::counter;
  } else if (table.options.conflicts == model::Conflicts::siblings) {
    options.policy = causality::Policy::siblings;
  }
  const auto compressor = table.options.compression.find("class");
  if (compressor == table.options.compression.end() ||
      compressor->second.ends_with("NoopCompressor")) {
    options.compression = storage::Compression::none;
  } else if (compressor->second.ends_with("ZstdCompressor")) {
    options.compression = storage::Compression::zstd;
  }
  options.filter = filter_of(table.options.filter);
  return options;
}

template <class Visitor>
void each_table(const Schema& schema, Visitor visit) {
  for (const auto& [name, keyspace] : schema.keyspaces()) {
    for (const auto& [table_name, table] : keyspace->tables) visit(*table);
  }
}

}  // namespace

Catalog::Catalog(Private, runtime::Runtime& runtime, replication::TabletDirectory& tablets,
                 storage::LocalStore& local, CatalogOptions options)
    : runtime_(runtime),
      tablets_(tablets),
      local_(local),
      options_(std::move(options)),
      log_(runtime.logger("catalog")),
      turn_(runtime, 1, options_.changes_waiting_max),
      drops_(runtime) {}

Task<Result<std::unique_ptr<Catalog>>> Catalog::open(runtime::Runtime& runtime,
                                                     replication::TabletDirectory& tablets,
                                                     storage::LocalStore& local,
                                                     CatalogOptions options) {
  auto catalog = std::make_unique<Catalog>(Private{}, runtime, tablets, local, std::move(options));
  const Result<void> loaded = co_await catalog->load();
  if (!loaded) co_return Error(loaded.error()).within("reading the catalog");
  co_return catalog;
}

Task<Result<void>> Catalog::load() {
  CO_TRY_VOID(co_await load_context_secret());
  CO_TRY(const auto bytes, co_await local_.read(std::string(kDocumentName)));
  if (!bytes) {
    // The document is there before the first table is.
    CO_TRY(const std::vector<TableId> tables, co_await tablets_.tables());
    if (!tables.empty()) {
      co_return Error(Errc::corrupt, "{} tables of the engine, and no document that names them",
                      tables.size());
    }
  } else {
    CO_TRY(CatalogDocument document, decode_catalog_document(*bytes));
    next_storage_id_ = document.next_storage_id;
    storage_ = std::move(document.storage);
    doomed_ = std::move(document.doomed);
    stored_version_ = document.decided_version;
  }
  publish(Schema(), false);
  co_await drop_doomed();
  co_return {};
}

// One that was lost is made anew: contexts that were given out under it are refused then, and their
// clients read again.
Task<Result<void>> Catalog::load_context_secret() {
  CO_TRY(const auto kept, co_await local_.read(std::string(kContextSecretName)));
  std::array<std::byte, 32> secret{};
  if (!kept) {
    runtime_.random.fill_secret(secret);
    CO_TRY_VOID(co_await local_.write(std::string(kContextSecretName),
                                      base::Bytes::copy_of(base::ByteView(secret))));
  } else {
    if (kept->size() != secret.size()) {
      co_return Error(Errc::corrupt, "a secret for contexts of {} bytes", kept->size());
    }
    std::ranges::copy(kept->view(), secret.begin());
  }
  context_secret_ = ContextSecret(secret);
  co_return {};
}

Task<Result<void>> Catalog::store(std::uint64_t decided_version) {
  CatalogDocument document;
  document.storage = storage_;
  document.doomed = doomed_;
  document.next_storage_id = next_storage_id_;
  document.decided_version = std::max(stored_version_, decided_version);
  const auto written = co_await local_.write(std::string(kDocumentName), encode(document));
  document_is_in_doubt_ = !written;
  if (written) stored_version_ = document.decided_version;
  co_return written;
}

Task<Result<TableId>> Catalog::make_storage(storage::TableOptions options, Until until) {
  for (;;) {
    if (runtime_.clock.now() >= until.deadline) co_return Error(Errc::timeout);
    if (until.stop.stop_requested()) co_return Error(Errc::cancelled);
    const TableId id{next_storage_id_++};
    doomed_.insert(id);
    CO_TRY_VOID(co_await store(stored_version_));
    const auto made = co_await tablets_.create_table(id, options);
    if (made) {
      told_[id] = options;
      co_return id;
    }
    // Whatever it holds, it is not for this table.
    if (!made.failed_with(Errc::already_exists)) co_return made.error();
    log_.warn("the engine has a table that the catalog never gave", kv("table", id));
  }
}

Task<Result<void>> Catalog::make_storage_for(const Schema& next, std::uint64_t version,
                                             Until until) {
  std::vector<const model::Table*> created;
  each_table(next, [&](const model::Table& table) {
    if (!storage_.contains(table.id)) created.push_back(&table);
  });
  if (created.empty()) co_return {};
  CatalogSnapshot::StorageIds made;
  for (const model::Table* table : created) {
    const auto id = co_await make_storage(storage_options(*table), until);
    if (!id) {
      // Whoever tries again makes others.
      co_await drop_doomed();
      co_return id.error();
    }
    made.emplace(table->id, *id);
  }
  for (const auto& [table, id] : made) {
    storage_.emplace(table, id);
    doomed_.erase(id);
  }
  const auto stored = co_await store(version);
  if (stored) co_return {};
  for (const auto& [table, id] : made) {
    storage_.erase(table);
    doomed_.insert(id);
  }
  co_return stored.error();
}

Task<void> Catalog::let_go_of_unused() {
  CatalogSnapshot::StorageIds unused;
  for (const auto& [table, id] : storage_) {
    if (!snapshot_->storage_of(table)) unused.emplace(table, id);
  }
  for (const auto& [table, id] : unused) {
    storage_.erase(table);
    doomed_.insert(id);
  }
  if (!unused.empty() || document_is_in_doubt_) {
    const auto stored = co_await store(decided_version_);
    if (!stored) {
      log_.warn("tables that are no longer in use stay for now", kv("error", stored.error()));
      co_return;
    }
  }
  co_await drop_doomed();
}

// A core or a disk that does not answer holds up no change of the schema. While storage is being
// dropped, what is doomed meanwhile waits for the next change; and so does what cannot be dropped,
// or for the next start.
Task<void> Catalog::drop_doomed() {
  if (document_is_in_doubt_) co_return;
  if (drops_.empty() && !doomed_.empty()) drops_.spawn(drop(doomed_));
  const auto dropped = co_await drops_.join(Until::after(runtime_, options_.drop_wait));
  if (!dropped) log_.warn("tables are still being dropped", kv("tables", doomed_.size()));
}

Task<void> Catalog::drop(std::set<TableId> doomed) {
  for (const TableId id : doomed) {
    const auto dropped = co_await tablets_.drop_table(id);
    if (dropped || dropped.failed_with(Errc::not_found)) {
      doomed_.erase(id);
    } else {
      log_.warn("a table could not be dropped", kv("table", id), kv("error", dropped.error()));
    }
  }
}

// What the engine knows may be behind the document or ahead of one that was lost; a start sets it
// right, and until then files are as readable as ever.
Task<void> Catalog::alter_storage() {
  std::map<TableId, storage::TableOptions> wanted;
  each_table(snapshot_->users(), [&](const model::Table& table) {
    const std::optional<TableId> id = snapshot_->storage_of(table.id);
    if (id) wanted.emplace(*id, storage_options(table));
  });
  for (auto each = wanted.begin(); each != wanted.end();) {
    const auto told = told_.find(each->first);
    if (told != told_.end() && told->second == each->second) {
      ++each;
      continue;
    }
    const auto altered = co_await tablets_.alter_table(each->first, each->second);
    if (!altered) {
      log_.warn("files of a table have the options of before", kv("table", each->first),
                kv("error", altered.error()));
    }
    each = altered ? std::next(each) : wanted.erase(each);
  }
  told_ = std::move(wanted);
}

void Catalog::publish(const Schema& users, bool has_all_rows) {
  const std::uint64_t number = snapshot_ == nullptr ? 1 : snapshot_->number() + 1;
  CatalogSnapshot::StorageIds storage;
  each_table(users, [&](const model::Table& table) {
    const auto found = storage_.find(table.id);
    if (found != storage_.end()) storage.insert(*found);
  });
  snapshot_ = std::make_shared<const CatalogSnapshot>(users, options_.system, std::move(storage),
                                                      CatalogSnapshot::KeyspaceNumbers(), number,
                                                      options_.data_center, has_all_rows);
}

// ---- Views ----

void Catalog::attach(CatalogView& view) {
  ASSERT(view.snapshot() == snapshot_);
  views_.push_back(&view);
}

namespace {

Task<Result<void>> do_on_core(const std::function<void()>& what) {
  what();
  co_return {};
}

}  // namespace

// A change that is in force must be told: a core that has too much to do is told later.
Task<void> Catalog::tell(CatalogView& view, std::function<void()> what) {
  if (view.core() == home()) {
    what();
    co_return;
  }
  const auto there = [&what](runtime::Runtime&, const Until&) { return do_on_core(what); };
  for (;;) {
    const auto told =
        co_await runtime::run_on<void>(runtime_, view.core(), there, Until::forever());
    if (!told.failed_with(Errc::overloaded)) co_return;
    std::ignore = co_await runtime::sleep_for(runtime_, kTellAgainAfter, {});
  }
}

Task<void> Catalog::spread_snapshot() {
  for (CatalogView* view : views_) {
    co_await tell(*view, [view, snapshot = snapshot_] { view->take(snapshot); });
  }
}

Task<void> Catalog::spread(const Change& change) {
  for (CatalogView* view : views_) {
    co_await tell(*view, [view, &change] { view->announce(change); });
  }
}

// ---- Changes ----

namespace {

bool chooses_id(const parser::Statement& statement) {
  const auto* create = std::get_if<parser::CreateTable>(&statement.node);
  return create != nullptr && std::ranges::any_of(create->properties, [](const auto& property) {
           return property.name.text == "id";
         });
}

}  // namespace

Task<QueryResult<std::optional<Catalog::Change>>> Catalog::change(parser::Statement statement,
                                                                  std::string session_keyspace,
                                                                  Until until) {
  const std::uint64_t random = runtime_.random.next();
  const base::Uuid table_id = base::Uuid::from_random(random, runtime_.random.next());
  const std::int64_t now_us = microseconds(runtime_.clock.wall_now());
  const SchemaFunction function = [&](const Schema& users,
                                      std::span<const std::string> data_centers) {
    return apply_schema_change(users, statement,
                               {.system = options_.system,
                                .session_keyspace = session_keyspace,
                                .data_centers = data_centers,
                                .new_table_id = table_id,
                                .now_us = now_us});
  };
  // A node that was away takes a table that was made again under the same id for the same one.
  if (!snapshot_->has_all_rows() && chooses_id(statement)) {
    co_return invalid("The id of a table cannot be chosen in a cluster of more than one node");
  }
  ASSERT(authority_ != nullptr);
  co_return co_await authority_->change(function, std::move(until));
}

Task<Result<void>> Catalog::adopt(DecidedSchema decided, Until until) {
  CO_TRY(const auto permit, co_await turn_.acquire(1, until));
  ASSERT(decided.version > 0);
  if (decided.version < decided_version_) co_return {};
  const Schema before = snapshot_->users();
  const bool is_first = decided_version_ == 0;
  const bool is_same =
      !is_first && (decided.version == decided_version_ || decided.users == before);
  if (is_same) {
    decided_version_ = decided.version;
    if (decided.has_all_rows == snapshot_->has_all_rows()) co_return {};
    publish(before, decided.has_all_rows);
    co_await spread_snapshot();
    co_return {};
  }
  CO_TRY_VOID(co_await make_storage_for(decided.users, decided.version, std::move(until)));
  const std::vector<Change> changes = changes_between(before, decided.users);
  decided_version_ = decided.version;
  publish(decided.users, decided.has_all_rows);
  co_await spread_snapshot();
  co_await alter_storage();
  if (decided_version_ >= stored_version_) co_await let_go_of_unused();
  for (const Change& change : changes) co_await tell_all(change);
  co_return {};
}

Task<void> Catalog::tell_all(Change change) {
  for (const Listener& listener : listeners_) listener(change);
  co_await spread(change);
}

Task<QueryResult<void>> Catalog::truncate(base::Uuid table, Until until) {
  const auto permit = co_await turn_.acquire(1, until);
  if (!permit) co_return permit.error();
  const model::TablePtr definition = snapshot_->users().find_table(table);
  if (definition == nullptr) co_return invalid("The table was dropped meanwhile");
  CO_TRY_VOID(check_rows(*snapshot_));
  const auto id = co_await make_storage(storage_options(*definition), until);
  if (!id) co_return id.error();
  const TableId emptied = std::exchange(storage_.at(table), *id);
  doomed_.erase(*id);
  doomed_.insert(emptied);
  const auto stored = co_await store(decided_version_);
  if (!stored) {
    storage_.at(table) = emptied;
    doomed_.erase(emptied);
    doomed_.insert(*id);
    co_return stored.error();
  }
  publish(snapshot_->users(), snapshot_->has_all_rows());
  co_await spread_snapshot();
  co_await alter_storage();
  co_await drop_doomed();
  co_return {};
}

}  // namespace helenus::cql
