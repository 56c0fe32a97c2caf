#include "membership/cluster_view.h"

#include <array>

#include <gtest/gtest.h>

#include "membership/membership_test_support.h"

namespace helenus::membership {
namespace {

using testing::node_of;
using Kind = Event::Kind;

const model::NodeId kPeer = node_of(1);

std::vector<Kind> kinds(const std::vector<Event>& events) {
  std::vector<Kind> result;
  for (const Event& event : events) result.push_back(event.kind);
  return result;
}

TEST(ClusterView, ALifeFromJoiningToLeftGivesEachEventOnce) {
  ClusterView view;
  view.set_status(kPeer, Status::joining);
  view.set_alive(kPeer, true);
  EXPECT_TRUE(view.take_events().empty()) << "who joins is not a member yet";
  EXPECT_EQ(view.find(kPeer)->life_cycle(), LifeCycle::joining);

  view.set_status(kPeer, Status::normal);
  EXPECT_EQ(kinds(view.take_events()), (std::vector{Kind::new_node, Kind::up}));
  EXPECT_EQ(view.find(kPeer)->life_cycle(), LifeCycle::normal);

  view.set_alive(kPeer, false);
  view.set_alive(kPeer, false);
  EXPECT_EQ(kinds(view.take_events()), std::vector{Kind::down});
  EXPECT_EQ(view.find(kPeer)->life_cycle(), LifeCycle::down);

  view.set_alive(kPeer, true);
  view.set_status(kPeer, Status::leaving);
  EXPECT_EQ(kinds(view.take_events()), std::vector{Kind::up});
  EXPECT_EQ(view.find(kPeer)->life_cycle(), LifeCycle::leaving);

  view.set_status(kPeer, Status::left);
  view.set_alive(kPeer, false);
  EXPECT_EQ(kinds(view.take_events()), std::vector{Kind::removed_node});
  EXPECT_EQ(view.find(kPeer)->life_cycle(), LifeCycle::left);

  view.forget(kPeer);
  EXPECT_TRUE(view.take_events().empty());
  EXPECT_EQ(view.find(kPeer), nullptr);
}

TEST(ClusterView, ARestartThatWasQuickerThanTheDetectorIsDownAndUp) {
  ClusterView view;
  view.set_status(kPeer, Status::normal);
  view.set_alive(kPeer, true);
  view.take_events();
  view.restarted(kPeer);
  EXPECT_EQ(kinds(view.take_events()), std::vector{Kind::down});
  view.restarted(kPeer);
  EXPECT_TRUE(view.take_events().empty());
  view.set_alive(kPeer, true);
  EXPECT_EQ(kinds(view.take_events()), std::vector{Kind::up});
}

// A client that knows nothing but events.
struct Client {
  bool member = false;
  bool up = false;

  void take(Kind kind) {
    switch (kind) {
      case Kind::new_node:
        ASSERT_FALSE(member);
        member = true;
        return;
      case Kind::removed_node:
        ASSERT_TRUE(member);
        member = up = false;
        return;
      case Kind::up:
        ASSERT_TRUE(member && !up);
        up = true;
        return;
      case Kind::down:
        ASSERT_TRUE(member && up);
        up = false;
        return;
    }
  }
};

constexpr int kInputs = 8;

void give(ClusterView& view, int input) {
  switch (input) {
    case 0:
    case 1:
    case 2:
    case 3:
      return view.set_status(kPeer, static_cast<Status>(input));
    case 4:
      return view.set_alive(kPeer, true);
    case 5:
      return view.set_alive(kPeer, false);
    case 6:
      return view.restarted(kPeer);
    default:
      return view.forget(kPeer);
  }
}

// Walks every sequence of inputs; returns how many steps that were.
std::size_t walk(const ClusterView& view, const Client& client, int depth) {
  if (depth == 0) return 0;
  std::size_t steps = 0;
  for (int input = 0; input < kInputs; ++input) {
    ClusterView next = view;
    Client told = client;
    give(next, input);
    const std::vector<Event> events = next.take_events();
    EXPECT_LE(events.size(), 2U);
    for (const Event& event : events) told.take(event.kind);
    const ClusterView::Node* node = next.find(kPeer);
    EXPECT_EQ(told.member, node != nullptr && node->member);
    EXPECT_EQ(told.up, node != nullptr && node->up);
    if (::testing::Test::HasFailure()) return steps;
    steps += 1 + walk(next, told, depth - 1);
  }
  return steps;
}

TEST(ClusterView, EventsKeepTheirLawInEverySequenceOfSixChanges) {
  EXPECT_EQ(walk({}, {}, 6), 8U + 64 + 512 + 4096 + 32768 + 262144);
}

TEST(ClusterView, NamesAreThoseOfTheProtocol) {
  EXPECT_EQ(name_of(Kind::new_node), "NEW_NODE");
  EXPECT_EQ(name_of(Kind::removed_node), "REMOVED_NODE");
  EXPECT_EQ(name_of(Kind::up), "UP");
  EXPECT_EQ(name_of(Kind::down), "DOWN");
  constexpr std::array kStates = {LifeCycle::joining, LifeCycle::normal, LifeCycle::leaving,
                                  LifeCycle::left, LifeCycle::down};
  constexpr std::array kNames = {"joining", "normal", "leaving", "left", "down"};
  for (std::size_t i = 0; i < kStates.size(); ++i) EXPECT_EQ(name_of(kStates[i]), kNames[i]);
}

}  // namespace
}  // namespace helenus::membership
