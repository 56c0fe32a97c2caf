#include "sim/checkers/rows_checker.h"

#include <algorithm>
#include <optional>
#include <set>
#include <span>
#include <string_view>
#include <tuple>

#include <fmt/format.h>

namespace helenus::sim {

namespace {

using Moment = RowsHistory::Moment;
using Outcome = RowsHistory::Outcome;
using Value = RowsHistory::Value;

constexpr Moment kNeverEnds = UINT64_MAX;

// What concerns one cell.
struct CellWrite {
  Value value = 0;
  bool is_put = false;
  Moment invoked = 0;
  Moment ended = kNeverEnds;
  bool is_acknowledged = false;
};
struct CellRead {
  const RowsHistory::Read* read = nullptr;
  std::optional<Value> value;
};
// A write that began no earlier than that, and is there from a moment on.
struct There {
  Value value = 0;  // one of those that it may be
  bool is_put = false;
  Moment invoked = 0;
  Moment since = 0;
};
struct CellHistory {
  std::vector<CellWrite> writes;  // refused ones are not among them; as they began
  std::vector<CellRead> reads;
};

std::vector<CellHistory> by_cell(const RowsHistory& history) {
  std::vector<CellHistory> cells(history.cells().size());
  for (Value value = 1; value <= history.writes().size(); ++value) {
    const RowsHistory::Write& write = history.write(value);
    if (write.outcome == Outcome::refused) continue;
    CellWrite of_cell{.value = value,
                      .is_put = true,
                      .invoked = write.invoked,
                      .ended = write.ended.value_or(kNeverEnds),
                      .is_acknowledged = write.outcome == Outcome::acknowledged};
    for (const RowsHistory::Cell cell : write.puts) cells[cell].writes.push_back(of_cell);
    of_cell.is_put = false;
    for (const RowsHistory::Cell cell : write.deletes) cells[cell].writes.push_back(of_cell);
  }
  for (const RowsHistory::Read& read : history.reads()) {
    if (!read.returned) continue;
    for (const RowsHistory::Seen& seen : read.seen) {
      cells[seen.cell].reads.push_back({.read = &read, .value = seen.value});
    }
  }
  return cells;
}

std::string seconds_of(Moment moment) {
  return fmt::format("{:.6f}", static_cast<double>(moment) / 1e9);
}

class CellCheck {
 public:
  CellCheck(const RowsHistory& history, const RowsRules& rules, std::size_t cell,
            const CellHistory& of_cell, std::vector<std::string>& problems)
      : history_(history), rules_(rules), cell_(cell), of_cell_(of_cell), problems_(problems) {}

  void run() {
    collect_there();
    for (const CellRead& read : of_cell_.reads) {
      if (read.value) {
        judge_value(read, *read.value);
      } else if (read.read->is_strong && rules_.timestamps_follow_time) {
        judge_nothing(read);
      }
    }
    judge_order();
  }

 private:
  void collect_there() {
    for (const CellWrite& write : of_cell_.writes) {
      const bool is_later_than_all_before =
          rules_.timestamps_follow_time || history_.write(write.value).puts.empty();
      if (!write.is_acknowledged || !is_later_than_all_before) continue;
      there_.push_back({.value = write.value,
                        .is_put = write.is_put,
                        .invoked = write.invoked,
                        .since = write.ended});
    }
    if (!rules_.timestamps_follow_time) return;
    // What a read saw may explain what another one did not: acknowledged writes come first.
    const std::size_t acknowledged = there_.size();
    for (const CellRead& read : of_cell_.reads) {
      if (!read.read->spreads) continue;
      const CellWrite* const cause =
          read.value ? find_put(*read.value) : earliest_cause_of_nothing(read, acknowledged);
      if (cause == nullptr) continue;
      there_.push_back({.value = cause->value,
                        .is_put = read.value.has_value(),
                        .invoked = cause->invoked,
                        .since = *read.read->returned});
    }
  }
  // Of the first `count` that were there when the read began, the one that began last.
  const There* latest_there(const CellRead& read, bool puts_only, std::size_t count) const {
    const There* latest = nullptr;
    for (const There& there : std::span(there_).first(count)) {
      if (there.since >= read.read->invoked || (puts_only && !there.is_put)) continue;
      if (latest == nullptr || latest->invoked < there.invoked) latest = &there;
    }
    return latest;
  }
  // The first write that may be why the read saw nothing, if that is not the beginning.
  const CellWrite* earliest_cause_of_nothing(const CellRead& read, std::size_t count) const {
    const There* const latest = latest_there(read, true, count);
    if (latest == nullptr) return nullptr;
    for (const CellWrite& write : of_cell_.writes) {
      const bool leaves_nothing = !write.is_put || may_have_expired(write, read);
      if (leaves_nothing && write.invoked < *read.read->returned && write.ended > latest->invoked) {
        return &write;
      }
    }
    return nullptr;
  }
  const CellWrite* find_put(Value value) const {
    const auto found =
        std::ranges::lower_bound(of_cell_.writes, value, {}, [](auto& w) { return w.value; });
    return found != of_cell_.writes.end() && found->value == value && found->is_put ? &*found
                                                                                    : nullptr;
  }

  void judge_value(const CellRead& read, Value value) {
    if (!history_.was_written(value)) return report(read, "saw a value that nobody wrote", value);
    if (history_.write(value).outcome == Outcome::refused) {
      return report(read, "saw a write that was refused", value);
    }
    const CellWrite* const put = find_put(value);
    if (put == nullptr) return report(read, "saw a value that was written elsewhere", value);
    if (put->invoked > *read.read->returned) {
      return report(read, "saw a write that had not begun", value);
    }
    if (has_expired(*put, read)) report(read, "saw an expired write", value);
    if (!read.read->is_strong) return;
    const There* const latest = latest_there(read, false, there_.size());
    if (latest == nullptr || latest->invoked < put->ended) return;
    report(read, latest->is_put ? "lost: saw an older write" : "zombie: saw a deleted write", value,
           latest->value);
  }

  bool has_expired(const CellWrite& put, const CellRead& read) const {
    const auto ttl = history_.write(put.value).ttl;
    return ttl && put.ended != kNeverEnds &&
           put.ended + *ttl + rules_.expiry_slack < read.read->invoked;
  }
  bool may_have_expired(const CellWrite& put, const CellRead& read) const {
    const auto ttl = history_.write(put.value).ttl;
    return ttl && put.invoked + *ttl <= *read.read->returned + rules_.expiry_slack;
  }

  void judge_nothing(const CellRead& read) {
    const There* const latest = latest_there(read, true, there_.size());
    if (latest == nullptr || earliest_cause_of_nothing(read, there_.size()) != nullptr) return;
    report(read, "lost: saw nothing", std::nullopt, latest->value);
  }

  void judge_order() {
    std::vector<const CellRead*> seen_last(of_cell_.writes.size(), nullptr);
    std::vector<Moment> there_since(of_cell_.writes.size(), kNeverEnds);
    for (std::size_t i = 0; i < of_cell_.writes.size(); ++i) {
      if (of_cell_.writes[i].is_acknowledged) there_since[i] = of_cell_.writes[i].ended;
    }
    for (const CellRead& read : of_cell_.reads) {
      const CellWrite* const put =
          read.value && read.read->is_strong ? find_put(*read.value) : nullptr;
      if (put == nullptr) continue;
      const auto index = static_cast<std::size_t>(put - of_cell_.writes.data());
      const CellRead*& last = seen_last[index];
      if (last == nullptr || last->read->invoked < read.read->invoked) last = &read;
      if (read.read->spreads) {
        there_since[index] = std::min(there_since[index], *read.read->returned);
      }
    }
    for (std::size_t i = 0; i < seen_last.size(); ++i) {
      for (std::size_t j = i + 1; j < seen_last.size(); ++j) {
        if (seen_last[i] == nullptr || seen_last[j] == nullptr) continue;
        const bool one_is_later = there_since[j] < seen_last[i]->read->invoked;
        const bool other_is_later = there_since[i] < seen_last[j]->read->invoked;
        if (!one_is_later || !other_is_later) continue;
        const bool one_is_last = seen_last[i]->read->invoked > seen_last[j]->read->invoked;
        const Value seen = of_cell_.writes[one_is_last ? i : j].value;
        const Value other = of_cell_.writes[one_is_last ? j : i].value;
        report(*seen_last[one_is_last ? i : j],
               "order: saw a write that had made place for another", seen, other);
      }
    }
  }

  std::string text_of(Value value) const {
    if (!history_.was_written(value)) return fmt::format("{}", value);
    const RowsHistory::Write& write = history_.write(value);
    const std::string_view outcome = write.outcome == Outcome::acknowledged ? "acknowledged"
                                     : write.outcome == Outcome::refused    ? "refused"
                                                                            : "unknown";
    return fmt::format("{} ({}; began {}, {} {})", value, write.text, seconds_of(write.invoked),
                       outcome, write.ended ? seconds_of(*write.ended) : "to the end");
  }
  void report(const CellRead& read, std::string_view what, std::optional<Value> value,
              std::optional<Value> other = std::nullopt) {
    if (!reported_.insert({what, value.value_or(0), other.value_or(0)}).second) return;
    std::string text = fmt::format("{}: {}", history_.cells()[cell_], what);
    if (value) text += " " + text_of(*value);
    if (other) text += fmt::format(" in spite of {}", text_of(*other));
    text += fmt::format("; read by {} from {} to {}: {}", read.read->client,
                        seconds_of(read.read->invoked), seconds_of(*read.read->returned),
                        read.read->text);
    problems_.push_back(std::move(text));
  }

  const RowsHistory& history_;
  const RowsRules& rules_;
  const std::size_t cell_;
  const CellHistory& of_cell_;
  std::vector<std::string>& problems_;
  std::vector<There> there_;
  // Once is enough of what many reads saw.
  std::set<std::tuple<std::string_view, Value, Value>> reported_;
};

}  // namespace

std::vector<std::string> check_rows(const RowsHistory& history, const RowsRules& rules) {
  std::vector<std::string> problems;
  const std::vector<CellHistory> cells = by_cell(history);
  for (std::size_t cell = 0; cell < cells.size(); ++cell) {
    CellCheck(history, rules, cell, cells[cell], problems).run();
  }
  return problems;
}

}  // namespace helenus::sim
