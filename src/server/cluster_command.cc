#include "server/cluster_command.h"

#include <algorithm>
#include <array>
#include <utility>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "model/schema.h"
#include "server/cluster_tables.h"
#include "server/http_get.h"

namespace helenus::server {

using base::Errc;
using base::Error;
using base::Result;
using runtime::Task;
using runtime::Until;

namespace {

struct Subcommand {
  const char* name;
  ClusterCommand::Kind kind;
  const char* help;
};
constexpr std::array kSubcommands = {
    Subcommand{"status", ClusterCommand::Kind::status,
               "Show the nodes of the cluster: who is up, what each one holds"},
    Subcommand{"ring", ClusterCommand::Kind::ring,
               "Show the tokens of the ring, their owners, and the replicas of a keyspace"},
};

constexpr int kHttpOk = 200;

bool may_be_keyspace(std::string_view name) {
  return name.size() <= model::kNameSizeMax && std::ranges::all_of(name, [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  c == '_';
         });
}

std::string target_of(const ClusterCommand& command) {
  std::string target = command.kind == ClusterCommand::Kind::ring ? "/cluster/ring" : "/cluster";
  if (!command.keyspace.empty()) target += "?keyspace=" + command.keyspace;
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

Result<std::string> show(const ClusterCommand& command, std::string_view body) {
  if (command.kind == ClusterCommand::Kind::status) {
    TRY(const ShownCluster cluster, parse_cluster(body));
    return command.json ? tidy_json(body) : Result<std::string>(format_status(cluster));
  }
  TRY(const ShownRing ring, parse_ring(body));
  return command.json ? tidy_json(body) : Result<std::string>(format_ring(ring));
}

}  // namespace

void add_cluster_commands(CLI::App& app, ClusterOptions& options) {
  for (const Subcommand& subcommand : kSubcommands) {
    CLI::App* command = app.add_subcommand(subcommand.name, subcommand.help);
    command->add_option("--admin", options.admin, "IP:PORT of a node's admin_address")
        ->default_str(options.admin)
        ->take_last();
    command
        ->add_option("--keyspace", options.keyspace,
                     subcommand.kind == ClusterCommand::Kind::status
                         ? "What nodes own is their share of this keyspace, copies and all"
                         : "Show the replicas of this keyspace")
        ->take_last();
    command->add_flag("--json", options.json, "As JSON, for programs");
    command->footer(
        "The node is asked over HTTP. Exit code 1: it could not be asked, or is not up yet.");
  }
}

bool is_cluster_command(const CLI::App& app) {
  return std::ranges::any_of(kSubcommands, [&](const Subcommand& subcommand) {
    return app.got_subcommand(subcommand.name);
  });
}

Result<ClusterCommand> make_cluster_command(const CLI::App& app, const ClusterOptions& options) {
  ClusterCommand command;
  for (const Subcommand& subcommand : kSubcommands) {
    if (app.got_subcommand(subcommand.name)) command.kind = subcommand.kind;
  }
  auto admin = runtime::Address::parse(options.admin);
  if (!admin) return std::move(admin).error().within("--admin");
  command.admin = *admin;
  if (!may_be_keyspace(options.keyspace)) {
    return Error(Errc::invalid_argument, "--keyspace: '{}' is no name of a keyspace",
                 options.keyspace);
  }
  command.keyspace = options.keyspace;
  command.json = options.json;
  return command;
}

Task<int> run_cluster_command(runtime::Runtime& runtime, ClusterCommand command, Printer printer,
                              runtime::StopToken stop) {
  const auto fail = [&](const std::string& why) {
    printer.error(fmt::format("helenus: {}\n", why));
    return kExitFailed;
  };
  const auto answer =
      co_await http_get(runtime, command.admin, target_of(command), command.answer_size_max,
                        Until::after(runtime, command.timeout, std::move(stop)));
  if (!answer) co_return fail(explain(answer.error(), command));
  if (answer->status != kHttpOk) co_return fail(explain(*answer, command));
  const auto shown = show(command, answer->body);
  if (!shown) co_return fail(explain(shown.error(), command));
  printer.out(*shown);
  co_return kExitWell;
}

}  // namespace helenus::server
