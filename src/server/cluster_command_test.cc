// helenus status and helenus ring, asking simulated servers: a good one, and many bad ones.
#include "server/cluster_command.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "admin/cluster_report.h"
#include "admin/table_report.h"
#include "metadata/metadata_test_support.h"
#include "runtime/when_all.h"
#include "server/cluster_tables.h"
#include "server/http_get.h"
#include "sim/function_process.h"
#include "sim/world.h"

namespace helenus::server {
namespace {

using base::Errc;
using metadata::testing::a_cluster;
using metadata::testing::node_id;
using runtime::Address;
using runtime::Runtime;
using runtime::StopToken;
using runtime::Task;
using runtime::Until;
using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using namespace std::chrono_literals;

// ---- The command line ----

base::Result<ClusterCommand> parse(std::vector<std::string> words) {
  CLI::App app;
  ClusterOptions options;
  add_cluster_commands(app, options);
  std::ranges::reverse(words);
  app.parse(std::move(words));
  EXPECT_TRUE(is_cluster_command(app));
  return make_cluster_command(app, options);
}

TEST(ClusterCommand, IsMadeFromTheCommandLine) {
  const auto status = parse({"status"});
  ASSERT_TRUE(status);
  EXPECT_EQ(status->kind, ClusterCommand::Kind::status);
  EXPECT_EQ(status->admin, Address::v4({127, 0, 0, 1}, 7070));
  EXPECT_FALSE(status->json);
  const auto ring = parse({"ring", "--json", "--admin", "[::1]:7071", "--keyspace", "Music_1"});
  ASSERT_TRUE(ring);
  EXPECT_EQ(ring->kind, ClusterCommand::Kind::ring);
  EXPECT_EQ(ring->admin, *Address::parse("[::1]:7071"));
  EXPECT_EQ(ring->keyspace, "Music_1");
  EXPECT_TRUE(ring->json);
}

TEST(ClusterCommand, WhatConcernsTablesIsNarrowedDownByWords) {
  const auto all = parse({"tablestats"});
  ASSERT_TRUE(all);
  EXPECT_EQ(all->kind, ClusterCommand::Kind::table_statistics);
  EXPECT_EQ(all->keyspace + all->table, "");
  const auto one = parse({"compact", "music", "plays", "--admin", "127.0.0.2:7070"});
  ASSERT_TRUE(one);
  EXPECT_EQ(one->kind, ClusterCommand::Kind::compact);
  EXPECT_EQ(one->keyspace, "music");
  EXPECT_EQ(one->table, "plays");
  EXPECT_EQ(one->timeout, kChangeTimeout) << "it may take long";
  EXPECT_EQ(parse({"tablets", "music"})->keyspace, "music");
  EXPECT_EQ(parse({"drain"})->kind, ClusterCommand::Kind::drain);
  EXPECT_EQ(parse({"missing"})->kind, ClusterCommand::Kind::missing);
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"flush", "a b"}, {"flush", "music", "../plays"}}) {
    EXPECT_TRUE(parse(words).failed_with(Errc::invalid_argument));
  }
}

TEST(ClusterCommand, BadValuesAreNamed) {
  const auto address = parse({"status", "--admin", "localhost"});
  ASSERT_TRUE(address.failed_with(Errc::invalid_argument));
  EXPECT_THAT(address.error().to_string(), HasSubstr("--admin"));
  const auto keyspace = parse({"ring", "--keyspace", "a b"});
  ASSERT_TRUE(keyspace.failed_with(Errc::invalid_argument));
  EXPECT_THAT(keyspace.error().to_string(), HasSubstr("--keyspace"));
}

TEST(ClusterCommand, HelpTellsOfItsOptions) {
  CLI::App app;
  ClusterOptions options;
  add_cluster_commands(app, options);
  for (const char* name : {"status", "ring"}) {
    EXPECT_THAT(app.get_subcommand(name)->help(),
                AllOf(HasSubstr("--admin"), HasSubstr("--keyspace"), HasSubstr("--json"),
                      HasSubstr("127.0.0.1:7070")));
  }
}

// ---- What a node says of a cluster of three, as node 1 knows it: node 3 is down ----

struct Cluster {
  Cluster() {
    for (std::uint8_t i = 1; i <= 3; ++i) {
      heard[node_id(i)] = {.is_alive = i != 3,
                           .serves_clients = true,
                           .generation = 1,
                           .schema_version = base::Uuid(),
                           .metadata_version = 5,
                           .load_bytes = 1536};
    }
  }
  admin::ClusterMoment moment() const {
    return {
        .metadata = metadata, .version = consensus::Version(5), .heard = heard, .self = node_id(1)};
  }

  metadata::ClusterMetadata metadata =
      metadata::testing::with_keyspace(a_cluster(3, 4), "music", 2);
  admin::HeardByNode heard;
};

TEST(ClusterTables, StatusIsATableADatacentre) {
  const Cluster cluster;
  const auto parsed = parse_cluster(*admin::cluster_json(cluster.moment(), ""));
  ASSERT_TRUE(parsed) << parsed.error().to_string();
  EXPECT_EQ(
      format_status(*parsed),
      "Cluster Troy: 2 of 3 nodes up, metadata version 5\n"
      "U up, S starting, D down; N normal, J joining, L leaving, E re-entering, R being removed\n"
      "\n"
      "Datacentre dc1\n"
      "    Address        Load     Tokens  Owns   Host ID                               Rack  "
      "Schema\n"
      "UN  10.0.0.1:7000  1.5 KiB  2       50.0%  00000000-0000-0000-0000-000000000001  r1    "
      "00000000-0000-0000-0000-000000000000\n"
      "UN  10.0.0.2:7000  1.5 KiB  1       25.0%  00000000-0000-0000-0000-000000000002  r2    "
      "00000000-0000-0000-0000-000000000000\n"
      "DN  10.0.0.3:7000  1.5 KiB  1       25.0%  00000000-0000-0000-0000-000000000003  r3    "
      "00000000-0000-0000-0000-000000000000\n"
      "\n"
      "10.0.0.3:7000 is down: it was not heard of since the node that was asked started.\n");
}

TEST(ClusterTables, WhoIsNotUpIsTalkedAbout) {
  Cluster cluster;
  cluster.heard[node_id(2)].serves_clients = false;
  cluster.heard[node_id(3)].silent_for = 3min + 7s;
  const auto parsed = parse_cluster(*admin::cluster_json(cluster.moment(), ""));
  ASSERT_TRUE(parsed);
  EXPECT_THAT(format_status(*parsed),
              AllOf(HasSubstr("\n10.0.0.2:7000 is alive and does not serve clients.\n"),
                    HasSubstr("\n10.0.0.3:7000 is down: it was last heard of 3 min ago.\n"),
                    Not(HasSubstr("10.0.0.1:7000 is"))));
  EXPECT_EQ(format_time(999), "0 s");
  EXPECT_EQ(format_time(119'999), "119 s");
  EXPECT_EQ(format_time(7'199'000), "119 min");
  EXPECT_EQ(format_time(7'200'000), "2 h");
  EXPECT_EQ(format_time(std::uint64_t{9} * 86'400'000), "9 days");
}

TEST(ClusterTables, WhatIsUnknownOrUnwellIsShown) {
  Cluster cluster;
  cluster.heard.erase(node_id(3));
  cluster.heard[node_id(1)].schema_version = node_id(9).value();
  auto parsed = parse_cluster(*admin::cluster_json(cluster.moment(), "music"));
  ASSERT_TRUE(parsed);
  EXPECT_THAT(format_status(*parsed),
              AllOf(HasSubstr("DN  10.0.0.3:7000  ? "), HasSubstr("Owns of music"),
                    HasSubstr("\nThe nodes that are up have 2 different schemas.\n")));
  parsed->nodes[0].state = "of a later release";
  EXPECT_EQ(parsed->nodes[0].letters(), "U?");
  parsed->nodes[0].state = "joining";
  parsed->nodes[0].is_up = false;
  EXPECT_EQ(parsed->nodes[0].letters(), "SJ");
}

TEST(ClusterTables, TheRingShowsOwnersAndReplicas) {
  const Cluster cluster;
  const auto without = parse_ring(*admin::ring_json(cluster.moment(), ""));
  ASSERT_TRUE(without);
  EXPECT_THAT(format_ring(*without), Not(HasSubstr("Replicas")));
  const auto ring = parse_ring(*admin::ring_json(cluster.moment(), "music"));
  ASSERT_TRUE(ring) << ring.error().to_string();
  ASSERT_EQ(ring->tablets.size(), 4U);
  EXPECT_EQ(format_ring(*ring),
            "Cluster Troy: 2 of 3 nodes up, metadata version 5\n"
            "U up, S starting, D down; N normal, J joining, L leaving, E re-entering, R being "
            "removed\n"
            "\n"
            "Token                     Owner          Rack  Datacentre  Replicas of music\n"
            "-4611686018427387905  UN  10.0.0.1:7000  r1    dc1         10.0.0.1:7000 "
            "10.0.0.2:7000\n"
            "-1                    UN  10.0.0.2:7000  r2    dc1         10.0.0.2:7000 "
            "10.0.0.3:7000\n"
            "4611686018427387903   DN  10.0.0.3:7000  r3    dc1         10.0.0.3:7000 "
            "10.0.0.1:7000\n"
            "9223372036854775807   UN  10.0.0.1:7000  r1    dc1         10.0.0.1:7000 "
            "10.0.0.2:7000\n");
}

TEST(ClusterTables, SizesAreShownInTheUnitThatFits) {
  EXPECT_EQ(format_size(0), "0 B");
  EXPECT_EQ(format_size(1023), "1023 B");
  EXPECT_EQ(format_size(1024), "1.0 KiB");
  EXPECT_EQ(format_size((1 << 20) - 1), "1.0 MiB");
  EXPECT_EQ(format_size(std::uint64_t{3} << 39), "1.5 TiB");
  EXPECT_EQ(format_size(UINT64_MAX), "16.0 EiB");
}

TEST(ClusterTables, WhatIsNotANodesAnswerIsAnError) {
  const Cluster cluster;
  const std::string good = *admin::ring_json(cluster.moment(), "music");
  const std::vector<std::string> bad = {"",
                                        "{",
                                        "null",
                                        "[]",
                                        "7",
                                        "\"text\"",
                                        "{}",
                                        std::string(100'000, '['),
                                        good.substr(0, good.size() / 2),
                                        good + "x"};
  for (const std::string& text : bad) {
    EXPECT_TRUE(parse_cluster(text).failed_with(Errc::corrupt)) << text.substr(0, 100);
    EXPECT_TRUE(parse_ring(text).failed_with(Errc::corrupt)) << text.substr(0, 100);
  }
  // Every field is missed, and not taken for another kind of value.
  const auto json = nlohmann::ordered_json::parse(good);
  for (const char* name :
       {"cluster_name", "this_node", "metadata_version", "change_under_way", "nodes", "tablets"}) {
    for (const auto& value : {nlohmann::ordered_json(), nlohmann::ordered_json(-1)}) {
      auto changed = json;
      changed[name] = value;
      EXPECT_TRUE(parse_ring(changed.dump()).failed_with(Errc::corrupt)) << name;
    }
  }
  for (const char* name : {"host_id", "is_up", "state", "node_address", "data_center", "rack"}) {
    auto changed = json;
    changed["nodes"][0].erase(name);
    EXPECT_TRUE(parse_ring(changed.dump()).failed_with(Errc::corrupt)) << name;
  }
  for (const char* name : {"owner", "next_owner", "token", "replicas"}) {
    auto changed = json;
    changed["tablets"][0][name] = nlohmann::ordered_json::array({3});
    EXPECT_TRUE(parse_ring(changed.dump()).failed_with(Errc::corrupt)) << name;
  }
  auto changed = json;
  changed["tablets"][0]["owner"] = 3;
  EXPECT_TRUE(parse_ring(changed.dump()).failed_with(Errc::corrupt)) << "there are three nodes";
}

TEST(ClusterTables, TheTerminalIsGivenNoOrders) {
  Cluster cluster;
  cluster.metadata.nodes[0].description.rack = "\x1b[2Jr\n1";
  const std::string text = *admin::cluster_json(cluster.moment(), "");
  EXPECT_THAT(format_status(*parse_cluster(text)),
              AllOf(HasSubstr("?[2Jr?1"), Not(HasSubstr("\x1b"))));
  EXPECT_THAT(*tidy_json(text), Not(HasSubstr("\x1b")));
}

TEST(ClusterTables, HeldTabletsAreShownWithTheirReplicas) {
  Cluster cluster;
  const std::string text = *admin::tablets_json(cluster.moment(), "music");
  const auto held = parse_held_tablets(text);
  ASSERT_TRUE(held) << held.error().to_string();
  ASSERT_FALSE(held->tablets.empty());
  const std::string shown = format_held_tablets(*held);
  EXPECT_THAT(shown, HasSubstr(fmt::format("holds {} tablets", held->tablets.size())));
  const ShownHeldTablet& first = held->tablets.front();
  EXPECT_THAT(shown, AllOf(HasSubstr(first.from), HasSubstr(first.to)));
  for (const std::size_t place : first.replicas) {
    EXPECT_THAT(shown, HasSubstr(held->cluster.nodes[place].node_address));
  }
  auto json = nlohmann::ordered_json::parse(text);
  json["tablets"][0]["replicas"] = nlohmann::ordered_json::array({3});
  EXPECT_TRUE(parse_held_tablets(json.dump()).failed_with(Errc::corrupt)) << "there are three";
}

std::string two_tables() {
  const std::vector<admin::TableReport> tables = {
      {.keyspace = "music",
       .table = "plays",
       .here = {.sstables = 3, .sstable_bytes = 2048, .sstable_keys = 77, .memtable_bytes = 512}},
      {.keyspace = "music", .table = "songs", .here = {.sstables_set_aside = 1}}};
  return admin::tables_json(tables);
}

TEST(ClusterTables, TablesAreShownWithWhatIsWrongWithThem) {
  const auto tables = parse_tables(two_tables());
  ASSERT_TRUE(tables) << tables.error().to_string();
  EXPECT_THAT(format_tables(*tables),
              AllOf(HasSubstr("music.plays"), HasSubstr("2.0 KiB"), HasSubstr("77"),
                    HasSubstr("512 B"), HasSubstr("1 files of music.songs are damaged")));
  auto json = nlohmann::ordered_json::parse(two_tables());
  for (const char* name : {"keyspace", "sstables", "sstable_keys", "memtable_bytes"}) {
    auto changed = json;
    changed["tables"][0].erase(name);
    EXPECT_TRUE(parse_tables(changed.dump()).failed_with(Errc::corrupt)) << name;
  }
}

std::string two_peers(std::uint64_t there, std::uint64_t here) {
  const Cluster cluster;
  replication::AntiEntropyReport report;
  report.peers = {{.node = node_id(2), .tablets = 4, .lacking_there = there, .lacking_here = here},
                  {.node = node_id(9), .tablets = 4, .lacking_there = 0, .lacking_here = 0}};
  return admin::missing_json(cluster.moment(), report);
}

TEST(ClusterTables, WhatIsMissingIsShownByNode) {
  const auto some = parse_missing(two_peers(5, 77));
  ASSERT_TRUE(some) << some.error().to_string();
  EXPECT_EQ(format_missing(*some),
            "Node                                  Tablets  Missing there  Missing here\n"
            "00000000-0000-0000-0000-000000000009  4        0              0\n"
            "10.0.0.2:7000                         4        5              77\n");
  for (const auto& [there, here] : {std::pair(1U, 0U), std::pair(0U, 1U)}) {
    EXPECT_THAT(format_missing(*parse_missing(two_peers(there, here))),
                Not(HasSubstr("nothing to repair")));
  }
  EXPECT_THAT(format_missing(*parse_missing(two_peers(0, 0))),
              AllOf(HasSubstr("10.0.0.2:7000"), EndsWith("\nnothing to repair\n")));
  EXPECT_EQ(format_missing({}), "nothing to repair\n");
  const auto json = nlohmann::ordered_json::parse(two_peers(0, 0));
  for (const char* name : {"host_id", "tablets", "missing_there", "missing_here"}) {
    auto changed = json;
    changed["peers"][0][name] = -1;
    EXPECT_TRUE(parse_missing(changed.dump()).failed_with(Errc::corrupt)) << name;
  }
  EXPECT_TRUE(parse_missing("{}").failed_with(Errc::corrupt));
}

TEST(ClusterTables, WhatWasDoneIsSaidInWords) {
  EXPECT_EQ(format_done(*parse_done(admin::done_json("flush", 3))), "flush: 3 tables\n");
  EXPECT_EQ(format_done(*parse_done(admin::done_json("compact", 1))), "compact: 1 table\n");
  EXPECT_THAT(format_done(*parse_done(admin::done_json("drain", 2))), HasSubstr("can be stopped"));
  EXPECT_TRUE(parse_done("{}").failed_with(Errc::corrupt));
}

// ---- HTTP ----

TEST(HttpHead, IsReadWhenItIsWhole) {
  const std::string head = "HTTP/1.1 200 OK\r\nX: y\r\nContent-LENGTH: 12\r\n\r\n";
  for (std::size_t size = 0; size < head.size(); ++size) {
    const auto parsed = parse_http_head(head.substr(0, size));
    ASSERT_TRUE(parsed) << size;
    EXPECT_FALSE(parsed->has_value()) << size;
  }
  const auto parsed = parse_http_head(head + "body");
  ASSERT_TRUE(parsed && *parsed);
  EXPECT_EQ((*parsed)->status, 200);
  EXPECT_EQ((*parsed)->size, head.size());
  EXPECT_EQ((*parsed)->body_size, 12U);
}

TEST(HttpHead, WhatIsNotHttpIsAnError) {
  for (const char* text :
       {"SSH-2.0-OpenSSH_9.2p1\r\n", "X", "HTTP/2 200\r\n\r\n", "HTTP/1.1 2\r\n\r\n",
        "HTTP/1.1 abc OK\r\n\r\n", "HTTP/1.1 999 OK\r\n\r\n", "HTTP/1.1 200 OK\r\nheader\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", "\r\n\r\n"}) {
    EXPECT_TRUE(parse_http_head(text).failed_with(Errc::corrupt)) << text;
  }
  EXPECT_TRUE(parse_http_head("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
                  .failed_with(Errc::unsupported));
  const std::string endless = "HTTP/1.1 200 OK\r\nX: " + std::string(kHttpHeadSizeMax, 'x');
  EXPECT_TRUE(parse_http_head(endless).failed_with(Errc::corrupt));
}

// ---- Whole commands ----

const Address kServer = Address::v4({127, 0, 0, 1}, 7070);

// Takes one connection, reads a request, and answers with these bytes; ends its half, or leaves the
// client waiting.
Task<void> serve_once(Runtime& rt, std::string answer, bool ends, std::string& seen) {
  const auto listener = rt.transport.listen(kServer);
  EXPECT_TRUE(listener.has_value());
  const auto stream = co_await (*listener)->accept(Until::forever());
  EXPECT_TRUE(stream.has_value());
  std::vector<std::byte> request(4096);
  const auto size = co_await (*stream)->read(request, Until::forever());
  if (size) seen = base::as_text(std::span(request).first(*size));
  std::ignore = co_await (*stream)->write(base::as_bytes(answer), Until::forever());
  if (ends) (*stream)->shutdown_write();
  for (;;) {
    const auto got = co_await (*stream)->read(request, Until::forever());
    if (!got || *got == 0) co_return;
  }
}

struct Outcome {
  std::string request = {};  // as the server saw it
  int exit_code = -1;
  std::string out;
  std::string error;
};

class ClusterProgram : public ::testing::Test {
 protected:
  // What the command does when this is the answer; without one nobody listens.
  Outcome ask(std::optional<std::string> answer, ClusterCommand command = {}, bool ends = true) {
    command.admin = kServer;
    Outcome outcome;
    machine_.set_process(sim::FunctionProcess::factory(
        [&](Runtime& rt, const StopToken&) { return both(rt, answer, command, ends, outcome); }));
    machine_.start();
    EXPECT_TRUE(world_.run_until([&] { return !machine_.is_up(); }, 1h)) << "waits for ever";
    return outcome;
  }
  static std::string http(std::string_view body, int status = 200) {
    return fmt::format("HTTP/1.1 {} X\r\nContent-Length: {}\r\n\r\n{}", status, body.size(), body);
  }
  static std::string good(ClusterCommand::Kind kind = ClusterCommand::Kind::status) {
    const Cluster cluster;
    return http(kind == ClusterCommand::Kind::status ? *admin::cluster_json(cluster.moment(), "")
                                                     : *admin::ring_json(cluster.moment(), ""));
  }
  // One line that says why, and nothing else.
  static void expect_failure(const Outcome& outcome, std::string_view why) {
    EXPECT_EQ(outcome.exit_code, kExitFailed);
    EXPECT_EQ(outcome.out, "");
    EXPECT_THAT(outcome.error, AllOf(StartsWith("helenus: "), HasSubstr(why)));
    EXPECT_EQ(std::ranges::count(outcome.error, '\n'), 1);
  }

 private:
  static Task<void> run(Runtime& rt, const ClusterCommand& command, Outcome& outcome) {
    outcome.exit_code = co_await run_cluster_command(
        rt, command,
        {.out = [&outcome](std::string_view text) { outcome.out += text; },
         .error = [&outcome](std::string_view text) { outcome.error += text; }},
        {});
  }
  static Task<void> both(Runtime& rt, const std::optional<std::string>& answer,
                         const ClusterCommand& command, bool ends, Outcome& outcome) {
    if (!answer) co_return co_await run(rt, command, outcome);
    co_await runtime::when_all(serve_once(rt, *answer, ends, outcome.request),
                               run(rt, command, outcome));
  }

  sim::World world_{1};
  sim::Machine& machine_ = world_.add_machine({.name = "operator"}, {});
};

TEST_F(ClusterProgram, ShowsWhatTheNodeSays) {
  const Outcome status = ask(good());
  EXPECT_EQ(status.exit_code, kExitWell) << status.error;
  EXPECT_THAT(status.out, HasSubstr("UN  10.0.0.1:7000"));
  EXPECT_EQ(status.error, "");
  ClusterCommand command;
  command.kind = ClusterCommand::Kind::ring;
  const Outcome ring = ask(good(command.kind), command);
  EXPECT_EQ(ring.exit_code, kExitWell) << ring.error;
  EXPECT_THAT(ring.out, HasSubstr("9223372036854775807"));
}

TEST_F(ClusterProgram, AsksForAChangeAsOne) {
  ClusterCommand command;
  command.kind = ClusterCommand::Kind::flush;
  command.keyspace = "music";
  command.table = "plays";
  const Outcome flush = ask(http(admin::done_json("flush", 1)), command);
  EXPECT_EQ(flush.exit_code, kExitWell) << flush.error;
  EXPECT_EQ(flush.out, "flush: 1 table\n");
  EXPECT_THAT(flush.request, StartsWith("POST /tables/flush?keyspace=music&table=plays HTTP/1.1"));
  expect_failure(ask(http("not from there\n", 403), command), "on the node's own machine");
  command.kind = ClusterCommand::Kind::table_statistics;
  const Outcome tables = ask(http(two_tables()), command);
  EXPECT_EQ(tables.exit_code, kExitWell) << tables.error;
  EXPECT_THAT(tables.request, StartsWith("GET /tables?keyspace=music&table=plays HTTP/1.1"));
}

TEST_F(ClusterProgram, AsksForWhatIsMissing) {
  ClusterCommand command;
  command.kind = ClusterCommand::Kind::missing;
  const Outcome missing = ask(http(two_peers(0, 0)), command);
  EXPECT_EQ(missing.exit_code, kExitWell) << missing.error;
  EXPECT_THAT(missing.out, EndsWith("nothing to repair\n"));
  EXPECT_THAT(missing.request, StartsWith("GET /cluster/missing HTTP/1.1"));
  const auto error = base::Error(Errc::timeout, "core 1 does not answer");
  expect_failure(ask(http(admin::error_json(error), 503), command), "core 1 does not answer");
}

TEST_F(ClusterProgram, ShowsJsonToPrograms) {
  ClusterCommand command;
  command.json = true;
  const Outcome outcome = ask(good(), command);
  EXPECT_EQ(nlohmann::json::parse(outcome.out)["cluster_name"], "Troy");
}

TEST_F(ClusterProgram, ABodyMayEndWithTheConnection) {
  const Cluster cluster;
  const Outcome outcome =
      ask("HTTP/1.0 200 OK\r\n\r\n" + *admin::cluster_json(cluster.moment(), ""));
  EXPECT_EQ(outcome.exit_code, kExitWell) << outcome.error;
}

TEST_F(ClusterProgram, ABodyThatIsWholeIsNotWaitedFor) {
  EXPECT_EQ(ask(good(), {}, false).exit_code, kExitWell);
}

TEST_F(ClusterProgram, SaysThatNobodyListens) {
  expect_failure(ask(std::nullopt), "nobody listens at 127.0.0.1:7070");
}

TEST_F(ClusterProgram, SaysWhatANodeThatStartsWaitsFor) {
  expect_failure(ask(http(admin::starting_json("waits for 10.0.0.2:7000"), 503)),
                 "the node at 127.0.0.1:7070 is starting: waits for 10.0.0.2:7000");
}

TEST_F(ClusterProgram, SaysWhatTheNodeRefuses) {
  const auto error = base::Error(Errc::not_found, "there is no keyspace x");
  expect_failure(ask(http(admin::error_json(error), 404)), "there is no keyspace x");
  expect_failure(ask(http("nothing here", 404)), "HTTP status 404");
}

TEST_F(ClusterProgram, IsNotTakenInByOthers) {
  const char* const kStranger = "is no admin_address of a helenus node";
  expect_failure(ask("SSH-2.0-OpenSSH_9.2p1\r\n", {}, false), kStranger);
  expect_failure(ask(""), kStranger);
  expect_failure(ask("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n{}"), "cut short");
  expect_failure(ask(http("<html>")), "not JSON");
  expect_failure(ask(http("{}")), kStranger);
  expect_failure(ask("HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n{}", {}, false),
                 "an answer of more than");
}

TEST_F(ClusterProgram, WhoSendsWithoutEndIsLeft) {
  ClusterCommand command;
  command.answer_size_max = 1000;
  const std::string endless = "HTTP/1.1 200 OK\r\n\r\n" + std::string(100'000, ' ');
  expect_failure(ask(endless, command), "an answer of more than");
}

TEST_F(ClusterProgram, WhoSaysNothingIsLeft) {
  expect_failure(ask("", {}, false), "has not answered within 10 s");
}

}  // namespace
}  // namespace helenus::server
