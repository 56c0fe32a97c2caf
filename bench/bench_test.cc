#include <array>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "bench/measure.h"
#include "bench/report.h"

namespace helenus::bench {
namespace {

using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;

Row sample_row() {
  return {.name = "writes", .value = 30, .unit = "k/s", .peer = "RocksDB", .peer_value = 20};
}

int run_with(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), "bench-sample");
  return benchmark_main(static_cast<int>(arguments.size()), arguments.data(),
                        [](const Options&, Report& report) { report.row(sample_row()); });
}

TEST(Median, IsTheMiddleWhateverTheOrder) {
  EXPECT_EQ(median({3, 1, 2}), 2);
  EXPECT_EQ(median({4, 1, 3, 2}), 2.5);
  EXPECT_EQ(median({7}), 7);
  EXPECT_DEATH(median({}), "assertion failed");
}

TEST(ByTurns, AlternatesWhoBegins) {
  std::string order;
  const Medians medians = by_turns(
      3,
      [&] {
        order += 'a';
        return static_cast<double>(order.size());
      },
      [&] {
        order += 'b';
        return 10.0;
      });
  EXPECT_EQ(order, "abbaab");
  EXPECT_EQ(medians.ours, 4);
  EXPECT_EQ(medians.peer, 10);
}

TEST(OperationsPerSecond, CountsForAsLongAsAsked) {
  std::uint64_t count = 0;
  const Stopwatch stopwatch;
  const double rate = operations_per_second(0.01, [&] { ++count; });
  EXPECT_GE(stopwatch.seconds(), 0.01);
  EXPECT_GT(rate, 0);
  EXPECT_LE(rate, static_cast<double>(count) / 0.01);
}

TEST(Options, TakeWhatTheyKnowAndLeaveTheRest) {
  const std::array arguments = {"--quick", "--keys", "--json", "out.json", "7"};
  const auto options = parse_options(arguments);
  ASSERT_TRUE(options);
  EXPECT_TRUE(options->quick);
  EXPECT_EQ(options->json_path, "out.json");
  EXPECT_THAT(options->others, ElementsAre("--keys", "7"));
}

TEST(Options, JsonNeedsAFile) {
  EXPECT_TRUE(parse_options(std::array{"--json"}).failed_with(base::Errc::invalid_argument));
  EXPECT_EQ(parse_options(std::array{"--json=x"})->json_path, "x");
}

TEST(Report, TableEndsWithTheRatio) {
  Report report;
  report.row(sample_row());
  const std::string table = report.table();
  EXPECT_THAT(table.substr(0, table.find('\n')), EndsWith("ratio"));
  EXPECT_THAT(table, EndsWith("  1.50\n"));
  EXPECT_THAT(table, HasSubstr("RocksDB"));
}

TEST(Report, JsonHasTheSameRows) {
  Report report;
  report.row(sample_row());
  const auto parsed = nlohmann::json::parse(report.json());
  const nlohmann::json expected = {{"name", "writes"},  {"value", 30.0},      {"unit", "k/s"},
                                   {"peer", "RocksDB"}, {"peer_value", 20.0}, {"ratio", 1.5}};
  EXPECT_EQ(parsed, nlohmann::json::array({expected}));
}

TEST(Report, ASpreadIsToldWhereThereIsOne) {
  Report report;
  Row row = sample_row();
  row.spread = {.low = 28, .high = 31.5};
  report.row(row);
  EXPECT_THAT(report.table(), HasSubstr("30 [28 31.5]"));
  const auto parsed = nlohmann::json::parse(report.json()).at(0);
  EXPECT_EQ(parsed.at("low"), 28);
  EXPECT_EQ(parsed.at("high"), 31.5);
  EXPECT_FALSE(parsed.contains("peer_low"));
}

TEST(Report, RefusesARowWithoutAPeerOrAMeasurement) {
  Report report;
  Row nameless = sample_row();
  nameless.peer.clear();
  EXPECT_DEATH(report.row(nameless), "names no peer");
  Row unmeasured = sample_row();
  unmeasured.peer_value = 0;
  EXPECT_DEATH(report.row(unmeasured), "was not measured");
}

TEST(BenchmarkMain, WritesTheJsonFile) {
  const std::string path = testing::TempDir() + fmt::format("helenus_bench_{}.json", ::getpid());
  ASSERT_EQ(run_with({"--json", path.c_str()}), 0);
  std::ifstream file(path);
  const std::string written(std::istreambuf_iterator<char>(file), {});
  EXPECT_EQ(nlohmann::json::parse(written).at(0).at("ratio"), 1.5);
  ::unlink(path.c_str());
}

TEST(BenchmarkMain, AFileThatCannotBeWrittenIsToldBeforeMeasuring) {
  testing::internal::CaptureStderr();
  EXPECT_EQ(run_with({"--json", "/nonexistent/out.json"}), 2);
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "cannot write /nonexistent/out.json: No such file or directory\n");
}

}  // namespace
}  // namespace helenus::bench
