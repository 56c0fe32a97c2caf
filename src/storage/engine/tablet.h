// Tablet: what one tablet replica has seen, and under whose name it mints.
//
// Two clocks. `clock` has every dot whose record was staged in the commit log: what a write takes
// as its context, and what decides whether a delta is new. `durable` has those whose record is as
// durable as the sync mode promises: what may be shown (S1). In between a dot is known here and
// nowhere else, so a crash that takes its record takes nothing anybody has seen.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "causality/clock.h"
#include "causality/resolve.h"
#include "storage/engine/synced_clock.h"
#include "storage/engine/tablet_info.h"
#include "storage/manifest/knowledge.h"
#include "storage/manifest/manifest.h"
#include "storage/mutations/mutation_log.h"
#include "storage/mutations/operation_hold.h"
#include "storage/mutations/timestamp_floors.h"

namespace helenus::storage {

// A mutation file that may have some of a tablet's mutations cannot be opened. Which they are is
// not known, nor above which timestamps writes must lie meanwhile (timestamp_floors.h): the tablet
// is stopped, and is to be dropped and made anew (S6), or the mutations become stable.
struct LostMutations {
  causality::Clock among;  // all of its dots at that time
  base::Error why;
};

struct Tablet {
  TabletId id;
  KeyRange range;
  causality::ActorId actor;
  // The last stop may have lost acknowledged records: nothing is minted under the old name (S14).
  bool in_doubt = false;
  // Being dropped: nobody finds it any more.
  bool dropping = false;
  causality::Clock clock;
  causality::Clock durable;
  // What peers are told that has been seen, brought up to date when it is asked for; and whether it
  // may lack something (StagedWrites::note_changed).
  SyncedClock synced = {};
  bool has_changed = false;
  // Of the other members and pending ones; an absent one is a member not heard of yet. As long as
  // nobody has said who they are, nothing is stable.
  std::vector<std::optional<causality::Watermark>> watermarks = {std::nullopt};
  // What members may still need, and above which timestamps writes must lie meanwhile.
  MutationLog mutations = {};
  // What of it stays for the sake of operation ids.
  OperationHold operations = {};
  TimestampFloors floors = TimestampFloors();
  std::optional<LostMutations> lost_mutations = {};
  // Dots that a copy of the tablet is about to bring (tablet_transfer.h): until it has, or is given
  // up, no delta brings one of them. Null: none are.
  std::shared_ptr<const causality::Clock> awaited = nullptr;
  // What expired before it may have been dropped by merges. Only ever grows.
  causality::WallTime dropped_before = {};

  // No other replica, and none to be: everything is stable at once.
  bool alone() const { return watermarks.empty(); }

  // What may leave the mutation log, as far as the watermarks say.
  causality::Clock releasable() const {
    return operations.releasable(
        alone() ? clock : causality::stability(clock, causality::WallTime{0}, watermarks).dots);
  }

  TabletKnowledge knowledge(causality::WallTime own_wall) const {
    return {.base = causality::base(clock),
            .stable = causality::stability(clock, own_wall, watermarks)};
  }
};

}  // namespace helenus::storage
