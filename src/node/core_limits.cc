#include "node/core_limits.h"

#include <algorithm>
#include <chrono>
#include <cstddef>

#include "base/assert.h"
#include "cql/catalog/index_storage.h"
#include "cql/system/system_tables.h"

namespace helenus::node {

namespace {

constexpr std::uint64_t kMib = std::uint64_t{1} << 20;
// What a core needs at the least, however many there are.
constexpr std::uint64_t kSegmentsMin = 4;
constexpr std::uint64_t kMemtableBytesMin = 8 * kMib;
constexpr std::uint64_t kBlockCacheBytesMin = kMib;
constexpr std::uint64_t kCompactionBytesPerSecondMin = kMib;
constexpr std::uint64_t kResponseBytesMin = 8 * kMib;
constexpr std::uint64_t kPreparedBytesMin = 4 * kMib;

}  // namespace

storage::EngineOptions engine_options(const Config& config, std::uint32_t cores) {
  ASSERT(cores > 0);
  storage::EngineOptions engine;
  engine.data_directories = {config.data_directory + "/tables"};
  for (const std::string& directory : config.more_data_directories) {
    engine.data_directories.push_back(directory + "/tables");
  }
  engine.log_directory = config.commitlog_directory.empty() ? config.data_directory + "/commitlog"
                                                            : config.commitlog_directory;
  engine.log.sync_mode = config.commitlog_sync;
  engine.log.sync_period = std::chrono::milliseconds(config.commitlog_sync_period_ms);
  engine.log.segment_size = config.commitlog_segment_mib * kMib;
  engine.log.disk_bytes_max = std::max<std::uint64_t>(config.commitlog_total_mib * kMib / cores,
                                                      kSegmentsMin * engine.log.segment_size);
  if (config.accept_lost_log_of_start > 0) {
    engine.accept_lost_log_of_start = config.accept_lost_log_of_start;
  }
  engine.memtable_bytes_max = std::max(config.memtable_mib * kMib / cores, kMemtableBytesMin);
  engine.memtable_bytes_flush = engine.memtable_bytes_max / 4;
  const std::uint64_t cache_mib =
      config.block_cache_mib == 0 ? kBlockCacheMibUnknown : config.block_cache_mib;
  engine.block_cache_bytes = std::max(cache_mib * kMib / cores, kBlockCacheBytesMin);
  engine.file_reads_max = config.file_reads_max;
  engine.compactions_max = std::max<std::size_t>(config.compactions_max / cores, 1);
  if (config.compaction_mib_per_second > 0) {
    engine.compaction_bytes_per_second =
        std::max(config.compaction_mib_per_second * kMib / cores, kCompactionBytesPerSecondMin);
  }
  engine.merge_ranges_bytes_max = config.merge_ranges_mib * kMib;
  engine.disk_reserve_bytes = config.disk_reserve_mib * kMib / cores;
  engine.operations.window_ms = config.operation_window_ms;
  engine.operations.skew_ms = config.operation_skew_ms;
  engine.shards = std::max(engine.shards, cores);
  engine.read_index_definition = cql::read_index_definition;
  return engine;
}

cql::AdmissionLimits admission_limits(const Config& config, std::uint32_t cores) {
  ASSERT(cores > 0);
  cql::AdmissionLimits limits;
  limits.node.connections_max = config.cql_connections_max;
  limits.node.connections_per_address_max = config.cql_connections_per_address();
  limits.node.request_size_max = config.cql_request_bytes_max;
  limits.core.response_bytes_max =
      std::max<std::size_t>(limits.core.response_bytes_max / cores, kResponseBytesMin);
  return limits;
}

cql::ServerOptions server_options(const Config& config, std::uint32_t cores) {
  ASSERT(cores > 0);
  cql::ServerOptions options;
  options.cql_version = cql::kCqlVersion;
  options.shared_between_cores = cores > 1;
  options.timeouts.lost_after = std::chrono::milliseconds(config.client_lost_after_ms);
  return options;
}

cql::QueryProcessorOptions processor_options(const Config& config, std::uint32_t cores) {
  ASSERT(cores > 0);
  const auto timeout = std::chrono::milliseconds(config.request_timeout_ms);
  cql::QueryProcessorOptions options;
  options.timeouts.read = timeout;
  options.timeouts.range = timeout;
  options.timeouts.write =
      std::min<runtime::Duration>(timeout, std::chrono::milliseconds(config.write_timeout_ms));
  options.guardrails = config.guardrails;
  options.prepared.bytes_max = std::max(options.prepared.bytes_max / cores, kPreparedBytesMin);
  return options;
}

}  // namespace helenus::node
