// Three replicas on simulated machines, each an engine, and what is written and read through them.
#include <array>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "causality/resolve.h"
#include "metadata/metadata_test_support.h"
#include "model/partition_key.h"
#include "replication/cluster/replica_service.h"
#include "replication/cluster/replicated_reader.h"
#include "replication/cluster/replicated_writer.h"
#include "replication/map/replica_map.h"
#include "runtime/event.h"
#include "runtime/sleep.h"
#include "sim/process.h"
#include "sim/world.h"
#include "storage/engine/engine.h"
#include "storage/log/commit_log_test_support.h"

namespace helenus::replication {
namespace {

using base::Bytes;
using base::Errc;
using base::Result;
using model::Consistency;
using model::NodeId;
using runtime::Runtime;
using runtime::Task;
using runtime::Until;
using namespace std::chrono_literals;

constexpr std::size_t kNodes = 3;
constexpr storage::TableId kTable{7};
constexpr causality::ColumnId kColumn{1};

metadata::ClusterMetadata the_metadata() {
  return metadata::testing::with_keyspace(metadata::testing::a_cluster(kNodes, 4), "k", 3);
}

Bytes bytes(std::string_view text) {
  return Bytes::copy_of(base::as_bytes(text));
}

PartitionWrite put(const Bytes& partition, std::string_view row, std::string_view value) {
  PartitionWrite write;
  write.table = kTable;
  write.partition = partition;
  write.mutation.timestamp = causality::Timestamp{1};
  causality::CellChange change;
  change.row = bytes(row);
  change.column = kColumn;
  change.value = bytes(value);
  write.mutation.cells.push_back(std::move(change));
  return write;
}

PartitionWrite remove(const Bytes& partition) {
  PartitionWrite write;
  write.table = kTable;
  write.partition = partition;
  write.mutation.timestamp = causality::Timestamp{1};
  write.mutation.deleted_ranges = {{}};
  return write;
}

// One life of a replica's node.
class ReplicaNode final : public sim::Process {
 public:
  ReplicaNode(Runtime& runtime, std::size_t number, runtime::Address address,
              std::vector<std::pair<NodeId, runtime::Address>> others, ReplicaNode*& self)
      : runtime_(runtime),
        address_(std::move(address)),
        id_(metadata::testing::node_id(static_cast<std::uint8_t>(number + 1))),
        others_(std::move(others)),
        rpc_(runtime, {.cluster = "troy", .node = id_, .any_address_in_the_clear = true}),
        link_(runtime, rpc_, runtime.cores.here(), id_),
        self_(self),
        stories_(runtime) {
    self_ = this;
  }
  ~ReplicaNode() override { self_ = nullptr; }

  Task<void> run(runtime::StopToken stop) override {
    const auto opened = co_await open();
    EXPECT_TRUE(opened.has_value()) << opened.error().to_string();
    runtime::Event never(runtime_);
    std::ignore = co_await never.wait({.stop = stop});
    co_await rpc_.stop();
    co_await stories_.join();
    co_await writer_->stop();
    co_await reader_->stop();
    std::ignore = co_await engine_->stop();
  }

  bool is_open() const { return service_ != nullptr; }
  void see(std::set<NodeId> up) {
    link_.take(std::make_shared<const std::set<NodeId>>(std::move(up)));
  }

  Task<Result<WriteReply>> write(PartitionWrite write, Consistency level) {
    const HeldTablet* held = held_->find(write.partition.view());
    CO_TRY(auto written,
           co_await writer_->write(*held, level, std::move(write), Until::after(runtime_, 2s)));
    co_return written.reply;
  }
  // What a reader sees of the row; nothing if there is nothing.
  Task<Result<std::optional<std::string>>> read(Bytes partition, std::string row, Consistency level,
                                                LevelReport* report = nullptr) {
    std::vector<Bytes> rows = {bytes(row)};
    CO_TRY(const auto reads,
           co_await reader_->read(kTable, std::move(partition), std::move(rows),
                                  {.level = level, .report = report}, Until::after(runtime_, 2s)));
    co_return shown(reads.front().partition, bytes(row));
  }
  Task<Result<std::vector<std::string>>> scan(std::size_t tablet, Consistency level) {
    const HeldTablet& held = held_->all()[tablet];
    std::vector<std::string> found;
    RowsRequest request;
    request.table = kTable;
    request.partitions = held.info.range;
    request.rows_max = 2;
    for (;;) {
      CO_TRY(const auto answer, co_await reader_->scan(held.key, request, {.level = level},
                                                       Until::after(runtime_, 2s)));
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
  void tell(Task<void> story) { stories_.spawn(std::move(story)); }
  bool is_telling() const { return !stories_.empty(); }

 private:
  static std::optional<std::string> shown(const causality::PartitionStore& stored,
                                          const Bytes& row) {
    const auto cell = stored.cell(row, kColumn);
    const auto visible = causality::visible(cell, causality::Policy::lww, causality::WallTime{0});
    if (visible.empty()) return std::nullopt;
    return std::string(visible.front()->value.text());
  }

  Task<Result<void>> open() {
    storage::EngineOptions options;
    options.data_directories = {"/data"};
    options.log = storage::testing::small_log(storage::LogSyncMode::batch);
    options.shards = 2;
    CO_TRY(engine_, co_await storage::Engine::open(runtime_, options));
    const ReplicaMapPtr map = ReplicaMap::make(the_metadata(), 1, id_);
    const auto core_of = [this](storage::TabletId) { return runtime_.cores.here(); };
    held_ = std::make_shared<const HeldTablets>(map, core_of);
    for (const HeldTablet& held : held_->all()) {
      const auto made =
          co_await engine_->create_tablet(held.info.id, held.info.range, held.info.actor);
      if (!made && !made.failed_with(Errc::already_exists)) co_return made.error();
      engine_->set_watermarks(held.info.id, {held.peers.size(), std::nullopt});
    }
    const auto table = co_await engine_->create_table(kTable, {});
    if (!table && !table.failed_with(Errc::already_exists)) co_return table.error();
    replica_ = std::make_unique<Replica>(*engine_);
    replica_->take(held_);
    link_.take(map);
    writer_ = std::make_unique<ReplicatedWriter>(link_, *replica_);
    auto service = std::make_unique<ReplicaService>(
        runtime_, [this](runtime::CoreId) -> Replica& { return *replica_; },
        [this](runtime::CoreId) -> ReplicatedWriter& { return *writer_; });
    service->take(held_);
    service->serve(rpc_);
    reader_ = std::make_unique<ReplicatedReader>(
        link_,
        ReplicatedReader::Local{
            .read = [at = service.get()](std::shared_ptr<const ReadMessage> message,
                                         Until until) { return at->read(*message, until); },
            .scan = [at = service.get()](std::shared_ptr<const ScanMessage> message,
                                         Until until) { return at->scan(*message, until); }});
    CO_TRY_VOID(rpc_.start(address_));
    for (const auto& [node, address] : others_) CO_TRY_VOID(rpc_.introduce(node, address));
    service_ = std::move(service);
    co_return {};
  }

  Runtime& runtime_;
  const runtime::Address address_;
  const NodeId id_;
  const std::vector<std::pair<NodeId, runtime::Address>> others_;
  rpc::Rpc rpc_;
  ClusterLink link_;
  HeldTabletsPtr held_;
  std::unique_ptr<storage::Engine> engine_;
  std::unique_ptr<Replica> replica_;
  std::unique_ptr<ReplicatedWriter> writer_;
  std::unique_ptr<ReplicatedReader> reader_;
  std::unique_ptr<ReplicaService> service_;
  ReplicaNode*& self_;
  runtime::TaskGroup stories_;
};

class ReplicatedRows : public ::testing::Test {
 protected:
  ReplicatedRows() : world_(1, {}) {
    for (std::size_t i = 0; i < kNodes; ++i) {
      world_.add_machine({.name = fmt::format("n{}", i)}, [this, i](Runtime& runtime) {
        return std::make_unique<ReplicaNode>(runtime, i, machine(i).address(7000), others(i),
                                             nodes_[i]);
      });
    }
    for (std::size_t i = 0; i < kNodes; ++i) start(i);
    see_all();
  }
  ~ReplicatedRows() override {
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

  static NodeId id(std::size_t i) {
    return metadata::testing::node_id(static_cast<std::uint8_t>(i + 1));
  }
  sim::Machine& machine(std::size_t i) { return world_.machine(static_cast<sim::MachineId>(i)); }
  void start(std::size_t i) {
    machine(i).start();
    EXPECT_TRUE(
        world_.run_until([&] { return nodes_[i] != nullptr && nodes_[i]->is_open(); }, 10s));
  }
  void kill(std::size_t i) { machine(i).kill(); }
  // Who is seen to be up, by all.
  void see(const std::set<NodeId>& up) {
    for (ReplicaNode* node : nodes_) {
      if (node != nullptr) node->see(up);
    }
  }
  void see_all() { see({id(0), id(1), id(2)}); }

  template <class T>
  Result<T> run(std::size_t i, Task<Result<T>> task) {
    std::optional<Result<T>> result;
    nodes_[i]->tell(keep(std::move(task), result));
    EXPECT_TRUE(world_.run_until([&] { return result.has_value(); }, 1min));
    return *std::move(result);
  }
  WriteReply write(std::size_t i, PartitionWrite what, Consistency level) {
    auto reply = run(i, nodes_[i]->write(std::move(what), level));
    EXPECT_TRUE(reply.has_value()) << reply.error().to_string();
    return reply ? *reply : WriteReply{};
  }
  std::optional<std::string> read(std::size_t i, const Bytes& partition, const std::string& row,
                                  Consistency level) {
    auto value = run(i, nodes_[i]->read(partition, row, level));
    EXPECT_TRUE(value.has_value()) << value.error().to_string();
    return value ? *value : std::nullopt;
  }

  sim::World& world() { return world_; }
  ReplicaNode& node(std::size_t i) { return *nodes_[i]; }

  const Bytes partition_ =
      model::make_partition(ReplicaMap::make(the_metadata(), 1, id(0))->find("k")->number(),
                            model::Token{5}, base::as_bytes("ada"));

 private:
  template <class T>
  static Task<void> keep(Task<Result<T>> task, std::optional<Result<T>>& result) {
    result = co_await std::move(task);
  }
  std::vector<std::pair<NodeId, runtime::Address>> others(std::size_t self) {
    std::vector<std::pair<NodeId, runtime::Address>> others;
    for (std::size_t i = 0; i < kNodes; ++i) {
      if (i != self) others.emplace_back(id(i), machine(i).address(7000));
    }
    return others;
  }

  std::array<ReplicaNode*, kNodes> nodes_{};
  sim::World world_;
};

TEST_F(ReplicatedRows, AWriteAtQuorumIsReadThroughEveryNode) {
  const WriteReply reply = write(0, put(partition_, "r", "v"), Consistency::quorum);
  EXPECT_TRUE(reply.met);
  EXPECT_EQ(reply.report.required, 2U);
  EXPECT_GE(reply.report.received, 2U);
  for (std::size_t i = 0; i < kNodes; ++i) {
    EXPECT_EQ(read(i, partition_, "r", Consistency::quorum), "v") << i;
  }
  world().run_for(1s);
  for (std::size_t i = 0; i < kNodes; ++i) {
    EXPECT_EQ(read(i, partition_, "r", Consistency::one), "v") << i;
  }
}

TEST_F(ReplicatedRows, WithOneNodeDownQuorumGoesOnAndAllDoesNot) {
  kill(2);
  see({id(0), id(1)});
  EXPECT_TRUE(write(0, put(partition_, "r", "v"), Consistency::quorum).met);
  EXPECT_EQ(read(1, partition_, "r", Consistency::quorum), "v");
  const auto refused = run(0, node(0).write(put(partition_, "r", "w"), Consistency::all));
  EXPECT_TRUE(refused.failed_with(Errc::unavailable));
  LevelReport report;
  EXPECT_TRUE(run(0, node(0).read(partition_, "r", Consistency::all, &report))
                  .failed_with(Errc::unavailable));
  EXPECT_EQ(report.required, 3U);
  EXPECT_EQ(report.received, 2U);
  EXPECT_EQ(read(0, partition_, "r", Consistency::quorum), "v");
  // It comes back without what it missed: a quorum with it still sees the write.
  start(2);
  see_all();
  EXPECT_EQ(read(2, partition_, "r", Consistency::quorum), "v");
}

TEST_F(ReplicatedRows, ANodeThatIsThoughtToBeUpAndIsNotCostsASpare) {
  EXPECT_TRUE(write(0, put(partition_, "r", "v"), Consistency::all).met);
  kill(1);
  EXPECT_EQ(read(0, partition_, "r", Consistency::quorum), "v");
  EXPECT_TRUE(write(0, put(partition_, "r", "w"), Consistency::quorum).met);
  const WriteReply reply = write(0, put(partition_, "r", "x"), Consistency::all);
  EXPECT_FALSE(reply.met);
  EXPECT_GE(reply.report.received, 1U);
  EXPECT_LT(reply.report.received, 3U);
  EXPECT_EQ(read(2, partition_, "r", Consistency::quorum), "x");
}

TEST_F(ReplicatedRows, ADeleteAtQuorumCoversWhatAnotherReplicaHasTaken) {
  // The first replica never hears of the write: the second and the third have it.
  kill(0);
  see({id(1), id(2)});
  EXPECT_TRUE(write(1, put(partition_, "r", "v"), Consistency::quorum).met);
  start(0);
  see_all();
  // Its own clock has not seen the write, and its timestamp is not larger.
  EXPECT_TRUE(write(0, remove(partition_), Consistency::quorum).met);
  world().run_for(1s);
  for (std::size_t i = 0; i < kNodes; ++i) {
    EXPECT_EQ(read(i, partition_, "r", Consistency::all), std::nullopt) << i;
  }
}

TEST_F(ReplicatedRows, AScanMergesWhatReplicasHave) {
  const auto place = ReplicaMap::make(the_metadata(), 1, id(0))->find_place(partition_.view());
  ASSERT_TRUE(place.has_value());
  for (int i = 0; i < 6; ++i) {
    EXPECT_TRUE(write(static_cast<std::size_t>(i) % kNodes,
                      put(partition_, fmt::format("r{}", i), "v"), Consistency::quorum)
                    .met);
  }
  kill(2);
  see({id(0), id(1)});
  EXPECT_TRUE(write(0, put(partition_, "r3", "w"), Consistency::quorum).met);
  PartitionWrite cut = remove(partition_);
  cut.mutation.deleted_ranges = {{.from = bytes("r0"), .to = bytes("r2")}};
  EXPECT_TRUE(write(1, std::move(cut), Consistency::quorum).met);
  start(2);
  see_all();
  const std::vector<std::string> expected = {"r2=v", "r3=w", "r4=v", "r5=v"};
  for (std::size_t i = 0; i < kNodes; ++i) {
    const auto rows = run(i, node(i).scan(place->index, Consistency::quorum));
    ASSERT_TRUE(rows.has_value()) << rows.error().to_string();
    EXPECT_EQ(*rows, expected) << i;
  }
}

}  // namespace
}  // namespace helenus::replication
