// bench-append_sync: a commit log's append of 4 KiB and sync, through FileSystem beside a plain
// loop of the same system calls. The figure is the median time of one append, so less is better.
//
//   io_uring   beside liburing: write and fdatasync linked, submit, wait for both
//   threads    beside pwrite and fdatasync
//
// Into a file that grows through the page cache; past the cache into space that was reserved; and
// past the cache over blocks that were written before, as a recycled segment would be.
//
//   bench-append_sync [--quick] [--json FILE] [DIRECTORY]
#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <liburing.h>
#include <unistd.h>

#include "bench/measure.h"
#include "bench/report.h"
#include "runtime/file_system.h"
#include "runtime/native/descriptor.h"
#include "runtime/native/native_host.h"
#include "runtime/native/system_error.h"

namespace helenus::bench {
namespace {

using runtime::Runtime;
using runtime::StopToken;
using runtime::Task;
using runtime::Until;
using runtime::native::Descriptor;
using runtime::native::FileBackend;

constexpr std::size_t kAppendSize = 4096;
constexpr std::size_t kFileSize = std::size_t{16} << 20;

enum class Target { growing, reserved, written };

struct Setting {
  std::string directory;
  Target target = Target::growing;
  int appends = 0;

  bool direct() const { return target != Target::growing; }
  std::string path() const { return directory + "/append_sync"; }
};

[[noreturn]] void give_up(const base::Error& error) {
  std::exit(runtime::native::fail_at_start("bench-append_sync", error));
}

void check(bool good, const char* doing) {
  if (!good) give_up(runtime::native::system_error(errno, doing));
}

base::Buffer make_block() {
  base::Buffer block(kAppendSize, runtime::kDirectAlignment);
  std::memset(block.extend(kAppendSize).data(), 'x', kAppendSize);
  return block;
}

// The file as it is when the appends begin, and durable so.
void prepare(const Setting& setting) {
  Descriptor file(::open(setting.path().c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  check(file.valid(), setting.path().c_str());
  if (setting.target == Target::reserved) {
    check(::fallocate(file.number(), 0, 0, kFileSize) == 0, "reserve space");
  } else if (setting.target == Target::written) {
    const std::vector<char> zeros(kFileSize);
    check(::pwrite(file.number(), zeros.data(), zeros.size(), 0) == ssize_t{kFileSize}, "fill");
  }
  check(::fsync(file.number()) == 0, "sync");
}

Descriptor open_plain(const Setting& setting) {
  prepare(setting);
  const int direct = setting.direct() ? O_DIRECT : 0;
  Descriptor file(::open(setting.path().c_str(), O_RDWR | O_CLOEXEC | direct));
  check(file.valid(), "open");
  return file;
}

// Microseconds of the middle append.
class Laps {
 public:
  void next() {
    laps_.push_back(stopwatch_.seconds() * 1e6);
    stopwatch_.restart();
  }
  double median_us() { return median(std::move(laps_)); }

 private:
  std::vector<double> laps_;
  Stopwatch stopwatch_;
};

double plain_calls(const Setting& setting) {
  const Descriptor file = open_plain(setting);
  const base::Buffer block = make_block();
  Laps laps;
  for (int i = 0; i < setting.appends; ++i) {
    const auto offset = static_cast<off_t>(static_cast<std::size_t>(i) * kAppendSize);
    const ssize_t written = ::pwrite(file.number(), block.data(), kAppendSize, offset);
    check(written == ssize_t{kAppendSize}, "write");
    check(::fdatasync(file.number()) == 0, "sync");
    laps.next();
  }
  return laps.median_us();
}

void append_linked(io_uring& ring, const Descriptor& file, const base::Buffer& block,
                   std::uint64_t offset) {
  io_uring_sqe* write = ::io_uring_get_sqe(&ring);
  ::io_uring_prep_write(write, file.number(), block.data(), kAppendSize, offset);
  ::io_uring_sqe_set_flags(write, IOSQE_IO_LINK);
  io_uring_sqe* sync = ::io_uring_get_sqe(&ring);
  ::io_uring_prep_fsync(sync, file.number(), IORING_FSYNC_DATASYNC);
  check(::io_uring_submit_and_wait(&ring, 2) == 2, "submit");
  for (int answers = 0; answers < 2; ++answers) {
    io_uring_cqe* answer = nullptr;
    check(::io_uring_wait_cqe(&ring, &answer) == 0 && answer->res >= 0, "write and sync");
    ::io_uring_cqe_seen(&ring, answer);
  }
}

double plain_liburing(const Setting& setting) {
  const Descriptor file = open_plain(setting);
  const base::Buffer block = make_block();
  io_uring ring{};
  check(::io_uring_queue_init(8, &ring, 0) == 0, "set up io_uring");
  Laps laps;
  for (int i = 0; i < setting.appends; ++i) {
    append_linked(ring, file, block, static_cast<std::uint64_t>(i) * kAppendSize);
    laps.next();
  }
  ::io_uring_queue_exit(&ring);
  return laps.median_us();
}

Task<int> append_through_file_system(Runtime& rt, const Setting& setting, double& result) {
  auto file = co_await rt.files.open(setting.path(), {.write = true, .direct = setting.direct()});
  if (!file) give_up(file.error());
  (*file)->set_append_position(0);
  const base::Buffer block = make_block();
  Laps laps;
  for (int i = 0; i < setting.appends; ++i) {
    const auto appended = co_await (*file)->append_and_sync(block.view(), Until::forever());
    if (!appended) give_up(appended.error());
    laps.next();
  }
  result = laps.median_us();
  co_return 0;
}

double file_system(const Setting& setting, FileBackend backend) {
  prepare(setting);
  auto host = runtime::native::NativeHost::open(
      {.cores = 1, .file_backend = backend, .handle_signals = false});
  if (!host) give_up(host.error());
  double result = 0;
  (*host)->run(
      [&](Runtime& rt, StopToken) { return append_through_file_system(rt, setting, result); });
  return result;
}

void compare_appends(const Options& options, Report& report) {
  const int rounds = options.quick ? 3 : 15;
  Setting setting{.directory = options.others.empty() ? "." : options.others.front(),
                  .appends = options.quick ? 50 : 200};
  for (const auto& [target, name] : {std::pair(Target::growing, "growing file"),
                                     std::pair(Target::reserved, "direct, reserved space"),
                                     std::pair(Target::written, "direct, written before")}) {
    setting.target = target;
    const auto compare = [&](const char* way, FileBackend backend, const char* peer_name,
                             double (*peer)(const Setting&)) {
      const Medians medians = by_turns(
          rounds, [&] { return file_system(setting, backend); }, [&] { return peer(setting); });
      report.row({.name = fmt::format("{}, {}", way, name),
                  .value = medians.ours,
                  .unit = "us",
                  .peer = peer_name,
                  .peer_value = medians.peer});
    };
    compare("io_uring", FileBackend::io_uring, "liburing linked", plain_liburing);
    compare("threads", FileBackend::threads, "pwrite, fdatasync", plain_calls);
  }
  std::filesystem::remove(setting.path());
}

}  // namespace
}  // namespace helenus::bench

int main(int argc, char** argv) {
  return helenus::bench::benchmark_main(argc, argv, helenus::bench::compare_appends);
}
