#include "cql/catalog/catalog.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <iterator>
#include <map>
#include <utility>
#include <variant>

#include "base/assert.h"
#include "causality/resolve.h"
#include "cql/catalog/catalog_document.h"
#include "cql/catalog/catalog_view.h"
#include "cql/schema/filter_properties.h"
#include "cql/schema/schema_difference.h"
#include "model/partition_key.h"
#include "replication/coordinator/coordinator.h"
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

constexpr causality::ColumnId kColumn{1};
constexpr runtime::Duration kTellAgainAfter = std::chrono::milliseconds(1);

base::Bytes document_partition() {
  return model::make_partition(model::Token{0}, base::as_bytes("catalog"));
}

base::Bytes secret_partition() {
  return model::make_partition(model::Token{0}, base::as_bytes("context secret"));
}

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
                 replication::Coordinator& coordinator, CatalogOptions options)
    : runtime_(runtime),
      tablets_(tablets),
      coordinator_(coordinator),
      options_(std::move(options)),
      log_(runtime.logger("catalog")),
      turn_(runtime, 1, options_.changes_waiting_max),
      drops_(runtime) {}

Task<Result<std::unique_ptr<Catalog>>> Catalog::open(runtime::Runtime& runtime,
                                                     replication::TabletDirectory& tablets,
                                                     replication::Coordinator& coordinator,
                                                     CatalogOptions options) {
  auto catalog =
      std::make_unique<Catalog>(Private{}, runtime, tablets, coordinator, std::move(options));
  const Result<void> loaded = co_await catalog->load();
  if (!loaded) co_return Error(loaded.error()).within("reading the catalog");
  co_return catalog;
}

Task<Result<void>> Catalog::load() {
  const auto made = co_await tablets_.create_table(kStorageTable, {});
  if (!made && !made.failed_with(Errc::already_exists)) co_return made.error();
  CO_TRY_VOID(co_await load_context_secret());
  CO_TRY(const auto bytes, co_await read_cell(document_partition()));
  if (!bytes) {
    publish(Schema(), {}, !options_.authority);
    co_return {};
  }
  CO_TRY(CatalogDocument document, decode_catalog_document(*bytes));
  next_storage_id_ = document.next_storage_id;
  doomed_ = std::move(document.doomed);
  decided_version_ = document.decided_version;
  publish(document.users, std::move(document.storage), !options_.authority);
  co_await drop_doomed();
  co_await alter_storage();
  co_return {};
}

// One that is lost with the tail of a log is made anew: contexts that were given out under it are
// refused then, and their clients read again.
Task<Result<void>> Catalog::load_context_secret() {
  CO_TRY(const auto kept, co_await read_cell(secret_partition()));
  std::array<std::byte, 32> secret{};
  if (!kept) {
    runtime_.random.fill_secret(secret);
    CO_TRY_VOID(co_await write_cell(
        secret_partition(), base::Bytes::copy_of(base::ByteView(secret)), Until::forever()));
  } else {
    if (kept->size() != secret.size()) {
      co_return Error(Errc::corrupt, "a secret for contexts of {} bytes", kept->size());
    }
    std::ranges::copy(kept->view(), secret.begin());
  }
  context_secret_ = ContextSecret(secret);
  co_return {};
}

Task<Result<std::optional<base::Bytes>>> Catalog::read_cell(base::Bytes partition) {
  CO_TRY(const storage::RowRead read,
         co_await coordinator_.read_row(kStorageTable, std::move(partition), base::Bytes(),
                                        Until::forever()));
  const causality::CellStore cell = read.partition.cell(base::Bytes(), kColumn);
  const auto versions = causality::visible(cell, causality::Policy::lww, causality::WallTime{0});
  if (versions.empty()) co_return std::nullopt;
  co_return versions.front()->value;
}

Task<Result<void>> Catalog::write_cell(base::Bytes partition, base::Bytes value, Until admitted) {
  replication::PartitionWrite write;
  write.table = kStorageTable;
  write.partition = std::move(partition);
  write.mutation.timestamp = causality::Timestamp{microseconds(runtime_.clock.wall_now())};
  write.mutation.cells.push_back({.row = base::Bytes(),
                                  .column = kColumn,
                                  .expires = std::nullopt,
                                  .value = std::move(value)});
  return coordinator_.write_until_durable(std::move(write), std::move(admitted));
}

Task<Result<void>> Catalog::store(CatalogDocument document, Until admitted) {
  base::Bytes bytes = encode(document);
  if (bytes.size() > CatalogDocument::kSizeMax) {
    co_return Error(Errc::invalid_argument, "a schema of {} bytes; there is room for {}",
                    bytes.size(), CatalogDocument::kSizeMax);
  }
  co_return co_await write_cell(document_partition(), std::move(bytes), std::move(admitted));
}

// A log that syncs now and then could lose a document after the engine has durably made or dropped
// the tables it tells of: an id would be given again, or a table be named that is not there. Files
// are synced.
Task<Result<void>> Catalog::move_to_file() {
  return coordinator_.flush(kStorageTable, Until::after(runtime_, options_.file_wait));
}

Task<Result<TableId>> Catalog::make_storage(storage::TableOptions options, Until until) {
  for (;;) {
    const TableId id{next_storage_id_++};
    doomed_.insert(id);
    CO_TRY_VOID(co_await store({.users = snapshot_->users(),
                                .storage = snapshot_->storage_ids(),
                                .doomed = doomed_,
                                .next_storage_id = next_storage_id_,
                                .decided_version = decided_version_},
                               until));
    CO_TRY_VOID(co_await move_to_file());
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

DecidedSchema Catalog::present_with(Schema users) const {
  return {.users = std::move(users),
          .version = decided_version_,
          .has_all_rows = snapshot_->has_all_rows()};
}

Task<Result<CatalogSnapshot::StorageIds>> Catalog::storage_for(const Schema& next, Until until) {
  CatalogSnapshot::StorageIds storage;
  std::vector<const model::Table*> created;
  each_table(next, [&](const model::Table& table) {
    const std::optional<TableId> id = snapshot_->storage_of(table.id);
    if (id) {
      storage.emplace(table.id, *id);
    } else {
      created.push_back(&table);
    }
  });
  for (const model::Table* table : created) {
    const auto id = co_await make_storage(storage_options(*table), until);
    if (!id) {
      // Whoever tries again makes others.
      co_await drop_doomed();
      co_return id.error();
    }
    storage.emplace(table->id, *id);
  }
  co_return storage;
}

Task<Result<void>> Catalog::replace(DecidedSchema next, CatalogSnapshot::StorageIds storage,
                                    Until until) {
  std::set<TableId> doomed = doomed_;
  for (const auto& [table, id] : snapshot_->storage_ids()) doomed.insert(id);
  for (const auto& [table, id] : storage) doomed.erase(id);
  CO_TRY_VOID(co_await store({.users = next.users,
                              .storage = storage,
                              .doomed = doomed,
                              .next_storage_id = next_storage_id_,
                              .decided_version = next.version},
                             std::move(until)));
  // From here on a start would find the new document: whatever else goes wrong, it is in force.
  doomed_ = std::move(doomed);
  decided_version_ = next.version;
  publish(next.users, std::move(storage), next.has_all_rows);
  co_await spread_snapshot();
  co_await alter_storage();
  const auto moved = co_await move_to_file();
  if (moved) {
    co_await drop_doomed();
  } else {
    log_.warn("tables that are no longer in use stay for now", kv("error", moved.error()));
  }
  co_return {};
}

// A core or a disk that does not answer holds up no change of the schema. While storage is being
// dropped, what is doomed meanwhile waits for the next change; and so does what cannot be dropped,
// or for the next start.
Task<void> Catalog::drop_doomed() {
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

void Catalog::publish(const Schema& users, CatalogSnapshot::StorageIds storage, bool has_all_rows) {
  const std::uint64_t number = snapshot_ == nullptr ? 1 : snapshot_->number() + 1;
  snapshot_ = std::make_shared<const CatalogSnapshot>(users, options_.system, std::move(storage),
                                                      number, options_.data_center, has_all_rows);
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
  if (options_.authority) {
    // A node that was away takes a table that was made again under the same id for the same one.
    if (!snapshot_->has_all_rows() && chooses_id(statement)) {
      co_return invalid("The id of a table cannot be chosen in a cluster of more than one node");
    }
    co_return co_await options_.authority(function, std::move(until));
  }
  co_return co_await change_alone(function, std::move(until));
}

Task<QueryResult<std::optional<Catalog::Change>>> Catalog::change_alone(
    const SchemaFunction& function, Until until) {
  const auto permit = co_await turn_.acquire(1, until);
  if (!permit) co_return permit.error();
  CO_TRY(SchemaTransition transition,
         function(snapshot_->users(), std::span(&options_.data_center, 1)));
  if (!transition.change) co_return std::nullopt;
  auto storage = co_await storage_for(transition.next, until);
  if (!storage) co_return storage.error();
  const auto replaced = co_await replace(present_with(std::move(transition.next)),
                                         *std::move(storage), std::move(until));
  if (!replaced) co_return replaced.error();
  co_await tell_all(*transition.change);
  co_return std::move(transition.change);
}

Task<Result<void>> Catalog::adopt(DecidedSchema decided, Until until) {
  CO_TRY(const auto permit, co_await turn_.acquire(1, until));
  if (decided.version < decided_version_) co_return {};
  const Schema before = snapshot_->users();
  if (decided.version == decided_version_ || decided.users == before) {
    decided_version_ = decided.version;
    if (decided.has_all_rows == snapshot_->has_all_rows()) co_return {};
    publish(before, snapshot_->storage_ids(), decided.has_all_rows);
    co_await spread_snapshot();
    co_return {};
  }
  const std::vector<Change> changes = changes_between(before, decided.users);
  CO_TRY(auto storage, co_await storage_for(decided.users, until));
  CO_TRY_VOID(co_await replace(std::move(decided), std::move(storage), std::move(until)));
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
  CatalogSnapshot::StorageIds storage = snapshot_->storage_ids();
  storage[table] = *id;
  const auto replaced =
      co_await replace(present_with(snapshot_->users()), std::move(storage), std::move(until));
  if (!replaced) co_return replaced.error();
  co_return {};
}

}  // namespace helenus::cql
