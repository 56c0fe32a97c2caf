// TabletDirectory: the tablets that this node's storage has, kept in step with the metadata; and
// the tables whose rows they hold.
//
//   auto tablets = co_await TabletDirectory::open(runtime, *engines);
//   const auto held = co_await tablets->hold(map);        newer metadata: what they add is there
//   co_await tablets->create_table(table, {.policy = Policy::lww});
//   tablets->let_go(*held);                               and what they no longer name goes
//   co_await tablets->stop();
//
// Tablets. Partitions begin with their keyspace's number and their token (model/partition_key.h),
// and a tablet is a range of them (ReplicaMap). hold() comes before anybody acts by the new map,
// and let_go() when nobody acts by the old one any more. A crash in between leaves tablets too many
// or too few, and the next start calls both.
//
// Names. A replica mints under the number of its node and an incarnation, which the metadata give.
// After a stop that may have lost a tail of the log a tablet that only this node holds gets the
// next incarnation before it takes a write: names are never used twice (S14). One that others hold
// too is in doubt, and serves nobody (HeldTablet::is_in_doubt), until it has re-entered (R10):
//
//   must_reenter()           the folder may have lost something, or has other names than the
//                            metadata say: then no replica here serves that others hold too, since
//                            what one has lost another may have, too
//   begin_reentry(epoch)     ... this node asks the metadata for new names
//   hold(map)                of a map in which the node re-entered after that epoch: they have them
//
// A name is taken only if the metadata gave it in this life of the node. One of an earlier life may
// have been minted under, and what then happened may be lost: a folder that was put back knows
// nothing of it. So it is with a name that the metadata say and the folder does not have.
//
// A doubt outlives the start that found it, until there are new names. Tablets that are made in
// doubt get names of their own: with those of the metadata the next start would take what is empty
// for all that was ever minted under them. And of a folder without tablets the log directory knows.
//
// Core affinity: that of the Engines. What may be asked on any core says so.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "base/log.h"
#include "base/result.h"
#include "replication/map/replica_map.h"
#include "replication/tablets/held_tablets.h"
#include "runtime/cores.h"
#include "runtime/runtime.h"
#include "runtime/task.h"
#include "runtime/task_group.h"
#include "runtime/wait_queue.h"
#include "storage/engine/tablet_info.h"
#include "storage/ids/table_id.h"
#include "storage/manifest/manifest.h"

namespace helenus::storage {
class Engines;
}

namespace helenus::replication {

class TabletDirectory {
  struct Private {
    explicit Private() = default;
  };

 public:
  // Errors: of the engines. Requires: the engines outlive it.
  static runtime::Task<base::Result<std::unique_ptr<TabletDirectory>>> open(
      runtime::Runtime& runtime, storage::Engines& engines);
  // For open().
  TabletDirectory(Private, runtime::Runtime& runtime, storage::Engines& engines);
  TabletDirectory(const TabletDirectory&) = delete;
  TabletDirectory& operator=(const TabletDirectory&) = delete;

  // Makes the tablets that the map says this node holds. Durable when it returns. Errors: of the
  // engines; what was made stays, and is found by the next call. One call at a time.
  runtime::Task<base::Result<HeldTabletsPtr>> hold(ReplicaMapPtr map);
  // As of the last hold().
  bool must_reenter() const { return doubts_all_; }
  // No other node counts on what this one has acknowledged.
  runtime::Task<base::Result<void>> forget_doubts();
  // The metadata are asked for new names: those that they give after that epoch are taken. May be
  // called again, with what they are when they are asked again.
  void begin_reentry(causality::Epoch after) { reentry_after_ = after; }
  // This node has found out that it lost something: none of its replicas serves that others hold
  // too, from the next hold() on, until it has re-entered.
  void doubt_all() {
    doubts_all_ = true;
    reentry_after_.reset();
  }
  // And if there is another start before that. Errors: of the engines.
  runtime::Task<base::Result<void>> note_doubt();
  // Files of these are damaged, and others have what can be read of them: with the next new names
  // they are made anew, empty, and take copies from others.
  void make_anew(std::set<storage::TabletId> damaged) { damaged_ = std::move(damaged); }
  // A name that was never used for the tablet, of which this node is the only one that holds it; as
  // it was called last, if it is not there. Errors: of the engines.
  runtime::Task<base::Result<causality::ActorId>> next_name(storage::TabletId tablet,
                                                            causality::ActorId last);
  // Drops all other tablets with all that is in them, in its own time.
  void let_go(const HeldTablets& held);
  // Waits for what is being dropped. Once, when nobody lets go of anything any more.
  runtime::Task<void> stop() { return drops_.join(); }

  // On any core.
  runtime::CoreId core_of(storage::TabletId tablet) const;

  // The tables there are, ascending. Errors: of the wait for the core that knows them.
  runtime::Task<base::Result<std::vector<storage::TableId>>> tables();
  // In all tablets. Durable when they return. Errors: already_exists; not_found; see Engine.
  runtime::Task<base::Result<void>> create_table(storage::TableId table,
                                                 storage::TableOptions options);
  // See Engine::alter_table.
  runtime::Task<base::Result<void>> alter_table(storage::TableId table,
                                                storage::TableOptions options);
  runtime::Task<base::Result<void>> drop_table(storage::TableId table);

 private:
  // Whether the map has names that this life asked for.
  bool has_new_names(const HeldTablets& held) const;
  // Gives them names that nobody else knows.
  void name_apart(std::vector<storage::TabletInfo>& tablets) const;
  runtime::Task<base::Result<void>> make(std::vector<storage::TabletInfo> missing);
  // A replica that is to be filled is another one than this node may have had before: what others
  // have forgotten since would come back with that.
  runtime::Task<base::Result<void>> drop_outdated(const HeldTablets& held);
  runtime::Task<base::Result<void>> drop_damaged(const HeldTablets& held);
  runtime::Task<base::Result<void>> rename_doubtful(const HeldTablets& held);
  // Gives replicas the names of the map, if this life asked for them. Otherwise finds out whether
  // they are in doubt.
  runtime::Task<base::Result<void>> take_names(const HeldTablets& held);
  runtime::Task<void> drop(std::vector<storage::TabletId> tablets);

  runtime::Runtime& runtime_;
  storage::Engines& engines_;
  base::Logger log_;
  std::set<storage::TabletId> tablets_;  // of the engines, but for those that are being dropped
  std::set<storage::TabletId> dropping_;
  runtime::WaitQueue dropped_;  // whoever waits until some of them have gone
  bool doubts_all_ = false;     // of those that others hold too
  std::optional<causality::Epoch> reentry_after_;
  std::set<storage::TabletId> damaged_;
  runtime::TaskGroup drops_;
};

}  // namespace helenus::replication
