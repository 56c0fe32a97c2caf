#include "runtime/stop_token.h"

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace helenus::runtime {
namespace {

class Calling final : public StopCallback {
 public:
  explicit Calling(std::function<void()> call) : call_(std::move(call)) {}
  void on_stop() override {
    // The call may destroy this object.
    const auto call = call_;
    call();
  }

 private:
  std::function<void()> call_;
};

TEST(StopToken, ADefaultTokenNeverStops) {
  const StopToken token;
  EXPECT_FALSE(token.stop_possible());
  EXPECT_FALSE(token.stop_requested());
  Calling callback([] { ADD_FAILURE(); });
  callback.watch(token);
  EXPECT_FALSE(callback.linked());
}

TEST(StopToken, CallbacksRunOnceInTheOrderTheyWatched) {
  StopSource source;
  std::vector<int> calls;
  Calling first([&] { calls.push_back(1); });
  Calling second([&] { calls.push_back(2); });
  first.watch(source.token());
  second.watch(source.token());
  source.request_stop();
  source.request_stop();
  EXPECT_EQ(calls, (std::vector{1, 2}));
}

TEST(StopToken, WatchingAStoppedTokenCallsAtOnce) {
  StopSource source;
  source.request_stop();
  int calls = 0;
  Calling late([&] { ++calls; });
  late.watch(source.token());
  EXPECT_EQ(calls, 1);
  EXPECT_FALSE(late.linked());
}

TEST(StopToken, ACallbackMayDestroyItselfAndThoseBehindIt) {
  StopSource source;
  int calls = 0;
  std::unique_ptr<Calling> second, third;
  auto first = std::make_unique<Calling>([] {});
  second = std::make_unique<Calling>([&] {
    ++calls;
    first.reset();
    third.reset();
    second.reset();
  });
  third = std::make_unique<Calling>([&] { ADD_FAILURE() << "was destroyed"; });
  first->watch(source.token());
  second->watch(source.token());
  third->watch(source.token());
  source.request_stop();
  EXPECT_EQ(calls, 1);
}

TEST(StopToken, ACallbackMayDestroyTheSourceItWatches) {
  auto source = std::make_unique<StopSource>();
  std::vector<int> calls;
  Calling first([&] {
    calls.push_back(1);
    source.reset();
  });
  Calling second([&] { calls.push_back(2); });
  first.watch(source->token());
  second.watch(source->token());
  source->request_stop();
  EXPECT_EQ(calls, (std::vector{1, 2})) << "the rest is told all the same";
}

TEST(StopToken, ACallbackMayWatchAgainAndAskAgain) {
  StopSource source;
  int calls = 0;
  Calling nested([&] { ++calls; });
  Calling first([&] {
    ++calls;
    source.request_stop();
    nested.watch(source.token());
  });
  first.watch(source.token());
  source.request_stop();
  EXPECT_EQ(calls, 2);
}

TEST(StopSource, AParentMayStopWhileAChildIsDestroyedByACallbackOfIt) {
  StopSource parent;
  auto child = std::make_unique<StopSource>(parent.token());
  StopSource sibling(parent.token());
  const StopToken token = child->token();
  Calling callback([&] { child.reset(); });
  callback.watch(token);
  parent.request_stop();
  EXPECT_EQ(child, nullptr);
  EXPECT_TRUE(token.stop_requested());
  EXPECT_TRUE(sibling.stop_requested());
}

TEST(StopSource, AChildOutlivesItsParent) {
  auto parent = std::make_unique<StopSource>();
  StopSource child(parent->token());
  parent.reset();
  EXPECT_FALSE(child.stop_requested());
  child.request_stop();
  EXPECT_TRUE(child.stop_requested());
}

TEST(StopSource, AChildOfADefaultTokenStopsByItselfOnly) {
  StopSource child{StopToken()};
  EXPECT_FALSE(child.stop_requested());
  child.request_stop();
  EXPECT_TRUE(child.token().stop_requested());
}

TEST(StopToken, CopiesAndMovesShareOneState) {
  StopSource source;
  StopToken token = source.token();
  StopToken copy = token;
  const StopToken moved = std::move(token);
  copy = StopToken(copy);
  EXPECT_FALSE(token.stop_possible());  // NOLINT: a moved-from token is the default one
  source.request_stop();
  EXPECT_TRUE(copy.stop_requested());
  EXPECT_TRUE(moved.stop_requested());
}

TEST(StopToken, ADestroyedCallbackIsNotCalled) {
  StopSource source;
  {
    Calling callback([] { ADD_FAILURE(); });
    callback.watch(source.token());
  }
  source.request_stop();
}

TEST(StopToken, ACallbackMayOutliveSourceAndTokens) {
  Calling callback([] { ADD_FAILURE(); });
  {
    const StopSource source;
    callback.watch(source.token());
  }
  EXPECT_FALSE(callback.linked());
}

}  // namespace
}  // namespace helenus::runtime
