// How a SELECT is executed: rows come from a stream, become rows of the result one by one or by
// groups, and go into a page that is cut by rows, bytes and time.
#include "cql/execute/select_execution.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <memory>
#include <utility>

#include "base/assert.h"
#include "cql/execute/guardrail_checks.h"
#include "cql/execute/indexed_rows.h"
#include "cql/execute/paging_state.h"
#include "cql/execute/replica_counts.h"
#include "cql/execute/row_stream.h"
#include "cql/plan/paced.h"
#include "cql/protocol/rows.h"

namespace helenus::cql {

using base::Bytes;
using model::OptionalBytes;
using protocol::Response;
using runtime::Task;

namespace {

constexpr std::uint64_t kNoLimit = std::numeric_limits<std::uint64_t>::max();
constexpr std::size_t kRowsPerFill = 128;
constexpr std::size_t kBytesPerFill = std::size_t{256} << 10;

constexpr std::size_t kRowsSizeExpected = 256;

class SelectExecution {
 public:
  SelectExecution(const SelectPlan& plan, const ExecutionServices& services,
                  ExecutionParameters parameters, Moment moment)
      : plan_(plan),
        services_(services),
        parameters_(std::move(parameters)),
        moment_(std::move(moment)),
        evaluation_{parameters_.values, moment_},
        writer_(
            plan.columns,
            parameters_.skip_metadata && (!plan.columns_may_change || parameters_.knows_metadata),
            kRowsSizeExpected, parameters_.changed_metadata_id),
        grouping_(plan.selection, *plan.table),
        charge_(services.admission) {}

  Task<QueryResult<Response>> run();
  Warnings take_warnings() { return std::move(warnings_); }

 private:
  Task<QueryResult<BoundRestrictions>> bind_where();
  QueryResult<void> begin(BoundRestrictions where);
  QueryResult<std::optional<std::uint64_t>> limit_of(const std::optional<Term>& term,
                                                     const char* name) const;
  Task<QueryResult<Response>> run_rows();
  Task<QueryResult<Response>> run_groups();
  Task<QueryResult<Response>> run_sorted();
  // The next row, without taking it; null at the end.
  Task<QueryResult<const Row*>> peek();
  void take() { ++next_; }

  bool sorts() const { return plan_.ordered && partitions_named_ > 1; }
  bool is_paged() const { return page_rows_ != kNoLimit; }
  bool page_is_full() const {
    return writer_.row_count() >= page_rows_ ||
           (is_paged() && writer_.size() >= services_.limits.page_bytes_max);
  }
  bool same_group(const Row& a, const Row& b) const;
  QueryResult<void> write_row(const Row& row);
  QueryResult<void> write_group();
  QueryResult<void> check_size() const;
  // For what was read and what was written of it.
  QueryResult<void> charge_memory();
  Response finish(const std::optional<RowPosition>& after);

  const SelectPlan& plan_;
  const ExecutionServices& services_;
  const ExecutionParameters parameters_;
  Moment moment_;
  const Evaluation evaluation_;
  protocol::RowsWriter writer_;
  Grouping grouping_;
  std::unique_ptr<RowStream> stream_;
  std::vector<Row> rows_;  // read and not taken: from next_ on
  std::size_t next_ = 0;
  std::size_t partitions_named_ = 0;
  std::uint64_t rows_left_ = kNoLimit;
  std::uint64_t page_rows_ = kNoLimit;
  // Groups of a partition that were written, of as many as may be.
  Bytes groups_of_;
  std::uint64_t groups_in_partition_ = 0;
  std::uint64_t groups_per_partition_ = kNoLimit;
  Admission::ResultCharge charge_;
  Warnings warnings_;
  std::size_t sorted_bytes_ = 0;  // of rows that wait to be sorted
  runtime::MonotonicTime pause_at_ = runtime::MonotonicTime::never();
};

RowPosition position_of(const Row& row) {
  return {.partition = row.partition,
          .clustering = row.clustering,
          .rows_in_partition = row.number_in_partition};
}

QueryResult<std::optional<std::uint64_t>> SelectExecution::limit_of(const std::optional<Term>& term,
                                                                    const char* name) const {
  if (!term) return std::optional<std::uint64_t>();
  TRY(const TermValue value, term->evaluate(evaluation_));
  if (value.is_unset()) return std::optional<std::uint64_t>();
  if (value.is_null()) return invalid("Invalid null value of limit");
  TRY(const std::int32_t number, model::read_int(value.bytes));
  if (number <= 0) return invalid("{} must be strictly positive", name);
  return std::optional(static_cast<std::uint64_t>(number));
}

Task<QueryResult<BoundRestrictions>> SelectExecution::bind_where() {
  if (parameters_.bytes <= kBoundAtOnceMax) co_return plan_.where.bind(evaluation_);
  BoundRestrictions bound;
  CO_TRY_VOID(co_await in_turns_of(services_.runtime, parameters_.until, parameters_.bytes,
                                   [&](base::Pace* pace) -> QueryResult<void> {
                                     TRY(bound,
                                         plan_.where.bind({parameters_.values, moment_, pace}));
                                     return {};
                                   }));
  co_return bound;
}

QueryResult<void> SelectExecution::begin(BoundRestrictions where) {
  RowRequest request;
  request.table = plan_.table;
  request.where = std::move(where);
  partitions_named_ = request.where.partitions.size();
  TRY_VOID(guard_partition_keys(services_.guardrails, plan_, partitions_named_, warnings_));
  if (plan_.storage && partitions_named_ > 1 && model::is_serial(parameters_.consistency)) {
    return invalid(
        "SERIAL/LOCAL_SERIAL consistency may only be requested for one partition at a time");
  }
  request.notes = parameters_.notes;
  request.layout = &*plan_.layout;
  request.point_reads = plan_.where.names_rows() && !plan_.distinct;
  request.reversed = plan_.reversed;
  request.distinct = plan_.distinct;
  request.static_without_rows = plan_.static_without_rows;
  TRY(const auto per_partition, limit_of(plan_.per_partition_limit, "PER PARTITION LIMIT"));
  if (plan_.is_grouped()) {
    groups_per_partition_ = per_partition.value_or(kNoLimit);
  } else {
    request.per_partition_limit = per_partition;
  }
  TRY(const auto limit, limit_of(plan_.limit, "LIMIT"));
  rows_left_ = limit.value_or(kNoLimit);
  if (parameters_.page_size && *parameters_.page_size > 0) {
    page_rows_ = static_cast<std::uint64_t>(*parameters_.page_size);
  }
  if (parameters_.paging_state && !parameters_.paging_state->empty()) {
    TRY(PagingState state, decode_paging_state(*parameters_.paging_state, parameters_.fingerprint));
    if (plan_.is_grouped()) {
      groups_of_ = state.after.partition;
      groups_in_partition_ = state.after.rows_in_partition;
    }
    request.after = std::move(state.after);
    rows_left_ = state.rows_left.value_or(kNoLimit);
  }
  request.now = moment_.seconds();
  request.until = parameters_.until;
  request.level = parameters_.consistency;
  if (is_paged() && !plan_.is_grouped()) {
    pause_at_ = services_.runtime.clock.now() + services_.limits.page_time_max;
  }
  request.pause_at = pause_at_;
  request.wants_context = parameters_.wants_context && plan_.where.names_one_row();
  if (!plan_.storage) {
    const VirtualTable* table = services_.virtual_tables.find(plan_.table->id);
    if (table == nullptr) return invalid("table {} does not exist", plan_.table->name);
    stream_ = std::make_unique<VirtualTableRows>(*table, std::move(request), services_.admission);
  } else if (plan_.index && request.where.index) {
    stream_ = std::make_unique<IndexedRows>(services_.runtime, services_.coordinator,
                                            *plan_.storage, *plan_.index, std::move(request));
  } else {
    stream_ = std::make_unique<StoredRows>(services_.runtime, services_.coordinator, *plan_.storage,
                                           std::move(request));
  }
  return {};
}

Task<QueryResult<const Row*>> SelectExecution::peek() {
  if (next_ == rows_.size()) {
    rows_.clear();
    next_ = 0;
    std::uint64_t wanted = kRowsPerFill;
    if (!plan_.is_grouped()) {
      wanted = std::min({wanted, rows_left_,
                         page_rows_ - std::min<std::uint64_t>(page_rows_, writer_.row_count())});
    }
    const auto filled = co_await stream_->fill(
        rows_, {.rows = static_cast<std::size_t>(std::max<std::uint64_t>(wanted, 1)),
                .bytes = kBytesPerFill});
    if (!filled)
      co_return read_error(filled.error(), parameters_.consistency, counts_of(stream_->report()));
    CO_TRY_VOID(charge_memory());
  }
  co_return next_ < rows_.size() ? &rows_[next_] : nullptr;
}

QueryResult<void> SelectExecution::write_row(const Row& row) {
  for (const Selector& selector : plan_.selection.selectors()) {
    if (selector.kind() == Selector::Kind::column) {
      const OptionalBytes& value = row.cells[selector.column()].value;
      writer_.cell(value ? std::optional(value->view()) : std::nullopt);
      continue;
    }
    TRY(const OptionalBytes value, selector.of_row(row, evaluation_));
    writer_.cell(value ? std::optional(value->view()) : std::nullopt);
  }
  writer_.end_row();
  return check_size();
}

QueryResult<void> SelectExecution::write_group() {
  TRY(const auto cells, grouping_.result(evaluation_));
  for (const OptionalBytes& cell : cells) {
    writer_.cell(cell ? std::optional(cell->view()) : std::nullopt);
  }
  writer_.end_row();
  grouping_.clear();
  return check_size();
}

QueryResult<void> SelectExecution::check_size() const {
  return is_paged() ? QueryResult<void>() : check_result_size(writer_.size(), services_.limits);
}

QueryResult<void> SelectExecution::charge_memory() {
  std::size_t bytes = writer_.size() + sorted_bytes_;
  for (const Row& row : rows_) bytes += size_of(row);
  return charge_result(bytes, charge_);
}

Response SelectExecution::finish(const std::optional<RowPosition>& after) {
  std::optional<Bytes> state;
  if (after) {
    PagingState next;
    next.statement = parameters_.fingerprint;
    next.after = *after;
    if (rows_left_ != kNoLimit) next.rows_left = rows_left_;
    state = encode(next);
  }
  Response response =
      std::move(writer_).finish(state ? std::optional(state->view()) : std::nullopt);
  if (const auto context = stream_->context()) {
    response.prefix.payload.push_back(
        {.key = std::string(kContextKey),
         .value = seal(*context, *plan_.storage, stream_->context_partition().view(),
                       services_.context_secret)});
  }
  return response;
}

Task<QueryResult<Response>> SelectExecution::run_rows() {
  std::optional<RowPosition> last;
  while (rows_left_ > 0) {
    CO_TRY(const Row* row, co_await peek());
    if (row == nullptr) break;
    if (page_is_full()) co_return finish(last);
    CO_TRY_VOID(write_row(*row));
    last = position_of(*row);
    take();
    --rows_left_;
    if (next_ == rows_.size() && rows_left_ > 0 && services_.runtime.clock.now() >= pause_at_) {
      co_return finish(last);
    }
  }
  co_return finish(std::nullopt);
}

bool SelectExecution::same_group(const Row& a, const Row& b) const {
  return std::ranges::all_of(plan_.group_by, [&](std::size_t column) {
    return a.cells[column].value == b.cells[column].value;
  });
}

Task<QueryResult<Response>> SelectExecution::run_groups() {
  std::optional<Row> last;           // of the group that is being made
  std::optional<RowPosition> after;  // of the last group that was written
  while (true) {
    CO_TRY(const Row* row, co_await peek());
    if (last && (row == nullptr || !same_group(*last, *row))) {
      CO_TRY_VOID(write_group());
      after = position_of(*last);
      after->rows_in_partition = ++groups_in_partition_;
      last.reset();
      if (--rows_left_ == 0) co_return finish(std::nullopt);
    }
    if (row == nullptr) break;
    if (groups_of_ != row->partition) {
      groups_of_ = row->partition;
      groups_in_partition_ = 0;
    }
    if (!last && groups_in_partition_ >= groups_per_partition_) {
      stream_->skip_rest_of(groups_of_);
      take();
      continue;
    }
    if (!last && page_is_full()) co_return finish(after);
    CO_TRY_VOID(grouping_.add(*row, evaluation_));
    last = std::move(rows_[next_]);
    take();
  }
  // Aggregates say something of no rows at all, too; groups there are none of.
  if (plan_.group_by.empty() && !after) CO_TRY_VOID(write_group());
  co_return finish(std::nullopt);
}

// Rows of several partitions, in the order of their clustering columns: all must be there first.
Task<QueryResult<Response>> SelectExecution::run_sorted() {
  if (is_paged() && rows_left_ > page_rows_) {
    co_return invalid(
        "Cannot page queries with both ORDER BY and a IN restriction on the partition key; you "
        "must either remove the ORDER BY or the IN and sort client side, or disable paging for "
        "this query");
  }
  std::vector<Row> all;
  while (true) {
    CO_TRY(const Row* row, co_await peek());
    if (row == nullptr) break;
    sorted_bytes_ += size_of(*row);
    if (sorted_bytes_ > services_.limits.result_bytes_max) {
      co_return invalid("The rows to be sorted have more than {} bytes",
                        services_.limits.result_bytes_max);
    }
    all.push_back(std::move(rows_[next_]));
    take();
  }
  std::vector<const Row*> sorted;
  for (const Row& row : all) sorted.push_back(&row);
  std::ranges::sort(sorted, [&](const Row* a, const Row* b) {
    const auto order = a->clustering <=> b->clustering;
    if (order == 0) return std::less<>()(a, b);  // Partitions stay in their order.
    return plan_.reversed ? order > 0 : order < 0;
  });
  for (const Row* const row : sorted) {
    if (rows_left_-- == 0) break;
    CO_TRY_VOID(write_row(*row));
  }
  co_return finish(std::nullopt);
}

Task<QueryResult<Response>> SelectExecution::run() {
  CO_TRY_VOID(guard_select(services_.guardrails, plan_, parameters_.page_size, warnings_));
  CO_TRY(BoundRestrictions where, co_await bind_where());
  CO_TRY_VOID(begin(std::move(where)));
  if (plan_.is_grouped()) co_return co_await run_groups();
  if (sorts()) co_return co_await run_sorted();
  co_return co_await run_rows();
}

}  // namespace

Task<QueryResult<Response>> execute_select(const SelectPlan& plan,
                                           const ExecutionServices& services,
                                           ExecutionParameters parameters, Moment moment) {
  parameters.wants_context =
      parameters.wants_context || plan.table->options.conflicts == model::Conflicts::siblings;
  SelectExecution execution(plan, services, std::move(parameters), std::move(moment));
  CO_TRY(Response response, co_await execution.run());
  response.prefix.warnings = execution.take_warnings();
  if (plan.selection.has_aggregate() && plan.storage && !plan.where.names_partitions()) {
    response.prefix.warnings.emplace_back("Aggregation query used without partition key");
  }
  co_return response;
}

}  // namespace helenus::cql
