// AntiEntropy: makes the replicas on other nodes and those of one core equal, whatever was lost
// between them, and lets mutation logs go of what everybody has. It is the only way in which a
// replica gets what it was not sent, or did not take.
//
//   every interval   tablets whose clock has grown ─▶ one announcement to each peer node
//                    tablets in which a peer has more ─▶ pull, page after page, and apply
//                    watermarks that have moved ─▶ the engine, which then collects
//
// What is decided is decided by a TabletSync for each tablet, which is pure (tablet_sync.h). Here
// are its wires. A TabletSync lives as long as the epoch of its tablet, and has a number of its
// own, its life; a peer that hears of a new one tells it everything. At rest nobody says anything.
//
// What must never lie:
//   - A dot is claimed with its data alone (S5). Nothing here adds to a clock: Engine::stage() adds
//     the dot of the delta that it logs and applies in that step, and Engine::cover() dots of
//     tables that were dropped, which have no data any more. A page claims what it brought whole,
//     and of a reply that comes late, in another epoch, nothing is taken.
//   - What is announced survives a power loss (R4): Engine::synced_clock(), whatever the sync mode.
//     What a peer then concludes stays true over every stop of this node but the loss of its disk.
//   - A watermark of p is the base of a clock that p announced in this epoch, when all of that
//     clock is here and synced, exceptions too (R5). Rule (c) follows: let d be at or below the
//     watermarks of all others. Whatever p minted without having seen d lies before d in its log,
//     so it is in every synced clock of p that has d, thus in the announced one, thus here. And
//     what p mints later has d in its context. So everything concurrent with d is here already,
//     and d is everywhere, durably. The engine learns of watermarks from here alone, after the
//     clock that they rest on is synced.
//   - When the replicas change all watermarks are forgotten, in the step in which this learns of it
//     (S7, S8). Messages of another epoch have no effect (S10), nor those of strangers.
//   - Unknown is not dropped (R9): a mutation of a table that is not here is covered only if the
//     metadata that this core follows have given the table's number, so that it was here once.
//     Until then it is not taken, not claimed, and asked for again.
//
//   - A replica in doubt (R10) pulls from others until reentry_rule.h is content. What counts is a
//     pull in the epoch in which it re-entered that brought all that was durable at the other one,
//     which has settled by then what it had taken before that epoch: so whatever was acknowledged
//     by it and the one in doubt is here. Announcements will not do, since they leave out what is
//     not synced.
//   - A pending replica is silent until its data are installed (S8): it tells no clock, pulls
//     nothing and answers no pull. What it is sent meanwhile it has, with the dots of that alone.
//   - While a change of the ring is joint (R17) every replica of the next set pulls from every
//     member, as one that re-enters does: then it has what any majority of them acknowledged
//     before, and the next set alone may count.
//   - Where a peer has seen dots of a replica's own that it has not, it has lost something (S13),
//     and stops serving in that step.
//
// Applying keeps to the latches of partitions (partition_latches.h), as everything that is staged.
//
// Limits: one announcement under way to a peer, of bounded size; one pull under way for a tablet,
// pages of bounded size, a bounded number of tablets at once, a bounded number of answers being
// made. A peer that fails is asked again after a pause, others first; pauses double.
//
// Core affinity: the core of its Runtime, which is that of the link and of the replica.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string_view>
#include <vector>

#include "base/log.h"
#include "base/result.h"
#include "causality/clock.h"
#include "model/node_id.h"
#include "replication/anti_entropy/tablet_sync.h"
#include "replication/cluster/cluster_link.h"
#include "replication/cluster/stream_feed.h"
#include "replication/cluster/stream_source.h"
#include "replication/map/replica_map.h"
#include "replication/messages/messages.h"
#include "replication/replica/replica.h"
#include "replication/request/planted_bugs.h"
#include "replication/tablets/held_tablets.h"
#include "runtime/operation.h"
#include "runtime/runtime.h"
#include "runtime/stop_token.h"
#include "runtime/task.h"
#include "runtime/task_group.h"
#include "storage/ids/key_range.h"

namespace helenus::replication {

struct AntiEntropyOptions {
  // From one look at what has changed to the next.
  runtime::Duration interval = std::chrono::milliseconds(100);
  // What an announcement takes at most, about; it has one clock at least.
  std::size_t announced_bytes_max = std::size_t{256} << 10;
  // How long a peer may take to answer, and applying what it sent.
  runtime::Duration announce_timeout = std::chrono::seconds(2);
  runtime::Duration pull_timeout = std::chrono::seconds(10);
  // Of a page, and how many follow each other before another tablet has its turn.
  std::uint64_t pulled_bytes_max = std::uint64_t{1} << 20;
  std::size_t pages_max = 64;
  // How many tablets are pulled at once, and how many pulls of others are answered at once.
  std::size_t pulls_max = 4;
  // The same of tablets that re-enter, which nobody writes to meanwhile.
  std::size_t reentry_pulls_max = 16;
  std::size_t pulls_served_max = 16;
  // How many copies of tablets are taken at once, and what a page of one may have, about.
  std::size_t streams_max = 2;
  std::uint64_t streamed_bytes_max = std::uint64_t{1} << 20;
  // After a failure; doubled with every further one.
  runtime::Duration pause_min = std::chrono::milliseconds(200);
  runtime::Duration pause_max = std::chrono::seconds(10);
  // Before a peer that does not hold a tablet, or is in another epoch, is told of it again.
  runtime::Duration pause_refused = std::chrono::seconds(1);
  PlantedBugs bugs = {};
};

// Numbers since the start, unless they say otherwise.
struct AntiEntropyReport {
  // What is known of a node that holds tablets with this core, now. Exact as of its announcements.
  struct Peer {
    model::NodeId node;
    std::size_t tablets = 0;
    std::uint64_t lacking_there = 0;  // writes that are here, and it has not told of
    std::uint64_t lacking_here = 0;   // writes that it has told of, and are not here
    std::size_t clocks_to_tell = 0;   // it has not said yet that it knows them
  };
  std::vector<Peer> peers;  // ascending

  std::uint64_t announcements = 0;  // messages sent
  std::uint64_t announcements_failed = 0;
  std::uint64_t clocks_announced = 0;
  std::uint64_t clocks_refused = 0;  // by peers: other epochs, tablets they do not hold
  std::uint64_t clocks_taken = 0;    // of peers
  std::uint64_t clocks_ignored = 0;  // of peers: likewise
  std::uint64_t pulls = 0;
  std::uint64_t pulls_failed = 0;
  std::uint64_t pages = 0;
  std::uint64_t mutations_pulled =
      0;  // and applied: those that came another way meanwhile are none
  std::uint64_t bytes_pulled = 0;
  std::uint64_t pages_served = 0;
  std::uint64_t bytes_served = 0;
  std::uint64_t streams = 0;  // copies of tablets that were begun to be taken
  std::uint64_t streams_failed = 0;
  std::uint64_t streams_refused = 0;  // of them: for what they brought
  std::uint64_t entries_streamed = 0;
  std::uint64_t bytes_streamed = 0;
  std::uint64_t streams_served = 0;
  std::uint64_t stream_bytes_served = 0;
  std::uint64_t dots_covered = 0;
  std::uint64_t mutations_put_off = 0;  // of tables that the metadata have not given yet
  std::uint64_t mutations_refused = 0;  // by the engine, for what they are
  // Now: dots that a peer has seen and could not give, when it was asked last.
  std::uint64_t withheld = 0;
  // Now: tablets in which a peer has seen dots of this replica's own that it has not (S13).
  std::size_t tablets_behind_themselves = 0;
  std::size_t tablets = 0;         // now: with peers
  std::size_t tablets_behind = 0;  // now: in which a peer has told of what is not synced here

  // Of another core of this node.
  void add(const AntiEntropyReport& other);
};

// How far the replicas of a core are that re-enter.
struct ReentryProgress {
  std::size_t tablets = 0;         // that are in doubt
  std::size_t tablets_behind = 0;  // of them: they have not caught up
  // Of those that wait for a peer, or for writes that nobody has given them.
  std::set<model::NodeId> waits_for;
  std::uint64_t withheld = 0;
  std::size_t copying = 0;  // of them: a copy of a peer's is being taken
  // Of the metadata that this is about; of all cores the oldest.
  causality::Epoch as_of;
  // Files of these are damaged, and enough others have all that they had seen when that was noticed
  // or, if they are in doubt, when they came to be.
  std::set<storage::TabletId> damaged;
  std::size_t damaged_waiting = 0;  // others have not, yet
  std::size_t damaged_alone = 0;    // there are no others
  // Of other replicas: a peer has seen writes that they have lost.
  bool has_lost_writes = false;

  // Of another core of this node.
  void add(const ReentryProgress& other);
};

// How far the replicas of a core are in a change of the ring (R17).
struct RingProgress {
  std::size_t pending = 0;            // that are to be filled
  std::size_t pending_to_fill = 0;    // of them: they are not yet
  std::size_t joint = 0;              // of the next set of a joint change
  std::size_t joint_behind = 0;       // of them: they have not pulled from every member
  std::set<model::NodeId> waits_for;  // by those
  std::uint64_t withheld = 0;         // writes that a member has seen, and nobody gave
  // Of the metadata that this is about; of all cores the oldest.
  causality::Epoch as_of;

  // Of another core of this node.
  void add(const RingProgress& other);
  friend bool operator==(const RingProgress&, const RingProgress&) = default;
};

class AntiEntropy {
 public:
  // All outlive it.
  AntiEntropy(runtime::Runtime& runtime, ClusterLink& link, Replica& replica,
              AntiEntropyOptions options = {});
  AntiEntropy(const AntiEntropy&) = delete;
  AntiEntropy& operator=(const AntiEntropy&) = delete;

  // The metadata that this core follows. Requires: the engine has, or has had, every table of them.
  void take(ReplicaMapPtr map);
  // Those of other cores are no matter. Requires: the engine has every tablet of this core in it,
  // with its actor.
  void take(const HeldTabletsPtr& held);

  // Begins to announce and pull. Once.
  void start();
  // Ends both; what peers say is still listened to. The Rpc is stopped after it. Once, if started.
  runtime::Task<void> stop();

  // What a peer announced, of tablets of this core.
  AnnounceReply on_announce(model::NodeId from, const AnnounceMessage& message);
  // Errors: refused (not a replica that this one has as a peer in that epoch), overloaded; those of
  // Engine::missing_mutations.
  runtime::Task<base::Result<PullReply>> on_pull(model::NodeId from, PullMessage message,
                                                 runtime::Until until);

  // What a peer that holds one of the tablets asks for, to have all of it. Errors: refused (as
  // above), those of StreamSource.
  runtime::Task<base::Result<StreamOpenReply>> on_stream_open(model::NodeId from,
                                                              StreamOpenMessage message,
                                                              runtime::Until until);
  runtime::Task<base::Result<StreamPageReply>> on_stream_page(model::NodeId from,
                                                              StreamPageMessage message,
                                                              runtime::Until until);

  // Makes the replica here have everything that the one of that node has, whether it lacks
  // something or has nothing at all; what it has itself stays. It may serve meanwhile. Nothing has
  // changed after an error. Requires: this node is a member or pending. Errors: not_found (no
  // tablet of this core with peers), refused (the replicas have changed), timeout (others are
  // copied still), those of the peer and of Engine::ingest.
  runtime::Task<base::Result<void>> copy(storage::TabletId id, model::NodeId from,
                                         runtime::Until until);

  // Tells all peers of everything again, and pulls what is missing without a pause: of a keyspace's
  // tablets, or of all if the name is empty. How many they are.
  std::size_t begin_round(std::string_view keyspace);

  // Cost: all tablets and their peers.
  AntiEntropyReport report() const;
  // Cost: all tablets.
  ReentryProgress reentry();
  // Cost: all tablets.
  RingProgress ring_progress() const;
  // A pending replica has all that a member had in this epoch or a later one, and is silent no
  // more. Requires: the engine has it, under that name.
  void note_filled(storage::TabletId id, causality::ActorId actor);
  // Replicas that re-enter do not wait for these nodes any more: an operator accepts the loss of
  // what they alone have.
  void give_up(const std::set<model::NodeId>& nodes) {
    given_up_.insert(nodes.begin(), nodes.end());
  }

 private:
  // What is known of the replica of a tablet on another node.
  struct PeerReplica {
    std::optional<std::uint64_t> life;
    runtime::MonotonicTime told_not_before;
  };
  struct Tablet {
    Tablet(const HeldTablet& its, std::uint64_t number, PlantedBugs bugs);
    HeldTablet held;
    std::uint64_t life;
    TabletSync sync;
    std::vector<PeerReplica> peers;  // as sync.peers()
    // What peers had told of at the last look: what of it is not here now does not come by itself.
    causality::Clock due;
    bool pulling = false;
    bool streaming = false;
    std::optional<model::NodeId> avoided;
    runtime::MonotonicTime pulled_not_before;
    runtime::Duration pause{};
    bool waits_for_metadata = false;
    causality::Clock withheld;
    bool behind_itself = false;
    // Peers that have given all that they had, in this epoch.
    std::set<model::NodeId> pulled;
  };
  // Another node.
  struct Peer {
    std::set<storage::TabletId> to_tell;
    bool telling = false;
    runtime::MonotonicTime told_not_before;
    runtime::Duration pause{};
  };
  struct Told {
    storage::TabletId tablet;
    std::uint64_t clock_number = 0;
  };
  enum class PullEnd : std::uint8_t {
    complete,   // nothing is left that this peer could give
    cut,        // there is more, in another turn
    stuck,      // something could not be taken, or was not given
    postponed,  // a copy of the tablet is needed, and as many others as may are being taken
  };

  // Null if it is not there, or no longer the same one.
  Tablet* find(storage::TabletId id, std::uint64_t life);
  static std::optional<std::size_t> index_of(const Tablet& tablet, model::NodeId peer);

  runtime::Task<void> look_loop();
  void add(const HeldTablet& held);
  // The synced clock may have grown.
  void refresh(Tablet& tablet);
  void tell_all(const Tablet& tablet);
  void note_life(Tablet& tablet, std::size_t peer, std::uint64_t life);
  void set_watermarks();

  // ---- Re-entry, and changes of the ring (anti_entropy_reentry.cc) ----
  const PlacedTablet& placed(const Tablet& tablet) const;
  // The metadata say so; where only this node does it has not got its new name yet.
  bool reenters(const Tablet& tablet) const;
  std::set<model::NodeId> reentry_waits_for(const Tablet& tablet) const;
  // It is of the next set of a joint change.
  bool is_of_next_set(const Tablet& tablet) const;
  std::set<model::NodeId> change_waits_for(const Tablet& tablet) const;
  // From whom it must pull everything, for either.
  std::set<model::NodeId> must_pull_from(const Tablet& tablet) const;
  bool is_silent(const Tablet& tablet) const;
  void note_catching_up();
  void start_catch_up_pulls();
  runtime::Task<void> catch_up_pull(storage::TabletId id, std::uint64_t life, model::NodeId from);
  void note_pulled(Tablet& tablet, model::NodeId from);

  // ---- Copies of tablets (anti_entropy_streams.cc) ----
  // Whether so many others, that are in doubt about nothing themselves, have told of these dots
  // that losing them here loses nothing that was acknowledged (S6).
  bool is_taken_by_others(const Tablet& tablet, const causality::Clock& dots) const;
  void add_damaged(ReentryProgress& progress);
  bool must_stream(storage::TabletId id, std::uint64_t life, const base::Result<PullEnd>& end);
  runtime::Task<base::Result<PullEnd>> stream(storage::TabletId id, std::uint64_t life,
                                              model::NodeId from);
  runtime::Task<base::Result<PullEnd>> stream_tablet(storage::TabletId id, std::uint64_t life,
                                                     model::NodeId from);
  runtime::Task<base::Result<void>> pull_before_union(storage::TabletId id, std::uint64_t life,
                                                      model::NodeId from);

  // ---- Announcing ----
  void start_telling();
  std::shared_ptr<const AnnounceMessage> next_announcement(model::NodeId to, Peer& peer,
                                                           std::vector<Told>& told, bool& is_full);
  runtime::Task<void> tell(model::NodeId to);
  // Whether there is more to tell at once.
  runtime::Task<bool> tell_once(model::NodeId to);
  void on_told(model::NodeId to, Peer& peer, const AnnounceMessage& message,
               const std::vector<Told>& told, const AnnounceReply& reply);

  // ---- Pulling ----
  void start_pulls();
  // Whether something is missing that should have come by now.
  bool must_pull(Tablet& tablet);
  runtime::Task<void> pull(storage::TabletId id, std::uint64_t life, model::NodeId from);
  void finish_pull(storage::TabletId id, std::uint64_t life, model::NodeId from,
                   const base::Result<PullEnd>& end);
  runtime::Task<base::Result<PullEnd>> pull_pages(storage::TabletId id, std::uint64_t life,
                                                  model::NodeId from);
  // Dots that were not taken are added to `left`.
  runtime::Task<base::Result<void>> take_page(storage::TabletId id, PullReply reply,
                                              causality::Clock& left, runtime::Until until);
  void note_withheld(Tablet& tablet, model::NodeId from, causality::Clock withheld);

  runtime::Runtime& runtime_;
  ClusterLink& link_;
  Replica& replica_;
  const AntiEntropyOptions options_;
  base::Logger log_;
  ReplicaMapPtr map_;
  HeldTabletsPtr held_;
  std::map<storage::TabletId, std::unique_ptr<Tablet>> tablets_;
  std::map<model::NodeId, Peer> peers_;
  std::set<storage::TabletId> behind_;
  std::set<storage::TabletId> moved_;  // whose watermarks the engine has not been told of yet
  storage::TabletId pulled_last_;
  std::size_t pulling_ = 0;
  std::set<storage::TabletId> catching_up_;  // that must still pull everything from somebody
  std::size_t catch_up_pulling_ = 0;
  std::map<storage::TabletId, causality::ActorId> filled_;  // pending ones
  std::set<model::NodeId> given_up_;
  // What others must have before the replica is made anew; as of which state of it.
  struct DamagedTablet {
    causality::Clock dots;
    bool is_in_doubt = false;
  };
  std::map<storage::TabletId, DamagedTablet> damaged_;
  std::size_t serving_ = 0;
  std::size_t streaming_ = 0;
  StreamSource source_;
  AntiEntropyReport counts_;
  runtime::StopSource stop_;
  runtime::TaskGroup tasks_;
};

}  // namespace helenus::replication
