// Connection: one client of one server. Sends requests side by side over one stream, each on a
// stream id of its own, and hands each answer to the request that waits for it.
//
//   open() ── OPTIONS, STARTUP ──▶ open ── broken, silent for too long, close() ──▶ closed
//
// A closed connection stays closed: whoever wants another one opens it (Session does). Nothing is
// sent twice. A request whose wait was cut after it was sent keeps its stream id until the server
// answers; a server that owes too many such answers is given up.
//
// Bounded: requests in flight, bytes of requests that wait to be written, the size of a request and
// of a response. What a server sends is hostile: a frame that cannot be read ends the connection, a
// body that cannot be read fails its request.
//
// Core affinity: the core of its Runtime.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "client/request_error.h"
#include "client/result_set.h"
#include "client/statement.h"
#include "cql/protocol/frame.h"
#include "cql/protocol/request.h"
#include "cql/protocol/response.h"
#include "runtime/address.h"
#include "runtime/event.h"
#include "runtime/gate.h"
#include "runtime/operation.h"
#include "runtime/runtime.h"
#include "runtime/stop_token.h"
#include "runtime/task.h"
#include "runtime/task_group.h"
#include "runtime/transport.h"
#include "runtime/wait_queue.h"

namespace helenus::client {

struct ConnectionOptions {
  // Used if the server offers it.
  cql::protocol::Compression compression = cql::protocol::Compression::none;
  // The keyspace of statements that name none.
  std::string keyspace = {};
  std::string driver_name = "helenus-client";
  std::string driver_version = "1";
  // Requests sent or waiting to be sent, those given up included. At most kRequestsInFlightCap.
  std::size_t requests_in_flight_max = 1024;
  // Of them, those that were given up and that the server still owes an answer.
  std::size_t answers_owed_max = 512;
  // The size of one request, and of all that wait to be written.
  std::size_t request_size_max = cql::protocol::kBodySizeMaxDefault;
  std::size_t bytes_waiting_max = std::size_t{64} << 20;
  // The size of one response, plain. At most cql::protocol::kBodySizeCap.
  std::size_t response_size_max = std::size_t{64} << 20;
  // How long the server may take to take what is written.
  runtime::Duration write_timeout = std::chrono::seconds(10);
  // After this much silence the server is asked for a sign of life, and given up if it sends
  // nothing at all for the other.
  runtime::Duration heartbeat_interval = std::chrono::seconds(10);
  runtime::Duration heartbeat_timeout = std::chrono::seconds(5);
};

class Connection {
 public:
  static constexpr std::size_t kRequestsInFlightCap = 32000;
  // What the server said it supports: "COMPRESSION" to "lz4", "snappy".
  using Supported = cql::protocol::SupportedMessage;
  // Called from the event loop for each event that was registered for. It does not destroy the
  // connection.
  using EventSink = std::function<void(const cql::protocol::Event&)>;

  // Connects and starts up. Errors: those of Transport::connect; timeout, cancelled; refused with
  // the server's words; connection_lost, closed, corrupt; unsupported (it wants credentials).
  static runtime::Task<base::Result<std::unique_ptr<Connection>>> open(runtime::Runtime& runtime,
                                                                       runtime::Address address,
                                                                       ConnectionOptions options,
                                                                       runtime::Until until,
                                                                       EventSink on_event = {});
  // Requires: stop() returned, or the core has halted.
  ~Connection() = default;
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  runtime::Task<RequestResult<ResultSet>> execute(Statement statement, RequestOptions options,
                                                  runtime::Until until);
  runtime::Task<RequestResult<Prepared>> prepare(std::string text, runtime::Until until);
  // From now on the EventSink is called for events of these kinds.
  runtime::Task<RequestResult<void>> register_for(std::vector<cql::protocol::EventKind> kinds,
                                                  runtime::Until until);

  bool is_open() const { return !closed_by_.has_value(); }
  // Why it is closed. Null if it is open.
  const base::Error* closed_by() const { return closed_by_ ? &*closed_by_ : nullptr; }
  // Errors: timeout, cancelled.
  runtime::Task<base::Result<void>> wait_closed(runtime::Until until);
  // At once: requests that were sent end unknown, others not sent. Harmless when repeated.
  void close();
  // The same, and returns when nothing runs here any more and every caller has left.
  runtime::Task<void> stop();

  runtime::Address address() const { return address_; }
  const Supported& supported() const { return supported_; }
  // Requests sent or waiting, those given up included.
  std::size_t requests_in_flight() const { return pending_.size(); }
  std::size_t answers_owed() const { return answers_owed_; }

 private:
  // Waits for the answer to one request. It lives in the frame of whoever awaits it.
  class Call final : public runtime::Operation<cql::protocol::DecodedResponse> {
   public:
    // The request borrows from the frame that this lives in.
    Call(Connection& connection, cql::protocol::Request request, runtime::Until until)
        : Operation(connection.runtime_, std::move(until)),
          connection_(connection),
          request_(std::move(request)) {}
    bool was_sent() const { return sent_; }

   private:
    friend class Connection;
    void start() override { connection_.begin(*this); }
    void cancel() override { connection_.abandon(*this); }

    Connection& connection_;
    cql::protocol::Request request_;
    std::int16_t stream_ = 0;
    bool sent_ = false;
  };

  // A stream id that is taken.
  struct Pending {
    Call* call = nullptr;  // null: nobody waits for the answer any more
    bool sent = false;
  };
  struct Waiting {
    std::int16_t stream = 0;
    base::Bytes frame;
  };

  Connection(runtime::Runtime& runtime, std::unique_ptr<runtime::Stream> stream,
             ConnectionOptions options, EventSink on_event);

  runtime::Task<RequestResult<void>> start_up(runtime::Until until);
  // The answer, ERROR apart. The request borrows from the caller's frame.
  runtime::Task<RequestResult<cql::protocol::DecodedResponse>> ask(cql::protocol::Request request,
                                                                   runtime::Until until);
  void begin(Call& call);
  void abandon(Call& call);
  std::int16_t take_stream();
  void release_stream(std::int16_t stream);
  base::Result<base::Bytes> encode(const cql::protocol::Request& request) const;
  void enqueue(std::int16_t stream, base::Bytes frame);

  runtime::Task<void> write_requests();
  std::vector<base::Bytes> take_waiting();
  runtime::Task<void> read_responses();
  // Takes what has come. Errors: corrupt.
  base::Result<void> take_frames();
  base::Result<void> on_frame(const cql::protocol::Frame& frame);
  base::Result<void> on_refusal(const cql::protocol::FrameRefusal& refusal);
  base::Result<void> on_event(const cql::protocol::Frame& frame);
  // Takes the request of a stream out. Errors: corrupt, if none was sent on it.
  base::Result<Call*> take_pending(std::int16_t stream);
  base::Result<cql::protocol::DecodedResponse> decode(const cql::protocol::Frame& frame) const;
  // When a silent server is asked for a sign of life, or given up.
  runtime::MonotonicTime silent_until() const;
  // Errors: timeout, if it was asked before.
  base::Result<void> on_silence();
  void break_off(base::Error why);

  runtime::Runtime& runtime_;
  const ConnectionOptions options_;
  const EventSink on_event_;
  const std::unique_ptr<runtime::Stream> stream_;
  const runtime::Address address_;
  Supported supported_;
  cql::protocol::Compression compression_ = cql::protocol::Compression::none;
  bool compresses_requests_ = false;

  std::optional<base::Error> closed_by_;
  runtime::Event closed_;
  cql::protocol::FrameReader reader_;
  runtime::MonotonicTime heard_at_;
  // A sign of life was asked for at that moment, and nothing came since.
  std::optional<runtime::MonotonicTime> heartbeat_at_;
  std::optional<std::int16_t> heartbeat_stream_;

  std::map<std::int16_t, Pending> pending_;
  std::vector<std::int16_t> free_streams_;
  std::int16_t next_stream_ = 0;  // those from here on were never taken
  std::size_t answers_owed_ = 0;
  std::deque<Waiting> waiting_;
  std::size_t bytes_waiting_ = 0;  // what is being written included

  runtime::WaitQueue work_;
  runtime::Gate gate_;
  runtime::StopSource stopping_;
  runtime::TaskGroup tasks_;
};

}  // namespace helenus::client
