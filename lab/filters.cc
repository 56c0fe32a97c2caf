// lab-filters: the figures and tables of the papers on filters, run again.
//
//   lab-filters --out FOLDER [--quick] [--only PART]
//
// FBF is "Idempotent distributed counters using a forgetful Bloom filter", CCF "The consistent
// cuckoo filter". Each experiment says what it took from its paper and what it had to choose.
#include "lab/filters.h"

#include <array>

#include <fmt/format.h>

#include "lab/flow_trace.h"

namespace helenus::lab {

void flow_trace_section(Notebook& notebook) {
  notebook.section("The flow trace: a stand-in for the Yahoo! trace of CCF");
  const std::vector<FlowEvent> trace = flow_trace(1);
  Line alive{.name = "flows alive", .points = {}};
  std::uint64_t count = 0;
  std::uint64_t flows = 0;
  constexpr double kSecondsPerPoint = 5;
  for (const FlowEvent& event : trace) {
    if (event.kind == FlowEventKind::begins) ++flows;
    event.kind == FlowEventKind::begins ? ++count : --count;
    const bool due =
        alive.points.empty() || event.seconds - alive.points.back().x >= kSecondsPerPoint;
    if (due) alive.points.push_back({event.seconds, static_cast<double>(count)});
  }
  notebook.figure({.name = "flow-trace",
                   .x_label = "seconds",
                   .y_label = "flows alive",
                   .right_label = {},
                   .lines = {alive}});
  notebook.finding(
      {"flows in 20 minutes", "58,941", fmt::format("{}", flows), "Made to have this number."});
  notebook.finding({"most alive at once", "about 7,290", fmt::format("{}", alive_max(trace)),
                    "Made to have this number."});
  notebook.note(
      "Generated, since the trace is not public; `lab/flow_trace.h` says what is published and "
      "what is chosen.");
}

namespace {

constexpr std::array kExperiments = {
    Experiment{"FBF Fig. 8", forgetful_figure_8},
    Experiment{"FBF Fig. 9", forgetful_figure_9},
    Experiment{"FBF Fig. 10", forgetful_figure_10},
    Experiment{"FBF Fig. 11", forgetful_figure_11},
    Experiment{"FBF Fig. 12", forgetful_figure_12},
    Experiment{"FBF Fig. 13", forgetful_figure_13},
    Experiment{"FBF Fig. 16", forgetful_figure_16},
    Experiment{"sliced beside FBF", sliced_beside_forgetful},
    Experiment{"burst", burst_section},
    Experiment{"flow trace", flow_trace_section},
    Experiment{"ccf table 2", ccf_table_2},
    Experiment{"ccf figure 3", ccf_figure_3},
    Experiment{"ccf figure 4", ccf_figure_4},
    Experiment{"ccf figure 5", ccf_figure_5},
};

}  // namespace
}  // namespace helenus::lab

int main(int argc, char** argv) {
  return helenus::lab::lab_main(argc, argv, "The filters of the papers, run again",
                                helenus::lab::kExperiments);
}
