// TabletSync: what a replica of a tablet knows of the clocks of the other ones, and what follows.
//
//   on_announcement(peer, clock, wall)   a peer told its clock
//   on_clock(clock)                      the own one has grown
//   on_staged(clock)                     more of it is here than survives a power loss
//   next_pull()                          somebody has what is missing here
//   watermarks()                         what stability goes by (causality::stability)
//
// Announcements. A replica tells its clock to every other member and pending one when it has
// changed since the peer said that it knows it, until it says so. At rest nobody tells anything. A
// clock that is told has only dots whose records survive a power loss (R4), so it never shrinks,
// not even over a crash.
//
// Pulls. What is missing is what a peer told of and is not staged here: what waits to be synced is
// not asked for again. The own clock above counts for what is told and for watermarks alone.
//
// Watermarks (R5). The watermark of p is the base of a clock that p has told, once the own clock
// covers all of that clock, exceptions too. Then every mutation that p had when it told it is here,
// as after a complete pull: what p minted or took later has dots beyond that clock. So a dot below
// the watermarks of all others is one that everybody has, together with everything concurrent with
// it that anybody had before (rule (c)).
//
// Epochs. Watermarks are of one epoch: when the replicas change, all is forgotten (S7, S8).
//
// Law, for any order, loss and repetition of announcements: watermark[p] is covered by the clock of
// p, and only grows.
//
// Pure. Core affinity: that of its tablet.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "causality/clock.h"
#include "causality/dot.h"
#include "causality/resolve.h"
#include "model/node_id.h"

namespace helenus::replication {

class TabletSync {
 public:
  // `peers`: the other members and pending ones. `takes_uncovered` is wrong, for tests that must
  // find it (PlantedBugs::watermarks_without_covering).
  TabletSync(causality::Epoch epoch, std::vector<model::NodeId> peers,
             bool takes_uncovered = false);

  causality::Epoch epoch() const { return epoch_; }

  // Requires: of this epoch. False for somebody who is no replica of the tablet.
  bool on_announcement(model::NodeId peer, causality::Clock clock, causality::WallTime wall);
  // The clock here, as far as it survives a power loss. Returns whether a watermark has changed.
  // Only ever grows.
  bool on_clock(const causality::Clock& clock);
  // All that is here. Only ever grows, and covers what on_clock() was given.
  void on_staged(const causality::Clock& clock);

  // A peer that has what is missing here: the one that has most of it. None: nobody has told of
  // anything. `avoid` is asked only if nobody else is left, who `may_ask` denies not at all.
  using MayAsk = std::function<bool(model::NodeId)>;
  std::optional<model::NodeId> next_pull(std::optional<model::NodeId> avoid = std::nullopt,
                                         const MayAsk& may_ask = {}) const;
  // All that peers have told of that was not known to be here, when they told it.
  causality::Clock announced() const;
  // Whether a peer has told of something that is not synced here.
  bool is_behind() const;
  // How many dots the peer has told of that are not here, and how many are here that it had not
  // when it last told. Requires: a peer.
  std::uint64_t missing_here(model::NodeId peer) const;
  std::uint64_t missing_there(model::NodeId peer) const;
  // Whether the peer has told of all of these dots. Requires: a peer.
  bool has_told_of(model::NodeId peer, const causality::Clock& dots) const;

  // ---- Telling ----
  // What is to be told, to whom it may concern. Numbers grow with every change of the own clock.
  const causality::Clock& clock() const { return clock_; }
  std::uint64_t clock_number() const { return clock_number_; }
  bool must_tell(model::NodeId peer) const;
  // The peer has said that it knows the clock of that number.
  void on_known(model::NodeId peer, std::uint64_t clock_number);
  // The connection to the peer was lost, or it began anew: it is told again.
  void on_reconnect(model::NodeId peer);

  // Grows with every change of watermarks().
  std::uint64_t watermarks_number() const { return watermarks_number_; }
  // In the order of the peers; none of one that was not heard of completely in this epoch.
  std::vector<std::optional<causality::Watermark>> watermarks() const;
  std::span<const model::NodeId> peers() const { return peers_; }

 private:
  struct Peer {
    // What it told last.
    std::optional<causality::Clock> announced;
    causality::WallTime wall;
    // Whether all of it is here.
    bool covered = false;
    std::optional<causality::Watermark> watermark;
    std::uint64_t known_number = 0;
  };

  Peer* find(model::NodeId peer);
  const Peer* find(model::NodeId peer) const;
  // Makes a watermark of what the peer told, if all of it is here.
  bool advance(Peer& peer);

  causality::Epoch epoch_;
  bool takes_uncovered_;
  std::vector<model::NodeId> peers_;
  std::vector<Peer> states_;  // by peer
  causality::Clock clock_;
  causality::Clock staged_;
  std::uint64_t clock_number_ = 1;
  std::uint64_t watermarks_number_ = 0;
};

}  // namespace helenus::replication
