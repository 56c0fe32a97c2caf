// Membership: gossip, a failure detector and the view of the cluster in one machine.
//
//   round, message ──▶ Gossip ──heartbeat──▶ FailureDetector ──alive──▶ ClusterView ──▶ events
//                        └──────────────status───────────────────────────▲
//
// Driven from outside: its owner calls `round` every gossip interval, `tick` a few times in
// between, `receive` for each message, and sends what they return. Time and randomness are passed
// in; so the simulator, a test and a node on real sockets run the same code.
//
// Whom a round talks to, as in Cassandra: one live node at random; with a chance that grows with
// their share one that is down, so that a partition heals; and a seed when there is nobody else, or
// by chance, so that islands that started apart find each other. Seeds are contact points only.
//
// A node that was itself held up (paused, out of processor time) has heard nobody for that long,
// which says nothing about the others: after such a pause nobody is declared dead until news had
// time to come in.
//
// Belongs to one core.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/prng.h"
#include "base/result.h"
#include "base/strong.h"
#include "membership/cluster_view.h"
#include "membership/failure_detector.h"
#include "membership/gossip.h"
#include "membership/message.h"
#include "runtime/time.h"

namespace helenus::membership {

struct MembershipConfig {
  std::string cluster;  // 1 to kClusterNameBytesMax bytes
  model::NodeId self;
  Generation generation = 1;     // 1 to kGenerationMax
  std::uint32_t seed_count = 0;  // without this node itself
  GossipLimits limits;
  // Not having been called for longer than this is a pause. More than the gossip interval.
  runtime::Duration pause_max = std::chrono::seconds(5);
};

// Which of the configured seeds: their ids are not known before they spoke.
using Seed = base::Strong<struct SeedTag, std::uint32_t>;

struct Outgoing {
  std::variant<model::NodeId, Seed> to;
  Message message;
};

struct Output {
  std::vector<Outgoing> messages;
  std::vector<Event> events;
  std::vector<Progress> progress;  // what a message brought
};

class Membership {
 public:
  static constexpr std::size_t kSpreadPeersMax = 8;

  // Requires: limits as stated; a detector.
  Membership(MembershipConfig config, std::unique_ptr<FailureDetector> detector);

  // Says something of this node; see Gossip::set.
  base::Result<void> set(StateKey key, base::Bytes value) {
    return gossip_.set(key, std::move(value));
  }

  // The heart beats and exchanges begin. Does what `tick` does, too.
  Output round(runtime::MonotonicTime now, base::Prng& random);
  // Tells some live nodes, out of turn, what this one says of itself: all of them if there are no
  // more than kSpreadPeersMax. For what others wait for; it costs each of them a small exchange.
  Output spread(base::Prng& random) const;
  // Opens exchanges with some of these, out of turn: all of them if there are no more than
  // kSpreadPeersMax. For who has just started, and knows from elsewhere who may be there.
  Output greet(std::vector<model::NodeId> nodes, base::Prng& random);
  // The detector judges.
  Output tick(runtime::MonotonicTime now);
  // Errors: refused for a message of another cluster; nothing has changed then.
  base::Result<Output> receive(const Message& message, runtime::MonotonicTime now,
                               base::Prng& random);
  // An operator, or the metadata document, says that this node is no more. Requires: not this one.
  Output forget(model::NodeId node);

  const Gossip& gossip() const { return gossip_; }
  const ClusterView& view() const { return view_; }
  const FailureDetector& detector() const { return *detector_; }

 private:
  Message message_with(Body body) const {
    return {.cluster = config_.cluster, .sender = gossip_.self(), .body = std::move(body)};
  }
  static Output tell_some(std::vector<model::NodeId> nodes, const Message& message,
                          base::Prng& random);
  void choose_peers(base::Prng& random, Output& out);
  void judge(runtime::MonotonicTime now);
  void take(const Progress& progress, runtime::MonotonicTime now);

  MembershipConfig config_;
  Gossip gossip_;
  std::unique_ptr<FailureDetector> detector_;
  ClusterView view_;
  std::optional<runtime::MonotonicTime> last_judged_;
  std::optional<runtime::MonotonicTime> spared_until_;
};

}  // namespace helenus::membership
