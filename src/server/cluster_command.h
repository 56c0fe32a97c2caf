// helenus status, ring, tablets, missing, tablestats: ask a node over HTTP for its cluster, and for
// what it has, and show it to people. helenus flush, compact, verify, repair, drain: ask it to do
// something; helenus decommission, remove, abandon: to change the ring; helenus netstats: how far
// such a change is; helenus snapshot: to keep what it has now, and to take it back.
//
// Exit codes: 0 it was shown, or done; 1 it could not be: nobody listens, it is no node, or a node
// that is not there yet; 2 the command line is wrong.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "runtime/address.h"
#include "runtime/runtime.h"
#include "runtime/stop_token.h"
#include "runtime/task.h"
#include "runtime/time.h"

namespace CLI {
class App;
}

namespace helenus::server {

inline constexpr int kExitWell = 0;
inline constexpr int kExitFailed = 1;

// Where a command prints: results, and lines about trouble.
struct Printer {
  std::function<void(std::string_view)> out;
  std::function<void(std::string_view)> error;
};

// A ring of the most tokens there may be, with replicas, is a tenth of it.
inline constexpr std::size_t kClusterAnswerSizeMax = std::size_t{64} << 20;
// How long a flush, a compaction or a drain is waited for.
inline constexpr runtime::Duration kChangeTimeout = std::chrono::hours(1);
inline constexpr std::size_t kNodeNameSizeMax = 64;

struct ClusterCommand {
  enum class Kind : std::uint8_t {
    status,
    ring,
    tablets,
    missing,
    table_statistics,
    compactions,
    flush,
    compact,
    verify,
    repair,
    drain,
    reenter,
    decommission,
    remove,
    abandon,
    netstats,
    snapshot_list,
    snapshot_create,
    snapshot_remove,
    snapshot_restore
  };

  Kind kind = Kind::status;
  runtime::Address admin;
  std::string keyspace;  // empty: none
  std::string table;     // likewise
  std::string node;      // likewise
  std::string snapshot;  // likewise
  std::vector<std::string> keyspaces;
  bool accepts_data_loss = false;
  bool json = false;
  runtime::Duration timeout = std::chrono::seconds(10);
  std::size_t answer_size_max = kClusterAnswerSizeMax;
};

// What the command line says, unchecked.
struct ClusterOptions {
  std::string admin = "127.0.0.1:7070";
  std::string keyspace;
  std::string table;
  std::string node;
  std::string snapshot;
  std::vector<std::string> keyspaces;
  bool json = false;
  bool accept_data_loss = false;
};

// Adds the subcommands. `options` outlives the parsing.
void add_cluster_commands(CLI::App& app, ClusterOptions& options);
// Whether one of them was given.
bool is_cluster_command(const CLI::App& app);
// Requires: is_cluster_command(app). Errors: invalid_argument.
base::Result<ClusterCommand> make_cluster_command(const CLI::App& app,
                                                  const ClusterOptions& options);

// Gives the exit code.
runtime::Task<int> run_cluster_command(runtime::Runtime& runtime, ClusterCommand command,
                                       Printer printer, runtime::StopToken stop);

}  // namespace helenus::server
