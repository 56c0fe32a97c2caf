// Stories about what each core of a node may take.
#include "node/core_limits.h"

#include <gtest/gtest.h>

namespace helenus::node {
namespace {

constexpr std::uint64_t kMib = std::uint64_t{1} << 20;

TEST(CoreLimits, ManyCoresTogetherTakeWhatOneWouldTake) {
  const Config config;
  const cql::AdmissionLimits clients = admission_limits(config, 1);
  const cql::QueryProcessorOptions processor = processor_options(config, 1);
  EXPECT_EQ(clients.node.request_bytes_max, 256 * kMib);
  EXPECT_EQ(clients.node.result_bytes_max, 512 * kMib);
  EXPECT_EQ(clients.node.connections_max, config.cql_connections_max);
  EXPECT_EQ(clients.node.connections_per_address_max, config.cql_connections_per_address());
  EXPECT_EQ(clients.node.request_size_max, config.cql_request_bytes_max);
  EXPECT_EQ(clients.core.response_bytes_max, 512 * kMib);
  EXPECT_EQ(processor.prepared.bytes_max, 64 * kMib);
  for (std::uint64_t cores = 1; cores <= 5; ++cores) {
    const auto count = static_cast<std::uint32_t>(cores);
    const auto engine = engine_options(config, count);
    EXPECT_LE(cores * engine.memtable_bytes_max, config.memtable_mib * kMib);
    EXPECT_LE(cores * engine.block_cache_bytes, kBlockCacheMibUnknown * kMib);
    EXPECT_LE(cores * engine.log.disk_bytes_max, config.commitlog_total_mib * kMib);
    EXPECT_LE(cores * engine.disk_reserve_bytes, config.disk_reserve_mib * kMib);
    EXPECT_GT(engine.disk_reserve_bytes, 0U);
    const auto some = admission_limits(config, count);
    EXPECT_EQ(some.node.request_bytes_max, clients.node.request_bytes_max) << "of what all share";
    EXPECT_EQ(some.node.result_bytes_max, clients.node.result_bytes_max) << "of what all share";
    EXPECT_LE(cores * some.core.response_bytes_max, clients.core.response_bytes_max);
    const auto process = processor_options(config, count);
    EXPECT_LE(cores * process.prepared.bytes_max, processor.prepared.bytes_max);
  }
}

TEST(CoreLimits, TheBlockCacheIsAsLargeAsItIsSet) {
  Config config;
  config.block_cache_mib = 12;
  EXPECT_EQ(engine_options(config, 1).block_cache_bytes, 12 * kMib);
  EXPECT_EQ(engine_options(config, 3).block_cache_bytes, 4 * kMib);
}

TEST(CoreLimits, TablesLieInEveryDataFolderAndTheRestInTheFirst) {
  Config config;
  config.data_directory = "/disk1";
  config.more_data_directories = {"/disk2", "/disk3"};
  const auto engine = engine_options(config, 1);
  EXPECT_EQ(engine.data_directories,
            (std::vector<std::string>{"/disk1/tables", "/disk2/tables", "/disk3/tables"}));
  EXPECT_EQ(engine.log_directory, "/disk1/commitlog");
}

TEST(CoreLimits, EachMergeMayTakeAllThatItsRangesMayTake) {
  Config config;
  EXPECT_EQ(engine_options(config, 1).merge_ranges_bytes_max,
            storage::EngineOptions().merge_ranges_bytes_max);
  config.merge_ranges_mib = 3;
  EXPECT_EQ(engine_options(config, 4).merge_ranges_bytes_max, 3 * kMib);
}

TEST(CoreLimits, EveryCoreHasWhatItNeeds) {
  const Config config;
  constexpr std::uint32_t kCores = 1024;
  const auto engine = engine_options(config, kCores);
  EXPECT_TRUE(engine.validate().has_value());
  EXPECT_EQ(engine.shards, kCores);
  const auto clients = admission_limits(config, kCores);
  EXPECT_GE(clients.node.request_bytes_max,
            (2 * clients.node.request_size_max) + cql::Connection::kRequestOverhead);
  EXPECT_GE(clients.core.response_bytes_max, clients.connection.response_bytes_high);
  const auto processor = processor_options(config, kCores);
  EXPECT_GE(clients.node.result_bytes_max, processor.execution.result_bytes_max);
  EXPECT_GT(processor.prepared.bytes_max, 100 * cql::PreparedStatementCache::kStatementBytes);
}

}  // namespace
}  // namespace helenus::node
