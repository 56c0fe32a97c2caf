#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "lab/flow_trace.h"
#include "lab/notebook.h"
#include "lab/walking_cuckoo.h"

namespace helenus::lab {
namespace {

using testing::HasSubstr;
using testing::Not;

class NotebookTest : public ::testing::Test {
 protected:
  NotebookTest() : folder_(fmt::format("{}/helenus-lab-{}", testing::TempDir(), ::getpid())) {}
  ~NotebookTest() override { std::filesystem::remove_all(folder_); }

  std::string text_of(const std::string& name) const {
    std::ifstream file(folder_ + "/" + name, std::ios::binary);
    EXPECT_TRUE(file.is_open()) << name;
    return std::string(std::istreambuf_iterator<char>(file), {});
  }

  std::string folder_;
};

void sample(Notebook& notebook) {
  notebook.section("Fig. 1: a sample");
  notebook.figure({.name = "sample",
                   .x_label = "x",
                   .y_label = "rate",
                   .right_label = {},
                   .y_scale = Scale::logarithmic,
                   .lines = {{.name = "one, two", .points = {{1, 0.5}, {2, 0}}},
                             {.name = "it's", .points = {{2, 0.25}}, .style = Style::dots}}});
  notebook.table({.name = "numbers", .columns = {"k", "t"}, .rows = {{"2", "0.5"}}});
  notebook.finding({"a rate", "0.9", "0.8", "Lower, as it should be."});
  notebook.note("A sentence.");
}

void skipped(Notebook&) {
  ADD_FAILURE() << "was not chosen";
}

constexpr std::array kExperiments = {Experiment{"sample", sample}, Experiment{"other", skipped}};

int run_with(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), "lab-sample");
  return lab_main(static_cast<int>(arguments.size()), arguments.data(), "Sample", kExperiments);
}

TEST_F(NotebookTest, WritesDataPlotAndReport) {
  ASSERT_EQ(run_with({"--out", folder_.c_str(), "--only", "sample"}), 0);
  EXPECT_EQ(text_of("sample.csv"), "x,\"one, two\",it's\n1,0.5,\n2,0,0.25\n");
  EXPECT_EQ(text_of("numbers.csv"), "k,t\n2,0.5\n");
  EXPECT_EQ(
      text_of("report.md"),
      "# Sample\n\n## Fig. 1: a sample\n\n![sample](sample.svg)\n\n| k | t |\n| --- | --- |\n"
      "| 2 | 0.5 |\n\n| what | paper | ours | what to make of it |\n| --- | --- | --- | --- |\n"
      "| a rate | 0.9 | 0.8 | Lower, as it should be. |\n\nA sentence.\n");
  EXPECT_EQ(text_of("findings.csv"),
            "section,what,paper,ours,what to make of it\n"
            "Fig. 1: a sample,a rate,0.9,0.8,\"Lower, as it should be.\"\n");
}

TEST(Distribution, EndsWithAllOfItAtTheLargestValue) {
  for (const std::size_t count : {1UL, 2UL, 199UL, 200UL, 201UL, 399UL, 1001UL}) {
    std::vector<double> values;
    for (std::size_t i = 0; i < count; ++i) values.push_back(static_cast<double>(count - i));
    const Line line = distribution("values", values);
    ASSERT_LE(line.points.size(), 200U);
    EXPECT_EQ(line.points.back().x, static_cast<double>(count)) << count;
    EXPECT_EQ(line.points.back().y, 1) << count;
    for (const Point& point : line.points) {
      EXPECT_EQ(point.y, point.x / static_cast<double>(count)) << count;
    }
  }
  EXPECT_TRUE(distribution("nothing", {}).points.empty());
}

TEST_F(NotebookTest, WhatALogarithmCannotShowIsLeftOutOfThePlot) {
  ASSERT_EQ(run_with({"--out", folder_.c_str(), "--only", "sample"}), 0);
  const std::string plot = text_of("sample.gnuplot");
  EXPECT_THAT(plot, HasSubstr("$line0 << END\n1 0.5\nEND\n"));
  EXPECT_THAT(plot, HasSubstr("title 'it''s'"));
  EXPECT_THAT(plot, HasSubstr("set output 'sample.svg'"));
  EXPECT_THAT(plot, Not(HasSubstr("y2")));
}

TEST_F(NotebookTest, AQuickRunSaysSo) {
  ASSERT_EQ(run_with({"--quick", "--out", folder_.c_str(), "--only", "sample"}), 0);
  EXPECT_THAT(text_of("report.md"), HasSubstr("A quick run"));
  const auto notebook = Notebook::open(folder_, "Quick", Effort::quick);
  EXPECT_EQ(notebook->trials(100), 2U);
}

TEST_F(NotebookTest, BadOptionsAndFilesThatCannotBeWrittenAreToldByTheExitCode) {
  EXPECT_EQ(run_with({}), 2);
  EXPECT_EQ(run_with({"--out"}), 2);
  EXPECT_EQ(run_with({"--nonsense", "x"}), 2);
  EXPECT_EQ(run_with({"--out", "/dev/null/folder"}), 2);
  std::filesystem::create_directories(folder_ + "/sample.csv");
  EXPECT_EQ(run_with({"--out", folder_.c_str(), "--only", "sample"}), 2);
}

// Keys come and go, many times as many as are in at once; none that is in is ever denied.
TEST(WalkingCuckoo, DeniesNoKeyAndFollowsTheirNumber) {
  using Merging = WalkingCuckoo::Merging;
  for (const auto merging : {Merging::the_one_left, Merging::the_emptiest, Merging::all}) {
    WalkingCuckoo filter({.places = 3, .moves_max = 50, .merging = merging});
    constexpr std::uint64_t kKeys = 3000;
    constexpr std::uint64_t kAlive = 500;
    const auto key = [](std::uint64_t i) { return filters::KeyHash::of_integer(i); };
    for (std::uint64_t i = 0; i < kKeys; ++i) {
      ASSERT_TRUE(filter.insert(key(i)));
      if (i >= kAlive) ASSERT_TRUE(filter.erase(key(i - kAlive)));
      if (i % 100 != 0) continue;
      for (std::uint64_t alive = i < kAlive ? 0 : i - kAlive + 1; alive <= i; ++alive) {
        ASSERT_TRUE(filter.contains(key(alive))) << alive << " after " << i;
      }
    }
    EXPECT_EQ(filter.size(), kAlive);
    EXPECT_LT(filter.slot_count(), 2 * kAlive);
    for (std::uint64_t i = kKeys - kAlive; i < kKeys; ++i) ASSERT_TRUE(filter.erase(key(i)));
    EXPECT_EQ(filter.size(), 0U);
    EXPECT_FALSE(filter.erase(key(0)));
    if (merging == Merging::all) EXPECT_EQ(filter.slot_count(), 3U);
  }
}

TEST(FlowTrace, HasThePublishedNumbers) {
  const std::vector<FlowEvent> trace = flow_trace(1);
  std::vector<unsigned> begun(kFlows);
  std::vector<unsigned> ended(kFlows);
  double before = 0;
  for (const FlowEvent& event : trace) {
    ASSERT_LE(before, event.seconds);
    if (event.kind == FlowEventKind::begins) ASSERT_LT(event.seconds, kFlowTraceSeconds);
    before = event.seconds;
    (event.kind == FlowEventKind::begins ? begun : ended)[event.flow] += 1;
    ASSERT_LE(ended[event.flow], begun[event.flow]);
  }
  EXPECT_EQ(begun, std::vector<unsigned>(kFlows, 1));
  EXPECT_EQ(ended, std::vector<unsigned>(kFlows, 1));
  EXPECT_EQ(alive_max(trace), kFlowsAliveMax);
}

}  // namespace
}  // namespace helenus::lab
