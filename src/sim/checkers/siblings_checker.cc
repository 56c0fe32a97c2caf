#include "sim/checkers/siblings_checker.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/assert.h"

namespace helenus::sim {

using Outcome = SiblingsHistory::Outcome;
using Value = SiblingsHistory::Value;

SiblingsHistory::Value SiblingsHistory::invoke_write(Write write) {
  write.invoked = ++now_;
  writes_.push_back(std::move(write));
  return writes_.size();
}

void SiblingsHistory::acknowledge(Value write) {
  Write& done = writes_[write - 1];
  ASSERT(done.outcome == Outcome::unknown);
  done.outcome = Outcome::acknowledged;
  ++now_;
  if (!done.there) done.there = now_;
}

void SiblingsHistory::refuse(Value write) {
  Write& refused = writes_[write - 1];
  ASSERT(refused.outcome == Outcome::unknown);
  refused.outcome = Outcome::refused;
  refused.there.reset();
  ++now_;
}

std::size_t SiblingsHistory::invoke_read(Read read) {
  read.invoked = ++now_;
  reads_.push_back(std::move(read));
  return reads_.size() - 1;
}

void SiblingsHistory::return_read(std::size_t read, Known saw) {
  Read& done = reads_[read];
  ASSERT(!done.returned);
  done.returned = ++now_;
  done.saw = std::move(saw);
  if (!done.spreads) return;
  for (const auto& [cell, values] : done.saw) {
    for (const Value value : values) {
      if (value == 0 || value > writes_.size()) continue;
      Write& seen = writes_[value - 1];
      if (!seen.there && seen.outcome != Outcome::refused) seen.there = now_;
    }
  }
}

std::size_t SiblingsHistory::count(Outcome outcome) const {
  return static_cast<std::size_t>(std::ranges::count(writes_, outcome, &Write::outcome));
}

void SiblingsHistory::add_to(base::Digest& digest) const {
  for (const Write& write : writes_) {
    digest.add(write.invoked);
    digest.add(static_cast<std::uint64_t>(write.outcome));
  }
  for (const Read& read : reads_) {
    digest.add(read.returned.value_or(0));
    for (const auto& [cell, values] : read.saw) {
      digest.add(cell);
      for (const Value value : values) digest.add(value);
    }
  }
}

namespace {

class Judgement {
 public:
  explicit Judgement(const SiblingsHistory& history) : history_(history) {}

  std::vector<std::string> take() && {
    for (const SiblingsHistory::Read& read : history_.reads()) {
      if (!read.returned) continue;
      for (const auto& [cell, values] : read.saw) judge(read, cell, values);
    }
    return std::move(problems_);
  }

 private:
  void judge(const SiblingsHistory::Read& read, SiblingsHistory::Cell cell,
             const SiblingsHistory::Values& values) {
    for (const Value value : values) {
      if (!was_written(read, cell, value)) {
        add("nowhere", read, value, "");
        continue;
      }
      if (!read.is_strong) continue;
      const Value by = replaced(cell, value, [&](const SiblingsHistory::Write& write) {
        return write.there && *write.there < read.invoked;
      });
      if (by != 0) add("zombie", read, value, text_of(by));
    }
    if (!read.is_strong) return;
    for (Value value = 1; value <= history_.writes().size(); ++value) {
      const SiblingsHistory::Write& write = history_.writes()[value - 1];
      if (!write.puts.contains(cell) || values.contains(value)) continue;
      if (!write.there || *write.there > read.invoked) continue;
      const Value by = replaced(cell, value, [&](const SiblingsHistory::Write& other) {
        return other.invoked < *read.returned && other.outcome != Outcome::refused;
      });
      if (by == 0) add("lost", read, value, "nobody had seen it and changed the cell");
    }
  }

  bool was_written(const SiblingsHistory::Read& read, SiblingsHistory::Cell cell,
                   Value value) const {
    if (value == 0 || value > history_.writes().size()) return false;
    const SiblingsHistory::Write& write = history_.writes()[value - 1];
    return write.puts.contains(cell) && write.invoked < *read.returned &&
           write.outcome != Outcome::refused;
  }

  // The first write that had seen the value in that cell and changed it, of those that count; 0 if
  // there is none.
  template <class Counts>
  Value replaced(SiblingsHistory::Cell cell, Value value, Counts counts) const {
    for (Value by = value + 1; by <= history_.writes().size(); ++by) {
      const SiblingsHistory::Write& write = history_.writes()[by - 1];
      const auto seen = write.seen.find(cell);
      if (seen == write.seen.end() || !seen->second.contains(value)) continue;
      if (write.changes(cell) && counts(write)) return by;
    }
    return 0;
  }

  std::string text_of(Value value) const {
    if (value == 0 || value > history_.writes().size()) return fmt::format("write {}", value);
    return fmt::format("write {} ({})", value, history_.writes()[value - 1].text);
  }
  void add(std::string_view what, const SiblingsHistory::Read& read, Value value,
           const std::string& why) {
    problems_.push_back(fmt::format("{}: {} of {}{}{}", what, text_of(value), read.text,
                                    why.empty() ? "" : "; ", why));
  }

  const SiblingsHistory& history_;
  std::vector<std::string> problems_;
};

}  // namespace

std::vector<std::string> check_siblings(const SiblingsHistory& history) {
  return Judgement(history).take();
}

}  // namespace helenus::sim
