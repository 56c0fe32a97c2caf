#include "runtime/native/native_host.h"

#include <atomic>
#include <cmath>
#include <csignal>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <latch>
#include <map>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/log_spdlog.h"
#include "runtime/call_on.h"
#include "runtime/event.h"
#include "runtime/native/loop.h"
#include "runtime/native/processors.h"
#include "runtime/native/temporary_directory.h"
#include "runtime/native/test_support.h"
#include "runtime/sleep.h"

namespace helenus::runtime::native {
namespace {

using base::Errc;
using base::Result;
using testing::HasSubstr;

const Until kForever = Until::forever();

NativeOptions quiet(std::uint32_t cores) {
  return {.cores = cores, .handle_signals = false};
}

Task<int> give(Runtime&, StopToken, int value) {
  co_return value;
}

// Waits to be told to stop; 0 if it was, 1 if not.
Task<int> wait_for_stop(Runtime& runtime, StopToken stop) {
  const auto slept = co_await sleep_for(runtime, 60s, stop);
  co_return slept.failed_with(Errc::cancelled) ? 0 : 1;
}

TEST(NativeHost, GivesTheExitCodeOfItsProgram) {
  EXPECT_EQ(run_host(quiet(1), [](Runtime& rt, StopToken stop) { return give(rt, stop, 7); }), 7);
  EXPECT_EQ(run_host(quiet(3), [](Runtime& rt, StopToken stop) { return give(rt, stop, 0); }), 0);
}

TEST(NativeHost, EndsInOrderWithoutHavingRun) {
  const auto host = NativeHost::open(quiet(4));
  ASSERT_TRUE(host.has_value());
}

TEST(NativeHost, HasACoreForEveryProcessorUnlessTold) {
  const int count = run_host(quiet(0), [](Runtime& rt, StopToken stop) {
    return give(rt, stop, static_cast<int>(rt.cores.count()));
  });
  EXPECT_EQ(static_cast<std::uint32_t>(count), processors_granted());
}

TEST(NativeHost, RefusesOptionsWithoutSense) {
  EXPECT_TRUE(
      NativeHost::open(quiet(NativeHost::kCoresMax + 1)).failed_with(Errc::invalid_argument));
  NativeOptions options = quiet(1);
  options.pool_threads = 0;
  EXPECT_TRUE(NativeHost::open(options).failed_with(Errc::invalid_argument));
  options.pool_threads = NativeHost::kPoolThreadsMax + 1;
  EXPECT_TRUE(NativeHost::open(options).failed_with(Errc::invalid_argument));
  options = quiet(1);
  for (const double share : {0.0, 1.0, std::nan("")}) {
    options.background_share = share;
    EXPECT_TRUE(NativeHost::open(options).failed_with(Errc::invalid_argument)) << share;
  }
}

TEST(NativeHost, EveryCoreHasTheBackgroundShareThatWasSet) {
  NativeOptions options = quiet(2);
  options.background_share = 0.5;
  auto host = NativeHost::open(options);
  ASSERT_TRUE(host.has_value()) << host.error().to_string();
  (*host)->run([](Runtime& runtime, StopToken) -> Task<int> {
    struct There {
      static Task<base::Result<double>> share(Runtime& there) {
        co_return there.executor.background_share().share();
      }
    };
    for (const CoreId core : {CoreId{0}, CoreId{1}}) {
      const auto share = co_await call_on<double>(runtime, core, There::share, Until::forever());
      EXPECT_TRUE(share.has_value() && *share == 0.5) << core.value();
    }
    co_return 0;
  });
}

TEST(NativeHost, KnowsTheBootOfTheMachine) {
  std::string expected;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> expected;
  std::string seen;
  run_host(quiet(1), [&seen](Runtime& rt, StopToken stop) {
    seen = rt.boot_id;
    return give(rt, stop, 0);
  });
  EXPECT_EQ(seen, expected);
  EXPECT_FALSE(seen.empty());
}

TEST(NativeHost, EveryHostDrawsOtherNumbers) {
  std::set<std::uint64_t> drawn;
  std::set<std::string> secrets;
  for (int run = 0; run < 3; ++run) {
    run_host(quiet(1), [&](Runtime& rt, StopToken stop) {
      drawn.insert(rt.random.next());
      std::string secret(300, '\0');
      rt.random.fill_secret(std::as_writable_bytes(std::span(secret)));
      secrets.insert(secret);
      EXPECT_FALSE(rt.buggify("native"));
      return give(rt, stop, 0);
    });
  }
  EXPECT_EQ(drawn.size(), 3U);
  EXPECT_EQ(secrets.size(), 3U);
}

TEST(NativeHost, PinsItsThreadsAndLetsGoAfterwards) {
  cpu_set_t before;
  cpu_set_t after;
  ASSERT_EQ(::sched_getaffinity(0, sizeof before, &before), 0);
  NativeOptions options = quiet(2);
  options.pin_threads = true;
  const int processors = run_host(options, [](Runtime& rt, StopToken stop) {
    cpu_set_t during;
    ::sched_getaffinity(0, sizeof during, &during);
    return give(rt, stop, CPU_COUNT(&during));
  });
  EXPECT_EQ(processors, 1);
  ASSERT_EQ(::sched_getaffinity(0, sizeof after, &after), 0);
  EXPECT_TRUE(CPU_EQUAL(&before, &after));
}

// Cores

Task<Result<std::uint32_t>> add_one(Runtime& there, std::uint32_t number) {
  co_return number + there.cores.here().value();
}

Task<int> ping_pong(Runtime& rt, StopToken, int rounds) {
  std::uint32_t sum = 0;
  for (int round = 0; round < rounds; ++round) {
    const CoreId to(static_cast<std::uint32_t>(round) % rt.cores.count());
    auto added = co_await call_on<std::uint32_t>(
        rt, to, [sum](Runtime& there) { return add_one(there, sum); }, kForever);
    if (!added) co_return -1;
    sum = *added;
  }
  co_return static_cast<int>(sum);
}

TEST(NativeHost, CoresAnswerOneAnother) {
  const int sum =
      run_host(quiet(4), [](Runtime& rt, StopToken stop) { return ping_pong(rt, stop, 4000); });
  EXPECT_EQ(sum, 1000 * (0 + 1 + 2 + 3));
}

// Calls the next core, which calls the next, until the chain is at its end.
Task<Result<int>> chain(Runtime& here, int length) {
  if (length == 0) co_return 0;
  const CoreId next((here.cores.here().value() + 1) % here.cores.count());
  auto below = co_await call_on<int>(
      here, next, [length](Runtime& there) { return chain(there, length - 1); }, kForever);
  if (!below) co_return std::move(below).error();
  co_return *below + 1;
}

Task<void> expect_chain(Runtime& rt, int length) {
  auto counted = co_await chain(rt, length);
  EXPECT_TRUE(counted.has_value());
  if (counted) EXPECT_EQ(*counted, length);
}

Task<int> many_chains(Runtime& rt, StopToken) {
  TaskGroup group(rt);
  for (int length = 0; length < 200; ++length) group.spawn(expect_chain(rt, length));
  co_await group.join();
  co_return 0;
}

TEST(NativeHost, CallsMayCrossTheCoresInAllDirectionsAtOnce) {
  EXPECT_EQ(run_host(quiet(3), many_chains), 0);
}

// Goes from core to core by messages that nobody waits for.
void wander(Runtime& here, int steps, std::atomic<int>& visits) {
  ++visits;
  if (steps == 0) return;
  const CoreId next((here.cores.here().value() + 1) % here.cores.count());
  EXPECT_TRUE(
      here.cores.send(next, [steps, &visits](Runtime& there) { wander(there, steps - 1, visits); })
          .has_value());
}

Task<Result<void>> linger(Runtime& there, std::atomic<int>& ended) {
  auto slept = co_await sleep_for(there, 20ms, {});
  ++ended;
  co_return slept;
}

Task<int> leave_work_behind(Runtime& rt, std::atomic<int>& visits, std::atomic<int>& ended) {
  wander(rt, 1000, visits);
  for (std::uint32_t core = 0; core < rt.cores.count(); ++core) {
    const auto cut = co_await call_on<void>(
        rt, CoreId(core), [&ended](Runtime& there) { return linger(there, ended); },
        Until::after(rt, 1ms));
    EXPECT_TRUE(cut.failed_with(Errc::timeout));
  }
  co_return 0;
}

TEST(NativeHost, WaitsForGuestsAndMessagesBeforeItEnds) {
  std::atomic<int> visits = 0;
  std::atomic<int> ended = 0;
  run_host(quiet(3), [&](Runtime& rt, StopToken) { return leave_work_behind(rt, visits, ended); });
  EXPECT_EQ(visits, 1001);
  EXPECT_EQ(ended, 3);
}

Task<int> flood(Runtime& rt, std::latch& flooded) {
  const CoreId to(1);
  EXPECT_TRUE(rt.cores.send(to, [&flooded](Runtime&) { flooded.wait(); }).has_value());
  // The one above may have been taken out already.
  std::size_t accepted = 0;
  Result<void> sent;
  while (sent && accepted <= 2 * Cores::kWaitingMax) {
    sent = rt.cores.send(to, [](Runtime&) {});
    if (sent) ++accepted;
  }
  EXPECT_TRUE(sent.failed_with(Errc::overloaded));
  EXPECT_GE(accepted, Cores::kWaitingMax - 1);
  flooded.count_down();
  co_return 0;
}

TEST(NativeHost, ACoreThatDoesNotListenIsNotFloodedForEver) {
  std::latch flooded(1);
  run_host(quiet(2), [&](Runtime& rt, StopToken) { return flood(rt, flooded); });
}

// Logging

constexpr int kLinesPerCore = 2000;

Task<Result<void>> write_lines(Runtime& there) {
  const base::Logger log = there.logger("test");
  for (int line = 0; line < kLinesPerCore / 2; ++line) {
    log.debug("waits in a buffer that the cores share", base::kv("core", there.cores.here()));
    log.info("goes out at once", base::kv("core", there.cores.here()));
  }
  co_return {};
}

Task<void> expect_lines_written(Runtime& rt, CoreId core) {
  const auto written = co_await call_on<void>(rt, core, write_lines, kForever);
  EXPECT_TRUE(written.has_value());
}

Task<int> write_lines_everywhere(Runtime& rt, StopToken) {
  TaskGroup group(rt);
  // Its own last: the others have begun when it does.
  for (std::uint32_t core = rt.cores.count(); core > 0; --core) {
    group.spawn(expect_lines_written(rt, CoreId(core - 1)));
  }
  co_await group.join();
  co_return 0;
}

TEST(NativeHost, CoresShareALogFileThatKeepsTheirLinesWhole) {
  const TemporaryDirectory folder;
  const std::string path = folder.path() + "/helenus.log";
  auto sink = base::SpdlogSink::open({
      .levels = base::LogLevels(base::LogLevel::debug),
      .time_text = [] { return to_string(NativeClock().wall_now()); },
      // Small: the file is changed for a new one while both cores write.
      .file = base::SpdlogSink::File{.path = path, .bytes_max = 64 << 10, .old_files_max = 100},
  });
  ASSERT_TRUE(sink.has_value());
  NativeOptions options = quiet(2);
  options.log_sink = sink->get();
  run_host(options, write_lines_everywhere);
  (*sink)->flush();
  EXPECT_EQ((*sink)->lines_refused_count(), 0U);

  std::size_t files = 0;
  std::map<std::string, int> lines;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
    ++files;
    std::ifstream file(entry.path());
    for (std::string line; std::getline(file, line);) {
      if (line.contains(" test ")) ++lines[line.substr(line.find(" test "))];
    }
  }
  EXPECT_GT(files, 1U);
  for (const std::string core : {"0", "1"}) {
    EXPECT_EQ(lines[" test  goes out at once core=" + core], kLinesPerCore / 2);
    EXPECT_EQ(lines[" test  waits in a buffer that the cores share core=" + core],
              kLinesPerCore / 2);
  }
  EXPECT_EQ(lines.size(), 4U) << "every line is whole";
}

// Stopping

TEST(NativeHost, StopsWhenAskedFromAnotherThread) {
  auto host = NativeHost::open(quiet(2));
  ASSERT_TRUE(host.has_value());
  std::thread asker([&] { (*host)->request_stop(); });
  EXPECT_EQ((*host)->run(wait_for_stop), 0);
  asker.join();
  (*host)->request_stop();
}

TEST(NativeHost, StopsInOrderOnASignal) {
  for (const int signal : {SIGTERM, SIGINT}) {
    SharedLog log;
    const int exit_code =
        run_host({.cores = 2, .log_sink = &log}, [signal](Runtime& rt, StopToken stop) {
          ::kill(::getpid(), signal);
          return wait_for_stop(rt, stop);
        });
    EXPECT_EQ(exit_code, 0);
    EXPECT_TRUE(log.contains(fmt::format("stopping signal={}", signal)));
  }
}

TEST(NativeHost, LeavesSignalsAsItFoundThem) {
  sigset_t before;
  sigset_t after;
  struct sigaction pipe_before{};
  struct sigaction pipe_after{};
  ::pthread_sigmask(SIG_SETMASK, nullptr, &before);
  ::sigaction(SIGPIPE, nullptr, &pipe_before);
  run_host({.cores = 1}, [](Runtime& rt, StopToken stop) { return give(rt, stop, 0); });
  ::pthread_sigmask(SIG_SETMASK, nullptr, &after);
  ::sigaction(SIGPIPE, nullptr, &pipe_after);
  EXPECT_EQ(::sigismember(&after, SIGTERM), ::sigismember(&before, SIGTERM));
  EXPECT_EQ(pipe_after.sa_handler, pipe_before.sa_handler);
}

Task<int> ignore_the_stop(Runtime& rt, StopToken stop) {
  ::kill(::getpid(), SIGTERM);
  const auto stopped = co_await sleep_for(rt, 60s, stop);
  EXPECT_TRUE(stopped.failed_with(Errc::cancelled));
  ::kill(::getpid(), SIGTERM);
  co_return co_await wait_for_stop(rt, {});
}

TEST(NativeHostDeathTest, ASecondSignalEndsTheProcessAtOnce) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(run_host({.cores = 2}, ignore_the_stop), testing::ExitedWithCode(130), "");
}

Task<int> get_stuck(Runtime&, StopToken) {
  ::kill(::getpid(), SIGTERM);
  ::kill(::getpid(), SIGINT);
  for (;;) std::this_thread::yield();
}

TEST(NativeHostDeathTest, ASecondSignalIsHeardEvenWhenACoreIsStuck) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(run_host({.cores = 1}, get_stuck), testing::ExitedWithCode(130), "");
}

// Starting where the system does not want us to

// From here on the kernel answers that system call with EPERM, as sandboxes have it.
void forbid(unsigned system_call) {
  sock_filter program[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, system_call, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog filter{.len = std::size(program), .filter = program};
  ASSERT_EQ(::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
  ASSERT_EQ(::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter), 0);
}

void expect_files_by_threads() {
  forbid(__NR_io_uring_setup);
  SharedLog log;
  const auto host = NativeHost::open({.cores = 2, .log_sink = &log});
  ASSERT_TRUE(host.has_value());
  EXPECT_EQ((*host)->files(), NativeCore::Files::threads);
  EXPECT_TRUE(log.contains("io_uring is refused, files go through threads"));
  EXPECT_TRUE(log.contains("files=threads"));
  const auto insisting = NativeHost::open(
      {.cores = 2, .file_backend = FileBackend::io_uring, .handle_signals = false});
  EXPECT_TRUE(insisting.failed_with(Errc::permission_denied));
}

TEST(NativeHostDeathTest, WithoutIoUringFilesGoThroughThreads) {
  IN_CHILD_PROCESS(expect_files_by_threads());
}

Task<int> sleep_a_little(Runtime& rt) {
  const MonotonicTime wake_at = rt.clock.now() + 1500us;
  const auto slept = co_await sleep_until(rt, wake_at, {});
  EXPECT_TRUE(slept.has_value());
  EXPECT_GE(rt.clock.now(), wake_at);
  co_return 0;
}

void expect_waits_without_the_newer_call() {
  forbid(__NR_epoll_pwait2);
  EXPECT_EQ(run_host(quiet(1), [](Runtime& rt, StopToken) { return sleep_a_little(rt); }), 0);
  EXPECT_EQ(
      run_host(quiet(4), [](Runtime& rt, StopToken stop) { return ping_pong(rt, stop, 400); }),
      100 * (0 + 1 + 2 + 3));
}

TEST(NativeHostDeathTest, OlderKernelsWaitInMilliseconds) {
  IN_CHILD_PROCESS(expect_waits_without_the_newer_call());
}

TEST(NativeHost, SaysWhichWayFilesGo) {
  for (const auto& [backend, text] : {std::pair(FileBackend::threads, "files=threads"),
                                      std::pair(FileBackend::io_uring, "files=io_uring")}) {
    SharedLog log;
    const auto host = NativeHost::open(
        {.cores = 1, .file_backend = backend, .handle_signals = false, .log_sink = &log});
    ASSERT_TRUE(host.has_value()) << host.error().to_string();
    EXPECT_TRUE(log.contains(text));
  }
}

void expect_no_start_without_descriptors() {
  const rlimit few{.rlim_cur = 12, .rlim_max = 12};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
  const auto host = NativeHost::open({.cores = 16});
  EXPECT_TRUE(host.failed_with(Errc::overloaded));
}

TEST(NativeHostDeathTest, AStartWithoutDescriptorsIsAnError) {
  if (!kCanRunOutOfDescriptors) GTEST_SKIP() << "the sanitizer needs descriptors itself";
  IN_CHILD_PROCESS(expect_no_start_without_descriptors());
}

Task<int> listen_at(Runtime& rt, Address address) {
  const auto listener = rt.transport.listen(address);
  if (!listener) co_return fail_at_start("helenus", listener.error());
  co_return 0;
}

Task<int> listen_twice(Runtime& rt) {
  const auto first = rt.transport.listen(Address::v4({127, 0, 0, 1}, 0));
  if (!first) co_return -1;
  co_return co_await listen_at(rt, (*first)->address());
}

TEST(NativeHost, ABusyPortGivesOneClearLineAndExitCodeTwo) {
  testing::internal::CaptureStderr();
  const int exit_code = run_host(quiet(1), [](Runtime& rt, StopToken) { return listen_twice(rt); });
  const std::string line = testing::internal::GetCapturedStderr();
  EXPECT_EQ(exit_code, 2);
  EXPECT_THAT(line, testing::MatchesRegex(
                        "helenus: address in use: listen on 127\\.0\\.0\\.1:[0-9]+: .*\n"));
}

}  // namespace
}  // namespace helenus::runtime::native
