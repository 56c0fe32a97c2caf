#include "storage/hash_chains.h"

#include <algorithm>
#include <deque>
#include <map>
#include <set>

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include "base/prng.h"

namespace helenus::storage {
namespace {

std::set<const HashLink*> found(const HashChains& chains, std::uint32_t hash) {
  std::set<const HashLink*> links;
  for (const HashLink* link = chains.first(hash); link != nullptr; link = link->next) {
    if (link->hash == hash) links.insert(link);
  }
  return links;
}

RC_GTEST_PROP(HashChains, WhatWasInsertedIsFoundByItsHash, ()) {
  // Few bits, so that hashes meet and buckets are shared out with several in them.
  const auto bits = *rc::gen::inRange(1, 33);
  const auto hashes =
      *rc::gen::container<std::vector<std::uint32_t>>(rc::gen::arbitrary<std::uint32_t>());
  HashChains chains;
  std::deque<HashLink> links;
  std::map<std::uint32_t, std::set<const HashLink*>> model;
  for (const std::uint32_t any : hashes) {
    const std::uint32_t hash = any & static_cast<std::uint32_t>((std::uint64_t{1} << bits) - 1);
    links.push_back({.hash = hash});
    chains.insert(links.back());
    model[hash].insert(&links.back());
    RC_ASSERT(chains.size() == links.size());
    for (const auto& [one, expected] : model) RC_ASSERT(found(chains, one) == expected);
  }
}

TEST(HashChains, NothingIsFoundInNone) {
  EXPECT_EQ(HashChains().first(7), nullptr);
}

TEST(HashChains, ChainsStayShortAcrossSegmentsAndRounds) {
  constexpr std::size_t kThings = 100'000;
  HashChains chains;
  std::deque<HashLink> links;
  base::Prng prng(1);
  for (std::size_t i = 0; i < kThings; ++i) {
    links.push_back({.hash = static_cast<std::uint32_t>(prng.next())});
    chains.insert(links.back());
  }
  std::size_t steps = 0;
  for (const HashLink& link : links) {
    for (const HashLink* at = chains.first(link.hash); at != &link; at = at->next) {
      ASSERT_NE(at, nullptr);
      ++steps;
    }
  }
  EXPECT_LT(steps, kThings);
}

}  // namespace
}  // namespace helenus::storage
