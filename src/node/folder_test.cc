// A data folder of which a part is missing, empty, or another node's: a start refuses it and
// changes nothing, or has everything that there was.
#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cql/server/server_test_support.h"
#include "node/nodes_test_support.h"
#include "runtime/files.h"
#include "sim/function_process.h"
#include "sim/sim_disk.h"
#include "sim/world.h"

namespace helenus::node {
namespace {

using base::Errc;
using cql::TestClient;
using runtime::Address;
using runtime::Runtime;
using runtime::StopToken;
using runtime::Task;
using runtime::Until;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using namespace std::chrono_literals;
namespace protocol = cql::protocol;

constexpr int kRows = 40;

// ---- The files of a machine, from outside ----

using Files = std::map<std::string, std::string>;

// What there is of a file that matters: segments of the log are long, and hold little.
std::string content_of(sim::SimDisk& disk, const std::string& path) {
  constexpr std::uint64_t kLooked = std::uint64_t{128} << 10;
  const auto inode = disk.find(path);
  const std::uint64_t size = disk.size(*inode);
  std::string bytes(std::min(size, kLooked), '\0');
  disk.read(*inode, 0, {reinterpret_cast<std::byte*>(bytes.data()), bytes.size()});
  return fmt::format("{}:", size) + bytes;
}

void add_files(sim::SimDisk& disk, const std::string& directory, Files& files) {
  const auto entries = disk.list(directory);
  for (const runtime::DirectoryEntry& entry : *entries) {
    const std::string path = directory + "/" + entry.name;
    if (entry.is_directory) {
      add_files(disk, path, files);
    } else if (!entry.name.ends_with("lock")) {  // says nothing by its content
      files.emplace(path, content_of(disk, path));
    }
  }
}

Files files_of(sim::SimDisk& disk) {
  Files files;
  add_files(disk, "/data", files);
  return files;
}

void sync_name(sim::SimDisk& disk, const std::string& path) {
  disk.commit_names(*disk.find_directory(runtime::directory_of(path)), disk.names_mark());
}

enum class Harm : std::uint8_t { missing, empty, swapped };

std::string_view name_of(Harm harm) {
  constexpr std::array<std::string_view, 3> kNames = {"missing", "empty", "swapped"};
  return kNames[static_cast<std::size_t>(harm)];
}

// False if the other one has no such file, or the same.
bool do_harm(sim::SimDisk& disk, sim::SimDisk& other, const std::string& path, Harm harm) {
  if (harm == Harm::missing) {
    EXPECT_TRUE(disk.remove(path).has_value());
    sync_name(disk, path);
    return true;
  }
  std::string content;
  if (harm == Harm::swapped) {
    const auto theirs = other.find(path);
    if (!theirs || content_of(other, path) == content_of(disk, path)) return false;
    content.resize(other.size(*theirs));
    other.read(*theirs, 0, {reinterpret_cast<std::byte*>(content.data()), content.size()});
  }
  const auto inode = disk.find(path);
  disk.truncate(*inode, 0);
  if (!content.empty()) EXPECT_TRUE(disk.write(*inode, 0, base::as_bytes(content)).has_value());
  disk.sync(*inode, disk.sync_mark(*inode), 0);
  return true;
}

// ---- Two clusters of one node each ----

class FolderTest : public ::testing::Test {
 protected:
  FolderTest()
      : world_(1),
        client_(world_.add_machine({.name = "client"}, {})),
        nodes_(world_, std::vector<std::uint16_t>(2, 1), 0) {
    for (const std::size_t i : {0U, 1U}) nodes_.config(i).tokens = 4;
  }

  sim::SimDisk& disk(std::size_t i) { return nodes_.machine(i).disk(); }

  // False if the start was refused.
  bool start(std::size_t i) {
    nodes_.machine(i).start();
    const auto decided = [&] { return nodes_.is_up(i) || !nodes_.machine(i).is_up(); };
    EXPECT_TRUE(world_.run_until(decided, 2min)) << "neither starts nor refuses to";
    return nodes_.is_up(i);
  }

  void run_client(const std::function<Task<void>(Runtime&)>& body) {
    client_.set_process(sim::FunctionProcess::factory(
        [&](Runtime& rt, StopToken) -> Task<void> { co_await body(rt); }));
    client_.start();
    ASSERT_TRUE(world_.run_until([&] { return !client_.is_up(); }, 1h)) << "waits for ever";
  }
  // The first cell as a number; -1 for an error.
  std::int64_t ask(std::size_t i, const std::vector<std::string>& statements) {
    std::int64_t told = 0;
    run_client([&](Runtime& rt) -> Task<void> {
      TestClient client(rt);
      const bool is_open = co_await client.open(nodes_.machine(i).address(9042));
      CO_ASSERT_TRUE(is_open);
      for (const std::string& statement : statements) {
        CO_ASSERT_TRUE(co_await client.send(TestClient::query(1, statement)));
        const auto answer = co_await client.receive(1min);
        CO_ASSERT_OK(answer);
        if (const auto* error = std::get_if<protocol::ErrorMessage>(&answer->message)) {
          ADD_FAILURE() << statement << ": " << error->message;
          told = -1;
          co_return;
        }
        const auto* rows = std::get_if<protocol::RowsResult>(&answer->message);
        if (rows == nullptr || rows->row_count == 0) continue;
        told = std::stoll(base::to_hex(*protocol::CellCursor(*rows).next()), nullptr, 16);
      }
    });
    return told;
  }
  // Whether all rows are counted, or an error names the file.
  void expect_rows_or_the_name(const std::string& statement, const std::string& path) {
    run_client([&](Runtime& rt) -> Task<void> {
      TestClient client(rt);
      const bool is_open = co_await client.open(nodes_.machine(0).address(9042));
      CO_ASSERT_TRUE(is_open);
      CO_ASSERT_TRUE(co_await client.send(TestClient::query(1, statement)));
      const auto answer = co_await client.receive(1min);
      CO_ASSERT_OK(answer);
      if (const auto* error = std::get_if<protocol::ErrorMessage>(&answer->message)) {
        EXPECT_THAT(error->message, HasSubstr(path));
        co_return;
      }
      const auto* rows = std::get_if<protocol::RowsResult>(&answer->message);
      CO_ASSERT_TRUE(rows != nullptr && rows->row_count == 1);
      const auto count = std::stoll(base::to_hex(*protocol::CellCursor(*rows).next()), nullptr, 16);
      EXPECT_EQ(count, kRows) << "rows are gone without a word";
    });
  }
  // What a start replays it writes into files.
  void restart(std::size_t i) {
    nodes_.machine(i).request_stop();
    ASSERT_TRUE(world_.run_until([&] { return !nodes_.machine(i).is_up(); }, 1min));
    ASSERT_TRUE(start(i));
  }

  void insert(std::size_t i, int first, int last) {
    std::vector<std::string> inserts;
    for (int row = first; row < last; ++row) {
      inserts.push_back(fmt::format("INSERT INTO ks.t (k, v) VALUES ({}, {})", row, i));
    }
    ask(i, inserts);
  }
  // Rows in files and rows in the log; then it is killed.
  void fill(std::size_t i) {
    ASSERT_TRUE(start(i));
    ask(i, {"CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', "
            "'replication_factor': 1}",
            "CREATE TABLE ks.t (k int PRIMARY KEY, v int)"});
    insert(i, 0, kRows / 2);
    restart(i);
    insert(i, kRows / 2, kRows);
    nodes_.machine(i).power_loss();
  }

  // Of files that are many of a kind two.
  std::vector<std::string> paths_to_harm() {
    std::vector<std::string> paths;
    std::map<std::string, int> seen;
    for (const auto& [path, content] : files_of(disk(0))) {
      const std::string kind = path.substr(path.find_last_of("./") + 1);
      const bool many = kind == "manifest" || kind == "sst";
      if (many && ++seen[kind] > 2) continue;
      paths.push_back(path);
    }
    return paths;
  }

  void harm_and_start(const std::string& path, Harm harm) {
    if (!do_harm(disk(0), disk(1), path, harm)) return;
    ++cases_;
    const Files before = files_of(disk(0));
    if (start(0)) {
      expect_rows_or_the_name("SELECT count(*) FROM ks.t", path);
      expect_rows_or_the_name("SELECT count(*) FROM ks.t WHERE v = 0 ALLOW FILTERING", path);
    } else {
      ++refused_;
      const auto& error = nodes_.start_error(0);
      ASSERT_TRUE(error.has_value());
      EXPECT_THAT(error->to_string(), HasSubstr("/data/")) << "does not say where";
      EXPECT_TRUE(files_of(disk(0)) == before) << "the refusal changed something";
    }
  }

  sim::World world_;
  sim::Machine& client_;
  testing::SimulatedNodes nodes_;
  int cases_ = 0;
  int refused_ = 0;
};

TEST_F(FolderTest, WithAPartMissingEmptyOrAnothersIsRefusedUnchangedOrWhole) {
  fill(0);
  fill(1);
  const auto image = disk(0).snapshot();
  for (const std::string& path : paths_to_harm()) {
    for (const Harm harm : {Harm::missing, Harm::empty, Harm::swapped}) {
      SCOPED_TRACE(fmt::format("{} {}", path, name_of(harm)));
      harm_and_start(path, harm);
      if (nodes_.machine(0).is_up()) nodes_.machine(0).power_loss();
      disk(0).put_back(*image, false);
      if (HasFailure()) return;
    }
  }
  EXPECT_GT(cases_, 30);
  EXPECT_GT(refused_, 20);
  ASSERT_TRUE(start(0));
  EXPECT_EQ(ask(0, {"SELECT count(*) FROM ks.t"}), kRows);
  nodes_.stop_all();
}

TEST_F(FolderTest, WithoutItsIdentityIsNotANewOneEvenWhenTheRestOfItIsAlmostGone) {
  fill(0);
  const auto image = disk(0).snapshot();
  const auto remove = [&](const std::string& path) {
    ASSERT_TRUE(disk(0).remove(path).has_value()) << path;
    sync_name(disk(0), path);
  };
  const std::vector<std::string> lost = {"/data/identity", "/data/acceptor", "/data/tables/engine",
                                         "/data/tables/place", "/data/commitlog/catalog"};
  for (const std::string& path : lost) {
    remove(path);
    const Files before = files_of(disk(0));
    EXPECT_FALSE(start(0));
    EXPECT_THAT(nodes_.start_error(0)->to_string(),
                HasSubstr("/data/identity is missing, and /data/"));
    EXPECT_TRUE(files_of(disk(0)) == before);
  }
  disk(0).put_back(*image, false);
  EXPECT_TRUE(start(0)) << "putting back what was lost helps";
  nodes_.machine(0).power_loss();
}

TEST_F(FolderTest, OfAnotherNodeIsRefusedHoweverMuchOfItIsTheirs) {
  fill(0);
  fill(1);
  const auto image = disk(0).snapshot();
  const std::vector<std::vector<std::string>> swaps = {
      {"/data/identity", "/data/acceptor"},
      {"/data/identity"},
      {"/data/acceptor"},
  };
  for (const std::vector<std::string>& theirs : swaps) {
    for (const std::string& path : theirs)
      ASSERT_TRUE(do_harm(disk(0), disk(1), path, Harm::swapped));
    const Files before = files_of(disk(0));
    EXPECT_FALSE(start(0)) << theirs.front();
    EXPECT_THAT(nodes_.start_error(0)->to_string(), HasSubstr("and this is node "));
    EXPECT_TRUE(files_of(disk(0)) == before);
    disk(0).put_back(*image, false);
  }
}

}  // namespace
}  // namespace helenus::node
