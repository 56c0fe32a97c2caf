#include "runtime/intrusive_list.h"

#include <memory>
#include <vector>

#include <gtest/gtest.h>

namespace helenus::runtime {
namespace {

struct Element : ListHook<Element> {
  explicit Element(int number_) : number(number_) {}
  int number;
};

std::vector<int> drained(IntrusiveList<Element>& list) {
  std::vector<int> numbers;
  while (!list.empty()) numbers.push_back(list.pop_front().number);
  return numbers;
}

TEST(IntrusiveList, TakesFromEitherEnd) {
  Element one(1), two(2), three(3);
  IntrusiveList<Element> list;
  EXPECT_TRUE(list.empty());
  list.push_back(one);
  list.push_back(two);
  list.push_back(three);
  EXPECT_EQ(list.front().number, 1);
  EXPECT_EQ(list.pop_back().number, 3);
  EXPECT_EQ(list.pop_front().number, 1);
  EXPECT_FALSE(one.linked());
  EXPECT_TRUE(two.linked());
  EXPECT_EQ(list.pop_back().number, 2);
  EXPECT_TRUE(list.empty());
}

TEST(IntrusiveList, ADestroyedElementLeavesItsList) {
  IntrusiveList<Element> list;
  Element first(1);
  auto middle = std::make_unique<Element>(2);
  Element last(3);
  list.push_back(first);
  list.push_back(*middle);
  list.push_back(last);
  middle.reset();
  EXPECT_EQ(drained(list), (std::vector{1, 3}));
}

TEST(IntrusiveList, ElementsMayOutliveTheirList) {
  Element element(1);
  {
    IntrusiveList<Element> list;
    list.push_back(element);
  }
  EXPECT_FALSE(element.linked());
  IntrusiveList<Element> other;
  other.push_back(element);
  EXPECT_EQ(drained(other), std::vector{1});
}

TEST(IntrusiveList, UnlinkingTwiceIsHarmless) {
  IntrusiveList<Element> list;
  Element element(1);
  list.push_back(element);
  element.unlink();
  element.unlink();
  EXPECT_TRUE(list.empty());
}

TEST(IntrusiveListDeathTest, AnElementIsInOneListAtATime) {
  IntrusiveList<Element> list;
  Element element(1);
  list.push_back(element);
  EXPECT_DEATH(list.push_back(element), "linked");
  element.unlink();
  EXPECT_DEATH(list.pop_front(), "empty");
  EXPECT_DEATH(list.pop_back(), "empty");
}

}  // namespace
}  // namespace helenus::runtime
