// Answers of replicas and their digests, in random histories of three replicas.
#include "replication/merge/answer_merge.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/prng.h"
#include "base/test_scale.h"
#include "causality/clock.h"
#include "causality/counter.h"
#include "causality/delta.h"
#include "causality/dot_store.h"
#include "causality/resolve.h"
#include "replication/merge/answer_digest.h"

namespace helenus::replication {
namespace {

using base::Bytes;
using causality::CellChange;
using causality::Clock;
using causality::ColumnId;
using causality::Delta;
using causality::Mutation;
using causality::PartitionStore;
using causality::Policy;
using causality::RowRange;
using causality::Timestamp;
using causality::VersionKind;
using storage::RowRead;

constexpr std::size_t kReplicas = 3;
const std::vector<std::string> kPartitions = {"p", "q"};
const std::vector<std::string> kRows = {"", "a", "b", "c", "d"};
constexpr std::array kColumns = {ColumnId{1}, ColumnId{2}};

Bytes bytes(std::string_view text) {
  return Bytes::copy_of(base::as_bytes(text));
}

// What goes wrong on purpose.
enum class Bug : std::uint8_t {
  none,
  claims_beyond_its_end,
  absent_is_not_asked,
  comes_without_ranges
};

// A replica as the engine keeps one, without the engine: everything merged, and stripped at times.
struct Replica {
  Clock clock;
  std::map<std::string, PartitionStore> stored;
  std::map<std::string, PartitionStore> whole;  // the same, never stripped
  Timestamp largest = causality::kTimestampMin;

  void take(const std::string& partition, const Delta& delta, Policy policy) {
    Clock before = clock;
    causality::apply(clock, stored[partition], delta, policy);
    causality::apply(before, whole[partition], delta, policy);
    largest = std::max(largest, delta.timestamp);
  }
  // `stable`: what all have, if this one has all that any of them has.
  void strip(const Clock& stable, Policy policy) {
    for (auto& [name, partition] : stored) {
      if (policy == Policy::counter) {
        causality::drop_stable(partition, policy, {.dots = stable, .wall = {}});
      }
      partition.apply_range_deletes_to_rows();
      partition.strip(causality::base(clock));
    }
  }
  PartitionStore row_of(const std::string& partition, const Bytes& row,
                        bool with_ranges = true) const {
    PartitionStore found;
    const auto at = stored.find(partition);
    if (at == stored.end()) return found;
    for (const auto& [key, cells] : at->second.rows()) {
      if (key == row) found.absorb(row, cells);
    }
    for (const auto& range : at->second.range_deletes()) {
      if (with_ranges && range.range.contains(row)) found.absorb(range);
    }
    return found;
  }
  RowRead read(const RowName& name, bool with_ranges = true) const {
    return {.partition = row_of(std::string(name.partition.text()), name.row, with_ranges),
            .clock = clock,
            .floor = largest};
  }
  // The rows behind `after`, in the order of reading.
  RowsAnswer page(const std::optional<RowName>& after, bool backwards, std::size_t rows_max,
                  bool with_ranges = true) const {
    std::vector<RowName> names;
    for (const auto& [partition, store] : stored) {
      for (const auto& [row, cells] : store.rows()) {
        if (!cells.empty()) names.push_back({.partition = bytes(partition), .row = row});
      }
    }
    const auto less = [](const RowName& a, const RowName& b) {
      return a.partition != b.partition ? a.partition < b.partition : a.row < b.row;
    };
    std::ranges::sort(names, less);
    if (backwards) std::ranges::reverse(names);
    RowsAnswer answer;
    answer.clock = clock;
    for (const RowName& name : names) {
      if (after && (backwards ? !less(name, *after) : !less(*after, name))) continue;
      if (answer.rows.size() == rows_max) {
        answer.more = true;
        break;
      }
      answer.rows.push_back(
          {.partition = name.partition,
           .row = name.row,
           .stored = row_of(std::string(name.partition.text()), name.row, with_ranges)});
    }
    return answer;
  }
};

Policy policy_of(std::uint64_t seed) {
  if (seed % 5 < 2) return Policy::counter;
  return seed % 5 == 2 ? Policy::siblings : Policy::lww;
}

class World {
 public:
  World(std::uint64_t seed, Policy policy) : prng_(seed), policy_(policy) {
    const std::size_t writes = 1 + below(policy == Policy::counter ? 12 : 8);
    for (std::size_t i = 0; i < writes; ++i) write();
  }

  // The number of cells in which the merged answers show something else than the join.
  std::size_t count_wrong(bool backwards, Bug bug) {
    const auto shown = scan(backwards, bug);
    std::size_t wrong = 0;
    for (const std::string& partition : kPartitions) {
      PartitionStore joined;
      for (const Replica& replica : replicas_) {
        const auto at = replica.whole.find(partition);
        if (at != replica.whole.end()) joined.absorb(at->second);
      }
      for (const std::string& row : kRows) {
        for (const ColumnId column : kColumns) {
          const auto at = shown.find({partition, row});
          const causality::CellStore mine =
              at == shown.end() ? causality::CellStore() : at->second.cell(bytes(row), column);
          if (!show_the_same(mine, joined.cell(bytes(row), column))) ++wrong;
        }
      }
    }
    return wrong;
  }

  std::size_t count_wrong_points() {
    std::size_t wrong = 0;
    for (const std::string& partition : kPartitions) {
      PartitionStore joined;
      for (const Replica& replica : replicas_) {
        const auto at = replica.whole.find(partition);
        if (at != replica.whole.end()) joined.absorb(at->second);
      }
      for (const std::string& row : kRows) {
        std::vector<RowRead> answers;
        for (const Replica& replica : replicas_) {
          answers.push_back(replica.read({.partition = bytes(partition), .row = bytes(row)}));
        }
        const RowRead merged = merge(bytes(row), answers);
        for (const ColumnId column : kColumns) {
          const auto mine = merged.partition.cell(bytes(row), column);
          if (!show_the_same(mine, joined.cell(bytes(row), column))) ++wrong;
        }
      }
    }
    return wrong;
  }

  struct DigestCounts {
    std::size_t equal = 0;
    // Of those: the merge of both shows something else than the first.
    std::size_t wrong = 0;
    // A read of one of the two and of the third shows something that the other has seen go.
    std::size_t gone_back = 0;
  };
  // By row and by two replicas.
  DigestCounts count_digests(DigestOptions options) {
    DigestCounts counts;
    for (const std::string& partition : kPartitions) {
      for (const std::string& row : kRows) {
        for (std::size_t third = 0; third < kReplicas; ++third) {
          count_digests({.partition = bytes(partition), .row = bytes(row)}, third, options, counts);
        }
      }
    }
    return counts;
  }

 private:
  void count_digests(const RowName& name, std::size_t third, DigestOptions options,
                     DigestCounts& counts) {
    const std::size_t first = (third + 1) % kReplicas;
    const std::size_t second = (third + 2) % kReplicas;
    const std::array reads = {replicas_[first].read(name), replicas_[second].read(name)};
    const auto digest = [&](const RowRead& read) {
      return digest_of(std::span(&name, 1), std::span(&read, 1), options);
    };
    if (digest(reads[0]) != digest(reads[1])) return;
    ++counts.equal;
    const RowRead both = merge(name.row, reads);
    for (const ColumnId column : kColumns) {
      const auto shown = dots(reads[0].partition.cell(name.row, column));
      if (dots(both.partition.cell(name.row, column)) != shown) ++counts.wrong;
      for (const std::size_t one : {first, second}) {
        const std::array later = {replicas_[one].read(name), replicas_[third].read(name)};
        const Clock& other = replicas_[one == first ? second : first].clock;
        for (const auto& dot : dots(merge(name.row, later).partition.cell(name.row, column))) {
          if (!shown.contains(dot) && other.contains(dot)) ++counts.gone_back;
        }
      }
    }
  }

  std::size_t below(std::size_t end) { return static_cast<std::size_t>(prng_.below(end)); }

  std::set<causality::Dot> dots(const causality::CellStore& cell) const {
    std::set<causality::Dot> found;
    for (const causality::Version* version :
         causality::visible(cell, policy_, causality::WallTime{})) {
      found.insert(version->dot);
    }
    return found;
  }

  bool show_the_same(const causality::CellStore& a, const causality::CellStore& b) const {
    if (policy_ != Policy::counter) return dots(a) == dots(b);
    return causality::counter_value(a) == causality::counter_value(b);
  }

  // One replica takes all that the others have; then it may fold what all have.
  void settle_one() {
    const std::size_t at = below(kReplicas);
    Replica& replica = replicas_[at];
    if (below(3) == 0) {
      for (const auto& [partition, delta] : written_) {
        const bool is_there = std::ranges::any_of(
            replicas_, [&](const Replica& other) { return other.clock.contains(delta.dot); });
        if (is_there) replica.take(partition, delta, policy_);
      }
    }
    Clock stable = causality::base(replica.clock);
    for (const Replica& other : replicas_) {
      if (!replica.clock.covers(other.clock)) stable = {};
      stable = causality::meet(stable, causality::base(other.clock));
    }
    replica.strip(stable, policy_);
  }

  RowRange some_range() {
    switch (below(3)) {
      case 0:
        return {};
      case 1:
        return causality::range_of_row(bytes(kRows[below(kRows.size())]));
      default:
        return {.from = bytes("a"), .to = bytes("d")};
    }
  }

  void write() {
    const std::size_t at = below(kReplicas);
    const std::string& partition = kPartitions[below(kPartitions.size())];
    Replica& minter = replicas_[at];
    Mutation mutation;
    mutation.timestamp = Timestamp{static_cast<std::int64_t>(below(20))};
    if (below(3) == 0) {
      mutation.deleted_ranges = {some_range()};
    } else {
      const Bytes row = bytes(kRows[below(kRows.size())]);
      for (const ColumnId column : kColumns) {
        if (below(2) == 0 && column != kColumns.front()) continue;
        CellChange change;
        change.row = row;
        change.column = column;
        change.value = bytes("v");
        if (policy_ == Policy::counter) {
          change.kind = VersionKind::increment;
          change.amount = std::int64_t{1} << (5 * written_.size());
        } else if (below(4) == 0) {
          change.kind = VersionKind::deletion;
          change.value = {};
        }
        mutation.cells.push_back(std::move(change));
      }
    }
    const auto actor = causality::actor_of(static_cast<std::uint32_t>(at + 1), 1);
    Clock clock = minter.clock;
    auto delta = causality::mint(clock, actor, causality::Epoch{1}, policy_, std::move(mutation),
                                 minter.largest);
    ASSERT_TRUE(delta) << delta.error().to_string();
    written_.emplace_back(partition, *delta);
    for (std::size_t i = 0; i < kReplicas; ++i) {
      if (i == at || below(2) == 0) replicas_[i].take(partition, *delta, policy_);
    }
    if (below(3) == 0) settle_one();
  }

  std::map<std::pair<std::string, std::string>, PartitionStore> scan(bool backwards, Bug bug) {
    std::map<std::pair<std::string, std::string>, PartitionStore> shown;
    std::optional<RowName> after;
    for (int trip = 0; trip < 100; ++trip) {
      std::vector<RowsAnswer> pages;
      const bool with_ranges = bug != Bug::comes_without_ranges;
      for (const Replica& replica : replicas_) {
        pages.push_back(replica.page(after, backwards, 1 + below(4), with_ranges));
        if (bug == Bug::claims_beyond_its_end) pages.back().more = false;
      }
      AnswerMerge merging(backwards, std::move(pages));
      for (std::size_t i = 0; i < kReplicas; ++i) {
        std::vector<RowRead> reads;
        for (const RowName& name : merging.needed()[i]) {
          reads.push_back(bug == Bug::absent_is_not_asked
                              ? RowRead{.partition = {}, .clock = replicas_[i].clock}
                              : replicas_[i].read(name, with_ranges));
        }
        merging.supply(i, std::move(reads));
      }
      const RowsAnswer answer = merging.take();
      for (const RowsAnswer::Row& row : answer.rows) {
        shown[{std::string(row.partition.text()), std::string(row.row.text())}] = row.stored;
      }
      if (!answer.more) return shown;
      EXPECT_FALSE(answer.rows.empty());
      if (answer.rows.empty()) return shown;
      after = RowName{.partition = answer.rows.back().partition, .row = answer.rows.back().row};
    }
    ADD_FAILURE() << "the scan does not end";
    return shown;
  }

  std::vector<std::pair<std::string, Delta>> written_;
  base::Prng prng_;
  const Policy policy_;
  std::array<Replica, kReplicas> replicas_;
};

std::uint64_t seeds() {
  return base::count_from_environment("HELENUS_SEEDS", 2000);
}

std::size_t count_wrong(Bug bug) {
  std::size_t wrong = 0;
  for (std::uint64_t seed = 0; seed < seeds(); ++seed) {
    World world(seed, policy_of(seed));
    wrong += world.count_wrong(seed % 2 == 0, bug);
  }
  return wrong;
}

TEST(AnswerMerge, ShowsWhatTheJoinOfTheStoresShows) {
  EXPECT_EQ(count_wrong(Bug::none), 0U);
}

TEST(AnswerMerge, APageThatClaimsBeyondItsEndIsFound) {
  EXPECT_GT(count_wrong(Bug::claims_beyond_its_end), 0U);
}

TEST(AnswerMerge, AnAbsentRowThatIsNotAskedForIsFound) {
  EXPECT_GT(count_wrong(Bug::absent_is_not_asked), 0U);
}

TEST(AnswerMerge, APageWithoutItsRangesIsFound) {
  EXPECT_GT(count_wrong(Bug::comes_without_ranges), 0U);
}

TEST(AnswerMerge, RowsByTheirNamesShowWhatTheJoinShows) {
  for (std::uint64_t seed = 0; seed < seeds(); ++seed) {
    World world(seed, policy_of(seed));
    ASSERT_EQ(world.count_wrong_points(), 0U) << "seed " << seed;
  }
}

RowsAnswer::Row hint(std::string_view row, std::uint64_t counter) {
  Delta delta;
  delta.dot = {.actor = causality::actor_of(1, 1), .counter = counter};
  CellChange cell;
  cell.row = bytes(row);
  cell.column = kColumns[0];
  delta.cells.push_back(cell);
  return {.partition = bytes("p"),
          .row = bytes(row),
          .stored = causality::fragment_of(delta, Policy::lww)};
}

World::DigestCounts count_digests(DigestOptions options) {
  World::DigestCounts sum;
  for (std::uint64_t seed = 0; seed < seeds(); ++seed) {
    World world(seed, Policy::lww);
    const auto counts = world.count_digests(options);
    sum.equal += counts.equal;
    sum.wrong += counts.wrong;
    sum.gone_back += counts.gone_back;
  }
  return sum;
}

TEST(AnswerDigest, WhoHasTheSameShowsWhatTheMergeShowsAndLacksNothing) {
  const auto counts = count_digests({});
  EXPECT_GT(counts.equal, seeds());
  EXPECT_EQ(counts.wrong, 0U);
  EXPECT_EQ(counts.gone_back, 0U);
}

TEST(AnswerDigest, OneWithoutDotsIsFound) {
  EXPECT_GT(count_digests({.without_dots = true}).wrong, 0U);
}

TEST(AnswerDigest, OneWithoutDeletesIsFound) {
  const auto counts = count_digests({.without_deletes = true});
  EXPECT_EQ(counts.wrong, 0U) << "they show the same";
  EXPECT_GT(counts.gone_back, 0U);
}

TEST(AnswerDigest, OfRowsOfATabletTheirEndIsAPart) {
  RowsAnswer answer;
  answer.rows = {hint("a", 1), hint("b", 2)};
  const auto whole = digest_of(answer);
  ASSERT_TRUE(whole.has_value());
  answer.more = true;
  EXPECT_NE(digest_of(answer), whole);
  RowsAnswer other = answer;
  other.rows.push_back({.partition = bytes("p"), .row = bytes("c"), .stored = {}});
  EXPECT_NE(digest_of(other), digest_of(answer)) << "they end at other rows";
  other.more = false;
  EXPECT_EQ(digest_of(other), whole) << "a row without anything is none";
  answer.rows.clear();
  EXPECT_EQ(digest_of(answer), std::nullopt) << "it covers nothing";
}

TEST(AnswerDigest, ACounterHasNone) {
  Delta delta;
  delta.dot = {.actor = causality::actor_of(1, 1), .counter = 1};
  CellChange cell;
  cell.row = bytes("a");
  cell.column = kColumns[0];
  cell.kind = VersionKind::increment;
  delta.cells.push_back(cell);
  RowsAnswer answer;
  answer.rows.push_back({.partition = bytes("p"),
                         .row = bytes("a"),
                         .stored = causality::fragment_of(delta, Policy::counter)});
  EXPECT_EQ(digest_of(answer), std::nullopt);
}

TEST(AnswerMerge, OfHintsEveryOneIsShownThatAnAnswerHas) {
  RowsAnswer first;
  first.rows = {hint("a", 1), hint("c", 2)};
  first.more = true;
  RowsAnswer second;
  second.rows = {hint("b", 3), hint("c", 4), hint("d", 5)};
  for (std::uint64_t counter = 1; counter <= 5; ++counter) {
    second.clock.add({.actor = causality::actor_of(1, 1), .counter = counter});
  }
  const RowsAnswer united = unite(false, {first, second});
  ASSERT_EQ(united.rows.size(), 3U)
      << "what one has seen and lacks is there; d lies behind the end";
  EXPECT_TRUE(united.more);
  EXPECT_EQ(united.rows[0].row, bytes("a"));
  EXPECT_EQ(united.rows[1].row, bytes("b"));
  EXPECT_EQ(united.rows[2].stored.cell(bytes("c"), kColumns[0]).versions().size(), 2U);
}

TEST(AnswerMerge, OneAnswerIsItself) {
  RowsAnswer page;
  page.rows.push_back({.partition = bytes("p"), .row = bytes("a"), .stored = {}});
  page.more = true;
  std::vector<RowsAnswer> pages;
  pages.push_back(page);
  AnswerMerge merging(false, std::move(pages));
  EXPECT_TRUE(merging.needed().front().empty());
  const RowsAnswer answer = merging.take();
  ASSERT_EQ(answer.rows.size(), 1U);
  EXPECT_TRUE(answer.more);
}

}  // namespace
}  // namespace helenus::replication
