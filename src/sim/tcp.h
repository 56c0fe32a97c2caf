// Tcp: the byte streams between machines, made of packets that may get lost. A small, honest
// model of what kernels do:
//
//   handshake    syn, syn+ack, ack; refused by a reset where nobody listens; a syn that finds no
//                answer is sent again, and given up after a while
//   data         segments with sequence numbers, cumulative acknowledgements, a receive window;
//                what arrives early waits for what is missing; what is not acknowledged in time is
//                sent again, less and less often, until the connection is given up
//   back-pressure a receive buffer that is full closes the window, a send buffer that is full
//                makes the writer wait
//   sign of life an accepted connection of a listener that asks for it is probed, and broken when
//                nothing comes back for long
//   end          fin for each half; a reset when somebody closes with bytes unread, or when a
//                packet finds no connection
//
// The kernel outlives the process: a killed process's connections are closed by its kernel, and
// what was accepted for sending is still sent. A machine without power says nothing; its peers
// find out when they send, or never.
//
// Packets do not carry bytes. They name a stretch of the sender's stream, whose bytes stay in its
// send buffer until they are acknowledged, and are copied from there on arrival. An endpoint's
// memory therefore stays until no packet of it is under way.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "runtime/address.h"
#include "runtime/transport.h"
#include "sim/byte_ring.h"
#include "sim/network.h"
#include "sim/world_time.h"

namespace helenus::sim {

class Core;
class SimListener;
class SimStream;
class Tcp;

// A connect under way.
class Connecting final : public runtime::Operation<void> {
 public:
  Connecting(runtime::Runtime& runtime, Tcp& tcp, EndpointId endpoint, runtime::Until until)
      : Operation(runtime, std::move(until)), tcp_(tcp), endpoint_(endpoint) {}

 private:
  void start() override;
  void cancel() override;
  Tcp& tcp_;
  EndpointId endpoint_;
};

// One side of a connection.
struct Endpoint {
  enum class State : std::uint8_t {
    free,        // nobody's
    connecting,  // syn sent
    accepting,   // syn received, or in the queue of a listener
    open,
    gone,  // no longer on the network: broken or ended; memory in use
  };
  struct Stretch {
    std::uint64_t begin;
    std::uint64_t end;
  };

  EndpointId id = 0;
  EndpointId peer = 0;
  EndpointId answered_by = 0;  // who took up our syn, for a syn that comes twice
  MachineId machine = 0;
  MachineId peer_machine = 0;
  State state = State::free;
  Core* core = nullptr;  // null once the process is gone
  runtime::Address local_address;
  runtime::Address peer_address;

  // The application's side. An endpoint is attached while somebody may use it.
  bool attached = false;
  SimStream* stream = nullptr;
  Connecting* connecting = nullptr;
  runtime::Stream::Read* read = nullptr;
  runtime::Stream::Write* write = nullptr;
  std::size_t write_piece = 0;   // how far the pending write has come
  std::size_t write_offset = 0;  // within that piece
  std::optional<base::Errc> broken;
  std::uint64_t listener = 0;  // whose queue it is in, while accepting
  std::optional<Duration> lost_after;
  WorldTime heard_at;  // a packet of the peer

  // Sending: the buffer holds what was written and is not acknowledged.
  ByteRing sent;
  std::uint64_t acknowledged = 0;  // the position of the buffer's first byte
  std::uint64_t next = 0;          // what to send next
  std::uint32_t window = 0;        // what the peer has room for
  bool end_wanted = false;
  bool end_sent = false;
  bool end_acknowledged = false;
  std::uint32_t attempts = 0;  // at sending the same thing
  std::uint32_t repeats = 0;   // acknowledgements that told nothing new
  // One round trip is timed at a time.
  std::uint64_t timed_position = 0;
  WorldTime timed_at = WorldTime::never();
  Duration round_trip{0};

  // Receiving.
  ByteRing received;
  std::uint64_t expected = 0;  // the next byte in order
  std::vector<Stretch> early;  // what is here beyond a gap, sorted, apart
  std::uint64_t end_at = UINT64_MAX;
  bool end_received = false;
  std::uint32_t window_told = 0;

  // Timer: the moment something is due, and the event that will look.
  WorldTime due = WorldTime::never();
  WorldTime again_at = WorldTime::never();  // of what waits to be acknowledged
  WorldTime event_at = WorldTime::never();
  WorldTime linger_until = WorldTime::never();
  WorldTime last_arrival;
  std::uint32_t packets_under_way = 0;

  std::uint64_t written_end() const { return acknowledged + sent.size(); }
};

struct TcpOptions {
  std::uint32_t send_buffer_size = 256 * 1024;
  std::uint32_t receive_buffer_size = 256 * 1024;
  Duration retransmit_min = 200ms;
  Duration retransmit_max = 30s;
  std::uint32_t attempts_max = 8;
  Duration syn_retransmit = 1s;
  std::uint32_t syn_attempts_max = 6;
  // How long a closed end waits for the other one.
  Duration linger = 60s;
  // A read takes what is there, or, this often, only part of it.
  double short_read_chance = 0.05;
};

class Tcp {
 public:
  Tcp(World& world, Network& network, TcpOptions options);
  ~Tcp();

  void add_machine();
  void on_packet(std::uint64_t packet_slot);
  void on_timer(std::uint64_t endpoint);

  // The process of that machine is gone; its kernel ends its connections.
  void on_kill(MachineId machine);
  // The machine is gone.
  void on_power_loss(MachineId machine);
  // Breaks one of the open connections between different machines, as a box in the middle would.
  // False if there is none.
  bool reset_one();
  std::size_t open_count() const;

  // For SimTransport. Which machine an address belongs to, as seen from `from`.
  std::optional<MachineId> machine_at(MachineId from, const runtime::Address& address) const;
  base::Result<std::unique_ptr<runtime::Listener>> listen(Core& core, runtime::Address address,
                                                          runtime::ListenOptions options);
  // Makes an endpoint that has not yet sent anything. `from` is an address of the core's machine.
  base::Result<EndpointId> prepare(Core& core, const runtime::Address& to, MachineId to_machine,
                                   std::optional<runtime::Address> from);
  void start_connecting(EndpointId endpoint, Connecting& operation);
  // Ends a connect that nobody waits for any more.
  void abandon(EndpointId endpoint);
  std::unique_ptr<runtime::Stream> make_stream(EndpointId endpoint);

  // For SimStream.
  void start_read(Endpoint& endpoint, runtime::Stream::Read& read);
  void start_write(Endpoint& endpoint, runtime::Stream::Write& write);
  void shutdown_write(Endpoint& endpoint);
  // The application lets go.
  void detach(Endpoint& endpoint);
  // For SimListener.
  void close(SimListener& listener);

 private:
  friend class SimListener;

  struct Host {
    std::vector<SimListener*> listeners;
    std::uint16_t next_port = 0;
  };

  Endpoint& make_endpoint(Core& core);
  Endpoint* find(EndpointId id);
  Endpoint& slot_of(EndpointId id) { return endpoints_[id & UINT32_MAX]; }
  void free_if_unused(Endpoint& endpoint);
  bool port_taken(MachineId machine, std::uint16_t port) const;
  std::uint16_t free_port(MachineId machine);
  static bool covers(const runtime::Address& bound, const runtime::Address& wanted);

  void transmit(Endpoint& endpoint, Packet packet);
  void send_flags(Endpoint& endpoint, std::uint8_t flags);
  void send_acknowledgement(Endpoint& endpoint);
  void send_segment(Endpoint& endpoint, std::uint64_t position, std::uint32_t size);
  void answer_with_reset(const Packet& packet);
  void send_what_fits(Endpoint& endpoint);
  void send_again(Endpoint& endpoint);
  std::uint32_t room(const Endpoint& endpoint) const;
  Duration patience(const Endpoint& endpoint) const;
  void set_timer(Endpoint& endpoint, WorldTime due);
  void restart_timer(Endpoint& endpoint);
  void set_timer_of_open(Endpoint& endpoint);

  void deliver(const Packet& packet, Endpoint* sender);
  void on_syn(const Packet& packet, Endpoint& sender);
  void on_syn_answer(Endpoint& endpoint, const Packet& packet);
  void on_reset(Endpoint& endpoint);
  void on_acknowledgement(Endpoint& endpoint, const Packet& packet);
  void on_bytes(Endpoint& endpoint, const Packet& packet, const Endpoint& sender);
  void take_in_order(Endpoint& endpoint, const Endpoint& sender);
  // Hands the endpoint to its listener; false if that is gone, and so the endpoint.
  bool enqueue(Endpoint& endpoint);
  SimListener* listener_for(MachineId machine, const runtime::Address& address);

  void serve_read(Endpoint& endpoint);
  void fill_from_write(Endpoint& endpoint);
  // Ends the connection on this side with an error; the peer is not told.
  void break_off(Endpoint& endpoint, base::Errc error);
  void leave_network(Endpoint& endpoint);
  void leave_if_ended(Endpoint& endpoint);
  void close_by_kernel(Endpoint& endpoint);

  World& world_;
  Network& network_;
  const TcpOptions options_;
  std::deque<Endpoint> endpoints_;
  std::vector<std::uint32_t> free_;
  std::vector<Host> hosts_;
  std::uint64_t listeners_made_ = 0;
};

}  // namespace helenus::sim
