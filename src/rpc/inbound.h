// Inbound: one connection that a peer dialled, from its handshake to its end. Requests run side by
// side, each under its own deadline; their answers go in the order they come.
//
//   handler at its limit, or its bytes   the request is answered Errc::overloaded
//   answers that the peer does not take  we stop reading from it, and large ones become errors
//   its time is over                     it is not executed: no handler, no answer (R3)
//   a frame that is none                 the connection ends, with a line in the log
//
// When the connection ends its handlers are stopped, and it goes when they have ended.
//
// Core affinity: that of the stream.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>

#include "base/log.h"
#include "base/result.h"
#include "model/node_id.h"
#include "rpc/frame.h"
#include "rpc/handshake.h"
#include "rpc/pipe.h"
#include "rpc/statistics.h"
#include "runtime/operation.h"
#include "runtime/stop_token.h"
#include "runtime/task.h"
#include "runtime/task_group.h"
#include "runtime/wait_queue.h"

namespace helenus::rpc {

// A request or a one-way message, as its handler gets it.
struct Incoming {
  model::NodeId from;
  ProtocolVersion version;
  // Shares memory with its neighbours on the wire: compact() what is kept.
  base::Bytes payload;
  // Ends at the caller's deadline, when it cancels, and when the connection breaks.
  runtime::Until until;
  // No: a one-way message, whose answer is dropped.
  bool wants_answer = true;
};

using Handler = std::function<runtime::Task<base::Result<base::Bytes>>(Incoming incoming)>;

// What connections ask of whoever accepted them. It outlives them.
class InboundOwner {
 public:
  virtual std::optional<Refusal> admit(const Hello& hello) = 0;
  // The counters of a peer that was admitted; they outlive the connection.
  virtual PeerStatistics& statistics_of(model::NodeId peer) = 0;
  // Null if nobody serves that verb.
  virtual const Handler* handler_of(std::uint16_t verb) = 0;
  // The connection is no stranger's any more.
  virtual void on_admitted(std::uint64_t connection, const Hello& hello) = 0;
  // The peer is alive in that life, some moments after it was admitted.
  virtual void on_ping(const Hello& hello) = 0;
  // Whether a line may be written about somebody at that address who has proved nothing.
  virtual bool may_log_proof(const runtime::Address& address) = 0;
  // Whether one more line may be written about connections of that kind.
  enum class Standing : std::uint8_t { stranger, peer };
  virtual bool may_log(Standing standing) = 0;

 protected:
  ~InboundOwner() = default;
};

class Inbound final : private FrameSource {
 public:
  // `id` is the owner's name for it.
  Inbound(runtime::Runtime& runtime, const Self& self, InboundOwner& owner, std::uint64_t id,
          Statistics& statistics, const base::Logger& log, std::unique_ptr<runtime::Stream> stream);
  ~Inbound() = default;
  Inbound(const Inbound&) = delete;
  Inbound& operator=(const Inbound&) = delete;

  // Serves until the peer leaves, breaks, or is told to go. When it returns no handler is at work
  // and the stream is closed. Once.
  runtime::Task<void> run();

  // An orderly end: the peer is told, what is under way is answered, then it closes.
  void drain();
  // The end now.
  void abort(base::Error why);

  bool is_admitted() const { return hello_.has_value(); }
  // Requires: is_admitted().
  const Hello& hello() const { return *hello_; }
  runtime::Address peer_address() const { return pipe_.peer_address(); }

 private:
  // A request at work.
  struct Work {
    explicit Work(const runtime::StopToken& parent) : stop(parent) {}
    runtime::StopSource stop;
    bool cancelled = false;
  };

  runtime::Task<base::Result<void>> shake_hands();
  // Asks for a proof. Returns the secret that it was made with; null if there is none to ask for.
  runtime::Task<base::Result<const ClusterSecret*>> challenge(Hello hello, runtime::Until until);
  // Proves the frame that it says last.
  runtime::Task<base::Result<void>> write_proved(Frame frame, const ClusterSecret* prover,
                                                 runtime::Until until);
  // With a prover, who is owed a proof as well.
  runtime::Task<base::Result<void>> refuse(Hello hello, Refusal refusal,
                                           const ClusterSecret* prover, runtime::Until until);
  void log_refusal(const Hello& hello, const Refusal& refusal);
  runtime::Task<void> serve();
  runtime::Task<base::Error> read_frames();
  runtime::Task<void> write_frames();
  runtime::Task<void> handle(std::uint64_t id, std::size_t size, runtime::MonotonicTime deadline,
                             runtime::Task<base::Result<base::Bytes>> handling);
  runtime::Task<void> hear(std::uint16_t verb, std::size_t size,
                           runtime::Task<base::Result<base::Bytes>> handling);

  std::optional<base::Error> on_frame(Frame frame);
  std::optional<base::Error> on_request(Request request);
  // Errors: corrupt, if our clock and what its sender thinks that it shows cannot both be right.
  base::Result<runtime::MonotonicTime> deadline_of(const Request& request) const;
  void on_one_way(OneWay message);
  void on_cancel(const Cancel& cancel);
  bool has_room(std::size_t bytes) const;
  void take_room(std::size_t bytes);
  void give_room(std::size_t bytes);
  void answer(std::uint64_t id, base::Result<base::Bytes> result);
  void send(Frame frame, std::size_t size);
  void log_end(const base::Error& why);
  bool may_log();
  void count_bytes();

  void fill(FrameBatch& batch) override;

  runtime::Runtime& runtime_;
  const Self& self_;
  InboundOwner& owner_;
  const std::uint64_t id_;
  Statistics& all_;
  const base::Logger& log_;
  Pipe pipe_;
  Transcript transcript_;  // of the handshake
  std::optional<Hello> hello_;
  PeerStatistics* peer_ = nullptr;
  ProtocolVersion version_;
  bool draining_ = false;
  std::optional<base::Error> broken_by_;
  runtime::MonotonicTime heard_at_;

  std::map<std::uint64_t, Work> at_work_;
  std::size_t handlers_ = 0;
  std::size_t handler_bytes_ = 0;
  struct Outgoing {
    Frame frame;
    std::size_t size;
  };
  std::deque<Outgoing> outgoing_;
  std::size_t outgoing_bytes_ = 0;

  runtime::StopSource over_;
  runtime::WaitQueue capacity_;  // the reader waits here
  runtime::TaskGroup tasks_;     // handlers, and the writer
};

}  // namespace helenus::rpc
