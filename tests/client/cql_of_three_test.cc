// tests/cql/*.cqltest against three nodes that replicate, over the wire, at QUORUM: what writes
// goes through the first node, what reads through one after the other, each page anew. (A write
// that comes through another node than the one before has not seen that one, unless its table says
// so, and the stories are of a client that has.)
#include <array>
#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "client/connection.h"
#include "cql/execute/cqltest_test_support.h"
#include "runtime/sleep.h"
#include "sim/function_process.h"
#include "sim/scenarios/test_cluster.h"
#include "sim/world.h"

namespace helenus::cql::testing {

using runtime::Runtime;
using runtime::StopToken;
using runtime::Task;
using runtime::Until;
using namespace std::chrono_literals;

constexpr std::size_t kThree = 3;

// What a client of the nodes tells them. What it wishes is done by whoever runs the world.
class ClusterStory {
 public:
  enum class Wish : std::uint8_t { none, restart, flush, compact };

  ClusterStory(Runtime& runtime, const sim::TestCluster& cluster)
      : runtime_(runtime), cluster_(cluster) {}
  ClusterStory(const ClusterStory&) = delete;
  ClusterStory& operator=(const ClusterStory&) = delete;

  Runtime& runtime() { return runtime_; }
  Task<Told> run(std::string text, How how = {}) {
    if (!text.starts_with("USE ")) {
      const std::size_t node = node_for(text);
      co_return co_await ask(node, client::Query{.text = std::move(text)}, how);
    }
    Told told;
    for (std::size_t node = 0; node < kThree && !told.error; ++node) {
      told = co_await ask(node, client::Query{.text = text}, how);
    }
    if (!told.error) keyspace_ = text.substr(4, text.find(';') - 4);
    co_return told;
  }
  Task<void> must(std::string text) {
    const Told told = co_await run(text);
    EXPECT_FALSE(told.error.has_value()) << text << "\n  " << told.text();
  }
  Task<Told> prepare(std::string text) {
    client::Connection* const connection = co_await connected(0);
    auto made = co_await connection->prepare(text, Until::after(runtime_, kAnswerLimit));
    Told told;
    if (!made) {
      told.error = error_of(made.error());
      co_return told;
    }
    prepared_ = *made;
    protocol::PreparedResult result;
    result.id = prepared_->id;
    result.markers = prepared_->markers;
    told.message = std::move(result);
    co_return told;
  }
  // What was prepared last, by the id that the first node gave it: it is good on every other.
  Task<Told> execute(base::Bytes, std::vector<protocol::Value> values, How how = {}) {
    std::vector<client::BoundValue> bound;
    for (const protocol::Value& value : values) bound.push_back(bound_of(value));
    const std::size_t node = node_for(prepared_->text);
    if (node != 0) {
      client::Connection* const connection = co_await connected(node);
      const auto known =
          co_await connection->prepare(prepared_->text, Until::after(runtime_, kAnswerLimit));
      EXPECT_TRUE(known && (*known)->id == prepared_->id) << prepared_->text;
    }
    co_return co_await ask(
        node, client::Execution{.prepared = prepared_, .values = std::move(bound)}, how);
  }
  Task<void> restart() {
    co_await close();
    co_await grant(Wish::restart, {});
  }
  Task<void> grant(Wish wanted, std::string table) {
    table_ = std::move(table);
    wish = wanted;
    while (wish != Wish::none) std::ignore = co_await runtime::sleep_for(runtime_, 1ms, {});
  }
  Task<void> close() {
    for (auto& connection : connections_) {
      if (connection != nullptr) co_await connection->stop();
      connection.reset();
    }
  }

  Wish wish = Wish::none;
  const std::string& table() const { return table_; }

 private:
  static constexpr runtime::Duration kAnswerLimit = 1min;

  std::size_t node_for(std::string_view text) {
    return text.starts_with("SELECT") ? next_++ % kThree : 0;
  }
  static client::BoundValue bound_of(const protocol::Value& value) {
    if (value.kind == protocol::Value::Kind::null) return client::BoundValue::null();
    if (value.kind == protocol::Value::Kind::unset) return client::BoundValue::unset();
    return base::Bytes::copy_of(value.bytes);
  }
  static protocol::ErrorMessage error_of(const client::RequestError& error) {
    if (error.answer() != nullptr) return *error.answer();
    return {protocol::ErrorCode::server_error, error.to_string()};
  }
  Task<client::Connection*> connected(std::size_t node) {
    auto& connection = connections_[node];
    if (connection == nullptr) {
      client::ConnectionOptions options;
      options.keyspace = keyspace_;
      auto opened = co_await client::Connection::open(runtime_, cluster_.address(node), options,
                                                      Until::after(runtime_, kAnswerLimit));
      ASSERT(opened, "{}", opened.error());
      connection = *std::move(opened);
    }
    co_return connection.get();
  }
  Task<Told> ask(std::size_t node, client::Statement statement, How how) {
    client::Connection* const connection = co_await connected(node);
    client::RequestOptions options;
    options.consistency = how.consistency == protocol::Consistency::one
                              ? protocol::Consistency::quorum
                              : how.consistency;
    options.default_timestamp_us = how.timestamp_us;
    options.page_size = how.page_size;
    options.paging_state = how.paging_state;
    const auto result = co_await connection->execute(std::move(statement), std::move(options),
                                                     Until::after(runtime_, kAnswerLimit));
    Told told;
    if (!result) {
      told.error = error_of(result.error());
      co_return told;
    }
    told.warnings = result->warnings();
    told.paging_state = result->paging_state();
    for (const auto& column : result->columns()) told.columns.push_back(column.name);
    for (const client::Row row : result->rows()) {
      std::vector<std::string> cells;
      for (std::size_t i = 0; i < row.size(); ++i) cells.push_back(row.cell(i).to_text());
      told.rows.push_back(std::move(cells));
    }
    co_return told;
  }

  Runtime& runtime_;
  const sim::TestCluster& cluster_;
  std::array<std::unique_ptr<client::Connection>, kThree> connections_;
  std::string keyspace_;
  client::Prepared prepared_;
  std::size_t next_ = 0;
  std::string table_;
};

// Found by run_steps().
static Task<void> flush_table(ClusterStory& story, std::string table) {
  return story.grant(ClusterStory::Wish::flush, std::move(table));
}
static Task<void> compact_table(ClusterStory& story, std::string table) {
  return story.grant(ClusterStory::Wish::compact, std::move(table));
}

namespace {

class ThreeNodesTest : public ::testing::TestWithParam<std::string> {
 protected:
  ThreeNodesTest() : client_(world_.add_machine({.name = "client"}, {})) {
    cluster_.start_all();
    EXPECT_TRUE(cluster_.wait_quiet()) << cluster_.phases();
  }
  ~ThreeNodesTest() override { EXPECT_TRUE(cluster_.stop_all()); }

  void tell(const std::vector<cqltest::Step>& steps) {
    ClusterStory* story = nullptr;
    client_.set_process(sim::FunctionProcess::factory(
        [&](Runtime& runtime, StopToken) { return told(runtime, steps, story); }));
    client_.start();
    for (;;) {
      const auto has_wish = [&] {
        return story != nullptr && story->wish != ClusterStory::Wish::none;
      };
      EXPECT_TRUE(world_.run_until([&] { return !client_.is_up() || has_wish(); }, 12h));
      if (!has_wish()) return;
      fulfil(*story);
    }
  }

 private:
  Task<void> told(Runtime& runtime, const std::vector<cqltest::Step>& steps,
                  ClusterStory*& current) {
    ClusterStory story(runtime, cluster_);
    current = &story;
    co_await cqltest::run_steps(story, steps, kThree);
    co_await story.close();
    current = nullptr;
  }

  void fulfil(ClusterStory& story) {
    if (story.wish == ClusterStory::Wish::restart) {
      EXPECT_TRUE(cluster_.stop_all());
      cluster_.start_all();
      EXPECT_TRUE(cluster_.wait_quiet()) << cluster_.phases();
    } else {
      const bool merges = story.wish == ClusterStory::Wish::compact;
      for (std::size_t i = 0; i < kThree; ++i) {
        EXPECT_TRUE(cluster_.tell(i, [&](Runtime&, node::Node& node) {
          return write_files(node, story.table(), merges);
        }));
      }
    }
    story.wish = ClusterStory::Wish::none;
  }
  static Task<void> write_files(node::Node& node, std::string table, bool merges) {
    const auto snapshot = node.database().catalog().snapshot();
    const auto id = snapshot->storage_of(snapshot->schema().find_table("ks", table)->id);
    replication::Coordinator& coordinator = node.database().coordinator();
    const auto done = merges ? co_await coordinator.compact(*id, Until::forever())
                             : co_await coordinator.flush(*id, Until::forever());
    EXPECT_TRUE(done.has_value()) << table;
  }

  sim::World world_{1};
  sim::TestCluster cluster_{world_, {}};
  sim::Machine& client_;
};

TEST_P(ThreeNodesTest, BehaveAsWritten) {
  tell(cqltest::steps_of(GetParam()));
}

TEST_P(ThreeNodesTest, BehaveAsWrittenWhenPrepared) {
  tell(cqltest::prepared(cqltest::steps_of(GetParam())));
}

// All but what is about a node that is alone.
std::vector<std::string> files_of_three() {
  std::vector<std::string> files = cqltest::all_files();
  std::erase(files, "consistency");
  return files;
}

INSTANTIATE_TEST_SUITE_P(Files, ThreeNodesTest, ::testing::ValuesIn(files_of_three()),
                         [](const auto& file) { return file.param; });

}  // namespace
}  // namespace helenus::cql::testing
