// NativeHost: the process as the operating system sees it. It owns the cores (an event loop and a
// thread each), the thread pool and the signals, and runs a program on core 0.
//
//   auto host = NativeHost::open(options);
//   if (!host) return fail_at_start("helenus", host.error());
//   return (*host)->run([](Runtime& runtime, StopToken stop) { return serve(runtime, stop); });
//
// Stopping, in order: SIGINT or SIGTERM (or request_stop) stops the token; the program winds up and
// returns; the host waits until no core has guests and no message is on its way; then the loops
// end, the last core first, core 0 last; then the pool. A second signal ends the process at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <thread>
#include <vector>

#include "base/log.h"
#include "base/result.h"
#include "runtime/native/native_core.h"
#include "runtime/native/signals.h"
#include "runtime/stop_token.h"
#include "runtime/task.h"

namespace helenus::runtime::native {

// Which way reads, writes and syncs of files take.
enum class FileBackend : unsigned char {
  automatic,  // io_uring, or threads where the kernel refuses it
  io_uring,
  threads,
};

struct NativeOptions {
  // 0: as many as this process is granted (processors.h).
  std::uint32_t cores = 0;
  // Each core's thread stays on one processor.
  bool pin_threads = false;
  FileBackend file_backend = FileBackend::automatic;
  // For calls that block, shared by all cores.
  std::size_t pool_threads = 4;
  // What background work has of each core while foreground work waits, from BackgroundShare::kLeast
  // to kMost.
  double background_share = BackgroundShare::kDefault;
  bool handle_signals = true;
  // Shared by all cores, so it must bear that. Null: nothing is logged. Outlives the host.
  base::LogSink* log_sink = nullptr;
};

class NativeHost {
 public:
  static constexpr std::uint32_t kCoresMax = 1024;
  static constexpr std::size_t kPoolThreadsMax = 1024;

  using Program = std::function<Task<int>(Runtime& runtime, StopToken stop)>;

  // Errors: invalid_argument (options), overloaded (descriptors, threads, memory); with
  // FileBackend::io_uring also what the kernel says to it.
  static base::Result<std::unique_ptr<NativeHost>> open(const NativeOptions& options);
  ~NativeHost();
  NativeHost(const NativeHost&) = delete;
  NativeHost& operator=(const NativeHost&) = delete;

  // Runs the program on core 0, which is the calling thread, until it has returned and everything
  // it left behind has ended. Gives its exit code. Requires: called once.
  int run(Program program);
  // From any thread; also before run().
  void request_stop();

  NativeCore::Files files() const { return files_; }

 private:
  explicit NativeHost(const NativeOptions& options);

  base::Result<void> start(const NativeOptions& options);
  base::Result<void> choose_files(FileBackend backend, std::uint32_t count);
  base::Result<void> open_cores(NativeCore::Files files, std::uint32_t count);
  base::Result<void> start_threads();
  void stop_threads();
  void stop_on_signal(int signal);
  Task<void> run_program(Program program, StopToken stop, int& exit_code);
  Task<void> wait_until_quiet();

  base::NullSink null_sink_;
  base::LogSink& log_sink_;
  base::Logger log_;
  const bool pin_threads_;
  NativeCore::Files files_ = NativeCore::Files::threads;
  bool ran_ = false;
  StopSource stop_;  // belongs to core 0
  std::unique_ptr<SignalWatcher> signals_;
  SharedAddresses addresses_;
  std::vector<std::unique_ptr<NativeCore>> cores_;
  // Ends before the cores do: its threads still touch an inbox after they have handed work back.
  std::unique_ptr<ThreadPool> pool_;
  std::vector<std::thread> threads_;  // of the cores but the first
};

// For mains: prints "program: what went wrong" as one line on standard error, and gives the exit
// code for a start that failed.
int fail_at_start(std::string_view program, const base::Error& error);

}  // namespace helenus::runtime::native
