// For tests: nodes on simulated machines, each with an engine, a replica of every tablet, and
// everything that keeps replicas equal.
//
//   ReplicatedWorld world(seed, {.anti_entropy = true});
//   world.write(0, put(world.partition("ada"), "r", "v"), Consistency::quorum);
//   world.kill(2);  world.see({0, 1});  world.start(2);  world.see_all();
//   EXPECT_TRUE(world.settle());
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "causality/resolve.h"
#include "metadata/metadata_test_support.h"
#include "model/partition_key.h"
#include "replication/cluster/anti_entropy.h"
#include "replication/cluster/anti_entropy_service.h"
#include "replication/cluster/on_core.h"
#include "replication/cluster/replica_service.h"
#include "replication/cluster/replicated_reader.h"
#include "replication/cluster/replicated_writer.h"
#include "replication/map/replica_map.h"
#include "runtime/event.h"
#include "runtime/sleep.h"
#include "sim/process.h"
#include "sim/world.h"
#include "storage/engine/engines.h"
#include "storage/log/commit_log_test_support.h"

namespace helenus::replication::testing {

using namespace std::chrono_literals;

inline constexpr std::size_t kNodes = 3;
inline constexpr storage::TableId kTable{7};
inline constexpr causality::ColumnId kColumn{1};

// Nodes 1 to 3, which all hold everything of the keyspace "k".
inline metadata::ClusterMetadata metadata_of_three() {
  return metadata::testing::with_keyspace(metadata::testing::a_cluster(kNodes, 4), "k", 3);
}

inline base::Bytes bytes(std::string_view text) {
  return base::Bytes::copy_of(base::as_bytes(text));
}

inline PartitionWrite put(const base::Bytes& partition, std::string_view row,
                          std::string_view value, storage::TableId table = kTable) {
  PartitionWrite write;
  write.table = table;
  write.partition = partition;
  write.mutation.timestamp = causality::Timestamp{1};
  causality::CellChange change;
  change.row = bytes(row);
  change.column = kColumn;
  change.value = bytes(value);
  write.mutation.cells.push_back(std::move(change));
  return write;
}

// The partition, or rows of it.
inline PartitionWrite remove(const base::Bytes& partition, const causality::RowRange& rows = {},
                             storage::TableId table = kTable) {
  PartitionWrite write;
  write.table = table;
  write.partition = partition;
  write.mutation.timestamp = causality::Timestamp{1};
  write.mutation.deleted_ranges = {rows};
  return write;
}

// What a reader sees of the row, siblings with commas between them; nothing if there is nothing.
inline std::optional<std::string> shown(const causality::PartitionStore& stored,
                                        const base::Bytes& row,
                                        causality::Policy policy = causality::Policy::lww) {
  const auto cell = stored.cell(row, kColumn);
  std::set<std::string_view> values;
  for (const auto* version : causality::visible(cell, policy, causality::WallTime{0})) {
    values.insert(version->value.text());
  }
  if (values.empty()) return std::nullopt;
  return fmt::format("{}", fmt::join(values, ","));
}

// What nodes are started with.
struct ReplicatedSetup {
  metadata::ClusterMetadata metadata = metadata_of_three();
  std::vector<storage::TableId> tables = {kTable};
  causality::Policy policy = causality::Policy::lww;  // of the tables
  ReplicatedWriter::Deltas deltas = ReplicatedWriter::Deltas::sent;
  bool anti_entropy = false;
  PlantedBugs bugs = {};
  AntiEntropyOptions options = {};
  storage::LogSyncMode sync_mode = storage::LogSyncMode::batch;
  std::optional<runtime::Duration> sync_period = {};
  std::uint64_t mutation_log_bytes_max = std::uint64_t{4} << 30;
  bool has_cache = true;    // of blocks
  std::uint16_t cores = 1;  // of each node
};

// One life of a replica's node.
class ReplicaNode final : public sim::Process {
 public:
  ReplicaNode(runtime::Runtime& runtime, std::size_t number, runtime::Address address,
              std::vector<std::pair<model::NodeId, runtime::Address>> others,
              const ReplicatedSetup& setup, ReplicaNode*& self)
      : runtime_(runtime),
        address_(std::move(address)),
        id_(metadata::testing::node_id(static_cast<std::uint8_t>(number + 1))),
        others_(std::move(others)),
        setup_(setup),
        rpc_(runtime, {.cluster = "troy", .node = id_, .any_address_in_the_clear = true}),
        self_(self),
        stories_(runtime) {
    self_ = this;
  }
  ~ReplicaNode() override { self_ = nullptr; }

  runtime::Task<void> run(runtime::StopToken stop) override {
    const auto opened = co_await open();
    EXPECT_TRUE(opened.has_value()) << opened.error().to_string();
    runtime::Event never(runtime_);
    std::ignore = co_await never.wait({.stop = stop});
    if (setup_.anti_entropy) co_await on_each([](OfCore& of) { return of.anti_entropy.stop(); });
    co_await rpc_.stop();
    co_await stories_.join();
    co_await on_each([](OfCore& of) { return of.writer.stop(); });
    co_await reader_->stop();
    std::ignore = co_await engines_->stop();
  }

  bool is_open() const { return service_ != nullptr; }
  void see(std::set<model::NodeId> up) {
    const auto shared = std::make_shared<const std::set<model::NodeId>>(std::move(up));
    for (const auto& of : cores_) of->link.take(shared);
  }
  // Of the first core.
  storage::Engine& engine() { return engines_->on(runtime::CoreId{0}); }
  AntiEntropy& anti_entropy(std::uint32_t core = 0) { return cores_[core]->anti_entropy; }
  const HeldTablets& held() const { return *held_; }
  // Of the first core, which reads.
  ClusterLink& link() { return cores_.front()->link; }
  ReplicatedReader& reader() { return *reader_; }

  // What the metadata say now. The tables of it are here.
  void take(const metadata::ClusterMetadata& metadata) {
    const ReplicaMapPtr map = ReplicaMap::make(metadata, 1, id_);
    held_ = std::make_shared<const HeldTablets>(map, core_of());
    // All cores are one thread here.
    for (const auto& of : cores_) {
      of->link.take(map);
      of->replica.take(held_);
      of->anti_entropy.take(map);
      of->anti_entropy.take(held_);
    }
    if (service_ == nullptr) return;
    service_->take(held_);
    anti_entropy_service_->take(held_);
  }

  runtime::Task<base::Result<ReplicatedWriter::Written>> write(PartitionWrite write,
                                                               model::Consistency level) {
    const HeldTablet held = *held_->find(write.partition.view());
    const auto there = [&](runtime::Runtime&, runtime::Until until) {
      return cores_[held.core.value()]->writer.write(held, level, std::move(write),
                                                     std::move(until));
    };
    co_return co_await on_core<ReplicatedWriter::Written>(runtime_, held.core, there,
                                                          runtime::Until::after(runtime_, 2s));
  }
  runtime::Task<base::Result<std::optional<std::string>>> read(base::Bytes partition,
                                                               std::string row,
                                                               model::Consistency level,
                                                               LevelReport* report = nullptr,
                                                               Speculation speculation = {}) {
    std::vector<base::Bytes> rows = {bytes(row)};
    CO_TRY(const auto reads,
           co_await reader_->read(kTable, std::move(partition), std::move(rows),
                                  {.level = level,
                                   .report = report,
                                   .takes_digests = setup_.policy == causality::Policy::lww,
                                   .speculation = speculation},
                                  runtime::Until::after(runtime_, 2s)));
    co_return shown(reads.front().partition, bytes(row), setup_.policy);
  }
  // What a client that read the cell has seen.
  runtime::Task<base::Result<causality::Context>> context(base::Bytes partition, std::string row,
                                                          model::Consistency level) {
    std::vector<base::Bytes> rows = {bytes(row)};
    CO_TRY(const auto reads,
           co_await reader_->read(kTable, std::move(partition), std::move(rows), {.level = level},
                                  runtime::Until::after(runtime_, 2s)));
    const auto cell = reads.front().partition.cell(bytes(row), kColumn);
    causality::Context context;
    context.epoch = kEpoch;
    context.dots = causality::context_of_read(std::array{&cell}, reads.front().clock);
    co_return context;
  }
  runtime::Task<base::Result<std::vector<std::string>>> scan(std::size_t tablet,
                                                             model::Consistency level) {
    const HeldTablet& held = held_->all()[tablet];
    std::vector<std::string> found;
    RowsRequest request;
    request.table = kTable;
    request.partitions = held.info.range;
    request.rows_max = 2;
    for (;;) {
      CO_TRY(const auto answer,
             co_await reader_->scan(held.key, request, {.level = level, .takes_digests = true},
                                    runtime::Until::after(runtime_, 2s)));
      for (const RowsAnswer::Row& row : answer.rows) {
        const auto value = shown(row.stored, row.row);
        if (value) found.push_back(std::string(row.row.text()) + "=" + *value);
      }
      if (!answer.more) co_return found;
      request.from = RowsRequest::From::row;
      request.partition = answer.rows.back().partition;
      request.row = bytes(std::string(answer.rows.back().row.text()) + '\0');
    }
  }

  // ---- What is here, whatever others have ----
  // "partition/row=value" of all that a reader would be shown.
  runtime::Task<base::Result<std::set<std::string>>> contents(storage::TableId table) {
    std::set<std::string> found;
    for (const HeldTablet& held : held_->all()) {
      const auto there = [&](runtime::Runtime&, const runtime::Until&) {
        return add_contents(engines_->on(held.core), table, held.info.id, found);
      };
      CO_TRY_VOID(co_await on_core<void>(runtime_, held.core, there, runtime::Until::forever()));
    }
    co_return found;
  }
  runtime::Task<base::Result<void>> compact(storage::TableId table) {
    for (std::uint32_t core = 0; core < engines_->cores(); ++core) {
      const auto there = [&](runtime::Runtime&, runtime::Until until) {
        return engines_->on(runtime::CoreId{core}).compact(table, std::move(until));
      };
      CO_TRY_VOID(co_await on_core<void>(runtime_, runtime::CoreId{core}, there,
                                         runtime::Until::after(runtime_, 1min)));
    }
    co_return {};
  }
  // Those of the metadata that were taken last.
  runtime::Task<base::Result<void>> take_names() { return give_names(*held_); }
  runtime::Task<base::Result<void>> create_table(storage::TableId table) {
    return engines_->create_table(table, {});
  }
  runtime::Task<base::Result<void>> drop_table(storage::TableId table) {
    return engines_->drop_table(table);
  }
  std::vector<causality::Clock> clocks() {
    std::vector<causality::Clock> clocks;
    for (const HeldTablet& held : held_->all()) {
      clocks.push_back(*engines_->on(held.core).synced_clock(held.info.id));
    }
    return clocks;
  }
  // Nothing is kept for peers.
  bool keeps_nothing() {
    for (const HeldTablet& held : held_->all()) {
      if (!engines_->on(held.core).kept_mutations(held.info.id)->empty()) return false;
      if (engines_->on(held.core).statistics().mutations_in_memory > 0) return false;
    }
    return true;
  }
  std::size_t sstables() {
    std::size_t count = 0;
    for (std::uint32_t core = 0; core < engines_->cores(); ++core) {
      count += engines_->on(runtime::CoreId{core}).statistics().sstables;
    }
    return count;
  }
  // Everybody is known to know what is here, and the other way round.
  bool is_at_rest() const {
    for (const auto& of : cores_) {
      const AntiEntropyReport report = of->anti_entropy.report();
      if (report.tablets_behind > 0) return false;
      for (const AntiEntropyReport::Peer& peer : report.peers) {
        if (peer.clocks_to_tell + peer.lacking_here + peer.lacking_there > 0) return false;
      }
    }
    return true;
  }

  void tell(runtime::Task<void> story) { stories_.spawn(std::move(story)); }

 private:
  struct OfCore {
    OfCore(runtime::Runtime& there, ReplicaNode& node)
        : link(there, node.rpc_, node.runtime_.cores.here(), node.id_),
          replica(node.engines_->on(there.cores.here()), node.setup_.bugs),
          anti_entropy(there, link, replica, with_bugs(node.setup_)),
          writer(link, replica, node.setup_.deltas, node.setup_.bugs) {}
    static AntiEntropyOptions with_bugs(const ReplicatedSetup& setup) {
      AntiEntropyOptions options = setup.options;
      options.bugs = setup.bugs;
      return options;
    }
    ClusterLink link;
    Replica replica;
    AntiEntropy anti_entropy;
    ReplicatedWriter writer;
  };

  HeldTablets::CoreOf core_of() const {
    return [this](storage::TabletId tablet) { return engines_->core_of(tablet); };
  }
  // On its core, one after the other.
  runtime::Task<void> on_each(std::function<runtime::Task<void>(OfCore&)> work) {
    for (std::uint32_t core = 0; core < cores_.size(); ++core) {
      const auto there = [&](runtime::Runtime&, const runtime::Until&) {
        return ended(work(*cores_[core]));
      };
      std::ignore =
          co_await on_core<void>(runtime_, runtime::CoreId{core}, there, runtime::Until::forever());
    }
  }
  static runtime::Task<base::Result<void>> ended(runtime::Task<void> task) {
    co_await std::move(task);
    co_return {};
  }
  static runtime::Task<void> start(OfCore& of) {
    of.anti_entropy.start();
    co_return;
  }
  runtime::Task<base::Result<void>> make(runtime::Runtime& there) {
    cores_.push_back(std::make_unique<OfCore>(there, *this));
    co_return {};
  }
  static runtime::Task<base::Result<void>> add_contents(storage::Engine& engine,
                                                        storage::TableId table,
                                                        storage::TabletId tablet,
                                                        std::set<std::string>& found) {
    CO_TRY(const auto cursor, engine.cursor(table, tablet, {}));
    CO_TRY_VOID(co_await cursor->seek_first());
    while (cursor->valid()) {
      CO_TRY(const auto stored, cursor->read());
      const auto row = base::Bytes::copy_of(cursor->row_key());
      if (const auto value = shown(stored, row)) {
        found.insert(
            fmt::format("{}/{}={}", base::as_text(cursor->partition()), row.text(), *value));
      }
      CO_TRY_VOID(co_await cursor->next());
    }
    co_return {};
  }

  runtime::Task<base::Result<void>> open_storage() {
    storage::EngineOptions options;
    options.data_directories = {"/data"};
    options.log = storage::testing::small_log(setup_.sync_mode);
    if (setup_.sync_period) options.log.sync_period = *setup_.sync_period;
    options.shards = 2;
    options.mutation_log_bytes_max = setup_.mutation_log_bytes_max;
    if (!setup_.has_cache) options.block_cache_bytes = 0;
    options.keeps_timestamps = setup_.bugs.timestamps_are_not_raised;
    CO_TRY(engines_, co_await storage::Engines::open(runtime_, options, setup_.cores));
    const HeldTablets held(ReplicaMap::make(setup_.metadata, 1, id_), core_of());
    for (const HeldTablet& each : held.all()) {
      const auto made =
          co_await engines_->create_tablet(each.info.id, each.info.range, each.info.actor);
      if (!made && !made.failed_with(base::Errc::already_exists)) co_return made.error();
    }
    for (const storage::TableId table : setup_.tables) {
      const auto made = co_await engines_->create_table(table, {.policy = setup_.policy});
      if (!made && !made.failed_with(base::Errc::already_exists)) co_return made.error();
    }
    co_return co_await give_names(held);
  }
  runtime::Task<base::Result<void>> give_names(const HeldTablets& held) {
    CO_TRY(const auto there, co_await engines_->tablets());
    std::vector<storage::TabletName> names;
    for (const storage::TabletInfo& tablet : there) {
      const HeldTablet* its = held.find(tablet.range.from.view());
      if (its->info.actor != tablet.actor) names.push_back({tablet.id, its->info.actor});
    }
    if (!names.empty()) CO_TRY_VOID(co_await engines_->reincarnate(std::move(names)));
    co_return {};
  }
  runtime::Task<base::Result<void>> open() {
    CO_TRY_VOID(co_await open_storage());
    for (std::uint32_t core = 0; core < setup_.cores; ++core) {
      const auto there = [&](runtime::Runtime& runtime, const runtime::Until&) {
        return make(runtime);
      };
      CO_TRY_VOID(co_await on_core<void>(runtime_, runtime::CoreId{core}, there,
                                         runtime::Until::forever()));
    }
    take(setup_.metadata);
    auto service = std::make_unique<ReplicaService>(
        runtime_,
        [this](runtime::CoreId core) -> Replica& { return cores_[core.value()]->replica; },
        [this](runtime::CoreId core) -> ReplicatedWriter& { return cores_[core.value()]->writer; });
    service->take(held_);
    service->serve(rpc_);
    anti_entropy_service_ = std::make_unique<AntiEntropyService>(
        runtime_, [this](runtime::CoreId core) -> AntiEntropy& {
          return cores_[core.value()]->anti_entropy;
        });
    anti_entropy_service_->take(held_);
    anti_entropy_service_->serve(rpc_);
    reader_ = std::make_unique<ReplicatedReader>(
        cores_.front()->link,
        ReplicatedReader::Local{
            .read = [at = service.get()](
                        std::shared_ptr<const ReadMessage> message,
                        runtime::Until until) { return at->read(*message, until); },
            .scan = [at = service.get()](
                        std::shared_ptr<const ScanMessage> message,
                        runtime::Until until) { return at->scan(*message, until); },
            .repair = [at = service.get()](
                          std::shared_ptr<const RepairMessage> message,
                          runtime::Until until) { return at->repair(*message, until); }},
        setup_.bugs);
    CO_TRY_VOID(rpc_.start(address_));
    for (const auto& [node, address] : others_) CO_TRY_VOID(rpc_.introduce(node, address));
    if (setup_.anti_entropy) co_await on_each(&start);
    service_ = std::move(service);
    co_return {};
  }

  runtime::Runtime& runtime_;
  const runtime::Address address_;
  const model::NodeId id_;
  const std::vector<std::pair<model::NodeId, runtime::Address>> others_;
  const ReplicatedSetup setup_;
  rpc::Rpc rpc_;
  HeldTabletsPtr held_;
  std::unique_ptr<storage::Engines> engines_;
  std::vector<std::unique_ptr<OfCore>> cores_;
  std::unique_ptr<ReplicatedReader> reader_;
  std::unique_ptr<AntiEntropyService> anti_entropy_service_;
  std::unique_ptr<ReplicaService> service_;
  ReplicaNode*& self_;
  runtime::TaskGroup stories_;
};

class ReplicatedWorld {
 public:
  explicit ReplicatedWorld(std::uint64_t seed = 1, ReplicatedSetup its_setup = {})
      : setup(std::move(its_setup)), world_(seed, {}) {
    for (std::size_t i = 0; i < kNodes; ++i) {
      const auto life = [this, i](runtime::Runtime& runtime) {
        return std::make_unique<ReplicaNode>(runtime, i, machine(i).address(7000), others(i), setup,
                                             nodes_[i]);
      };
      world_.add_machine({.name = fmt::format("n{}", i), .cores = setup.cores}, life);
    }
    for (std::size_t i = 0; i < kNodes; ++i) start(i);
    see_all();
  }
  ~ReplicatedWorld() {
    world_.network().heal_partitions();
    for (std::size_t i = 0; i < kNodes; ++i) machine(i).request_stop();
    EXPECT_TRUE(world_.run_until(
        [&] {
          for (std::size_t i = 0; i < kNodes; ++i) {
            if (machine(i).is_up()) return false;
          }
          return true;
        },
        1min));
  }
  ReplicatedWorld(const ReplicatedWorld&) = delete;
  ReplicatedWorld& operator=(const ReplicatedWorld&) = delete;

  static model::NodeId id(std::size_t i) {
    return metadata::testing::node_id(static_cast<std::uint8_t>(i + 1));
  }
  sim::Machine& machine(std::size_t i) { return world_.machine(static_cast<sim::MachineId>(i)); }
  bool is_up(std::size_t i) const { return nodes_[i] != nullptr; }
  void start(std::size_t i) {
    machine(i).start();
    EXPECT_TRUE(
        world_.run_until([&] { return nodes_[i] != nullptr && nodes_[i]->is_open(); }, 10s));
  }
  void kill(std::size_t i) { machine(i).kill(); }
  // Who is seen to be up, by all.
  void see(const std::set<std::size_t>& up) {
    std::set<model::NodeId> ids;
    for (const std::size_t i : up) ids.insert(id(i));
    for (ReplicaNode* node : nodes_) {
      if (node != nullptr) node->see(ids);
    }
  }
  void see_all() { see({0, 1, 2}); }

  template <class T>
  base::Result<T> run(std::size_t i, runtime::Task<base::Result<T>> task) {
    std::optional<base::Result<T>> result;
    nodes_[i]->tell(keep(std::move(task), result));
    EXPECT_TRUE(world_.run_until([&] { return result.has_value(); }, 2min));
    return *std::move(result);
  }
  // The same, which goes on beside what follows.
  template <class T>
  void begin(std::size_t i, runtime::Task<base::Result<T>> task,
             std::optional<base::Result<T>>& result) {
    nodes_[i]->tell(keep(std::move(task), result));
  }
  WriteReply write(std::size_t i, PartitionWrite what, model::Consistency level) {
    auto written = run(i, nodes_[i]->write(std::move(what), level));
    EXPECT_TRUE(written.has_value()) << written.error().to_string();
    return written ? written->reply : WriteReply{};
  }
  std::optional<std::string> read(std::size_t i, const base::Bytes& partition,
                                  const std::string& row, model::Consistency level) {
    auto value = run(i, nodes_[i]->read(partition, row, level));
    EXPECT_TRUE(value.has_value()) << value.error().to_string();
    return value ? *value : std::nullopt;
  }
  std::set<std::string> contents(std::size_t i, storage::TableId table = kTable) {
    auto found = run(i, nodes_[i]->contents(table));
    EXPECT_TRUE(found.has_value()) << found.error().to_string();
    return found ? *found : std::set<std::string>();
  }
  // Until all have the same, know it, and keep nothing for each other any more.
  bool settle(runtime::Duration limit = 1min) {
    return world_.run_until(
        [&] {
          for (ReplicaNode* node : nodes_) {
            if (!node->is_at_rest() || !node->keeps_nothing()) return false;
            if (node->clocks() != nodes_.front()->clocks()) return false;
          }
          return true;
        },
        limit);
  }

  sim::World& world() { return world_; }
  ReplicaNode& node(std::size_t i) { return *nodes_[i]; }
  base::Bytes partition(std::string_view key, std::int64_t token = 5) const {
    const auto map = ReplicaMap::make(setup.metadata, 1, id(0));
    return model::make_partition(map->find("k")->number(), model::Token{token},
                                 base::as_bytes(key));
  }

  // What a node is given when it starts.
  ReplicatedSetup setup;

 private:
  template <class T>
  static runtime::Task<void> keep(runtime::Task<base::Result<T>> task,
                                  std::optional<base::Result<T>>& result) {
    result = co_await std::move(task);
  }
  std::vector<std::pair<model::NodeId, runtime::Address>> others(std::size_t self) {
    std::vector<std::pair<model::NodeId, runtime::Address>> others;
    for (std::size_t i = 0; i < kNodes; ++i) {
      if (i != self) others.emplace_back(id(i), machine(i).address(7000));
    }
    return others;
  }

  std::array<ReplicaNode*, kNodes> nodes_{};
  sim::World world_;
};

}  // namespace helenus::replication::testing
