#include "causality/flat_map.h"

#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace helenus::causality {
namespace {

using Flat = FlatMap<int, std::string>;
using Model = std::map<int, std::string>;

Flat flat_of(const Model& model) {
  Flat flat;
  for (const auto& [key, value] : model) flat.append(key, value);
  return flat;
}

void expect_same(const Flat& flat, const Model& model) {
  RC_ASSERT(flat.size() == model.size());
  auto at = flat.begin();
  for (const auto& [key, value] : model) {
    RC_ASSERT(at->first == key);
    RC_ASSERT(at->second == value);
    RC_ASSERT(flat.find(key) == at);
    ++at;
  }
}

TEST(FlatMap, FindsNothingInNothing) {
  const Flat flat;
  EXPECT_TRUE(flat.empty());
  EXPECT_EQ(flat.find(1), flat.end());
}

RC_GTEST_PROP(FlatMap, HoldsWhatAMapHoldsInAnyOrderOfInsertion, (const std::vector<int>& keys)) {
  Flat flat;
  Model model;
  for (const int key : keys) {
    flat[key] += "x";
    model[key] += "x";
    RC_ASSERT(flat.find(key + 1) == flat.end() || model.contains(key + 1));
  }
  expect_same(flat, model);
}

RC_GTEST_PROP(FlatMap, MergesAsMapsDo, (const Model& mine, const Model& theirs)) {
  Flat merged = flat_of(mine);
  merged.merge(flat_of(theirs), [](std::string& a, std::string&& b) { a += "+" + b; });
  Model want = mine;
  for (const auto& [key, value] : theirs) {
    const auto [at, added] = want.emplace(key, value);
    if (!added) at->second += "+" + value;
  }
  expect_same(merged, want);
}

RC_GTEST_PROP(FlatMap, ErasesWhatIsNamed, (const Model& all)) {
  Flat flat = flat_of(all);
  Model want = all;
  flat.erase_if([](const auto& entry) { return entry.first % 2 == 0; });
  std::erase_if(want, [](const auto& entry) { return entry.first % 2 == 0; });
  expect_same(flat, want);
  if (flat.empty()) return;
  flat.erase(flat.begin());
  want.erase(want.begin());
  expect_same(flat, want);
}

}  // namespace
}  // namespace helenus::causality
