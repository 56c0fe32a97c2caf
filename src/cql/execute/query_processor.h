// QueryProcessor: answers QUERY, PREPARE, EXECUTE and BATCH.
//
//   text ──parse──▶ tree ──plan──▶ StatementPlan ──execute──▶ Response
//            with the catalog's snapshot ┘             └ with the values, by the coordinator
//
// Plans are immutable and belong to one snapshot of the catalog. A prepared one is planned again
// when the catalog has changed; if its columns are others now the client is told to prepare it
// again (UNPREPARED), since it would read rows by what it was told before. Its id stays, and when
// one client has prepared it again others may still go by the old columns: the protocol's version 4
// has no name for a version of metadata. So rows of a statement whose columns have changed, or are
// such that they may change (SELECT *), always carry their metadata, whatever the client asks:
// drivers go by what a result says of itself first.
//
// Causal contexts (context_token.h). A request with `helenus-context` in its custom payload writes
// under that context, and only the partition it is of; a SELECT of one whole primary key answers
// with one if the client sent the key (its value may be empty) or the table keeps siblings. A write
// under a context answers with the context that includes it.
//
// Cores. A node has one a core. A statement is kept where it was prepared, and other cores ask for
// it when a client of theirs executes it: a client is told UNPREPARED only if no core has it. That
// its columns have changed travels with it, and who prepares it asks the others what they have
// told.
//
// Core affinity: the core of runtime, coordinator and the catalog's view, which outlive it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "cql/catalog/catalog.h"
#include "cql/catalog/catalog_view.h"
#include "cql/errors/query_error.h"
#include "cql/execute/execution_services.h"
#include "cql/plan/statement_plan.h"
#include "cql/protocol/request.h"
#include "cql/protocol/response.h"
#include "cql/schema/describe.h"
#include "cql/server/request_handler.h"
#include "cql/system/traces.h"
#include "cql/system/virtual_table.h"
#include "replication/coordinator/coordinator.h"
#include "runtime/cores.h"
#include "runtime/runtime.h"
#include "runtime/task.h"

namespace helenus::cql {

struct QueryProcessorOptions {
  // Cassandra's defaults.
  runtime::Duration read_timeout = std::chrono::seconds(5);
  runtime::Duration range_timeout = std::chrono::seconds(10);
  runtime::Duration write_timeout = std::chrono::seconds(2);
  runtime::Duration schema_timeout = std::chrono::seconds(60);
  // Where traces go that clients ask for; without it there are none. Outlives the processor.
  Traces* traces = nullptr;
  PreparedStatements::Limits prepared = {};
  ExecutionLimits execution = {};
  // What the processors of all cores may hold together of results; execution.result_bytes_all_max
  // is the most that this one does.
  std::shared_ptr<ByteLimit> result_bytes = nullptr;
};

class QueryProcessor final : public RequestHandler {
 public:
  QueryProcessor(runtime::Runtime& runtime, replication::Coordinator& coordinator,
                 CatalogView& catalog, const VirtualTables& virtual_tables, ClusterFacts cluster,
                 QueryProcessorOptions options);

  runtime::Task<protocol::Response> handle(protocol::Request request, Session& session,
                                           runtime::StopToken stop) override;

  // The processors of the node's other cores, which outlive its last request. None unless told.
  struct Peer {
    runtime::CoreId core;
    QueryProcessor* processor = nullptr;
  };
  void set_peers(std::vector<Peer> peers) { peers_ = std::move(peers); }

  std::size_t prepared_count() const { return prepared_.size(); }
  std::uint64_t prepared_evicted() const { return prepared_.evicted(); }

 private:
  using Answer = runtime::Task<QueryResult<protocol::Response>>;
  using Borrowed = runtime::Task<QueryResult<PlanPtr>>;

  // What is said of values that do not fit the markers.
  using WrongCount = QueryError (*)(const StatementPlan&, const protocol::QueryParameters&);

  // What a point read needs besides its row.
  struct PointRead {
    causality::WallTime now;
    protocol::Consistency consistency = protocol::Consistency::one;
    bool skip_metadata = false;
    bool is_paged = false;
  };

  // The short way (point_path.cc).
  runtime::Task<protocol::Response> begin_read(const protocol::Request& request,
                                               const protocol::ExecuteRequest& message,
                                               const PlanPtr& plan, const SelectPlan& select,
                                               runtime::StopToken stop);
  runtime::Task<protocol::Response> read_point(PlanPtr plan, RowPlace place, PointRead how,
                                               runtime::Until until);
  QueryResult<protocol::Response> answer_point(const SelectPlan& select, const RowPlace& place,
                                               const PointRead& how,
                                               const causality::PartitionStore& stored);
  runtime::Task<protocol::Response> begin_write(const protocol::Request& request,
                                                const protocol::ExecuteRequest& message,
                                                const ModificationPlan& plan,
                                                runtime::StopToken stop);
  runtime::Task<protocol::Response> write_row(std::optional<replication::PartitionWrite> write,
                                              protocol::Consistency consistency,
                                              protocol::WriteType type, runtime::Until until);

  // The long way, for all requests.
  runtime::Task<protocol::Response> handle_any(protocol::Request request, Session& session,
                                               runtime::StopToken stop);
  // The compiler puts the frames of coroutines it can inline into their caller's. That is well for
  // the way of a prepared read; with all the others in it every request would take a frame of
  // twenty kilobytes, which malloc does not serve from its caches. So those stay out.
  Answer answer(const protocol::Request& request, Session& session, runtime::StopToken stop);
  [[gnu::noinline]] runtime::Task<protocol::Response> handle_traced(protocol::Request request,
                                                                    Session& session,
                                                                    runtime::StopToken stop);
  Traces::Session trace_of(const protocol::Request& request, const Session& session);
  void add_prepared_text(const protocol::Request& request, Traces::Session& trace);
  [[gnu::noinline]] Answer query(const protocol::Request& request, Session& session,
                                 runtime::StopToken stop);
  Answer execute_prepared(const protocol::Request& request, Session& session,
                          runtime::StopToken stop);
  [[gnu::noinline]] Answer batch(const protocol::Request& request, Session& session,
                                 runtime::StopToken stop);
  [[gnu::noinline]] Answer prepare(std::string_view text, const Session& session,
                                   runtime::StopToken stop);

  Answer execute(PlanPtr plan, ExecutionParameters parameters, Session& session,
                 runtime::StopToken stop);
  Answer execute_reading(const SelectPlan& plan, ExecutionParameters parameters);
  [[gnu::noinline]] Answer execute_writing(const StatementPlan& plan,
                                           ExecutionParameters parameters);
  Answer write(std::vector<replication::PartitionWrite> writes, ExecutionParameters parameters,
               protocol::WriteType type);
  [[gnu::noinline]] Answer execute_other(PlanPtr plan, Session& session, runtime::StopToken stop);
  Answer change_schema(parser::Statement statement, const Session& session,
                       runtime::StopToken stop);
  // Of a keyspace that was created or altered.
  std::vector<std::string> warnings_of(const std::string& keyspace) const;
  Answer truncate(const parser::Truncate& statement, const Session& session,
                  runtime::StopToken stop);
  QueryResult<protocol::Response> use(const parser::Use& statement, Session& session);
  QueryResult<protocol::Response> describe_schema(const parser::Describe& statement,
                                                  const Session& session) const;

  // A statement was prepared here: whether some core has told clients of other columns. Each that
  // has remembers that there are these, too. It is here already, so of two cores that prepare it at
  // once one at least hears of the other. `statement` outlives the task.
  runtime::Task<bool> is_told_otherwise(const PreparedStatements::Statement& statement,
                                        runtime::StopToken stop);
  static runtime::Task<base::Result<bool>> is_told_otherwise_there(
      QueryProcessor& processor, const PreparedStatements::Statement& statement);
  // The plan of a prepared statement that this core has not got, or no longer as it was told: the
  // other cores are asked, and the first that has it lends it. `id` and `changed` outlive the task.
  [[gnu::noinline]] Borrowed borrow_plan(base::ByteView id, runtime::StopToken stop,
                                         bool* changed = nullptr);
  // Nothing if it is not here, or is no longer as clients were told.
  std::optional<PreparedStatements::Statement> lend(base::ByteView id);
  static runtime::Task<base::Result<std::optional<PreparedStatements::Statement>>> lend_on_core(
      QueryProcessor& processor, base::ByteView id);
  // The plan of a prepared statement, made anew if the catalog has changed. Errors: unprepared,
  // also when what clients were told of it no longer holds: until one has prepared it again.
  // `changed`: whether it has ever had other columns.
  QueryResult<PlanPtr> prepared_plan(base::ByteView id, bool* changed = nullptr);
  QueryResult<ExecutionParameters> parameters_of(const protocol::Request& request,
                                                 const protocol::QueryParameters& parameters,
                                                 const StatementPlan& plan, WrongCount wrong_count);
  QueryResult<void> take_context(const protocol::Request& request,
                                 ExecutionParameters& parameters) const;
  std::int64_t next_timestamp_us();
  Moment now();

  runtime::Runtime& runtime_;
  replication::Coordinator& coordinator_;
  CatalogView& catalog_;
  const ClusterFacts cluster_;
  const QueryProcessorOptions options_;
  ByteBudget result_bytes_;
  const ExecutionServices services_;
  PreparedStatements prepared_;
  std::vector<Peer> peers_;
  std::int64_t last_timestamp_us_ = 0;
  Row row_;  // of a point read, while it is encoded: its memory is used again
};

// ---- What both ways share ----

TermValue kept(const protocol::Request& request, const protocol::Value& value);
QueryResult<void> check_timestamp(const std::optional<std::int64_t>& timestamp);
QueryResult<void> check_read_level(protocol::Consistency consistency);
QueryResult<void> check_write_level(protocol::Consistency consistency);
QueryResult<void> check_write_level(protocol::Consistency consistency,
                                    const ModificationPlan& plan);
protocol::Response void_response();

}  // namespace helenus::cql
