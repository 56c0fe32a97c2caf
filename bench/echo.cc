// bench-echo: messages echoed a second over loopback, through Transport beside a server written
// directly on epoll. Both check the same frames: a length, a CRC32C, 100 bytes.
//
// Each server is a process of its own on the last processor; the load comes from this one on the
// first, and is the same for both: as many connections as told, each with one message under way.
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/codec.h"
#include "base/crc32c.h"
#include "bench/measure.h"
#include "bench/report.h"
#include "runtime/native/descriptor.h"
#include "runtime/native/native_host.h"
#include "runtime/native/system_error.h"
#include "runtime/task_group.h"
#include "runtime/transport.h"

namespace helenus::bench {
namespace {

using base::ByteView;
using runtime::Address;
using runtime::Runtime;
using runtime::StopToken;
using runtime::Stream;
using runtime::Task;
using runtime::Until;
using runtime::native::Descriptor;

constexpr std::size_t kHeaderSize = 8;
constexpr std::size_t kPayloadSize = 100;
constexpr std::size_t kFrameSize = kHeaderSize + kPayloadSize;
constexpr std::size_t kBufferSize = 4096;
constexpr int kEventsMax = 256;

[[noreturn]] void give_up(const base::Error& error) {
  std::exit(runtime::native::fail_at_start("bench-echo", error));
}

void check(bool good, const char* doing) {
  if (!good) give_up(runtime::native::system_error(errno, doing));
}

// The frame

using Frame = std::array<std::byte, kFrameSize>;

Frame make_frame(std::size_t number) {
  Frame frame;
  frame.fill(std::byte(number));
  const ByteView payload = ByteView(frame).subspan(kHeaderSize);
  base::store_le<std::uint32_t>(frame.data(), kPayloadSize);
  base::store_le<std::uint32_t>(frame.data() + 4, base::crc32c(payload));
  return frame;
}

// How many of the bytes are whole frames; SIZE_MAX if one of them is damaged. Both servers use it.
std::size_t whole_frames(ByteView bytes) {
  std::size_t size = 0;
  while (bytes.size() - size >= kHeaderSize) {
    const std::size_t length = base::load_le<std::uint32_t>(bytes.data() + size);
    if (length > kBufferSize - kHeaderSize) return SIZE_MAX;
    if (bytes.size() - size < kHeaderSize + length) break;
    const ByteView payload = bytes.subspan(size + kHeaderSize, length);
    if (base::crc32c(payload) != base::load_le<std::uint32_t>(bytes.data() + size + 4)) {
      return SIZE_MAX;
    }
    size += kHeaderSize + length;
  }
  return size;
}

// The server through Transport

Task<void> echo_frames(std::unique_ptr<Stream> stream) {
  std::array<std::byte, kBufferSize> buffer;
  std::size_t filled = 0;
  for (;;) {
    const auto room = base::MutableByteView(buffer).subspan(filled);
    const auto count = co_await stream->read(room, Until::forever());
    if (!count || *count == 0) co_return;
    filled += *count;
    const std::size_t whole = whole_frames(ByteView(buffer).first(filled));
    if (whole == SIZE_MAX) co_return;
    if (whole == 0) continue;
    const auto written = co_await stream->write(ByteView(buffer).first(whole), Until::forever());
    if (!written) co_return;
    filled -= whole;
    if (filled > 0) std::memmove(buffer.data(), buffer.data() + whole, filled);
  }
}

Task<int> serve_by_transport(Runtime& rt, int port_to) {
  auto listener = rt.transport.listen(Address::v4({127, 0, 0, 1}, 0));
  if (!listener) give_up(listener.error());
  const std::uint16_t port = (*listener)->address().port();
  check(::write(port_to, &port, sizeof port) == sizeof port, "tell the port");
  runtime::TaskGroup connections(rt);
  for (;;) {
    auto stream = co_await (*listener)->accept(Until::forever());
    if (stream) connections.spawn(echo_frames(*std::move(stream)));
  }
}

void transport_server(int port_to) {
  auto host = runtime::native::NativeHost::open({.cores = 1, .handle_signals = false});
  if (!host) give_up(host.error());
  (*host)->run([&](Runtime& rt, StopToken) { return serve_by_transport(rt, port_to); });
}

// The server on epoll

void set_no_delay(int socket) {
  const int on = 1;
  ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

sockaddr_in loopback(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

struct Connection {
  explicit Connection(int socket_) : socket(socket_) {}
  Descriptor socket;
  std::size_t filled = 0;
  std::array<std::byte, kBufferSize> buffer;

  // Says no when the connection is over.
  bool serve() {
    const ssize_t count =
        ::recv(socket.number(), buffer.data() + filled, buffer.size() - filled, 0);
    if (count <= 0) return count < 0 && errno == EAGAIN;
    filled += static_cast<std::size_t>(count);
    const std::size_t whole = whole_frames(ByteView(buffer).first(filled));
    if (whole == SIZE_MAX) return false;
    if (whole == 0) return true;
    // With one message under way there is always room for its answer.
    const ssize_t sent = ::send(socket.number(), buffer.data(), whole, MSG_NOSIGNAL);
    if (sent != static_cast<ssize_t>(whole)) return false;
    filled -= whole;
    if (filled > 0) std::memmove(buffer.data(), buffer.data() + whole, filled);
    return true;
  }
};

[[noreturn]] void epoll_server(int port_to) {
  const Descriptor listener(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0));
  sockaddr_in address = loopback(0);
  socklen_t size = sizeof address;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  check(::bind(listener.number(), generic, size) == 0, "bind");
  check(::listen(listener.number(), 512) == 0, "listen");
  check(::getsockname(listener.number(), generic, &size) == 0, "ask for the port");
  const std::uint16_t port = ntohs(address.sin_port);
  check(::write(port_to, &port, sizeof port) == sizeof port, "tell the port");

  const Descriptor epoll(::epoll_create1(0));
  const auto watch = [&](int socket, void* owner) {
    epoll_event event{.events = EPOLLIN, .data = {.ptr = owner}};
    check(::epoll_ctl(epoll.number(), EPOLL_CTL_ADD, socket, &event) == 0, "watch");
  };
  watch(listener.number(), nullptr);
  std::array<epoll_event, kEventsMax> events;
  for (;;) {
    const int count = ::epoll_wait(epoll.number(), events.data(), kEventsMax, -1);
    for (int i = 0; i < count; ++i) {
      auto* connection = static_cast<Connection*>(events[static_cast<std::size_t>(i)].data.ptr);
      if (connection == nullptr) {
        const int socket = ::accept4(listener.number(), nullptr, nullptr, SOCK_NONBLOCK);
        if (socket < 0) continue;
        set_no_delay(socket);
        watch(socket, std::make_unique<Connection>(socket).release());
      } else if (!connection->serve()) {
        std::unique_ptr<Connection>{connection};
      }
    }
  }
}

// Processes

void stay_on(bool last) {
  cpu_set_t allowed;
  if (::sched_getaffinity(0, sizeof allowed, &allowed) != 0) return;
  int chosen = -1;
  for (int number = 0; number < CPU_SETSIZE; ++number) {
    if (CPU_ISSET(number, &allowed) && (last || chosen < 0)) chosen = number;
  }
  CPU_ZERO(&allowed);
  CPU_SET(chosen, &allowed);
  ::sched_setaffinity(0, sizeof allowed, &allowed);
}

// A server in a process of its own, until destroyed.
class ServerProcess {
 public:
  explicit ServerProcess(void (*serve)(int port_to)) {
    int pipe[2];
    check(::pipe(pipe) == 0, "make a pipe");
    process_ = ::fork();
    check(process_ >= 0, "start a process");
    if (process_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      stay_on(true);
      serve(pipe[1]);
      std::_Exit(0);
    }
    ::close(pipe[1]);
    const Descriptor port_from(pipe[0]);
    check(::read(pipe[0], &port_, sizeof port_) == sizeof port_, "hear the port");
  }
  ServerProcess(const ServerProcess&) = delete;
  ServerProcess& operator=(const ServerProcess&) = delete;
  ~ServerProcess() {
    ::kill(process_, SIGKILL);
    ::waitpid(process_, nullptr, 0);
  }
  std::uint16_t port() const { return port_; }

 private:
  pid_t process_ = -1;
  std::uint16_t port_ = 0;
};

// The load

class Load {
 public:
  Load(std::uint16_t port, std::size_t connections) : epoll_(::epoll_create1(0)) {
    for (std::size_t number = 0; number < connections; ++number) {
      Descriptor socket(::socket(AF_INET, SOCK_STREAM, 0));
      sockaddr_in address = loopback(port);
      check(::connect(socket.number(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0,
            "connect");
      set_no_delay(socket.number());
      epoll_event event{.events = EPOLLIN, .data = {.u64 = number}};
      check(::epoll_ctl(epoll_.number(), EPOLL_CTL_ADD, socket.number(), &event) == 0, "watch");
      callers_.push_back({.socket = std::move(socket), .frame = make_frame(number)});
    }
  }

  // Messages answered a second.
  double run(double seconds) {
    for (Caller& caller : callers_) send(caller);
    std::uint64_t answered = 0;
    const Stopwatch stopwatch;
    double elapsed = 0;
    while (elapsed < seconds) {
      answered += wait(true);
      elapsed = stopwatch.seconds();
    }
    const double rate = static_cast<double>(answered) / elapsed;
    while (under_way_ > 0) wait(false);
    return rate;
  }

 private:
  struct Caller {
    Descriptor socket;
    Frame frame;
    Frame answer{};
    std::size_t answered = 0;
  };

  void send(Caller& caller) {
    const ssize_t sent = ::send(caller.socket.number(), caller.frame.data(), kFrameSize, 0);
    check(sent == ssize_t{kFrameSize}, "send");
    ++under_way_;
  }
  std::uint64_t wait(bool go_on) {
    const int count = ::epoll_wait(epoll_.number(), events_.data(), kEventsMax, -1);
    std::uint64_t answered = 0;
    for (int i = 0; i < count; ++i) {
      Caller& caller = callers_[events_[static_cast<std::size_t>(i)].data.u64];
      const ssize_t received =
          ::recv(caller.socket.number(), caller.answer.data() + caller.answered,
                 kFrameSize - caller.answered, 0);
      check(received > 0, "receive");
      caller.answered += static_cast<std::size_t>(received);
      if (caller.answered < kFrameSize) continue;
      check(caller.answer == caller.frame, "compare the echo");
      caller.answered = 0;
      --under_way_;
      ++answered;
      if (go_on) send(caller);
    }
    return answered;
  }

  Descriptor epoll_;
  std::vector<Caller> callers_;
  std::array<epoll_event, kEventsMax> events_;
  std::size_t under_way_ = 0;
};

void compare_echoes(const Options& options, Report& report) {
  const int rounds = options.quick ? 3 : 11;
  const double seconds = options.quick ? 0.1 : 0.4;
  const ServerProcess by_transport(transport_server);
  const ServerProcess by_epoll(epoll_server);
  stay_on(false);
  for (const std::size_t connections : {1U, 16U, 64U}) {
    Load ours(by_transport.port(), connections);
    Load peer(by_epoll.port(), connections);
    const Medians medians = by_turns(
        rounds, [&] { return ours.run(seconds) / 1e3; }, [&] { return peer.run(seconds) / 1e3; });
    report.row({.name = fmt::format("echo of 100 bytes, connections: {}", connections),
                .value = medians.ours,
                .unit = "k/s",
                .peer = "raw epoll",
                .peer_value = medians.peer});
  }
}

}  // namespace
}  // namespace helenus::bench

int main(int argc, char** argv) {
  return helenus::bench::benchmark_main(argc, argv, helenus::bench::compare_echoes);
}
