// Stories about the catalog: what it keeps, what it tells, and what crashes leave of it.
#include "cql/catalog/catalog.h"

#include <optional>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cql/catalog/catalog_document.h"
#include "cql/catalog/catalog_test_support.h"
#include "cql/schema/schema_story_test_support.h"
#include "runtime/contract/world.h"
#include "runtime/event.h"
#include "runtime/when_all.h"
#include "storage/engine/file_filters_test_support.h"
#include "storage/local/local_store.h"

namespace helenus::cql {
namespace {

using base::Errc;
using runtime::Runtime;
using runtime::Task;
using runtime::Until;
using storage::TableId;
using testing::CatalogWorld;
using testing::DecidedSoFar;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
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
  write.partition = base::Bytes::copy_of("12345678k");
  write.mutation.timestamp = causality::Timestamp{1};
  write.mutation.cells.push_back({.row = base::Bytes::copy_of("r"),
                                  .column = causality::ColumnId{1},
                                  .expires = std::nullopt,
                                  .value = base::Bytes::copy_of("v")});
  return write;
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

// As after a crash between the document and the engine.
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
Task<void> expect_agreement(NodeStorage& node, Catalog& catalog, std::uint64_t ids_max) {
  std::set<TableId> used;
  for (const auto& [table, id] : catalog.snapshot()->storage_ids()) used.insert(id);
  for (std::uint64_t id = 1; id <= ids_max; ++id) {
    const auto made = co_await node.tablets().create_table(TableId{id}, {});
    EXPECT_EQ(made.failed_with(Errc::already_exists), used.contains(TableId{id})) << id;
  }
}

// Runs statements on a machine that loses its power after so many events; returns whether they were
// still under way.
bool survives(const std::vector<std::string>& statements, std::uint64_t seed,
              std::uint64_t events) {
  CatalogWorld world(seed);
  tell(world, [](Runtime&, NodeStorage&, Catalog& catalog) -> Task<void> {
    co_await make_table_t(catalog);
  });
  std::vector<base::Uuid> versions;
  bool done = false;
  world.start([&](Runtime& runtime) {
    return testing::live_with_catalog(
        runtime, world.decided, [&](Runtime& rt, NodeStorage&, Catalog& catalog) -> Task<void> {
          versions.push_back(catalog.snapshot()->schema_version());
          for (const std::string& statement : statements) {
            EXPECT_EQ(co_await run_change(catalog, statement), "done");
            versions.push_back(catalog.snapshot()->schema_version());
          }
          done = true;
          runtime::Event never(rt);
          EXPECT_TRUE((co_await never.wait(Until::forever())).has_value());
        });
  });
  std::uint64_t left = events;
  while (left > 0 && !done) left -= versions.empty() ? 0 : 1, world.world().step();
  world.machine().power_loss();
  tell(world, [&](Runtime&, NodeStorage& node, Catalog& catalog) -> Task<void> {
    const base::Uuid now = catalog.snapshot()->schema_version();
    // What was told is kept; the one under way may have been done or not.
    if (done) EXPECT_EQ(now, versions.back());
    if (versions.size() > 1) EXPECT_NE(now, versions.front());
    co_await expect_agreement(node, catalog, 12);
  });
  return !done;
}

TEST(CatalogCrash, WhateverACrashLeavesIsFinishedAtStart) {
  const std::vector<std::string> statements = {"CREATE TABLE u (k int PRIMARY KEY)",
                                               "DROP TABLE t"};
  for (std::uint64_t events = 1; survives(statements, events, events); events += 3) {
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
  tell_until_power_loss(world, [&](Runtime&, NodeStorage&, Catalog& catalog) -> Task<void> {
    const base::Uuid before = catalog.snapshot()->schema_version();
    world.disk().set_capacity(world.disk().used_bytes());
    EXPECT_EQ(co_await run_change(catalog, "DROP TABLE t"), "done");
    version = catalog.snapshot()->schema_version();
    EXPECT_NE(version, before);
    EXPECT_THAT(co_await run_change(catalog, "CREATE TABLE u (k int PRIMARY KEY)"),
                StartsWith("0x"))
        << "a table needs room";
    EXPECT_EQ(catalog.snapshot()->schema_version(), version);
  });
  world.disk().set_capacity(std::uint64_t{64} << 30);
  expect_in_force_after_power_loss(world, version);
  tell(world, [&](Runtime&, NodeStorage& node, Catalog& catalog) -> Task<void> {
    co_await expect_agreement(node, catalog, 8);
  });
}

// ---- Decided elsewhere ----

DecidedSchema decided(std::uint64_t version, std::initializer_list<std::string_view> statements) {
  testing::SchemaStory story;
  story.prepare({kCreateKeyspace});
  story.prepare(statements);
  return {.users = story.schema, .version = version, .has_all_rows = true};
}

// Somebody else was first, once.
class SecondInLine final : public SchemaAuthority {
 public:
  explicit SecondInLine(Catalog& catalog) : catalog_(catalog) { catalog.decide_by(*this); }

  Task<QueryResult<std::optional<Catalog::Change>>> change(SchemaFunction function,
                                                           Until until) override {
    EXPECT_FALSE(function(model::Schema(), {}).has_value()) << "no data centre to name";
    CO_TRY(SchemaTransition transition, function(model::Schema(), data_centers_));
    const auto adopted =
        co_await catalog_.adopt({.users = transition.next, .version = 5}, std::move(until));
    EXPECT_TRUE(adopted.has_value());
    co_return transition.change;
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
    const auto local = co_await storage::LocalStore::open(runtime, "/data/local");
    CO_ASSERT_OK(local);
    {
      const auto catalog = co_await Catalog::open(runtime, (*storage)->tablets(), **local,
                                                  testing::catalog_options());
      CO_ASSERT_OK(catalog);
      co_await body(runtime, **storage, **catalog);
      co_await (*catalog)->stop();
    }
    CO_ASSERT_OK(co_await (*storage)->stop());
  });
}

TEST(CatalogAuthority, WhatWasDecidedIsAdoptedInItsOrderAndKept) {
  CatalogWorld world;
  std::optional<TableId> storage;
  tell_alone(world, [&](Runtime&, NodeStorage&, Catalog& catalog) -> Task<void> {
    std::vector<std::string> events;
    catalog.add_listener([&](const Catalog::Change& change) {
      events.push_back(testing::SchemaStory::told(change));
    });
    EXPECT_FALSE(catalog.snapshot()->has_all_rows()) << "nobody said so yet";
    const auto adopt = [&](DecidedSchema next) {
      return catalog.adopt(std::move(next), Until::forever());
    };
    CO_ASSERT_OK(co_await adopt(decided(7, {"CREATE TABLE t (k int PRIMARY KEY)"})));
    EXPECT_THAT(events, ElementsAre("created keyspace ks", "created table ks.t"));
    const CatalogPtr first = catalog.snapshot();
    storage = first->storage_of(first->users().find_table("ks", "t")->id);
    EXPECT_TRUE(storage.has_value());
    // Older, and the same again.
    CO_ASSERT_OK(co_await adopt(decided(6, {})));
    CO_ASSERT_OK(co_await adopt(decided(7, {"CREATE TABLE t (k int PRIMARY KEY)"})));
    EXPECT_EQ(catalog.snapshot(), first);
    // Only the number of nodes is another.
    DecidedSchema shared = decided(8, {"CREATE TABLE t (k int PRIMARY KEY)"});
    shared.has_all_rows = false;
    CO_ASSERT_OK(co_await adopt(std::move(shared)));
    EXPECT_FALSE(catalog.snapshot()->has_all_rows());
    EXPECT_EQ(catalog.snapshot()->schema_version(), first->schema_version());
    const auto truncated =
        co_await catalog.truncate(first->users().find_table("ks", "t")->id, Until::forever());
    EXPECT_TRUE(truncated.failed_with(protocol::ErrorCode::invalid));
    CO_ASSERT_OK(co_await adopt(
        decided(9, {"CREATE TABLE t (k int PRIMARY KEY)", "CREATE TABLE u (k int PRIMARY KEY)"})));
    EXPECT_EQ(events.size(), 3U);
    EXPECT_TRUE(catalog.snapshot()->has_all_rows());
  });
  world.machine().power_loss();
  tell_alone(world, [&](Runtime&, NodeStorage& node, Catalog& catalog) -> Task<void> {
    EXPECT_EQ(catalog.decided_version(), 0U);
    EXPECT_TRUE(catalog.snapshot()->users().keyspaces().empty());
    // What is older than what the tables were made by drops none of them.
    CO_ASSERT_OK(co_await catalog.adopt(decided(8, {}), Until::forever()));
    EXPECT_TRUE((co_await node.coordinator().flush(*storage, Until::forever())).has_value());
    CO_ASSERT_OK(co_await catalog.adopt(
        decided(9, {"CREATE TABLE t (k int PRIMARY KEY)", "CREATE TABLE u (k int PRIMARY KEY)"}),
        Until::forever()));
    const CatalogPtr now = catalog.snapshot();
    EXPECT_EQ(now->storage_of(now->users().find_table("ks", "t")->id), storage);
    CO_ASSERT_OK(co_await catalog.adopt(decided(8, {}), Until::forever()));
    EXPECT_EQ(catalog.snapshot(), now);
  });
}

// A table that was dropped while the node was down.
TEST(CatalogAuthority, AStartDropsWhatIsNoLongerInTheSchema) {
  CatalogWorld world;
  std::optional<TableId> storage;
  tell_alone(world, [&](Runtime&, NodeStorage&, Catalog& catalog) -> Task<void> {
    CO_ASSERT_OK(co_await catalog.adopt(decided(7, {"CREATE TABLE t (k int PRIMARY KEY)"}),
                                        Until::forever()));
    storage = catalog.snapshot()->storage_ids().begin()->second;
  });
  tell_alone(world, [&](Runtime&, NodeStorage& node, Catalog& catalog) -> Task<void> {
    CO_ASSERT_OK(co_await catalog.adopt(decided(8, {}), Until::forever()));
    const auto gone = co_await node.coordinator().flush(*storage, Until::forever());
    EXPECT_TRUE(gone.failed_with(Errc::not_found));
  });
}

Task<void> refuse_to_open(Runtime& runtime, std::string words) {
  auto storage = co_await NodeStorage::open(runtime, testing::small_storage());
  CO_ASSERT_OK(storage);
  const auto local = co_await storage::LocalStore::open(runtime, "/data/local");
  CO_ASSERT_OK(local);
  {
    const auto catalog =
        co_await Catalog::open(runtime, (*storage)->tablets(), **local, testing::catalog_options());
    EXPECT_TRUE(catalog.failed_with(Errc::corrupt));
    if (!catalog) EXPECT_THAT(catalog.error().to_string(), HasSubstr(words));
  }
  CO_ASSERT_OK(co_await (*storage)->stop());
}

TEST(CatalogTrouble, ALostOrDamagedDocumentIsAnErrorAndNoEmptyCatalog) {
  CatalogWorld world;
  tell(world, [](Runtime&, NodeStorage&, Catalog& catalog) -> Task<void> {
    co_await make_table_t(catalog);
  });
  world.flip_bit("/data/local/tables", 300);
  world.run([](Runtime& runtime) { return refuse_to_open(runtime, "/data/local/tables"); });
  world.remove("/data/local/tables");
  world.run([](Runtime& runtime) { return refuse_to_open(runtime, "no document"); });
}

// ---- The document ----

CatalogDocument some_document() {
  CatalogDocument document;
  document.storage = {{base::Uuid::from_random(1, 1), TableId{5}},
                      {base::Uuid::from_random(2, 2), TableId{7}}};
  document.doomed = {TableId{3}, TableId{9}};
  document.next_storage_id = 10;
  document.decided_version = 300;
  return document;
}

TEST(CatalogDocument, ComesBackFromItsBytes) {
  for (const CatalogDocument& document : {CatalogDocument(), some_document()}) {
    const auto decoded = decode_catalog_document(encode(document));
    ASSERT_TRUE(decoded.has_value()) << decoded.error().to_string();
    EXPECT_EQ(*decoded, document);
  }
}

// Its checksum is that of the local store's file.
TEST(CatalogDocument, CutsAndOtherVersionsAreSeen) {
  const base::Bytes whole = encode(some_document());
  for (std::size_t size = 0; size < whole.size(); ++size) {
    EXPECT_TRUE(decode_catalog_document(whole.view().first(size)).failed_with(Errc::corrupt))
        << size;
  }
  std::string newer(whole.text());
  newer[0] = 2;
  EXPECT_TRUE(decode_catalog_document(base::as_bytes(newer)).failed_with(Errc::unsupported));
}

TEST(CatalogDocument, IdsThatDoNotAddUpAreCorrupt) {
  const auto fails = [](const CatalogDocument& document, std::string_view words) {
    const auto decoded = decode_catalog_document(encode(document));
    EXPECT_TRUE(decoded.failed_with(Errc::corrupt));
    if (!decoded) EXPECT_THAT(decoded.error().to_string(), HasSubstr(std::string(words)));
  };
  CatalogDocument twice = some_document();
  twice.doomed.insert(TableId{5});
  fails(twice, "given twice");
  CatalogDocument next = some_document();
  next.next_storage_id = 9;
  fails(next, "not below the next one");
}

}  // namespace
}  // namespace helenus::cql
