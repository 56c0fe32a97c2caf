#include "sim/checkers/rows_history.h"

#include <algorithm>

#include "base/assert.h"

namespace helenus::sim {

RowsHistory::Moment RowsHistory::moment(Moment at) {
  last_ = std::max(last_ + 1, at);
  return last_;
}

RowsHistory::Cell RowsHistory::add_cell(std::string name) {
  cells_.push_back(std::move(name));
  return static_cast<Cell>(cells_.size() - 1);
}

RowsHistory::Value RowsHistory::invoke_write(Moment at, Write write) {
  write.invoked = moment(at);
  write.outcome = Outcome::unknown;
  write.ended.reset();
  writes_.push_back(std::move(write));
  return writes_.size();
}

RowsHistory::Write& RowsHistory::unknown(Value write) {
  ASSERT(was_written(write));
  Write& found = writes_[write - 1];
  ASSERT(found.outcome == Outcome::unknown && !found.ended, "write {} has ended", write);
  return found;
}

void RowsHistory::acknowledge(Moment at, Value write) {
  Write& found = unknown(write);
  found.ended = moment(at);
  found.outcome = Outcome::acknowledged;
}

void RowsHistory::refuse(Moment at, Value write) {
  Write& found = unknown(write);
  found.ended = moment(at);
  found.outcome = Outcome::refused;
}

void RowsHistory::end(Moment at, Value write) {
  unknown(write).ended = moment(at);
}

void RowsHistory::end_unknown(Moment at) {
  const Moment now = moment(at);
  for (Write& write : writes_) {
    if (write.outcome == Outcome::unknown && !write.ended) write.ended = now;
  }
}

std::size_t RowsHistory::invoke_read(Moment at, Read read) {
  ASSERT(read.is_strong || !read.spreads);
  read.invoked = moment(at);
  read.returned.reset();
  read.seen.clear();
  reads_.push_back(std::move(read));
  return reads_.size() - 1;
}

void RowsHistory::return_read(Moment at, std::size_t read, std::vector<Seen> seen) {
  ASSERT(read < reads_.size() && !reads_[read].returned);
  reads_[read].returned = moment(at);
  reads_[read].seen = std::move(seen);
}

std::size_t RowsHistory::count(Outcome outcome) const {
  return static_cast<std::size_t>(std::ranges::count(writes_, outcome, &Write::outcome));
}

void RowsHistory::add_to(base::Digest& digest) const {
  for (const Write& write : writes_) {
    digest.add(write.invoked);
    digest.add(write.ended.value_or(0));
    digest.add(static_cast<std::uint64_t>(write.outcome));
  }
  for (const Read& read : reads_) {
    digest.add(read.invoked);
    digest.add(read.returned.value_or(0));
    for (const Seen& seen : read.seen) {
      digest.add(seen.cell);
      digest.add(seen.value.value_or(0));
    }
  }
}

}  // namespace helenus::sim
