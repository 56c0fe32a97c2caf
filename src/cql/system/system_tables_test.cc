// Stories about the tables of the system, as drivers read them.
#include "cql/system/system_tables.h"

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cql/catalog/catalog_test_support.h"
#include "cql/schema/schema_story_test_support.h"
#include "model/partition_key.h"

namespace helenus::cql {
namespace {

using runtime::Runtime;
using runtime::Task;
using testing::CatalogWorld;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Key;
using testing::NodeStorage;
using ::testing::Not;
using ::testing::Pair;
using testing::run_change;
using ::testing::SizeIs;
using testing::tell;
using ::testing::UnorderedElementsAre;

// A row as texts by column; nulls are left out.
using Shown = std::map<std::string, std::string>;

Task<std::vector<Shown>> rows_of(const VirtualTables& tables, const model::Schema& schema,
                                 std::string_view keyspace, std::string_view name) {
  const model::TablePtr definition = schema.find_table(keyspace, name);
  EXPECT_NE(definition, nullptr) << keyspace << "." << name;
  if (definition == nullptr) co_return {};
  const VirtualTable* table = tables.find(definition->id);
  EXPECT_NE(table, nullptr) << keyspace << "." << name;
  if (table == nullptr) co_return {};
  std::vector<Shown> shown;
  const auto rows = co_await table->rows(runtime::Until::forever());
  EXPECT_TRUE(rows.has_value());
  for (const VirtualRow& row : *rows) {
    Shown& texts = shown.emplace_back();
    for (std::size_t i = 0; i < row.values.size(); ++i) {
      const model::Column& column = definition->columns[i];
      if (!row.values[i]) continue;
      EXPECT_TRUE(model::validate(column.type, *row.values[i]).has_value())
          << keyspace << "." << name << "." << column.name;
      texts[column.name] = model::to_text(column.type, *row.values[i]);
    }
  }
  co_return shown;
}

NodeFacts facts() {
  return {.host_id = *base::Uuid::parse("f81d4fae-7dec-41d0-a765-00a0c91e6bf6"),
          .cluster_name = "Test",
          .data_center = "dc1",
          .rack = "r1",
          .cql_address = runtime::Address::v4({127, 0, 0, 1}, 9042),
          .generation = 7};
}

SystemSources::Gathered<ClientRow> clients(runtime::Until) {
  co_return std::vector<ClientRow>{{.address = runtime::Address::v4({10, 0, 0, 1}, 4711),
                                    .connected_at = runtime::WallTime(),
                                    .driver_name = "a driver",
                                    .driver_version = "",
                                    .keyspace = "",
                                    .request_count = 3}};
}

SystemSources::Gathered<MetricRow> metrics(runtime::Until) {
  co_return std::vector<MetricRow>{
      {.name = "a", .labels = "", .value = 1},
      {.name = "a", .labels = "x=\"1\"", .value = 2.5},
      {.name = "helenus_operations_duplicates_total", .labels = "", .value = 3}};
}

SystemSources sources() {
  return {
      .clients = clients,
      .metrics = metrics,
      .requests = {},
      .traces = {},
      .settings = [] { return std::vector<SettingRow>{{.name = "rack", .value = "r1"}}; },
      .peers = {},
  };
}

using Story = std::function<Task<void>(Catalog&, const VirtualTables&)>;

void tell_tables(const Story& story) {
  CatalogWorld world;
  tell(world, [&](Runtime&, NodeStorage& node, Catalog& catalog) -> Task<void> {
    const VirtualTables tables =
        make_system_tables(catalog, node.coordinator(), facts(), sources());
    co_await story(catalog, tables);
  });
}

TEST(SystemTables, EveryTableOfTheSystemHasRowsToGive) {
  tell_tables([](Catalog& catalog, const VirtualTables& tables) -> Task<void> {
    const model::Schema& schema = catalog.snapshot()->schema();
    for (const auto& [name, keyspace] : schema.keyspaces()) {
      for (const auto& [table, definition] : keyspace->tables) {
        std::ignore = co_await rows_of(tables, schema, name, table);
      }
    }
    co_return;
  });
}

TEST(SystemTables, LocalTellsWhoTheNodeIs) {
  tell_tables([](Catalog& catalog, const VirtualTables& tables) -> Task<void> {
    const auto rows = co_await rows_of(tables, catalog.snapshot()->schema(), "system", "local");
    EXPECT_THAT(rows, SizeIs(1));
    const Shown& local = rows.front();
    EXPECT_EQ(local.at("key"), "'local'");
    EXPECT_EQ(local.at("release_version"), "'4.1.7'");
    EXPECT_EQ(local.at("cql_version"), "'3.4.6'");
    EXPECT_EQ(local.at("partitioner"), "'org.apache.cassandra.dht.Murmur3Partitioner'");
    EXPECT_EQ(local.at("host_id"), "f81d4fae-7dec-41d0-a765-00a0c91e6bf6");
    EXPECT_EQ(local.at("data_center"), "'dc1'");
    EXPECT_EQ(local.at("rpc_address"), "'127.0.0.1'");
    EXPECT_EQ(local.at("rpc_port"), "9042");
    EXPECT_EQ(local.at("schema_version"), catalog.snapshot()->schema_version().to_string());
    EXPECT_EQ(local.at("tokens"), "{}") << "nobody told which it has";
    EXPECT_THAT(co_await rows_of(tables, catalog.snapshot()->schema(), "system", "peers"),
                IsEmpty());
    EXPECT_THAT(co_await rows_of(tables, catalog.snapshot()->schema(), "system", "peers_v2"),
                IsEmpty());
    co_return;
  });
}

Shown row_with(const std::vector<Shown>& rows, const Shown& wanted) {
  for (const Shown& row : rows) {
    bool all = true;
    for (const auto& [name, value] : wanted) {
      const auto found = row.find(name);
      all = all && found != row.end() && found->second == value;
    }
    if (all) return row;
  }
  ADD_FAILURE() << "no such row";
  return {};
}

PeerFacts a_peer(std::uint8_t number) {
  base::Uuid::Octets host{};
  host.back() = std::byte{number};
  return {.host_id = base::Uuid(host),
          .node_address = runtime::Address::v4({10, 0, 0, number}, 7001),
          .cql_address = runtime::Address::v4({10, 0, 1, number}, 9043),
          .data_center = "dc2",
          .rack = "r" + std::to_string(number),
          .tokens = {model::Token{-5}, model::Token{number}},
          .schema_version = {},
          .is_up = true};
}

TEST(SystemTables, PeersAreToldWithTheirTokensAsTheyAreNow) {
  CatalogWorld world;
  tell(world, [&](Runtime&, NodeStorage& node, Catalog& catalog) -> Task<void> {
    auto peers = std::make_shared<const ClusterPeers>(
        ClusterPeers{.own_tokens = {model::Token{7}}, .others = {a_peer(2), a_peer(3)}});
    SystemSources with_peers = sources();
    with_peers.peers = [&] { return peers; };
    NodeFacts with_address = facts();
    with_address.node_address = runtime::Address::v4({10, 0, 0, 1}, 7001);
    const VirtualTables tables =
        make_system_tables(catalog, node.coordinator(), with_address, std::move(with_peers));
    const model::Schema schema = catalog.snapshot()->schema();

    const Shown local = (co_await rows_of(tables, schema, "system", "local")).front();
    EXPECT_EQ(local.at("tokens"), "{'7'}");
    EXPECT_EQ(local.at("broadcast_address"), "'10.0.0.1'");
    EXPECT_EQ(local.at("broadcast_port"), "7001");
    EXPECT_EQ(local.at("rpc_address"), "'127.0.0.1'");

    const std::string here = catalog.snapshot()->schema_version().to_string();
    EXPECT_THAT(co_await rows_of(tables, schema, "system", "peers"),
                UnorderedElementsAre(Shown{{"peer", "'10.0.0.2'"},
                                           {"data_center", "'dc2'"},
                                           {"host_id", a_peer(2).host_id.to_string()},
                                           {"rack", "'r2'"},
                                           {"release_version", "'4.1.7'"},
                                           {"rpc_address", "'10.0.1.2'"},
                                           {"schema_version", here},
                                           {"tokens", "{'-5', '2'}"}},
                                     Contains(Pair("peer", "'10.0.0.3'"))));
    const auto second = co_await rows_of(tables, schema, "system", "peers_v2");
    EXPECT_THAT(second, SizeIs(2));
    const Shown peer = row_with(second, {{"peer", "'10.0.0.3'"}});
    EXPECT_EQ(peer.at("peer_port"), "7001");
    EXPECT_EQ(peer.at("native_address"), "'10.0.1.3'");
    EXPECT_EQ(peer.at("native_port"), "9043");
    EXPECT_EQ(peer.at("schema_version"), here);

    peers = std::make_shared<const ClusterPeers>(ClusterPeers{});
    EXPECT_THAT(co_await rows_of(tables, schema, "system", "peers_v2"), IsEmpty());
    EXPECT_EQ((co_await rows_of(tables, schema, "system", "local")).front().at("tokens"), "{}");
  });
}

TEST(SystemTables, APeerWithAnotherSchemaIsToldApart) {
  CatalogWorld world;
  tell(world, [&](Runtime&, NodeStorage& node, Catalog& catalog) -> Task<void> {
    PeerFacts behind = a_peer(2);
    behind.schema_version = *base::Uuid::parse("11111111-2222-8333-8444-555555555555");
    PeerFacts beside = a_peer(3);
    beside.node_address = behind.node_address.with_port(7002);
    const auto peers = std::make_shared<const ClusterPeers>(
        ClusterPeers{.own_tokens = {}, .others = {behind, beside}});
    SystemSources with_peers;
    with_peers.peers = [&] { return peers; };
    const VirtualTables tables =
        make_system_tables(catalog, node.coordinator(), facts(), std::move(with_peers));
    EXPECT_EQ(co_await run_change(catalog, std::string(testing::kCreateKeyspace)), "done");
    const model::Schema schema = catalog.snapshot()->schema();
    const auto rows = co_await rows_of(tables, schema, "system", "peers_v2");
    EXPECT_EQ(row_with(rows, {{"peer_port", "7001"}}).at("schema_version"),
              "11111111-2222-8333-8444-555555555555");
    EXPECT_EQ(row_with(rows, {{"peer_port", "7002"}}).at("schema_version"),
              catalog.snapshot()->schema_version().to_string());
    // The older table has no column for the port.
    EXPECT_THAT(co_await rows_of(tables, schema, "system", "peers"), SizeIs(1));
  });
}

TEST(SystemTables, TheSchemaDescribesItselfAndFollowsChanges) {
  tell_tables([](Catalog& catalog, const VirtualTables& tables) -> Task<void> {
    EXPECT_EQ(co_await run_change(catalog, std::string(testing::kCreateKeyspace)), "done");
    EXPECT_EQ(co_await run_change(catalog, "CREATE TYPE u (a int, b frozen<list<text>>)"), "done");
    EXPECT_EQ(
        co_await run_change(catalog,
                            "CREATE TABLE \"T\" (k int, c timeuuid, s text static, v "
                            "frozen<u>, old int, PRIMARY KEY (k, c)) WITH CLUSTERING ORDER BY (c "
                            "DESC) AND comment = 'hello' AND conflicts = 'siblings'"),
        "done");
    EXPECT_EQ(co_await run_change(catalog, "ALTER TABLE \"T\" DROP old"), "done");
    EXPECT_EQ(co_await run_change(catalog, "CREATE TABLE n (k int PRIMARY KEY, n counter)"),
              "done");
    const model::Schema& schema = catalog.snapshot()->schema();
    const Shown keyspace = row_with(co_await rows_of(tables, schema, "system_schema", "keyspaces"),
                                    {{"keyspace_name", "'ks'"}});
    EXPECT_EQ(keyspace.at("replication"),
              "{'class': 'org.apache.cassandra.locator.SimpleStrategy', 'replication_factor': "
              "'1'}");
    const auto told = co_await rows_of(tables, schema, "system_schema", "tables");
    const Shown table = row_with(told, {{"keyspace_name", "'ks'"}, {"table_name", "'T'"}});
    EXPECT_EQ(table.at("flags"), "{'compound'}");
    EXPECT_EQ(table.at("comment"), "'hello'");
    EXPECT_EQ(table.at("extensions"), "{'helenus.conflicts': 0x7369626c696e6773}");
    EXPECT_EQ(row_with(told, {{"table_name", "'n'"}}).at("flags"), "{'compound', 'counter'}");

    const auto columns = co_await rows_of(tables, schema, "system_schema", "columns");
    const Shown clustering = row_with(columns, {{"table_name", "'T'"}, {"column_name", "'c'"}});
    EXPECT_EQ(clustering.at("clustering_order"), "'desc'");
    EXPECT_EQ(clustering.at("kind"), "'clustering'");
    EXPECT_EQ(clustering.at("position"), "0");
    EXPECT_EQ(clustering.at("column_name_bytes"), "0x63");
    const Shown value = row_with(columns, {{"table_name", "'T'"}, {"column_name", "'v'"}});
    EXPECT_EQ(value.at("type"), "'frozen<u>'");
    EXPECT_EQ(value.at("position"), "-1");
    EXPECT_EQ(value.at("clustering_order"), "'none'");
    const Shown dropped =
        row_with(co_await rows_of(tables, schema, "system_schema", "dropped_columns"),
                 {{"column_name", "'old'"}});
    EXPECT_EQ(dropped.at("type"), "'int'");
    const Shown type = row_with(co_await rows_of(tables, schema, "system_schema", "types"),
                                {{"type_name", "'u'"}});
    EXPECT_EQ(type.at("field_names"), "['a', 'b']");
    EXPECT_EQ(type.at("field_types"), "['int', 'frozen<list<text>>']");
  });
}

TEST(SystemTables, RealAndVirtualKeyspacesAreToldApart) {
  tell_tables([](Catalog& catalog, const VirtualTables& tables) -> Task<void> {
    const model::Schema& schema = catalog.snapshot()->schema();
    std::set<std::string> real;
    for (const Shown& row : co_await rows_of(tables, schema, "system_schema", "tables")) {
      real.insert(row.at("keyspace_name"));
    }
    EXPECT_THAT(real, ElementsAre("'system'", "'system_schema'", "'system_traces'"));
    std::set<std::string> virtual_ones;
    for (const Shown& row : co_await rows_of(tables, schema, "system_virtual_schema", "columns")) {
      virtual_ones.insert(row.at("keyspace_name"));
    }
    EXPECT_THAT(virtual_ones, ElementsAre("'helenus'", "'system_virtual_schema'"));
    EXPECT_THAT(co_await rows_of(tables, schema, "system_virtual_schema", "keyspaces"), SizeIs(2));
    co_return;
  });
}

TEST(SystemTables, OursTellHowTheNodeFares) {
  tell_tables([](Catalog& catalog, const VirtualTables& tables) -> Task<void> {
    const model::Schema& schema = catalog.snapshot()->schema();
    const auto tablets = co_await rows_of(tables, schema, "helenus", "tablets");
    EXPECT_THAT(tablets, IsEmpty()) << "nobody made a keyspace";
    const auto clients = co_await rows_of(tables, schema, "helenus", "clients");
    EXPECT_THAT(clients, SizeIs(1));
    EXPECT_EQ(clients.front().at("address"), "'10.0.0.1'");
    EXPECT_THAT(clients.front(), Contains(Key("driver_name")));
    EXPECT_THAT(clients.front(), Not(Contains(Key("driver_version"))));
    EXPECT_EQ((co_await rows_of(tables, schema, "helenus", "settings")).front().at("value"),
              "'r1'");
    EXPECT_THAT(co_await rows_of(tables, schema, "helenus", "metrics"), SizeIs(3));
    const auto counters = co_await rows_of(tables, schema, "helenus", "counters");
    EXPECT_THAT(counters, SizeIs(1));
    EXPECT_EQ(counters.front().at("name"), "'duplicates'");
    EXPECT_EQ(counters.front().at("value"), "3");
    co_return;
  });
}

// A client that came back from the port of a connection that is not closed yet.
TEST(VirtualTable, OfTwoRowsWithOneKeyTheLaterIsShown) {
  tell_tables([](Catalog& catalog, const VirtualTables& /*tables*/) -> Task<void> {
    const model::TablePtr definition =
        catalog.snapshot()->schema().find_table("helenus", "settings");
    const VirtualTable table(definition, [](VirtualRows& rows) {
      for (const auto& [name, value] : {std::pair("b", "1"), {"a", "2"}, {"b", "3"}, {"b", "4"}}) {
        rows.add();
        rows.set("name", model::text_value(name));
        rows.set("value", model::text_value(value));
      }
    });
    std::vector<std::string> values;
    const auto rows = co_await table.rows(runtime::Until::forever());
    for (const VirtualRow& row : *rows) values.emplace_back(row.values[1]->text());
    EXPECT_THAT(values, ::testing::UnorderedElementsAre("2", "4"));
    co_return;
  });
}

TEST(VirtualTable, RowsAreInTheOrderOfTheirKeys) {
  tell_tables([](Catalog& catalog, const VirtualTables& tables) -> Task<void> {
    const model::Schema& schema = catalog.snapshot()->schema();
    const VirtualTable* table = tables.find(schema.find_table("system_schema", "columns")->id);
    const auto made = co_await table->rows(runtime::Until::forever());
    const auto& rows = *made;
    for (std::size_t i = 0; i + 1 < rows.size(); ++i) {
      EXPECT_LT(std::tie(rows[i].partition, rows[i].clustering),
                std::tie(rows[i + 1].partition, rows[i + 1].clustering));
    }
    const auto key = model::make_row_key(rows.front().partition, rows.front().clustering);
    EXPECT_TRUE(key.has_value() && model::split_row_key(*key).has_value());
    EXPECT_EQ(tables.find(base::Uuid()), nullptr);
    co_return;
  });
}

}  // namespace
}  // namespace helenus::cql
