// Load: many connections to one server, asked at will or on schedule, by one thread on epoll.
//
// A closed loop sends the next request on a connection when the last was answered: it finds the
// peak throughput, and its latencies say only how long the server's queue of 64 is. An open loop
// takes requests from a Schedule, sends each on any connection that is free, and counts latency
// from when the request was due: a server that stands still is seen by everyone who would have
// come meanwhile.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include <sys/epoll.h>

#include "base/bytes.h"
#include "base/histogram.h"
#include "base/result.h"
#include "bench/dialect.h"
#include "bench/schedule.h"
#include "bench/stopwatch.h"
#include "runtime/native/descriptor.h"

namespace helenus::bench {

struct LoadResult {
  std::uint64_t answered = 0;
  double seconds = 0;
  base::Histogram latency_ns;

  double per_second() const { return static_cast<double>(answered) / seconds; }
  double largest_us() const { return static_cast<double>(latency_ns.max()) / 1e3; }
  double quantile_us(double q) const { return static_cast<double>(latency_ns.quantile(q)) / 1e3; }
};

// Gives the next operation to ask for.
using NextOperation = std::function<Operation()>;

class Load {
  struct MadeByConnect {};

 public:
  struct Settings {
    std::size_t connections = 64;
    std::size_t depth = 1;  // requests under way on each connection
  };
  static constexpr std::size_t kDepthMax = 1024;

  // Connects and greets. `dialect` outlives the load. Requires: 0 < depth <= kDepthMax.
  // Errors: no connection, or a greeting that is refused.
  static base::Result<std::unique_ptr<Load>> connect(std::uint16_t port, const Settings& settings,
                                                     Dialect& dialect [[clang::lifetimebound]]);

  Load(MadeByConnect, Dialect& dialect) : dialect_(dialect) {}

  // Both wait for all answers before they return. Errors: a refusal, a row that is not there, a
  // lost connection; the load is of no use afterwards.
  base::Result<LoadResult> closed(double seconds, const NextOperation& next);
  // Requests that could not be started within kPatience times the time count as answered then.
  base::Result<LoadResult> open(double seconds, double per_second, const NextOperation& next);
  static constexpr double kPatience = 3;

 private:
  struct Connection {
    runtime::native::Descriptor socket;
    base::Buffer received;
    base::Buffer to_send;
    std::vector<std::int64_t> started_ns;  // by slot
    std::deque<std::uint16_t> under_way;   // slots, oldest first
    bool must_flush = false;
  };
  struct Free {
    std::size_t connection = 0;
    std::uint16_t slot = 0;
  };
  static constexpr std::size_t kEventsMax = 256;
  static constexpr std::size_t kReceiveSize = std::size_t{16} << 10;

  base::Result<void> add_connection(std::uint16_t port, std::size_t depth);

  void start(Free where, std::int64_t started_ns, const NextOperation& next);
  base::Result<void> flush();
  // Waits for answers, at most until then; takes them and frees their slots.
  base::Result<void> wait(std::optional<std::int64_t> until_ns, const Stopwatch& watch,
                          LoadResult& result);
  base::Result<void> receive(std::size_t index, const Stopwatch& watch, LoadResult& result);
  base::Result<void> take_replies(std::size_t index, std::int64_t now_ns, LoadResult& result);

  Dialect& dialect_;
  runtime::native::Descriptor epoll_;
  std::vector<Connection> connections_;
  std::vector<std::size_t> to_flush_;
  std::deque<Free> free_;  // the longest free first, so that all connections are used alike
  std::size_t under_way_ = 0;
  std::array<epoll_event, kEventsMax> events_;
};

}  // namespace helenus::bench
