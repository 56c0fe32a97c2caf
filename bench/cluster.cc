// bench-cluster: three nodes that replicate at QUORUM, beside one node alone and beside themselves.
//
// All are processes of this machine on loopback; the servers share one processor, the load has
// another one. Both sides sync before they acknowledge (commitlog_sync: batch; several nodes take
// no other). Keys and values are those of bench-cql; the load asks one node, which coordinates and,
// as every node holds everything, mints.
//
//   write, read    server CPU of a request, that of all three processes together, beside that of
//                  one node alone: at most 5 and 3 times as much
//   one killed     p50 and p99 of half reads and half writes in an open loop at 30 % of the highest
//                  rate of all three, one of them killed, beside the same before: at most twice
//   catch-up       a node is away while writes go on; how many a second it takes in when it is
//                  back, until nobody lacks anything, beside how many came a second: at least half
//   bytes          that it was sent for each write it lacked, beside what the write takes in the
//                  commit log: at most 1.3 times as much
//   at rest        bytes a second that nodes say to each other beyond gossip, beside gossip
//
// Figures are medians of five turns where there are turns.
#include <algorithm>
#include <array>
#include <charconv>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <unistd.h>

#include "base/prng.h"
#include "bench/cql_dialect.h"
#include "bench/keys.h"
#include "bench/load.h"
#include "bench/measure.h"
#include "bench/report.h"
#include "bench/server_process.h"
#include "bench/stopwatch.h"

namespace helenus::bench {
namespace {

using base::Errc;
using base::Error;
using base::Result;

struct Settings {
  Processors processors = allowed_processors();
  std::uint64_t records = 100'000;
  double seconds = 2;
  double open_seconds = 5;
  double away_seconds = 60;
  double rest_seconds = 20;
  int rounds = 5;
  std::size_t connections = 16;
};

void rest(double seconds) {
  ::usleep(static_cast<useconds_t>(seconds * 1e6));
}

Settings settings_of(const Options& options) {
  Settings settings;
  if (options.quick) {
    settings.records = 5'000;
    settings.seconds = 0.3;
    settings.open_seconds = 1;
    settings.away_seconds = 4;
    settings.rest_seconds = 3;
    settings.rounds = 3;
  }
  return settings;
}

Result<std::uint16_t> port_in(std::string_view output, std::string_view words) {
  const std::size_t found = output.find(words);
  if (found == std::string_view::npos) return Error(Errc::not_found, "no '{}'", words);
  const char* const begin = output.data() + found + words.size();
  std::uint16_t port = 0;
  const auto [end, fault] = std::from_chars(begin, output.data() + output.size(), port);
  if (fault != std::errc()) return Error(Errc::corrupt, "no port behind '{}'", words);
  return port;
}

// A node as a process, which can be started again upon its folder.
class NodeProcess {
 public:
  NodeProcess(const Settings& settings, std::string folder, std::uint16_t node_port,
              std::uint16_t seed_port)
      : settings_(settings),
        folder_(std::move(folder)),
        node_port_(node_port),
        seed_port_(seed_port) {}

  Result<void> start() {
    std::error_code fault;
    std::filesystem::create_directories(folder_, fault);
    const std::string config = folder_ + "/helenus.yaml";
    std::ofstream(config) << "commitlog_sync: batch\n"
                          << "seeds: [127.0.0.1:" << seed_port_ << "]\n";
    const auto here = std::filesystem::read_symlink("/proc/self/exe", fault).parent_path();
    TRY(server_, ServerProcess::start({(here / "helenus").string(), "node", "--config", config,
                                       "--data", folder_ + "/data", "--cores", "1", "--cql",
                                       "127.0.0.1:0", "--admin", "127.0.0.1:0", "--listen",
                                       fmt::format("127.0.0.1:{}", node_port_), "--log", "warn"},
                                      settings_.processors.last, "is up: CQL "));
    TRY(cql_port_, port_in(server_->output(), "CQL 127.0.0.1:"));
    TRY(http_port_, port_in(server_->output(), "http://127.0.0.1:"));
    return {};
  }
  void kill() {
    ::kill(server_->process(), SIGKILL);
    server_.reset();
  }
  bool is_running() const { return server_ != nullptr; }
  pid_t process() const { return server_->process(); }
  std::uint16_t cql_port() const { return cql_port_; }

  // All samples of that name together.
  Result<double> metric(std::string_view name) const {
    TRY(const std::string metrics, http_get(http_port_, "/metrics"));
    double sum = 0;
    bool is_found = false;
    const std::string line = fmt::format("\n{}", name);
    for (std::size_t at = metrics.find(line); at != std::string::npos;
         at = metrics.find(line, at + 1)) {
      const char behind = metrics[at + line.size()];
      if (behind != ' ' && behind != '{') continue;
      const std::size_t space = metrics.find(' ', at);
      sum += std::strtod(metrics.c_str() + space, nullptr);
      is_found = true;
    }
    if (!is_found) return Error(Errc::not_found, "no metric {}", name);
    return sum;
  }

 private:
  const Settings& settings_;
  const std::string folder_;
  const std::uint16_t node_port_;
  const std::uint16_t seed_port_;
  std::unique_ptr<ServerProcess> server_;
  std::uint16_t cql_port_ = 0;
  std::uint16_t http_port_ = 0;
};

// Nodes, and a load that asks the first of them.
class Contestant {
 public:
  static Result<std::unique_ptr<Contestant>> start(const Settings& settings, std::uint32_t nodes) {
    TRY(TemporaryFolder folder, TemporaryFolder::make());
    auto contestant = std::make_unique<Contestant>(settings, std::move(folder), nodes);
    TRY(const std::uint16_t seed_port, free_port());
    for (std::uint32_t i = 0; i < nodes; ++i) {
      std::uint16_t port = seed_port;
      if (i > 0) {
        TRY(port, free_port());
      }
      auto node = std::make_unique<NodeProcess>(
          settings, fmt::format("{}/node{}", contestant->folder_.path(), i), port, seed_port);
      TRY_VOID(node->start());
      contestant->nodes_.push_back(std::move(node));
    }
    TRY_VOID(contestant->await_all_up());
    TRY_VOID(contestant->dialect_.prepare(contestant->nodes_.front()->cql_port()));
    TRY_VOID(contestant->connect());
    return contestant;
  }
  Contestant(const Settings& settings, TemporaryFolder folder, std::uint32_t nodes)
      : settings_(settings),
        folder_(std::move(folder)),
        dialect_({.replication_factor = nodes,
                  .level = nodes > 1 ? model::Consistency::quorum : model::Consistency::one}) {}

  Result<void> connect() {
    load_.reset();
    TRY(load_, Load::connect(nodes_.front()->cql_port(), {.connections = settings_.connections},
                             dialect_));
    return {};
  }
  Result<void> await_all_up() {
    return await([this]() -> Result<bool> {
      for (const auto& node : nodes_) {
        TRY(const double up, node->metric("helenus_cluster_nodes_up"));
        if (up < static_cast<double>(nodes_.size())) return false;
      }
      return true;
    });
  }
  // Asks again and again.
  static Result<void> await(const std::function<Result<bool>()>& condition) {
    const Stopwatch watch;
    while (watch.seconds() < kWaitSecondsMax) {
      TRY(const bool is_so, condition());
      if (is_so) return {};
      rest(0.02);
    }
    return Error(Errc::timeout, "waited for {} s", kWaitSecondsMax);
  }

  Result<double> metric(std::string_view name) const {
    double sum = 0;
    for (const auto& node : nodes_) {
      TRY(const double value, node->metric(name));
      sum += value;
    }
    return sum;
  }
  // What replicas lack of each other, as all of them see it.
  Result<double> missing() const {
    TRY(const double here, metric("helenus_replication_missing_here"));
    TRY(const double there, metric("helenus_replication_missing_there"));
    return here + there;
  }

  NextOperation inserts() {
    return [this] { return Operation{.kind = Operation::Kind::write, .key = inserted_++}; };
  }
  NextOperation mix(double read_share) {
    return [this, read_share] {
      const bool reads = random_.chance(read_share);
      return Operation{.kind = reads ? Operation::Kind::read : Operation::Kind::write,
                       .key = random_.below(settings_.records),
                       .version = reads ? 0 : ++version_};
    };
  }
  Result<void> fill() {
    while (inserted_ < settings_.records) TRY_VOID(load_->closed(0.05, inserts()));
    return {};
  }

  Load& load() { return *load_; }
  NodeProcess& node(std::size_t i) { return *nodes_[i]; }
  const std::vector<std::unique_ptr<NodeProcess>>& nodes() const { return nodes_; }

 private:
  static constexpr double kWaitSecondsMax = 600;

  const Settings& settings_;
  TemporaryFolder folder_;
  CqlDialect dialect_;
  std::vector<std::unique_ptr<NodeProcess>> nodes_;
  std::unique_ptr<Load> load_;
  base::Prng random_{20};
  std::uint64_t inserted_ = 0;
  std::uint64_t version_ = 0;
};

struct Figures {
  std::vector<double> per_second;
  std::vector<double> cpu_us;
  std::vector<double> p50_us;
  std::vector<double> p99_us;
};

Spread spread_of(const std::vector<double>& values) {
  const auto [low, high] = std::ranges::minmax(values);
  return {.low = low, .high = high};
}

void add_row(const std::string& name, const std::string& unit, const std::vector<double>& ours,
             const std::string& peer, const std::vector<double>& theirs, Report& report) {
  report.row({.name = name,
              .value = median(ours),
              .unit = unit,
              .peer = peer,
              .peer_value = median(theirs),
              .spread = spread_of(ours),
              .peer_spread = spread_of(theirs)});
}

// What cannot be nothing in a report.
double above_nothing(double value) {
  return std::max(value, 0.001);
}

Result<void> closed_turn(Contestant& contestant, const NextOperation& next, double seconds,
                         Figures& figures) {
  std::vector<ProcessCpuStopwatch> watches;
  for (const auto& node : contestant.nodes()) watches.emplace_back(node->process());
  TRY(const LoadResult result, contestant.load().closed(seconds, next));
  if (result.answered == 0) return Error(Errc::timeout, "nothing was answered in {} s", seconds);
  double cpu = 0;
  for (const ProcessCpuStopwatch& watch : watches) cpu += watch.seconds();
  figures.per_second.push_back(result.per_second());
  figures.cpu_us.push_back(cpu * 1e6 / static_cast<double>(result.answered));
  return {};
}

Result<void> compare_cpu(const std::string& name, double read_share, Contestant& alone,
                         Contestant& cluster, const Settings& settings, Report& report) {
  Figures of_cluster;
  Figures of_alone;
  for (int round = 0; round < settings.rounds; ++round) {
    TRY_VOID(closed_turn(cluster, cluster.mix(read_share), settings.seconds, of_cluster));
    TRY_VOID(closed_turn(alone, alone.mix(read_share), settings.seconds, of_alone));
  }
  add_row(fmt::format("QUORUM {}: server CPU, all nodes", name), "us", of_cluster.cpu_us,
          "one node alone", of_alone.cpu_us, report);
  add_row(fmt::format("QUORUM {}: throughput, all nodes on one processor", name), "/s",
          of_cluster.per_second, "one node alone", of_alone.per_second, report);
  return {};
}

Result<void> open_turns(Contestant& cluster, double rate, const Settings& settings,
                        Figures& figures) {
  for (int round = 0; round < settings.rounds; ++round) {
    TRY(const LoadResult result,
        cluster.load().open(settings.open_seconds, rate, cluster.mix(0.5)));
    figures.p50_us.push_back(result.quantile_us(0.5));
    figures.p99_us.push_back(result.quantile_us(0.99));
  }
  return {};
}

// The third one stays away.
Result<void> compare_with_one_killed(Contestant& cluster, const Settings& settings,
                                     Report& report) {
  Figures highest;
  for (int round = 0; round < settings.rounds; ++round) {
    TRY_VOID(closed_turn(cluster, cluster.mix(0.5), settings.seconds, highest));
  }
  const double rate = 0.3 * median(highest.per_second);
  Figures before;
  TRY_VOID(open_turns(cluster, rate, settings, before));
  cluster.node(2).kill();
  Figures after;
  TRY_VOID(open_turns(cluster, rate, settings, after));
  const std::string at = fmt::format("at {:.0f}/s, one killed: ", rate);
  add_row(at + "p50", "us", after.p50_us, "all three", before.p50_us, report);
  add_row(at + "p99", "us", after.p99_us, "all three", before.p99_us, report);
  return {};
}

// It comes back first, and has what it missed.
Result<void> measure_catching_up(Contestant& cluster, const Settings& settings, Report& report) {
  const auto lacks_nothing = [&cluster]() -> Result<bool> {
    TRY(const double missing, cluster.missing());
    return missing == 0;
  };
  NodeProcess& away = cluster.node(2);
  TRY_VOID(away.start());
  TRY_VOID(cluster.await_all_up());
  TRY_VOID(Contestant::await(lacks_nothing));
  away.kill();
  TRY(const double logged_before, cluster.node(0).metric("helenus_storage_write_bytes_total"));
  TRY(const LoadResult written, cluster.load().closed(settings.away_seconds, cluster.inserts()));
  TRY(const double logged, cluster.node(0).metric("helenus_storage_write_bytes_total"));
  TRY_VOID(away.start());
  const Stopwatch watch;
  TRY_VOID(cluster.await_all_up());
  TRY_VOID(Contestant::await(lacks_nothing));
  const double seconds = watch.seconds();
  const auto writes = static_cast<double>(written.answered);
  report.row({.name = fmt::format("catch-up after {:.0f} s", settings.away_seconds),
              .value = writes / seconds,
              .unit = "writes/s",
              .peer = "as they were written",
              .peer_value = written.per_second()});
  TRY(const double bytes, away.metric("helenus_replication_pulled_bytes_total"));
  TRY(const double pulled, away.metric("helenus_replication_mutations_pulled_total"));
  if (pulled < 0.9 * writes) {
    return Error(Errc::corrupt, "{} writes were missed, and {} fetched", writes, pulled);
  }
  report.row({.name = "anti-entropy for a missing write",
              .value = above_nothing(bytes / std::max(pulled, 1.0)),
              .unit = "bytes",
              .peer = "its record in the commit log",
              .peer_value = above_nothing((logged - logged_before) / writes)});
  return {};
}

Result<void> measure_rest(Contestant& cluster, const Settings& settings, Report& report) {
  rest(2);
  TRY(const double all_before, cluster.metric("helenus_rpc_sent_bytes_total"));
  TRY(const double gossip_before, cluster.metric("helenus_gossip_sent_bytes_total"));
  const Stopwatch watch;
  rest(settings.rest_seconds);
  TRY(const double all, cluster.metric("helenus_rpc_sent_bytes_total"));
  TRY(const double gossip, cluster.metric("helenus_gossip_sent_bytes_total"));
  const double gossip_said = gossip - gossip_before;
  report.row({.name = "at rest, beyond gossip: three nodes (frames and signs of life)",
              .value = above_nothing((all - all_before - gossip_said) / watch.seconds()),
              .unit = "bytes/s",
              .peer = "gossip",
              .peer_value = above_nothing(gossip_said / watch.seconds())});
  return {};
}

Result<void> run(const Options& options, Report& report) {
  const Settings settings = settings_of(options);
  stay_on(settings.processors.first);
  TRY(const auto alone, Contestant::start(settings, 1));
  TRY(const auto cluster, Contestant::start(settings, 3));
  TRY_VOID(alone->fill());
  TRY_VOID(cluster->fill());
  TRY_VOID(compare_cpu("write", 0, *alone, *cluster, settings, report));
  TRY_VOID(compare_cpu("read", 1, *alone, *cluster, settings, report));
  TRY_VOID(measure_rest(*cluster, settings, report));
  TRY_VOID(compare_with_one_killed(*cluster, settings, report));
  return measure_catching_up(*cluster, settings, report);
}

void measure_cluster(const Options& options, Report& report) {
  const auto done = run(options, report);
  if (done) return;
  fmt::print(stderr, "bench-cluster: {}\n", done.error());
  std::exit(2);
}

}  // namespace
}  // namespace helenus::bench

int main(int argc, char** argv) {
  return helenus::bench::benchmark_main(argc, argv, helenus::bench::measure_cluster);
}
