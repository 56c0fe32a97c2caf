// Selections of many rows: aggregates, and what stands beside them.
#include <utility>

#include "cql/plan/selectors.h"

namespace helenus::cql {

using base::Bytes;
using model::OptionalBytes;
using model::Table;
using model::TypeKind;

Grouping::Grouping(const Selection& selection, const Table& table)
    : selection_(selection), columns_(table.columns.size()) {
  clear();
}

void Grouping::clear() {
  states_.clear();
  rows_ = 0;
  first_ = Row();
  first_.cells.resize(columns_);
}

QueryResult<void> Grouping::accumulate(const Selector& selector, const Row& row,
                                       const Evaluation& evaluation, std::size_t& next) {
  if (!selector.is_aggregate()) {
    for (const Selector& part : selector.parts()) {
      TRY_VOID(accumulate(part, row, evaluation, next));
    }
    return {};
  }
  if (next == states_.size()) states_.emplace_back();
  Accumulator& state = states_[next++];
  if (selector.kind() == Selector::Kind::count_rows) {
    ++state.count;
    return {};
  }
  const Selector& part = selector.parts().front();
  TRY(const OptionalBytes value, part.of_row(row, evaluation));
  if (!value) return {};
  ++state.count;
  const TypeKind kind = part.type().kind();
  switch (selector.kind()) {
    case Selector::Kind::minimum:
      if (!state.best || model::compare(part.type(), *value, *state.best) < 0) state.best = value;
      return {};
    case Selector::Kind::maximum:
      if (!state.best || model::compare(part.type(), *value, *state.best) > 0) state.best = value;
      return {};
    case Selector::Kind::sum:
    case Selector::Kind::average:
      TRY_VOID(state.total.add(kind, *value));
      return {};
    default:
      return {};
  }
}

QueryResult<void> Grouping::add(const Row& row, const Evaluation& evaluation) {
  if (rows_++ == 0) first_ = row;
  std::size_t next = 0;
  for (const Selector& selector : selection_.selectors()) {
    TRY_VOID(accumulate(selector, row, evaluation, next));
  }
  return {};
}

QueryResult<OptionalBytes> Grouping::total(const Selector& selector, const Accumulator& state) {
  const TypeKind kind = selector.type().kind();
  switch (selector.kind()) {
    case Selector::Kind::minimum:
    case Selector::Kind::maximum:
      return state.best;
    case Selector::Kind::sum: {
      TRY(Bytes sum, state.total.sum(kind));
      return OptionalBytes(std::move(sum));
    }
    case Selector::Kind::average: {
      TRY(Bytes average, state.total.average(kind));
      return OptionalBytes(std::move(average));
    }
    default:
      return OptionalBytes(model::bigint_value(static_cast<std::int64_t>(state.count)));
  }
}

QueryResult<OptionalBytes> Grouping::finish(const Selector& selector, const Evaluation& evaluation,
                                            std::size_t& next) const {
  if (selector.is_aggregate()) {
    const std::size_t index = next++;
    return total(selector, index < states_.size() ? states_[index] : Accumulator());
  }
  if (!selector.has_aggregate()) return selector.of_row(first_, evaluation);
  std::vector<OptionalBytes> values;
  for (const Selector& part : selector.parts()) {
    TRY(OptionalBytes value, finish(part, evaluation, next));
    values.push_back(std::move(value));
  }
  return selector.combine(std::move(values), evaluation);
}

QueryResult<std::vector<OptionalBytes>> Grouping::result(const Evaluation& evaluation) const {
  std::vector<OptionalBytes> cells;
  std::size_t next = 0;
  for (const Selector& selector : selection_.selectors()) {
    TRY(OptionalBytes cell, finish(selector, evaluation, next));
    cells.push_back(std::move(cell));
  }
  return cells;
}

}  // namespace helenus::cql
