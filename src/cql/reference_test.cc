// Random statements, judged by a reference that is too simple to be wrong: maps in memory.
#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/prng.h"
#include "cql/query_story_test_support.h"

namespace helenus::cql::testing {
namespace {

using runtime::Task;
using storage::testing::LogWorld;

using Key = std::pair<int, int>;  // a, b

struct ReferenceRow {
  bool inserted = false;
  std::optional<int> v;
  std::optional<int> w;
  bool is_there() const { return inserted || v || w; }
};

struct ReferencePartition {
  std::optional<int> s;
  std::map<Key, ReferenceRow> rows;
};

std::string text_of(const std::optional<int>& value) {
  return value ? std::to_string(*value) : "null";
}

// Which rows of a partition: as CQL, and as a question.
struct Slice {
  std::string where;  // " AND a = 1"; empty for all
  std::function<bool(Key)> holds = [](Key) { return true; };
};

class Reference {
 public:
  Reference(std::uint64_t seed, bool descending) : prng_(seed), descending_(descending) {}

  std::string create() const {
    return fmt::format(
        "CREATE TABLE t (k int, a int, b int, s int static, v int, w int, PRIMARY KEY (k, a, b)) "
        "WITH CLUSTERING ORDER BY (a {}, b ASC)",
        descending_ ? "DESC" : "ASC");
  }

  // A statement that writes; it has happened here already.
  std::string write() {
    const int k = key();
    switch (prng_.below(9)) {
      case 0:
      case 1:
      case 2:
        return insert(k);
      case 3:
      case 4:
        return update(k);
      case 5:
        return write_static(k);
      case 6:
        return delete_cell(k);
      default:
        return delete_rows(k);
    }
  }

  struct Read {
    std::string text;
    std::vector<std::string> rows;
    bool ordered = true;
    std::optional<std::int32_t> page_size;
  };

  Read read() {
    Read read;
    if (prng_.chance(0.7)) read.page_size = static_cast<std::int32_t>(prng_.between(1, 5));
    std::vector<int> keys;
    std::string where;
    Slice slice;
    const std::uint64_t kind = prng_.below(8);
    if (kind < 6) {
      keys = {key()};
      where = fmt::format(" WHERE k = {}", keys[0]);
      slice = some_slice();
    } else if (kind == 6) {
      keys = {0, 2, 3};
      where = " WHERE k IN (3, 0, 2, 3)";
      slice = some_slice();
      read.ordered = false;
    } else {
      for (int k = 0; k < kKeys; ++k) keys.push_back(k);
      read.ordered = false;
    }
    const bool reversed = kind < 6 && prng_.chance(0.4);
    const auto per_partition =
        prng_.chance(0.2) ? std::optional(prng_.between(1, 3)) : std::nullopt;
    for (const int k : keys) {
      std::vector<std::string> rows = rows_of(k, slice, reversed);
      if (per_partition && rows.size() > *per_partition) rows.resize(*per_partition);
      std::ranges::move(rows, std::back_inserter(read.rows));
    }
    read.text = "SELECT k, a, b, s, v, w FROM t" + where + slice.where;
    if (reversed) read.text += descending_ ? " ORDER BY a ASC" : " ORDER BY a DESC";
    if (per_partition) read.text += fmt::format(" PER PARTITION LIMIT {}", *per_partition);
    if (read.ordered && prng_.chance(0.3)) {
      const std::size_t limit = prng_.between(1, 6);
      read.text += fmt::format(" LIMIT {}", limit);
      if (read.rows.size() > limit) read.rows.resize(limit);
    }
    return read;
  }

  std::uint64_t below(std::uint64_t bound) { return prng_.below(bound); }

 private:
  static constexpr int kKeys = 4;
  static constexpr int kValues = 5;  // of a and b: so few that rows meet

  int key() { return static_cast<int>(prng_.below(kKeys)); }
  int number() { return static_cast<int>(prng_.below(kValues)); }
  std::optional<int> cell() {
    if (prng_.chance(0.2)) return std::nullopt;
    return static_cast<int>(prng_.below(1000));
  }

  std::string insert(int k) {
    const Key at{number(), number()};
    ReferenceRow& row = partitions_[k].rows[at];
    row.inserted = true;
    row.v = cell();
    std::string columns = "k, a, b, v";
    std::string values = fmt::format("{}, {}, {}, {}", k, at.first, at.second, text_of(row.v));
    if (prng_.chance(0.5)) {
      row.w = cell();
      columns += ", w";
      values += ", " + text_of(row.w);
    }
    if (prng_.chance(0.1)) {
      partitions_[k].s = cell();
      columns += ", s";
      values += ", " + text_of(partitions_[k].s);
    }
    return fmt::format("INSERT INTO t ({}) VALUES ({})", columns, values);
  }
  std::string update(int k) {
    const Key at{number(), number()};
    ReferenceRow& row = partitions_[k].rows[at];
    row.v = cell();
    row.w = cell();
    return fmt::format("UPDATE t SET v = {}, w = {} WHERE k = {} AND a = {} AND b = {}",
                       text_of(row.v), text_of(row.w), k, at.first, at.second);
  }
  std::string write_static(int k) {
    partitions_[k].s = cell();
    return fmt::format("UPDATE t SET s = {} WHERE k = {}", text_of(partitions_[k].s), k);
  }
  std::string delete_cell(int k) {
    if (prng_.chance(0.3)) {
      partitions_[k].s.reset();
      return fmt::format("DELETE s FROM t WHERE k = {}", k);
    }
    const Key at{number(), number()};
    partitions_[k].rows[at].v.reset();
    return fmt::format("DELETE v FROM t WHERE k = {} AND a = {} AND b = {}", k, at.first,
                       at.second);
  }
  std::string delete_rows(int k) {
    const Slice slice = some_slice();
    std::erase_if(partitions_[k].rows, [&](const auto& row) { return slice.holds(row.first); });
    if (slice.where.empty()) partitions_[k].s.reset();
    return fmt::format("DELETE FROM t WHERE k = {}{}", k, slice.where);
  }

  Slice some_slice() {
    const int x = number();
    const int y = number();
    const Key from{x, y};
    const Key to{x + number(), number()};
    switch (prng_.below(10)) {
      case 0:
        return {};
      case 1:
        return {fmt::format(" AND a = {} AND b = {}", x, y), [=](Key k) { return k == from; }};
      case 2:
        return {fmt::format(" AND a = {}", x), [=](Key k) { return k.first == x; }};
      case 3:
        return {fmt::format(" AND a > {}", x), [=](Key k) { return k.first > x; }};
      case 4:
        return {fmt::format(" AND a >= {} AND a < {}", x, to.first),
                [=](Key k) { return k.first >= x && k.first < to.first; }};
      case 5:
        return {fmt::format(" AND a = {} AND b <= {}", x, y),
                [=](Key k) { return k.first == x && k.second <= y; }};
      case 6:
        return {fmt::format(" AND (a, b) > ({}, {})", x, y), [=](Key k) { return k > from; }};
      case 7:
        return {fmt::format(" AND (a, b) >= ({}, {}) AND (a, b) <= ({}, {})", x, y, to.first,
                            to.second),
                [=](Key k) { return k >= from && k <= to; }};
      case 8:
        return {fmt::format(" AND a IN ({}, {})", y, x),
                [=](Key k) { return k.first == x || k.first == y; }};
      default:
        return {fmt::format(" AND (a, b) < ({}, {}) AND a >= 1", x, y),
                [=](Key k) { return k < from && k.first >= 1; }};
    }
  }

  std::vector<std::string> rows_of(int k, const Slice& slice, bool reversed) {
    const ReferencePartition& partition = partitions_[k];
    std::vector<Key> keys;
    bool any = false;
    for (const auto& [at, row] : partition.rows) {
      if (!row.is_there()) continue;
      any = true;
      if (slice.holds(at)) keys.push_back(at);
    }
    std::ranges::sort(keys, [&](Key x, Key y) {
      if (x.first != y.first) return descending_ ? x.first > y.first : x.first < y.first;
      return x.second < y.second;
    });
    if (reversed) std::ranges::reverse(keys);
    std::vector<std::string> rows;
    for (const Key at : keys) {
      const ReferenceRow& row = partition.rows.at(at);
      rows.push_back(fmt::format("{}, {}, {}, {}, {}, {}", k, at.first, at.second,
                                 text_of(partition.s), text_of(row.v), text_of(row.w)));
    }
    if (!any && partition.s && slice.where.empty()) {
      rows.push_back(fmt::format("{}, null, null, {}, null, null", k, text_of(partition.s)));
    }
    return rows;
  }

  base::Prng prng_;
  const bool descending_;
  std::map<int, ReferencePartition> partitions_;
};

Task<std::vector<std::string>> read_all(QueryStory& story, const Reference::Read& read) {
  std::vector<std::string> rows;
  How how;
  how.page_size = read.page_size;
  do {
    const Told told = co_await story.run(read.text, how);
    EXPECT_FALSE(told.error.has_value()) << read.text << "\n  " << told.text();
    EXPECT_FALSE(told.rows.empty() && told.paging_state) << read.text;
    for (const auto& row : told.rows) rows.push_back(fmt::format("{}", fmt::join(row, ", ")));
    how.paging_state = told.paging_state;
  } while (how.paging_state);
  co_return rows;
}

Task<void> compare(QueryStory& story, std::uint64_t seed, bool descending, int statements) {
  co_await story.must(
      "CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}");
  co_await story.must("USE ks");
  Reference reference(seed, descending);
  co_await story.must(reference.create());
  std::vector<std::string> history;
  for (int i = 0; i < statements && !::testing::Test::HasFailure(); ++i) {
    if (reference.below(200) == 0) {
      const auto table = story.catalog().snapshot()->schema().find_table("ks", "t");
      const auto storage = story.catalog().snapshot()->storage_of(table->id);
      EXPECT_TRUE((co_await story.coordinator().flush(*storage, runtime::Until::forever())));
      history.emplace_back("(flush)");
    }
    if (reference.below(2) == 0) {
      history.push_back(reference.write());
      co_await story.must(history.back());
      continue;
    }
    Reference::Read read = reference.read();
    std::vector<std::string> rows = co_await read_all(story, read);
    if (!read.ordered) {
      std::ranges::sort(rows);
      std::ranges::sort(read.rows);
    }
    EXPECT_EQ(rows, read.rows) << "seed " << seed << ", pages of " << read.page_size.value_or(0)
                               << ": " << read.text << "\n  after\n  "
                               << fmt::format("{}", fmt::join(history, "\n  "));
  }
}

void compare_on(std::uint16_t cores, std::uint64_t seed, int statements) {
  LogWorld world(seed, cores);
  QueryStory::tell(
      world, [&](QueryStory& story) { return compare(story, seed, seed % 2 == 1, statements); });
}

class ReferenceTest : public ::testing::TestWithParam<int> {};

TEST_P(ReferenceTest, StatementsGiveWhatMapsGive) {
  compare_on(1, static_cast<std::uint64_t>(GetParam()), 2000);
}

TEST_P(ReferenceTest, StatementsGiveWhatMapsGiveOnThreeCores) {
  compare_on(3, static_cast<std::uint64_t>(GetParam()) + 100, 300);
}

INSTANTIATE_TEST_SUITE_P(Seeds, ReferenceTest, ::testing::Range(1, 11));

}  // namespace
}  // namespace helenus::cql::testing
