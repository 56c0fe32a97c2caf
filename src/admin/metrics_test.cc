// Stories about metrics.
#include "admin/metrics.h"

#include <algorithm>
#include <chrono>
#include <fstream>
#include <set>
#include <sstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace helenus::admin {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

TEST(Metrics, ArePrintedForPrometheus) {
  const std::vector<Metric> metrics = {
      {.name = "helenus_a_total", .help = "Of a.", .value = 12345678},
      {.name = "helenus_b",
       .help = "Of b.",
       .kind = MetricKind::histogram,
       .labels = "le=\"0.5\"",
       .value = 2,
       .suffix = "_bucket"},
      {.name = "helenus_b",
       .help = "Of b.",
       .kind = MetricKind::histogram,
       .value = 3.25,
       .suffix = "_sum"},
  };
  EXPECT_EQ(to_prometheus(metrics),
            "# HELP helenus_a_total Of a.\n"
            "# TYPE helenus_a_total counter\n"
            "helenus_a_total 12345678\n"
            "# HELP helenus_b Of b.\n"
            "# TYPE helenus_b histogram\n"
            "helenus_b_bucket{le=\"0.5\"} 2\n"
            "helenus_b_sum 3.25\n");
}

TEST(Metrics, LatenciesAreInBucketsThatGrow) {
  cql::ServerStatistics one;
  auto& rows = one.answer_ns[static_cast<std::size_t>(cql::protocol::ResultKind::rows)];
  rows.record((1 << 14) - 1);
  rows.record(1 << 14);
  rows.record(3'000'000'000);
  cql::ServerStatistics server;
  server.answer_ns[cql::ServerStatistics::kErrors].record(60'000'000'000);
  server.add(one);
  std::vector<Metric> metrics;
  add_server_metrics(server, 0, metrics);
  const std::string text = to_prometheus(metrics);
  for (const std::string_view line :
       {"# TYPE helenus_cql_request_seconds histogram",
        R"(helenus_cql_request_seconds_bucket{answer="rows",le="1.6383e-05"} 1)",
        R"(helenus_cql_request_seconds_bucket{answer="rows",le="3.2767e-05"} 2)",
        R"(helenus_cql_request_seconds_bucket{answer="rows",le="4.294967295"} 3)",
        R"(helenus_cql_request_seconds_bucket{answer="rows",le="+Inf"} 3)",
        R"(helenus_cql_request_seconds_count{answer="rows"} 3)",
        R"(helenus_cql_request_seconds_bucket{answer="error",le="17.179869183"} 0)",
        R"(helenus_cql_request_seconds_bucket{answer="error",le="+Inf"} 1)",
        R"(helenus_cql_request_seconds_sum{answer="error"} 60)"}) {
    EXPECT_THAT(text, HasSubstr(fmt::format("{}\n", line)));
  }
  EXPECT_THAT(text, Not(HasSubstr("answer=\"void\"")));
}

TEST(Metrics, EveryOneIsDocumentedAndNamedAsItShould) {
  std::ifstream file(HELENUS_DOCUMENTS "/operations/metrics.md");
  std::stringstream document;
  document << file.rdbuf();
  std::vector<Metric> metrics;
  add_engine_metrics({}, metrics);
  cql::ServerStatistics server;
  server.requests[static_cast<std::size_t>(cql::protocol::Opcode::query)] = 1;
  server.errors = {{cql::protocol::ErrorCode::invalid, 2}};
  server.answer_ns[cql::ServerStatistics::kErrors].record(1000);
  add_server_metrics(server, 0, metrics);
  ClusterStatistics cluster;
  cluster.peers.push_back({.node = {}, .is_of_cluster = true, .statistics = {}});
  cluster.clocks.push_back({.node = {}, .at_least = std::chrono::seconds(1)});
  cluster.peers.front().statistics.round_trip_smoothed = std::chrono::milliseconds(2);
  add_cluster_metrics(cluster, metrics);
  replication::AntiEntropyReport report;
  report.peers.emplace_back();
  add_replication_metrics(report, metrics);
  add_request_metrics({}, metrics);
  EXPECT_THAT(to_prometheus(metrics), HasSubstr("\nhelenus_cql_errors_total{code=\"0x2200\"} 2\n"));
  std::set<std::pair<std::string, std::string>> seen;
  for (const Metric& metric : metrics) {
    EXPECT_THAT(std::string(metric.name), StartsWith("helenus_"));
    EXPECT_EQ(metric.name.ends_with("_total"), metric.kind == MetricKind::counter) << metric.name;
    EXPECT_THAT(document.str(), HasSubstr(fmt::format("| `{}` |", metric.name)));
    const std::string name = fmt::format("{}{}", metric.name, metric.suffix);
    EXPECT_TRUE(seen.emplace(name, metric.labels).second) << name << " twice";
  }
}

TEST(Metrics, TellWhatWasSaidAboutTheMetadataInVain) {
  ClusterStatistics cluster;
  cluster.consensus = {.messages_dropped = 5, .messages_refused = 7};
  std::vector<Metric> metrics;
  add_cluster_metrics(cluster, metrics);
  EXPECT_THAT(to_prometheus(metrics), HasSubstr("\nhelenus_consensus_messages_dropped_total 5\n"));
  EXPECT_THAT(to_prometheus(metrics), HasSubstr("\nhelenus_consensus_messages_refused_total 7\n"));
}

TEST(Metrics, PeersBeyondALimitAndThoseOfNoClusterAreOne) {
  ClusterStatistics cluster;
  const std::size_t count = 2 * kPeersShownMax;
  for (std::size_t i = 0; i < count; ++i) {
    ClusterStatistics::Peer peer{.node = model::NodeId(base::Uuid::from_random(7, i)),
                                 .is_of_cluster = i != 3,
                                 .statistics = {}};
    peer.statistics.bytes_sent = 10;
    peer.statistics.calls_failed = {{base::Errc::timeout, 1}, {base::Errc::unavailable, 2}};
    cluster.peers.push_back(std::move(peer));
  }
  std::vector<Metric> metrics;
  add_cluster_metrics(cluster, metrics);
  double sum = 0;
  double others = 0;
  std::size_t shown = 0;
  for (const Metric& metric : metrics) {
    if (metric.name != "helenus_rpc_sent_bytes_total") continue;
    ++shown;
    sum += metric.value;
    if (metric.labels == "node=\"others\"") others = metric.value;
    EXPECT_THAT(metric.labels, Not(HasSubstr(cluster.peers[3].node.value().to_string())));
  }
  EXPECT_EQ(shown, kPeersShownMax + 1);
  EXPECT_EQ(sum, 10.0 * static_cast<double>(count));
  EXPECT_EQ(others, 10.0 * static_cast<double>(count - kPeersShownMax));
  EXPECT_THAT(to_prometheus(metrics),
              HasSubstr(fmt::format("helenus_rpc_calls_failed_total{{node=\"{}\"}} 3\n",
                                    cluster.peers[0].node.value().to_string())));
}

TEST(Metrics, ReplicasBeyondALimitAreOne) {
  replication::AntiEntropyReport report;
  for (std::size_t i = 0; i < kPeersShownMax + 2; ++i) {
    report.peers.push_back({.node = model::NodeId(base::Uuid::from_random(7, i)),
                            .lacking_there = 10,
                            .lacking_here = 3});
  }
  std::vector<Metric> metrics;
  add_replication_metrics(report, metrics);
  const std::string text = to_prometheus(metrics);
  const std::string first = report.peers.front().node.value().to_string();
  const std::string last = report.peers.back().node.value().to_string();
  for (const std::string& line :
       {fmt::format("\nhelenus_replication_missing_there{{node=\"{}\"}} 10\n", first),
        fmt::format("\nhelenus_replication_missing_here{{node=\"{}\"}} 3\n", first),
        std::string("\nhelenus_replication_missing_there{node=\"others\"} 20\n"),
        std::string("\nhelenus_replication_missing_here{node=\"others\"} 6\n")}) {
    EXPECT_THAT(text, HasSubstr(line));
  }
  EXPECT_THAT(text, Not(HasSubstr(last)));
}

void expect_each_once(const std::vector<Metric>& metrics, const std::vector<double>& values) {
  for (const double value : values) {
    EXPECT_EQ(std::ranges::count(metrics, value, &Metric::value), 1) << value;
  }
}

// Every number of it, each with a value of its own.
std::vector<std::uint64_t*> fields_of_disk_and_indexes(storage::EngineStatistics& engine) {
  return {&engine.writes_refused,      &engine.disk_reserve_bytes,  &engine.index_rows_read,
          &engine.indexes_being_built, &engine.index_entries_stale, &engine.sstables_superseded};
}

TEST(Metrics, ShowEverythingThatTheEngineTells) {
  storage::EngineStatistics engine;
  std::vector<double> values;
  const auto number = [&](auto& field) {
    field = 1000 + values.size();
    values.push_back(static_cast<double>(field));
  };
  for (auto* field : {&engine.writes,
                      &engine.write_bytes,
                      &engine.user_bytes,
                      &engine.log_bytes_written,
                      &engine.writes_repeated,
                      &engine.writes_delayed,
                      &engine.reads,
                      &engine.reads_from_memtables,
                      &engine.reads_from_sstables,
                      &engine.reads_found_nothing,
                      &engine.reads_waited_for_log,
                      &engine.flushes,
                      &engine.flushed_bytes,
                      &engine.flush_failures,
                      &engine.compactions,
                      &engine.compacted_bytes_read,
                      &engine.compacted_bytes_written,
                      &engine.compaction_failures,
                      &engine.collections,
                      &engine.keys_gone,
                      &engine.directories_passed_over,
                      &engine.partitions_unsettled,
                      &engine.mutations_moved,
                      &engine.mutation_bytes_written,
                      &engine.mutation_files_shed,
                      &engine.sstable_bytes,
                      &engine.compaction_backlog_bytes,
                      &engine.mutation_file_bytes,
                      &engine.sstable_counters.bytes_read,
                      &engine.sstable_counters.reads,
                      &engine.sstable_counters.reads_delayed,
                      &engine.sstable_counters.reads_shared,
                      &engine.sstable_counters.filter_negatives,
                      &engine.sstable_counters.filter_positives,
                      &engine.sstable_counters.filter_false_positives,
                      &engine.cache_counters.hits,
                      &engine.cache_counters.misses,
                      &engine.cache_counters.insertions,
                      &engine.cache_counters.evictions,
                      &engine.cache_counters.ghost_hits,
                      &engine.cache_counters.refusals,
                      &engine.log_usage.disk_bytes,
                      &engine.log_usage.disk_bytes_max}) {
    number(*field);
  }
  for (auto* field : fields_of_disk_and_indexes(engine)) number(*field);
  number(engine.increments_unfolded);
  for (auto* field :
       {&engine.disks_full, &engine.memtable_bytes, &engine.memtables_waiting, &engine.sstables,
        &engine.sstables_set_aside, &engine.sstable_resident_bytes, &engine.compactions_running,
        &engine.mutations_in_memory, &engine.mutation_memory_bytes, &engine.mutation_dots_bytes,
        &engine.timestamp_floor_bytes, &engine.mutation_files, &engine.tablets_in_doubt,
        &engine.tablets_stopped, &engine.log_usage.segments, &engine.log_usage.spare_files,
        &engine.log_usage.staged_bytes, &engine.log_usage.waiters}) {
    number(*field);
  }
  engine.sstable_counters.data_blocks_read = 5000;
  engine.sstable_counters.index_blocks_read = 77;
  values.push_back(5077);  // both kinds of blocks together
  std::vector<Metric> metrics;
  add_engine_metrics(engine, metrics);
  expect_each_once(metrics, values);
}

TEST(Metrics, ShowEverythingThatReplicasTell) {
  replication::AntiEntropyReport report;
  std::vector<double> values;
  const auto number = [&](auto& field) {
    field = 1000 + values.size();
    values.push_back(static_cast<double>(field));
  };
  auto& peer = report.peers.emplace_back();
  for (auto* field : {&peer.lacking_there,
                      &peer.lacking_here,
                      &report.announcements,
                      &report.announcements_failed,
                      &report.clocks_announced,
                      &report.clocks_refused,
                      &report.clocks_taken,
                      &report.clocks_ignored,
                      &report.pulls,
                      &report.pulls_failed,
                      &report.pages,
                      &report.mutations_pulled,
                      &report.bytes_pulled,
                      &report.pages_served,
                      &report.bytes_served,
                      &report.streams,
                      &report.streams_failed,
                      &report.streams_refused,
                      &report.entries_streamed,
                      &report.bytes_streamed,
                      &report.streams_served,
                      &report.stream_bytes_served,
                      &report.dots_covered,
                      &report.mutations_put_off,
                      &report.mutations_refused,
                      &report.withheld}) {
    number(*field);
  }
  for (auto* field : {&report.tablets, &report.tablets_behind, &report.tablets_behind_themselves}) {
    number(*field);
  }
  std::vector<Metric> metrics;
  add_replication_metrics(report, metrics);
  expect_each_once(metrics, values);
}

}  // namespace
}  // namespace helenus::admin
