#include "cql/schema/schema_difference.h"

#include <string>
#include <utility>

namespace helenus::cql {

using model::Keyspace;
using protocol::SchemaChange;
using protocol::SchemaChangeKind;
using protocol::SchemaTarget;

namespace {

class Difference {
 public:
  std::vector<SchemaChange> take() && {
    std::vector<SchemaChange> all = std::move(gone_);
    all.insert(all.end(), std::make_move_iterator(come_.begin()),
               std::make_move_iterator(come_.end()));
    return all;
  }

  void keyspace(SchemaChangeKind kind, const std::string& name) {
    add(kind, SchemaTarget::keyspace, name, "");
  }
  void between(const Keyspace& before, const Keyspace& after) {
    if (before.replication != after.replication || before.durable_writes != after.durable_writes) {
      keyspace(SchemaChangeKind::updated, after.name);
    }
    for (const auto& [name, table] : before.tables) {
      const auto now = after.find_table(name);
      if (now == nullptr || now->id != table->id) {
        add(SchemaChangeKind::dropped, SchemaTarget::table, after.name, name);
      }
    }
    for (const auto& [name, type] : before.types) {
      if (!after.types.contains(name)) {
        add(SchemaChangeKind::dropped, SchemaTarget::type, after.name, name);
      }
    }
    for (const auto& [name, type] : after.types) {
      const auto was = before.types.find(name);
      if (was == before.types.end()) {
        add(SchemaChangeKind::created, SchemaTarget::type, after.name, name);
      } else if (was->second != type) {
        add(SchemaChangeKind::updated, SchemaTarget::type, after.name, name);
      }
    }
    for (const auto& [name, table] : after.tables) {
      const auto was = before.find_table(name);
      if (was == nullptr || was->id != table->id) {
        add(SchemaChangeKind::created, SchemaTarget::table, after.name, name);
      } else if (*was != *table) {
        add(SchemaChangeKind::updated, SchemaTarget::table, after.name, name);
      }
    }
  }

 private:
  void add(SchemaChangeKind kind, SchemaTarget target, const std::string& keyspace,
           const std::string& name) {
    auto& list = kind == SchemaChangeKind::dropped ? gone_ : come_;
    list.push_back(
        {.kind = kind, .target = target, .keyspace = keyspace, .name = name, .argument_types = {}});
  }

  std::vector<SchemaChange> gone_;
  std::vector<SchemaChange> come_;
};

}  // namespace

std::vector<SchemaChange> changes_between(const model::Schema& before, const model::Schema& after) {
  Difference difference;
  for (const auto& [name, keyspace] : before.keyspaces()) {
    if (after.find_keyspace(name) == nullptr) difference.keyspace(SchemaChangeKind::dropped, name);
  }
  for (const auto& [name, keyspace] : after.keyspaces()) {
    const model::KeyspacePtr was = before.find_keyspace(name);
    if (was == nullptr) {
      difference.keyspace(SchemaChangeKind::created, name);
      Keyspace empty = *keyspace;
      empty.tables.clear();
      empty.types.clear();
      difference.between(empty, *keyspace);
    } else {
      difference.between(*was, *keyspace);
    }
  }
  return std::move(difference).take();
}

}  // namespace helenus::cql
