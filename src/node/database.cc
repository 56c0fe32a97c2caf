#include "node/database.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "cql/system_schema.h"
#include "cql/system_tables.h"
#include "model/token.h"
#include "runtime/clock.h"
#include "runtime/transport.h"

namespace helenus::node {

using base::kv;
using base::Result;
using runtime::Task;

namespace {

constexpr std::uint64_t kMib = std::uint64_t{1} << 20;

}  // namespace

Database::Database(runtime::Runtime& runtime, const Config& config, base::Uuid host_id)
    : runtime_(runtime), config_(config), host_id_(host_id), log_(runtime.logger("database")) {}

replication::CoordinatorOptions Database::coordinator_options() const {
  replication::CoordinatorOptions options;
  storage::EngineOptions& engine = options.engine;
  engine.data_directories = {config_.data_directory + "/tables"};
  engine.log_directory = config_.commitlog_directory.empty() ? config_.data_directory + "/commitlog"
                                                             : config_.commitlog_directory;
  engine.log.sync_mode = config_.commitlog_sync;
  engine.log.sync_period = std::chrono::milliseconds(config_.commitlog_sync_period_ms);
  engine.log.segment_size = config_.commitlog_segment_mib * kMib;
  engine.log.disk_bytes_max = config_.commitlog_total_mib * kMib;
  engine.memtable_bytes_max = config_.memtable_mib * kMib;
  engine.memtable_bytes_flush = engine.memtable_bytes_max / 4;
  engine.block_cache_bytes = config_.block_cache_mib * kMib;
  engine.compactions_max = config_.compactions_max;
  engine.compaction_bytes_per_second = config_.compaction_mib_per_second * kMib;
  options.tablets = config_.tablets;
  return options;
}

cql::ServerOptions Database::server_options() const {
  cql::ServerOptions options;
  options.connections_max = config_.cql_connections_max;
  options.connection.body_size_max = config_.cql_request_bytes_max;
  options.cql_version = cql::kCqlVersion;
  return options;
}

cql::QueryProcessorOptions Database::processor_options() const {
  const auto timeout = std::chrono::milliseconds(config_.request_timeout_ms);
  cql::QueryProcessorOptions options;
  options.read_timeout = timeout;
  options.range_timeout = timeout;
  options.write_timeout = timeout;
  return options;
}

cql::NodeFacts Database::facts(runtime::Address cql_address) const {
  const auto since_epoch = runtime_.clock.wall_now().since_origin();
  return {
      .host_id = host_id_,
      .cluster_name = config_.cluster_name,
      .data_center = config_.data_center,
      .rack = config_.rack,
      .cql_address = config_.cql_address_for_clients().with_port(cql_address.port()),
      .generation = static_cast<std::int32_t>(
          std::chrono::duration_cast<std::chrono::seconds>(since_epoch).count()),
  };
}

cql::SystemSources Database::system_sources() {
  cql::SystemSources sources;
  sources.clients = [this] {
    std::vector<cql::ClientRow> rows;
    for (cql::ClientInfo& client : server_->clients()) {
      rows.push_back({.address = client.address,
                      .connected_at = client.connected_at,
                      .driver_name = std::move(client.driver_name),
                      .driver_version = std::move(client.driver_version),
                      .keyspace = std::move(client.keyspace),
                      .request_count = client.requests});
    }
    return rows;
  };
  sources.settings = [this] {
    std::vector<cql::SettingRow> rows;
    for (const ConfigField& field : config_fields()) {
      rows.push_back({.name = std::string(field.name), .value = field.show(config_)});
    }
    return rows;
  };
  sources.metrics = [this] {
    std::vector<cql::MetricRow> rows;
    for (Metric& metric : metrics()) {
      rows.push_back({.name = std::string(metric.name),
                      .labels = std::move(metric.labels),
                      .value = metric.value});
    }
    return rows;
  };
  return sources;
}

Task<Result<void>> Database::start() {
  // A port that is taken is told before a recovery that may take long, not behind it.
  auto port_is_free = runtime_.transport.listen(config_.cql_address);
  if (!port_is_free) co_return std::move(port_is_free).error().within("CQL server");
  (*port_is_free)->close();
  port_is_free->reset();

  phase_ = "recovery of the storage engine in " + config_.data_directory;
  CO_TRY(coordinator_, co_await replication::Coordinator::open(runtime_, coordinator_options()));
  const storage::EngineOpenReport& report = coordinator_->report();
  log_.info("storage is open", kv("sstables", report.sstables),
            kv("records_replayed", report.records_applied));

  phase_ = "the catalog";
  cql::CatalogOptions catalog_options;
  catalog_options.system = cql::make_system_schema();
  catalog_options.data_center = config_.data_center;
  CO_TRY(catalog_,
         co_await cql::Catalog::open(runtime_, *coordinator_, std::move(catalog_options)));

  phase_ = "the port for clients";
  broadcast_text_ = config_.cql_address_for_clients().with_port(7000).to_string();
  processor_ = std::make_unique<cql::QueryProcessor>(
      runtime_, *coordinator_, *catalog_, tables_,
      cql::ClusterFacts{.cluster_name = config_.cluster_name,
                        .partitioner = cql::kPartitioner,
                        .snitch = cql::kSnitch,
                        .tokens = cql::tokens_of(*coordinator_),
                        .address = broadcast_text_},
      processor_options());
  server_ = std::make_unique<cql::Server>(runtime_, *processor_, server_options());
  catalog_->add_listener(
      [this](const cql::Catalog::Change& change) { server_->broadcast(change); });
  auto listening = server_->start(config_.cql_address);
  if (!listening) co_return std::move(listening).error().within("CQL server");
  // The port in force is known only now; nobody has been answered yet.
  tables_ = cql::make_system_tables(*catalog_, *coordinator_, facts(server_->address()),
                                    system_sources());
  phase_ = "serving";
  co_return {};
}

Task<void> Database::stop() {
  if (server_ != nullptr) co_await server_->stop();
  if (coordinator_ != nullptr && !std::exchange(coordinator_stopped_, true)) {
    const auto stopped = co_await coordinator_->stop();
    if (!stopped) log_.error("the commit log could not be sealed", kv("error", stopped.error()));
  }
}

std::optional<base::Error> Database::failure() const {
  return coordinator_ == nullptr ? std::nullopt : coordinator_->failure();
}

std::vector<Metric> Database::metrics() const {
  std::vector<Metric> metrics;
  add_engine_metrics(coordinator_->statistics(), metrics);
  add_server_metrics(server_->statistics(), server_->request_bytes_used(), metrics);
  return metrics;
}

}  // namespace helenus::node
