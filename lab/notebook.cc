#include "lab/notebook.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/assert.h"

namespace helenus::lab {

using base::Errc;
using base::Error;

namespace {

std::string csv_cell(std::string_view text) {
  if (text.find_first_of(",\"\n") == std::string_view::npos) return std::string(text);
  std::string quoted = "\"";
  for (const char letter : text) {
    if (letter == '"') quoted += '"';
    quoted += letter;
  }
  return quoted + '"';
}

// One row for each x, one column for each line; a line without a point at an x leaves a gap.
std::string csv_of(const Figure& figure) {
  std::map<double, std::vector<std::string>> rows;
  for (std::size_t i = 0; i < figure.lines.size(); ++i) {
    for (const Point& point : figure.lines[i].points) {
      auto& row = rows.try_emplace(point.x, figure.lines.size()).first->second;
      row[i] = fmt::format("{:.6g}", point.y);
    }
  }
  std::string text = csv_cell(figure.x_label);
  for (const Line& line : figure.lines) text += "," + csv_cell(line.name);
  text += '\n';
  for (const auto& [x, cells] : rows) text += fmt::format("{:.6g},{}\n", x, fmt::join(cells, ","));
  return text;
}

std::string csv_row(const std::vector<std::string>& cells) {
  std::string text;
  for (std::size_t i = 0; i < cells.size(); ++i) text += (i == 0 ? "" : ",") + csv_cell(cells[i]);
  return text + '\n';
}

std::string csv_of(const Table& table) {
  std::string text = csv_row(table.columns);
  for (const auto& row : table.rows) text += csv_row(row);
  return text;
}

std::string_view gnuplot_style(Style style) {
  switch (style) {
    case Style::lines:
      return "lines linewidth 2";
    case Style::dots:
      return "points pointtype 7 pointsize 0.5";
    case Style::steps:
      return "steps linewidth 2";
  }
  UNREACHABLE();
}

// A string of gnuplot's between single quotes.
std::string in_quotes(std::string_view text) {
  std::string result = "'";
  for (const char letter : text) result += letter == '\'' ? std::string("''") : std::string{letter};
  return result + "'";
}

std::string gnuplot_of(const Figure& figure) {
  std::string text = "# Run by lab/run in this folder.\n";
  for (std::size_t i = 0; i < figure.lines.size(); ++i) {
    text += fmt::format("$line{} << END\n", i);
    for (const Point& point : figure.lines[i].points) {
      if (figure.x_scale == Scale::logarithmic && point.x <= 0) continue;
      const bool on_log = figure.lines[i].axis == Axis::left && figure.y_scale != Scale::linear;
      if (on_log && point.y <= 0) continue;
      text += fmt::format("{:.6g} {:.6g}\n", point.x, point.y);
    }
    text += "END\n";
  }
  text += fmt::format("set xlabel {} noenhanced\nset ylabel {} noenhanced\nset grid\n",
                      in_quotes(figure.x_label), in_quotes(figure.y_label));
  text += "set key below noenhanced\n";
  if (figure.x_scale == Scale::logarithmic) text += "set logscale x\n";
  if (figure.y_scale == Scale::logarithmic) {
    text += "set logscale y\nset format y '10^{%L}'\n";
  }
  if (!figure.right_label.empty()) {
    text += fmt::format("set y2label {} noenhanced\nset y2tics\nset ytics nomirror\n",
                        in_quotes(figure.right_label));
  }
  std::vector<std::string> plots;
  for (std::size_t i = 0; i < figure.lines.size(); ++i) {
    const Line& line = figure.lines[i];
    plots.push_back(fmt::format("$line{} using 1:2 with {} axes {} title {}", i,
                                gnuplot_style(line.style),
                                line.axis == Axis::left ? "x1y1" : "x1y2", in_quotes(line.name)));
  }
  const std::string plot = fmt::format("plot {}\n", fmt::join(plots, ", \\\n     "));
  text += fmt::format("set terminal svg size 800,500 background 'white'\nset output '{}.svg'\n{}",
                      figure.name, plot);
  text += fmt::format("set terminal png size 800,500\nset output '{}.png'\n{}", figure.name, plot);
  return text;
}

std::string markdown_row(const std::vector<std::string>& cells) {
  return fmt::format("| {} |\n", fmt::join(cells, " | "));
}

std::string markdown_table(const std::vector<std::string>& columns,
                           const std::vector<std::vector<std::string>>& rows) {
  std::string text = markdown_row(columns);
  text += markdown_row(std::vector<std::string>(columns.size(), "---"));
  for (const auto& row : rows) text += markdown_row(row);
  return text + "\n";
}

}  // namespace

Line distribution(std::string name, std::vector<double> values) {
  std::ranges::sort(values);
  Line line{.name = std::move(name), .points = {}};
  constexpr std::size_t kPoints = 200;
  const std::size_t step = std::max<std::size_t>(1, (values.size() + kPoints - 1) / kPoints);
  for (std::size_t count = step; count < values.size() + step; count += step) {
    const std::size_t upto = std::min(count, values.size());
    line.points.push_back(
        {values[upto - 1], static_cast<double>(upto) / static_cast<double>(values.size())});
  }
  return line;
}

Notebook::Notebook(std::string folder, std::string title, Effort effort)
    : folder_(std::move(folder)), title_(std::move(title)), effort_(effort) {}

base::Result<Notebook> Notebook::open(std::string folder, std::string title, Effort effort) {
  std::error_code failure;
  std::filesystem::create_directories(folder, failure);
  if (failure) return Error(Errc::io_error, "making {}: {}", folder, failure.message());
  return Notebook(std::move(folder), std::move(title), effort);
}

Notebook::Section& Notebook::last() {
  ASSERT(!sections_.empty(), "a notebook's first entry is a section");
  return sections_.back();
}

void Notebook::write(const std::string& name, std::string_view text) {
  const std::string path = folder_ + "/" + name;
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  if (!file && written_) written_ = Error(Errc::io_error, "writing {}", path);
}

void Notebook::section(std::string_view heading) {
  sections_.push_back(
      {.heading = std::string(heading), .figures = {}, .tables = {}, .findings = {}, .notes = {}});
}

void Notebook::figure(const Figure& figure) {
  last().figures.push_back(figure.name);
  write(figure.name + ".csv", csv_of(figure));
  write(figure.name + ".gnuplot", gnuplot_of(figure));
}

void Notebook::table(const Table& table) {
  for (const auto& row : table.rows) ASSERT(row.size() == table.columns.size());
  last().tables.push_back(table);
  write(table.name + ".csv", csv_of(table));
}

void Notebook::finding(Finding finding) {
  last().findings.push_back(std::move(finding));
}

void Notebook::note(std::string_view sentences) {
  last().notes.emplace_back(sentences);
}

base::Result<void> Notebook::finish() {
  std::string text = fmt::format("# {}\n\n", title_);
  if (is_quick())
    text += "A quick run: it shows that the lab works, not what the papers claim.\n\n";
  for (const Section& section : sections_) {
    text += fmt::format("## {}\n\n", section.heading);
    for (const std::string& figure : section.figures) {
      text += fmt::format("![{0}]({0}.svg)\n\n", figure);
    }
    for (const Table& table : section.tables) text += markdown_table(table.columns, table.rows);
    if (!section.findings.empty()) {
      std::vector<std::vector<std::string>> rows;
      for (const Finding& finding : section.findings) {
        rows.push_back({finding.what, finding.paper, finding.ours, finding.sentence});
      }
      text += markdown_table({"what", "paper", "ours", "what to make of it"}, rows);
    }
    for (const std::string& note : section.notes) text += note + "\n\n";
  }
  text.pop_back();
  write("report.md", text);
  write("findings.csv", findings_csv());
  return written_;
}

std::string Notebook::findings_csv() const {
  std::string text = csv_row({"section", "what", "paper", "ours", "what to make of it"});
  for (const Section& section : sections_) {
    for (const Finding& each : section.findings) {
      text += csv_row({section.heading, each.what, each.paper, each.ours, each.sentence});
    }
  }
  return text;
}

namespace {

struct Options {
  std::optional<std::string> folder;
  std::string only;
  Effort effort = Effort::full;
};

base::Result<Options> parse(std::span<const char* const> arguments) {
  Options options;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string_view argument = arguments[i];
    if (argument == "--quick") {
      options.effort = Effort::quick;
      continue;
    }
    const bool known = argument == "--out" || argument == "--only";
    if (!known || i + 1 == arguments.size()) {
      return Error(Errc::invalid_argument, "{}: takes --out FOLDER [--quick] [--only PART]",
                   argument);
    }
    (argument == "--out" ? options.folder.emplace() : options.only) = arguments[++i];
  }
  if (!options.folder) return Error(Errc::invalid_argument, std::string("--out FOLDER is missing"));
  return options;
}

base::Result<void> run(std::span<const char* const> arguments, std::string_view title,
                       std::span<const Experiment> experiments) {
  TRY(const Options options, parse(arguments));
  TRY(Notebook notebook, Notebook::open(*options.folder, std::string(title), options.effort));
  std::vector<Experiment> chosen;
  std::ranges::copy_if(experiments, std::back_inserter(chosen), [&](const Experiment& experiment) {
    return experiment.name.contains(options.only);
  });
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    fmt::print("{} of {}: {}\n", i + 1, chosen.size(), chosen[i].name);
    std::fflush(stdout);
    chosen[i].run(notebook);
  }
  return notebook.finish();
}

}  // namespace

int lab_main(int argc, const char* const* argv, std::string_view title,
             std::span<const Experiment> experiments) {
  const std::span arguments(argv, static_cast<std::size_t>(argc));
  const auto done = run(arguments.subspan(1), title, experiments);
  if (done) return 0;
  fmt::print(stderr, "{}: {}\n", arguments[0], done.error().to_string());
  return 2;
}

}  // namespace helenus::lab
