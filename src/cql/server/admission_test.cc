// What clients may take of a node: stories of each limit, and laws of all of them together.
#include "cql/server/admission.h"

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "base/prng.h"

namespace helenus::cql {
namespace {

using runtime::Address;

constexpr std::size_t kMib = std::size_t{1} << 20;
constexpr NodeAdmission::HashKeys kKeys{.connections = 7, .bodies = 1};

Address client(std::uint32_t number, std::uint16_t port = 1) {
  return Address::v4({10, static_cast<std::uint8_t>(number >> 16),
                      static_cast<std::uint8_t>(number >> 8), static_cast<std::uint8_t>(number)},
                     port);
}

// ---- Connections ----

AdmissionLimits connections(std::size_t max, std::size_t per_address = 0) {
  AdmissionLimits limits;
  limits.node.connections_max = max;
  limits.node.connections_per_address_max = per_address;
  return limits;
}

TEST(Admission, TheNodeHasSoManyConnectionsAndNoMore) {
  const auto node = std::make_shared<NodeAdmission>(connections(2).node, kKeys);
  Admission here(node, {}, {});
  Admission there(node, {}, {});
  EXPECT_EQ(here.try_connect(client(1)), std::nullopt);
  EXPECT_EQ(there.try_connect(client(1)), std::nullopt);
  EXPECT_EQ(here.try_connect(client(2)), Refusal::connections);
  there.disconnect(client(1));
  EXPECT_EQ(here.try_connect(client(2)), std::nullopt);
  EXPECT_EQ(node->connections(), 2U);
}

TEST(Admission, AnAddressHasSoManyConnectionsWhateverItsPortsAndOthersHaveTheirs) {
  Admission admission(connections(100, 3), kKeys);
  for (const std::uint16_t port : std::vector<std::uint16_t>{1, 2, 3}) {
    EXPECT_EQ(admission.try_connect(client(1, port)), std::nullopt);
  }
  EXPECT_EQ(admission.try_connect(client(1, 4)), Refusal::connections_of_address);
  EXPECT_EQ(admission.try_connect(client(2)), std::nullopt);
  admission.disconnect(client(1, 2));
  EXPECT_EQ(admission.try_connect(client(1, 4)), std::nullopt);
  EXPECT_EQ(admission.try_connect(client(1, 5)), Refusal::connections_of_address);
}

TEST(Admission, AConnectionThatIsTurnedAwayTakesNoPlace) {
  Admission admission(connections(2, 1), kKeys);
  EXPECT_EQ(admission.try_connect(client(1)), std::nullopt);
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(admission.try_connect(client(1)), Refusal::connections_of_address);
  }
  EXPECT_EQ(admission.try_connect(client(2)), std::nullopt);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(admission.try_connect(client(3)), Refusal::connections);
  admission.disconnect(client(2));
  EXPECT_EQ(admission.try_connect(client(3)), std::nullopt);
}

TEST(Admission, AnIPv6NetworkIsOneAddress) {
  Admission admission(connections(100, 2), kKeys);
  std::array<std::uint8_t, 16> ip{0x20, 0x01, 0x0d, 0xb8};
  for (const auto host : std::vector<std::uint8_t>{1, 2}) {
    ip[15] = host;
    EXPECT_EQ(admission.try_connect(Address::v6(ip, 1)), std::nullopt);
  }
  ip[15] = 3;
  EXPECT_EQ(admission.try_connect(Address::v6(ip, 1)), Refusal::connections_of_address);
  ip[7] = 1;
  EXPECT_EQ(admission.try_connect(Address::v6(ip, 1)), std::nullopt);
}

// As full as a node gets: nobody is refused for what others do, unless nearly at the limit anyway.
TEST(Admission, ManyAddressesHardlyGetInEachOthersWay) {
  Admission admission(connections(8192, 12), {.connections = 99, .bodies = 1});
  int refused = 0;
  for (std::uint32_t i = 0; i < 8190; ++i) {
    refused += admission.try_connect(client(i % 819)) ? 1 : 0;
  }
  EXPECT_EQ(refused, 0);
  for (std::uint32_t i = 0; i < 8190; ++i) admission.disconnect(client(i % 819));
  for (std::uint32_t i = 0; i < 8192; ++i) {
    EXPECT_EQ(admission.try_connect(client(i)), std::nullopt);
  }
}

TEST(Admission, ACoreTellsSoManyThatTheyAreRefused) {
  AdmissionLimits limits;
  limits.core.connections_refused_max = 1;
  Admission admission(limits, kKeys);
  EXPECT_TRUE(admission.try_begin_refusal());
  EXPECT_FALSE(admission.try_begin_refusal());
  admission.end_refusal();
  EXPECT_TRUE(admission.try_begin_refusal());
}

// ---- Bodies ----

// All bodies have 96 bytes, those of one address 48.
AdmissionLimits small_bodies() {
  AdmissionLimits limits;
  limits.node.request_size_max = 40;
  limits.node.request_bytes_max = 128;
  return limits;
}

TEST(Admission, AddressesHaveTheirPartForBodiesAndAllTogetherTheirs) {
  const auto node = std::make_shared<NodeAdmission>(small_bodies().node, kKeys);
  Admission admission(node, {}, {});
  Admission::BodyCharge with_the_turn(admission, client(9));
  EXPECT_TRUE(with_the_turn.grow_to(49));
  Admission::BodyCharge first(admission, client(1));
  Admission::BodyCharge again(admission, client(1, 2));
  Admission::BodyCharge other(admission, client(2));
  Admission::BodyCharge third(admission, client(3));
  EXPECT_TRUE(first.grow_to(30));
  EXPECT_FALSE(again.grow_to(19)) << "the address has its part";
  EXPECT_EQ(again.bytes(), 0U);
  EXPECT_TRUE(again.grow_to(18));
  EXPECT_TRUE(third.grow_to(10));
  EXPECT_FALSE(other.grow_to(39)) << "all together have theirs";
  EXPECT_TRUE(other.grow_to(38));
  EXPECT_TRUE(other.grow_to(30)) << "it holds as many already";
  EXPECT_EQ(other.bytes(), 38U);
  EXPECT_EQ(node->body_bytes(), 96U);
  first.release();
  EXPECT_FALSE(other.grow_to(49));
  EXPECT_TRUE(other.grow_to(48));
  EXPECT_EQ(node->body_bytes(), 76U);
}

TEST(Admission, OneBodyAtATimeIsLetInBesideTheParts) {
  const auto node = std::make_shared<NodeAdmission>(small_bodies().node, kKeys);
  Admission admission(node, {}, {});
  Admission::BodyCharge first(admission, client(1));
  Admission::BodyCharge second(admission, client(1, 2));
  Admission::BodyCharge third(admission, client(1, 3));
  EXPECT_TRUE(first.grow_to(38));
  EXPECT_TRUE(second.grow_to(10));
  EXPECT_TRUE(second.grow_to(38)) << "it takes the turn, and gives back what it had";
  EXPECT_EQ(node->body_bytes(), 38U);
  EXPECT_FALSE(third.grow_to(11));
  EXPECT_TRUE(third.grow_to(10));
  EXPECT_TRUE(second.grow_to(70));
  EXPECT_EQ(second.bytes(), 70U);
  EXPECT_EQ(node->body_bytes(), 48U);
  second.release();
  EXPECT_EQ(node->body_bytes(), 48U);
  EXPECT_TRUE(third.grow_to(90)) << "the turn is its own now";
  EXPECT_FALSE(second.grow_to(11));
  third.release();
  EXPECT_TRUE(second.grow_to(10));
  EXPECT_EQ(node->body_bytes(), 48U);
}

TEST(Admission, BodiesLeaveAQuarterForRequestsThatAreThereAndOneIsAlwaysLetIn) {
  const auto node = [](std::size_t request_bytes, std::size_t request_size) {
    AdmissionLimits::Node limits;
    limits.request_bytes_max = request_bytes;
    limits.request_size_max = request_size;
    return limits;
  };
  EXPECT_EQ(node(256 * kMib, 16 * kMib).body_bytes_max(), 192 * kMib);
  EXPECT_EQ(node(256 * kMib, 16 * kMib).body_bytes_per_address_max(), 96 * kMib);
  EXPECT_EQ(node(256 * kMib, 127 * kMib).body_bytes_max(), 192 * kMib);
  EXPECT_EQ(node(256 * kMib, 127 * kMib).body_bytes_per_address_max(), 127 * kMib);
  EXPECT_EQ(node(100, 90).body_bytes_max(), 90U);
  EXPECT_EQ(node(100, 90).body_bytes_per_address_max(), 90U);
}

// ---- Results and responses ----

TEST(Admission, SmallResultsAreTakenForNothingAndLargeOnesFromWhatAllCoresHave) {
  AdmissionLimits limits;
  limits.node.result_bytes_max = kMib;
  const auto node = std::make_shared<NodeAdmission>(limits.node, kKeys);
  Admission here(node, {}, {});
  Admission there(node, {}, {});
  Admission::ResultCharge large(here);
  EXPECT_TRUE(large.grow_to(kMib));
  Admission::ResultCharge other(there);
  EXPECT_TRUE(other.grow_to(Admission::kSmallResultSize));
  EXPECT_FALSE(other.grow_to(Admission::kSmallResultSize + 1));
  EXPECT_EQ(there.result_bytes(), 0U);
  EXPECT_EQ(here.result_bytes(), kMib);
}

TEST(Admission, AConnectionIsReadFromWhileAllThatItHasUnderWayIsWithinItsLimits) {
  AdmissionLimits limits;
  limits.core.response_bytes_max = 1000;
  limits.connection = {.requests_max = 3,
                       .request_bytes_max = 100,
                       .response_bytes_high = 200,
                       .response_bytes_max = 400};
  Admission admission(limits, kKeys);
  EXPECT_TRUE(admission.may_read({.requests = 2, .request_bytes = 99, .response_bytes = 199}));
  EXPECT_FALSE(admission.may_read({.requests = 3, .request_bytes = 0, .response_bytes = 0}));
  EXPECT_FALSE(admission.may_read({.requests = 0, .request_bytes = 100, .response_bytes = 0}));
  EXPECT_FALSE(admission.may_read({.requests = 0, .request_bytes = 0, .response_bytes = 200}));
  const std::size_t large = Admission::kSmallResponseSize + 1;
  EXPECT_TRUE(admission.may_respond({.response_bytes = 399}, large));
  EXPECT_FALSE(admission.may_respond({.response_bytes = 400}, large));
  EXPECT_TRUE(admission.may_respond({.response_bytes = 400}, large - 1)) << "small ones are sent";
  EXPECT_TRUE(admission.may_send_event({.response_bytes = 399}));
  EXPECT_FALSE(admission.may_send_event({.response_bytes = 400}));

  admission.count_responses(0, 1000);  // of others
  EXPECT_FALSE(admission.may_read({.response_bytes = 1})) << "it has responses waiting";
  EXPECT_TRUE(admission.may_read({})) << "it has none";
  EXPECT_FALSE(admission.may_respond({}, large));
  EXPECT_TRUE(admission.may_respond({}, large - 1));
  admission.count_responses(1000, 999);
  EXPECT_TRUE(admission.may_read({.response_bytes = 1}));
  EXPECT_TRUE(admission.may_respond({}, large));
}

TEST(Admission, EveryRefusalHasItsWords) {
  EXPECT_EQ(text_of(Refusal::connections), "Too many connections");
  EXPECT_EQ(text_of(Refusal::connections_of_address), "Too many connections from this address");
  EXPECT_EQ(text_of(Refusal::request_bytes), "Too many bytes of requests are under way");
  EXPECT_EQ(text_of(Refusal::result_bytes), "Too many bytes of results are under way");
  EXPECT_EQ(text_of(Refusal::response_bytes), "Too many answers wait to be read");
}

// ---- Laws ----

// Clients of several cores that do anything, and a list of what they have.
class Crowd {
 public:
  static constexpr std::size_t kCores = 3;
  static constexpr std::size_t kAddresses = 5;
  static constexpr std::size_t kClients = 20;
  static constexpr std::size_t kLargest = 200;

  explicit Crowd(std::uint64_t seed)
      : dice_(seed), limits_(drawn()), node_(std::make_shared<NodeAdmission>(limits_.node, kKeys)) {
    for (std::size_t i = 0; i < kCores; ++i) {
      cores_.push_back(std::make_unique<Admission>(node_, limits_.core, limits_.connection));
    }
    for (std::uint32_t i = 0; i < kClients; ++i) {
      Admission& core = *cores_[i % kCores];
      requests_.push_back(core.request_charge());
      bodies_.push_back(std::make_unique<Admission::BodyCharge>(core, client(i % kAddresses)));
    }
  }

  void step() {
    const std::size_t one = dice_.below(kClients);
    const std::size_t bytes = dice_.below(kLargest);
    switch (dice_.below(5)) {
      case 0:
        return connect(static_cast<std::uint32_t>(dice_.below(kAddresses)));
      case 1:
        return disconnect();
      case 2:
        return grow_request(one, bytes);
      case 3:
        std::ignore = bodies_[one]->grow_to(bytes);
        return;
      default:
        requests_[one].release();
        bodies_[one]->release();
    }
  }

  void check() const {
    std::size_t bodies = 0;
    std::array<std::size_t, kAddresses> of_address{};
    for (std::size_t i = 0; i < kClients; ++i) {
      bodies += bodies_[i]->bytes();
      of_address[i % kAddresses] += bodies_[i]->bytes();
    }
    RC_ASSERT(node_->connections() == connected_.size());
    RC_ASSERT(used() <= node_->request_bytes_taken());
    RC_ASSERT(node_->request_bytes_taken() <= limits_.node.request_bytes_max);
    RC_ASSERT(node_->body_bytes() <= limits_.node.body_bytes_max());
    RC_ASSERT(node_->body_bytes() <= bodies);
    RC_ASSERT(bodies <= node_->body_bytes() + kLargest);  // one of them has the turn
    for (const std::size_t sum : of_address) {
      RC_ASSERT(sum <= limits_.node.body_bytes_per_address_max() + kLargest);
    }
  }

  // All leave.
  std::shared_ptr<NodeAdmission> disperse() {
    while (!connected_.empty()) disconnect();
    requests_.clear();
    bodies_.clear();
    cores_.clear();
    return node_;
  }

 private:
  AdmissionLimits drawn() {
    AdmissionLimits limits;
    limits.node.connections_max = 1 + dice_.below(20);
    limits.node.connections_per_address_max = dice_.below(8);
    limits.node.request_size_max = kLargest;
    limits.node.request_bytes_max = (2 * kLargest) + dice_.below(2000);
    return limits;
  }
  std::size_t used() const {
    std::size_t sum = 0;
    for (const auto& core : cores_) sum += core->request_bytes();
    return sum;
  }
  Admission& any_core() { return *cores_[dice_.below(kCores)]; }

  void connect(std::uint32_t address) {
    const auto own = static_cast<std::size_t>(std::ranges::count(connected_, address));
    const std::size_t own_max = limits_.node.connections_per_address_max;
    const bool is_full = connected_.size() == limits_.node.connections_max;
    const bool address_is_full = own_max > 0 && own >= own_max;
    const auto refusal = any_core().try_connect(client(address));
    RC_ASSERT((refusal == Refusal::connections) == is_full);
    RC_ASSERT((refusal == Refusal::connections_of_address) == (!is_full && address_is_full));
    if (!refusal) connected_.push_back(address);
  }
  void disconnect() {
    if (connected_.empty()) return;
    any_core().disconnect(client(connected_.back()));
    connected_.pop_back();
  }
  void grow_request(std::size_t one, std::size_t bytes) {
    const std::size_t before = requests_[one].bytes();
    const std::size_t free = limits_.node.request_bytes_max - node_->request_bytes_taken();
    const bool grown = requests_[one].grow_to(bytes);
    RC_ASSERT(requests_[one].bytes() == (grown ? std::max(before, bytes) : before));
    if (!grown) RC_ASSERT(bytes - before > free);
  }

  base::Prng dice_;
  const AdmissionLimits limits_;
  const std::shared_ptr<NodeAdmission> node_;
  std::vector<std::unique_ptr<Admission>> cores_;
  std::vector<Admission::RequestCharge> requests_;
  std::vector<std::unique_ptr<Admission::BodyCharge>> bodies_;
  std::vector<std::uint32_t> connected_;
};

// No limit is exceeded, what is refused did not fit, and what is refused or gone takes nothing.
RC_GTEST_PROP(Admission, NoLimitIsExceededAndWhatIsGoneTakesNothing, ()) {
  Crowd crowd(*rc::gen::arbitrary<std::uint64_t>());
  for (int step = 0; step < 500; ++step) {
    crowd.step();
    crowd.check();
  }
  const auto node = crowd.disperse();
  RC_ASSERT(node->connections() == 0U);
  RC_ASSERT(node->request_bytes_taken() == 0U);
  RC_ASSERT(node->body_bytes() == 0U);
}

}  // namespace
}  // namespace helenus::cql
