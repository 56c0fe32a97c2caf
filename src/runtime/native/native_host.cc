#include "runtime/native/native_host.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <optional>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>

#include "base/assert.h"
#include "runtime/native/processors.h"
#include "runtime/native/system_error.h"

namespace helenus::runtime::native {

using base::Errc;
using base::Error;
using base::Result;

namespace {

constexpr int kExitCodeOfFailedStart = 2;

// Does its best: a thread that may not be pinned runs wherever it may.
void pin_to(pthread_t thread, int processor) {
  cpu_set_t only;
  CPU_ZERO(&only);
  CPU_SET(processor, &only);
  ::pthread_setaffinity_np(thread, sizeof only, &only);
}

std::string read_boot_id() {
  const Descriptor file(::open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC));
  char text[64];
  const ssize_t count = file.valid() ? ::read(file.number(), text, sizeof text) : 0;
  std::string boot_id(text, static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
  while (!boot_id.empty() && boot_id.back() == '\n') boot_id.pop_back();
  if (!boot_id.empty()) return boot_id;
  // Nobody can tell whether the machine went down since, so assume that it did.
  std::array<std::byte, 16> unique;
  NativeRandom().fill_secret(unique);
  return base::to_hex(unique);
}

struct Traffic {
  std::uint64_t sent = 0;
  std::uint64_t run = 0;
  friend bool operator==(const Traffic&, const Traffic&) = default;
};

// Asks a core, from core 0, to wait for its guests and then to tell its traffic so far.
class TrafficOnceGuestsLeft final : public Operation<Traffic> {
 public:
  TrafficOnceGuestsLeft(NativeCore& first, NativeCore& asked)
      : Operation(first.runtime(), Until::forever()), first_(first), asked_(asked) {}

 private:
  static Task<void> tell(TrafficOnceGuestsLeft& question) {
    NativeCore& here = question.asked_;
    co_await here.cores().guests().join();
    const Traffic traffic{.sent = here.cores().counted_sent(), .run = here.loop().counted_run()};
    here.cores().send_control(question.first_.cores().here(),
                              [&question, traffic](Runtime&) { question.complete(traffic); });
  }
  void start() override {
    first_.cores().send_control(asked_.cores().here(),
                                [this](Runtime&) { asked_.housekeeping().spawn(tell(*this)); });
  }
  void cancel() override {}

  NativeCore& first_;
  NativeCore& asked_;
};

}  // namespace

NativeHost::NativeHost(const NativeOptions& options)
    : log_sink_(options.log_sink != nullptr ? *options.log_sink : null_sink_),
      log_(log_sink_, "runtime.native"),
      pin_threads_(options.pin_threads) {}

Result<std::unique_ptr<NativeHost>> NativeHost::open(const NativeOptions& options) {
  if (options.cores > kCoresMax) {
    return Error(Errc::invalid_argument, "{} cores, {} at most", options.cores, kCoresMax);
  }
  if (options.pool_threads == 0 || options.pool_threads > kPoolThreadsMax) {
    return Error(Errc::invalid_argument, "{} threads for blocking calls, 1 to {} possible",
                 options.pool_threads, kPoolThreadsMax);
  }
  if (!(options.background_share >= BackgroundShare::kLeast &&
        options.background_share <= BackgroundShare::kMost)) {
    return Error(Errc::invalid_argument, "a background share of {}, {} to {} possible",
                 options.background_share, BackgroundShare::kLeast, BackgroundShare::kMost);
  }
  auto host = std::unique_ptr<NativeHost>(new NativeHost(options));
  TRY_VOID(host->start(options));
  return host;
}

Result<void> NativeHost::start(const NativeOptions& options) {
  // First of all: the threads to come inherit what is blocked.
  if (options.handle_signals) {
    TRY(signals_, SignalWatcher::open());
  }
  TRY(pool_, ThreadPool::open(options.pool_threads));
  const std::uint32_t count =
      options.cores != 0 ? options.cores : std::min(processors_granted(), kCoresMax);
  TRY_VOID(choose_files(options.file_backend, count));
  for (const auto& core : cores_) {
    core->loop().background_share().set_share(options.background_share);
  }
  TRY_VOID(start_threads());
  if (signals_ != nullptr) {
    TRY_VOID(signals_->start([this](int signal) { stop_on_signal(signal); }));
  }
  // A program says so itself once it is up: a start that fails says one thing.
  log_.debug("started", base::kv("cores", count), base::kv("pool_threads", options.pool_threads),
             base::kv("files", files_ == NativeCore::Files::io_uring ? "io_uring" : "threads"),
             base::kv("pinned", pin_threads_));
  return {};
}

Result<void> NativeHost::choose_files(FileBackend backend, std::uint32_t count) {
  if (backend == FileBackend::threads) return open_cores(NativeCore::Files::threads, count);
  auto opened = open_cores(NativeCore::Files::io_uring, count);
  if (opened || backend == FileBackend::io_uring) return opened;
  log_.warn("io_uring is refused, files go through threads",
            base::kv("error", opened.error().to_string()));
  return open_cores(NativeCore::Files::threads, count);
}

Result<void> NativeHost::open_cores(NativeCore::Files files, std::uint32_t count) {
  const SharedServices shared{
      .pool = *pool_, .addresses = addresses_, .log_sink = log_sink_, .boot_id = read_boot_id()};
  std::vector<std::unique_ptr<NativeCore>> cores;
  std::vector<Inbox*> inboxes;
  for (std::uint32_t number = 0; number < count; ++number) {
    TRY(auto core, NativeCore::open(CoreId(number), count, files, shared));
    inboxes.push_back(&core->loop().inbox());
    cores.push_back(std::move(core));
  }
  for (const auto& core : cores) core->cores().connect(inboxes);
  cores_ = std::move(cores);
  files_ = files;
  return {};
}

Result<void> NativeHost::start_threads() {
  const std::vector<int> processors = processors_allowed();
  try {
    for (std::size_t number = 1; number < cores_.size(); ++number) {
      std::thread& thread = threads_.emplace_back([core = cores_[number].get()] { core->run(); });
      ::pthread_setname_np(thread.native_handle(), fmt::format("core-{}", number).c_str());
      if (pin_threads_) pin_to(thread.native_handle(), processors[number % processors.size()]);
    }
  } catch (const std::system_error& error) {
    return system_error(error.code().value(), "start the thread of a core");
  }
  return {};
}

NativeHost::~NativeHost() {
  if (signals_ != nullptr) signals_->stop();
  stop_threads();
}

int NativeHost::run(Program program) {
  ASSERT(!std::exchange(ran_, true), "a host runs once");
  cpu_set_t affinity_before;
  CPU_ZERO(&affinity_before);
  ::pthread_getaffinity_np(::pthread_self(), sizeof affinity_before, &affinity_before);
  if (pin_threads_) pin_to(::pthread_self(), processors_allowed().front());

  int exit_code = 0;
  NativeCore& first = *cores_.front();
  first.housekeeping().spawn(run_program(std::move(program), stop_.token(), exit_code));
  first.run();
  stop_threads();

  if (pin_threads_) {
    ::pthread_setaffinity_np(::pthread_self(), sizeof affinity_before, &affinity_before);
  }
  return exit_code;
}

Task<void> NativeHost::run_program(Program program, StopToken stop, int& exit_code) {
  NativeCore& first = *cores_.front();
  exit_code = co_await program(first.runtime(), std::move(stop));
  co_await wait_until_quiet();
  first.loop().stop();
}

Task<void> NativeHost::wait_until_quiet() {
  // A guest of one core may call another that was asked already. If two rounds in a row find the
  // same sums, and as many messages run as sent, nothing moved between them and nothing can any
  // more (Mattern's counting algorithm for termination).
  std::optional<Traffic> last_round;
  for (;;) {
    Traffic round;
    for (const auto& core : cores_) {
      const auto traffic = co_await TrafficOnceGuestsLeft(*cores_.front(), *core);
      ASSERT(traffic.has_value());
      round.sent += traffic->sent;
      round.run += traffic->run;
    }
    if (round.sent == round.run && round == last_round) co_return;
    last_round = round;
  }
}

void NativeHost::stop_threads() {
  while (!threads_.empty()) {
    NativeCore& last = *cores_[threads_.size()];
    cores_.front()->cores().send_control(last.cores().here(), [&last](Runtime&) {
      last.loop().inbox().close();
      last.loop().stop();
    });
    threads_.back().join();
    threads_.pop_back();
  }
  if (!cores_.empty()) cores_.front()->loop().inbox().close();
}

void NativeHost::request_stop() {
  // Refused only after the end of run(), when there is nothing left to stop.
  const auto sent = cores_.front()->loop().inbox().send(
      CoreId(0), [this](Runtime&) { stop_.request_stop(); }, Post::control);
  ASSERT(sent || sent.failed_with(Errc::closed));
}

void NativeHost::stop_on_signal(int signal) {
  const auto sent = cores_.front()->loop().inbox().send(
      CoreId(0),
      [this, signal](Runtime&) {
        log_.info("stopping", base::kv("signal", signal));
        stop_.request_stop();
      },
      Post::control);
  ASSERT(sent || sent.failed_with(Errc::closed));
}

int fail_at_start(std::string_view program, const Error& error) {
  fmt::print(stderr, "{}: {}\n", program, error.to_string());
  return kExitCodeOfFailedStart;
}

}  // namespace helenus::runtime::native
