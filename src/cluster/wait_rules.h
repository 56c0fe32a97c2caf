// Which nodes a change waits for until it is acknowledged: a function of what is known of each.
//
// A node is waited for while it may be up and has not said that it applied the version. A node to
// which no connection can be had and whose heart nobody has heard for some rounds of gossip is not
// up, though the detector may think so yet. So a node that is cut off from this one alone is waited
// for: others hear its heart. So is one that hangs on a machine that answers, until the detector is
// sure of it. In the first moments of a life, a node that has not been heard of may be up, and is
// waited for.
#pragma once

#include <chrono>
#include <optional>

#include "consensus/document.h"
#include "runtime/time.h"

namespace helenus::cluster {

// How many rounds of gossip it may take until a heartbeat of every node that is up has been heard.
inline constexpr int kRoundsUntilHeard = 5;
// After how many rounds without a heartbeat it is looked whether a node can be reached, so that
// this is known when the rounds above are over.
inline constexpr int kRoundsUntilDoubt = 2;
// How long a connection may take: a packet may be lost and sent again a second later.
inline constexpr runtime::Duration kReachTimeout = std::chrono::seconds(2);

// What this node knows of another.
struct PeerState {
  consensus::Version applied{};  // as it said by gossip
  bool is_in_metadata = false;
  bool is_in_view = false;      // gossip has told of it in this life
  bool is_up = false;           // as the failure detector thinks
  bool is_unreachable = false;  // no connection could be had when this was tried last
  // Since its last heartbeat, from whomever that was heard. None if there was none.
  std::optional<runtime::Duration> silence{};
};

// Whether no heartbeat was heard for longer than so many rounds of gossip.
bool is_silent(const PeerState& peer, int rounds, runtime::Duration gossip_interval);

// Whether that node keeps the version from being applied everywhere. `all_heard`: this node has
// gossiped for kRoundsUntilHeard, so it has heard of everybody who is up.
bool must_wait_for(const PeerState& peer, consensus::Version version, bool all_heard,
                   runtime::Duration gossip_interval);

// When to look next who can be reached: after a round of gossip, and at the deadline instead if a
// look would not be over by then. A look that the deadline cuts short could not tell a node that is
// slow from one that is gone.
runtime::MonotonicTime next_look(runtime::MonotonicTime now, runtime::MonotonicTime deadline,
                                 runtime::Duration gossip_interval);

}  // namespace helenus::cluster
