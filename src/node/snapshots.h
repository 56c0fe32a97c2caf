// Snapshots: what operators keep of keyspaces at one moment, by hard links, and take back.
//
//   create   storage links files (storage/engine/table_snapshots.h) ─▶ schema.cql ─▶ description
//   restore  the order is noted ─▶ tablet by tablet ─▶ the note goes
//   remove   the description goes first: what is left of a removal is no snapshot any more
//
// A restore makes tablets that this node alone holds be as they were then, and nothing else. Of
// tablets that other nodes hold, too, it takes what these do not know of already: they end at what
// the cluster has, so that nothing that was deleted since comes back.
//
// What must never lie: a restore that was begun is finished before anything is served. What a
// tablet had is gone when it is taken back; so the order is durable before the first one goes, and
// a start that finds it does it again (resume()).
//
// Core affinity: the core of its Runtime, which is the Database's.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/log.h"
#include "base/result.h"
#include "model/node_id.h"
#include "node/database.h"
#include "node/snapshot_description.h"
#include "runtime/runtime.h"
#include "runtime/semaphore.h"
#include "runtime/task.h"

namespace helenus::node {

struct ListedSnapshot {
  std::string name;
  // Why it is none: it was not finished, or its removal was not. Empty if it is one.
  std::string trouble;
  SnapshotDescription description = {};
};

// How many tablets were taken back.
struct RestoredTablets {
  std::size_t anew = 0;     // that this node alone holds
  std::size_t united = 0;   // with what the cluster has: some of it was not known any more
  std::size_t current = 0;  // that others hold, too, and that had all of it
};

class Snapshots {
 public:
  static constexpr std::size_t kSnapshotsMax = 1024;

  // `directories`: storage's, the first one first. The database outlives it.
  Snapshots(runtime::Runtime& runtime, Database& database, std::vector<std::string> directories,
            model::NodeId node);
  Snapshots(const Snapshots&) = delete;
  Snapshots& operator=(const Snapshots&) = delete;

  // Of these keyspaces, or of all if there are none. Errors: invalid_argument (the name),
  // already_exists, not_found (a keyspace), overloaded (there are too many); of storage.
  runtime::Task<base::Result<SnapshotDescription>> create(std::string name,
                                                          std::vector<std::string> keyspaces,
                                                          runtime::Until until);
  // By name. Errors: of the file system.
  runtime::Task<base::Result<std::vector<ListedSnapshot>>> list();
  // Errors: invalid_argument, not_found; of the file system.
  runtime::Task<base::Result<void>> remove(std::string name);
  // Errors: invalid_argument; not_found; unsupported: the tables are others now, and it says which;
  // of storage, after which it is to be asked again.
  runtime::Task<base::Result<RestoredTablets>> restore(std::string name, runtime::StopToken stop);
  // Finishes a restore that the last stop has cut short. Errors: as above, saying what to do.
  // Requires: the schema is in force, and replication has begun; nothing is served yet.
  runtime::Task<base::Result<void>> resume(runtime::StopToken stop);

 private:
  // What of the snapshot is taken back, and under which ids.
  struct Plan {
    std::vector<replication::HeldTablet> tablets;
    absl::btree_map<storage::TableId, storage::TableId> tables;
    causality::WallTime created;
    bool makes_anew() const;
  };

  std::string folder(const std::string& name) const;
  std::string description_path(const std::string& name) const;
  std::string order_path() const;
  runtime::Task<base::Result<void>> check_new(const std::string& name);
  base::Result<SnapshotDescription> describe(const std::vector<std::string>& keyspaces) const;
  base::Result<SnapshotDescription::Keyspace> describe_keyspace(std::string_view name) const;
  std::string schema_of(const SnapshotDescription& description) const;
  runtime::Task<base::Result<void>> make(const std::string& name, SnapshotDescription& description,
                                         runtime::Until until);
  runtime::Task<base::Result<SnapshotDescription>> read(const std::string& name);
  base::Result<Plan> plan(const SnapshotDescription& description) const;
  base::Result<void> plan_keyspace(const SnapshotDescription::Keyspace& keyspace, Plan& plan) const;
  base::Result<void> plan_table(const SnapshotDescription::Keyspace& keyspace,
                                const SnapshotDescription::Table& table,
                                const SnapshotDescription::Keyspace& now, Plan& plan) const;
  runtime::Task<base::Result<RestoredTablets>> take_back(const std::string& name, Plan plan,
                                                         runtime::StopToken stop);
  // With all that is in it, if it is there.
  runtime::Task<base::Result<void>> remove_folder(std::string path);

  runtime::Runtime& runtime_;
  Database& database_;
  const std::vector<std::string> directories_;
  const model::NodeId node_;
  base::Logger log_;
  runtime::Semaphore turn_;
};

}  // namespace helenus::node
