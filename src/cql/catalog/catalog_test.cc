// Stories about the catalog: what it keeps, what it tells, and what crashes leave of it.
#include "cql/catalog/catalog.h"

#include <optional>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cql/catalog/catalog_test_support.h"
#include "cql/schema/schema_story_test_support.h"
#include "model/partition_key.h"
#include "runtime/contract/world.h"
#include "runtime/event.h"
#include "runtime/when_all.h"
#include "storage/engine/file_filters_test_support.h"

namespace helenus::cql {
namespace {

using base::Errc;
using runtime::Runtime;
using runtime::Task;
using runtime::Until;
using storage::TableId;
using testing::CatalogWorld;
using ::testing::ElementsAre;
using testing::kCreateKeyspace;
using testing::NodeStorage;
using testing::run_change;
using ::testing::StartsWith;
using testing::tell;

const std::string kKeyspace(kCreateKeyspace);

Task<void> make_table_t(Catalog& catalog) {
  EXPECT_EQ(co_await run_change(catalog, kKeyspace), "done");
  EXPECT_EQ(co_await run_change(catalog, "CREATE TABLE t (k int PRIMARY KEY, v text)"), "done");
}

replication::PartitionWrite some_write(TableId table) {
  replication::PartitionWrite write;
  write.table = table;
  write.partition =
      model::make_partition(model::KeyspaceNumber(1), model::Token{}, base::as_bytes("k"));
  write.mutation.timestamp = causality::Timestamp{1};
  write.mutation.cells.push_back({.row = base::Bytes::copy_of("r"),
                                  .column = causality::ColumnId{1},
                                  .expires = std::nullopt,
                                  .value = base::Bytes::copy_of("v")});
  return write;
}

// Whether that write is there.
Task<bool> has_some_row(NodeStorage& node, TableId table) {
  const replication::PartitionWrite write = some_write(table);
  const auto& cell = write.mutation.cells.front();
  const auto read =
      co_await node.coordinator().read_row(table, write.partition, cell.row, Until::forever());
  EXPECT_TRUE(read.has_value()) << read.error().to_string();
  co_return read && !read->partition.cell(cell.row, cell.column).versions().empty();
}

Task<void> write_some_row(NodeStorage& node, TableId table) {
  CO_ASSERT_OK(co_await node.coordinator().write(some_write(table), Until::forever()));
}

Task<bool> is_there(NodeStorage& node, TableId table) {
  const auto flushed = co_await node.coordinator().flush(table, Until::forever());
  EXPECT_TRUE(flushed || flushed.failed_with(Errc::not_found));
  co_return flushed.has_value();
}

TEST(Catalog, BeginsWithTheKeyspacesOfTheSystem) {
  CatalogWorld world;
  tell(world, [](Runtime&, NodeStorage&, Catalog& catalog) -> Task<void> {
    const CatalogPtr now = catalog.snapshot();
    EXPECT_NE(now->schema().find_table("system", "local"), nullptr);
    EXPECT_TRUE(now->users().keyspaces().empty());
    EXPECT_EQ(now->storage_of(now->schema().find_table("system", "local")->id), std::nullopt);
    co_return;
  });
}

TEST(Catalog, ASchemaIsThereAfterAStopAndAfterAPowerLoss) {
  CatalogWorld world;
  base::Uuid version;
  std::optional<TableId> storage;
  tell(world, [&](Runtime&, NodeStorage&, Catalog& catalog) -> Task<void> {
    co_await make_table_t(catalog);
    version = catalog.snapshot()->schema_version();
    storage = catalog.snapshot()->storage_of(catalog.snapshot()->users().find_table("ks", "t")->id);
    EXPECT_TRUE(storage.has_value());
  });
  const auto look = [&](Runtime&, NodeStorage&, Catalog& catalog) -> Task<void> {
    const CatalogPtr now = catalog.snapshot();
    EXPECT_EQ(now->schema_version(), version);
    const model::TablePtr table = now->users().find_table("ks", "t");
    EXPECT_NE(table, nullptr);
    if (table != nullptr) EXPECT_EQ(now->storage_of(table->id), storage);
    co_return;
  };
  tell(world, look);
  world.machine().power_loss();
  tell(world, look);
}

TEST(Catalog, TellsOfEachChangeOnceItIsInTheSnapshot) {
  CatalogWorld world;
  tell(world, [](Runtime&, NodeStorage&, Catalog& catalog) -> Task<void> {
    std::vector<std::string> told;
    catalog.add_listener([&](const Catalog::Change& change) {
      told.push_back(change.keyspace + "." + change.name);
      EXPECT_NE(catalog.snapshot()->users().find_keyspace("ks"), nullptr);
    });
    const std::uint64_t before = catalog.snapshot()->number();
    co_await make_table_t(catalog);
    EXPECT_EQ(co_await run_change(catalog, "CREATE TABLE IF NOT EXISTS t (k int PRIMARY KEY)"),
              "nothing");
    EXPECT_THAT(co_await run_change(catalog, "CREATE TABLE t (k int PRIMARY KEY)"),
                StartsWith("0x2400"));
    EXPECT_THAT(told, ElementsAre("ks.", "ks.t"));
    EXPECT_EQ(catalog.snapshot()->number(), before + 2);
  });
}

TEST(Catalog, ASnapshotStaysAsItWas) {
  CatalogWorld world;
  tell(world, [](Runtime&, NodeStorage&, Catalog& catalog) -> Task<void> {
    co_await make_table_t(catalog);
    const CatalogPtr before = catalog.snapshot();
    EXPECT_EQ(co_await run_change(catalog, "ALTER TABLE t ADD w int"), "done");
    EXPECT_EQ(before->users().find_table("ks", "t")->find("w"), nullptr);
    EXPECT_NE(catalog.snapshot()->users().find_table("ks", "t")->find("w"), nullptr);
    EXPECT_NE(catalog.snapshot()->schema_version(), before->schema_version());
  });
}

// ---- What files get ----

Task<void> write_and_flush(NodeStorage& node, Catalog& catalog) {
  const TableId storage =
      *catalog.snapshot()->storage_of(catalog.snapshot()->users().find_table("ks", "t")->id);
  EXPECT_TRUE(
      (co_await node.coordinator().write(some_write(storage), Until::forever())).has_value());
  EXPECT_TRUE((co_await node.coordinator().flush(storage, Until::forever())).has_value());
}

// "kind, compression" of the newest file, which is the one with the largest number.
Task<std::string> newest_file(Runtime& runtime) {
  const auto files = co_await storage::testing::filters_in(
      runtime, {"/data/tables/shard-0000", "/data/tables/shard-0001"});
  EXPECT_TRUE(files.has_value()) << files.error().to_string();
  std::string told;
  for (const auto& [path, file] : *files) {
    told = fmt::format("{}, {}", name_of(file.kind), name_of(file.compression));
  }
  co_return told;
}

TEST(Catalog, FilesHaveTheFiltersThatTheStatementNamed) {
  CatalogWorld world;
  tell(world, [](Runtime& runtime, NodeStorage& node, Catalog& catalog) -> Task<void> {
    EXPECT_EQ(co_await run_change(catalog, kKeyspace), "done");
    EXPECT_EQ(co_await run_change(catalog,
                                  "CREATE TABLE t (k int PRIMARY KEY, v text) WITH filter = "
                                  "{'class': 'consistent_cuckoo'}"),
              "done");
    co_await write_and_flush(node, catalog);
    EXPECT_EQ(co_await newest_file(runtime), "consistent_cuckoo, lz4");
    EXPECT_EQ(co_await run_change(catalog,
                                  "ALTER TABLE t WITH filter = {'class': 'bloom', "
                                  "'bits_per_hash': 16} AND compression = {'enabled': false}"),
              "done");
    co_await write_and_flush(node, catalog);
    EXPECT_EQ(co_await newest_file(runtime), "bloom, none");
    const base::Uuid table = catalog.snapshot()->users().find_table("ks", "t")->id;
    EXPECT_TRUE((co_await catalog.truncate(table, Until::forever())).has_value());
    co_await write_and_flush(node, catalog);
    EXPECT_EQ(co_await newest_file(runtime), "bloom, none") << "the new storage, too";
  });
  tell(world, [](Runtime& runtime, NodeStorage& node, Catalog& catalog) -> Task<void> {
    co_await write_and_flush(node, catalog);
    EXPECT_EQ(co_await newest_file(runtime), "bloom, none") << "after a start, too";
  });
}

// As after a crash between two tables.
TEST(Catalog, AStartTellsTheEngineWhatItDoesNotKnow) {
  CatalogWorld world;
  tell(world, [](Runtime&, NodeStorage& node, Catalog& catalog) -> Task<void> {
    EXPECT_EQ(co_await run_change(catalog, kKeyspace), "done");
    EXPECT_EQ(co_await run_change(catalog,
                                  "CREATE TABLE t (k int PRIMARY KEY, v text) WITH filter = "
                                  "{'class': 'bloom'}"),
              "done");
    const auto storage =
        catalog.snapshot()->storage_of(catalog.snapshot()->users().find_table("ks", "t")->id);
    EXPECT_TRUE((co_await node.tablets().alter_table(*storage, {})).has_value());
  });
  tell(world, [](Runtime& runtime, NodeStorage& node, Catalog& catalog) -> Task<void> {
    co_await write_and_flush(node, catalog);
    EXPECT_EQ(co_await newest_file(runtime), "bloom, lz4");
  });
}

// A core or a disk that hangs: the change is in force, and does not wait for what it leaves behind.
TEST(Catalog, AChangeDoesNotWaitForeverForWhatIsDropped) {
  CatalogWorld world;
  world.run([&](Runtime& runtime) {
    CatalogOptions hasty = testing::catalog_options();
    hasty.drop_wait = runtime::Duration::zero();
    const auto body = [](Runtime&, NodeStorage& node, Catalog& catalog) -> Task<void> {
      co_await make_table_t(catalog);
      const CatalogPtr before = catalog.snapshot();
      const auto storage = before->storage_of(before->users().find_table("ks", "t")->id);
      CO_ASSERT_TRUE(storage.has_value());
      EXPECT_EQ(co_await run_change(catalog, "DROP TABLE t"), "done");
      EXPECT_TRUE((co_await node.coordinator().flush(*storage, Until::forever())).has_value())
          << "it is still being dropped";
      // What is made meanwhile stays.
      EXPECT_EQ(co_await run_change(catalog, "CREATE TABLE t (k int PRIMARY KEY)"), "done");
      const CatalogPtr after = catalog.snapshot();
      const auto remade = after->storage_of(after->users().find_table("ks", "t")->id);
      CO_ASSERT_TRUE(remade.has_value());
      co_await catalog.stop();
      const auto gone = co_await node.coordinator().flush(*storage, Until::forever());
      EXPECT_TRUE(gone.failed_with(Errc::not_found));
      EXPECT_TRUE((co_await node.coordinator().flush(*remade, Until::forever())).has_value());
    };
    return testing::live_with_catalog(runtime, world.decided, body, std::move(hasty));
  });
}

TEST(Catalog, TruncateGivesATableNewStorageForEver) {
  CatalogWorld world;
  TableId first;
  TableId second;
  tell(world, [&](Runtime&, NodeStorage& node, Catalog& catalog) -> Task<void> {
    co_await make_table_t(catalog);
    const base::Uuid table = catalog.snapshot()->users().find_table("ks", "t")->id;
    const base::Uuid version = catalog.snapshot()->schema_version();
    first = *catalog.snapshot()->storage_of(table);
    EXPECT_TRUE(
        (co_await node.coordinator().write(some_write(first), Until::forever())).has_value());
    EXPECT_TRUE((co_await catalog.truncate(table, Until::forever())).has_value());
    second = *catalog.snapshot()->storage_of(table);
    EXPECT_GT(second, first);
    EXPECT_EQ(catalog.snapshot()->schema_version(), version);
    const auto late = co_await node.coordinator().write(some_write(first), Until::forever());
    EXPECT_TRUE(late.failed_with(Errc::not_found));
    EXPECT_TRUE(
        (co_await node.coordinator().write(some_write(second), Until::forever())).has_value());
  });
  tell(world, [&](Runtime&, NodeStorage&, Catalog& catalog) -> Task<void> {
    const base::Uuid table = catalog.snapshot()->users().find_table("ks", "t")->id;
    EXPECT_EQ(catalog.snapshot()->storage_of(table), second);
    EXPECT_EQ(co_await run_change(catalog, "DROP TABLE t"), "done");
    EXPECT_TRUE((co_await catalog.truncate(table, Until::forever()))
                    .failed_with(protocol::ErrorCode::invalid));
    EXPECT_EQ(co_await run_change(catalog, "CREATE TABLE t (k int PRIMARY KEY)"), "done");
    const base::Uuid again = catalog.snapshot()->users().find_table("ks", "t")->id;
    EXPECT_GT(*catalog.snapshot()->storage_of(again), second);
  });
}

TEST(Catalog, ChangesThatMeetGoOneAfterTheOther) {
  CatalogWorld world;
  tell(world, [](Runtime&, NodeStorage&, Catalog& catalog) -> Task<void> {
    EXPECT_EQ(co_await run_change(catalog, kKeyspace), "done");
    std::vector<Task<std::string>> changes;
    for (int i = 0; i < 8; ++i) {
      changes.push_back(run_change(catalog, "CREATE TABLE t (k int PRIMARY KEY)"));
      changes.push_back(
          run_change(catalog, "CREATE TABLE t" + std::to_string(i) + " (k int PRIMARY KEY)"));
    }
    const auto outcomes = co_await runtime::when_all(std::move(changes));
    EXPECT_EQ(std::ranges::count(outcomes, "done"), 9);
    EXPECT_EQ(catalog.snapshot()->users().find_keyspace("ks")->tables.size(), 9U);
    std::set<TableId> ids;
    for (const auto& [table, id] : catalog.snapshot()->storage_ids()) ids.insert(id);
    EXPECT_EQ(ids.size(), 9U);
  });
}

TEST(Catalog, AKeyspaceTakesItsTablesWithIt) {
  CatalogWorld world;
  tell(world, [](Runtime&, NodeStorage& node, Catalog& catalog) -> Task<void> {
    co_await make_table_t(catalog);
    const TableId id = catalog.snapshot()->storage_ids().begin()->second;
    EXPECT_EQ(co_await run_change(catalog, "DROP KEYSPACE ks"), "done");
    EXPECT_TRUE(catalog.snapshot()->storage_ids().empty());
    const auto late = co_await node.coordinator().write(some_write(id), Until::forever());
    EXPECT_TRUE(late.failed_with(Errc::not_found));
  });
}

// ---- Crashes ----

// What is in the engine is exactly what the catalog says.
Task<void> expect_agreement(NodeStorage& node, Catalog& catalog) {
  std::vector<TableId> used;
  for (const auto& [table, id] : catalog.snapshot()->storage_ids()) used.push_back(id);
  std::ranges::sort(used);
  const auto there = co_await node.tablets().tables();
  CO_ASSERT_OK(there);
  EXPECT_EQ(*there, used);
}

Task<void> run_step(Catalog& catalog, std::string step) {
  if (step != "TRUNCATE t") {
    EXPECT_EQ(co_await run_change(catalog, step), "done");
    co_return;
  }
  const base::Uuid table = catalog.snapshot()->users().find_table("ks", "t")->id;
  EXPECT_TRUE((co_await catalog.truncate(table, Until::forever())).has_value());
}

std::optional<TableId> storage_of_t(const Catalog& catalog) {
  const model::TablePtr table = catalog.snapshot()->users().find_table("ks", "t");
  return table == nullptr ? std::nullopt : catalog.snapshot()->storage_of(table->id);
}

// Steps, with a row in t, on a machine that loses its power after so many events; returns whether
// they were still under way.
bool survives(const std::vector<std::string>& steps, std::uint64_t seed, std::uint64_t events) {
  CatalogWorld world(seed);
  std::optional<TableId> with_row;
  tell(world, [&](Runtime&, NodeStorage& node, Catalog& catalog) -> Task<void> {
    co_await make_table_t(catalog);
    with_row = storage_of_t(catalog);
    co_await write_some_row(node, *with_row);
  });
  // As they were told, from the beginning on.
  std::vector<std::pair<base::Uuid, std::optional<TableId>>> told;
  world.start([&](Runtime& runtime) {
    return testing::live_with_catalog(
        runtime, world.decided, [&](Runtime& rt, NodeStorage&, Catalog& catalog) -> Task<void> {
          const auto tell_it = [&] {
            told.emplace_back(catalog.snapshot()->schema_version(), storage_of_t(catalog));
          };
          tell_it();
          for (const std::string& step : steps) {
            co_await run_step(catalog, step);
            tell_it();
          }
          runtime::Event never(rt);
          EXPECT_TRUE((co_await never.wait(Until::forever())).has_value());
        });
  });
  const auto done = [&] { return told.size() == steps.size() + 1; };
  std::uint64_t left = events;
  while (left > 0 && !done()) left -= told.empty() ? 0 : 1, world.world().step();
  world.machine().power_loss();
  const auto look = [&](Runtime&, NodeStorage& node, Catalog& catalog) -> Task<void> {
    const std::pair now(catalog.snapshot()->schema_version(), storage_of_t(catalog));
    // What was told is kept; the one under way may have been done or not.
    if (done()) EXPECT_EQ(now, told.back());
    for (std::size_t i = 0; i + 1 < told.size(); ++i) EXPECT_NE(now, told[i]);
    if (now.second) EXPECT_EQ(co_await has_some_row(node, *now.second), now.second == with_row);
    co_await expect_agreement(node, catalog);
  };
  tell(world, look);
  tell(world, look);
  return !done();
}

TEST(CatalogCrash, WhateverACrashLeavesIsFinishedAtStart) {
  const std::vector<std::string> steps = {"CREATE TABLE u (k int PRIMARY KEY)", "TRUNCATE t",
                                          "DROP TABLE t"};
  for (std::uint64_t events = 1; survives(steps, events, events); events += 3) {
    if (::testing::Test::HasFailure()) FAIL() << "after " << events << " events";
  }
}

// ---- Trouble on the way ----

// The word of a client who goes away so long after having asked.
Task<std::string> change_with_patience(Runtime& runtime, Catalog& catalog, std::string text,
                                       runtime::Duration patience) {
  auto statement = parser::parse(text);
  const auto changed =
      co_await catalog.change(*std::move(statement), "ks", Until::after(runtime, patience));
  co_return changed ? "done" : changed.error().to_string();
}

// What is in force before a power loss is in force after it.
void expect_in_force_after_power_loss(CatalogWorld& world, const base::Uuid& version) {
  world.machine().power_loss();
  tell(world, [&](Runtime&, NodeStorage& node, Catalog& catalog) -> Task<void> {
    EXPECT_EQ(catalog.snapshot()->schema_version(), version);
    for (const auto& [table, id] : catalog.snapshot()->storage_ids()) {
      EXPECT_TRUE(
          (co_await node.coordinator().write(some_write(id), Until::forever())).has_value());
    }
  });
}

// Begins a life with table t, tells the story, and pulls the plug at its end.
void tell_until_power_loss(CatalogWorld& world, const testing::CatalogBody& body) {
  bool told = false;
  world.start([&](Runtime& runtime) {
    return testing::live_with_catalog(
        runtime, world.decided,
        [&](Runtime& rt, NodeStorage& node, Catalog& catalog) -> Task<void> {
          co_await make_table_t(catalog);
          co_await body(rt, node, catalog);
          told = true;
          runtime::Event never(rt);
          EXPECT_TRUE((co_await never.wait(Until::forever())).has_value());
        });
  });
  EXPECT_TRUE(world.world().run_until([&] { return told; }, std::chrono::hours(1)));
}

TEST(CatalogTrouble, AClientWhoGoesAwayLeavesMemoryAndDiskOfOneMind) {
  int done = 0;
  for (int microseconds = 0; microseconds < 2000; microseconds += 20) {
    CatalogWorld world(static_cast<std::uint64_t>(microseconds) + 1);
    base::Uuid version;
    tell_until_power_loss(world, [&](Runtime& rt, NodeStorage&, Catalog& catalog) -> Task<void> {
      const base::Uuid before = catalog.snapshot()->schema_version();
      const std::string outcome = co_await change_with_patience(
          rt, catalog, "DROP TABLE t", std::chrono::microseconds(microseconds));
      version = catalog.snapshot()->schema_version();
      EXPECT_EQ(outcome == "done", version != before);
      done += outcome == "done" ? 1 : 0;
    });
    expect_in_force_after_power_loss(world, version);
    ASSERT_FALSE(HasFailure()) << "after " << microseconds << " microseconds";
  }
  EXPECT_GT(done, 0);
}

TEST(CatalogTrouble, ADropOnAFullDiskIsInForceAndFinishedWhenThereIsSpace) {
  CatalogWorld world;
  base::Uuid version;
  tell_until_power_loss(world, [&](Runtime& rt, NodeStorage&, Catalog& catalog) -> Task<void> {
    const base::Uuid before = catalog.snapshot()->schema_version();
    world.disk().set_capacity(world.disk().used_bytes());
    EXPECT_EQ(co_await run_change(catalog, "DROP TABLE t"), "done");
    version = catalog.snapshot()->schema_version();
    EXPECT_NE(version, before);
    EXPECT_THAT(co_await change_with_patience(rt, catalog, "CREATE TABLE u (k int PRIMARY KEY)",
                                              std::chrono::seconds(20)),
                StartsWith("0x"))
        << "a table needs room";
    EXPECT_EQ(catalog.snapshot()->schema_version(), version);
  });
  world.disk().set_capacity(std::uint64_t{64} << 30);
  expect_in_force_after_power_loss(world, version);
  tell(world, [&](Runtime&, NodeStorage& node, Catalog& catalog) -> Task<void> {
    co_await expect_agreement(node, catalog);
  });
}

// ---- Decided elsewhere ----

// The storage ids of tables t and u, and the first that was not given yet.
struct Numbers {
  TableId t{1};
  TableId u{2};
  TableId next{3};
};

DecidedSchema decided(std::uint64_t version, std::initializer_list<std::string_view> statements,
                      Numbers numbers = {}) {
  testing::SchemaStory story;
  story.prepare({kCreateKeyspace});
  story.prepare(statements);
  DecidedSchema made;
  made.users = story.schema;
  for (const auto& [name, table] : made.users.find_keyspace("ks")->tables) {
    made.storage.emplace(table->id, name == "t" ? numbers.t : numbers.u);
  }
  made.next_storage = numbers.next;
  made.context_secret = ContextSecret({std::byte{7}});
  made.version = version;
  return made;
}

constexpr std::string_view kCreateT = "CREATE TABLE t (k int PRIMARY KEY)";
constexpr std::string_view kCreateU = "CREATE TABLE u (k int PRIMARY KEY)";

// Somebody else was first, once.
class SecondInLine final : public SchemaAuthority {
 public:
  explicit SecondInLine(Catalog& catalog) : catalog_(catalog) { catalog.decide_by(*this); }

  Task<QueryResult<std::optional<Catalog::Change>>> change(SchemaFunction function,
                                                           Until until) override {
    EXPECT_FALSE(function(model::Schema(), {}).has_value()) << "no data centre to name";
    CO_TRY(SchemaTransition transition, function(model::Schema(), data_centers_));
    DecidedSchema next = decided(5, {});
    next.users = transition.next;
    EXPECT_TRUE((co_await catalog_.adopt(std::move(next), std::move(until))).has_value());
    co_return transition.change;
  }
  Task<QueryResult<void>> truncate(base::Uuid, Until) override {
    co_return invalid("not asked for");
  }

 private:
  Catalog& catalog_;
  const std::vector<std::string> data_centers_ = {"east", "west"};
};

TEST(CatalogAuthority, DecidesInTheCatalogsStead) {
  CatalogWorld world;
  tell(world, [](Runtime&, NodeStorage&, Catalog& catalog) -> Task<void> {
    SecondInLine authority(catalog);
    EXPECT_EQ(co_await run_change(catalog,
                                  "CREATE KEYSPACE ks WITH replication = {'class': "
                                  "'NetworkTopologyStrategy', 'replication_factor': 2}"),
              "done");
    const auto keyspace = catalog.snapshot()->users().find_keyspace("ks");
    CO_ASSERT_TRUE(keyspace != nullptr);
    EXPECT_EQ(keyspace->replication.at("east"), "2");
    EXPECT_EQ(keyspace->replication.at("west"), "2");
    EXPECT_EQ(catalog.decided_version(), 5U);
    EXPECT_TRUE(catalog.snapshot()->has_all_rows());
    EXPECT_THAT(co_await run_change(catalog, "DROP KEYSPACE other"), StartsWith("0x2200"));
  });
}

// A catalog by itself, to which nothing was told yet.
void tell_alone(CatalogWorld& world, const testing::CatalogBody& body) {
  world.run([&](Runtime& runtime) -> Task<void> {
    auto storage = co_await NodeStorage::open(runtime, testing::small_storage());
    CO_ASSERT_OK(storage);
    const auto metadata =
        metadata::testing::with_keyspace(metadata::testing::a_cluster(1, 4), "ks", 1);
    CO_ASSERT_OK(co_await (*storage)->act_by(metadata, 1));
    {
      Catalog catalog(runtime, (*storage)->tablets(), testing::catalog_options());
      co_await body(runtime, **storage, catalog);
      co_await catalog.stop();
    }
    CO_ASSERT_OK(co_await (*storage)->stop());
  });
}

TEST(CatalogAuthority, WhatWasDecidedIsAdoptedInItsOrder) {
  CatalogWorld world;
  tell_alone(world, [](Runtime&, NodeStorage&, Catalog& catalog) -> Task<void> {
    std::vector<std::string> events;
    catalog.add_listener([&](const Catalog::Change& change) {
      events.push_back(testing::SchemaStory::told(change));
    });
    EXPECT_FALSE(catalog.snapshot()->has_all_rows()) << "nobody said so yet";
    const auto adopt = [&](DecidedSchema next) {
      return catalog.adopt(std::move(next), Until::forever());
    };
    CO_ASSERT_OK(co_await adopt(decided(7, {kCreateT})));
    EXPECT_THAT(events, ElementsAre("created keyspace ks", "created table ks.t"));
    const CatalogPtr first = catalog.snapshot();
    const base::Uuid table = first->users().find_table("ks", "t")->id;
    EXPECT_EQ(first->storage_of(table), TableId{1});
    EXPECT_EQ(catalog.context_secret().reveal(), decided(7, {}).context_secret.reveal());
    // Older, the same again, and one that says nothing new of the schema.
    CO_ASSERT_OK(co_await adopt(decided(6, {})));
    CO_ASSERT_OK(co_await adopt(decided(7, {kCreateT})));
    CO_ASSERT_OK(co_await adopt(decided(8, {kCreateT})));
    EXPECT_EQ(catalog.snapshot(), first);
    EXPECT_EQ(catalog.decided_version(), 8U);
    // Only the number of nodes is another.
    DecidedSchema shared = decided(9, {kCreateT});
    shared.has_all_rows = false;
    CO_ASSERT_OK(co_await adopt(std::move(shared)));
    EXPECT_FALSE(catalog.snapshot()->has_all_rows());
    EXPECT_EQ(catalog.snapshot()->schema_version(), first->schema_version());
    const auto truncated = co_await catalog.truncate(table, Until::forever());
    EXPECT_TRUE(truncated.failed_with(protocol::ErrorCode::invalid));
    // Only the number of the keyspace.
    DecidedSchema numbered = decided(10, {kCreateT, kCreateU});
    numbered.keyspaces = {{"ks", model::KeyspaceNumber{4}}};
    CO_ASSERT_OK(co_await adopt(std::move(numbered)));
    EXPECT_EQ(catalog.snapshot()->keyspace_number("ks"), model::KeyspaceNumber{4});
    EXPECT_EQ(events.size(), 3U);
    EXPECT_TRUE(catalog.snapshot()->has_all_rows());
  });
}

// A document that says nothing of a table must have given its id: it may be an older one.
TEST(CatalogAuthority, AStartWithAnOlderDocumentKeepsWhatOnlyANewerOneNames) {
  CatalogWorld world;
  tell_alone(world, [](Runtime&, NodeStorage& node, Catalog& catalog) -> Task<void> {
    CO_ASSERT_OK(co_await catalog.adopt(decided(9, {kCreateT, kCreateU}), Until::forever()));
    co_await write_some_row(node, TableId{2});
  });
  world.machine().power_loss();
  tell_alone(world, [](Runtime&, NodeStorage& node, Catalog& catalog) -> Task<void> {
    EXPECT_EQ(catalog.decided_version(), 0U);
    EXPECT_TRUE(catalog.snapshot()->users().keyspaces().empty());
    const Numbers before_u{.next = TableId{2}};
    CO_ASSERT_OK(co_await catalog.adopt(decided(8, {kCreateT}, before_u), Until::forever()));
    EXPECT_EQ(catalog.snapshot()->storage_ids().size(), 1U);
    CO_ASSERT_OK(co_await catalog.adopt(decided(9, {kCreateT, kCreateU}), Until::forever()));
    EXPECT_TRUE(co_await has_some_row(node, TableId{2}));
    const CatalogPtr now = catalog.snapshot();
    CO_ASSERT_OK(co_await catalog.adopt(decided(8, {}), Until::forever()));
    EXPECT_EQ(catalog.snapshot(), now);
  });
}

// A table that was dropped while the node was down.
TEST(CatalogAuthority, AStartDropsWhatIsNoLongerInTheSchema) {
  CatalogWorld world;
  tell_alone(world, [](Runtime&, NodeStorage&, Catalog& catalog) -> Task<void> {
    CO_ASSERT_OK(co_await catalog.adopt(decided(7, {kCreateT}), Until::forever()));
  });
  tell_alone(world, [](Runtime&, NodeStorage& node, Catalog& catalog) -> Task<void> {
    EXPECT_TRUE(co_await is_there(node, TableId{1}));
    CO_ASSERT_OK(co_await catalog.adopt(decided(8, {}), Until::forever()));
    EXPECT_FALSE(co_await is_there(node, TableId{1}));
  });
}

// Dropped and made again under the same uuid, or truncated, while the node was down or did not
// listen: the schema says nothing of it, the storage id does.
TEST(CatalogAuthority, ATableThatWasMadeAgainUnderItsIdIsEmpty) {
  CatalogWorld world;
  const Numbers again{.t = TableId{3}, .next = TableId{4}};
  const Numbers once_more{.t = TableId{5}, .next = TableId{6}};
  tell_alone(world, [&](Runtime&, NodeStorage& node, Catalog& catalog) -> Task<void> {
    CO_ASSERT_OK(co_await catalog.adopt(decided(7, {kCreateT}), Until::forever()));
    const CatalogPtr before = catalog.snapshot();
    co_await write_some_row(node, TableId{1});
    CO_ASSERT_OK(co_await catalog.adopt(decided(9, {kCreateT}, again), Until::forever()));
    EXPECT_EQ(catalog.snapshot()->users(), before->users());
    EXPECT_GT(catalog.snapshot()->number(), before->number()) << "plans are made again";
    EXPECT_FALSE(co_await has_some_row(node, TableId{3}));
    EXPECT_FALSE(co_await is_there(node, TableId{1}));
    co_await write_some_row(node, TableId{3});
  });
  world.machine().power_loss();
  tell_alone(world, [&](Runtime&, NodeStorage& node, Catalog& catalog) -> Task<void> {
    CO_ASSERT_OK(co_await catalog.adopt(decided(11, {kCreateT}, once_more), Until::forever()));
    EXPECT_FALSE(co_await has_some_row(node, TableId{5}));
    co_await expect_agreement(node, catalog);
  });
}

// What was made for a decision that was given up is used by the next one, or dropped.
TEST(CatalogAuthority, WhatWasGivenUpIsTakenUpAgain) {
  for (const bool is_wanted : {true, false}) {
    CatalogWorld world;
    tell_alone(world, [&](Runtime& runtime, NodeStorage& node, Catalog& catalog) -> Task<void> {
      const auto given_up =
          co_await catalog.adopt(decided(7, {kCreateT}), Until::after(runtime, {}));
      EXPECT_TRUE(given_up.failed_with(Errc::timeout));
      EXPECT_EQ(catalog.decided_version(), 0U);
      EXPECT_TRUE(catalog.snapshot()->users().keyspaces().empty());
      DecidedSchema next = is_wanted ? decided(7, {kCreateT}) : decided(8, {});
      CO_ASSERT_OK(co_await catalog.adopt(std::move(next), Until::forever()));
      EXPECT_EQ(co_await is_there(node, TableId{1}), is_wanted);
      co_await expect_agreement(node, catalog);
    });
  }
}

}  // namespace
}  // namespace helenus::cql
