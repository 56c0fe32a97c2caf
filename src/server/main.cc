// helenus: the server. Reads the command line, opens the native runtime, and runs one node until
// it is told to stop; or asks a running one for its cluster, or to do something.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <memory>
#include <string>
#include <string_view>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "base/log_spdlog.h"
#include "node/config_file.h"
#include "node/node.h"
#include "rpc/cluster_secret.h"
#include "runtime/cores.h"
#include "runtime/event.h"
#include "runtime/native/descriptor_limit.h"
#include "runtime/native/loop.h"
#include "runtime/native/memory.h"
#include "runtime/native/native_host.h"
#include "runtime/native/native_random.h"
#include "runtime/native/standard_output.h"
#include "server/cluster_command.h"

namespace helenus::server {
namespace {

using runtime::native::fail_at_start;

constexpr const char* kProgram = "helenus";
constexpr int kExitBadStart = 2;

// An option of the command line that sets a field of the configuration.
struct FieldOption {
  const char* option;
  const char* field;
  const char* help;
};
constexpr std::array kFieldOptions = {
    FieldOption{"--data", "data_directory",
                "Folder for all of the node's data; more, for tables, with commas"},
    FieldOption{"--cql", "cql_address", "IP:PORT that drivers connect to"},
    FieldOption{"--listen", "listen_address", "IP:PORT that other nodes connect to"},
    FieldOption{"--cluster-secret", "cluster_secret_file",
                "File of the secret that the nodes of a cluster share; see helenus secret --help"},
    FieldOption{"--seeds", "seeds", "IP:PORT,... of nodes to ask for the cluster"},
    FieldOption{"--replace", "replace_node",
                "A dead node in whose place this new one joins: its id, or its IP:PORT for nodes"},
    FieldOption{"--admin", "admin_address", "IP:PORT for health, status and metrics over HTTP"},
    FieldOption{"--cores", "cores", "Event loops, one a core, that serve; 0: on every core"},
    FieldOption{"--file-backend", "file_backend",
                "How files are read, written and synced: auto, io_uring or threads"},
    FieldOption{"--log", "log",
                "Log levels, as in info,storage=debug (trace debug info warn error off)"},
};

struct NodeOptions {
  std::string config_file;
  std::array<std::string, kFieldOptions.size()> values;  // empty: not given
};

void add_node_command(CLI::App& app, NodeOptions& options) {
  CLI::App* command = app.add_subcommand("node", "Run a node until SIGINT or SIGTERM");
  command->add_option("--config", options.config_file,
                      "File of settings (docs/operations/configuration.md); the options below win");
  const node::Config defaults;
  for (std::size_t i = 0; i < kFieldOptions.size(); ++i) {
    const node::ConfigField* field = node::find_config_field(kFieldOptions[i].field);
    command->add_option(kFieldOptions[i].option, options.values[i], kFieldOptions[i].help)
        ->default_str(field->show(defaults))
        ->take_last();
  }
  command->footer(
      "A start that takes long says on standard error what it waits for; \"helenus status\" asks "
      "a\n"
      "node that runs how its cluster is. Exit code 2: it could not start, and one line says why.");
}

base::Result<std::string> content_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string content(node::kConfigFileSizeMax + 1, '\0');
  if (!file) return base::Error(base::Errc::not_found, "cannot open {}", path);
  file.read(content.data(), static_cast<std::streamsize>(content.size()));
  if (file.bad()) return base::Error(base::Errc::io_error, "cannot read {}", path);
  content.resize(static_cast<std::size_t>(file.gcount()));
  return content;
}

base::Result<node::Config> read_options(const NodeOptions& options) {
  node::Config config;
  node::ConfigSource source;
  if (!options.config_file.empty()) {
    TRY(const std::string text, content_of(options.config_file));
    TRY_VOID(node::read_config(options.config_file, text, config, source));
  }
  for (std::size_t i = 0; i < kFieldOptions.size(); ++i) {
    if (options.values[i].empty()) continue;
    const node::ConfigField* field = node::find_config_field(kFieldOptions[i].field);
    auto set = field->set(config, options.values[i]);
    if (!set) return std::move(set).error().within(kFieldOptions[i].option);
    source.lines.erase(std::string(field->name));
  }
  TRY_VOID(node::validate(config, source));
  return config;
}

runtime::native::FileBackend backend_named(const std::string& name) {
  if (name == "io_uring") return runtime::native::FileBackend::io_uring;
  if (name == "threads") return runtime::native::FileBackend::threads;
  return runtime::native::FileBackend::automatic;
}

std::string_view name_of(runtime::native::NativeCore::Files files) {
  return files == runtime::native::NativeCore::Files::io_uring ? "io_uring" : "threads";
}

// Clients may not take the descriptors that files need: theirs are half of them.
void leave_descriptors_for_files(node::Config& config, const base::Logger& log) {
  const std::uint64_t descriptors = runtime::native::raise_descriptor_limit();
  const std::uint64_t for_clients = std::max<std::uint64_t>(descriptors / 2, 1);
  if (config.cql_connections_max <= for_clients) return;
  log.warn("fewer clients than configured: the limit of open files is too low",
           base::kv("cql_connections_max", for_clients), base::kv("open_files_max", descriptors));
  config.cql_connections_max = static_cast<std::uint32_t>(for_clients);
}

// A cache that was not given its size has a quarter of the memory.
void size_block_cache(node::Config& config) {
  if (config.block_cache_mib != 0) return;
  constexpr std::uint64_t kShare = 4;
  constexpr std::uint64_t kMibMin = 16;
  constexpr std::uint64_t kMibMax = std::uint64_t{1} << 20;
  const std::uint64_t mib = (runtime::native::memory_granted() >> 20) / kShare;
  config.block_cache_mib = static_cast<std::uint32_t>(std::clamp(mib, kMibMin, kMibMax));
}

// What a start that takes long waits for, whatever the log is told to leave out.
void tell_progress(const std::string& phase) {
  fmt::print(stderr, "{}: starting: {}\n", kProgram, phase);
}

// A start that fails at once says so in one line.
runtime::Task<int> serve(runtime::Runtime& runtime, runtime::StopToken stop, node::Config config,
                         runtime::native::NativeCore::Files files) {
  leave_descriptors_for_files(config, runtime.logger("server"));
  size_block_cache(config);
  const std::uint32_t cache_mib = config.block_cache_mib;
  node::Node node(runtime, std::move(config));
  const auto started = co_await node.start(stop, tell_progress);
  if (!started) {
    co_await node.stop();
    const bool was_asked_to = stop.stop_requested() && started.failed_with(base::Errc::cancelled);
    co_return was_asked_to ? 0 : fail_at_start(kProgram, started.error());
  }
  runtime.logger("server").info("runtime", base::kv("cores", node.cores()),
                                base::kv("files", name_of(files)),
                                base::kv("block_cache_mib", cache_mib));
  fmt::print("helenus node {} is up: CQL {}, http://{}/healthz\n", node.identity().node,
             node.cql_address(), node.admin_address());
  std::fflush(stdout);
  runtime::Event never(runtime);
  const auto stopped = co_await never.wait({.stop = stop});
  ASSERT(stopped.failed_with(base::Errc::cancelled));
  co_await node.stop();
  co_return 0;
}

int run_node(const NodeOptions& options) {
  const auto config = read_options(options);
  if (!config) return fail_at_start(kProgram, config.error());
  const auto levels = base::LogLevels::parse(config->log);
  if (!levels) return fail_at_start(kProgram, levels.error());
  auto sink = base::SpdlogSink::open({
      .levels = *levels,
      .time_text = [] { return to_string(runtime::native::NativeClock().wall_now()); },
      .file = {},
  });
  if (!sink) return fail_at_start(kProgram, sink.error());

  runtime::native::NativeOptions native;
  native.cores = config->cores;
  native.background_share = config->background_share;
  native.file_backend = backend_named(config->file_backend);
  native.log_sink = sink->get();
  auto host = runtime::native::NativeHost::open(native);
  if (!host) return fail_at_start(kProgram, host.error());
  return (*host)->run([&](runtime::Runtime& runtime, runtime::StopToken stop) {
    return serve(runtime, std::move(stop), *config, (*host)->files());
  });
}

int ask_node(const ClusterCommand& command) {
  auto host = runtime::native::NativeHost::open({.cores = 1});
  if (!host) return fail_at_start(kProgram, host.error());
  const int exit_code = (*host)->run([&](runtime::Runtime& runtime, runtime::StopToken stop) {
    return run_cluster_command(
        runtime, command,
        {.out = runtime::native::print_to_output(), .error = runtime::native::print_to_errors()},
        std::move(stop));
  });
  return runtime::native::after_printing(kProgram, exit_code);
}

CLI::App* add_secret_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand("secret", "Print a new secret for the nodes of a cluster");
  command->footer(
      "One line for the file cluster_secret in the data folder of each node; nobody else may read "
      "it:\n"
      "  (umask 077; helenus secret > cluster_secret)\n"
      "How one is replaced: docs/operations/cluster.md.");
  return command;
}

int print_secret() {
  runtime::native::NativeRandom random;
  fmt::print("{}", rpc::ClusterSecret::draw(random).line().reveal());
  return runtime::native::after_printing(kProgram, 0);
}

int main_of(int argc, char** argv) {
  CLI::App app("Helenus, a masterless database of the Cassandra family", kProgram);
  app.set_version_flag("--version", "helenus " HELENUS_VERSION);
  app.require_subcommand(0, 1);
  NodeOptions options;
  add_node_command(app, options);
  ClusterOptions cluster_options;
  add_cluster_commands(app, cluster_options);
  const CLI::App* secret = add_secret_command(app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    // CLI11 answers --help and --version this way too, with exit code 0.
    if (error.get_exit_code() == 0) return app.exit(error);
    fmt::print(stderr, "{}: {}; see {} --help\n", kProgram, error.what(), kProgram);
    return kExitBadStart;
  }
  if (app.get_subcommands().empty()) {
    fmt::print(stderr,
               "{0}: what to do? {0} node runs a node, {0} status asks one; see {0} --help\n",
               kProgram);
    return kExitBadStart;
  }
  if (secret->parsed()) return print_secret();
  if (is_cluster_command(app)) {
    const auto command = make_cluster_command(app, cluster_options);
    return command ? ask_node(*command) : fail_at_start(kProgram, command.error());
  }
  return run_node(options);
}

}  // namespace
}  // namespace helenus::server

int main(int argc, char** argv) {
  return helenus::server::main_of(argc, argv);
}
