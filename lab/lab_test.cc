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
  notebook.finding({"a rate", "0.9", "0.8"});
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
      "| 2 | 0.5 |\n\n| what | paper | ours |\n| --- | --- | --- |\n| a rate | 0.9 | 0.8 |\n\n"
      "A sentence.\n");
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
