// For tests: tests/cql/*.cqltest, language behaviour as data. The format is in tests/cql/README.md.
//
// A Story is what statements are told to: QueryStory (query_story_test_support.h), or whatever has
// its run(), prepare(), execute(), must(), restart() and runtime(), and for which flush_table() and
// compact_table() are there.
//
// Requires: HELENUS_CQL_TESTS is the folder of the files.
#pragma once

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cql/execute/query_story_test_support.h"

namespace helenus::cql::testing::cqltest {

// One statement with how it is sent and what is expected.
struct Step {
  std::string file;
  int line = 0;
  std::string text;
  std::optional<std::string> binds;  // literals: prepare, then execute with these
  How how;
  std::int64_t wait_seconds = 0;
  std::optional<std::string> flushed;    // a table, first
  std::optional<std::string> compacted;  // likewise
  bool restarted = false;                // after these
  bool alone = false;                    // what it expects is said of a node that is alone
  std::optional<std::string> columns;
  std::vector<std::string> rows;
  bool any_order = false;
  bool expects_rows = false;
  std::optional<std::string> error;  // "2200 words in it"
  std::optional<std::string> warning;

  std::string where() const { return file + ":" + std::to_string(line) + ": " + text; }
};

inline std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(" \t\r");
  if (first == std::string_view::npos) return "";
  return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

inline bool take_prefix(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text = trimmed(text.substr(prefix.size()));
  return true;
}

inline protocol::Consistency level_of(std::string_view name) {
  for (std::uint16_t number = 0; number <= model::kConsistencyMax; ++number) {
    const auto level = static_cast<protocol::Consistency>(number);
    if (model::name_of(level) == name) return level;
  }
  ADD_FAILURE() << name << " is no consistency level";
  return protocol::Consistency::one;
}

inline std::int64_t number_of(std::string_view text) {
  std::int64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

// Commas that stand outside of quotes and brackets.
inline std::vector<std::string> split_values(std::string_view text) {
  std::vector<std::string> values;
  std::string value;
  int depth = 0;
  bool quoted = false;
  for (const char c : text) {
    if (c == '\'') quoted = !quoted;
    if (!quoted && (c == '(' || c == '[' || c == '{')) ++depth;
    if (!quoted && (c == ')' || c == ']' || c == '}')) --depth;
    if (c == ',' && depth == 0 && !quoted) {
      values.emplace_back(trimmed(value));
      value.clear();
    } else {
      value.push_back(c);
    }
  }
  if (!trimmed(value).empty() || !values.empty()) values.emplace_back(trimmed(value));
  return values;
}

// Reads one file. A line that is no directive and no expectation is part of a statement. A batch
// goes on to its APPLY BATCH.
class Reader {
 public:
  explicit Reader(std::string file) : file_(std::move(file)) {}

  std::vector<Step> read(std::istream& in) {
    std::string line;
    for (number_ = 1; std::getline(in, line); ++number_) take(trimmed(line));
    EXPECT_TRUE(statement_.empty())
        << file_ << ": a statement without its semicolon: " << statement_;
    return std::move(steps_);
  }

 private:
  void take(std::string_view line) {
    if (statement_.empty() && (line.empty() || line.starts_with('#'))) return;
    if (statement_.empty() && (directive(line) || expectation(line))) return;
    if (statement_.empty()) next_.line = number_;
    if (!statement_.empty()) statement_ += "\n";
    statement_ += line;
    if (!line.ends_with(statement_.starts_with("BEGIN") ? "APPLY BATCH;" : ";")) return;
    next_.file = file_;
    next_.text = std::exchange(statement_, {});
    steps_.push_back(std::exchange(next_, {}));
  }

  bool directive(std::string_view line) {
    if (take_prefix(line, "@bind")) {
      next_.binds = std::string(line);
    } else if (take_prefix(line, "@page")) {
      next_.how.page_size = static_cast<std::int32_t>(number_of(line));
    } else if (take_prefix(line, "@timestamp")) {
      next_.how.timestamp_us = number_of(line);
    } else if (take_prefix(line, "@consistency")) {
      next_.how.consistency = level_of(line);
    } else if (take_prefix(line, "@wait")) {
      next_.wait_seconds = number_of(line);
    } else if (take_prefix(line, "@flush")) {
      next_.flushed = std::string(line);
    } else if (take_prefix(line, "@compact")) {
      next_.compacted = std::string(line);
    } else if (line == "@restart") {
      next_.restarted = true;
    } else if (line == "@alone") {
      next_.alone = true;
    } else {
      return false;
    }
    return true;
  }

  bool expectation(std::string_view line) {
    if (steps_.empty()) return false;
    Step& step = steps_.back();
    if (take_prefix(line, "->") ||
        (line.starts_with("*>") && (step.any_order = true) && take_prefix(line, "*>"))) {
      step.expects_rows = true;
      if (line != "nothing") step.rows.emplace_back(line);
    } else if (take_prefix(line, "=>")) {
      step.columns = std::string(line);
    } else if (take_prefix(line, "!!")) {
      step.error = std::string(line);
    } else if (take_prefix(line, "??")) {
      step.warning = std::string(line);
    } else {
      return false;
    }
    return true;
  }

  std::string file_;
  int number_ = 1;
  std::string statement_;
  Step next_;
  std::vector<Step> steps_;
};

// The value that a literal is, for a marker.
inline protocol::Value value_of(const std::string& literal, const protocol::ColumnSpec& marker,
                                std::vector<base::Bytes>& keep) {
  if (literal == "unset") return protocol::Value::unset();
  const auto parsed = parser::parse("INSERT INTO t (c) VALUES (" + literal + ")");
  EXPECT_TRUE(parsed.has_value()) << literal;
  if (!parsed) return protocol::Value::null();
  const auto& insert = std::get<parser::Insert>(parsed->node);
  MarkerTypes none(parsed->markers);
  const model::Keyspace keyspace;
  PlanScope scope{keyspace, none};
  auto term = compile_term(insert.values.front(), marker, scope);
  EXPECT_TRUE(term.has_value()) << literal << ": " << term.error().to_string();
  if (!term) return protocol::Value::null();
  const BoundValues values;
  Moment moment(runtime::WallTime{}, base::Prng(1));
  const auto value = term->evaluate({values, moment});
  EXPECT_TRUE(value.has_value()) << literal;
  if (!value || value->is_null()) return protocol::Value::null();
  keep.push_back(value->bytes);
  return protocol::Value::of(keep.back().view());
}

template <class Story>
runtime::Task<Told> send(Story& story, const Step& step, How how) {
  if (!step.binds) co_return co_await story.run(step.text, how);
  const Told prepared = co_await story.prepare(step.text);
  if (prepared.error) co_return prepared;
  const auto& result = std::get<protocol::PreparedResult>(prepared.message);
  const std::vector<std::string> literals = split_values(*step.binds);
  std::vector<base::Bytes> keep;
  keep.reserve(literals.size());
  std::vector<protocol::Value> values;
  for (std::size_t i = 0; i < literals.size(); ++i) {
    if (i >= result.markers.size()) {
      values.push_back(protocol::Value::null());
      continue;
    }
    values.push_back(value_of(literals[i], result.markers[i], keep));
  }
  co_return co_await story.execute(result.id, values, how);
}

// All pages of the statement as one answer.
template <class Story>
runtime::Task<Told> send_all(Story& story, const Step& step) {
  Told all = co_await send(story, step, step.how);
  std::optional<base::Bytes> state = all.paging_state;
  while (state && !all.error) {
    How how = step.how;
    how.paging_state = state;
    Told page = co_await send(story, step, how);
    if (page.error) co_return page;
    if (step.how.page_size) {
      EXPECT_LE(page.rows.size(), static_cast<std::size_t>(*step.how.page_size)) << step.where();
    }
    EXPECT_FALSE(page.rows.empty() && page.paging_state) << step.where() << "\n  an empty page";
    std::ranges::move(page.rows, std::back_inserter(all.rows));
    state = page.paging_state;
  }
  co_return all;
}

// With the numbers of an UNAVAILABLE.
inline std::string words_of(const protocol::ErrorMessage& error) {
  const auto* unavailable = std::get_if<protocol::UnavailableDetails>(&error.details);
  if (unavailable == nullptr) return error.message;
  return fmt::format("{} (required {}, alive {})", error.message, unavailable->required,
                     unavailable->alive);
}

inline void check_error(const Step& step, const Told& told) {
  if (!step.error) {
    EXPECT_FALSE(told.error.has_value()) << step.where() << "\n  " << told.text();
    return;
  }
  const std::string code = step.error->substr(0, step.error->find(' '));
  const std::string words(trimmed(step.error->substr(code.size())));
  EXPECT_TRUE(told.error.has_value()) << step.where() << "\n  gave: " << told.text();
  if (!told.error) return;
  EXPECT_EQ(fmt::format("{:04x}", static_cast<std::uint32_t>(told.error->code)), code)
      << step.where() << "\n  " << told.text();
  EXPECT_THAT(words_of(*told.error), ::testing::HasSubstr(words)) << step.where();
}

inline void check(const Step& step, const Told& told) {
  check_error(step, told);
  if (told.error) return;
  if (step.columns) {
    EXPECT_EQ(fmt::format("{}", fmt::join(told.columns, ", ")), *step.columns) << step.where();
  }
  if (step.warning) {
    EXPECT_THAT(told.warnings, ::testing::Contains(::testing::HasSubstr(*step.warning)))
        << step.where();
  }
  if (!step.expects_rows) return;
  std::vector<std::string> rows;
  for (const auto& row : told.rows) rows.push_back(fmt::format("{}", fmt::join(row, ", ")));
  if (step.any_order) {
    EXPECT_THAT(rows, ::testing::UnorderedElementsAreArray(step.rows)) << step.where();
  } else {
    EXPECT_THAT(rows, ::testing::ElementsAreArray(step.rows)) << step.where();
  }
}

// In a keyspace ks with so many replicas.
template <class Story>
runtime::Task<void> run_steps(Story& story, const std::vector<Step>& steps,
                              std::size_t replicas = 1) {
  co_await story.must(
      fmt::format("CREATE KEYSPACE ks WITH replication = {{'class': 'SimpleStrategy', "
                  "'replication_factor': {}}}",
                  replicas));
  co_await story.must("USE ks");
  for (const Step& step : steps) {
    if (step.wait_seconds > 0) {
      std::ignore =
          co_await runtime::sleep_for(story.runtime(), std::chrono::seconds(step.wait_seconds), {});
    }
    if (step.flushed) co_await flush_table(story, *step.flushed);
    if (step.compacted) co_await compact_table(story, *step.compacted);
    if (step.restarted) co_await story.restart();
    const Told told = co_await send_all(story, step);
    if (!step.alone || replicas == 1) check(step, told);
  }
}

inline std::vector<Step> steps_of(const std::string& file) {
  const std::string path = std::string(HELENUS_CQL_TESTS) + "/" + file + ".cqltest";
  std::ifstream in(path);
  EXPECT_TRUE(in.good()) << path;
  std::vector<Step> steps = Reader(file).read(in);
  EXPECT_FALSE(steps.empty()) << path;
  return steps;
}

inline std::vector<Step> prepared(std::vector<Step> steps) {
  for (Step& step : steps) {
    // Markers without values are told in other words there.
    if (!step.binds && !step.text.contains('?')) step.binds = "";
  }
  return steps;
}

inline std::vector<std::string> all_files() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(HELENUS_CQL_TESTS)) {
    if (entry.path().extension() == ".cqltest") names.push_back(entry.path().stem().string());
  }
  std::ranges::sort(names);
  return names;
}

}  // namespace helenus::cql::testing::cqltest
