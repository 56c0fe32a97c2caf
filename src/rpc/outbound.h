// Outbound: what one node asks of another in one lane. Dials when something is to be sent, sends
// requests side by side over one connection, and hands each answer to the call that waits for it.
//
//   idle ──something to send──▶ dialling ──welcome──▶ open ──broken──▶ idle
//     ▲                            │ failed                             │ lived only briefly
//     └────── pause is over ── backing off ◀────────────────────────────┘
//
// A call shares the fate of the dial or the connection that it waits for; nothing is sent twice.
// While backing off calls fail at once, with the reason of the last failure. There is no timer for
// it: the first call after the pause dials.
//
// Core affinity: one core.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>

#include "base/log.h"
#include "base/result.h"
#include "rpc/frame.h"
#include "rpc/handshake.h"
#include "rpc/message.h"
#include "rpc/peer_clock.h"
#include "rpc/pipe.h"
#include "rpc/statistics.h"
#include "runtime/operation.h"
#include "runtime/stop_token.h"
#include "runtime/task.h"
#include "runtime/task_group.h"
#include "runtime/wait_queue.h"

namespace helenus::rpc {

// An answer, and the version it is written in.
struct Reply {
  base::Bytes payload;
  ProtocolVersion version;
};

class Outbound final : private FrameSource {
 public:
  // Awaited once. It lives in the frame of whoever awaits it.
  class Call final : public runtime::Operation<Reply> {
   public:
    Call(Outbound& outbound, std::uint16_t verb, Payload payload, runtime::Until until);

   private:
    friend class Outbound;
    void start() override { outbound_.begin(*this); }
    void cancel() override { outbound_.abandon(*this, cut_ == Cut::stop); }

    Outbound& outbound_;
    const std::uint16_t verb_;
    Payload payload_;
    const runtime::MonotonicTime deadline_;
    runtime::MonotonicTime began_at_;
    std::uint64_t id_ = 0;
    std::size_t bytes_waiting_ = 0;  // zero once written
    bool written_ = false;
  };

  // All of these outlive it.
  Outbound(runtime::Runtime& runtime, const Self& self, model::NodeId peer, Lane lane,
           PeerStatistics& statistics, const base::Logger& log);
  ~Outbound() = default;
  Outbound(const Outbound&) = delete;
  Outbound& operator=(const Outbound&) = delete;

  // Errors: timeout, cancelled; overloaded, unavailable, closed, invalid_argument (nothing was
  // sent); connection_lost (in doubt); and whatever the handler over there says.
  Call call(std::uint16_t verb, Payload payload, runtime::Until until) {
    return {*this, verb, std::move(payload), std::move(until)};
  }
  // Errors: overloaded, unavailable, closed, invalid_argument. Success says that it waits to be
  // sent, no more.
  base::Result<void> tell(std::uint16_t verb, Payload payload);

  // Where to dial from now on; nowhere if none, which ends the connection there is.
  void set_address(std::optional<runtime::Address> address);
  // The peer is alive: there is no reason to wait before the next dial.
  void forgive();

  // For good: takes no more, and calls fail with Errc::closed.
  void close();
  // The same, and returns when nothing runs here any more. If a connection is open, what waits is
  // sent before it ends, until `until`.
  runtime::Task<void> stop(runtime::Until until);

  bool is_open() const { return state_ == State::open; }
  bool is_idle() const { return tasks_.empty() && calls_.empty(); }
  // The version spoken. Requires: is_open().
  ProtocolVersion version() const { return version_; }

 private:
  enum class State : std::uint8_t { idle, dialling, open, ending };
  struct Item {
    std::uint64_t call = 0;  // zero for a one-way message
    std::uint16_t verb = 0;
    Payload payload;
  };

  void begin(Call& call);
  void abandon(Call& call, bool stopped);
  void release_bytes(Call& call);
  void finish(Call& call, base::Result<Reply> result);
  // Why something of that size cannot be taken now.
  std::optional<base::Error> obstacle(std::size_t size) const;
  base::Error too_large(std::size_t size) const;
  void want();
  void count_bytes(Pipe& pipe);

  runtime::Task<void> run();
  runtime::Task<void> connect_once();
  runtime::Task<void> talk(Pipe& pipe);
  runtime::Task<base::Error> read_frames(Pipe& pipe, runtime::StopToken stop);
  runtime::Task<void> write_frames(Pipe& pipe, runtime::StopToken stop);
  runtime::Task<void> send_pings(Pipe& pipe, runtime::StopToken stop);
  std::optional<base::Error> on_frame(Frame frame);
  // Whatever the peer made of it.
  void on_answered(std::uint64_t id, base::Result<Reply> result);
  void on_pong(const Pong& pong);

  void fill(FrameBatch& batch) override;
  void fill_urgent(FrameBatch& batch);
  void add_request(FrameBatch& batch, std::uint64_t id);
  bool has_something_to_write() const;
  void add_one_way(FrameBatch& batch, const Item& item);
  void break_off(base::Error why);
  void on_end(base::Error why, bool brief);
  void note_dial_failure(runtime::Address address, base::Error why);
  // Dials no more for a while; what waits fails.
  void back_off(base::Error why);
  // All calls and messages end: what was written is in doubt, the rest was never sent.
  void fail_all(const base::Error& why);

  runtime::Runtime& runtime_;
  const Self& self_;
  const model::NodeId peer_;
  const Lane lane_;
  PeerStatistics& statistics_;
  const base::Logger& log_;
  std::optional<runtime::Address> address_;

  State state_ = State::idle;
  bool stopped_ = false;
  bool leaving_ = false;  // the peer said goodbye
  ProtocolVersion version_;
  std::size_t peer_body_size_max_ = kFrameBodySizeMaxDefault;
  std::uint32_t failures_ = 0;  // in a row
  runtime::MonotonicTime retry_at_;
  base::Error last_failure_{base::Errc::unavailable};
  std::string last_logged_;

  // The connection that is open.
  Pipe* pipe_ = nullptr;
  std::optional<base::Error> broken_by_;
  std::uint64_t pings_ = 0;
  bool ping_wanted_ = false;
  bool ping_under_way_ = false;  // to the stream
  runtime::MonotonicTime ping_sent_at_;
  PeerClock peer_clock_;
  // Since when the peer owes us a sign of life: a ping went, and nothing came since. A ping that
  // waits behind a large request cannot be answered yet.
  std::optional<runtime::MonotonicTime> unanswered_since_;

  std::uint64_t next_id_ = 1;
  std::map<std::uint64_t, Call*> calls_;
  std::deque<Item> queue_;
  std::size_t one_way_waiting_ = 0;
  std::size_t bytes_waiting_ = 0;
  std::deque<std::uint64_t> cancels_;

  runtime::StopSource stopping_;
  runtime::WaitQueue drained_;
  runtime::TaskGroup tasks_;
};

}  // namespace helenus::rpc
