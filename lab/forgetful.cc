// FBF: "Idempotent distributed counters using a forgetful Bloom filter", Fig. 8 to 13 and 16, and
// what the paper did not try: the sliced form beside its own, and a ten-fold burst.
//
// The paper tells parameters, not workloads. Where a load had to be chosen, it is the simplest one
// that the text allows, and the section says so.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/assert.h"
#include "base/prng.h"
#include "filters/forgetful_bloom.h"
#include "filters/forgetful_rates.h"
#include "filters/lab/adaptive_forgetful.h"
#include "filters/lab/forgetful_analysis.h"
#include "filters/lab/recyclable_bloom.h"
#include "filters/sliced_forgetful.h"
#include "lab/filters.h"

namespace helenus::lab {

namespace {

using filters::Admission;
using filters::ForgetfulBloom;
using filters::ForgetfulCheck;
using filters::KeyHash;
using filters::Ticks;

// Keys that are never inserted.
constexpr std::uint64_t kStrangers = std::uint64_t{1} << 40;
// How many of them the paper asked for.
constexpr std::uint64_t kPaperTrials = 200'000;

template <class Contains>
double measured_rate(std::uint64_t trials, Contains&& contains) {
  std::uint64_t yes = 0;
  for (std::uint64_t i = 0; i < trials; ++i) {
    yes += contains(KeyHash::of_integer(kStrangers + i)) ? 1 : 0;
  }
  return static_cast<double>(yes) / static_cast<double>(trials);
}

// `keys` keys, spread evenly over `periods` periods, with a refresh between them; other keys for
// each draw.
ForgetfulBloom filled(ForgetfulBloom::Shape shape, std::uint64_t keys, unsigned periods,
                      std::uint64_t draw = 0) {
  auto filter = *ForgetfulBloom::with_shape(shape);
  std::uint64_t next = 0;
  for (unsigned period = 0; period < periods; ++period) {
    if (period > 0) filter.refresh();
    for (const std::uint64_t end = keys * (period + 1) / periods; next < end; ++next) {
      filter.insert(KeyHash::of_integer((draw << 32) + next));
    }
  }
  return filter;
}

// The rate that strangers meet on average over ten draws: which bits the keys of one happen to set
// moves the rate of a small filter by a fifth.
double average_rate(Notebook& notebook, ForgetfulBloom::Shape shape, std::uint64_t keys,
                    unsigned periods) {
  constexpr std::uint64_t kDraws = 10;
  double sum = 0;
  for (std::uint64_t draw = 0; draw < kDraws; ++draw) {
    const auto filter = filled(shape, keys, periods, draw);
    sum += measured_rate(notebook.trials(kPaperTrials),
                         [&](KeyHash key) { return filter.contains(key); });
  }
  return sum / static_cast<double>(kDraws);
}

// The paper's filter for Fig. 8, 9 and 12.
constexpr ForgetfulBloom::Shape kSmall{.bits = 6250, .probes = 5, .past = 1, .capacity = 1000};

// The y at `x`, on a straight line in logarithms between the points around it.
double log_interpolated(const std::vector<Point>& points, double x) {
  for (std::size_t i = 1; i < points.size(); ++i) {
    const Point& a = points[i - 1];
    const Point& b = points[i];
    if (x < a.x || x > b.x) continue;
    const double part = std::log(x / a.x) / std::log(b.x / a.x);
    return a.y * std::pow(b.y / a.y, part);
  }
  return std::nan("");
}

std::string scientific(double value) {
  return fmt::format("{:.2e}", value);
}

Line line(std::string name, Style style = Style::lines, Axis axis = Axis::left) {
  return {.name = std::move(name), .points = {}, .style = style, .axis = axis};
}

}  // namespace

void forgetful_figure_8(Notebook& notebook) {
  notebook.section("FBF Fig. 8: the optimised check beside the simple one");
  Line simple = line("simple check");
  Line optimised = line("optimised check");
  Line first_period = line("optimised check, all in the first period");
  double at_300 = 0;
  for (std::uint64_t keys = 100; keys <= 1000; keys += 50) {
    const auto x = static_cast<double>(keys);
    ForgetfulBloom::Shape simply = kSmall;
    simply.check = ForgetfulCheck::simple;
    simple.points.push_back({x, average_rate(notebook, simply, keys, 2)});
    optimised.points.push_back({x, average_rate(notebook, kSmall, keys, 2)});
    first_period.points.push_back({x, average_rate(notebook, kSmall, keys, 1)});
    if (keys == 300) at_300 = 1 - optimised.points.back().y / simple.points.back().y;
  }
  notebook.figure({.name = "fbf-08",
                   .x_label = "elements inserted",
                   .y_label = "false positive probability",
                   .right_label = {},
                   .y_scale = Scale::logarithmic,
                   .lines = {simple, optimised, first_period}});
  notebook.finding({"how much lower the optimised check's is, at 300 elements", "90 %",
                    fmt::format("{:.0f} %", 100 * at_300),
                    "As in the paper while nothing is forgotten yet; in the steady state half."});
  notebook.note(
      "m = 6250, k = 5, N = 1. The paper does not say how the elements fall on its periods of 5 s. "
      "Its 90 % come out when they are spread over the first two, so that nothing has been "
      "forgotten yet: the simple check then asks the present filter, which has all elements, the "
      "optimised one two filters with half of them each. With all elements in the first period "
      "both checks ask the same filter and nothing is gained; in the steady state (below, beside "
      "the sliced form) the gain is at most half.");
}

void forgetful_figure_9(Notebook& notebook) {
  notebook.section("FBF Fig. 9: the analysis beside what is measured");
  double worst_basic = 0;
  double worst_printed = 1;
  double worst_corrected = 0;
  for (const unsigned past : {1U, 10U}) {
    Line measured = line("measured", Style::dots);
    Line printed = line("equation 3 as printed");
    Line corrected = line("corrected");
    Line fill = line("by the bits set, of one draw");
    for (std::uint64_t keys = 100; keys <= 1000; keys += 50) {
      ForgetfulBloom::Shape shape = kSmall;
      shape.past = past;
      // For N = 1 as in Fig. 8; for N = 10 in the steady state.
      const unsigned periods = past == 1 ? 2 : 12;
      const auto filter = filled(shape, periods * keys / 2, periods);
      const auto x = static_cast<double>(keys);
      measured.points.push_back({x, average_rate(notebook, shape, periods * keys / 2, periods)});
      printed.points.push_back({x, filters::rate_as_printed(filter)});
      corrected.points.push_back({x, filter.rate_by_equation()});
      fill.points.push_back({x, filter.false_positive_rate()});
      if (keys < 300) continue;
      const double truth = measured.points.back().y;
      const double printed_error = printed.points.back().y / truth;
      const double corrected_error = std::abs(corrected.points.back().y / truth - 1);
      if (past == 1) worst_basic = std::max(worst_basic, std::abs(printed_error - 1));
      if (past > 1) worst_printed = std::min(worst_printed, printed_error);
      worst_corrected = std::max(worst_corrected, corrected_error);
    }
    notebook.figure({.name = past == 1 ? "fbf-09" : "fbf-09-ten-past",
                     .x_label = past == 1 ? "elements inserted" : "elements in two periods",
                     .y_label = "false positive probability",
                     .right_label = {},
                     .y_scale = Scale::logarithmic,
                     .lines = {measured, printed, corrected, fill}});
  }
  notebook.finding({"N = 1: equation 2, largest error from 300 elements on",
                    "\"reasonably matches\"", fmt::format("{:.0f} %", 100 * worst_basic),
                    "It does: with one past filter the pair is implied by the oldest alone."});
  notebook.finding({"N = 10: equation 3 gives of the truth, at least", "-",
                    fmt::format("{:.2f}", worst_printed),
                    "It misses what pairs say together, which the paper did not try."});
  notebook.finding({"corrected equation, largest error from 300 elements on", "-",
                    fmt::format("{:.0f} %", 100 * worst_corrected),
                    "Right for one past filter and for ten."});
  notebook.note(
      "The first plot is the paper's. It does not show that equation 3 is wrong, because with one "
      "past filter the pair is implied by the oldest filter alone. With ten (second plot, steady "
      "state) pairs matter: neighbours share the elements of a period and all hash functions, and "
      "the printed product of their rates misses most of what they say together. Equation 1 as "
      "printed, with 1/l for 1/m and the last exponent missing, is about 1 for any filter.");
}

void forgetful_figure_10(Notebook& notebook) {
  notebook.section("FBF Fig. 10: the same for other sizes of filter");
  Line measured = line("measured", Style::dots);
  Line printed = line("equation 2");
  Line corrected = line("corrected");
  double worst = 0;
  for (std::uint64_t bits = 5000; bits <= 30'000; bits += 2500) {
    ForgetfulBloom::Shape shape = kSmall;
    shape.bits = bits;
    const auto filter = filled(shape, 300, 2);
    const auto x = static_cast<double>(bits);
    measured.points.push_back({x, average_rate(notebook, shape, 300, 2)});
    printed.points.push_back({x, filters::rate_as_printed(filter)});
    corrected.points.push_back({x, filter.rate_by_equation()});
    const double seen = measured.points.back().y;
    if (seen < 1e-5) continue;
    worst = std::max(worst, std::abs(printed.points.back().y / seen - 1));
  }
  notebook.figure({.name = "fbf-10",
                   .x_label = "bits of each filter",
                   .y_label = "false positive probability",
                   .right_label = {},
                   .y_scale = Scale::logarithmic,
                   .lines = {measured, printed, corrected}});
  notebook.finding({"equation 2, largest error where the rate is 1e-5 or more",
                    "\"reasonably accurate\"", fmt::format("{:.0f} %", 100 * worst),
                    "As in the paper, for filters from 5,000 to 30,000 bits."});
  notebook.note(
      "300 elements over two periods, k = 5, N = 1. Large filters give no false positive "
      "among as many strangers as we asked; the equations go on.");
}

void forgetful_figure_11(Notebook& notebook) {
  notebook.section("FBF Fig. 11: a shorter period");
  // 5,000 elements at a rate that grows by 3 % a second, from 20 a second on.
  constexpr double kGrowth = 1.03;
  constexpr std::uint64_t kElements = 5000;
  std::vector<Line> lines;
  std::array<double, 2> at_100{};
  for (const unsigned period : {5U, 3U, 2U, 1U}) {
    auto filter = *ForgetfulBloom::with_shape(
        {.bits = 25'000, .probes = 5, .past = 1, .capacity = kElements});
    Line rate_line = line(fmt::format("period of {} s", period));
    std::uint64_t next = 0;
    double rate = 20;
    double due = 0;
    for (unsigned second = 0; next < kElements; ++second, rate *= kGrowth) {
      if (second > 0 && second % period == 0) filter.refresh();
      due += rate;
      while (next < kElements && static_cast<double>(next) < due) {
        filter.insert(KeyHash::of_integer(next++));
      }
      // Just before a refresh, where it is highest.
      if (second % period != period - 1) continue;
      rate_line.points.push_back({rate, filter.rate_by_equation()});
    }
    if (period == 5) at_100[0] = log_interpolated(rate_line.points, 100);
    if (period == 1) at_100[1] = log_interpolated(rate_line.points, 100);
    lines.push_back(std::move(rate_line));
  }
  notebook.figure({.name = "fbf-11",
                   .x_label = "elements a second",
                   .y_label = "false positive probability",
                   .right_label = {},
                   .y_scale = Scale::logarithmic,
                   .lines = std::move(lines)});
  notebook.finding({"at 100 elements a second, 5 s gives of what 1 s gives", "1000 times",
                    fmt::format("{:.0f} times", at_100[0] / at_100[1]),
                    "The same order, with a load that the paper does not give; the window is a "
                    "fifth, too."});
  notebook.note(
      "m = 25,000, k = 5, N = 1; the load is chosen: 20 a second, growing by 3 % each second "
      "(the paper says \"exponential\"). By the corrected equation: at these rates 200,000 "
      "strangers would see none. A rate falls with the fifth power of the elements in a filter. "
      "The price, which "
      "the figure does not show, is the window: 10 s with the longest period, 2 s with the "
      "shortest.");
}

void forgetful_figure_12(Notebook& notebook) {
  notebook.section("FBF Fig. 12: more filters");
  // 3,000 elements at a rate that grows by 10 a second each period of 5 s.
  constexpr std::uint64_t kElements = 3000;
  constexpr unsigned kPeriod = 5;
  std::vector<Line> lines;
  std::array<double, 2> at_100{};
  std::array<double, 2> printed_at_100{};
  for (const unsigned count : {24U, 12U, 6U, 3U}) {
    ForgetfulBloom::Shape shape = kSmall;
    shape.past = count - 2;
    auto filter = *ForgetfulBloom::with_shape(shape);
    Line rate_line = line(fmt::format("{} filters", count));
    std::uint64_t next = 0;
    for (std::uint64_t rate = 10; next < kElements; rate += 10) {
      if (next > 0) filter.refresh();
      for (std::uint64_t i = 0; i < rate * kPeriod && next < kElements; ++i) {
        filter.insert(KeyHash::of_integer(next++));
      }
      rate_line.points.push_back({static_cast<double>(rate), filter.false_positive_rate()});
      if (rate == 100 && (count == 24 || count == 3)) {
        at_100[count == 24 ? 1 : 0] = filter.false_positive_rate();
        printed_at_100[count == 24 ? 1 : 0] = filters::rate_as_printed(filter);
      }
    }
    lines.push_back(std::move(rate_line));
  }
  notebook.figure({.name = "fbf-12",
                   .x_label = "elements a second",
                   .y_label = "false positive probability",
                   .right_label = {},
                   .y_scale = Scale::logarithmic,
                   .lines = std::move(lines)});
  notebook.finding({"at 100 elements a second, 3 filters give of what 24 give", "5.5 times",
                    fmt::format("{:.1f} times", at_100[0] / at_100[1]),
                    "By the bits that are set: a third of the paper's number."});
  notebook.finding({"the same by equation 3 as printed", "5.5 times",
                    fmt::format("{:.1f} times", printed_at_100[0] / printed_at_100[1]),
                    "So the paper's number is its equation's, which loses the pairs."});
  // The same, long enough for the oldest of 24 filters to be in use.
  const auto steady_rate = [](unsigned count) {
    ForgetfulBloom::Shape shape = kSmall;
    shape.past = count - 2;
    return filled(shape, 26ULL * 100 * kPeriod, 26).false_positive_rate();
  };
  notebook.finding({"the same after 26 periods at 100 a second, which the paper did not run", "-",
                    fmt::format("{:.1f} times", steady_rate(3) / steady_rate(24)),
                    "In the steady state more filters give more false positives, not fewer."});
  notebook.note(
      "m = 6250, k = 5, t = 5 s; the load is chosen: 10 a second, and 10 more each period, which "
      "brings 3,000 elements in 11 periods. The paper's number is what its equation 3 gives, which "
      "loses the pairs; the bits that are set give a third of it. And more filters look better "
      "here only because the run ends before the oldest of 24, which is asked alone, has an "
      "element. In the steady state they remember eight times as much, and say yes to strangers "
      "more often, not less: adding filters is no knob for the rate.");
}

namespace {

// What a run of a resizing filter looked like, second by second.
struct Course {
  Line printed_estimate = line("estimate as printed");
  Line estimate = line("corrected estimate");
  Line measured = line("measured", Style::dots);
  Line filter_count = line("filters", Style::steps, Axis::right);
  Line period = line("period, s", Style::steps, Axis::right);
  unsigned filters_most = 0;
  double rate_most = 0;
  double measured_most = 0;
  std::uint64_t memory_most = 0;
  std::uint64_t shed = 0;
  std::uint64_t inserted = 0;
  std::uint64_t mistaken = 0;  // new keys that were taken for retries
  std::uint64_t lost = 0;      // keys that were denied inside the window, each once
};

// Keys that are in, by when they came; those that are past the window or were denied are gone.
class Remembered {
 public:
  void add(Ticks now, KeyHash key) { keys_.emplace_back(now, key); }

  // How many are denied that were not before.
  template <class Contains>
  std::uint64_t count_lost(Ticks now, Ticks window, Contains&& contains) {
    std::erase_if(keys_, [&](const auto& each) { return now - each.first > window; });
    return std::erase_if(keys_, [&](const auto& each) { return !contains(each.second); });
  }

 private:
  std::vector<std::pair<Ticks, KeyHash>> keys_;
};

// Strangers are asked for as long as three filters would take, and for a few at least.
template <class Rate>
Course follow(filters::AdaptiveForgetful& filter, Ticks seconds, std::uint64_t trials,
              Rate&& keys_per_second) {
  constexpr std::uint64_t kTrialsMin = 1000;
  Course course;
  Remembered remembered;
  std::uint64_t next = 0;
  const auto contains = [&](KeyHash key) { return filter.contains(key); };
  while (filter.now() < seconds) {
    for (std::uint64_t i = keys_per_second(filter.now()); i > 0; --i) {
      const KeyHash key = KeyHash::of_integer(next++);
      const Admission admission = filter.insert_if_absent(key);
      if (admission == Admission::shed) ++course.shed;
      if (admission == Admission::present) ++course.mistaken;
      if (admission != Admission::inserted) continue;
      ++course.inserted;
      remembered.add(filter.now(), key);
    }
    if (!filter.tick()) break;
    const auto x = static_cast<double>(filter.now());
    course.lost += remembered.count_lost(filter.now(), filter.window(), contains);
    const std::uint64_t affordable = std::max(kTrialsMin, 3 * trials / filter.filter_count());
    course.measured.points.push_back({x, measured_rate(affordable, contains)});
    course.measured_most = std::max(course.measured_most, course.measured.points.back().y);
    course.memory_most = std::max(course.memory_most, filter.memory_bytes());
    course.printed_estimate.points.push_back({x, filter.rate_as_printed()});
    course.estimate.points.push_back({x, filter.rate_by_equation()});
    course.filter_count.points.push_back({x, static_cast<double>(filter.filter_count())});
    course.period.points.push_back({x, static_cast<double>(filter.period())});
    course.filters_most = std::max(course.filters_most, filter.filter_count());
    course.rate_most = std::max(course.rate_most, filter.rate_by_equation());
  }
  return course;
}

using Resizing = filters::AdaptiveForgetful::Resizing;

filters::AdaptiveForgetful resizing_filter(Resizing resizing, double target, unsigned filters_max) {
  return *filters::AdaptiveForgetful::with_options({.bits = 6250,
                                                    .probes = 5,
                                                    .filters = 3,
                                                    .period = 11,
                                                    .rate_max = target,
                                                    .resizing = resizing,
                                                    .filters_max = filters_max});
}

std::string filters_and_period(const Course& course, std::size_t second) {
  return fmt::format("{:.0f} filters, {:.0f} s", course.filter_count.points[second - 1].y,
                     course.period.points[second - 1].y);
}

void printed_findings(Notebook& notebook, const Course& course, double target) {
  notebook.finding({"as printed: at second 16", "6 filters, 10 s", filters_and_period(course, 16),
                    "Doublings at seconds 15 and 16, by the choice of the load; the period had "
                    "grown in the quiet seconds before, as Algorithm 3 says, and the paper's had "
                    "not."});
  notebook.finding({"as printed: at second 19", "4 filters, 13 s", filters_and_period(course, 19),
                    "The paper's two do not fit Algorithm 3, by which each filter less is a second "
                    "more: two steps give 4 filters and 12 s, three give 3 and 13 s."});
  notebook.finding({"as printed: at second 28", "8 filters, 12 s", filters_and_period(course, 28),
                    "Our second time is second 26, from 3 filters and 26 s."});
  notebook.finding({"as printed: most filters", "8", fmt::format("{}", course.filters_most),
                    "Two doublings in a row: the first one relieved nothing."});
  notebook.finding(
      {fmt::format("as printed: highest rate, corrected and measured, target {}", target),
       "below the target",
       fmt::format("{}, {}", scientific(course.rate_most), scientific(course.measured_most)),
       "Above it: what is kept below is the printed estimate."});
  notebook.finding(
      {fmt::format("as printed: keys denied inside the window, of {}", course.inserted), "-",
       fmt::format("{}", course.lost),
       "None with this load, for the longer period makes the window longer; "
       "`forgetful_test.cc` has one where some are."});
}

void mended_findings(Notebook& notebook, const Course& course, double target) {
  notebook.finding({"mended: most filters", "-", fmt::format("{}", course.filters_most),
                    "As many as the window takes at the shortest period."});
  notebook.finding(
      {fmt::format("mended: highest rate, corrected and measured, target {}", target), "-",
       fmt::format("{}, {}", scientific(course.rate_most), scientific(course.measured_most)),
       "Below the target."});
  notebook.finding({fmt::format("mended: shed, of {}", course.shed + course.inserted), "-",
                    fmt::format("{}", course.shed),
                    "What filters of this size cannot take below the target."});
  notebook.finding({fmt::format("mended: keys denied inside the window, of {}", course.inserted),
                    "-", fmt::format("{}", course.lost), "None: the window is kept."});
}

}  // namespace

void forgetful_figure_13(Notebook& notebook) {
  notebook.section("FBF Fig. 13: dynamic resizing under a load that swells and ebbs");
  constexpr double kTarget = 0.02;
  const auto load = [](Ticks second) -> std::uint64_t {
    if (second < 16) return 50;
    if (second < 18) return 0;
    return second < 28 ? 35 : 5;
  };
  for (const Resizing resizing : {Resizing::as_printed, Resizing::mended}) {
    const bool is_printed = resizing == Resizing::as_printed;
    auto filter = resizing_filter(resizing, kTarget, 1024);
    const Course course = follow(filter, 50, notebook.trials(kPaperTrials), load);
    notebook.figure({.name = is_printed ? "fbf-13" : "fbf-13-mended",
                     .x_label = "seconds",
                     .y_label = "false positive probability",
                     .right_label = "filters; period in s",
                     .lines = {course.printed_estimate, course.estimate, course.measured,
                               course.filter_count, course.period}});
    is_printed ? printed_findings(notebook, course, kTarget)
               : mended_findings(notebook, course, kTarget);
  }
  notebook.note(
      "m = 6250, k = 5, from 3 filters and a period of 11 s; target and load are not published and "
      "chosen here so that the first resizing comes a second before the paper's: 50 a second until "
      "second 16, none until 18, 35 until 28, 5 after. As printed (first plot) the numbers go up "
      "and down as in the paper, but: the period grows in the first, quiet seconds, which the "
      "paper's does not; the doubling that \"brings the FPP down\" does so in the printed estimate "
      "alone, because the oldest filter that has keys is no longer the last, and equation 3 counts "
      "it only in a pair. The truth (corrected estimate, measured) stays where it was. Mended "
      "(second plot), the window of 22 s is kept, the period is halved, and what filters of this "
      "size cannot take below the target is shed.");
}

void forgetful_figure_16(Notebook& notebook) {
  notebook.section("FBF Fig. 16: a counter behind a forgetful and behind a recyclable filter");
  Line recyclable_line = line("recyclable, m = 1500");
  Line forgetful_line = line("forgetful, 3 x m = 500");
  Line sliced_line = line("sliced, 3 x m = 500");
  const std::uint64_t operations = notebook.trials(200'000) + 1000;
  std::array<std::pair<double, double>, 3> ends{};
  constexpr std::uint64_t kPerPeriod = 20;  // increments between refreshes
  for (unsigned percent = 2; percent <= 50; percent += 4) {
    auto recyclable = *filters::RecyclableBloom::with_table(1500, 3, 0.02);
    auto forgetful = *ForgetfulBloom::with_shape(
        {.bits = 500, .probes = 3, .past = 1, .capacity = 3 * kPerPeriod});
    auto sliced = *filters::SlicedForgetful::with_shape(
        {.bits = 500, .probes = 3, .slices = 3, .keys_per_slice = 2 * kPerPeriod}, 2 * kPerPeriod);
    std::array<std::uint64_t, 3> counted{};
    base::Prng prng(percent);
    const auto apply = [&](std::uint64_t operation) {
      const KeyHash key = KeyHash::of_integer(operation);
      if (!recyclable.contains(key)) {
        recyclable.insert_recycling(key);
        ++counted[0];
      }
      counted[1] += forgetful.insert_if_absent(key) ? 1 : 0;
      counted[2] += sliced.insert_if_absent(key) == Admission::inserted ? 1 : 0;
    };
    for (std::uint64_t i = 0; i < operations; ++i) {
      if (i > 0 && i % kPerPeriod == 0) forgetful.refresh();
      sliced.advance_to(i);
      apply(i);
      // A retry of one of the last operations, inside the window.
      if (prng.chance(percent / 100.0)) apply(i - prng.below(std::min(i, kPerPeriod) + 1));
    }
    const auto x = static_cast<double>(percent);
    std::array<Line*, 3> lines = {&recyclable_line, &forgetful_line, &sliced_line};
    for (std::size_t i = 0; i < 3; ++i) {
      const auto truth = static_cast<double>(operations);
      const double error = 100 * std::abs(static_cast<double>(counted[i]) - truth) / truth;
      lines[i]->points.push_back({x, error});
      (percent == 2 ? ends[i].first : ends[i].second) = error;
    }
  }
  notebook.figure({.name = "fbf-16",
                   .x_label = "retries, % of increments",
                   .y_label = "error of the counter, %",
                   .right_label = {},
                   .y_scale = Scale::logarithmic,
                   .lines = {recyclable_line, forgetful_line, sliced_line}});
  const auto finding = [&](const char* name, const char* paper, const auto& end,
                           const char* sentence) {
    notebook.finding({fmt::format("{}: error at 2 % and at 50 % of retries", name), paper,
                      fmt::format("{:.2f} %, {:.2f} %", end.first, end.second), sentence});
  };
  finding("recyclable", "grows with the retries", ends[0],
          "It grows, but for the retries at which its two errors cancel.");
  finding("forgetful", "steady and lower", ends[1], "Steady, and lower only with many retries.");
  finding("sliced", "-", ends[2], "Steady, and lower than both at either end.");
  notebook.note(
      "k = 3 and equal memory for all, as the paper has it; its load and the recyclable filter's "
      "target are not published. Chosen: 20 increments a period, retries of operations at most "
      "20 increments old, a target of 2 %. Retries come after a flush as often as they are many, "
      "and count twice; a window has no such moment, and its error is its false positives. So "
      "the lines cross, and not only for that: the recyclable filter's two errors, increments "
      "that a false positive loses and retries that a flush counts twice, have opposite signs "
      "and cancel near 10 % of retries. With 2 % it has less than half of the error of the "
      "paper's forgetful filter, and it is the better one up to about 26 %; the paper's figure "
      "has the forgetful one lower throughout. The sliced form is below both at 2 % and from 18 "
      "% on. In a database where the filter only screens, all errors are zero (the exact index "
      "decides).");
}

namespace {

// The paper's form with N past filters, in its steady state just before a refresh, and what the
// sliced form gives in the same memory, for the same window and load.
class SideBySide {
 public:
  SideBySide(unsigned past, std::uint64_t keys_per_period)
      : past_(past),
        keys_per_period_(keys_per_period),
        paper_(filled(shape(), keys(), periods())) {}

  const ForgetfulBloom& paper() const { return paper_; }

  // With as many slices as the paper has filters.
  filters::SlicedForgetful with_as_many() const {
    const std::uint64_t keys_per_slice = keys_per_period_;
    return filled_up(*filters::SlicedForgetful::with_shape(
        {.bits = kSmall.bits,
         .probes = kSmall.probes,
         .slices = past_ + 2,
         .keys_per_slice = keys_per_slice + keys_per_slice / 16 + 2},
        window()));
  }
  // As its users make it, who say nothing of slices: they and the probes follow from the target,
  // here the lowest for the memory.
  filters::SlicedForgetful by_default() const {
    return filled_up(
        *filters::SlicedForgetful::with_options(*filters::SlicedForgetful::options_for_memory(
            window(), keys_per_period_ * (past_ + 1), paper_.memory_bytes())));
  }

 private:
  static constexpr Ticks kPeriod = 1000;

  ForgetfulBloom::Shape shape() const {
    ForgetfulBloom::Shape shape = kSmall;
    shape.past = past_;
    return shape;
  }
  unsigned periods() const { return 2 * past_ + 6; }
  std::uint64_t keys() const { return keys_per_period_ * periods(); }
  Ticks window() const { return (past_ + 1) * kPeriod; }

  filters::SlicedForgetful filled_up(filters::SlicedForgetful filter) const {
    for (std::uint64_t i = 0; i < keys(); ++i) {
      filter.advance_to(i * kPeriod / keys_per_period_);
      const bool inserted = filter.insert(KeyHash::of_integer(i));
      ASSERT(inserted, "a slice overflowed");
    }
    ASSERT(filter.table_count() == 1 && filter.memory_bytes() <= paper_.memory_bytes());
    return filter;
  }

  unsigned past_;
  std::uint64_t keys_per_period_;
  ForgetfulBloom paper_;
};

}  // namespace

void sliced_beside_forgetful(Notebook& notebook) {
  notebook.section("Not in FBF: one insertion a key instead of two");
  const std::uint64_t trials = notebook.trials(4'000'000);
  Table table{.name = "sliced-beside-forgetful",
              .columns = {"N", "keys a period", "fill of a slice", "simple", "optimised",
                          "equation 3", "N + 2 slices", "N + 2 slices / optimised",
                          "slices by default", "k", "by default", "by default / optimised"},
              .rows = {}};
  double least = 1;
  double most = 0;
  double default_most = 0;
  for (const unsigned past : {1U, 4U, 10U, 14U, 30U, 54U}) {
    for (const std::uint64_t keys : {150UL, 300UL, 600UL}) {
      const SideBySide both(past, keys);
      const auto rate = [&](auto&& contains) { return measured_rate(trials, contains); };
      const auto as_many = both.with_as_many();
      const auto by_default = both.by_default();
      const double simple =
          rate([&](KeyHash key) { return both.paper().contains(key, ForgetfulCheck::simple); });
      const double optimised = rate([&](KeyHash key) { return both.paper().contains(key); });
      const double with_as_many = rate([&](KeyHash key) { return as_many.contains(key); });
      const double with_default = rate([&](KeyHash key) { return by_default.contains(key); });
      least = std::min(least, with_as_many / optimised);
      if (past <= 14) most = std::max(most, with_as_many / optimised);
      default_most = std::max(default_most, with_default / optimised);
      table.rows.push_back(
          {fmt::format("{}", past), fmt::format("{}", keys),
           fmt::format("{:.2f}", filters::bloom_fill(kSmall.bits, 5, keys)), scientific(simple),
           scientific(optimised), scientific(filters::rate_as_printed(both.paper())),
           scientific(with_as_many), fmt::format("{:.2f}", with_as_many / optimised),
           fmt::format("{}", by_default.shape().slices),
           fmt::format("{}", by_default.shape().probes), scientific(with_default),
           fmt::format("{:.2f}", with_default / optimised)});
    }
  }
  notebook.table(table);
  notebook.finding(
      {"every N, slices as the filter chooses them by default: of the optimised check's rate", "-",
       fmt::format("at most {:.2f}", default_most),
       "The form that counters will use is at most 0.4 of the paper's, at equal memory, window and "
       "load."});
  notebook.finding({"N up to 14, N + 2 slices: of the optimised check's rate", "-",
                    fmt::format("{:.2f} to {:.2f}", least, most),
                    "One insertion a key leaves filters half as full; at most 0.4."});
  notebook.note(
      "Same memory (N + 2 filters of 6250 bits), same window of N + 1 periods, same load, k = 5; "
      "the steady state just before a refresh. Two insertions a key fill the filters twice, and "
      "asking for pairs does not make up for it. With as many slices as the paper has filters, the "
      "gain is smaller for N = 30 and 54: of so many small filters each form says yes to much of "
      "what it is asked. But N is the paper's knob, not the user's: a sliced filter is made for a "
      "window and a target rate, and takes the number of slices, and of probes, that needs least "
      "memory for that target. The last four columns have that form, made by default, with the "
      "lowest target that the paper's memory allows (1e-9 at least, where it takes less).");
}

namespace {

// The sliced form under a load, second by second; a tick is a hundredth of a second.
struct SlicedCourse {
  Line rate = line("sliced: rate by the bits set");
  Line measured = line("sliced: measured", Style::dots);
  Line memory = line("sliced: KiB", Style::steps, Axis::right);
  double rate_most = 0;
  double measured_most = 0;
  unsigned tables_most = 0;
  std::uint64_t memory_most = 0;
  std::uint64_t shed = 0;
  std::uint64_t mistaken = 0;  // new keys that were taken for retries
  std::uint64_t lost = 0;      // keys that were denied inside the window, each once
};

template <class Rate>
SlicedCourse follow(filters::SlicedForgetful& filter, Ticks seconds, std::uint64_t trials,
                    Rate&& keys_per_second) {
  SlicedCourse course;
  std::uint64_t next = 0;
  Remembered remembered;
  for (Ticks second = 0; second < seconds; ++second) {
    const std::uint64_t keys = keys_per_second(second);
    for (std::uint64_t i = 0; i < keys; ++i) {
      filter.advance_to(second * 100 + i * 100 / keys);
      const KeyHash key = KeyHash::of_integer(next++);
      const Admission admission = filter.insert_if_absent(key);
      if (admission == Admission::inserted) remembered.add(filter.now(), key);
      if (admission == Admission::present) ++course.mistaken;
      if (admission == Admission::shed) ++course.shed;
    }
    const auto contains = [&](KeyHash key) { return filter.contains(key); };
    course.lost += remembered.count_lost(filter.now(), filter.options().window, contains);
    const auto x = static_cast<double>(second + 1);
    course.rate.points.push_back({x, filter.false_positive_rate()});
    course.measured.points.push_back({x, measured_rate(trials, contains)});
    course.memory.points.push_back({x, static_cast<double>(filter.memory_bytes()) / 1024});
    course.rate_most = std::max(course.rate_most, course.rate.points.back().y);
    course.measured_most = std::max(course.measured_most, course.measured.points.back().y);
    course.tables_most = std::max(course.tables_most, filter.table_count());
    course.memory_most = std::max(course.memory_most, filter.memory_bytes());
  }
  return course;
}

void burst_figures(Notebook& notebook, const Course& printed, const SlicedCourse& sliced) {
  const auto of_printed = [](Line line, const char* name, Axis axis) {
    line.name = fmt::format("Algorithm 3 as printed: {}", name);
    line.axis = axis;
    return line;
  };
  notebook.figure({.name = "burst-rate",
                   .x_label = "seconds",
                   .y_label = "false positive probability",
                   .right_label = "memory of the sliced form, KiB",
                   .y_scale = Scale::logarithmic,
                   .lines = {of_printed(printed.estimate, "rate", Axis::left),
                             of_printed(printed.measured, "measured", Axis::left), sliced.rate,
                             sliced.measured, sliced.memory}});
  notebook.figure({.name = "burst-filters",
                   .x_label = "seconds",
                   .y_label = "filters",
                   .right_label = "period, s",
                   .y_scale = Scale::logarithmic,
                   .lines = {of_printed(printed.filter_count, "filters", Axis::left),
                             of_printed(printed.period, "period, s", Axis::right)}});
}

}  // namespace

void burst_section(Notebook& notebook) {
  notebook.section("Not in FBF: a ten-fold burst");
  constexpr double kTarget = 0.01;
  const auto load = [](Ticks second) -> std::uint64_t {
    return second >= 40 && second < 70 ? 300 : 30;
  };
  const unsigned filters_max = notebook.is_quick() ? 256 : filters::AdaptiveForgetful::kFiltersMax;
  auto printed_filter = resizing_filter(Resizing::as_printed, kTarget, filters_max);
  const std::uint64_t trials = notebook.trials(kPaperTrials);
  const Course printed = follow(printed_filter, 55, trials, load);
  auto sliced_filter = *filters::SlicedForgetful::with_options(
      {.window = 2200, .rate_max = kTarget, .capacity = 30 * 22 * 3 / 2});
  const SlicedCourse sliced = follow(sliced_filter, 140, trials, load);
  burst_figures(notebook, printed, sliced);
  notebook.finding({"Algorithm 3 as printed: most filters; their memory", "-",
                    fmt::format("{} (our limit is {}); {:.0f} KiB", printed.filters_most,
                                filters_max, static_cast<double>(printed.memory_most) / 1024),
                    "It doubles them every second, and only our limit stops it."});
  notebook.finding({"Algorithm 3 as printed: period at seconds 40 and 55", "-",
                    fmt::format("{:.0f} and {:.0f} s", printed.period.points[39].y,
                                printed.period.points.back().y),
                    "A second less with every doubling: the next refresh comes too late."});
  notebook.finding(
      {"Algorithm 3 as printed: highest rate, corrected and measured, target 0.01", "-",
       fmt::format("{}, {}", scientific(printed.rate_most), scientific(printed.measured_most)),
       "Nothing is relieved: the new filters are empty, the full ones stay. Measured "
       "it is more, since only keys that set a new bit are inserted."});
  notebook.finding({fmt::format("Algorithm 3 as printed: new keys taken for retries, of {}",
                                printed.inserted + printed.mistaken),
                    "-", fmt::format("{}", printed.mistaken),
                    "A counter would have lost so many increments in 55 seconds."});
  notebook.finding({"Algorithm 3 as printed: keys denied inside the window", "-",
                    fmt::format("{}", printed.lost),
                    "None until second 55: the period had grown before the burst, and with it the "
                    "window."});
  notebook.finding(
      {"sliced: highest rate, by the bits set and measured, target 0.01", "-",
       fmt::format("{}, {}", scientific(sliced.rate_most), scientific(sliced.measured_most)),
       "The target is kept."});
  notebook.finding({"sliced: new keys taken for retries; denied inside the window; shed", "-",
                    fmt::format("{}; {}; {}", sliced.mistaken, sliced.lost, sliced.shed),
                    "Over 140 seconds, in which 12,300 keys come: so is the window."});
  notebook.finding({"sliced: most tables at once; most memory; memory before and after", "-",
                    fmt::format("{}; {:.0f} KiB; {:.1f} and {:.1f} KiB", sliced.tables_most,
                                static_cast<double>(sliced.memory_most) / 1024,
                                sliced.memory.points[39].y, sliced.memory.points.back().y),
                    "A larger table takes over, and a small one when the burst is old."});
  notebook.note(
      "30 keys a second, 300 from second 40 to 70; a window of 22 s for both; the printed form "
      "from 3 filters of m = 6250, k = 5 and a period of 11 s, followed until second 55. As "
      "printed, every second of the burst doubles the filters and nothing gets better. The sliced "
      "form puts larger tables in charge and keeps both the target and the window; after the "
      "burst it comes back to a small one.");
}

}  // namespace helenus::lab
