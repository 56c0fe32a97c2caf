// Connection: one client of the CQL protocol, between a Stream and a RequestHandler.
//
//                     ┌─ STARTUP, OPTIONS, REGISTER, malformed: answered here ─┐
//   read ▶ FrameReader┤                                                        ├▶ ResponseQueue ▶
//   write
//                     └─ QUERY, PREPARE, EXECUTE, BATCH ▶ handler (many) ──────┘
//
// Requests run side by side; their answers are written in the order they complete, all that are
// there in one write. What a client can make us hold is bounded by the admission (admission.h), and
// how long it can make us wait by timeouts: the connection is closed when
//
//   a frame lies frame_timeout behind bytes_per_second_min, or nothing more of it comes for
//   stall_timeout; nothing was heard of the client, or this core stood still, for lost_after;
//   answers wait longer than write_timeout and go more slowly than
//   bytes_per_second_min; no STARTUP comes for startup_timeout
//
// A body that is not admitted waits for room_timeout at most, in which it is not read.
//
// A connection that is idle costs its input buffer of 4 KiB. One that breaks stops its requests and
// goes when they have ended.
//
// Core affinity: that of the stream.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/bytes.h"
#include "cql/protocol/frame.h"
#include "cql/protocol/request.h"
#include "cql/protocol/response.h"
#include "cql/protocol/segment.h"
#include "cql/server/admission.h"
#include "cql/server/request_handler.h"
#include "cql/server/response_queue.h"
#include "cql/server/server_statistics.h"
#include "cql/server/standstill_watch.h"
#include "runtime/stop_token.h"
#include "runtime/task.h"
#include "runtime/task_group.h"
#include "runtime/transport.h"
#include "runtime/wait_queue.h"

namespace helenus::cql {

// How long a client may make a connection wait.
struct ConnectionTimeouts {
  runtime::Duration startup_timeout = std::chrono::seconds(60);
  // How far a frame that is coming in may lie behind the least rate. What comes faster earns no
  // time: a body that is there but for its end has no longer than this for the end. So a body of n
  // bytes is there, or gone, after frame_timeout and n / bytes_per_second_min at most.
  runtime::Duration frame_timeout = std::chrono::seconds(30);
  // From one part of a frame to the next.
  runtime::Duration stall_timeout = std::chrono::seconds(15);
  // How long, in all, the reading of a body stops when there is no room for it.
  runtime::Duration room_timeout = std::chrono::seconds(5);
  // For each kWriteSizeMax bytes, and for all answers since last none waited; the time in which
  // those bytes go at the least rate is added to the latter.
  runtime::Duration write_timeout = std::chrono::seconds(30);
  std::size_t bytes_per_second_min = std::size_t{32} << 10;
  // How long requests may go on when the client has ended its half of the stream.
  runtime::Duration half_closed_timeout = std::chrono::seconds(10);
  // How long, and for how many bytes, a connection that we end is read on, so that the client gets
  // to read its last answers.
  runtime::Duration linger_timeout = std::chrono::seconds(5);
  std::size_t linger_size_max = std::size_t{1} << 20;
  // How long a client may give no sign of life, and this core stand still: after that what clients
  // sent before is not executed any more, as they may have given it up. Nor is what would change
  // data and waited here for so long, since others were executed.
  runtime::Duration lost_after = std::chrono::seconds(3);
};

// What the connections of one core share. It outlives them.
struct ConnectionContext {
  runtime::Runtime& runtime;
  RequestHandler& handler;
  Admission& admission;
  ServerStatistics& statistics;
  const protocol::Response& supported;  // the answer to OPTIONS
  const ConnectionTimeouts& timeouts;
  StandstillWatch& standstill;
};

class Connection {
 public:
  static constexpr std::size_t kWriteSizeMax = std::size_t{1} << 20;
  // What a request takes besides its body.
  static constexpr std::size_t kRequestOverhead = 512;

  // So many requests are begun before others have their turn, and before it is looked how much of
  // the answers waits: a client that sends thousands at once and reads nothing is noticed early.
  static constexpr std::size_t kRequestsPerTurn = 64;
  // So many that were answered without waiting come between looks whether they took all of the
  // turn.
  static constexpr std::size_t kAnswersPerLook = 16;
  // Of a request or an answer whose body is larger, unpacked, it is looked at once.
  static constexpr std::size_t kSmallBodyMax = std::size_t{16} << 10;
  // How often a body that waits for room looks for it: it may become free on any core.
  static constexpr runtime::Duration kRoomRetryInterval = std::chrono::milliseconds(20);

  // With a refusal its first request is answered with that, and that is all.
  Connection(const ConnectionContext& context, std::unique_ptr<runtime::Stream> stream,
             std::uint64_t id, std::optional<Refusal> refusal = std::nullopt);
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // Serves the client until it leaves, breaks, or is told to go. When it returns no request is
  // under way, and the stream is closed. Once.
  runtime::Task<void> run();

  // An orderly end: no further request is read, those under way are answered, then it closes.
  void drain() { draining_.request_stop(); }
  // The end now: requests are stopped, answers not written are dropped.
  void abort() { break_off(); }

  // Sends an encoded event if the client subscribed to its kind. A client that has not taken what
  // was sent before loses its connection rather than the event: it will ask anew when it returns.
  void send_event(protocol::EventKind kind, const base::Bytes& frame);

  const Session& session() const { return session_; }
  std::uint64_t requests_served() const { return requests_served_; }
  std::size_t requests_under_way() const { return requests_under_way_; }
  std::size_t bytes_outgoing() const { return outgoing_.size() + bytes_in_write_; }

 private:
  enum class Phase : std::uint8_t { fresh, ready };

  // Why taking frames pauses.
  enum class Pause : std::uint8_t { needs_bytes, needs_capacity, needs_room, gives_way, ends };

  // A request about data.
  struct PendingRequest {
    std::int16_t stream;
    runtime::MonotonicTime at;
  };

  runtime::Task<void> read_requests();
  // False when it is to end.
  runtime::Task<bool> pause_reading(Pause pause);
  runtime::Task<void> serve(PendingRequest pending, runtime::Task<protocol::Response> answering,
                            Admission::RequestCharge charge);
  void answer_served(const PendingRequest& pending, protocol::Response response);
  runtime::Task<void> write_answers();
  runtime::Task<void> linger();

  Pause take_frames();
  // Gives the reader what segments have brought. False if they have brought nothing.
  base::Result<bool> feed_reader();
  bool nothing_held() const;
  // Whether it is a frame of the connection's version.
  bool fits_version(const protocol::FrameHeader& header);
  void begin_segments();
  bool has_capacity() const { return context_.admission.may_read(load()); }
  Admission::Load load() const {
    return {.requests = requests_under_way_,
            .request_bytes = request_bytes_,
            .response_bytes = bytes_outgoing()};
  }
  void wake_reader();
  runtime::MonotonicTime read_deadline() const;
  void note_frame_start();
  void note_frame_bytes(std::size_t bytes);
  // Charges what is there of the body that is coming in. False if it must wait for that.
  bool took_long(const protocol::Frame& frame);
  bool charge_body();
  runtime::Duration time_for(std::uint64_t bytes) const;
  void on_frame(const protocol::Frame& frame);
  void on_request(protocol::Request&& request, Admission::RequestCharge charge);
  void note_arrival(std::size_t bytes, std::size_t room);
  void refuse(std::int16_t stream, protocol::ErrorCode code, std::string message);
  void refuse(std::int16_t stream, Refusal refusal);
  protocol::Response start_up(const protocol::StartupRequest& request);
  protocol::Response register_for(const protocol::RegisterRequest& request);
  // What is wrong with a request of that kind at this time; nothing, usually.
  std::optional<std::string> out_of_turn(protocol::Opcode opcode) const;
  void answer(std::int16_t stream, protocol::Response response);
  void count_outgoing();
  void break_off();

  const ConnectionContext context_;
  const ConnectionTimeouts& timeouts_;
  const std::unique_ptr<runtime::Stream> stream_;
  const std::optional<Refusal> refusal_;
  Session session_;
  Phase phase_ = Phase::fresh;
  bool broken_ = false;
  bool no_more_answers_ = false;
  std::uint64_t requests_served_ = 0;
  std::size_t requests_under_way_ = 0;
  std::size_t request_bytes_ = 0;
  std::size_t bytes_in_write_ = 0;
  std::size_t answers_unlooked_ = 0;  // were answered at once since it was looked at the turn
  std::size_t bytes_counted_ = 0;     // of bytes_outgoing(), by the admission
  const runtime::MonotonicTime began_at_;
  // No byte that waits in the reader came before. Reading pauses while there is no capacity: what
  // is read after that may have come when the pause began.
  runtime::MonotonicTime came_at_;
  std::optional<runtime::MonotonicTime> unread_since_;
  // When the frame that is coming in will lie too far behind; none between frames. Time in which we
  // do not read does not count.
  std::optional<runtime::MonotonicTime> frame_due_;
  std::uint64_t frames_taken_ = 0;
  std::uint64_t frame_number_ = 0;        // frames_taken_ when it began
  runtime::Duration waited_for_room_{0};  // of its body
  protocol::FrameReader reader_;
  // Of version 5, once it has started: what is read, and what of a payload the reader has not yet.
  std::optional<protocol::SegmentReader> segments_;
  base::Bytes payload_;
  std::int16_t incoming_stream_ = 0;  // of the frame that is coming in
  Admission::RequestCharge partial_;  // for the frame that is coming in
  Admission::BodyCharge coming_in_;   // likewise, until it is there
  ResponseQueue outgoing_;
  runtime::StopSource draining_;  // reading ends
  runtime::StopSource aborting_;  // requests and writing end
  runtime::WaitQueue capacity_;   // the reader waits here
  runtime::WaitQueue work_;       // the writer waits here
  runtime::TaskGroup requests_;
  runtime::TaskGroup writer_;
};

}  // namespace helenus::cql
