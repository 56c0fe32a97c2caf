// Stories about metrics.
#include "node/metrics.h"

#include <fstream>
#include <set>
#include <sstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace helenus::node {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(Metrics, ArePrintedForPrometheus) {
  const std::vector<Metric> metrics = {
      {.name = "helenus_a_total", .help = "Of a.", .value = 12345678},
      {.name = "helenus_b",
       .help = "Of b.",
       .kind = MetricKind::summary,
       .labels = "quantile=\"0.5\"",
       .value = 0.25},
      {.name = "helenus_b",
       .help = "Of b.",
       .kind = MetricKind::summary,
       .labels = "quantile=\"1\"",
       .value = 3},
  };
  EXPECT_EQ(to_prometheus(metrics),
            "# HELP helenus_a_total Of a.\n"
            "# TYPE helenus_a_total counter\n"
            "helenus_a_total 12345678\n"
            "# HELP helenus_b Of b.\n"
            "# TYPE helenus_b summary\n"
            "helenus_b{quantile=\"0.5\"} 0.25\n"
            "helenus_b{quantile=\"1\"} 3\n");
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
  add_server_metrics(server, 0, metrics);
  EXPECT_THAT(to_prometheus(metrics), HasSubstr("\nhelenus_cql_errors_total{code=\"0x2200\"} 2\n"));
  std::set<std::pair<std::string_view, std::string>> seen;
  for (const Metric& metric : metrics) {
    EXPECT_THAT(std::string(metric.name), StartsWith("helenus_"));
    EXPECT_EQ(metric.name.ends_with("_total"), metric.kind == MetricKind::counter) << metric.name;
    EXPECT_THAT(document.str(), HasSubstr(fmt::format("| `{}` |", metric.name)));
    EXPECT_TRUE(seen.emplace(metric.name, metric.labels).second) << metric.name << " twice";
  }
}

}  // namespace
}  // namespace helenus::node
