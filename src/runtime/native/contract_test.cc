// The contract suites against the operating system, once for each way that files can go.
#include "runtime/contract/contract.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "runtime/native/native_host.h"
#include "runtime/native/temporary_directory.h"

namespace helenus::runtime::native {
namespace {

using contract::World;

class NativeWorld final : public World {
 public:
  NativeWorld(std::uint32_t cores, FileBackend backend) : cores_(cores), backend_(backend) {}

  void run(std::function<Task<void>(Runtime&)> body) override {
    auto host =
        NativeHost::open({.cores = cores_, .file_backend = backend_, .handle_signals = false});
    ASSERT_TRUE(host.has_value()) << host.error().to_string();
    const int exit_code = (*host)->run(
        [body = std::move(body)](Runtime& runtime, StopToken) { return run_body(body, runtime); });
    EXPECT_EQ(exit_code, 0);
  }
  std::string directory() override {
    const std::string path = directory_.path() + "/" + std::to_string(directories_++);
    std::filesystem::create_directory(path);
    return path;
  }
  Address loopback() override { return Address::v4({127, 0, 0, 1}, 0); }
  std::uint32_t core_count() const override { return cores_; }

 private:
  static Task<int> run_body(std::function<Task<void>(Runtime&)> body, Runtime& runtime) {
    co_await body(runtime);
    co_return 0;
  }

  const std::uint32_t cores_;
  const FileBackend backend_;
  TemporaryDirectory directory_;
  int directories_ = 0;
};

std::unique_ptr<World> make_native_world(std::uint32_t cores) {
  return std::make_unique<NativeWorld>(cores, FileBackend::automatic);
}
std::unique_ptr<World> make_io_uring_world(std::uint32_t cores) {
  return std::make_unique<NativeWorld>(cores, FileBackend::io_uring);
}
std::unique_ptr<World> make_threads_world(std::uint32_t cores) {
  return std::make_unique<NativeWorld>(cores, FileBackend::threads);
}

}  // namespace
}  // namespace helenus::runtime::native

namespace helenus::runtime::contract {

using native::make_io_uring_world;
using native::make_native_world;
using native::make_threads_world;

INSTANTIATE_TEST_SUITE_P(Native, TimersContract, testing::Values(make_native_world));
INSTANTIATE_TEST_SUITE_P(Native, PrimitivesContract, testing::Values(make_native_world));
INSTANTIATE_TEST_SUITE_P(Native, CoresContract, testing::Values(make_native_world));
INSTANTIATE_TEST_SUITE_P(Native, TransportContract, testing::Values(make_native_world));
INSTANTIATE_TEST_SUITE_P(IoUring, FileSystemContract, testing::Values(make_io_uring_world));
INSTANTIATE_TEST_SUITE_P(Threads, FileSystemContract, testing::Values(make_threads_world));

}  // namespace helenus::runtime::contract
