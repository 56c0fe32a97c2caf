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
using contract::WorldFactory;

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

WorldFactory native_world(const char* name, FileBackend backend) {
  return {name,
          [backend](std::uint32_t cores) { return std::make_unique<NativeWorld>(cores, backend); }};
}

}  // namespace
}  // namespace helenus::runtime::native

namespace helenus::runtime::contract {

const WorldFactory kNative = native::native_world("automatic", native::FileBackend::automatic);
const WorldFactory kIoUring = native::native_world("io_uring", native::FileBackend::io_uring);
const WorldFactory kThreads = native::native_world("threads", native::FileBackend::threads);

INSTANTIATE_TEST_SUITE_P(Native, TimersContract, testing::Values(kNative), world_name);
INSTANTIATE_TEST_SUITE_P(Native, PrimitivesContract, testing::Values(kNative), world_name);
INSTANTIATE_TEST_SUITE_P(Native, PrioritiesContract, testing::Values(kNative), world_name);
INSTANTIATE_TEST_SUITE_P(Native, CoresContract, testing::Values(kNative), world_name);
INSTANTIATE_TEST_SUITE_P(Native, TransportContract, testing::Values(kNative), world_name);
INSTANTIATE_TEST_SUITE_P(Native, FileSystemContract, testing::Values(kIoUring, kThreads),
                         world_name);

}  // namespace helenus::runtime::contract
