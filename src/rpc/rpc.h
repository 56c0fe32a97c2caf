// Rpc: how a node talks with the others. One object listens, dials, and knows the peers; gossip,
// consensus and replication speak through it and never see a connection.
//
//   Rpc rpc(runtime, {.cluster = "music", .node = id});
//   rpc.serve(kGreet, [&](NodeId from, Greeting greeting, Until until) { return greet(...); });
//   rpc.start(address);
//   const auto seed = co_await rpc.meet(contact_point, until);            who is there?
//   const auto reply = co_await rpc.call(*seed, kGreet, greeting, until);
//   const auto queued = rpc.tell(*seed, kNews, news);
//   co_await rpc.stop();
//
// What a call promises:
//   - Its deadline travels with it, as the time that remains; the handler's Until ends with it. A
//     call that is stopped tells the peer, whose handler's Until is stopped. Either way the call
//     ends at once, and an answer that still comes is dropped.
//   - It is sent at most once. The error tells what is known:
//       overloaded, unavailable, closed, invalid_argument   from here: it was never sent
//       connection_lost, timeout, cancelled                 in doubt: it may have run
//       anything else                                       the handler, or the peer, said so:
//         overloaded (its limits), unsupported (nobody serves that verb), corrupt (it could not be
//         decoded), unavailable (the peer is stopping)
//     What the peer said begins with "node <id> answered:".
//   - A peer that cannot be reached fails calls at once while we pause between dials, so that
//   nobody
//     waits for a dead node; a dial that is under way is waited for.
// A one-way message that was taken may still be lost. Messages to one peer in one lane are handed
// to their handlers in the order sent, and side by side: a handler that waits is overtaken.
//
// What is held for a peer is limited (options.h), and what is beyond is refused at once.
//
// A call to the own node goes to its handler without a connection.
//
// One id, one node. A peer that connects in a new life (it was started again) is let in; if the one
// before it is still heard of when two_lives_max has passed, there are two nodes under one id, as
// when a data folder was copied. Then the later one is refused, and is told that it must not serve.
//
// Core affinity: the core of its Runtime. Handlers run there; they may go to other cores.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/log.h"
#include "base/result.h"
#include "model/node_id.h"
#include "rpc/handshake.h"
#include "rpc/inbound.h"
#include "rpc/message.h"
#include "rpc/options.h"
#include "rpc/outbound.h"
#include "rpc/statistics.h"
#include "rpc/verb.h"
#include "runtime/gate.h"
#include "runtime/line_budget.h"
#include "runtime/operation.h"
#include "runtime/stop_token.h"
#include "runtime/task.h"
#include "runtime/task_group.h"
#include "runtime/transport.h"

namespace helenus::rpc {

// A peer, as people are shown it.
struct PeerInfo {
  model::NodeId node;
  std::optional<runtime::Address> address;
  // Of the connection that we dialled; none while there is none. By lane.
  std::array<std::optional<ProtocolVersion>, kLaneCount> versions;
};

class Rpc final : private InboundOwner {
 public:
  // Requires: a cluster name of 1 to kClusterNameSizeMax bytes.
  Rpc(runtime::Runtime& runtime, Options options);
  Rpc(const Rpc&) = delete;
  Rpc& operator=(const Rpc&) = delete;
  // Requires: stopped, or never used.
  ~Rpc() = default;

  // Listens. Calls and one-way messages may be sent without it. Errors: those of listening.
  // Requires: once, and not stopped.
  base::Result<void> start(const runtime::Address& address);
  // Takes no more, answers what is under way, sends what waits, for drain_timeout at most; then
  // ends every connection. No handler is at work and no call waits when it returns. For good.
  runtime::Task<void> stop();
  // The address in force. Requires: started.
  runtime::Address address() const { return listener_->address(); }
  model::NodeId node() const { return options_.node; }
  // Of the protocol, that this node speaks.
  VersionRange versions() const { return options_.versions; }

  // What is done about a verb; one handler each. Requests that come before find nobody.
  // The handler outlives the Rpc's stop(). Requires: nobody serves that verb yet.
  void serve(Verb verb, Handler handler);
  template <class Request, class Answer>
  void serve(Method<Request, Answer> method,
             std::type_identity_t<std::function<runtime::Task<base::Result<Answer>>(
                 model::NodeId from, Request request, runtime::Until until)>>
                 handler) {
    serve(method.verb, [handler = std::move(handler)](Incoming incoming) {
      return serve_typed<Request, Answer>(handler, std::move(incoming));
    });
  }

  // Where a node is. What it says itself in a handshake counts as much. Errors: overloaded
  // (peers_max), closed.
  base::Result<void> introduce(model::NodeId node, const runtime::Address& address);
  // Talks to that node no more: connections to it end, calls fail with Errc::unavailable, until it
  // is introduced again or dials us.
  void forget(model::NodeId node);
  // Dials an address and tells who is there, who is then introduced; the own id if it is this node.
  // Errors: those of connecting; refused, with the other side's reason; corrupt; overloaded.
  runtime::Task<base::Result<model::NodeId>> meet(runtime::Address address, runtime::Until until);
  // Whether a connection can be had to where that node is: one is made and closed, with nothing
  // said over it. A process that is held up can be reached, as the machine under it answers; one
  // that is gone cannot, nor a machine behind a broken link. Errors: those of connecting;
  // unavailable if it is not known where the node is; closed.
  runtime::Task<base::Result<void>> reach(model::NodeId node, runtime::Until until);

  // See above. Errors: as above; not_found does not come from here.
  runtime::Task<base::Result<base::Bytes>> call(model::NodeId to, Verb verb, Payload payload,
                                                runtime::Until until);
  // The same with a codec: an answer that does not decode is Errc::corrupt.
  template <class Request, class Answer>
  runtime::Task<base::Result<Answer>> call(model::NodeId to, Method<Request, Answer> method,
                                           std::type_identity_t<Request> request,
                                           runtime::Until until) {
    return call_with(to, method, Payload::of<Request>(std::move(request), options_.versions.newest),
                     std::move(until));
  }

  // The same of a request that is a payload already, made for versions().newest.
  template <class Request, class Answer>
  runtime::Task<base::Result<Answer>> call_with(model::NodeId to, Method<Request, Answer> method,
                                                Payload payload, runtime::Until until) {
    CO_TRY(const Reply reply, co_await ask(to, method.verb, std::move(payload), std::move(until)));
    co_return Codec<Answer>::decode(reply.payload, reply.version);
  }

  // Sends without waiting. Errors: overloaded, unavailable, closed, invalid_argument (too large).
  base::Result<void> tell(model::NodeId to, Verb verb, Payload payload);
  template <class Request, class Answer>
  base::Result<void> tell(model::NodeId to, Method<Request, Answer> method,
                          std::type_identity_t<Request> request) {
    return tell(to, method.verb,
                Payload::of<Request>(std::move(request), options_.versions.newest));
  }

  // Those known, in order of their ids.
  std::vector<PeerInfo> peers() const;
  // Null if nothing is known of it.
  const PeerStatistics* statistics_of_peer(model::NodeId node) const;
  const Statistics& statistics() const { return statistics_; }

  // That another node runs under this one's id, as a node of the cluster has proved to say: this
  // one must serve nobody. For good.
  const std::optional<base::Error>& id_taken() const { return id_taken_; }
  // Called once when that is so. What it refers to outlives the Rpc's stop().
  void on_id_taken(std::function<void()> listener) { on_id_taken_ = std::move(listener); }

 private:
  struct Peer {
    Peer(runtime::Runtime& runtime, const Self& self, model::NodeId node, const base::Logger& log);
    Outbound& in(Lane lane) { return lane == Lane::control ? control : data; }
    bool is_forgotten() const;

    std::optional<runtime::Address> address;
    // The life that connected last; the one before it, which should be over; and one that is not
    // let in since the other goes on.
    std::optional<std::uint64_t> life;
    std::optional<std::uint64_t> older_life;
    std::optional<std::uint64_t> refused_life;
    runtime::MonotonicTime life_began_at;
    PeerStatistics statistics;
    Outbound control;
    Outbound data;
  };

  template <class Request, class Answer>
  static runtime::Task<base::Result<base::Bytes>> serve_typed(
      const std::function<runtime::Task<base::Result<Answer>>(model::NodeId, Request,
                                                              runtime::Until)>& handler,
      Incoming incoming) {
    const ProtocolVersion version = incoming.version;
    CO_TRY(Request request, Codec<Request>::decode(incoming.payload, version));
    CO_TRY(const Answer answer,
           co_await handler(incoming.from, std::move(request), std::move(incoming.until)));
    co_return Codec<Answer>::encode(answer, version);
  }

  runtime::Task<base::Result<Reply>> ask(model::NodeId to, Verb verb, Payload payload,
                                         runtime::Until until);
  runtime::Task<base::Result<Reply>> ask_self(Verb verb, base::Bytes payload, runtime::Until until);
  base::Result<void> tell_self(Verb verb, base::Bytes payload);
  static runtime::Task<void> drop_result(runtime::Task<base::Result<base::Bytes>> handling);

  base::Result<Peer*> peer(model::NodeId node);
  Peer* find(model::NodeId node);
  bool make_room_for_peer();

  runtime::Task<void> accept_connections();
  void admit_stream(std::unique_ptr<runtime::Stream> stream);
  void evict_a_stranger();
  runtime::Task<void> serve_stream(std::uint64_t id, std::unique_ptr<runtime::Stream> stream);

  bool is_second_life(Peer& peer, const Hello& hello);
  void begin_life(Peer& peer, std::uint64_t life);
  void note_taken(const std::string& text);

  std::optional<Refusal> admit(const Hello& hello) override;
  PeerStatistics& statistics_of(model::NodeId node) override;
  const Handler* handler_of(std::uint16_t verb) override;
  void on_admitted(std::uint64_t connection, const Hello& hello) override;
  void on_ping(const Hello& hello) override;
  bool may_log_proof(const runtime::Address& address) override;
  bool may_log(Standing standing) override;

  runtime::Runtime& runtime_;
  Options options_;
  const Self self_;
  const base::Logger log_;
  Statistics statistics_;
  std::map<std::uint16_t, Handler> handlers_;
  std::map<model::NodeId, std::unique_ptr<Peer>> peers_;
  // They live in the frames of the tasks that serve them.
  std::map<std::uint64_t, Inbound*> inbounds_;
  std::uint64_t next_inbound_ = 1;
  // Those that have not shaken hands and were not told to go, by age.
  std::map<std::uint64_t, runtime::Address> strangers_;
  // When a line was written about an address that proved nothing.
  std::map<runtime::Address, runtime::MonotonicTime> proof_lines_;
  std::optional<base::Error> id_taken_;
  std::function<void()> on_id_taken_;
  runtime::LineBudget stranger_lines_;
  runtime::LineBudget peer_lines_;
  runtime::StopSource stopping_;  // no more of anything
  runtime::StopSource aborting_;  // handlers that the own node called
  std::unique_ptr<runtime::Listener> listener_;
  runtime::Gate calls_;
  runtime::TaskGroup tasks_;
};

}  // namespace helenus::rpc
