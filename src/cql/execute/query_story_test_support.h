// For tests: a node without sockets: engines, coordinators, catalog, system tables and query
// processors, on all cores of one simulated machine; and a client that talks to it, to one core
// after the other.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "cql/catalog/catalog.h"
#include "cql/catalog/catalog_view.h"
#include "cql/catalog/index_storage.h"
#include "cql/catalog/lone_schema_test_support.h"
#include "cql/execute/query_processor.h"
#include "cql/parser/parser.h"
#include "cql/plan/terms.h"
#include "cql/protocol/request.h"
#include "cql/protocol/response.h"
#include "cql/schema/system_schema.h"
#include "cql/server/request_handler.h"
#include "cql/system/system_tables.h"
#include "cql/system/virtual_table.h"
#include "replication/coordinator/coordinator.h"
#include "replication/coordinator/node_storage_test_support.h"
#include "runtime/cores.h"
#include "runtime/run_on.h"
#include "runtime/runtime.h"
#include "runtime/sleep.h"
#include "storage/engine/engine_options.h"
#include "storage/log/commit_log_test_support.h"

namespace helenus::cql::testing {

// What a client got.
struct Told {
  std::optional<protocol::ErrorMessage> error;
  std::vector<std::string> columns;
  std::vector<std::vector<std::string>> rows;  // as literals; "null"
  std::vector<std::string> warnings;
  std::optional<base::Bytes> context;
  std::optional<base::Bytes> paging_state;
  std::optional<base::Uuid> tracing;
  protocol::ResponseMessage message;

  // "0x2200: text", or rows as "1, 'a'; 2, 'b'".
  std::string text() const {
    if (error) {
      return fmt::format("0x{:04x}: {}", static_cast<std::uint32_t>(error->code), error->message);
    }
    std::vector<std::string> lines;
    for (const auto& row : rows) lines.push_back(fmt::format("{}", fmt::join(row, ", ")));
    return fmt::format("{}", fmt::join(lines, "; "));
  }
};

// How a statement is sent.
struct How {
  std::optional<std::int32_t> page_size;
  std::optional<base::Bytes> paging_state;
  std::optional<std::int64_t> timestamp_us;
  std::optional<base::Bytes> context;
  std::optional<base::Bytes> operation;
  protocol::Consistency consistency = protocol::Consistency::one;
  bool skip_metadata = false;
  bool tracing = false;
};

inline Told told_of(const protocol::Response& response) {
  base::Buffer frame;
  protocol::encode_frame(response, 1, protocol::Compression::none, frame);
  protocol::FrameHeader header;
  header.direction = protocol::Direction::response;
  header.opcode = response.opcode;
  header.flags = response.prefix.flags();
  header.stream = 1;
  const base::Bytes bytes = std::move(frame).freeze();
  header.body_size = static_cast<std::uint32_t>(bytes.size() - protocol::kHeaderSize);
  const auto decoded = protocol::decode_response(header, bytes.slice(protocol::kHeaderSize));
  Told told;
  EXPECT_TRUE(decoded.has_value()) << decoded.error().to_string();
  if (!decoded) return told;
  told.warnings = decoded->prefix.warnings;
  told.tracing = decoded->prefix.tracing;
  for (const auto& entry : decoded->prefix.payload) {
    if (entry.key == kContextKey) told.context = entry.value;
  }
  told.message = decoded->message;
  if (const auto* error = std::get_if<protocol::ErrorMessage>(&decoded->message)) {
    told.error = *error;
  }
  if (const auto* rows = std::get_if<protocol::RowsResult>(&decoded->message)) {
    told.paging_state = rows->paging_state;
    for (const auto& column : rows->columns) told.columns.push_back(column.name);
    protocol::CellCursor cells(*rows);
    for (std::uint32_t i = 0; i < rows->row_count; ++i) {
      std::vector<std::string> row;
      for (std::uint32_t j = 0; j < rows->column_count; ++j) {
        const auto cell = cells.next();
        row.push_back(!cell                   ? "null"
                      : rows->columns.empty() ? base::to_hex(*cell)
                                              : model::to_text(rows->columns[j].type, *cell));
      }
      told.rows.push_back(std::move(row));
    }
  }
  return told;
}

// One life of the node. All verbs run on the machine's first core.
class QueryStory {
 public:
  using Body = std::function<runtime::Task<void>(QueryStory&)>;

  explicit QueryStory(runtime::Runtime& runtime) : runtime_(runtime) {}

  // Starts, and would tell the body and stop; the caller makes the world go on. On all cores of the
  // machine, unless it says on how many. The body outlives the machine's process.
  static void begin_life(storage::testing::LogWorld& world, const Body& body,
                         QueryProcessorOptions options = {}, std::uint32_t cores = 0) {
    world.start([&body, options, cores](runtime::Runtime& runtime) {
      return live(runtime, body, options, cores);
    });
  }
  // Starts, tells the body, stops.
  static void tell(storage::testing::LogWorld& world, const Body& body,
                   QueryProcessorOptions options = {}, std::uint32_t cores = 0) {
    begin_life(world, body, options, cores);
    const bool returned =
        world.world().run_until([&] { return !world.machine().is_up(); }, std::chrono::hours(12));
    EXPECT_TRUE(returned) << "the story waits for something that never happens";
    world.machine().kill();
  }

  // Stops the node and starts it again upon what it left on disk. What clients know of it, they
  // know still.
  runtime::Task<void> restart() {
    EXPECT_TRUE((co_await storage_->stop()).has_value());
    seats_.clear();
    schema_.reset();
    catalog_.reset();
    storage_.reset();
    const auto started = co_await start();
    EXPECT_TRUE(started.has_value()) << started.error().to_string();
  }

  runtime::Runtime& runtime() { return runtime_; }
  Session& session() { return session_; }
  QueryProcessor& processor(std::size_t core = 0) { return *seats_[core]->processor; }
  std::size_t cores() const { return seats_.size(); }
  Catalog& catalog() { return *catalog_; }
  replication::Coordinator& coordinator() { return storage_->coordinator(); }

  // On the core whose turn it is.
  runtime::Task<Told> send(protocol::Request request) {
    co_return co_await send_to(next_core_++ % seats_.size(), std::move(request), session_);
  }
  // On that core, for a client of its own. What the request refers to outlives the task.
  runtime::Task<Told> send_to(std::size_t core, protocol::Request request, Session& session) {
    QueryProcessor& processor = *seats_[core]->processor;
    if (core == 0) {
      const protocol::Response response =
          co_await processor.handle(std::move(request), session, {});
      co_return told_of(response);
    }
    const auto there = [&](runtime::Runtime&, const runtime::Until&) {
      return told_there(processor, std::move(request), session);
    };
    const runtime::CoreId to{static_cast<std::uint32_t>(core)};
    auto told = co_await runtime::run_on<Told>(runtime_, to, there, runtime::Until::forever());
    EXPECT_TRUE(told.has_value());
    co_return *std::move(told);
  }
  // The next requests go to that core, and on from there.
  void turn_to(std::size_t core) { next_core_ = core; }

  // QUERY, without values.
  runtime::Task<Told> run(std::string text, How how = {}) {
    protocol::QueryRequest query;
    query.text = text;
    query.parameters = parameters_of(how);
    protocol::Request request;
    add_payload(request, how);
    request.message = std::move(query);
    co_return co_await send(std::move(request));
  }
  // The same; fails unless it succeeds.
  runtime::Task<void> must(std::string text) {
    const Told told = co_await run(text);
    EXPECT_FALSE(told.error.has_value()) << text << "\n  " << told.text();
  }

  runtime::Task<Told> prepare(std::string text) {
    protocol::Request request;
    request.message = protocol::PrepareRequest{.text = text};
    co_return co_await send(std::move(request));
  }
  runtime::Task<Told> execute(base::Bytes id, std::vector<protocol::Value> values, How how = {}) {
    protocol::ExecuteRequest execute;
    execute.id = id.view();
    execute.parameters = parameters_of(how);
    execute.parameters.values.assign(values.begin(), values.end());
    protocol::Request request;
    add_payload(request, how);
    request.message = std::move(execute);
    co_return co_await send(std::move(request));
  }

 private:
  static protocol::QueryParameters parameters_of(const How& how) {
    protocol::QueryParameters parameters;
    parameters.consistency = how.consistency;
    parameters.page_size = how.page_size;
    parameters.default_timestamp_us = how.timestamp_us;
    parameters.skip_metadata = how.skip_metadata;
    if (how.paging_state) parameters.paging_state = how.paging_state->view();
    return parameters;
  }
  static void add_payload(protocol::Request& request, const How& how) {
    request.tracing = how.tracing;
    if (how.context) request.payload.push_back({.key = kContextKey, .value = how.context->view()});
    if (how.operation) {
      request.payload.push_back({.key = kOperationKey, .value = how.operation->view()});
    }
  }

  // What a core has.
  struct Seat {
    std::unique_ptr<replication::Coordinator> coordinator;
    std::optional<CatalogView> view;
    Traces traces;
    VirtualTables virtual_tables;
    std::unique_ptr<QueryProcessor> processor;
  };

  static runtime::Task<base::Result<Told>> told_there(QueryProcessor& processor,
                                                      protocol::Request request, Session& session) {
    const protocol::Response response = co_await processor.handle(std::move(request), session, {});
    co_return told_of(response);
  }

  using Traced = std::vector<Traces::Session>;
  static runtime::Task<base::Result<Traced>> traced_on_core(const Traces& traces) {
    co_return Traced(traces.sessions().begin(), traces.sessions().end());
  }
  runtime::Task<base::Result<Traced>> gather_traces(runtime::Runtime& here, runtime::Until until) {
    Traced all;
    for (std::uint32_t core = 0; core < cores_; ++core) {
      const auto ask = [&](runtime::Runtime&, const runtime::Until&) {
        return traced_on_core(seats_[core]->traces);
      };
      CO_TRY(const Traced some,
             co_await runtime::run_on<Traced>(here, runtime::CoreId{core}, ask, until));
      all.insert(all.end(), some.begin(), some.end());
    }
    co_return all;
  }

  static runtime::Task<void> live(runtime::Runtime& runtime, const Body& body,
                                  QueryProcessorOptions options, std::uint32_t cores) {
    QueryStory story(runtime);
    story.cores_ = cores == 0 ? runtime.cores.count() : cores;
    story.options_ = options;
    const auto started = co_await story.start();
    EXPECT_TRUE(started.has_value()) << started.error().to_string();
    if (started) co_await body(story);
    if (story.storage_ != nullptr) {
      EXPECT_TRUE((co_await story.storage_->stop()).has_value());
    }
  }

  runtime::Task<base::Result<void>> start() {
    replication::testing::NodeStorageOptions storage;
    storage::EngineOptions& engine = storage.engine;
    engine.data_directories = {"/data"};
    engine.log = storage::testing::small_log();
    engine.log.record_size_max = std::size_t{1} << 20;
    engine.log.segment_size = std::size_t{4} << 20;
    engine.log.staged_bytes_max = std::size_t{8} << 20;
    engine.log.disk_bytes_max = 64 * engine.log.segment_size;
    engine.shards = 2;
    engine.read_index_definition = read_index_definition;
    engine.block_cache_bytes = std::size_t{1} << 20;
    storage.cores = cores_;
    CO_TRY(storage_,
           co_await replication::testing::NodeStorage::open(runtime_, std::move(storage)));
    CatalogOptions catalog;
    catalog.system = make_system_schema();
    CO_TRY_VOID(co_await load_decided(runtime_, decided_));
    catalog_ = std::make_unique<Catalog>(runtime_, storage_->tablets(), std::move(catalog));
    schema_.emplace(runtime_, *storage_, *catalog_, decided_, LoneSchema::Keeps::file);
    CO_TRY_VOID(co_await schema_->apply(runtime::Until::forever()));
    NodeFacts facts;
    facts.cluster_name = "test";
    facts.data_center = "datacenter1";
    facts.rack = "rack1";
    for (std::uint32_t core = 0; core < cores_; ++core) {
      const auto sit = [&](runtime::Runtime& there, const runtime::Until&) {
        return take_seat(there, facts, options_);
      };
      CO_TRY_VOID(co_await runtime::run_on<void>(runtime_, runtime::CoreId{core}, sit,
                                                 runtime::Until::forever()));
      catalog_->attach(*seats_.back()->view);
    }
    for (std::uint32_t core = 0; core < cores_; ++core) {
      std::vector<QueryProcessor::Peer> peers;
      for (std::uint32_t other = 0; other < cores_; ++other) {
        if (other == core) continue;
        peers.push_back(
            {.core = runtime::CoreId{other}, .processor = seats_[other]->processor.get()});
      }
      seats_[core]->processor->set_peers(std::move(peers));
    }
    co_return {};
  }

  runtime::Task<base::Result<void>> take_seat(runtime::Runtime& there, NodeFacts facts,
                                              QueryProcessorOptions options) {
    auto seat = std::make_unique<Seat>();
    seat->coordinator = storage_->coordinator_on(there);
    seat->view.emplace(there, *catalog_, catalog_->snapshot());
    SystemSources sources;
    sources.traces = [this, &there](runtime::Until until) {
      return gather_traces(there, std::move(until));
    };
    seat->virtual_tables =
        make_system_tables(*seat->view, *seat->coordinator, std::move(facts), std::move(sources));
    options.traces = &seat->traces;
    ClusterFacts cluster;
    cluster.cluster_name = "test";
    cluster.partitioner = kPartitioner;
    cluster.snitch = kSnitch;
    seat->processor = std::make_unique<QueryProcessor>(there, *seat->coordinator, *seat->view,
                                                       seat->virtual_tables, cluster, options);
    seats_.push_back(std::move(seat));
    co_return {};
  }

  runtime::Runtime& runtime_;
  std::uint32_t cores_ = 1;
  QueryProcessorOptions options_;
  std::unique_ptr<replication::testing::NodeStorage> storage_;
  DecidedSoFar decided_{"datacenter1"};
  std::unique_ptr<Catalog> catalog_;
  std::optional<LoneSchema> schema_;
  std::vector<std::unique_ptr<Seat>> seats_;
  std::size_t next_core_ = 0;
  Session session_;
};

// ---- What stories begin with, and look at ----

inline runtime::Task<void> begin(QueryStory& story) {
  co_await story.must(
      "CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}");
  co_await story.must("USE ks");
}

inline protocol::ErrorCode code_of(const Told& told) {
  EXPECT_TRUE(told.error.has_value()) << told.text();
  return told.error ? told.error->code : protocol::ErrorCode::server_error;
}

inline protocol::PreparedResult prepared_of(const Told& told) {
  const auto* prepared = std::get_if<protocol::PreparedResult>(&told.message);
  EXPECT_NE(prepared, nullptr) << told.text();
  return prepared == nullptr ? protocol::PreparedResult() : *prepared;
}

inline void tell(const QueryStory::Body& body, QueryProcessorOptions options = {}) {
  storage::testing::LogWorld world;
  QueryStory::tell(world, body, options);
}

}  // namespace helenus::cql::testing
