// helenus: the server. Reads the command line, opens the native runtime, and runs one node until
// it is told to stop.
#include <cstdio>
#include <memory>
#include <string>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "base/log_spdlog.h"
#include "node/node.h"
#include "runtime/cores.h"
#include "runtime/event.h"
#include "runtime/native/loop.h"
#include "runtime/native/native_host.h"

namespace helenus::server {
namespace {

using runtime::native::fail_at_start;

constexpr const char* kProgram = "helenus";
constexpr int kExitBadStart = 2;

struct NodeOptions {
  node::Config config;
  std::string admin = "127.0.0.1:7070";
  std::string log = "info";
  std::string file_backend = "auto";
  std::uint32_t cores = 0;
};

void add_node_command(CLI::App& app, NodeOptions& options) {
  CLI::App* command = app.add_subcommand("node", "Run a node until SIGINT or SIGTERM");
  command->add_option("--data", options.config.data_directory, "Folder for all of the node's data")
      ->capture_default_str();
  command->add_option("--admin", options.admin, "IP:PORT for health and status over HTTP")
      ->capture_default_str();
  command->add_option("--cores", options.cores, "Event loops, one a core; 0: all cores")
      ->capture_default_str()
      ->check(CLI::Range(0U, runtime::native::NativeHost::kCoresMax));
  command
      ->add_option("--file-backend", options.file_backend, "How files are read, written and synced")
      ->capture_default_str()
      ->check(CLI::IsMember({"auto", "io_uring", "threads"}));
  command
      ->add_option("--log", options.log,
                   "Log levels, as in info,storage=debug (trace debug info "
                   "warn error off)")
      ->capture_default_str();
}

runtime::native::FileBackend backend_named(const std::string& name) {
  if (name == "io_uring") return runtime::native::FileBackend::io_uring;
  if (name == "threads") return runtime::native::FileBackend::threads;
  return runtime::native::FileBackend::automatic;
}

std::string_view name_of(runtime::native::NativeCore::Files files) {
  return files == runtime::native::NativeCore::Files::io_uring ? "io_uring" : "threads";
}

// Until the node is up nothing is logged below a warning: a start that fails says so in one line.
runtime::Task<int> serve(runtime::Runtime& runtime, runtime::StopToken stop, node::Config config,
                         runtime::native::NativeCore::Files files) {
  node::Node node(runtime, std::move(config));
  const auto started = co_await node.start();
  if (!started) {
    co_await node.stop();
    co_return fail_at_start(kProgram, started.error());
  }
  runtime.logger("server").info("runtime", base::kv("cores", runtime.cores.count()),
                                base::kv("files", name_of(files)));
  fmt::print("helenus node {} is up: http://{}/healthz\n", node.identity().node,
             node.admin_address());
  std::fflush(stdout);
  runtime::Event never(runtime);
  const auto stopped = co_await never.wait({.stop = stop});
  ASSERT(stopped.failed_with(base::Errc::cancelled));
  co_await node.stop();
  co_return 0;
}

int run_node(NodeOptions options) {
  const auto admin = runtime::Address::parse(options.admin);
  if (!admin) return fail_at_start(kProgram, base::Error(admin.error()).within("--admin"));
  options.config.admin_address = *admin;
  const auto levels = base::LogLevels::parse(options.log);
  if (!levels) return fail_at_start(kProgram, base::Error(levels.error()).within("--log"));
  auto sink = base::SpdlogSink::open({
      .levels = *levels,
      .time_text = [] { return to_string(runtime::native::NativeClock().wall_now()); },
      .file = {},
  });
  if (!sink) return fail_at_start(kProgram, sink.error());

  runtime::native::NativeOptions native;
  native.cores = options.cores;
  native.file_backend = backend_named(options.file_backend);
  native.log_sink = sink->get();
  auto host = runtime::native::NativeHost::open(native);
  if (!host) return fail_at_start(kProgram, host.error());
  return (*host)->run([&](runtime::Runtime& runtime, runtime::StopToken stop) {
    return serve(runtime, std::move(stop), options.config, (*host)->files());
  });
}

int main_of(int argc, char** argv) {
  CLI::App app("Helenus, a masterless database of the Cassandra family", kProgram);
  app.set_version_flag("--version", "helenus " HELENUS_VERSION);
  app.require_subcommand(1);
  NodeOptions options;
  add_node_command(app, options);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    // CLI11 answers --help and --version this way too, with exit code 0.
    if (error.get_exit_code() == 0) return app.exit(error);
    fmt::print(stderr, "{}: {}; see {} --help\n", kProgram, error.what(), kProgram);
    return kExitBadStart;
  }
  return run_node(std::move(options));
}

}  // namespace
}  // namespace helenus::server

int main(int argc, char** argv) {
  return helenus::server::main_of(argc, argv);
}
