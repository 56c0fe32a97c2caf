#include "server/cluster_command.h"

#include <algorithm>
#include <array>
#include <utility>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "model/schema.h"
#include "node/snapshot_description.h"
#include "server/cluster_tables.h"
#include "server/http_get.h"

namespace helenus::server {

using base::Errc;
using base::Error;
using base::Result;
using runtime::Task;
using runtime::Until;

namespace {

using Kind = ClusterCommand::Kind;

struct Subcommand {
  const char* name;
  Kind kind;
  const char* path;
  // What it may be narrowed down to: an option, or words behind its name.
  bool keyspace_option;
  int names_max;
  bool changes;
  const char* help;
};
constexpr std::array kSubcommands = {
    Subcommand{"status", Kind::status, "/cluster", true, 0, false,
               "Show the nodes of the cluster: who is up, what each one holds"},
    Subcommand{"ring", Kind::ring, "/cluster/ring", true, 0, false,
               "Show the tokens of the ring, their owners, and the replicas of a keyspace"},
    Subcommand{"tablets", Kind::tablets, "/cluster/tablets", false, 1, false,
               "Show the tablets that this node holds, and who else does"},
    Subcommand{"missing", Kind::missing, "/cluster/missing", false, 0, false,
               "Show how many writes this node and others lack that the other one has"},
    Subcommand{"tablestats", Kind::table_statistics, "/tables", false, 2, false,
               "Show what this node has of each table, in files and in memory"},
    Subcommand{"compactionstats", Kind::compactions, "/compactions", false, 0, false,
               "Show which files are being merged, how far it is, and what waits for it"},
    Subcommand{"flush", Kind::flush, "/tables/flush", false, 2, true,
               "Write what this node has in memory into files"},
    Subcommand{"compact", Kind::compact, "/tables/compact", false, 2, true,
               "Flush, and merge the files of each table of this node"},
    Subcommand{"verify", Kind::verify, "/tables/verify", false, 2, true,
               "Read all files of each table of this node, and find what is damaged"},
    Subcommand{"repair", Kind::repair, "/cluster/repair", false, 1, true,
               "Force a round of anti-entropy now, and show what is missing after it"},
    Subcommand{"drain", Kind::drain, "/drain", false, 0, true,
               "Serve no clients any more, and flush: before a stop"},
    Subcommand{"reenter", Kind::reenter, "/reentry/accept-data-loss", false, 0, true,
               "Re-enter the cluster without waiting for nodes that are down"},
    Subcommand{"decommission", Kind::decommission, "/ring/leave", false, 0, true,
               "Let this node leave the cluster: its data go to others, then its clients"},
    Subcommand{"remove", Kind::remove, "/ring/remove", false, 0, true,
               "Remove a dead node from the cluster, for good: others hold its data then"},
    Subcommand{"abandon", Kind::abandon, "/ring/abandon", false, 0, true,
               "Give up that a node joins or leaves: all is as it was before"},
    Subcommand{"netstats", Kind::netstats, "/ring", false, 0, false,
               "Show how far a change of the ring is, and what it waits for"},
};

// Behind "snapshot".
constexpr const char* kSnapshot = "snapshot";
constexpr std::array kSnapshotCommands = {
    Subcommand{"create", Kind::snapshot_create, "/snapshots/create", false, 0, true,
               "Keep what this node has of keyspaces now, by further names of their files"},
    Subcommand{"list", Kind::snapshot_list, "/snapshots", false, 0, false,
               "Show the snapshots that this node has"},
    Subcommand{"remove", Kind::snapshot_remove, "/snapshots/remove", false, 0, true,
               "Remove a snapshot: what only it had goes from the disk"},
    Subcommand{"restore", Kind::snapshot_restore, "/snapshots/restore", false, 0, true,
               "Take back what a snapshot has"},
};

const Subcommand& subcommand_of(Kind kind) {
  const auto* found = std::ranges::find(kSubcommands, kind, &Subcommand::kind);
  if (found != kSubcommands.end()) return *found;
  return *std::ranges::find(kSnapshotCommands, kind, &Subcommand::kind);
}

constexpr int kHttpOk = 200;
constexpr int kHttpForbidden = 403;

bool may_be_name(std::string_view name) {
  return name.size() <= model::kNameSizeMax && std::ranges::all_of(name, [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  c == '_';
         });
}

bool may_be_node(std::string_view name) {
  return !name.empty() && name.size() <= kNodeNameSizeMax && std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'f') || (c >= '0' && c <= '9') || c == '.' || c == ':' || c == '-' ||
           c == '[' || c == ']';
  });
}

std::string target_of(const ClusterCommand& command) {
  std::string target = subcommand_of(command.kind).path;
  if (!command.snapshot.empty()) target += "?name=" + command.snapshot;
  if (!command.keyspaces.empty()) {
    target += fmt::format("&keyspaces={}", fmt::join(command.keyspaces, ","));
  }
  if (!command.keyspace.empty()) target += "?keyspace=" + command.keyspace;
  if (!command.table.empty()) target += "&table=" + command.table;
  if (!command.node.empty()) target += "?node=" + command.node;
  if (command.accepts_data_loss) target += "&accept_data_loss=true";
  return target;
}

// In words for an operator, who mistook the address or the moment most of the time.
std::string explain(const Error& error, const ClusterCommand& command) {
  switch (error.code()) {
    case Errc::refused:
      return fmt::format(
          "nobody listens at {}; does the node run, and is this its admin_address (--admin)?",
          command.admin);
    case Errc::timeout:
      return fmt::format("{} has not answered within {} s", command.admin,
                         std::chrono::duration_cast<std::chrono::seconds>(command.timeout).count());
    case Errc::corrupt:
    case Errc::unsupported:
      return fmt::format("{} is no admin_address of a helenus node: {}", command.admin,
                         error.context());
    default:
      return fmt::format("{}: {}", command.admin, error);
  }
}

std::string explain(const HttpAnswer& answer, const ClusterCommand& command) {
  if (answer.status == kHttpForbidden) {
    return fmt::format("{} takes such orders only on the node's own machine", command.admin);
  }
  const auto trouble = parse_trouble(answer.body);
  if (!trouble) {
    return fmt::format("{} has no answer to {} (HTTP status {})", command.admin, target_of(command),
                       answer.status);
  }
  if (trouble->starting) {
    return fmt::format("the node at {} is starting: {}", command.admin, trouble->text);
  }
  return fmt::format("{}: {}", command.admin, trouble->text);
}

Result<std::string> show_snapshots(const ClusterCommand& command, std::string_view body) {
  switch (command.kind) {
    case Kind::snapshot_create: {
      TRY(const ShownSnapshot made, parse_snapshot(body));
      return fmt::format("Snapshot {} was made: {} files, {}\n", made.name, made.files,
                         format_size(made.bytes));
    }
    case Kind::snapshot_remove: {
      TRY_VOID(parse_removed(body));
      return fmt::format("Snapshot {} was removed\n", command.snapshot);
    }
    case Kind::snapshot_restore: {
      TRY(const ShownRestore restored, parse_restored(body));
      return format_restored(command.snapshot, restored);
    }
    default: {
      TRY(const std::vector<ShownSnapshot> snapshots, parse_snapshots(body));
      return format_snapshots(snapshots);
    }
  }
}

Result<std::string> show(const ClusterCommand& command, std::string_view body) {
  // What is no answer of a node is not passed on as one.
  std::string text;
  switch (command.kind) {
    case Kind::status: {
      TRY(const ShownCluster cluster, parse_cluster(body));
      text = format_status(cluster);
      break;
    }
    case Kind::ring: {
      TRY(const ShownRing ring, parse_ring(body));
      text = format_ring(ring);
      break;
    }
    case Kind::tablets: {
      TRY(const ShownHeldTablets held, parse_held_tablets(body));
      text = format_held_tablets(held);
      break;
    }
    case Kind::repair:
    case Kind::missing: {
      TRY(const std::vector<ShownMissing> missing, parse_missing(body));
      text = format_missing(missing);
      break;
    }
    case Kind::table_statistics: {
      TRY(const std::vector<ShownTable> tables, parse_tables(body));
      text = format_tables(tables);
      break;
    }
    case Kind::compactions: {
      TRY(const ShownCompactions compactions, parse_compactions(body));
      text = format_compactions(compactions);
      break;
    }
    case Kind::flush:
    case Kind::compact:
    case Kind::verify:
    case Kind::drain:
    case Kind::reenter:
    case Kind::decommission:
    case Kind::remove:
    case Kind::abandon: {
      TRY(const ShownDone done, parse_done(body));
      text = format_done(done);
      break;
    }
    case Kind::snapshot_list:
    case Kind::snapshot_create:
    case Kind::snapshot_remove:
    case Kind::snapshot_restore: {
      TRY(text, show_snapshots(command, body));
      break;
    }
    case Kind::netstats: {
      TRY(text, parse_ring_phase(body));
      text = text.empty() ? "nothing is under way\n" : text + "\n";
      break;
    }
  }
  return command.json ? tidy_json(body) : Result<std::string>(std::move(text));
}

}  // namespace

namespace {

void add_snapshot_commands(CLI::App& app, ClusterOptions& options) {
  CLI::App* snapshot = app.add_subcommand(
      kSnapshot, "Keep what this node has now, list what is kept, remove it, take it back");
  snapshot->require_subcommand(1);
  for (const Subcommand& subcommand : kSnapshotCommands) {
    CLI::App* command = snapshot->add_subcommand(subcommand.name, subcommand.help);
    command->add_option("--admin", options.admin, "IP:PORT of a node's admin_address")
        ->default_str(options.admin)
        ->take_last();
    if (subcommand.kind != Kind::snapshot_list) {
      command->add_option("name", options.snapshot, "The snapshot's name")->required();
    }
    if (subcommand.kind == Kind::snapshot_create) {
      command->add_option("keyspaces", options.keyspaces, "Of these alone; of all without");
    }
    command->add_flag("--json", options.json, "As JSON, for programs");
    command->footer("The node is asked over HTTP. Exit code 1: it was not done.");
  }
}

}  // namespace

void add_cluster_commands(CLI::App& app, ClusterOptions& options) {
  add_snapshot_commands(app, options);
  for (const Subcommand& subcommand : kSubcommands) {
    CLI::App* command = app.add_subcommand(subcommand.name, subcommand.help);
    command->add_option("--admin", options.admin, "IP:PORT of a node's admin_address")
        ->default_str(options.admin)
        ->take_last();
    if (subcommand.keyspace_option) {
      command
          ->add_option("--keyspace", options.keyspace,
                       subcommand.kind == Kind::status
                           ? "What nodes own is their share of this keyspace, copies and all"
                           : "Show the replicas of this keyspace")
          ->take_last();
    }
    if (subcommand.names_max > 0) {
      command->add_option("keyspace", options.keyspace, "Of this keyspace alone");
    }
    if (subcommand.names_max > 1) {
      command->add_option("table", options.table, "Of this table of it alone");
    }
    if (subcommand.kind == Kind::reenter) {
      command
          ->add_flag("--accept-data-loss", options.accept_data_loss,
                     "What only nodes have that are down now may be lost")
          ->required();
    }
    if (subcommand.kind == Kind::remove) {
      command->add_option("node", options.node, "The node: its id, or its IP:PORT for other nodes")
          ->required();
      command->add_flag("--accept-data-loss", options.accept_data_loss,
                        "What only this node had may be lost");
    }
    command->add_flag("--json", options.json, "As JSON, for programs");
    command->footer(
        subcommand.changes
            ? "The node is asked over HTTP, on its own machine. Exit code 1: it was not done."
            : "The node is asked over HTTP. Exit code 1: it could not be asked, or is not up yet.");
  }
}

bool is_cluster_command(const CLI::App& app) {
  if (app.got_subcommand(kSnapshot)) return true;
  return std::ranges::any_of(kSubcommands, [&](const Subcommand& subcommand) {
    return app.got_subcommand(subcommand.name);
  });
}

namespace {

Result<void> read_snapshot_command(const CLI::App& app, const ClusterOptions& options,
                                   ClusterCommand& command) {
  for (const Subcommand& subcommand : kSnapshotCommands) {
    if (!app.got_subcommand(subcommand.name)) continue;
    command.kind = subcommand.kind;
    if (subcommand.changes) command.timeout = kChangeTimeout;
  }
  if (command.kind != Kind::snapshot_list) {
    TRY_VOID(node::check_snapshot_name(options.snapshot));
  }
  command.snapshot = options.snapshot;
  for (const std::string& keyspace : options.keyspaces) {
    if (!keyspace.empty() && may_be_name(keyspace)) continue;
    return Error(Errc::invalid_argument, "'{}' is no name of a keyspace", keyspace);
  }
  command.keyspaces = options.keyspaces;
  return {};
}

}  // namespace

Result<ClusterCommand> make_cluster_command(const CLI::App& app, const ClusterOptions& options) {
  ClusterCommand command;
  for (const Subcommand& subcommand : kSubcommands) {
    if (!app.got_subcommand(subcommand.name)) continue;
    command.kind = subcommand.kind;
    if (subcommand.changes) command.timeout = kChangeTimeout;
  }
  if (app.got_subcommand(kSnapshot)) {
    TRY_VOID(read_snapshot_command(*app.get_subcommand(kSnapshot), options, command));
  }
  auto admin = runtime::Address::parse(options.admin);
  if (!admin) return std::move(admin).error().within("--admin");
  command.admin = *admin;
  if (!may_be_name(options.keyspace)) {
    return Error(Errc::invalid_argument, "{}: '{}' is no name of a keyspace",
                 subcommand_of(command.kind).keyspace_option ? "--keyspace" : "keyspace",
                 options.keyspace);
  }
  command.keyspace = options.keyspace;
  if (!may_be_name(options.table)) {
    return Error(Errc::invalid_argument, "table: '{}' is no name of a table", options.table);
  }
  command.table = options.table;
  if (command.kind == Kind::remove) {
    if (!may_be_node(options.node)) {
      return Error(Errc::invalid_argument, "'{}' is neither the id of a node nor IP:PORT",
                   options.node);
    }
    command.node = options.node;
    command.accepts_data_loss = options.accept_data_loss;
  }
  command.json = options.json;
  return command;
}

Task<int> run_cluster_command(runtime::Runtime& runtime, ClusterCommand command, Printer printer,
                              runtime::StopToken stop) {
  const auto fail = [&](const std::string& why) {
    printer.error(fmt::format("helenus: {}\n", why));
    return kExitFailed;
  };
  const auto ask = subcommand_of(command.kind).changes ? http_post : http_get;
  const auto answer =
      co_await ask(runtime, command.admin, target_of(command), command.answer_size_max,
                   Until::after(runtime, command.timeout, std::move(stop)));
  if (!answer) co_return fail(explain(answer.error(), command));
  if (answer->status != kHttpOk) co_return fail(explain(*answer, command));
  const auto shown = show(command, answer->body);
  if (!shown) co_return fail(explain(shown.error(), command));
  printer.out(*shown);
  co_return kExitWell;
}

}  // namespace helenus::server
