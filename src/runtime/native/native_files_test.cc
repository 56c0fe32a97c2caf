// What only the operating system can do to files: limits, rights, other processes, odd kinds of
// file. Each story runs once for each way that files can go.
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <fstream>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/call_on.h"
#include "runtime/file_system.h"
#include "runtime/native/blocking_files.h"
#include "runtime/native/file_request.h"
#include "runtime/native/temporary_directory.h"
#include "runtime/native/test_support.h"
#include "runtime/task_group.h"

namespace helenus::runtime::native {
namespace {

using base::Errc;
using base::Result;

const Until kForever = Until::forever();
constexpr uid_t kNobody = 65534;

class NativeFiles : public testing::TestWithParam<FileBackend> {
 protected:
  using Story = Task<int> (*)(Runtime& runtime, std::string directory);

  void tell(Story story) { tell_in(directory_.path(), story); }
  static void tell_in(const std::string& directory, Story story, FileBackend backend) {
    run_host({.cores = 1, .file_backend = backend},
             [&](Runtime& rt, StopToken) { return story(rt, directory); });
  }
  void tell_in(const std::string& directory, Story story) { tell_in(directory, story, GetParam()); }

  TemporaryDirectory directory_;
};

using NativeFilesDeathTest = NativeFiles;

// A file at its limit

Task<int> write_beyond_the_limit(Runtime& rt, std::string dir) {
  const std::string block(8192, 'x');
  auto file = co_await rt.files.open(dir + "/file", OpenOptions::create_new());
  EXPECT_TRUE(file.has_value());
  if (!file) co_return 1;
  // The first part fits, so the kernel writes it, breaks the link to the sync, and refuses the
  // rest.
  const auto written = co_await (*file)->append_and_sync(base::as_bytes(block), kForever);
  EXPECT_TRUE(written.failed_with(Errc::no_space)) << written.error().to_string();
  const auto plain = co_await (*file)->write_at(0, base::as_bytes(block), kForever);
  EXPECT_TRUE(plain.failed_with(Errc::no_space));
  auto size = co_await (*file)->size();
  EXPECT_TRUE(size.has_value() && *size == 6144) << *size;
  const auto reserved = co_await (*file)->preallocate(8192);
  EXPECT_TRUE(reserved.failed_with(Errc::no_space)) << reserved.error().to_string();
  const auto lengthened = co_await (*file)->truncate(8192);
  EXPECT_TRUE(lengthened.failed_with(Errc::no_space));
  // Within the limit all is well.
  const auto within = co_await (*file)->write_at(0, base::as_bytes("fits"), kForever);
  EXPECT_TRUE(within.has_value());
  co_return 0;
}

TEST_P(NativeFilesDeathTest, AWriteThatMeetsTheFileSizeLimitIsOutOfSpace) {
  const auto story = [&] {
    const rlimit limit{.rlim_cur = 6144, .rlim_max = 6144};
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
    tell(write_beyond_the_limit);
  };
  IN_CHILD_PROCESS(story());
}

// A full device

Task<int> fill_the_device(Runtime& rt, std::string dir) {
  const std::string much(256 << 10, 'x');
  auto file = co_await rt.files.open(dir + "/file", OpenOptions::create_new());
  EXPECT_TRUE(file.has_value());
  if (!file) co_return 1;
  const auto reserved = co_await (*file)->preallocate(much.size());
  EXPECT_TRUE(reserved.failed_with(Errc::no_space)) << reserved.error().to_string();
  const auto written = co_await (*file)->append_and_sync(base::as_bytes(much), kForever);
  EXPECT_TRUE(written.failed_with(Errc::no_space)) << written.error().to_string();
  const auto space = co_await rt.files.space(dir);
  EXPECT_TRUE(space.has_value());
  if (space) EXPECT_EQ(space->total_bytes, 64U << 10);
  co_return 0;
}

TEST_P(NativeFilesDeathTest, AFullDeviceIsOutOfSpace) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can mount a small device";
  const auto story = [&] {
    ASSERT_EQ(::unshare(CLONE_NEWNS), 0);
    ASSERT_EQ(::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr), 0);
    ASSERT_EQ(::mount("none", directory_.path().c_str(), "tmpfs", 0, "size=64k"), 0);
    tell(fill_the_device);
    ::umount(directory_.path().c_str());
  };
  IN_CHILD_PROCESS(story());
}

// Rights

Task<int> meet_closed_doors(Runtime& rt, std::string dir) {
  FileSystem& files = rt.files;
  const auto secret = co_await files.open(dir + "/secret", OpenOptions::read_only());
  EXPECT_TRUE(secret.failed_with(Errc::permission_denied));
  const auto created = co_await files.open(dir + "/new", OpenOptions::create_new());
  EXPECT_TRUE(created.failed_with(Errc::permission_denied));
  EXPECT_TRUE((co_await files.make_directories(dir + "/a/b")).failed_with(Errc::permission_denied));
  EXPECT_TRUE((co_await files.remove(dir + "/secret")).failed_with(Errc::permission_denied));
  EXPECT_TRUE((co_await files.lock(dir + "/LOCK")).failed_with(Errc::permission_denied));
  const auto renamed = co_await files.rename(dir + "/secret", dir + "/open");
  EXPECT_TRUE(renamed.failed_with(Errc::permission_denied));
  co_return fail_at_start("helenus", created.error());
}

TEST_P(NativeFilesDeathTest, WithoutTheRightsNothingOpensAndTheStartFailsWithOneLine) {
  const auto story = [&] {
    std::ofstream(directory_.path() + "/secret") << "x";
    ASSERT_EQ(::chmod((directory_.path() + "/secret").c_str(), 0600), 0);
    ASSERT_EQ(::chmod(directory_.path().c_str(), 0555), 0);
    if (::geteuid() == 0) ASSERT_TRUE(::setgid(kNobody) == 0 && ::setuid(kNobody) == 0);
    const int exit_code =
        run_host({.cores = 1, .file_backend = GetParam()},
                 [&](Runtime& rt, StopToken) { return meet_closed_doors(rt, directory_.path()); });
    EXPECT_EQ(exit_code, 2);
  };
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        story();
        std::exit(HasFailure() ? 1 : 0);
      },
      testing::ExitedWithCode(0), "^helenus: permission denied: open [^\n]*/new: [^\n]*\n$");
  ::chmod(directory_.path().c_str(), 0755);
}

// Odd kinds of file

Task<int> open_odd_files(Runtime& rt, std::string dir) {
  const auto pipe = co_await rt.files.open(dir + "/pipe", OpenOptions::read_only());
  EXPECT_TRUE(pipe.failed_with(Errc::invalid_argument));
  const auto device = co_await rt.files.open("/dev/null", {.write = true});
  EXPECT_TRUE(device.failed_with(Errc::invalid_argument));
  const auto circle = co_await rt.files.open(dir + "/circle", OpenOptions::read_only());
  EXPECT_TRUE(circle.failed_with(Errc::invalid_argument));
  const auto name = co_await rt.files.open(dir + "/" + std::string(300, 'n'), {.create = true});
  EXPECT_TRUE(name.failed_with(Errc::invalid_argument));
  auto listed = co_await rt.files.list(dir);
  EXPECT_TRUE(listed.has_value());
  if (!listed) co_return 1;
  const std::vector<DirectoryEntry> expected{{"circle"}, {"pipe"}, {"to-directory", true}};
  EXPECT_EQ(*listed, expected);
  co_return 0;
}

TEST_P(NativeFiles, PipesDevicesAndCirclesAreNotOpened) {
  const std::string& dir = directory_.path();
  ASSERT_EQ(::mkfifo((dir + "/pipe").c_str(), 0600), 0);
  ASSERT_EQ(::symlink("circle", (dir + "/circle").c_str()), 0);
  ASSERT_EQ(::symlink("/", (dir + "/to-directory").c_str()), 0);
  tell(open_odd_files);
}

Task<int> open_direct(Runtime& rt, std::string dir) {
  // A directory whose files cannot be opened past the cache: those of the kernel itself.
  const auto file = co_await rt.files.open(dir, {.direct = true});
  EXPECT_TRUE(file.failed_with(Errc::unsupported)) << file.error().to_string();
  co_return 0;
}

TEST_P(NativeFiles, DirectTransfersAreUnsupportedWhereTheSystemHasNone) {
  tell_in("/proc/self/status", open_direct);
}

// Other processes

// A process of its own that holds a lock until it is killed.
class LockHolder {
 public:
  explicit LockHolder(const std::string& path) {
    int ready[2];
    EXPECT_EQ(::pipe(ready), 0);
    process_ = ::fork();
    if (process_ == 0) {
      const int file = ::open(path.c_str(), O_RDWR | O_CREAT, 0600);
      const bool locked = ::flock(file, LOCK_EX | LOCK_NB) == 0;
      const ssize_t told = ::write(ready[1], locked ? "y" : "n", 1);
      for (;;) ::pause();
      ::_exit(told == 1 ? 0 : 1);
    }
    char answer = 0;
    EXPECT_EQ(::read(ready[0], &answer, 1), 1);
    EXPECT_EQ(answer, 'y');
    ::close(ready[0]);
    ::close(ready[1]);
  }
  ~LockHolder() { kill(); }
  void kill() {
    if (process_ <= 0) return;
    ::kill(process_, SIGKILL);
    ::waitpid(std::exchange(process_, -1), nullptr, 0);
  }

 private:
  pid_t process_ = -1;
};

Task<int> lock_against(Runtime& rt, std::string path, LockHolder& holder) {
  const auto refused = co_await rt.files.lock(path);
  EXPECT_TRUE(refused.failed_with(Errc::locked));
  holder.kill();
  const auto held = co_await rt.files.lock(path);
  EXPECT_TRUE(held.has_value());
  co_return 0;
}

TEST_P(NativeFiles, ALockOfAnotherProcessHoldsUntilItDies) {
  const std::string path = directory_.path() + "/LOCK";
  LockHolder holder(path);
  run_host({.cores = 1, .file_backend = GetParam()},
           [&](Runtime& rt, StopToken) { return lock_against(rt, path, holder); });
}

// Cores

Task<Result<std::string>> write_and_read_back(Runtime& there, std::string path, std::string text) {
  CO_TRY(const auto file, co_await there.files.open(path, OpenOptions::create_new()));
  CO_TRY_VOID(co_await file->append_and_sync(base::as_bytes(text), kForever));
  std::string back(text.size(), '?');
  CO_TRY_VOID(co_await file->read_at(0, std::as_writable_bytes(std::span(back)), kForever));
  co_return back;
}

Task<int> use_files_on_every_core(Runtime& rt, std::string dir) {
  for (std::uint32_t core = 0; core < rt.cores.count(); ++core) {
    const std::string text = fmt::format("core {}", core);
    auto back = co_await call_on<std::string>(
        rt, CoreId(core),
        [path = fmt::format("{}/{}", dir, core), text](Runtime& there) {
          return write_and_read_back(there, path, text);
        },
        kForever);
    EXPECT_TRUE(back.has_value());
    if (back) EXPECT_EQ(*back, text);
  }
  co_return 0;
}

TEST_P(NativeFiles, EveryCoreHasItsOwnWayToFiles) {
  run_host({.cores = 3, .file_backend = GetParam(), .handle_signals = false},
           [&](Runtime& rt, StopToken) { return use_files_on_every_core(rt, directory_.path()); });
}

// Limits

Task<void> read_one_byte(File& file, std::size_t& done, std::size_t& refused) {
  std::byte byte;
  const auto count = co_await file.read_at(0, base::MutableByteView(&byte, 1), kForever);
  if (count) ++done;
  if (count.failed_with(Errc::overloaded)) ++refused;
}

Task<int> read_all_at_once(Runtime& rt, std::string dir) {
  auto file = co_await rt.files.open(dir + "/file", OpenOptions::create_new());
  EXPECT_TRUE(file.has_value());
  if (!file) co_return 1;
  std::size_t done = 0;
  std::size_t refused = 0;
  TaskGroup group(rt);
  constexpr std::size_t kTooMany = FileRequests::kPendingMax + 1000;
  for (std::size_t i = 0; i < kTooMany; ++i) group.spawn(read_one_byte(**file, done, refused));
  co_await group.join();
  EXPECT_EQ(done + refused, kTooMany);
  EXPECT_GE(done, FileRequests::kPendingMax);
  co_return 0;
}

TEST_P(NativeFiles, ManyMoreReadsThanTheKernelTakesWaitTheirTurn) {
  tell(read_all_at_once);
}

std::string backend_name(const testing::TestParamInfo<FileBackend>& info) {
  return info.param == FileBackend::io_uring ? "io_uring" : "threads";
}

const auto kBackends = testing::Values(FileBackend::io_uring, FileBackend::threads);
INSTANTIATE_TEST_SUITE_P(Backend, NativeFiles, kBackends, backend_name);
INSTANTIATE_TEST_SUITE_P(Backend, NativeFilesDeathTest, kBackends, backend_name);

}  // namespace
}  // namespace helenus::runtime::native
