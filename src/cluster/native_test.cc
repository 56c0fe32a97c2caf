// Three nodes over real sockets and files, on addresses of their own, become a cluster; one of them
// is stopped and comes back; a fourth with another cluster's name is refused.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "cluster/cluster_service.h"
#include "runtime/contract/world.h"
#include "runtime/files.h"
#include "runtime/native/native_host.h"
#include "runtime/native/temporary_directory.h"
#include "runtime/when_all.h"

namespace helenus::cluster {
namespace {

using base::Errc;
using base::Result;
using runtime::Address;
using runtime::Runtime;
using runtime::StopToken;
using runtime::Task;
using runtime::Until;
using namespace std::chrono_literals;

// Loopback addresses that no other process of this test uses at the same time.
Address address_of(std::uint8_t number) {
  const auto process = static_cast<std::uint32_t>(::getpid());
  return Address::v4({127, static_cast<std::uint8_t>(64 + process / 256 % 64),
                      static_cast<std::uint8_t>(process % 256), number},
                     7000);
}

ClusterService::Options options_of(const std::string& folder, std::uint8_t number) {
  return {.data_directory = folder + "/" + std::to_string(number),
          .cluster_name = "troy",
          .self = {.id = model::NodeId(base::Uuid::from_random(number, number)),
                   .node_address = address_of(number),
                   .client_address = address_of(number).with_port(9042),
                   .datacentre = "dc1",
                   .rack = "r" + std::to_string(number)},
          .listen_address = address_of(number),
          .seeds = {address_of(1), address_of(2), address_of(3)},
          .tokens = 32,
          .retry_pause = 20ms,
          .gossip_interval = 50ms};
}

Task<Result<void>> prepare(Runtime& rt, const ClusterService::Options& options) {
  CO_TRY_VOID(co_await runtime::make_directories_durably(rt, options.data_directory));
  co_return co_await ClusterService::prepare(rt, options.data_directory, options.self.id);
}

using Services = std::vector<std::unique_ptr<ClusterService>>;

// All of them have applied the newest metadata that any of them knows.
Task<void> expect_agreement(Runtime& rt, Services& services) {
  consensus::Version newest;
  for (const auto& service : services) newest = std::max(newest, service->version());
  for (const auto& service : services) {
    CO_ASSERT_OK(co_await service->wait_applied_everywhere(newest, Until::after(rt, 30s)));
    EXPECT_EQ(service->metadata()->nodes.size(), 3U);
    EXPECT_EQ(*service->metadata(), *services.front()->metadata());
  }
}

Task<void> try_another_name(Runtime& rt, const std::string& folder) {
  ClusterService::Options options = options_of(folder, 4);
  options.cluster_name = "carthage";
  CO_ASSERT_OK(co_await prepare(rt, options));
  ClusterService stranger(rt, options, {});
  const auto started = co_await stranger.start(Until::after(rt, 300ms));
  EXPECT_TRUE(started.failed_with(Errc::timeout));
  EXPECT_THAT(started.error().to_string(), ::testing::HasSubstr("troy"));
  co_await stranger.stop();
}

Task<int> be_three_nodes(Runtime& rt, StopToken) {
  const runtime::native::TemporaryDirectory folder;
  Services services;
  std::vector<Task<Result<void>>> starts;
  for (std::uint8_t number = 1; number <= 3; ++number) {
    const auto options = options_of(folder.path(), number);
    const auto prepared = co_await prepare(rt, options);
    EXPECT_TRUE(prepared.has_value());
    services.push_back(std::make_unique<ClusterService>(rt, options, ClusterService::Hooks()));
    starts.push_back(services.back()->start(Until::after(rt, 30s)));
  }
  for (const auto& started : co_await runtime::when_all(std::move(starts))) {
    EXPECT_TRUE(started.has_value()) << started.error().to_string();
  }
  co_await expect_agreement(rt, services);
  co_await try_another_name(rt, folder.path());

  co_await services.back()->stop();
  services.back() =
      std::make_unique<ClusterService>(rt, options_of(folder.path(), 3), ClusterService::Hooks());
  const auto back = co_await services.back()->start(Until::after(rt, 30s));
  EXPECT_TRUE(back.has_value());
  co_await expect_agreement(rt, services);
  for (const auto& service : services) co_await service->stop();
  co_return 0;
}

TEST(ClusterNative, ThreeNodesBecomeAClusterOverRealSocketsAndOneComesBack) {
  auto host = runtime::native::NativeHost::open({.cores = 1, .handle_signals = false});
  ASSERT_TRUE(host.has_value()) << host.error().to_string();
  EXPECT_EQ((*host)->run(be_three_nodes), 0);
}

}  // namespace
}  // namespace helenus::cluster
