#include "cql/catalog/catalog.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <map>
#include <utility>
#include <variant>

#include "base/assert.h"
#include "cql/catalog/catalog_view.h"
#include "cql/catalog/compaction_storage.h"
#include "cql/schema/filter_properties.h"
#include "cql/schema/schema_difference.h"
#include "model/index_entries.h"
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
  options.compaction = compaction_of(table.options.compaction);
  return options;
}

std::map<TableId, storage::TableOptions> storage_wanted_by(const DecidedSchema& decided) {
  std::map<TableId, storage::TableOptions> wanted;
  for (const auto& [name, keyspace] : decided.users.keyspaces()) {
    for (const auto& [table_name, table] : keyspace->tables) {
      const auto id = decided.storage.find(table->id);
      ASSERT(id != decided.storage.end() && id->second < decided.next_storage);
      wanted.emplace(id->second, storage_options(*table));
      for (const model::Index& index : table->indexes) {
        const auto index_id = decided.storage.find(index.id);
        ASSERT(index_id != decided.storage.end());
        storage::TableOptions options = storage_options(*table);
        options.index =
            storage::IndexOf{.table = id->second,
                             .definition = model::IndexEntries::define(*keyspace, *table, index)};
        wanted.emplace(index_id->second, std::move(options));
      }
    }
  }
  ASSERT(wanted.size() == decided.storage.size());
  return wanted;
}

}  // namespace

Catalog::Catalog(runtime::Runtime& runtime, replication::TabletDirectory& tablets,
                 CatalogOptions options)
    : runtime_(runtime),
      tablets_(tablets),
      options_(std::move(options)),
      log_(runtime.logger("catalog")),
      turn_(runtime, 1, options_.changes_waiting_max),
      makes_(runtime),
      drops_(runtime) {
  DecidedSchema nothing;
  nothing.has_all_rows = false;
  publish(std::move(nothing));
}

Task<void> Catalog::stop() {
  co_await makes_.join();
  co_await drops_.join();
}

// ---- Tables of the engine ----

// A core or a disk that does not answer holds up nobody for longer than they have time. What is
// made late is there for whoever asks next.
Task<Result<void>> Catalog::make_storage(Storage wanted, Until until) {
  CO_TRY_VOID(co_await makes_.join(until));
  CO_TRY(const std::vector<TableId> there, co_await tablets_.tables());
  for (const TableId id : there) wanted.erase(id);
  if (wanted.empty()) co_return {};
  const auto outcome = std::make_shared<Result<void>>();
  makes_.spawn(make(std::move(wanted), outcome));
  CO_TRY_VOID(co_await makes_.join(std::move(until)));
  co_return *outcome;
}

Task<void> Catalog::make(Storage missing, std::shared_ptr<Result<void>> outcome) {
  for (const auto& [id, options] : missing) {
    const auto made = co_await tablets_.create_table(id, options);
    if (!made && !made.failed_with(Errc::already_exists)) {
      *outcome = made;
      co_return;
    }
    if (made) told_[id] = options;
  }
}

// A core or a disk that does not answer holds up no change of the schema. While storage is being
// dropped, what is unused meanwhile waits for what is adopted next; and so does what cannot be
// dropped.
Task<void> Catalog::drop_unused(TableId next) {
  const auto there = co_await tablets_.tables();
  if (!there) {
    log_.warn("tables that are no longer in use stay for now", kv("error", there.error()));
    co_return;
  }
  std::set<TableId> used;
  for (const auto& [table, id] : snapshot_->storage_ids()) used.insert(id);
  for (const TableId id : *there) {
    if (id < next && !used.contains(id)) unused_.insert(id);
  }
  if (drops_.empty() && !unused_.empty()) drops_.spawn(drop(unused_));
  const auto dropped = co_await drops_.join(Until::after(runtime_, options_.drop_wait));
  if (!dropped) log_.warn("tables are still being dropped", kv("tables", unused_.size()));
}

Task<void> Catalog::drop(std::set<TableId> unused) {
  for (const TableId id : unused) {
    const auto dropped = co_await tablets_.drop_table(id);
    if (dropped || dropped.failed_with(Errc::not_found)) {
      unused_.erase(id);
    } else {
      log_.warn("a table could not be dropped", kv("table", id), kv("error", dropped.error()));
    }
  }
}

// What the engine knows may be behind what was decided; a start sets it right, and until then files
// are as readable as ever.
Task<void> Catalog::alter_storage(Storage wanted) {
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

bool Catalog::is_news(const DecidedSchema& decided) const {
  return decided.users != snapshot_->users() || decided.storage != snapshot_->storage_ids() ||
         decided.keyspaces != snapshot_->keyspace_numbers() ||
         decided.has_all_rows != snapshot_->has_all_rows();
}

void Catalog::publish(DecidedSchema decided) {
  const std::uint64_t number = snapshot_ == nullptr ? 1 : snapshot_->number() + 1;
  snapshot_ = std::make_shared<const CatalogSnapshot>(
      decided.users, options_.system, std::move(decided.storage), std::move(decided.keyspaces),
      number, options_.data_center, decided.has_all_rows);
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
  ASSERT(authority_ != nullptr);
  co_return co_await authority_->change(function, std::move(until));
}

Task<Result<void>> Catalog::adopt(DecidedSchema decided, Until until) {
  CO_TRY(const auto permit, co_await turn_.acquire(1, until));
  ASSERT(decided.version > 0);
  if (decided.version <= decided_version_) co_return {};
  Storage wanted = storage_wanted_by(decided);
  CO_TRY_VOID(co_await make_storage(wanted, std::move(until)));
  if (decided_version_ == 0) context_secret_ = decided.context_secret;
  decided_version_ = decided.version;
  const TableId next_storage = decided.next_storage;
  const std::vector<Change> changes = changes_between(snapshot_->users(), decided.users);
  if (is_news(decided)) {
    publish(std::move(decided));
    co_await spread_snapshot();
  }
  co_await alter_storage(std::move(wanted));
  co_await drop_unused(next_storage);
  for (const Change& change : changes) co_await tell_all(change);
  co_return {};
}

Task<void> Catalog::tell_all(Change change) {
  for (const Listener& listener : listeners_) listener(change);
  co_await spread(change);
}

Task<QueryResult<void>> Catalog::truncate(base::Uuid table, Until until) {
  if (snapshot_->users().find_table(table) == nullptr) {
    co_return invalid("The table was dropped meanwhile");
  }
  CO_TRY_VOID(check_rows(*snapshot_));
  ASSERT(authority_ != nullptr);
  co_return co_await authority_->truncate(table, std::move(until));
}

}  // namespace helenus::cql
