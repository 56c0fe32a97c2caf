// GossipService: Membership bound to the other nodes. It makes the heart beat, carries messages by
// rpc, and tells subscribers what it heard.
//
//   every interval   Membership::round, and a few times in between Membership::tick
//   a message        Membership::receive; what it returns is sent
//   a seed           an address; who is there is found out by Rpc::meet before the first message,
//                    and again when messages to it cannot be sent
//   a node heard of  is introduced to the Rpc at the address that it says of itself
//
// Messages are one-way, and lost without harm. One that a node sends in the name of another, or
// that does not decode, is refused and counted.
//
// The generation is the wall clock's second at the start: a later life has a later one, and where
// the clock went back Gossip raises it.
//
// Core affinity: the core of its Runtime, which is the Rpc's.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/log.h"
#include "base/prng.h"
#include "base/result.h"
#include "membership/application_state.h"
#include "membership/cluster_view.h"
#include "membership/failure_detector.h"
#include "membership/membership.h"
#include "model/node_id.h"
#include "rpc/rpc.h"
#include "runtime/address.h"
#include "runtime/line_budget.h"
#include "runtime/runtime.h"
#include "runtime/stop_token.h"
#include "runtime/task.h"
#include "runtime/task_group.h"
#include "runtime/time.h"

namespace helenus::membership {

class GossipService {
 public:
  static constexpr std::size_t kSeedsMax = 64;

  struct Options {
    std::string cluster;                    // the Rpc's
    std::vector<runtime::Address> seeds{};  // kSeedsMax at most; this node may be among them
    runtime::Duration interval = std::chrono::seconds(1);
    std::uint32_t ticks = 4;  // of the detector in an interval; at least 1
    runtime::Duration meet_timeout = std::chrono::seconds(3);
    GossipLimits limits{};
  };

  // Called on this object's core; quick. A listener is for ever: what it refers to outlives this.
  using EventListener = std::function<void(const Event&)>;
  using StateListener =
      std::function<void(model::NodeId node, StateKey key, const base::Bytes& value)>;

  struct Statistics {
    std::uint64_t rounds = 0;
    std::uint64_t messages_sent = 0;
    std::uint64_t bytes_sent = 0;
    std::uint64_t messages_dropped = 0;  // nobody could be reached, or too much waits
    std::uint64_t messages_refused = 0;  // of another cluster, in another's name, or garbage
  };

  // Requires: the Rpc outlives this, and its start() tells where others reach this node.
  GossipService(runtime::Runtime& runtime, rpc::Rpc& rpc, Options options,
                std::unique_ptr<FailureDetector> detector);
  GossipService(const GossipService&) = delete;
  GossipService& operator=(const GossipService&) = delete;

  // Serves rpc::verbs::kGossip, and begins. Say who this node is before. Requires: once; nobody
  // serves that verb yet; this outlives the Rpc's stop().
  void start();
  // Returns when nothing is under way. Also when it was never started.
  runtime::Task<void> stop();

  // Says something of this node; see Gossip::set.
  base::Result<void> set(StateKey key, base::Bytes value) {
    return membership_.set(key, std::move(value));
  }
  // What was said is to be known before the next round; see Membership::spread. Nothing before the
  // start, which tells everything.
  void spread();
  // Opens exchanges with nodes that may be there; see Membership::greet. Requires: started; they
  // were introduced to the Rpc.
  void greet(std::vector<model::NodeId> nodes);
  // That node is no more; its return under the same id is not believed. Requires: not this one.
  void forget(model::NodeId node);

  void on_event(EventListener listener) { event_listeners_.push_back(std::move(listener)); }
  void on_state(StateListener listener) { state_listeners_.push_back(std::move(listener)); }

  // When a beat of its heart was heard of last, from whomever; a life that is news counts as one.
  // None if nothing is known of it.
  std::optional<runtime::MonotonicTime> last_beat(model::NodeId node) const;
  const Membership& membership() const { return membership_; }
  const ClusterView& view() const { return membership_.view(); }
  const Statistics& statistics() const { return statistics_; }

 private:
  struct SeedContact {
    runtime::Address address;
    std::optional<model::NodeId> node = std::nullopt;  // not met yet
    bool is_meeting = false;
    std::string last_logged = {};  // why it was not reached, as the log has it
  };

  runtime::Task<void> run();
  runtime::Task<base::Result<base::Bytes>> handle(rpc::Incoming incoming);
  void act_on(const Output& output);
  void take(const Progress& progress);
  // Whether it could be sent.
  bool send(model::NodeId to, rpc::Payload message);
  void send_to_seed(std::size_t seed, rpc::Payload message);
  runtime::Task<void> meet_and_send(std::size_t seed, rpc::Payload message);

  runtime::Runtime& runtime_;
  rpc::Rpc& rpc_;
  const Options options_;
  base::Logger log_;
  runtime::LineBudget lines_;  // about messages, which others send as many of as they like
  base::Prng prng_;
  Membership membership_;
  std::vector<SeedContact> seeds_;
  std::map<model::NodeId, runtime::MonotonicTime> beats_;
  std::vector<EventListener> event_listeners_;
  std::vector<StateListener> state_listeners_;
  Statistics statistics_;
  bool started_ = false;
  runtime::StopSource stopping_;
  runtime::TaskGroup tasks_;
};

}  // namespace helenus::membership
