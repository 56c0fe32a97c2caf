#include "bench/load.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <utility>

#include <sys/socket.h>

#include "base/assert.h"
#include "bench/load_socket.h"
#include "runtime/native/system_error.h"

namespace helenus::bench {

using base::Errc;
using base::Error;
using base::Result;
using runtime::native::system_error;

Result<std::unique_ptr<Load>> Load::connect(std::uint16_t port, const Settings& settings,
                                            Dialect& dialect) {
  ASSERT(settings.depth > 0 && settings.depth <= kDepthMax);
  auto load = std::make_unique<Load>(MadeByConnect{}, dialect);
  load->epoll_ = runtime::native::Descriptor(::epoll_create1(EPOLL_CLOEXEC));
  if (!load->epoll_.valid()) return system_error(errno, "make an epoll");
  for (std::size_t i = 0; i < settings.connections; ++i) {
    TRY_VOID(load->add_connection(port, settings.depth));
  }
  // Slot by slot, so that the first requests go to as many connections as there are.
  for (std::size_t slot = 0; slot < settings.depth; ++slot) {
    for (std::size_t i = 0; i < settings.connections; ++i) {
      load->free_.push_back({.connection = i, .slot = static_cast<std::uint16_t>(slot)});
    }
  }
  return load;
}

Result<void> Load::add_connection(std::uint16_t port, std::size_t depth) {
  Connection connection;
  TRY(connection.socket, connect_to_loopback(port));
  const int socket = connection.socket.number();
  base::Buffer greeting;
  dialect_.greet(greeting);
  if (::send(socket, greeting.data(), greeting.size(), MSG_NOSIGNAL) < 0) {
    return system_error(errno, "greet the server");
  }
  for (;;) {
    const base::MutableByteView room = connection.received.extend(kReceiveSize);
    const ssize_t count = ::recv(socket, room.data(), room.size(), 0);
    if (count < 0) return system_error(errno, "hear the server's greeting");
    if (count == 0) return Error(Errc::closed, "the server closed a new connection");
    connection.received.truncate(connection.received.size() - kReceiveSize +
                                 static_cast<std::size_t>(count));
    TRY(const std::optional<Reply> reply, dialect_.first_reply(connection.received.view()));
    if (reply) break;
  }
  connection.received.clear();
  connection.started_ns.resize(depth);
  epoll_event event{.events = EPOLLIN, .data = {.u64 = connections_.size()}};
  if (::epoll_ctl(epoll_.number(), EPOLL_CTL_ADD, socket, &event) != 0) {
    return system_error(errno, "watch a connection");
  }
  connections_.push_back(std::move(connection));
  return {};
}

Result<LoadResult> Load::closed(double seconds, const NextOperation& next) {
  ASSERT(under_way_ == 0);
  LoadResult result;
  const auto end_ns = static_cast<std::int64_t>(seconds * 1e9);
  const Stopwatch watch;
  for (;;) {
    const std::int64_t now_ns = watch.nanoseconds();
    if (now_ns >= end_ns) break;
    while (!free_.empty()) {
      start(free_.front(), watch.nanoseconds(), next);
      free_.pop_front();
    }
    TRY_VOID(flush());
    TRY_VOID(wait(std::nullopt, watch, result));
  }
  result.seconds = watch.seconds();
  LoadResult behind_the_end;
  while (under_way_ > 0) TRY_VOID(wait(std::nullopt, watch, behind_the_end));
  return result;
}

Result<LoadResult> Load::open(double seconds, double per_second, const NextOperation& next) {
  ASSERT(under_way_ == 0);
  LoadResult result;
  const auto end_ns = static_cast<std::int64_t>(seconds * 1e9);
  const auto patience_ns = static_cast<std::int64_t>(seconds * kPatience * 1e9);
  Schedule schedule(per_second, end_ns);
  const Stopwatch watch;
  while (!schedule.done() || under_way_ > 0) {
    const std::int64_t now_ns = watch.nanoseconds();
    if (now_ns > patience_ns) break;
    while (!free_.empty() && schedule.due(now_ns)) {
      start(free_.front(), schedule.take(), next);
      free_.pop_front();
    }
    TRY_VOID(flush());
    std::optional<std::int64_t> until_ns;
    if (!free_.empty() && !schedule.done()) until_ns = schedule.next_ns();
    TRY_VOID(wait(until_ns, watch, result));
  }
  while (under_way_ > 0) TRY_VOID(wait(std::nullopt, watch, result));
  const std::int64_t now_ns = watch.nanoseconds();
  while (!schedule.done()) {
    result.latency_ns.record(static_cast<std::uint64_t>(now_ns - schedule.take()));
  }
  result.seconds = watch.seconds();
  return result;
}

void Load::start(Free where, std::int64_t started_ns, const NextOperation& next) {
  Connection& connection = connections_[where.connection];
  dialect_.encode(next(), where.slot, connection.to_send);
  connection.started_ns[where.slot] = started_ns;
  connection.under_way.push_back(where.slot);
  ++under_way_;
  if (!std::exchange(connection.must_flush, true)) to_flush_.push_back(where.connection);
}

Result<void> Load::flush() {
  for (const std::size_t index : to_flush_) {
    Connection& connection = connections_[index];
    base::ByteView left = connection.to_send.view();
    while (!left.empty()) {
      const ssize_t sent =
          ::send(connection.socket.number(), left.data(), left.size(), MSG_NOSIGNAL);
      if (sent < 0) return system_error(errno, "send requests");
      left = left.subspan(static_cast<std::size_t>(sent));
    }
    connection.to_send.clear();
    connection.must_flush = false;
  }
  to_flush_.clear();
  return {};
}

Result<void> Load::wait(std::optional<std::int64_t> until_ns, const Stopwatch& watch,
                        LoadResult& result) {
  std::timespec timeout{};
  if (until_ns) {
    const std::int64_t left_ns = std::max<std::int64_t>(0, *until_ns - watch.nanoseconds());
    timeout = {.tv_sec = left_ns / 1'000'000'000, .tv_nsec = left_ns % 1'000'000'000};
  }
  const int count = ::epoll_pwait2(epoll_.number(), events_.data(), kEventsMax,
                                   until_ns ? &timeout : nullptr, nullptr);
  if (count < 0 && errno != EINTR) return system_error(errno, "wait for answers");
  for (int i = 0; i < count; ++i) {
    TRY_VOID(receive(events_[static_cast<std::size_t>(i)].data.u64, watch, result));
  }
  return {};
}

Result<void> Load::receive(std::size_t index, const Stopwatch& watch, LoadResult& result) {
  Connection& connection = connections_[index];
  const std::size_t held = connection.received.size();
  const base::MutableByteView room = connection.received.extend(kReceiveSize);
  const ssize_t count = ::recv(connection.socket.number(), room.data(), room.size(), MSG_DONTWAIT);
  if (count < 0) return system_error(errno, "receive answers");
  if (count == 0) return Error(Errc::closed, "the server closed a connection");
  connection.received.truncate(held + static_cast<std::size_t>(count));
  return take_replies(index, watch.nanoseconds(), result);
}

Result<void> Load::take_replies(std::size_t index, std::int64_t now_ns, LoadResult& result) {
  Connection& connection = connections_[index];
  base::ByteView left = connection.received.view();
  for (;;) {
    TRY(const std::optional<Reply> reply, dialect_.first_reply(left));
    if (!reply) break;
    auto& under_way = connection.under_way;
    const auto at = reply->slot ? std::ranges::find(under_way, *reply->slot) : under_way.begin();
    if (at == under_way.end()) return Error(Errc::corrupt, "an answer nobody asked for");
    const std::uint16_t slot = *at;
    under_way.erase(at);
    --under_way_;
    ++result.answered;
    result.latency_ns.record(static_cast<std::uint64_t>(now_ns - connection.started_ns[slot]));
    free_.push_back({.connection = index, .slot = slot});
    left = left.subspan(reply->size);
  }
  const std::size_t size = left.size();
  if (size > 0) std::memmove(connection.received.data(), left.data(), size);
  connection.received.truncate(size);
  return {};
}

}  // namespace helenus::bench
