#include "cluster/wait_rules.h"

namespace helenus::cluster {

using runtime::Duration;
using runtime::MonotonicTime;

bool is_silent(const PeerState& peer, int rounds, Duration gossip_interval) {
  return !peer.silence || *peer.silence > rounds * gossip_interval;
}

bool must_wait_for(const PeerState& peer, consensus::Version version, bool all_heard,
                   Duration gossip_interval) {
  if (!peer.is_in_view) return peer.is_in_metadata && !all_heard;
  const bool is_quiet = is_silent(peer, kRoundsUntilHeard, gossip_interval);
  const bool is_gone = is_quiet && peer.is_unreachable;
  // One that has just come back is not known to be up before its heart has beaten again.
  const bool may_be_up = peer.is_up || (!is_quiet && peer.is_in_metadata);
  return may_be_up && !is_gone && peer.applied < version;
}

MonotonicTime next_look(MonotonicTime now, MonotonicTime deadline, Duration gossip_interval) {
  const MonotonicTime next = now + gossip_interval;
  return next + kReachTimeout > deadline ? deadline : next;
}

}  // namespace helenus::cluster
