// lab-membership: how soon and how wrongly nodes are taken for dead, and what gossip costs.
//
//   lab-membership --out FOLDER [--quick] [--only PART]
//
// Cassandra is "Cassandra: a decentralized structured storage system" (Lakshman and Malik), section
// 5.3 and the experience of section 6. Clusters of membership::Membership machines run on a model
// network in virtual time: a round of gossip a second, four ticks of the detector in it, up to 50
// ms for a message.
#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "lab/notebook.h"
#include "membership/lab/model_network.h"
#include "membership/lab/swim_detector.h"
#include "membership/lab/timeout_detector.h"
#include "membership/phi_detector.h"

namespace helenus::lab {
namespace {

using membership::DetectionReport;
using membership::MakeDetector;
using membership::ModelNetwork;
using membership::ModelNetworkConfig;
using model::NodeId;

constexpr std::int64_t kSecondMs = 1'000;
constexpr std::int64_t kMinuteMs = 60 * kSecondMs;

MakeDetector phi(double threshold) {
  return [threshold](NodeId) {
    return std::make_unique<membership::PhiDetector>(membership::PhiConfig{.threshold = threshold});
  };
}
MakeDetector timeout(std::int64_t seconds) {
  return [seconds](NodeId) {
    return std::make_unique<membership::TimeoutDetector>(std::chrono::seconds(seconds));
  };
}
MakeDetector swim(std::int64_t suspicion_seconds) {
  return [suspicion_seconds](NodeId self) {
    return std::make_unique<membership::SwimDetector>(
        self, membership::SwimConfig{.suspicion_timeout = std::chrono::seconds(suspicion_seconds)});
  };
}

ModelNetworkConfig network_of(std::size_t nodes, MakeDetector make_detector) {
  ModelNetworkConfig config;
  config.nodes = nodes;
  config.tick_ms = 250;
  config.make_detector = std::move(make_detector);
  return config;
}

// What goes wrong besides the crashes.
struct Weather {
  std::string name;
  double loss = 0;
  std::int64_t stall_every_ms_mean = 0;
  std::int64_t stall_ms_max = 0;
};

const std::array kWeathers = {
    Weather{.name = "calm"},
    Weather{.name = "rough",
            .loss = 0.1,
            .stall_every_ms_mean = 2 * kMinuteMs,
            .stall_ms_max = 10 * kSecondMs},
};

struct Detection {
  double seconds_mean = 0;
  double seconds_worst = 0;
  double wrong_per_pair_and_day = 0;  // DOWN of a node that lives, as one node tells of one other
};

// So many times a node crashes, is away for a minute and a half, and comes back; all others watch.
Detection detection_with(MakeDetector make, const Weather& weather, std::size_t nodes,
                         std::uint64_t crashes) {
  ModelNetworkConfig config = network_of(nodes, std::move(make));
  config.loss = weather.loss;
  config.stall_every_ms_mean = weather.stall_every_ms_mean;
  config.stall_ms_max = weather.stall_ms_max;
  ModelNetwork network(config);
  network.run_ms(kMinuteMs);
  for (std::uint64_t i = 0; i < crashes; ++i) {
    const std::size_t victim = 2 + i % (nodes - 2);
    network.crash(victim);
    network.run_ms(90 * kSecondMs);
    network.start(victim);
    network.run_ms(30 * kSecondMs);
  }
  const DetectionReport& report = network.report();
  const auto pairs = static_cast<double>(nodes * (nodes - 1));
  const double days = static_cast<double>(network.now_ms()) / static_cast<double>(1440 * kMinuteMs);
  return {.seconds_mean = static_cast<double>(report.detection_ms_mean()) / 1e3,
          .seconds_worst = static_cast<double>(report.detection_ms_max) / 1e3,
          .wrong_per_pair_and_day = static_cast<double>(report.false_suspicions) / pairs / days};
}

std::vector<std::string> row_of(const std::string& detector, const std::string& setting,
                                const std::string& weather, const Detection& detection) {
  return {detector,
          setting,
          weather,
          fmt::format("{:.1f}", detection.seconds_mean),
          fmt::format("{:.1f}", detection.seconds_worst),
          fmt::format("{:.3g}", detection.wrong_per_pair_and_day)};
}

const std::vector<std::string> kDetectionColumns = {
    "detector", "setting",
    "weather",  "seconds to detect, mean",
    "worst",    "false suspicions of a pair and day"};

void threshold_section(Notebook& notebook) {
  notebook.section("Cassandra 5.3: detection and false suspicions against phi");
  const std::size_t nodes = notebook.is_quick() ? 10 : 100;
  const std::uint64_t crashes = notebook.is_quick() ? 1 : 4;
  Table table{.name = "membership-phi-table", .columns = kDetectionColumns, .rows = {}};
  Figure figure{.name = "membership-phi",
                .x_label = "threshold of phi",
                .y_label = "seconds to detect a crash",
                .right_label = "false suspicions of a pair and day",
                .lines = {}};
  double paper_seconds = 0;
  for (const Weather& weather : kWeathers) {
    Line mean{.name = "mean, " + weather.name, .points = {}};
    Line worst{.name = "worst, " + weather.name, .points = {}};
    Line wrong{.name = "false suspicions, " + weather.name, .points = {}, .axis = Axis::right};
    for (const double threshold : {1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 12.0}) {
      if (notebook.is_quick() && threshold != 5 && threshold != 8) continue;
      const Detection detection = detection_with(phi(threshold), weather, nodes, crashes);
      mean.points.push_back({threshold, detection.seconds_mean});
      worst.points.push_back({threshold, detection.seconds_worst});
      wrong.points.push_back({threshold, detection.wrong_per_pair_and_day});
      table.rows.push_back(row_of("phi", fmt::format("{}", threshold), weather.name, detection));
      if (threshold == 5 && weather.loss == 0) paper_seconds = detection.seconds_mean;
    }
    for (Line* line : {&mean, &worst, &wrong}) figure.lines.push_back(std::move(*line));
  }
  notebook.figure(figure);
  notebook.table(table);
  notebook.finding({"mean seconds to detect a crash, 100 nodes, phi 5", "about 15",
                    fmt::format("{:.1f}", paper_seconds),
                    "Of the same order; the paper does not tell how often its nodes gossip."});
  notebook.note(fmt::format(
      "{} nodes, of which one at a time crashes, {} crashes a run. *Calm*: no message is lost. "
      "*Rough*: one in ten is, and every node stands still once in two minutes for up to ten "
      "seconds. A false suspicion is a DOWN of a node that runs; a node that stands still runs. A "
      "node that came back is not counted for a minute. Each step of phi costs about 2.3 mean "
      "intervals between news of a node (t = phi · mean · ln 10), whatever the weather; what it "
      "buys is fewer stalls taken for deaths.",
      nodes, crashes));
}

struct Contender {
  std::string name;
  std::vector<std::pair<std::string, MakeDetector>> settings;
};

void detectors_section(Notebook& notebook) {
  notebook.section("Three detectors: how soon against how wrongly");
  const std::size_t nodes = notebook.is_quick() ? 10 : 50;
  const std::uint64_t crashes = notebook.is_quick() ? 1 : 4;
  std::vector<Contender> contenders(3);
  contenders[0].name = "phi";
  contenders[1].name = "fixed timeout";
  contenders[2].name = "SWIM-like";
  for (const double threshold : {2.0, 3.0, 4.0, 5.0, 6.0, 8.0}) {
    contenders[0].settings.emplace_back(fmt::format("{}", threshold), phi(threshold));
  }
  for (const std::int64_t seconds : {4, 6, 8, 10, 12, 15, 20}) {
    contenders[1].settings.emplace_back(fmt::format("{} s", seconds), timeout(seconds));
  }
  for (const std::int64_t seconds : {1, 2, 5, 10, 15}) {
    contenders[2].settings.emplace_back(fmt::format("suspected {} s", seconds), swim(seconds));
  }
  const Weather& weather = kWeathers[1];
  Table table{.name = "membership-detectors-table", .columns = kDetectionColumns, .rows = {}};
  Figure figure{.name = "membership-detectors",
                .x_label = "mean seconds to detect a crash",
                .y_label = "false suspicions of a pair and day",
                .right_label = {},
                .y_scale = Scale::logarithmic,
                .lines = {}};
  for (const Contender& contender : contenders) {
    Line line{.name = contender.name, .points = {}};
    for (const auto& [setting, make] : contender.settings) {
      if (notebook.is_quick() && line.points.size() == 2) break;
      const Detection detection = detection_with(make, weather, nodes, crashes);
      line.points.push_back({detection.seconds_mean, detection.wrong_per_pair_and_day});
      table.rows.push_back(row_of(contender.name, setting, weather.name, detection));
    }
    figure.lines.push_back(std::move(line));
  }
  notebook.figure(figure);
  notebook.table(table);
  notebook.note(fmt::format(
      "{} nodes in rough weather as above. Further left and further down is better. A fixed "
      "timeout "
      "and phi see the same heartbeats: where all pairs of nodes hear of each other equally often "
      "they trade alike, and phi's gain is that its threshold means the same in a cluster whose "
      "news "
      "travel more slowly. The SWIM-like detector asks by itself, so what it takes is mostly the "
      "time until it is the dead node's turn to be asked, which grows with the cluster.",
      nodes));
}

struct Cost {
  double bytes = 0;  // of a node in a second, sent
  double messages = 0;
  std::size_t message_bytes_largest = 0;
  std::optional<std::int64_t> agreement_s;  // within a minute
};

Cost cost_of(std::size_t nodes, const membership::GossipLimits& limits) {
  ModelNetworkConfig config = network_of(nodes, phi(8));
  config.tick_ms = 500;
  config.limits = limits;
  ModelNetwork network(config);
  while (!network.disagreement().empty() && network.now_ms() < kMinuteMs) {
    network.run_ms(kSecondMs);
  }
  Cost cost;
  if (network.disagreement().empty()) cost.agreement_s = network.now_ms() / kSecondMs;
  const std::uint64_t bytes = network.bytes_sent();
  const std::uint64_t messages = network.messages_sent();
  constexpr std::int64_t kRounds = 10;
  network.run_ms(kRounds * kSecondMs);
  const auto node_seconds = static_cast<double>(nodes * kRounds);
  cost.bytes = static_cast<double>(network.bytes_sent() - bytes) / node_seconds;
  cost.messages = static_cast<double>(network.messages_sent() - messages) / node_seconds;
  cost.message_bytes_largest = network.message_bytes_largest();
  return cost;
}

void bytes_section(Notebook& notebook) {
  notebook.section(
      "What gossip costs: bytes of a node in a second against the size of the cluster");
  std::vector<std::size_t> sizes = {3, 10, 30, 100, 300, 1'000};
  if (notebook.is_quick()) sizes.resize(3);
  membership::GossipLimits tight;
  tight.digest_bytes_max = 1'024;
  tight.delta_bytes_max = membership::GossipLimits::kDeltaBytesMin;
  Table table{.name = "membership-bytes-table",
              .columns = {"nodes", "digest, bytes at most", "delta, bytes at most",
                          "bytes sent by a node in a second", "messages", "largest message",
                          "seconds until all agree, from nothing"},
              .rows = {}};
  Figure figure{.name = "membership-bytes",
                .x_label = "nodes",
                .y_label = "bytes sent by a node in a second",
                .right_label = {},
                .x_scale = Scale::logarithmic,
                .y_scale = Scale::logarithmic,
                .lines = {}};
  for (const membership::GossipLimits& limits : {membership::GossipLimits(), tight}) {
    Line line{.name = fmt::format("digests of {} bytes at most", limits.digest_bytes_max),
              .points = {}};
    for (const std::size_t nodes : sizes) {
      const Cost cost = cost_of(nodes, limits);
      line.points.push_back({static_cast<double>(nodes), cost.bytes});
      table.rows.push_back({fmt::format("{}", nodes), fmt::format("{}", limits.digest_bytes_max),
                            fmt::format("{}", limits.delta_bytes_max),
                            fmt::format("{:.0f}", cost.bytes), fmt::format("{:.2f}", cost.messages),
                            fmt::format("{}", cost.message_bytes_largest),
                            cost.agreement_s ? fmt::format("{}", *cost.agreement_s) : "over 60"});
    }
    figure.lines.push_back(std::move(line));
  }
  notebook.figure(figure);
  notebook.table(table);
  notebook.note(
      "A round a second; every node says its status and its load besides its heartbeat. Without "
      "the heads of rpc's frames and of TCP. The first limits are the ones that nodes run with: "
      "what a node sends grows with the number of nodes, since every heart beats every second and "
      "everybody is to know, until digests reach their limit; from there on an exchange speaks of "
      "an arc of the nodes, and what is given up is how soon news arrive, not bytes.");
}

constexpr std::array kExperiments = {
    Experiment{"phi", threshold_section},
    Experiment{"detectors", detectors_section},
    Experiment{"bytes", bytes_section},
};

}  // namespace
}  // namespace helenus::lab

int main(int argc, char** argv) {
  return helenus::lab::lab_main(argc, argv, "Membership: detectors and gossip",
                                helenus::lab::kExperiments);
}
