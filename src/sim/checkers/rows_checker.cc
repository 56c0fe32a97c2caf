#include "sim/checkers/rows_checker.h"

#include <algorithm>
#include <optional>
#include <set>
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
  // The acknowledged write that began last of those that were there when the read began.
  const CellWrite* latest_there(const CellRead& read, bool puts_only) const {
    const CellWrite* latest = nullptr;
    for (const CellWrite& write : of_cell_.writes) {
      if (write.is_acknowledged && write.ended < read.read->invoked &&
          (write.is_put || !puts_only) && is_later_than_all_before(write)) {
        latest = &write;
      }
    }
    return latest;
  }
  bool is_later_than_all_before(const CellWrite& write) const {
    return rules_.timestamps_follow_time || history_.write(write.value).puts.empty();
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
    const CellWrite* const latest = latest_there(read, false);
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
    const CellWrite* const latest = latest_there(read, true);
    if (latest == nullptr) return;
    for (const CellWrite& write : of_cell_.writes) {
      const bool leaves_nothing = !write.is_put || may_have_expired(write, read);
      if (leaves_nothing && write.invoked < *read.read->returned && write.ended > latest->invoked) {
        return;
      }
    }
    report(read, "lost: saw nothing", std::nullopt, latest->value);
  }

  // `first` was there, and `second` was seen: so `second` is the later one.
  static bool is_later(const CellWrite& second, Moment seen_last, const CellWrite& first) {
    return second.is_acknowledged && first.is_acknowledged && first.ended < seen_last;
  }
  void judge_order() {
    std::vector<const CellRead*> seen_last(of_cell_.writes.size(), nullptr);
    for (const CellRead& read : of_cell_.reads) {
      const CellWrite* const put =
          read.value && read.read->is_strong ? find_put(*read.value) : nullptr;
      if (put == nullptr) continue;
      const CellRead*& last = seen_last[static_cast<std::size_t>(put - of_cell_.writes.data())];
      if (last == nullptr || last->read->invoked < read.read->invoked) last = &read;
    }
    for (std::size_t i = 0; i < seen_last.size(); ++i) {
      for (std::size_t j = i + 1; j < seen_last.size(); ++j) {
        if (seen_last[i] == nullptr || seen_last[j] == nullptr) continue;
        const CellWrite& one = of_cell_.writes[i];
        const CellWrite& other = of_cell_.writes[j];
        if (is_later(one, seen_last[i]->read->invoked, other) &&
            is_later(other, seen_last[j]->read->invoked, one)) {
          const bool one_is_last = seen_last[i]->read->invoked > seen_last[j]->read->invoked;
          report(one_is_last ? *seen_last[i] : *seen_last[j],
                 "order: saw a write that had made place for another",
                 one_is_last ? one.value : other.value, one_is_last ? other.value : one.value);
        }
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
