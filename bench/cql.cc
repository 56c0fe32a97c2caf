// bench-cql: a Helenus node beside redis-server under the same load over the wire.
//
// The mixes are those of YCSB: A half reads and half updates, B 95 % reads, C reads only, and
// inserts of new keys; all of it in memory on both sides. Both hold the same: a key of 16 bytes and
// one value of 100, which is a row of one text key and one blob here and a string in Redis. (A row
// of YCSB proper has ten fields; Redis has no such thing that is read and written in one call at
// the price of a string, so neither side gets them.) An update is an INSERT that names the whole
// row, as SET replaces the whole string. Answers come without metadata, as drivers ask for those
// of prepared statements.
// Servers are pinned to one processor, the load to another. Everything is measured with 1 and with
// 16 requests under way on a connection. Throughput is the peak of a closed loop; latencies (p50,
// p99 and the largest) come from an open loop at half the throughput of the slower one, the same
// for both, counted from when a request was due. CPU is what the server's process spent on a
// request of the closed loop: on a machine that others use too, the steadiest of the figures.
// Whether the load is what limits a figure is told beside it: how busy it kept its processor in
// that loop, with waiting for answers left out. Where that is near 100 %, the faster server could
// do more. Figures are medians of five runs, with the least and the largest of these.
//
// What is written must be flushed and merged some time, and that is when latencies are bad: the
// open loop of inserts takes long enough for it, memtables are a quarter of their default so that
// it comes every other second, and how many flushes and merges ended in the open loops is told with
// the latencies.
//
// Durability: Helenus acknowledges when the operating system has the write and syncs every second
// (commitlog_sync: periodic); Redis keeps its data in memory only (no snapshots, appendonly no),
// the fastest it can be. For `durable` both sync before they acknowledge: commitlog_sync: batch,
// appendfsync always.
#include <algorithm>
#include <array>
#include <charconv>
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
#include <fmt/ranges.h>

#include "base/prng.h"
#include "bench/cql_dialect.h"
#include "bench/keys.h"
#include "bench/load.h"
#include "bench/measure.h"
#include "bench/redis_dialect.h"
#include "bench/report.h"
#include "bench/server_process.h"

namespace helenus::bench {
namespace {

using base::Errc;
using base::Error;
using base::Result;

constexpr double kOpenLoopShare = 0.5;
constexpr std::array<std::string_view, 5> kParts = {"insert", "A", "B", "C", "durable"};
constexpr std::string_view kOwnOptions =
    "  --only NAME               one of: insert, A, B, C, durable\n"
    "  --connections N           64\n"
    "  --depth N                 requests under way on a connection; 1, and then 16\n"
    "  --records N               keys that mixes draw from; 200000\n"
    "  --keys zipfian|uniform    how they draw; zipfian\n"
    "  --seconds S               of one turn; 1\n"
    "  --open-seconds S          of one turn of the open loop of inserts; 5\n"
    "  --memtable-mib N          of the node; 64\n"
    "  --redis PROGRAM           redis-server\n";

struct Settings {
  Load::Settings load;
  std::vector<std::size_t> depths = {1, 16};
  double open_seconds = 5;
  std::uint32_t memtable_mib = 64;
  std::uint64_t records = 200'000;
  Distribution keys = Distribution::zipfian;
  std::string only;
  std::string redis = "redis-server";
  double seconds = 1;
  int rounds = 5;
  Processors processors = allowed_processors();
};

template <class Number>
Result<Number> number_of(std::string_view text, Number low, Number high) {
  Number number{};
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (fault != std::errc() || end != text.data() + text.size() || number < low || number > high) {
    return Error(Errc::invalid_argument, "'{}' is no number from {} to {}", text, low, high);
  }
  return number;
}

Result<void> set_option(std::string_view name, const std::string& value, Settings& settings) {
  if (name == "--connections") {
    TRY(settings.load.connections, number_of<std::size_t>(value, 1, 4096));
  } else if (name == "--depth") {
    TRY(const auto depth, number_of<std::size_t>(value, 1, Load::kDepthMax));
    settings.depths = {depth};
  } else if (name == "--records") {
    TRY(settings.records, number_of<std::uint64_t>(value, 1000, 100'000'000));
  } else if (name == "--seconds") {
    TRY(settings.seconds, number_of<double>(value, 0.01, 3600));
  } else if (name == "--open-seconds") {
    TRY(settings.open_seconds, number_of<double>(value, 0.01, 3600));
  } else if (name == "--memtable-mib") {
    TRY(settings.memtable_mib, number_of<std::uint32_t>(value, 8, 65536));
  } else if (name == "--keys" && (value == "zipfian" || value == "uniform")) {
    settings.keys = value == "uniform" ? Distribution::uniform : Distribution::zipfian;
  } else if (name == "--only") {
    if (std::ranges::find(kParts, value) == kParts.end()) {
      return Error(Errc::invalid_argument, "--only {}: there are {}", value,
                   fmt::join(kParts, ", "));
    }
    settings.only = value;
  } else if (name == "--redis") {
    settings.redis = value;
  } else {
    return Error(Errc::invalid_argument, "{} {}: no such option", name, value);
  }
  return {};
}

Result<Settings> settings_of(const Options& options) {
  Settings settings;
  if (options.quick) {
    settings.records = 20'000;
    settings.seconds = 0.2;
    settings.open_seconds = 0.5;
    settings.memtable_mib = 8;
    settings.rounds = 3;
  }
  if (options.others.size() % 2 != 0) {
    return Error(Errc::invalid_argument, "{} needs a value", options.others.back());
  }
  for (std::size_t i = 0; i < options.others.size(); i += 2) {
    TRY_VOID(set_option(options.others[i], options.others[i + 1], settings));
  }
  return settings;
}

// A server under load, with everything that must live as long. Members end in reverse order.
struct Contestant {
  TemporaryFolder folder;
  std::unique_ptr<ServerProcess> server;
  std::unique_ptr<Dialect> dialect;
  std::uint16_t port = 0;
  std::uint16_t http_port = 0;  // 0: it tells nothing of itself
  std::unique_ptr<Load> load = nullptr;
  base::Prng random{20};
  std::uint64_t inserted = 0;
  std::uint64_t version = 0;
};

// The port that stands behind the words, up to that character.
Result<std::uint16_t> port_in(std::string_view output, std::string_view words, char behind) {
  const std::size_t found = output.find(words);
  if (found == std::string_view::npos) return Error(Errc::not_found, "no '{}'", words);
  const std::size_t begin = found + words.size();
  return number_of<std::uint16_t>(output.substr(begin, output.find(behind, begin) - begin), 1,
                                  65535);
}

Result<Contestant> start_helenus(const Settings& settings, bool durable) {
  TRY(TemporaryFolder folder, TemporaryFolder::make());
  const std::string config = folder.path() + "/helenus.yaml";
  std::ofstream(config) << "commitlog_sync: " << (durable ? "batch" : "periodic") << "\n"
                        << "memtable_mib: " << settings.memtable_mib << "\n";
  std::error_code fault;
  const auto here = std::filesystem::read_symlink("/proc/self/exe", fault).parent_path();
  TRY(auto server,
      ServerProcess::start({(here / "helenus").string(), "node", "--config", config, "--data",
                            folder.path() + "/data", "--cores", "1", "--cql", "127.0.0.1:0",
                            "--admin", "127.0.0.1:0", "--listen", "127.0.0.1:0", "--log", "warn"},
                           settings.processors.last, "is up: CQL "));
  TRY(const auto port, port_in(server->output(), "CQL 127.0.0.1:", ','));
  TRY(const auto http_port, port_in(server->output(), "http://127.0.0.1:", '/'));
  auto dialect = std::make_unique<CqlDialect>();
  TRY_VOID(dialect->prepare(port));
  return Contestant{.folder = std::move(folder),
                    .server = std::move(server),
                    .dialect = std::move(dialect),
                    .port = port,
                    .http_port = http_port};
}

Result<Contestant> start_redis(const Settings& settings, bool durable) {
  TRY(TemporaryFolder folder, TemporaryFolder::make());
  TRY(const std::uint16_t port, free_port());
  std::vector<std::string> command = {settings.redis,
                                      "--port",
                                      fmt::to_string(port),
                                      "--bind",
                                      "127.0.0.1",
                                      "--dir",
                                      folder.path(),
                                      "--save",
                                      "",
                                      "--appendonly",
                                      durable ? "yes" : "no"};
  if (durable) command.insert(command.end(), {"--appendfsync", "always"});
  TRY(auto server,
      ServerProcess::start(command, settings.processors.last, "Ready to accept connections"));
  return Contestant{.folder = std::move(folder),
                    .server = std::move(server),
                    .dialect = std::make_unique<RedisDialect>(),
                    .port = port};
}

// Connects anew, with so many requests under way on a connection from then on.
Result<void> connect(Contestant& contestant, const Settings& settings, std::size_t depth) {
  Load::Settings load = settings.load;
  load.depth = depth;
  contestant.load.reset();
  TRY(contestant.load, Load::connect(contestant.port, load, *contestant.dialect));
  return {};
}

// What the server has done by itself.
struct Upkeep {
  std::uint64_t flushes = 0;
  std::uint64_t merges = 0;
};

Result<Upkeep> upkeep_of(const Contestant& contestant) {
  if (contestant.http_port == 0) return Upkeep{};
  TRY(const std::string metrics, http_get(contestant.http_port, "/metrics"));
  const auto counter = [&](std::string_view name) -> Result<std::uint64_t> {
    const std::string line = fmt::format("\n{} ", name);
    const std::size_t found = metrics.find(line);
    if (found == std::string::npos) return Error(Errc::not_found, "no metric {}", name);
    const std::size_t begin = found + line.size();
    const std::string_view number =
        std::string_view(metrics).substr(begin, metrics.find_first_of("\r\n", begin) - begin);
    return number_of<std::uint64_t>(number, 0, UINT64_MAX);
  };
  Upkeep upkeep;
  TRY(upkeep.flushes, counter("helenus_storage_flushes_total"));
  TRY(upkeep.merges, counter("helenus_storage_compactions_total"));
  return upkeep;
}

NextOperation inserts(Contestant& contestant) {
  return [&contestant] {
    return Operation{.kind = Operation::Kind::write, .key = contestant.inserted++};
  };
}

NextOperation mix(Contestant& contestant, const KeyChooser& keys, double read_share) {
  return [&contestant, &keys, read_share] {
    const bool reads = contestant.random.chance(read_share);
    return Operation{.kind = reads ? Operation::Kind::read : Operation::Kind::write,
                     .key = keys.next(contestant.random),
                     .version = reads ? 0 : ++contestant.version};
  };
}

// What turns measured, by figure.
struct Figures {
  std::vector<double> per_second;
  std::vector<double> cpu_us;
  std::vector<double> load_busy;  // the load generator's share of its processor
  std::vector<double> p50_us;
  std::vector<double> p99_us;
  std::vector<double> largest_us;
};

Result<void> closed_turn(Contestant& contestant, const NextOperation& next, double seconds,
                         Figures& figures) {
  const ProcessCpuStopwatch cpu(contestant.server->process());
  const CpuStopwatch own_cpu;
  TRY(const LoadResult result, contestant.load->closed(seconds, next));
  if (result.answered == 0) return Error(Errc::timeout, "nothing was answered in {} s", seconds);
  figures.per_second.push_back(result.per_second());
  figures.cpu_us.push_back(cpu.seconds() * 1e6 / static_cast<double>(result.answered));
  figures.load_busy.push_back(own_cpu.seconds() / result.seconds);
  return {};
}

Result<void> open_turn(Contestant& contestant, const NextOperation& next, double seconds,
                       double per_second, Figures& figures) {
  TRY(const LoadResult result, contestant.load->open(seconds, per_second, next));
  figures.p50_us.push_back(result.quantile_us(0.5));
  figures.p99_us.push_back(result.quantile_us(0.99));
  figures.largest_us.push_back(result.largest_us());
  return {};
}

// A server and what to ask it.
struct Side {
  Contestant& contestant;
  NextOperation next;
  Figures figures = {};
};

Spread spread_of(const std::vector<double>& values, double scale) {
  const auto [low, high] = std::ranges::minmax(values);
  return {.low = low * scale, .high = high * scale};
}

void add_rows(const std::string& name, const std::string& peer, const Figures& ours,
              const Figures& theirs, const std::string& at, Report& report) {
  const auto row = [&](const std::string& what, const char* unit, double scale,
                       std::vector<double> Figures::* figure) {
    report.row({.name = fmt::format("{}: {}", name, what),
                .value = median(ours.*figure) * scale,
                .unit = unit,
                .peer = peer,
                .peer_value = median(theirs.*figure) * scale,
                .spread = spread_of(ours.*figure, scale),
                .peer_spread = spread_of(theirs.*figure, scale)});
  };
  row("throughput", "k/s", 1e-3, &Figures::per_second);
  row("server CPU a request", "us", 1, &Figures::cpu_us);
  row("load generator busy", "%", 100, &Figures::load_busy);
  row("p50" + at, "us", 1, &Figures::p50_us);
  row("p99" + at, "us", 1, &Figures::p99_us);
  row("largest" + at, "us", 1, &Figures::largest_us);
}

// What is asked of both.
struct Part {
  std::string name;
  std::string peer;
  double open_seconds;
};

// Turns of both, who begins changing: first the closed loop, then the open one.
Result<void> compare_at(std::size_t depth, const Part& part, Side ours, Side theirs,
                        const Settings& settings, Report& report) {
  TRY_VOID(connect(ours.contestant, settings, depth));
  TRY_VOID(connect(theirs.contestant, settings, depth));
  const auto turns = [&](const std::function<Result<void>(Side&)>& turn) -> Result<void> {
    for (int round = 0; round < settings.rounds; ++round) {
      const bool peer_begins = round % 2 == 1;
      TRY_VOID(turn(peer_begins ? theirs : ours));
      TRY_VOID(turn(peer_begins ? ours : theirs));
    }
    return {};
  };
  TRY_VOID(turns([&](Side& side) {
    return closed_turn(side.contestant, side.next, settings.seconds, side.figures);
  }));
  const double rate =
      kOpenLoopShare * std::min(median(ours.figures.per_second), median(theirs.figures.per_second));
  TRY(const Upkeep before, upkeep_of(ours.contestant));
  TRY_VOID(turns([&](Side& side) {
    return open_turn(side.contestant, side.next, part.open_seconds, rate, side.figures);
  }));
  TRY(const Upkeep after, upkeep_of(ours.contestant));
  add_rows(fmt::format("{}, depth {}", part.name, depth), part.peer, ours.figures, theirs.figures,
           fmt::format(" at {:.1f} k/s ({} flushes, {} merges)", rate / 1e3,
                       after.flushes - before.flushes, after.merges - before.merges),
           report);
  return {};
}

Result<void> compare(const Part& part, const Side& ours, const Side& theirs,
                     const Settings& settings, Report& report) {
  for (const std::size_t depth : settings.depths) {
    TRY_VOID(compare_at(depth, part, ours, theirs, settings, report));
  }
  return {};
}

// Until there are as many keys as the mixes draw from.
Result<void> fill(Contestant& contestant, std::uint64_t records) {
  while (contestant.inserted < records) {
    TRY_VOID(contestant.load->closed(0.05, inserts(contestant)));
  }
  return {};
}

Result<void> compare_in_memory(const Settings& settings, Report& report) {
  TRY(Contestant helenus, start_helenus(settings, false));
  TRY(Contestant redis, start_redis(settings, false));
  const KeyChooser keys(settings.keys, settings.records);
  const auto wanted = [&](std::string_view name) {
    return settings.only.empty() || settings.only == name;
  };
  if (wanted("insert")) {
    TRY_VOID(compare({.name = "insert", .peer = "redis SET", .open_seconds = settings.open_seconds},
                     {.contestant = helenus, .next = inserts(helenus)},
                     {.contestant = redis, .next = inserts(redis)}, settings, report));
  }
  TRY_VOID(connect(helenus, settings, settings.depths.front()));
  TRY_VOID(connect(redis, settings, settings.depths.front()));
  TRY_VOID(fill(helenus, settings.records));
  TRY_VOID(fill(redis, settings.records));
  struct Mix {
    const char* name;
    double read_share;
    const char* peer;
  };
  for (const auto& [name, read_share, peer] :
       {Mix{"A", 0.5, "redis GET, SET"}, Mix{"B", 0.95, "redis GET, SET"},
        Mix{"C", 1, "redis GET"}}) {
    if (!wanted(name)) continue;
    TRY_VOID(compare({.name = name, .peer = peer, .open_seconds = settings.seconds},
                     {.contestant = helenus, .next = mix(helenus, keys, read_share)},
                     {.contestant = redis, .next = mix(redis, keys, read_share)}, settings,
                     report));
  }
  return {};
}

Result<void> compare_durable(const Settings& settings, Report& report) {
  TRY(Contestant helenus, start_helenus(settings, true));
  TRY(Contestant redis, start_redis(settings, true));
  return compare({.name = "durable insert",
                  .peer = "redis SET, fsync always",
                  .open_seconds = settings.open_seconds},
                 {.contestant = helenus, .next = inserts(helenus)},
                 {.contestant = redis, .next = inserts(redis)}, settings, report);
}

Result<void> run(const Options& options, Report& report) {
  TRY(const Settings settings, settings_of(options));
  stay_on(settings.processors.first);
  if (settings.only != "durable") TRY_VOID(compare_in_memory(settings, report));
  if (settings.only.empty() || settings.only == "durable") {
    TRY_VOID(compare_durable(settings, report));
  }
  return {};
}

void compare_servers(const Options& options, Report& report) {
  const auto done = run(options, report);
  if (done) return;
  fmt::print(stderr, "bench-cql: {}\n", done.error());
  std::exit(2);
}

}  // namespace
}  // namespace helenus::bench

int main(int argc, char** argv) {
  return helenus::bench::benchmark_main(argc, argv, helenus::bench::compare_servers,
                                        helenus::bench::kOwnOptions);
}
