// Where a node takes the secret of its cluster from, and when it does not start without one.
#include "cluster/cluster_secrets.h"

#include <string>

#include <gtest/gtest.h>

#include "cluster/cluster_test_support.h"
#include "runtime/files.h"
#include "sim/function_process.h"

namespace helenus::cluster::testing {
namespace {

using base::Errc;
using runtime::Address;
using runtime::Runtime;
using runtime::StopToken;
using runtime::Task;

const Address kLoopback = Address::v4({127, 0, 0, 2}, 7000);
const Address kOutside = Address::v4({10, 1, 1, 2}, 7000);
const Address kLesser = Address::v4({10, 1, 1, 1}, 7000);

SecretSource source_of(const Address& address, std::vector<Address> seeds = {}) {
  return {.data_directory = kFolder,
          .listen_address = address,
          .node_address = address,
          .seeds = std::move(seeds)};
}

// Runs on a machine with an empty folder.
void on_a_new_folder(std::function<Task<void>(Runtime&)> story) {
  sim::World world(1);
  sim::Machine& machine = world.add_machine({.name = "n"}, {});
  machine.set_process(sim::FunctionProcess::factory(
      [story](Runtime& runtime, StopToken) -> Task<void> { return story(runtime); }));
  machine.start();
  EXPECT_TRUE(world.run_until([&] { return !machine.is_up(); }, std::chrono::minutes(1)));
}

TEST(ClusterSecrets, ALoopbackNodeNeedsNone) {
  on_a_new_folder([](Runtime& runtime) -> Task<void> {
    CO_ASSERT_OK(co_await runtime::make_directories_durably(runtime, kFolder));
    CO_ASSERT_OK(co_await prepare_secrets(runtime, source_of(kLoopback)));
    const auto secrets = co_await load_secrets(runtime, source_of(kLoopback));
    CO_ASSERT_OK(secrets);
    EXPECT_TRUE(secrets->empty());
  });
}

TEST(ClusterSecrets, TheFounderMakesOneAndKeepsIt) {
  on_a_new_folder([](Runtime& runtime) -> Task<void> {
    CO_ASSERT_OK(co_await runtime::make_directories_durably(runtime, kFolder));
    const SecretSource founder = source_of(kOutside, {kOutside, kOutside.with_port(7001)});
    CO_ASSERT_OK(co_await prepare_secrets(runtime, founder));
    const auto secrets = co_await load_secrets(runtime, founder);
    CO_ASSERT_OK(secrets);
    EXPECT_EQ(secrets->size(), 1U);
    CO_ASSERT_OK(co_await prepare_secrets(runtime, founder));
    const auto again = co_await load_secrets(runtime, founder);
    CO_ASSERT_OK(again);
    EXPECT_EQ(again->front().reveal(), secrets->front().reveal());
  });
}

TEST(ClusterSecrets, OthersAreRefusedWithoutOneAndToldTheWayOut) {
  on_a_new_folder([](Runtime& runtime) -> Task<void> {
    CO_ASSERT_OK(co_await runtime::make_directories_durably(runtime, kFolder));
    const SecretSource other = source_of(kOutside, {kLesser, kOutside});
    CO_ASSERT_OK(co_await prepare_secrets(runtime, other));
    const auto secrets = co_await load_secrets(runtime, other);
    EXPECT_TRUE(secrets.failed_with(Errc::refused));
    const std::string said = secrets.error().to_string();
    EXPECT_TRUE(said.contains("cluster_secret_file") && said.contains("/data/cluster_secret"))
        << said;
  });
}

TEST(ClusterSecrets, OneThatIsNamedMustBeThereAndWhole) {
  on_a_new_folder([](Runtime& runtime) -> Task<void> {
    CO_ASSERT_OK(co_await runtime::make_directories_durably(runtime, kFolder));
    SecretSource source = source_of(kLoopback);
    source.file = kFolder + "/given";
    EXPECT_TRUE((co_await load_secrets(runtime, source)).failed_with(Errc::not_found));
    CO_ASSERT_OK(co_await runtime::replace_file(
        runtime, source.file, base::Bytes::copy_of(std::string_view("helenus-secret:1:00"))));
    const auto damaged = co_await load_secrets(runtime, source);
    EXPECT_TRUE(damaged.failed_with(Errc::corrupt));
    EXPECT_TRUE(damaged.error().to_string().contains("/data/given"));
    const base::Secret<std::string> line = secret_of(3).line();
    CO_ASSERT_OK(co_await runtime::replace_secret_file(runtime, source.file,
                                                       base::Bytes::copy_of(line.reveal())));
    const auto secrets = co_await load_secrets(runtime, source);
    CO_ASSERT_OK(secrets);
    EXPECT_EQ(secrets->front().reveal(), secret_of(3).reveal());
  });
}

}  // namespace
}  // namespace helenus::cluster::testing
