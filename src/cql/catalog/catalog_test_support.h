// For tests: storage and a catalog on a simulated machine.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include <gtest/gtest.h>

#include "cql/catalog/catalog.h"
#include "cql/catalog/lone_schema_test_support.h"
#include "cql/parser/parser.h"
#include "cql/schema/system_schema.h"
#include "replication/coordinator/node_storage_test_support.h"
#include "storage/log/commit_log_test_support.h"

namespace helenus::cql::testing {

using replication::testing::NodeStorage;

inline replication::testing::NodeStorageOptions small_storage() {
  replication::testing::NodeStorageOptions options;
  options.engine.data_directories = {"/data/tables"};
  options.engine.log_directory = storage::testing::kLogFolder;
  options.engine.log.segment_size = 256 << 10;
  options.engine.log.record_size_max = 64 << 10;
  options.engine.log.staged_bytes_max = 256 << 10;
  options.engine.log.disk_bytes_max = 64 * options.engine.log.segment_size;
  options.engine.shards = 2;
  options.engine.memtable_bytes_max = 4 << 20;
  options.engine.memtable_bytes_flush = 1 << 20;
  options.engine.block_cache_bytes = 1 << 20;
  return options;
}

inline CatalogOptions catalog_options() {
  CatalogOptions options;
  options.system = make_system_schema();
  options.data_center = "dc1";
  return options;
}

// What change() tells: "done", "nothing" or the error.
inline runtime::Task<std::string> run_change(Catalog& catalog, std::string text) {
  auto statement = parser::parse(text);
  if (!statement) co_return "syntax: " + std::string(statement.error().context());
  const auto changed =
      co_await catalog.change(*std::move(statement), "ks", runtime::Until::forever());
  if (!changed) co_return changed.error().to_string();
  co_return changed->has_value() ? "done" : "nothing";
}

using CatalogBody = std::function<runtime::Task<void>(runtime::Runtime&, NodeStorage&, Catalog&)>;

// A machine, and what was decided on the schema of its node.
struct CatalogWorld : storage::testing::LogWorld {
  using LogWorld::LogWorld;
  DecidedSoFar decided;
};

inline runtime::Task<void> live_upon(runtime::Runtime& runtime, NodeStorage& storage,
                                     DecidedSoFar& decided, CatalogBody body,
                                     CatalogOptions options) {
  Catalog catalog(runtime, storage.tablets(), std::move(options));
  LoneSchema schema(runtime, storage, catalog, decided);
  const auto applied = co_await schema.apply(runtime::Until::forever());
  EXPECT_TRUE(applied.has_value()) << applied.error().to_string();
  co_await body(runtime, storage, catalog);
  co_await catalog.stop();
}

// Opens all, tells the story, and stops in an orderly way.
inline runtime::Task<void> live_with_catalog(runtime::Runtime& runtime, DecidedSoFar& decided,
                                             CatalogBody body,
                                             CatalogOptions options = catalog_options()) {
  auto storage = co_await NodeStorage::open(runtime, small_storage());
  EXPECT_TRUE(storage.has_value()) << storage.error().to_string();
  if (!storage) co_return;
  co_await live_upon(runtime, **storage, decided, std::move(body), std::move(options));
  const auto stopped = co_await (*storage)->stop();
  EXPECT_TRUE(stopped.has_value());
}

inline void tell(CatalogWorld& world, const CatalogBody& body) {
  world.run(
      [&](runtime::Runtime& runtime) { return live_with_catalog(runtime, world.decided, body); });
}

}  // namespace helenus::cql::testing
