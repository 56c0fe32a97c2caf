// For tests: the coordinators of one simulated node, and the words of their stories.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "causality/resolve.h"
#include "model/partition_key.h"
#include "replication/coordinator/coordinator.h"
#include "replication/coordinator/node_storage_test_support.h"
#include "runtime/run_on.h"
#include "storage/log/commit_log_test_support.h"

namespace helenus::replication::testing {

inline constexpr storage::TableId kTable{7};
inline constexpr causality::ColumnId kColumn{1};

inline NodeStorageOptions small() {
  NodeStorageOptions options;
  options.engine.data_directories = {"/data"};
  options.engine.log = storage::testing::small_log(storage::LogSyncMode::batch);
  options.engine.shards = 2;
  options.engine.memtable_keys_flush = 12;
  return options;
}

// A partition whose token's first byte is that.
inline base::Bytes partition(int first, const std::string& key = std::string("\0k", 2)) {
  std::string bytes(12, '\0');
  bytes[3] = 1;  // the keyspace
  bytes[4] = static_cast<char>(first);
  return base::Bytes::copy_of(bytes + key);
}

// All of the keyspace.
inline storage::KeyRange everything() {
  return {.from = model::first_key_of(model::KeyspaceNumber(1)),
          .to = model::first_key_of(model::KeyspaceNumber(2))};
}

inline causality::CellChange cell(const std::string& row, const std::string& value) {
  causality::CellChange change;
  change.row = base::Bytes::copy_of(row);
  change.column = kColumn;
  change.value = base::Bytes::copy_of(value);
  return change;
}

inline PartitionWrite put(const base::Bytes& where, const std::string& row,
                          const std::string& value, std::int64_t timestamp,
                          bool explicit_timestamp = false) {
  PartitionWrite write;
  write.table = kTable;
  write.partition = where;
  write.mutation.timestamp = causality::Timestamp{timestamp};
  write.mutation.cells.push_back(cell(row, value));
  write.explicit_timestamp = explicit_timestamp;
  return write;
}

inline PartitionWrite remove_all(const base::Bytes& where, std::int64_t timestamp) {
  PartitionWrite write;
  write.table = kTable;
  write.partition = where;
  write.mutation.timestamp = causality::Timestamp{timestamp};
  write.mutation.deleted_ranges.push_back({});
  write.explicit_timestamp = true;
  return write;
}

inline PartitionWrite remove_plainly(const base::Bytes& where, std::int64_t timestamp) {
  PartitionWrite write = remove_all(where, timestamp);
  write.explicit_timestamp = false;
  return write;
}

inline std::string shown(const causality::PartitionStore& store, const base::Bytes& row) {
  std::string text;
  const causality::CellStore cell = store.cell(row, kColumn);
  for (const causality::Version* version :
       causality::visible(cell, causality::Policy::lww, causality::WallTime{1})) {
    text += version->value.text();
  }
  return text;
}

inline runtime::Task<std::string> get(Coordinator& coordinator, base::Bytes where,
                                      std::string row) {
  const base::Bytes key = base::Bytes::copy_of(row);
  const auto read =
      co_await coordinator.read_row(kTable, std::move(where), key, runtime::Until::forever());
  EXPECT_TRUE(read.has_value());
  co_return read ? shown(read->partition, key) : "error";
}

using Story = std::function<runtime::Task<void>(Coordinator&)>;
using TimedStory = std::function<runtime::Task<void>(runtime::Runtime&, Coordinator&)>;

// On how many cores the node runs, and which of them has the coordinator that the story asks.
struct Seat {
  std::uint16_t cores = 1;
  std::uint32_t asked = 0;
};

inline runtime::Task<base::Result<void>> tell_beside(runtime::Runtime& there, NodeStorage& storage,
                                                     const TimedStory& tell) {
  const auto beside = storage.coordinator_on(there);
  co_await tell(there, *beside);
  co_return {};
}

inline runtime::Task<void> life(runtime::Runtime& runtime, NodeStorageOptions options, Seat share,
                                TimedStory tell) {
  options.cores = share.cores;
  const std::size_t tokens = options.tokens;
  auto storage = co_await NodeStorage::open(runtime, std::move(options));
  EXPECT_TRUE(storage.has_value()) << storage.error().to_string();
  if (!storage) co_return;
  const auto metadata =
      metadata::testing::with_keyspace(metadata::testing::a_cluster(1, tokens), "k", 1);
  const auto acting = co_await (*storage)->act_by(metadata, 1);
  EXPECT_TRUE(acting.has_value()) << acting.error().to_string();
  const auto made = co_await (*storage)->tablets().create_table(kTable, {});
  EXPECT_TRUE(made.has_value() || made.failed_with(base::Errc::already_exists));
  if (share.asked == 0) {
    co_await tell(runtime, (*storage)->coordinator());
  } else {
    const auto beside = [&](runtime::Runtime& there, const runtime::Until&) {
      return tell_beside(there, **storage, tell);
    };
    EXPECT_TRUE((co_await runtime::run_on<void>(runtime, runtime::CoreId{share.asked}, beside,
                                                runtime::Until::forever()))
                    .has_value());
  }
  EXPECT_TRUE((co_await (*storage)->stop()).has_value());
}

class NodeTest : public ::testing::TestWithParam<Seat> {
 protected:
  void live(const Story& tell) { live(GetParam(), tell); }
  void live(Seat share, const Story& tell, const NodeStorageOptions& options = small()) {
    live_in_time(
        share, [&](runtime::Runtime&, Coordinator& coordinator) { return tell(coordinator); },
        options);
  }
  void live_in_time(Seat share, const TimedStory& tell,
                    const NodeStorageOptions& options = small()) {
    world_.run([&](runtime::Runtime& runtime) { return life(runtime, options, share, tell); });
  }

  storage::testing::LogWorld world_{1, 3};
};

inline std::string name_of(const ::testing::TestParamInfo<Seat>& info) {
  return fmt::format("core_{}_of_{}", info.param.asked, info.param.cores);
}

}  // namespace helenus::replication::testing
