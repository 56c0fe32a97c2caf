#include "replication/merge/answer_merge.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <set>
#include <tuple>

#include "base/assert.h"
#include "causality/clock.h"
#include "causality/counter.h"
#include "causality/dot_store.h"

namespace helenus::replication {

using causality::CellStore;
using causality::Clock;
using causality::ColumnId;
using causality::PartitionStore;
using storage::RowRead;

namespace {

struct Seen {
  const PartitionStore* stored = nullptr;
  const Clock* clock = nullptr;
};

std::set<ColumnId> columns_of(const base::Bytes& row, std::span<const Seen> answers) {
  std::set<ColumnId> columns;
  for (const Seen& answer : answers) {
    for (const auto& [key, cells] : answer.stored->rows()) {
      if (key != row) continue;
      for (const auto& [column, cell] : cells.cells()) columns.insert(column);
    }
  }
  return columns;
}

// R14. Whichever answer is taken whole, the value is the same; one that has seen what others have
// seen has no need of their news.
CellStore merge_counter(const base::Bytes& row, ColumnId column, std::span<const Seen> answers) {
  std::vector<causality::CounterAnswer> cells;
  for (const Seen& answer : answers) {
    cells.push_back({.cell = answer.stored->cell(row, column), .clock = *answer.clock});
    const bool has_seen_more = cells.size() > 1 && cells.back().clock.covers(cells.front().clock);
    if (has_seen_more) std::swap(cells.front(), cells.back());
  }
  return causality::merge_counters(cells);
}

bool holds_counter(const PartitionStore& stored) {
  for (const auto& [row, cells] : stored.rows()) {
    for (const auto& [column, cell] : cells.cells()) {
      if (causality::is_counter(cell)) return true;
    }
  }
  return std::ranges::any_of(stored.range_deletes(), [](const causality::RangeDelete& range) {
    return causality::is_counter(range.store);
  });
}

PartitionStore merge_row(const base::Bytes& row, std::span<const Seen> answers,
                         const Clock& known) {
  PartitionStore merged;
  for (const ColumnId column : columns_of(row, answers)) {
    std::optional<CellStore> cell;
    const bool is_counter = std::ranges::any_of(answers, [&](const Seen& answer) {
      return causality::is_counter(answer.stored->cell(row, column));
    });
    if (is_counter) {
      merged.absorb(row, column, merge_counter(row, column, answers));
      continue;
    }
    for (const Seen& answer : answers) {
      CellStore filled = causality::fill(answer.stored->cell(row, column), *answer.clock);
      if (cell) {
        cell->absorb(std::move(filled));
      } else {
        cell = std::move(filled);
      }
    }
    cell->strip(known);
    if (!cell->empty()) merged.absorb(row, column, *std::move(cell));
  }
  return merged;
}

bool has_unseen(const PartitionStore& stored, const Clock& clock) {
  const auto unseen = [&](const CellStore& cell) { return causality::lacks(clock, cell); };
  for (const auto& [row, cells] : stored.rows()) {
    for (const auto& [column, cell] : cells.cells()) {
      if (unseen(cell)) return true;
    }
  }
  return std::ranges::any_of(stored.range_deletes(), [&](const causality::RangeDelete& range) {
    return unseen(range.store);
  });
}

}  // namespace

RowRead merge(const base::Bytes& row, std::span<const RowRead> answers) {
  ASSERT(!answers.empty());
  RowRead merged{.partition = {}, .clock = answers.front().clock, .floor = answers.front().floor};
  std::vector<Seen> seen;
  for (const RowRead& answer : answers) {
    seen.push_back({.stored = &answer.partition, .clock = &answer.clock});
    merged.clock = causality::join(merged.clock, answer.clock);
    merged.floor = std::max(merged.floor, answer.floor);
    merged.wall = std::max(merged.wall, answer.wall);
  }
  merged.partition = merge_row(row, seen, merged.clock);
  return merged;
}

namespace {

// Whether each version that `a` has in the row, deletes apart, is in `b`.
bool has_all_of(const base::Bytes& row, const PartitionStore& a, const PartitionStore& b) {
  const auto found = a.rows().find(row);
  if (found == a.rows().end()) return true;
  for (const auto& [column, unused] : found->second.cells()) {
    const causality::CellStore ours = a.cell(row, column);
    const causality::CellStore theirs = b.cell(row, column);
    for (const causality::Version& version : ours.versions()) {
      if (version.kind == causality::VersionKind::deletion) continue;
      const bool is_there = std::ranges::any_of(
          theirs.versions(), [&](const auto& other) { return other.dot == version.dot; });
      if (!is_there) return false;
    }
  }
  return true;
}

}  // namespace

bool lacks_some(const base::Bytes& row, const PartitionStore& merged, const PartitionStore& stored,
                const Clock& clock, std::span<const PartitionStore* const> answers) {
  // Of counters what is shown under the same dots differs by what was folded.
  const bool by_dots = !holds_counter(merged) && !holds_counter(stored);
  if (by_dots && (!has_all_of(row, merged, stored) || !has_all_of(row, stored, merged))) {
    return true;
  }
  return std::ranges::any_of(
      answers, [&](const PartitionStore* answer) { return has_unseen(*answer, clock); });
}

RowsAnswer unite(bool backwards, std::vector<RowsAnswer> pages) {
  const auto place = [](const RowsAnswer::Row& row) { return std::tie(row.partition, row.row); };
  const auto before = [&](const RowsAnswer::Row& a, const RowsAnswer::Row& b) {
    return backwards ? place(b) < place(a) : place(a) < place(b);
  };
  RowsAnswer united;
  std::optional<RowsAnswer::Row> end;
  for (RowsAnswer& page : pages) {
    united.clock = causality::join(united.clock, page.clock);
    united.wall = std::max(united.wall, page.wall);
    united.more = united.more || page.more;
    // Nothing is covered by a page that stopped before its first row.
    if (page.more && page.rows.empty()) return united;
    if (page.more && (!end || before(page.rows.back(), *end))) end = page.rows.back();
    std::ranges::move(page.rows, std::back_inserter(united.rows));
  }
  if (end) std::erase_if(united.rows, [&](const auto& row) { return before(*end, row); });
  std::ranges::sort(united.rows, before);
  std::vector<RowsAnswer::Row> rows;
  for (RowsAnswer::Row& row : united.rows) {
    if (!rows.empty() && place(rows.back()) == place(row)) {
      rows.back().stored.absorb(row.stored);
    } else {
      rows.push_back(std::move(row));
    }
  }
  united.rows = std::move(rows);
  return united;
}

bool AnswerMerge::Before::operator()(const RowName& a, const RowName& b) const {
  const auto less = [](const RowName& x, const RowName& y) {
    return x.partition != y.partition ? x.partition < y.partition : x.row < y.row;
  };
  return backwards ? less(b, a) : less(a, b);
}

AnswerMerge::AnswerMerge(bool backwards, std::vector<RowsAnswer> pages)
    : pages_(std::move(pages)),
      rows_(Before{backwards}),
      needed_(pages_.size()),
      supplied_(pages_.size(), std::map<RowName, RowRead, Before>(Before{backwards})) {
  ASSERT(!pages_.empty());
  const Before before{backwards};
  std::optional<RowName> end;
  for (const RowsAnswer& page : pages_) {
    if (!page.more) continue;
    more_ = true;
    // Nothing is covered by a page that stopped before its first row.
    if (page.rows.empty()) return;
    const RowName last{.partition = page.rows.back().partition, .row = page.rows.back().row};
    if (!end || before(last, *end)) end = last;
  }
  for (std::size_t i = 0; i < pages_.size(); ++i) {
    for (const RowsAnswer::Row& row : pages_[i].rows) {
      RowName name{.partition = row.partition, .row = row.row};
      if (end && before(*end, name)) break;
      Versions& versions = rows_.try_emplace(std::move(name), pages_.size()).first->second;
      versions[i] = &row.stored;
    }
  }
  for (const auto& [name, versions] : rows_) {
    for (std::size_t i = 0; i < pages_.size(); ++i) {
      if (versions[i] != nullptr) continue;
      const bool is_asked = std::ranges::any_of(versions, [&](const PartitionStore* stored) {
        return stored != nullptr &&
               (has_unseen(*stored, pages_[i].clock) || holds_counter(*stored));
      });
      if (is_asked) needed_[i].push_back(name);
    }
  }
}

void AnswerMerge::supply(std::size_t page, std::vector<RowRead> rows) {
  ASSERT(rows.size() == needed_[page].size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    supplied_[page].emplace(needed_[page][i], std::move(rows[i]));
  }
}

RowsAnswer AnswerMerge::take() {
  differing_.assign(pages_.size(), {});
  RowsAnswer merged;
  merged.more = more_;
  for (const RowsAnswer& page : pages_) {
    merged.clock = causality::join(merged.clock, page.clock);
    merged.wall = std::max(merged.wall, page.wall);
  }
  for (const auto& reads : supplied_) {
    for (const auto& [name, read] : reads) merged.wall = std::max(merged.wall, read.wall);
  }
  static const PartitionStore kNothing;
  for (const auto& [name, versions] : rows_) {
    std::vector<Seen> seen;
    for (std::size_t i = 0; i < pages_.size(); ++i) {
      const auto asked = supplied_[i].find(name);
      if (asked != supplied_[i].end()) {
        seen.push_back({.stored = &asked->second.partition, .clock = &asked->second.clock});
      } else {
        seen.push_back({.stored = versions[i] != nullptr ? versions[i] : &kNothing,
                        .clock = &pages_[i].clock});
      }
    }
    merged.rows.push_back({.partition = name.partition,
                           .row = name.row,
                           .stored = merge_row(name.row, seen, merged.clock)});
    std::vector<const PartitionStore*> answers;
    for (const Seen& answer : seen) answers.push_back(answer.stored);
    for (std::size_t i = 0; i < pages_.size(); ++i) {
      if (lacks_some(name.row, merged.rows.back().stored, *seen[i].stored, *seen[i].clock,
                     answers)) {
        differing_[i].insert(name.partition);
      }
    }
  }
  return merged;
}

}  // namespace helenus::replication
