#include "node/database.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <optional>
#include <utility>

#include "cql/system_schema.h"
#include "cql/system_tables.h"
#include "model/token.h"
#include "runtime/clock.h"
#include "runtime/cores.h"
#include "runtime/sleep.h"
#include "runtime/transport.h"
#include "runtime/when_all.h"

namespace helenus::node {

using base::kv;
using base::Result;
using runtime::Runtime;
using runtime::Task;
using runtime::Until;

namespace {

constexpr std::uint64_t kMib = std::uint64_t{1} << 20;
// What a core needs at the least, however many there are.
constexpr std::uint64_t kSegmentsMin = 4;
constexpr std::uint64_t kMemtableBytesMin = 8 * kMib;
constexpr runtime::Duration kAskAgainAfter = std::chrono::milliseconds(1);

}  // namespace

Database::Database(runtime::Runtime& runtime, const Config& config, base::Uuid host_id)
    : runtime_(runtime),
      config_(config),
      host_id_(host_id),
      log_(runtime.logger("database")),
      connections_(std::make_shared<cql::ConnectionLimit>(config.cql_connections_max)),
      askers_(runtime) {}

Result<void> Database::count_cores() {
  const std::uint32_t there_are = runtime_.cores.count();
  if (config_.cores > there_are) {
    return base::Error(base::Errc::invalid_argument, "cores: {}, and there are {}", config_.cores,
                       there_are);
  }
  cores_ = std::max(config_.cores, 1U);
  return {};
}

replication::CoordinatorOptions Database::coordinator_options() const {
  replication::CoordinatorOptions options;
  storage::EngineOptions& engine = options.engine;
  engine.data_directories = {config_.data_directory + "/tables"};
  engine.log_directory = config_.commitlog_directory.empty() ? config_.data_directory + "/commitlog"
                                                             : config_.commitlog_directory;
  engine.log.sync_mode = config_.commitlog_sync;
  engine.log.sync_period = std::chrono::milliseconds(config_.commitlog_sync_period_ms);
  engine.log.segment_size = config_.commitlog_segment_mib * kMib;
  engine.log.disk_bytes_max = std::max<std::uint64_t>(config_.commitlog_total_mib * kMib / cores_,
                                                      kSegmentsMin * engine.log.segment_size);
  engine.memtable_bytes_max = std::max(config_.memtable_mib * kMib / cores_, kMemtableBytesMin);
  engine.memtable_bytes_flush = engine.memtable_bytes_max / 4;
  engine.block_cache_bytes = std::max(config_.block_cache_mib * kMib / cores_, kMib);
  engine.compactions_max = std::max<std::size_t>(config_.compactions_max / cores_, 1);
  if (config_.compaction_mib_per_second > 0) {
    engine.compaction_bytes_per_second =
        std::max(config_.compaction_mib_per_second * kMib / cores_, kMib);
  }
  engine.shards = std::max(engine.shards, cores_);
  options.tablets = config_.tablets;
  options.cores = cores_;
  return options;
}

cql::ServerOptions Database::server_options() const {
  cql::ServerOptions options;
  options.connections = connections_;
  options.connection.body_size_max = config_.cql_request_bytes_max;
  options.request_bytes_max =
      std::max(options.request_bytes_max / cores_, (2 * options.connection.body_size_max) + kMib);
  options.cql_version = cql::kCqlVersion;
  options.shared_between_cores = cores_ > 1;
  return options;
}

cql::QueryProcessorOptions Database::processor_options() const {
  const auto timeout = std::chrono::milliseconds(config_.request_timeout_ms);
  cql::QueryProcessorOptions options;
  options.read_timeout = timeout;
  options.range_timeout = timeout;
  options.write_timeout = timeout;
  cql::ExecutionLimits& limits = options.execution;
  limits.result_bytes_all_max =
      std::max(limits.result_bytes_all_max / cores_, 2 * limits.result_bytes_max);
  return options;
}

cql::NodeFacts Database::facts() const {
  const auto since_epoch = runtime_.clock.wall_now().since_origin();
  return {
      .host_id = host_id_,
      .cluster_name = config_.cluster_name,
      .data_center = config_.data_center,
      .rack = config_.rack,
      .cql_address = config_.cql_address_for_clients(),
      .generation = static_cast<std::int32_t>(
          std::chrono::duration_cast<std::chrono::seconds>(since_epoch).count()),
  };
}

CoreService::Options Database::service_options() const {
  return {.cluster = {.cluster_name = config_.cluster_name,
                      .partitioner = cql::kPartitioner,
                      .snitch = cql::kSnitch,
                      .tokens = cql::tokens_of(*coordinator_),
                      .address = broadcast_text_},
          .processor = processor_options(),
          .server = server_options()};
}

// ---- Start and stop ----

Task<Result<void>> Database::start() {
  CO_TRY_VOID(count_cores());
  // A port that is taken is told before a recovery that may take long, not behind it.
  auto port_is_free = runtime_.transport.listen(config_.cql_address);
  if (!port_is_free) co_return std::move(port_is_free).error().within("CQL server");
  (*port_is_free)->close();
  port_is_free->reset();

  phase_ = "recovery of the storage engine in " + config_.data_directory;
  CO_TRY(coordinator_, co_await replication::Coordinator::open(runtime_, coordinator_options()));
  const storage::EngineOpenReport& report = coordinator_->report();
  log_.info("storage is open", kv("sstables", report.sstables),
            kv("records_replayed", report.records_applied), kv("cores", cores_));

  phase_ = "the catalog";
  cql::CatalogOptions catalog_options;
  catalog_options.system = cql::make_system_schema();
  catalog_options.data_center = config_.data_center;
  CO_TRY(catalog_,
         co_await cql::Catalog::open(runtime_, *coordinator_, std::move(catalog_options)));

  phase_ = "the port for clients";
  broadcast_text_ = config_.cql_address_for_clients().with_port(7000).to_string();
  auto serving = co_await start_services();
  if (!serving) co_return std::move(serving).error().within("CQL server");
  phase_ = "serving";
  co_return {};
}

namespace {

Task<Result<void>> done() {
  co_return {};
}

Task<Result<void>> done(Result<void> outcome) {
  co_return outcome;
}

Task<Result<void>> stop_there(CoreService& service) {
  co_await service.stop();
  co_return {};
}

}  // namespace

Task<Result<void>> Database::do_on(std::uint32_t core, runtime::CoreWork<void> work) {
  if (runtime::CoreId{core} == runtime_.cores.here()) {
    co_return co_await work(runtime_, Until::forever());
  }
  const auto there = [&work](Runtime& runtime, Until until) {
    return work(runtime, std::move(until));
  };
  for (;;) {
    auto outcome =
        co_await runtime::run_on<void>(runtime_, runtime::CoreId{core}, there, Until::forever());
    if (!outcome.failed_with(base::Errc::overloaded)) co_return outcome;
    std::ignore = co_await runtime::sleep_for(runtime_, kAskAgainAfter, {});
  }
}

// All are made before the first one has clients: any of them may ask all others.
Task<Result<void>> Database::start_services() {
  services_.resize(cores_);
  std::vector<cql::QueryProcessor::Peer> processors;
  for (std::uint32_t core = 0; core < cores_; ++core) {
    const auto make = [&](Runtime& there, const Until&) {
      services_[core] = std::make_unique<CoreService>(there, *coordinator_, *catalog_,
                                                      catalog_->snapshot(), service_options());
      return done();
    };
    CO_TRY_VOID(co_await do_on(core, make));
    catalog_->attach(services_[core]->view());
    processors.push_back(
        {.core = runtime::CoreId{core}, .processor = &services_[core]->processor()});
  }
  runtime::Address address = config_.cql_address;
  const cql::NodeFacts node_facts = facts();
  for (std::uint32_t core = 0; core < cores_; ++core) {
    // Its neighbours first, so that not all ask the same one.
    std::vector<cql::QueryProcessor::Peer> peers(processors.begin() + core + 1, processors.end());
    peers.insert(peers.end(), processors.begin(), processors.begin() + core);
    const auto open_port = [&](Runtime& there, const Until&) {
      return done(services_[core]->start(address, node_facts, system_sources(there), peers));
    };
    CO_TRY_VOID(co_await do_on(core, open_port));
    if (core == 0) address = services_[0]->server().address();
  }
  cql_address_ = address;
  co_return {};
}

Task<void> Database::stop_services() {
  std::vector<Task<Result<void>>> stops;
  for (std::uint32_t core = 0; core < services_.size(); ++core) {
    CoreService* service = services_[core].get();
    if (service == nullptr) continue;
    stops.push_back(
        do_on(core, [service](Runtime&, const Until&) { return stop_there(*service); }));
  }
  std::ignore = co_await runtime::when_all(std::move(stops));
  // Nobody is served any more, so nobody asks another core's.
  for (std::uint32_t core = 0; core < services_.size(); ++core) {
    const auto destroy = [this, core](Runtime&, const Until&) {
      services_[core].reset();
      return done();
    };
    std::ignore = co_await do_on(core, destroy);
  }
  services_.clear();
}

Task<void> Database::stop() {
  co_await askers_.close();
  co_await stop_services();
  if (coordinator_ != nullptr && !std::exchange(coordinator_stopped_, true)) {
    const auto stopped = co_await coordinator_->stop();
    if (!stopped) log_.error("the commit log could not be sealed", kv("error", stopped.error()));
  }
}

// ---- What all cores tell ----

namespace {

template <class T>
Task<Result<T>> tell_there(T (*tell)(const CoreService&), const CoreService& service) {
  co_return tell(service);
}

struct ServerPart {
  cql::ServerStatistics statistics;
  std::size_t request_bytes = 0;
};

ServerPart server_part(const CoreService& service) {
  return {.statistics = service.server().statistics(),
          .request_bytes = service.server().request_bytes_used()};
}

std::vector<cql::ClientInfo> clients_of(const CoreService& service) {
  return service.server().clients();
}

std::vector<cql::Traces::Session> traces_of(const CoreService& service) {
  const auto& sessions = service.traces().sessions();
  return {sessions.begin(), sessions.end()};
}

}  // namespace

template <class T>
Task<Result<std::vector<T>>> Database::gather(Runtime& here, T (*tell)(const CoreService&),
                                              Until until) {
  std::vector<T> told;
  for (const auto& service : services_) {
    const runtime::CoreId core = service->runtime().cores.here();
    if (core == here.cores.here()) {
      told.push_back(tell(*service));
      continue;
    }
    const auto ask = [&](Runtime&, const Until&) { return tell_there(tell, *service); };
    CO_TRY(auto one, co_await runtime::run_on<T>(here, core, ask, until));
    told.push_back(std::move(one));
  }
  co_return told;
}

Task<Result<std::vector<Metric>>> Database::metrics_from(Runtime& here, Until until) {
  CoreService& own = *services_[here.cores.here().value()];
  CO_TRY(const auto engine, co_await own.coordinator().statistics());
  CO_TRY(auto parts, co_await gather(here, server_part, std::move(until)));
  ServerPart sum = std::move(parts.front());
  for (std::size_t i = 1; i < parts.size(); ++i) {
    sum.statistics.add(parts[i].statistics);
    sum.request_bytes += parts[i].request_bytes;
  }
  std::vector<Metric> metrics;
  add_engine_metrics(engine, metrics);
  add_server_metrics(sum.statistics, sum.request_bytes, metrics);
  co_return metrics;
}

Task<Result<std::vector<Metric>>> Database::metrics() {
  CO_TRY(const auto pass, askers_.enter());
  co_return co_await metrics_from(runtime_, Until::forever());
}

Task<std::optional<base::Error>> Database::failure() {
  const auto pass = askers_.enter();
  if (!pass || coordinator_ == nullptr) co_return std::nullopt;
  const auto failure = co_await coordinator_->failure();
  if (!failure) co_return std::nullopt;
  co_return *failure;
}

Task<Result<std::vector<cql::MetricRow>>> Database::metric_rows(Runtime& here, Until until) {
  CO_TRY(auto metrics, co_await metrics_from(here, std::move(until)));
  std::vector<cql::MetricRow> rows;
  for (Metric& metric : metrics) {
    rows.push_back({.name = std::string(metric.name),
                    .labels = std::move(metric.labels),
                    .value = metric.value});
  }
  co_return rows;
}

Task<Result<std::vector<cql::ClientRow>>> Database::client_rows(Runtime& here, Until until) {
  CO_TRY(auto parts, co_await gather(here, clients_of, std::move(until)));
  std::vector<cql::ClientRow> rows;
  for (std::vector<cql::ClientInfo>& part : parts) {
    for (cql::ClientInfo& client : part) {
      rows.push_back({.address = client.address,
                      .connected_at = client.connected_at,
                      .driver_name = std::move(client.driver_name),
                      .driver_version = std::move(client.driver_version),
                      .keyspace = std::move(client.keyspace),
                      .request_count = client.requests});
    }
  }
  co_return rows;
}

Task<Result<std::vector<cql::Traces::Session>>> Database::traces(Runtime& here, Until until) {
  CO_TRY(auto parts, co_await gather(here, traces_of, std::move(until)));
  std::vector<cql::Traces::Session> sessions;
  for (auto& part : parts) std::ranges::move(part, std::back_inserter(sessions));
  co_return sessions;
}

cql::SystemSources Database::system_sources(Runtime& there) {
  cql::SystemSources sources;
  sources.clients = [this, &there](Until until) { return client_rows(there, std::move(until)); };
  sources.metrics = [this, &there](Until until) { return metric_rows(there, std::move(until)); };
  sources.traces = [this, &there](Until until) { return traces(there, std::move(until)); };
  sources.settings = [this] {
    std::vector<cql::SettingRow> rows;
    for (const ConfigField& field : config_fields()) {
      rows.push_back({.name = std::string(field.name), .value = field.show(config_)});
    }
    return rows;
  };
  return sources;
}

}  // namespace helenus::node
