// A node that serves clients on several cores, over the network of the simulator and over that of
// the operating system.
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include "cql/server/server_test_support.h"
#include "model/value.h"
#include "node/node.h"
#include "runtime/native/native_host.h"
#include "runtime/native/temporary_directory.h"
#include "runtime/native/test_support.h"
#include "runtime/when_all.h"
#include "sim/function_process.h"
#include "sim/world.h"

namespace helenus::server {
namespace {

using base::Bytes;
using cql::TestClient;
using node::Config;
using node::Node;
using runtime::Address;
using runtime::Runtime;
using runtime::StopToken;
using runtime::Task;
namespace protocol = cql::protocol;

constexpr int kClients = 24;
constexpr int kRowsEach = 10;

Config config(const std::string& folder, std::uint32_t cores) {
  Config config;
  config.data_directory = folder;
  config.admin_address = Address::v4({127, 0, 0, 1}, 0);
  config.listen_address = Address::v4({127, 0, 0, 1}, 0);
  config.cql_address = Address::v4({127, 0, 0, 1}, 0);
  config.commitlog_segment_mib = 32;
  config.commitlog_total_mib = 128;
  config.memtable_mib = 8;
  config.block_cache_mib = 1;
  config.cores = cores;
  return config;
}

using Clients = std::vector<std::unique_ptr<TestClient>>;

Task<Clients> connect(Runtime& rt, Address address) {
  Clients clients;
  for (int i = 0; i < kClients; ++i) {
    clients.push_back(std::make_unique<TestClient>(rt));
    EXPECT_TRUE(co_await clients.back()->open(address));
  }
  co_return clients;
}

std::string error_of(const base::Result<protocol::DecodedResponse>& answer) {
  if (!answer) return answer.error().to_string();
  if (const auto* error = std::get_if<protocol::ErrorMessage>(&answer->message)) {
    return fmt::format("{:04x}: {}", static_cast<int>(error->code), error->message);
  }
  return "";
}

Task<void> must(TestClient& client, std::string text) {
  const auto answer =
      co_await client.ask(1, protocol::QueryRequest{.text = text, .parameters = {}});
  EXPECT_EQ(error_of(answer), "") << text;
}

// How many rows a query gives; -1 for an error.
Task<int> rows_of(TestClient& client, std::string text) {
  const auto answer =
      co_await client.ask(1, protocol::QueryRequest{.text = text, .parameters = {}});
  EXPECT_EQ(error_of(answer), "") << text;
  if (!answer) co_return -1;
  const auto* rows = std::get_if<protocol::RowsResult>(&answer->message);
  co_return rows == nullptr ? -1 : static_cast<int>(rows->row_count);
}

// Executes what another connection has prepared.
Task<void> insert_some(TestClient& client, Bytes id, int first) {
  for (int i = 0; i < kRowsEach; ++i) {
    const Bytes key = model::int_value(first + i);
    protocol::ExecuteRequest execute;
    execute.id = id.view();
    execute.parameters.values = {{.kind = protocol::Value::Kind::bytes, .bytes = key.view()},
                                 {.kind = protocol::Value::Kind::bytes, .bytes = key.view()}};
    EXPECT_EQ(error_of(co_await client.ask(2, std::move(execute))), "");
  }
}

Task<void> write_all(Clients& clients) {
  const auto prepared = co_await clients[3]->ask(
      1, protocol::PrepareRequest{.text = "INSERT INTO ks.t (k, v) VALUES (?, ?)"});
  CO_ASSERT_OK(prepared);
  const auto* result = std::get_if<protocol::PreparedResult>(&prepared->message);
  CO_ASSERT_TRUE(result != nullptr);
  std::vector<Task<void>> writers;
  for (int i = 0; i < kClients; ++i) {
    writers.push_back(
        insert_some(*clients[static_cast<std::size_t>(i)], result->id, i * kRowsEach));
  }
  co_await runtime::when_all(std::move(writers));
}

// A table is made, changed, emptied and dropped while others write to it.
Task<void> change_tables(TestClient& client, bool& done) {
  for (int round = 0; round < 2; ++round) {
    co_await must(client, "CREATE TABLE ks.r (k int PRIMARY KEY, v int)");
    co_await must(client, "ALTER TABLE ks.r ADD w int");
    co_await must(client, "TRUNCATE ks.r");
    co_await must(client, "INSERT INTO ks.r (k, w) VALUES (1, 2)");
    co_await must(client, "DROP TABLE ks.r");
  }
  done = true;
}

Task<void> write_meanwhile(Runtime& rt, TestClient& client, int number, const bool* done) {
  for (int i = 0; !*done; ++i) {
    const std::string text =
        fmt::format("INSERT INTO ks.r (k, v) VALUES ({}, {})", (i * kClients) + number, i);
    const auto answer =
        co_await client.ask(3, protocol::QueryRequest{.text = text, .parameters = {}});
    CO_ASSERT_OK(answer);
    CO_ASSERT_OK(co_await runtime::sleep_for(rt, std::chrono::milliseconds(2), {}));
  }
}

Task<void> race(Runtime& rt, Clients& clients) {
  bool done = false;
  std::vector<Task<void>> tasks;
  tasks.push_back(change_tables(*clients[0], done));
  for (int i = 1; i < kClients; ++i) {
    tasks.push_back(write_meanwhile(rt, *clients[static_cast<std::size_t>(i)], i, &done));
  }
  co_await runtime::when_all(std::move(tasks));
}

Task<void> hear_a_change(Clients& clients) {
  for (const auto& client : clients) {
    const auto registered = co_await client->ask(
        4, protocol::RegisterRequest{.kinds = {protocol::EventKind::schema_change}});
    EXPECT_EQ(error_of(registered), "");
  }
  const std::string text = "CREATE TABLE ks.heard (k int PRIMARY KEY)";
  EXPECT_TRUE(co_await clients[5]->send(TestClient::query(6, text)));
  for (std::size_t i = 0; i < clients.size(); ++i) {
    // Whoever asked is answered, too, before or behind the event.
    for (int answers = i == 5 ? 2 : 1; answers > 0; --answers) {
      const auto heard = co_await clients[i]->receive();
      CO_ASSERT_OK(heard);
      EXPECT_TRUE(std::holds_alternative<protocol::Event>(heard->message) ||
                  std::holds_alternative<protocol::SchemaChangeResult>(heard->message));
    }
  }
}

// So many clients are still there when it stops.
Task<void> first_life(Runtime& rt, std::string folder, std::uint32_t cores, std::size_t staying) {
  Node node(rt, config(folder, cores));
  CO_ASSERT_OK(co_await node.start());
  EXPECT_EQ(node.cores(), cores == 0 ? rt.cores.count() : cores);
  Clients clients = co_await connect(rt, node.cql_address());
  co_await must(*clients[0],
                "CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', "
                "'replication_factor': 1}");
  co_await must(*clients[1], "CREATE TABLE ks.t (k int PRIMARY KEY, v int)");
  co_await write_all(clients);
  for (const auto& client : clients) {
    EXPECT_EQ(co_await rows_of(*client, "SELECT k FROM ks.t"), kClients * kRowsEach);
  }
  EXPECT_EQ(co_await rows_of(*clients[7], "SELECT * FROM helenus.clients"), kClients);
  EXPECT_GT(co_await rows_of(*clients[8], "SELECT * FROM helenus.metrics"), 10);
  co_await race(rt, clients);
  co_await hear_a_change(clients);
  clients.resize(staying);
  co_await node.stop();
}

Task<void> second_life(Runtime& rt, std::string folder, std::uint32_t cores) {
  Node node(rt, config(folder, cores));
  CO_ASSERT_OK(co_await node.start());
  EXPECT_EQ(node.cores(), cores == 0 ? rt.cores.count() : cores);
  Clients clients = co_await connect(rt, node.cql_address());
  for (const auto& client : clients) {
    EXPECT_EQ(co_await rows_of(*client, "SELECT k FROM ks.t"), kClients * kRowsEach);
  }
  co_await write_all(clients);
  EXPECT_EQ(co_await rows_of(*clients[2], "SELECT k FROM ks.t"), kClients * kRowsEach);
  co_await race(rt, clients);
  clients.clear();
  co_await node.stop();
}

using Life = std::function<Task<void>(Runtime&)>;

void live(std::uint64_t seed, std::uint16_t cores, const std::vector<Life>& lives) {
  sim::World world(seed);
  sim::Machine& machine = world.add_machine({.name = "node", .cores = cores}, {});
  for (const Life& life : lives) {
    machine.set_process(
        sim::FunctionProcess::factory([&life](Runtime& rt, StopToken) { return life(rt); }));
    machine.start();
    EXPECT_TRUE(world.run_until([&] { return !machine.is_up(); }, std::chrono::hours(1)));
  }
  EXPECT_FALSE(testing::Test::HasFailure()) << "seed " << seed;
}

TEST(NodeCores, ServesClientsOnAllCoresOfTheSimulator) {
  for (const std::uint64_t seed : {1U, 2U}) {
    live(seed, 3,
         {[](Runtime& rt) { return first_life(rt, "/data", 0, kClients - 4); },
          [](Runtime& rt) { return second_life(rt, "/data", 2); },
          [](Runtime& rt) { return second_life(rt, "/data", 1); },
          [](Runtime& rt) { return second_life(rt, "/data", 0); }});
  }
}

// A folder has eight shards, or as many as there were cores when it was made. Cores beyond that
// keep no data, and serve clients like the others.
TEST(NodeCores, MoreCoresThanTheFolderHasShardsServeAllTheSame) {
  live(3, 10,
       {[](Runtime& rt) { return first_life(rt, "/data", 1, 0); },
        [](Runtime& rt) { return second_life(rt, "/data", 0); },
        [](Runtime& rt) { return second_life(rt, "/data", 4); }});
}

Task<void> refused(Runtime& rt) {
  Node node(rt, config("/data", 4));
  EXPECT_TRUE((co_await node.start()).failed_with(base::Errc::invalid_argument));
  co_await node.stop();
}

TEST(NodeCores, MoreCoresThanThereAreAreRefused) {
  sim::World world(1);
  sim::Machine& machine = world.add_machine({.name = "node", .cores = 3}, {});
  machine.set_process(
      sim::FunctionProcess::factory([](Runtime& rt, StopToken) { return refused(rt); }));
  machine.start();
  EXPECT_TRUE(world.run_until([&] { return !machine.is_up(); }, std::chrono::hours(1)));
}

Task<std::string> get(Runtime& rt, Address address, std::string path) {
  const auto until = runtime::Until::after(rt, std::chrono::seconds(30));
  const auto stream = co_await rt.transport.connect(address, until);
  if (!stream) co_return stream.error().to_string();
  const std::string request = "GET " + path + " HTTP/1.0\r\n\r\n";
  EXPECT_TRUE((co_await (*stream)->write(base::as_bytes(request), until)).has_value());
  std::string text;
  std::vector<std::byte> chunk(4096);
  for (;;) {
    const auto got = co_await (*stream)->read(chunk, until);
    if (!got || *got == 0) break;
    text += base::as_text(std::span(chunk).first(*got));
  }
  co_return text;
}

// A core that does not turn its loop any more: a disk that hangs, a bug.
Task<int> a_core_hangs(Runtime& rt, std::string folder) {
  Node node(rt, config(folder, 2));
  EXPECT_TRUE((co_await node.start()).has_value());
  const Address admin = node.admin_address();
  std::atomic<bool> goes_on = false;
  EXPECT_TRUE(
      rt.cores.send(runtime::CoreId{1}, [&](Runtime&) { goes_on.wait(false); }).has_value());
  const auto [sick, silent] =
      co_await runtime::when_all(get(rt, admin, "/healthz"), get(rt, admin, "/metrics"));
  EXPECT_TRUE(sick.starts_with("HTTP/1.1 503 ")) << sick;
  EXPECT_TRUE(sick.contains("\"status\":\"failed\"")) << sick;
  EXPECT_TRUE(sick.contains("\"core\":1,\"error\":\"timeout\"")) << sick;
  EXPECT_TRUE(silent.starts_with("HTTP/1.1 503 ")) << silent;
  EXPECT_TRUE(silent.contains("core 1 does not answer")) << silent;
  goes_on = true;
  goes_on.notify_one();
  const std::string well = co_await get(rt, admin, "/healthz");
  EXPECT_TRUE(well.contains("\"status\":\"ok\"")) << well;
  EXPECT_TRUE((co_await get(rt, admin, "/metrics")).starts_with("HTTP/1.1 200 "));
  co_await node.stop();
  co_return 0;
}

using Story = Task<int> (*)(Runtime&, std::string folder);

void tell_on_threads(std::uint32_t cores, Story story) {
  const runtime::native::TemporaryDirectory folder;
  runtime::native::NativeOptions options;
  options.cores = cores;
  options.handle_signals = false;
  const int code = runtime::native::run_host(
      options, [&](Runtime& rt, StopToken) { return story(rt, folder.path() + "/data"); });
  EXPECT_EQ(code, 0);
}

TEST(NodeCores, ACoreThatDoesNotAnswerIsNamed) {
  tell_on_threads(2, a_core_hangs);
}

Task<int> both_lives(Runtime& rt, std::string folder) {
  co_await first_life(rt, folder, 0, 0);
  co_await second_life(rt, folder, 1);
  co_return 0;
}

TEST(NodeCores, ServesClientsOnThreads) {
  tell_on_threads(3, both_lives);
}

}  // namespace
}  // namespace helenus::server
