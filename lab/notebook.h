// Notebook: what an experiment of the lab writes down. Each figure or table of a paper is a section
// with its data (CSV), its plot (a gnuplot script, which lab/run turns into SVG and PNG), the
// paper's numbers beside ours, and sentences that say what to make of them. All sections together
// are one report in Markdown, and all pairs of numbers one table, findings.csv.
//
//   int main(int argc, char** argv) {
//     return lab_main(argc, argv, "Filters", kExperiments);   // see filters.cc
//   }
//
//   void figure_8(Notebook& notebook) {
//     notebook.section("FBF Fig. 8: ...");
//     notebook.figure({.name = "fbf-08", ...});
//     notebook.finding({.what = "...", .paper = "0.9", .ours = fmt::format("{:.2f}", ours),
//                       .sentence = "As in the paper."});
//     notebook.note("The optimised check ...");
//   }
//
// Experiments are functions of fixed seeds: the same program writes the same bytes.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace helenus::lab {

struct Point {
  double x = 0;
  double y = 0;
};

enum class Style : std::uint8_t { lines, dots, steps };
enum class Axis : std::uint8_t { left, right };
enum class Scale : std::uint8_t { linear, logarithmic };

struct Line {
  std::string name;
  std::vector<Point> points;  // those with a y that is not positive are left out of log plots
  Style style = Style::lines;
  Axis axis = Axis::left;
};

struct Figure {
  std::string name;  // of its files: "fbf-08" gives fbf-08.csv and fbf-08.gnuplot
  std::string x_label;
  std::string y_label;
  std::string right_label;  // empty: there is no axis on the right
  Scale x_scale = Scale::linear;
  Scale y_scale = Scale::linear;
  std::vector<Line> lines;
};

struct Table {
  std::string name;
  std::vector<std::string> columns;
  std::vector<std::vector<std::string>> rows;  // as many cells each as there are columns
};

// The part of the values that is at most x, at up to two hundred of them, the largest included.
Line distribution(std::string name, std::vector<double> values);

// One number of the paper beside ours.
struct Finding {
  std::string what;
  std::string paper;  // "-" where the paper has none
  std::string ours;
  std::string sentence;  // what to make of the two
};

enum class Effort : std::uint8_t { full, quick };

// Writes files as it goes; the first one that cannot be written is reported by finish().
class Notebook {
 public:
  // Errors: io_error when the folder cannot be made.
  static base::Result<Notebook> open(std::string folder, std::string title, Effort effort);

  // Quick: fewer trials, to see that it works; not to quote.
  bool is_quick() const { return effort_ == Effort::quick; }
  // `count`, or a fiftieth of it when quick.
  std::uint64_t trials(std::uint64_t count) const { return is_quick() ? count / 50 : count; }

  void section(std::string_view heading);
  // These belong to the last section. Requires: there is one.
  void figure(const Figure& figure);
  void table(const Table& table);
  void finding(Finding finding);
  void note(std::string_view sentences);

  // Writes report.md and findings.csv. Errors: io_error, of this or of an earlier file.
  base::Result<void> finish();

 private:
  struct Section {
    std::string heading;
    std::vector<std::string> figures;
    std::vector<Table> tables;
    std::vector<Finding> findings;
    std::vector<std::string> notes;
  };

  Notebook(std::string folder, std::string title, Effort effort);
  Section& last();
  std::string findings_csv() const;
  void write(const std::string& name, std::string_view text);

  std::string folder_;
  std::string title_;
  Effort effort_;
  std::vector<Section> sections_;
  base::Result<void> written_;
};

struct Experiment {
  std::string_view name;  // what --only is matched against
  void (*run)(Notebook&);
};

// Takes --out FOLDER (required), --quick and --only PART (experiments whose name has PART in it),
// runs the experiments and writes the report. Returns the exit code: 2 for a bad option or a file
// that cannot be written.
int lab_main(int argc, const char* const* argv, std::string_view title,
             std::span<const Experiment> experiments);

}  // namespace helenus::lab
