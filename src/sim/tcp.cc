#include "sim/tcp.h"

#include <algorithm>
#include <utility>

#include "sim/core.h"
#include "sim/machine.h"
#include "sim/sim_transport.h"
#include "sim/world.h"

namespace helenus::sim {

using base::Errc;
using base::Error;
using State = Endpoint::State;

namespace {

constexpr std::uint16_t kEphemeralPortMin = 32768;
constexpr std::uint16_t kEphemeralPortMax = 60999;
// As many acknowledgements that tell nothing new say that a segment is missing.
constexpr std::uint32_t kRepeatsThatTell = 3;
// Within the time after which a silent peer is lost.
constexpr int kProbes = 4;

}  // namespace

Tcp::Tcp(World& world, Network& network, TcpOptions options)
    : world_(world), network_(network), options_(options) {}

Tcp::~Tcp() = default;

void Tcp::add_machine() {
  hosts_.push_back({.listeners = {}, .next_port = kEphemeralPortMin});
}

// ---- Endpoints ----

Endpoint& Tcp::make_endpoint(Core& core) {
  std::uint32_t slot = 0;
  if (free_.empty()) {
    slot = static_cast<std::uint32_t>(endpoints_.size());
    endpoints_.emplace_back();
  } else {
    slot = free_.back();
    free_.pop_back();
  }
  Endpoint& reused = endpoints_[slot];
  const std::uint64_t generation = (reused.id >> 32) + 1;
  Endpoint fresh;
  fresh.id = (generation << 32) | slot;
  fresh.machine = core.machine().id();
  fresh.core = &core;
  fresh.attached = true;
  // The buffers keep their memory.
  fresh.sent = std::move(reused.sent);
  fresh.sent.clear();
  fresh.received = std::move(reused.received);
  fresh.received.clear();
  reused = std::move(fresh);
  return reused;
}

Endpoint* Tcp::find(EndpointId id) {
  if (id == 0) return nullptr;
  Endpoint& endpoint = slot_of(id);
  const bool alive =
      endpoint.id == id && endpoint.state != State::free && endpoint.state != State::gone;
  return alive ? &endpoint : nullptr;
}

void Tcp::free_if_unused(Endpoint& endpoint) {
  if (endpoint.state != State::gone || endpoint.attached || endpoint.packets_under_way > 0) return;
  endpoint.state = State::free;
  free_.push_back(static_cast<std::uint32_t>(endpoint.id & UINT32_MAX));
}

void Tcp::leave_network(Endpoint& endpoint) {
  endpoint.state = State::gone;
  endpoint.due = WorldTime::never();
  free_if_unused(endpoint);
}

void Tcp::leave_if_ended(Endpoint& endpoint) {
  if (endpoint.state == State::open && !endpoint.attached && endpoint.end_acknowledged &&
      endpoint.end_received) {
    leave_network(endpoint);
  }
}

void Tcp::break_off(Endpoint& endpoint, Errc error) {
  if (!endpoint.broken) endpoint.broken = error;
  if (endpoint.state == State::accepting) {
    // Nobody has seen it yet: the listener merely loses a candidate.
    Host& host = hosts_[endpoint.machine];
    const auto found = std::ranges::find(host.listeners, endpoint.listener, &SimListener::id);
    if (found != host.listeners.end()) (*found)->on_handshake_over();
    endpoint.attached = false;
  }
  Connecting* const connecting = std::exchange(endpoint.connecting, nullptr);
  runtime::Stream::Write* const write = std::exchange(endpoint.write, nullptr);
  const auto failure = [&] {
    return Error(*endpoint.broken, "{} with {}", endpoint.local_address, endpoint.peer_address);
  };
  if (connecting != nullptr) connecting->complete(Error(*endpoint.broken));
  if (write != nullptr) write->complete(failure());
  serve_read(endpoint);
  leave_network(endpoint);
}

std::size_t Tcp::open_count() const {
  return static_cast<std::size_t>(std::ranges::count(endpoints_, State::open, &Endpoint::state));
}

bool Tcp::reset_one() {
  std::vector<Endpoint*> candidates;
  for (Endpoint& endpoint : endpoints_) {
    if (endpoint.state == State::open && endpoint.machine != endpoint.peer_machine) {
      candidates.push_back(&endpoint);
    }
  }
  if (candidates.empty()) return false;
  Endpoint& chosen = *candidates[network_.stream().below(candidates.size())];
  Endpoint* const peer = find(chosen.peer);
  on_reset(chosen);
  if (peer != nullptr) on_reset(*peer);
  return true;
}

// ---- The life of machines ----

void Tcp::close_by_kernel(Endpoint& endpoint) {
  endpoint.read = nullptr;
  endpoint.write = nullptr;
  endpoint.connecting = nullptr;
  endpoint.core = nullptr;
  if (endpoint.stream != nullptr) std::exchange(endpoint.stream, nullptr)->on_detached();
}

void Tcp::on_kill(MachineId machine) {
  for (SimListener* listener : std::exchange(hosts_[machine].listeners, {})) {
    listener->on_detached();
  }
  for (Endpoint& endpoint : endpoints_) {
    if (endpoint.machine != machine || !endpoint.attached) continue;
    close_by_kernel(endpoint);
    detach(endpoint);
  }
}

void Tcp::on_power_loss(MachineId machine) {
  for (SimListener* listener : std::exchange(hosts_[machine].listeners, {})) {
    listener->on_detached();
  }
  for (Endpoint& endpoint : endpoints_) {
    if (endpoint.machine != machine || endpoint.state == State::free) continue;
    close_by_kernel(endpoint);
    endpoint.attached = false;
    leave_network(endpoint);
  }
}

// ---- Addresses and listeners ----

std::optional<MachineId> Tcp::machine_at(MachineId from, const runtime::Address& address) const {
  const std::string ip = address.ip_text();
  if (ip.starts_with("127.") || ip == "::1") return from;
  for (MachineId id = 0; id < world_.machine_count(); ++id) {
    const Machine& machine = world_.machine(id);
    const auto own =
        address.family() == runtime::Address::Family::v4 ? machine.address() : machine.address_v6();
    if (own.ip_bytes() == address.ip_bytes()) return id;
  }
  return std::nullopt;
}

namespace {

bool is_wildcard(const runtime::Address& address) {
  return std::ranges::all_of(address.ip_bytes(), [](char byte) { return byte == 0; });
}

}  // namespace

bool Tcp::covers(const runtime::Address& bound, const runtime::Address& wanted) {
  return bound.port() == wanted.port() &&
         (bound.ip_bytes() == wanted.ip_bytes() || is_wildcard(bound));
}

bool Tcp::port_taken(MachineId machine, std::uint16_t port) const {
  return std::ranges::any_of(hosts_[machine].listeners, [&](const SimListener* listener) {
    return listener->address().port() == port;
  });
}

std::uint16_t Tcp::free_port(MachineId machine) {
  Host& host = hosts_[machine];
  for (;;) {
    const std::uint16_t port = host.next_port;
    host.next_port =
        port == kEphemeralPortMax ? kEphemeralPortMin : static_cast<std::uint16_t>(port + 1);
    if (!port_taken(machine, port)) return port;
  }
}

base::Result<std::unique_ptr<runtime::Listener>> Tcp::listen(Core& core, runtime::Address address,
                                                             runtime::ListenOptions options) {
  const MachineId machine = core.machine().id();
  if (!is_wildcard(address) && machine_at(machine, address) != machine) {
    return Error(Errc::invalid_argument, "listening on {}: not an address of this machine",
                 address);
  }
  if (address.port() == 0) address = address.with_port(free_port(machine));
  for (const SimListener* other : hosts_[machine].listeners) {
    if (!covers(other->address(), address) && !covers(address, other->address())) continue;
    const bool sharing = options.shared_between_cores && other->shared();
    if (!sharing) return Error(Errc::address_in_use, "listening on {}", address);
  }
  auto listener = std::make_unique<SimListener>(core, *this, ++listeners_made_, address, options);
  hosts_[machine].listeners.push_back(listener.get());
  return listener;
}

SimListener* Tcp::listener_for(MachineId machine, const runtime::Address& address) {
  std::vector<SimListener*> candidates;
  for (SimListener* listener : hosts_[machine].listeners) {
    if (covers(listener->address(), address)) candidates.push_back(listener);
  }
  if (candidates.empty()) return nullptr;
  if (candidates.size() == 1) return candidates.front();
  return candidates[network_.stream().below(candidates.size())];
}

void Tcp::close(SimListener& listener) {
  if (listener.core().halted()) return;
  const MachineId machine = listener.core().machine().id();
  std::erase(hosts_[machine].listeners, &listener);
  for (const EndpointId id : std::exchange(listener.waiting(), {})) {
    Endpoint& endpoint = slot_of(id);
    ASSERT(endpoint.id == id);
    if (endpoint.state == State::open) send_flags(endpoint, Packet::kReset);
    endpoint.attached = false;
    leave_network(endpoint);
  }
}

// ---- Connecting ----

base::Result<EndpointId> Tcp::prepare(Core& core, const runtime::Address& to, MachineId to_machine,
                                      std::optional<runtime::Address> from) {
  const MachineId machine = core.machine().id();
  if (from && machine_at(machine, *from) != machine) {
    return Error(Errc::invalid_argument, "connecting from {}: not an address of this machine",
                 *from);
  }
  if (from && from->port() != 0 && port_taken(machine, from->port())) {
    return Error(Errc::address_in_use, "connecting from {}", *from);
  }
  runtime::Address local = to_machine == machine ? to
                           : to.family() == runtime::Address::Family::v4
                               ? core.machine().address()
                               : core.machine().address_v6();
  local = local.with_port(0);
  if (from) local = *from;
  if (local.port() == 0) local = local.with_port(free_port(machine));
  Endpoint& endpoint = make_endpoint(core);
  endpoint.state = State::connecting;
  endpoint.local_address = local;
  endpoint.peer_address = to;
  endpoint.peer_machine = to_machine;
  return endpoint.id;
}

void Tcp::start_connecting(EndpointId id, Connecting& operation) {
  Endpoint& endpoint = slot_of(id);
  ASSERT(endpoint.id == id && endpoint.state == State::connecting);
  endpoint.connecting = &operation;
  send_flags(endpoint, Packet::kSyn);
  set_timer(endpoint, world_.now() + options_.syn_retransmit);
}

void Tcp::abandon(EndpointId id) {
  Endpoint& endpoint = slot_of(id);
  if (endpoint.id != id || !endpoint.attached) return;
  ASSERT(endpoint.stream == nullptr);
  endpoint.connecting = nullptr;
  detach(endpoint);
}

std::unique_ptr<runtime::Stream> Tcp::make_stream(EndpointId id) {
  Endpoint& endpoint = slot_of(id);
  ASSERT(endpoint.id == id && endpoint.attached && endpoint.core != nullptr);
  endpoint.listener = 0;
  return std::make_unique<SimStream>(endpoint.core->runtime(), *this, endpoint);
}

// ---- The application's calls ----

void Tcp::start_read(Endpoint& endpoint, runtime::Stream::Read& read) {
  ASSERT(!read.into.empty(), "a read needs room");
  ASSERT(endpoint.read == nullptr, "one read at a time");
  endpoint.read = &read;
  serve_read(endpoint);
}

void Tcp::serve_read(Endpoint& endpoint) {
  if (endpoint.read == nullptr) return;
  if (!endpoint.received.empty()) {
    runtime::Stream::Read& read = *std::exchange(endpoint.read, nullptr);
    std::size_t count = std::min(read.into.size(), endpoint.received.size());
    if (count > 1 && network_.stream().chance(options_.short_read_chance)) {
      count = network_.stream().between(1, count - 1);
    }
    endpoint.received.take(read.into.first(count));
    const std::uint32_t half = options_.receive_buffer_size / 2;
    if (endpoint.state == State::open && endpoint.window_told < half && room(endpoint) >= half) {
      send_acknowledgement(endpoint);
    }
    return read.complete(count);
  }
  if (endpoint.broken) {
    return std::exchange(endpoint.read, nullptr)
        ->complete(
            Error(*endpoint.broken, "{} with {}", endpoint.local_address, endpoint.peer_address));
  }
  if (endpoint.end_received) std::exchange(endpoint.read, nullptr)->complete(0);
}

void Tcp::start_write(Endpoint& endpoint, runtime::Stream::Write& write) {
  ASSERT(endpoint.write == nullptr, "one write at a time");
  if (endpoint.broken) {
    return write.complete(
        Error(*endpoint.broken, "{} with {}", endpoint.local_address, endpoint.peer_address));
  }
  if (endpoint.end_wanted) return write.complete(Error(Errc::closed, "this half was ended"));
  endpoint.write = &write;
  endpoint.write_piece = 0;
  endpoint.write_offset = 0;
  fill_from_write(endpoint);
  send_what_fits(endpoint);
}

void Tcp::fill_from_write(Endpoint& endpoint) {
  if (endpoint.write == nullptr) return;
  runtime::Stream::Write& write = *endpoint.write;
  while (endpoint.write_piece < write.pieces.size()) {
    const base::ByteView rest = write.pieces[endpoint.write_piece].subspan(endpoint.write_offset);
    const std::size_t free = options_.send_buffer_size - endpoint.sent.size();
    const std::size_t count = std::min(rest.size(), free);
    endpoint.sent.append(rest.first(count));
    endpoint.write_offset += count;
    if (count < rest.size()) return;
    ++endpoint.write_piece;
    endpoint.write_offset = 0;
  }
  endpoint.write = nullptr;
  write.complete({});
}

void Tcp::shutdown_write(Endpoint& endpoint) {
  if (endpoint.state != State::open || endpoint.end_wanted) return;
  ASSERT(endpoint.write == nullptr, "ended while being written");
  endpoint.end_wanted = true;
  send_what_fits(endpoint);
}

void Tcp::detach(Endpoint& endpoint) {
  endpoint.attached = false;
  if (endpoint.state == State::gone) return free_if_unused(endpoint);
  if (endpoint.state != State::open) return leave_network(endpoint);
  if (!endpoint.received.empty() || !endpoint.early.empty()) {
    send_flags(endpoint, Packet::kReset);
    return leave_network(endpoint);
  }
  endpoint.end_wanted = true;
  endpoint.linger_until = world_.now() + options_.linger;
  send_what_fits(endpoint);
  restart_timer(endpoint);
  leave_if_ended(endpoint);
}

// ---- Sending ----

std::uint32_t Tcp::room(const Endpoint& endpoint) const {
  const auto used = static_cast<std::uint32_t>(endpoint.received.size());
  return used >= options_.receive_buffer_size ? 0 : options_.receive_buffer_size - used;
}

void Tcp::transmit(Endpoint& endpoint, Packet packet) {
  packet.from = endpoint.id;
  packet.to = endpoint.peer;
  packet.acknowledged = endpoint.expected;
  packet.window = endpoint.window_told = room(endpoint);
  packet.source = endpoint.machine;
  packet.destination = endpoint.peer_machine;
  const int copies = network_.send(packet, endpoint.last_arrival);
  endpoint.packets_under_way += static_cast<std::uint32_t>(copies);
}

void Tcp::send_flags(Endpoint& endpoint, std::uint8_t flags) {
  transmit(endpoint, {.sequence = endpoint.next, .flags = flags});
}

void Tcp::send_acknowledgement(Endpoint& endpoint) {
  send_flags(endpoint, Packet::kAck);
}

void Tcp::send_segment(Endpoint& endpoint, std::uint64_t position, std::uint32_t size) {
  transmit(endpoint, {.sequence = position, .size = size, .flags = Packet::kAck});
}

void Tcp::answer_with_reset(const Packet& packet) {
  WorldTime last_arrival;
  const Packet reset{.to = packet.from,
                     .source = packet.destination,
                     .destination = packet.source,
                     .flags = Packet::kReset};
  network_.send(reset, last_arrival);
}

void Tcp::send_what_fits(Endpoint& endpoint) {
  if (endpoint.state != State::open) return;
  const bool idle = endpoint.next == endpoint.acknowledged;
  const std::uint64_t end = endpoint.written_end();
  const std::uint64_t limit = std::min(end, endpoint.acknowledged + endpoint.window);
  while (endpoint.next < limit) {
    const std::uint64_t size =
        std::min<std::uint64_t>(limit - endpoint.next, network_.options().segment_size);
    if (endpoint.timed_at.is_never()) {
      endpoint.timed_at = world_.now();
      endpoint.timed_position = endpoint.next + size;
    }
    send_segment(endpoint, endpoint.next, static_cast<std::uint32_t>(size));
    endpoint.next += size;
  }
  if (endpoint.end_wanted && !endpoint.end_sent && endpoint.next == end) {
    transmit(endpoint, {.sequence = end, .flags = Packet::kAck | Packet::kFin});
    endpoint.end_sent = true;
  }
  if (idle) restart_timer(endpoint);
}

void Tcp::send_again(Endpoint& endpoint) {
  if (++endpoint.attempts > options_.attempts_max) {
    return break_off(endpoint, Errc::connection_lost);
  }
  endpoint.timed_at = WorldTime::never();
  if (endpoint.next > endpoint.acknowledged) {
    const std::uint64_t size = std::min<std::uint64_t>(endpoint.next - endpoint.acknowledged,
                                                       network_.options().segment_size);
    send_segment(endpoint, endpoint.acknowledged, static_cast<std::uint32_t>(size));
  } else if (endpoint.end_sent && !endpoint.end_acknowledged) {
    transmit(endpoint, {.sequence = endpoint.written_end(), .flags = Packet::kAck | Packet::kFin});
  } else if (endpoint.next < endpoint.written_end()) {
    send_flags(endpoint, Packet::kAck | Packet::kProbe);
  }
  restart_timer(endpoint);
}

Duration Tcp::patience(const Endpoint& endpoint) const {
  const Duration once = std::max(options_.retransmit_min, 2 * endpoint.round_trip);
  return std::min(once * (1 << std::min(endpoint.attempts, 16U)), options_.retransmit_max);
}

void Tcp::restart_timer(Endpoint& endpoint) {
  if (endpoint.state != State::open) return;
  const bool waits = endpoint.next > endpoint.acknowledged ||
                     (endpoint.end_sent && !endpoint.end_acknowledged) ||
                     endpoint.next < endpoint.written_end();
  endpoint.again_at = waits ? world_.now() + patience(endpoint) : WorldTime::never();
  set_timer_of_open(endpoint);
}

void Tcp::set_timer_of_open(Endpoint& endpoint) {
  WorldTime due = endpoint.again_at;
  if (endpoint.lost_after) due = std::min(due, world_.now() + *endpoint.lost_after / kProbes);
  if (!endpoint.attached) due = std::min(due, endpoint.linger_until);
  set_timer(endpoint, due);
}

void Tcp::set_timer(Endpoint& endpoint, WorldTime due) {
  endpoint.due = due;
  if (due >= endpoint.event_at) return;
  endpoint.event_at = due;
  world_.schedule({.at = due,
                   .kind = EventKind::tcp_timer,
                   .machine = endpoint.machine,
                   .argument = endpoint.id});
}

void Tcp::on_timer(EndpointId id) {
  Endpoint* const endpoint = find(id);
  if (endpoint == nullptr || endpoint->event_at != world_.now()) return;
  endpoint->event_at = WorldTime::never();
  if (endpoint->due > world_.now()) return set_timer(*endpoint, endpoint->due);
  if (!endpoint->attached && endpoint->linger_until <= world_.now()) {
    return leave_network(*endpoint);
  }
  if (endpoint->state == State::open) {
    const bool is_lost =
        endpoint->lost_after && world_.now() - endpoint->heard_at >= *endpoint->lost_after;
    if (is_lost) return break_off(*endpoint, Errc::connection_lost);
    if (endpoint->again_at <= world_.now()) return send_again(*endpoint);
    send_flags(*endpoint, Packet::kAck | Packet::kProbe);
    return set_timer_of_open(*endpoint);
  }
  const bool is_client = endpoint->state == State::connecting;
  if (++endpoint->attempts >= options_.syn_attempts_max) {
    return break_off(*endpoint, Errc::timeout);
  }
  send_flags(*endpoint,
             is_client ? Packet::kSyn : static_cast<std::uint8_t>(Packet::kSyn | Packet::kAck));
  set_timer(*endpoint, world_.now() + options_.syn_retransmit * (1 << endpoint->attempts));
}

// ---- Receiving ----

void Tcp::on_packet(std::uint64_t packet_slot) {
  const Packet packet = network_.take(packet_slot);
  if (packet.from == 0) return deliver(packet, nullptr);
  Endpoint& sender = slot_of(packet.from);
  ASSERT(sender.id == packet.from && sender.packets_under_way > 0);
  deliver(packet, &sender);
  --sender.packets_under_way;
  free_if_unused(sender);
}

void Tcp::deliver(const Packet& packet, Endpoint* sender) {
  if (!world_.machine(packet.destination).powered()) return;
  if (packet.flags == Packet::kSyn) return on_syn(packet, *sender);
  Endpoint* const endpoint = find(packet.to);
  const bool from_stranger = endpoint != nullptr && packet.from != 0 && endpoint->peer != 0 &&
                             endpoint->peer != packet.from;
  if (endpoint == nullptr || from_stranger) {
    if (!packet.has(Packet::kReset)) answer_with_reset(packet);
    return;
  }
  if (packet.has(Packet::kReset)) return on_reset(*endpoint);
  endpoint->heard_at = world_.now();
  if (packet.has(Packet::kSyn)) return on_syn_answer(*endpoint, packet);
  if (endpoint->state == State::connecting) return;
  if (endpoint->state == State::accepting && !enqueue(*endpoint)) return;
  on_acknowledgement(*endpoint, packet);
  if (endpoint->state != State::open) return;
  if (packet.size > 0 || packet.has(Packet::kFin)) return on_bytes(*endpoint, packet, *sender);
  if (packet.has(Packet::kProbe)) send_acknowledgement(*endpoint);
}

void Tcp::on_syn(const Packet& packet, Endpoint& sender) {
  if (sender.state != State::connecting) return;
  if (Endpoint* const known = find(sender.answered_by)) {
    return send_flags(*known, Packet::kSyn | Packet::kAck);
  }
  SimListener* const listener = listener_for(packet.destination, sender.peer_address);
  if (listener == nullptr) return answer_with_reset(packet);
  if (listener->full()) return;
  // The deque's elements stay where they are when one more is made.
  Endpoint& endpoint = make_endpoint(listener->core());
  endpoint.state = State::accepting;
  endpoint.peer = sender.id;
  endpoint.peer_machine = packet.source;
  endpoint.local_address = sender.peer_address;
  endpoint.peer_address = sender.local_address;
  endpoint.window = packet.window;
  endpoint.listener = listener->id();
  endpoint.lost_after = listener->lost_after();
  sender.answered_by = endpoint.id;
  listener->on_handshake();
  send_flags(endpoint, Packet::kSyn | Packet::kAck);
  set_timer(endpoint, world_.now() + options_.syn_retransmit);
}

void Tcp::on_syn_answer(Endpoint& endpoint, const Packet& packet) {
  if (endpoint.state == State::connecting) {
    endpoint.state = State::open;
    endpoint.peer = packet.from;
    endpoint.window = packet.window;
    endpoint.attempts = 0;
    endpoint.due = WorldTime::never();
    if (endpoint.connecting != nullptr) std::exchange(endpoint.connecting, nullptr)->complete({});
  }
  send_acknowledgement(endpoint);
}

bool Tcp::enqueue(Endpoint& endpoint) {
  Host& host = hosts_[endpoint.machine];
  const auto found = std::ranges::find(host.listeners, endpoint.listener, &SimListener::id);
  if (found == host.listeners.end()) {
    send_flags(endpoint, Packet::kReset);
    endpoint.attached = false;
    leave_network(endpoint);
    return false;
  }
  endpoint.state = State::open;
  endpoint.attempts = 0;
  endpoint.due = WorldTime::never();
  if (endpoint.lost_after) restart_timer(endpoint);
  (*found)->on_handshake_over();
  (*found)->enqueue(endpoint.id);
  return true;
}

void Tcp::on_reset(Endpoint& endpoint) {
  // Kernels differ in whether what had arrived can still be read.
  if (network_.stream().chance(0.5)) endpoint.received.clear();
  break_off(endpoint, endpoint.state == State::connecting ? Errc::refused : Errc::connection_lost);
}

void Tcp::on_acknowledgement(Endpoint& endpoint, const Packet& packet) {
  const std::uint64_t known = std::min(packet.acknowledged, endpoint.written_end());
  if (packet.acknowledged < endpoint.acknowledged) return;
  const bool window_same = endpoint.window == packet.window;
  endpoint.window = packet.window;
  const bool end_known = endpoint.end_sent && packet.acknowledged == endpoint.written_end() + 1;
  const bool progress = known > endpoint.acknowledged || (end_known && !endpoint.end_acknowledged);
  if (progress) {
    endpoint.sent.drop(known - endpoint.acknowledged);
    endpoint.acknowledged = known;
    endpoint.end_acknowledged |= end_known;
    endpoint.repeats = 0;
    if (known >= endpoint.timed_position && !endpoint.timed_at.is_never()) {
      const Duration sample = world_.now() - endpoint.timed_at;
      const bool first = endpoint.round_trip == Duration(0);
      endpoint.round_trip = first ? sample : (7 * endpoint.round_trip + sample) / 8;
      endpoint.timed_at = WorldTime::never();
    }
  } else if (packet.size == 0 && packet.flags == Packet::kAck && window_same &&
             endpoint.next > endpoint.acknowledged && ++endpoint.repeats == kRepeatsThatTell) {
    endpoint.timed_at = WorldTime::never();
    const std::uint64_t size = std::min<std::uint64_t>(endpoint.next - endpoint.acknowledged,
                                                       network_.options().segment_size);
    send_segment(endpoint, endpoint.acknowledged, static_cast<std::uint32_t>(size));
  }
  // An answer to a probe is a sign of life, even if the window stays shut.
  if (progress || endpoint.next == endpoint.acknowledged) endpoint.attempts = 0;
  fill_from_write(endpoint);
  send_what_fits(endpoint);
  if (progress) restart_timer(endpoint);
  leave_if_ended(endpoint);
}

void Tcp::on_bytes(Endpoint& endpoint, const Packet& packet, const Endpoint& sender) {
  if (!endpoint.attached && packet.size > 0) {
    // Nobody will ever read this.
    send_flags(endpoint, Packet::kReset);
    return leave_network(endpoint);
  }
  const std::uint64_t packet_end = packet.sequence + packet.size;
  if (packet.has(Packet::kFin)) endpoint.end_at = packet_end;
  const std::uint64_t begin = std::max(packet.sequence, endpoint.expected);
  const std::uint64_t end = std::min(packet_end, endpoint.expected + room(endpoint));
  if (begin < end) {
    const auto after =
        std::ranges::lower_bound(endpoint.early, begin, {}, &Endpoint::Stretch::begin);
    endpoint.early.insert(after, {begin, end});
    take_in_order(endpoint, sender);
  }
  if (!endpoint.end_received && endpoint.expected == endpoint.end_at) {
    endpoint.end_received = true;
    ++endpoint.expected;
  }
  send_acknowledgement(endpoint);
  serve_read(endpoint);
  leave_if_ended(endpoint);
}

void Tcp::take_in_order(Endpoint& endpoint, const Endpoint& sender) {
  std::size_t taken = 0;
  for (const Endpoint::Stretch& stretch : endpoint.early) {
    if (stretch.begin > endpoint.expected) break;
    ++taken;
    if (stretch.end <= endpoint.expected) continue;
    ASSERT(sender.acknowledged <= endpoint.expected);
    sender.sent.visit(endpoint.expected - sender.acknowledged, stretch.end - endpoint.expected,
                      [&](base::ByteView part) { endpoint.received.append(part); });
    endpoint.expected = stretch.end;
  }
  endpoint.early.erase(endpoint.early.begin(),
                       endpoint.early.begin() + static_cast<std::ptrdiff_t>(taken));
}

}  // namespace helenus::sim
