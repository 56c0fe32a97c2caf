#include "node/snapshots.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include <fmt/format.h>

#include "model/describe.h"
#include "runtime/clock.h"
#include "runtime/file_system.h"
#include "runtime/files.h"
#include "storage/engine/engine_types.h"

namespace helenus::node {

using base::Bytes;
using base::Errc;
using base::Error;
using base::kv;
using base::Result;
using runtime::Task;
using runtime::Until;

namespace {

using Keyspace = SnapshotDescription::Keyspace;
using Table = SnapshotDescription::Table;

const Table* find_table(const Keyspace& keyspace, const base::Uuid& id) {
  const auto found = std::ranges::find(keyspace.tables, id, &Table::id);
  return found == keyspace.tables.end() ? nullptr : &*found;
}

}  // namespace

bool Snapshots::Plan::makes_anew() const {
  return std::ranges::any_of(tablets, &replication::HeldTablet::is_alone);
}

Snapshots::Snapshots(runtime::Runtime& runtime, Database& database,
                     std::vector<std::string> directories, model::NodeId node)
    : runtime_(runtime),
      database_(database),
      directories_(std::move(directories)),
      node_(node),
      log_(runtime.logger("snapshots")),
      turn_(runtime, 1, SIZE_MAX) {}

std::string Snapshots::folder(const std::string& name) const {
  return storage::snapshot_folder(directories_.front(), name);
}

std::string Snapshots::description_path(const std::string& name) const {
  return folder(name) + "/description";
}

std::string Snapshots::order_path() const {
  return directories_.front() + "/restore";
}

// ---- Creating ----

Task<Result<void>> Snapshots::check_new(const std::string& name) {
  CO_TRY_VOID(check_snapshot_name(name));
  for (const std::string& directory : directories_) {
    const auto there = co_await runtime_.files.info(storage::snapshot_folder(directory, name));
    if (there) co_return Error(Errc::already_exists, "there is a snapshot {}", name);
    if (!there.failed_with(Errc::not_found)) co_return there.error();
  }
  CO_TRY(const auto all, co_await list());
  if (all.size() >= kSnapshotsMax) {
    co_return Error(Errc::overloaded, "there are {} snapshots; remove some", all.size());
  }
  co_return {};
}

Result<Keyspace> Snapshots::describe_keyspace(std::string_view name) const {
  const cql::CatalogPtr catalog = database_.catalog().snapshot();
  const auto found = catalog->users().find_keyspace(name);
  if (found == nullptr) return Error(Errc::not_found, "there is no keyspace {}", name);
  Keyspace keyspace{
      .name = std::string(name), .number = catalog->keyspace_number(name), .tables = {}};
  for (const auto& [table_name, table] : found->tables) {
    const auto storage = catalog->storage_of(table->id);
    if (!storage) continue;
    keyspace.tables.push_back({.name = table_name, .id = table->id, .storage = *storage});
    for (const model::Index& index : table->indexes) {
      const auto of_index = catalog->storage_of(index.id);
      if (!of_index) continue;
      keyspace.tables.push_back(
          {.name = index.name, .id = index.id, .storage = *of_index, .is_index = true});
    }
  }
  return keyspace;
}

Result<SnapshotDescription> Snapshots::describe(const std::vector<std::string>& keyspaces) const {
  SnapshotDescription description{
      .node = node_, .created = runtime_.clock.wall_now(), .keyspaces = {}};
  std::vector<std::string> names = keyspaces;
  if (names.empty()) {
    for (const auto& [name, keyspace] : database_.catalog().snapshot()->users().keyspaces()) {
      names.push_back(name);
    }
  }
  std::ranges::sort(names);
  names.erase(std::ranges::unique(names).begin(), names.end());
  for (const std::string& name : names) {
    TRY(Keyspace keyspace, describe_keyspace(name));
    description.keyspaces.push_back(std::move(keyspace));
  }
  return description;
}

std::string Snapshots::schema_of(const SnapshotDescription& description) const {
  std::string text;
  const model::Schema& users = database_.catalog().snapshot()->users();
  for (const Keyspace& each : description.keyspaces) {
    const auto keyspace = users.find_keyspace(each.name);
    if (keyspace == nullptr) continue;
    text += model::describe_keyspace(*keyspace) + "\n\n";
    for (const model::DataType& type : model::types_in_order_of_use(*keyspace)) {
      text += model::describe_type(type) + "\n\n";
    }
    for (const auto& [name, table] : keyspace->tables) {
      // With its id the statement makes a table that the snapshot can be restored into.
      text +=
          fmt::format("-- id: {}\n{}\n\n", table->id.to_string(), model::describe_table(*table));
      for (const model::Index& index : table->indexes) {
        text += model::describe_index(*table, index) + "\n\n";
      }
    }
  }
  return text;
}

Task<Result<void>> Snapshots::make(const std::string& name, SnapshotDescription& description,
                                   Until until) {
  CO_TRY(const auto still, co_await database_.catalog().hold_still(until));
  std::vector<std::string> names;
  for (const Keyspace& keyspace : description.keyspaces) names.push_back(keyspace.name);
  // As it is now that nobody changes it.
  CO_TRY(description, describe(names));
  std::vector<storage::TableId> tables;
  std::vector<storage::TabletId> tablets;
  const replication::HeldTabletsPtr held = database_.held();
  for (const Keyspace& keyspace : description.keyspaces) {
    for (const Table& table : keyspace.tables) {
      if (!table.is_index) tables.push_back(table.storage);
    }
    for (const replication::HeldTablet& tablet : held->all()) {
      if (tablet.keyspace->name() != keyspace.name) continue;
      if (tablet.is_in_doubt || tablet.is_pending) {
        co_return Error(Errc::unavailable, "this node has not caught up with the cluster yet");
      }
      tablets.push_back(tablet.info.id);
    }
  }
  CO_TRY_VOID(co_await runtime::make_directories_durably(runtime_, folder(name)));
  CO_TRY(const storage::SnapshotSize size,
         co_await database_.make_snapshot(name, std::move(tables), std::move(tablets), until));
  description.files = size.files;
  description.bytes = size.bytes;
  CO_TRY_VOID(co_await runtime::replace_file(runtime_, folder(name) + "/schema.cql",
                                             Bytes::copy_of(schema_of(description))));
  co_return co_await runtime::replace_file(runtime_, description_path(name), encode(description));
}

Task<Result<SnapshotDescription>> Snapshots::create(std::string name,
                                                    std::vector<std::string> keyspaces,
                                                    Until until) {
  CO_TRY(const auto turn, co_await turn_.acquire(1, until));
  CO_TRY_VOID(co_await check_new(name));
  CO_TRY(SnapshotDescription description, describe(keyspaces));
  const auto made = co_await make(name, description, std::move(until));
  if (!made) {
    for (const std::string& directory : directories_) {
      std::ignore = co_await remove_folder(storage::snapshot_folder(directory, name));
    }
    co_return made.error();
  }
  log_.info("a snapshot was made", kv("name", name), kv("files", description.files),
            kv("bytes", description.bytes));
  co_return description;
}

// ---- Listing, removing ----

Task<Result<SnapshotDescription>> Snapshots::read(const std::string& name) {
  CO_TRY_VOID(check_snapshot_name(name));
  const auto bytes =
      co_await runtime::read_file(runtime_, description_path(name), kSnapshotDescriptionSizeMax);
  if (bytes.failed_with(Errc::not_found)) {
    co_return Error(Errc::not_found, "there is no snapshot {}", name);
  }
  if (!bytes) co_return bytes.error();
  auto description = decode_snapshot_description(bytes->view());
  if (!description) co_return std::move(description).error().within(description_path(name));
  co_return description;
}

Task<Result<std::vector<ListedSnapshot>>> Snapshots::list() {
  std::vector<ListedSnapshot> listed;
  const auto entries = co_await runtime_.files.list(directories_.front() + "/snapshots");
  if (entries.failed_with(Errc::not_found)) co_return listed;
  if (!entries) co_return entries.error();
  for (const runtime::DirectoryEntry& entry : *entries) {
    if (!entry.is_directory || !check_snapshot_name(entry.name)) continue;
    auto description = co_await read(entry.name);
    ListedSnapshot snapshot{.name = entry.name, .trouble = {}};
    if (description) {
      snapshot.description = *std::move(description);
    } else if (description.failed_with(Errc::not_found)) {
      snapshot.trouble = "not complete: remove it";
    } else {
      snapshot.trouble = description.error().to_string();
    }
    listed.push_back(std::move(snapshot));
  }
  co_return listed;
}

Task<Result<void>> Snapshots::remove_folder(std::string path) {
  const auto entries = co_await runtime_.files.list(path);
  if (entries.failed_with(Errc::not_found)) co_return {};
  if (!entries) co_return entries.error();
  for (const runtime::DirectoryEntry& entry : *entries) {
    const std::string below = path + "/" + entry.name;
    if (entry.is_directory) {
      CO_TRY_VOID(co_await remove_folder(below));
    } else {
      CO_TRY_VOID(co_await runtime_.files.remove(below));
    }
  }
  co_return co_await runtime_.files.remove(path);
}

Task<Result<void>> Snapshots::remove(std::string name) {
  CO_TRY(const auto turn, co_await turn_.acquire(1, Until::forever()));
  CO_TRY_VOID(check_snapshot_name(name));
  bool was_there = false;
  for (const std::string& directory : directories_) {
    const auto there = co_await runtime_.files.info(storage::snapshot_folder(directory, name));
    if (there) was_there = true;
  }
  if (!was_there) co_return Error(Errc::not_found, "there is no snapshot {}", name);
  const auto removed = co_await runtime_.files.remove(description_path(name));
  if (!removed && !removed.failed_with(Errc::not_found)) co_return removed;
  if (removed) CO_TRY_VOID(co_await runtime_.files.sync_directory(folder(name)));
  for (const std::string& directory : directories_) {
    CO_TRY_VOID(co_await remove_folder(storage::snapshot_folder(directory, name)));
  }
  log_.info("a snapshot was removed", kv("name", name));
  co_return {};
}

// ---- Restoring ----

Result<void> Snapshots::plan_table(const Keyspace& keyspace, const Table& table,
                                   const Keyspace& now, Plan& plan) const {
  if (const Table* same = find_table(now, table.id); same != nullptr) {
    plan.tables.emplace(table.storage, same->storage);
    return {};
  }
  // What was indexed then, and is not now, nobody asks for.
  if (table.is_index) return {};
  const auto other = std::ranges::find(now.tables, table.name, &Table::name);
  if (other != now.tables.end()) {
    return Error(Errc::unsupported,
                 "the snapshot is of table {}.{} with id {}, and the one that is there has id {}",
                 keyspace.name, table.name, table.id.to_string(), other->id.to_string());
  }
  return Error(Errc::unsupported,
               "there is no table {}.{} any more: make it WITH ID = {}, as schema.cql of the "
               "snapshot has it",
               keyspace.name, table.name, table.id.to_string());
}

Result<void> Snapshots::plan_keyspace(const Keyspace& keyspace, Plan& plan) const {
  TRY(const Keyspace now, describe_keyspace(keyspace.name));
  if (now.number != keyspace.number) {
    return Error(Errc::unsupported, "keyspace {} was dropped since the snapshot, and made anew",
                 keyspace.name);
  }
  for (const Table& table : keyspace.tables) TRY_VOID(plan_table(keyspace, table, now, plan));
  const replication::HeldTabletsPtr held = database_.held();
  bool makes_anew = false;
  for (const replication::HeldTablet& tablet : held->all()) {
    if (tablet.keyspace->name() != keyspace.name) continue;
    if (tablet.is_in_doubt || tablet.is_pending) {
      return Error(Errc::unavailable, "this node has not caught up with the cluster yet");
    }
    makes_anew |= tablet.is_alone();
    plan.tablets.push_back(tablet);
  }
  for (const Table& table : now.tables) {
    if (find_table(keyspace, table.id) != nullptr) continue;
    if (table.is_index) {
      return Error(Errc::unsupported,
                   "index {}.{} is younger than the snapshot: drop it, and make it again after the "
                   "restore",
                   keyspace.name, table.name);
    }
    if (!makes_anew) continue;
    return Error(Errc::unsupported,
                 "table {}.{} is younger than the snapshot, and would be empty: drop it first",
                 keyspace.name, table.name);
  }
  return {};
}

Result<Snapshots::Plan> Snapshots::plan(const SnapshotDescription& description) const {
  if (description.node != node_) {
    return Error(Errc::unsupported, "the snapshot is of node {}, and this is node {}",
                 description.node.value().to_string(), node_.value().to_string());
  }
  Plan plan;
  plan.created = causality::WallTime{
      std::chrono::ceil<std::chrono::seconds>(description.created.since_origin()).count()};
  for (const Keyspace& keyspace : description.keyspaces) TRY_VOID(plan_keyspace(keyspace, plan));
  return plan;
}

Task<Result<RestoredTablets>> Snapshots::take_back(const std::string& name, Plan plan,
                                                   runtime::StopToken stop) {
  RestoredTablets restored;
  for (const replication::HeldTablet& tablet : plan.tablets) {
    storage::RestoreOrder order{
        .tablet = tablet.info.id, .tables = plan.tables, .dropped_before = plan.created};
    CO_TRY(const auto report,
           co_await database_.restore_tablet(name, std::move(order), tablet, stop));
    if (tablet.is_alone()) {
      ++restored.anew;
    } else if (report.taken.dots > 0) {
      ++restored.united;
    } else {
      ++restored.current;
    }
  }
  co_return restored;
}

Task<Result<RestoredTablets>> Snapshots::restore(std::string name, runtime::StopToken stop) {
  CO_TRY(const auto turn, co_await turn_.acquire(1, {.stop = stop}));
  CO_TRY(const SnapshotDescription description, co_await read(name));
  // The schema may change from here on: what is dropped meanwhile is not taken back, and what is
  // emptied ends it, to be asked again.
  CO_TRY(Plan plan, this->plan(description));
  const bool makes_anew = plan.makes_anew();
  log_.warn("a snapshot is restored", kv("name", name), kv("tablets", plan.tablets.size()));
  if (makes_anew) {
    CO_TRY_VOID(co_await runtime::replace_file(runtime_, order_path(), Bytes::copy_of(name)));
  }
  CO_TRY(const RestoredTablets restored,
         co_await take_back(name, std::move(plan), std::move(stop)));
  if (makes_anew) {
    CO_TRY_VOID(co_await runtime_.files.remove(order_path()));
    CO_TRY_VOID(co_await runtime_.files.sync_directory(directories_.front()));
  }
  log_.info("a snapshot was restored", kv("name", name), kv("anew", restored.anew),
            kv("united", restored.united), kv("current", restored.current));
  co_return restored;
}

Task<Result<void>> Snapshots::resume(runtime::StopToken stop) {
  const auto order = co_await runtime::read_file(runtime_, order_path(), kSnapshotNameSizeMax);
  if (order.failed_with(Errc::not_found)) co_return {};
  if (!order) co_return order.error();
  const std::string name(order->text());
  log_.warn("the restore of a snapshot was cut short, and is done again", kv("name", name));
  auto restored = co_await restore(name, std::move(stop));
  if (restored) co_return {};
  co_return std::move(restored).error().within(fmt::format(
      "the restore of snapshot {} was cut short and cannot be finished; without {} the node starts "
      "with what there is",
      name, order_path()));
}

}  // namespace helenus::node
