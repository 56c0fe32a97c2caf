#include "storage/entry/cursor_contract.h"

#include <array>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/prng.h"
#include "runtime/contract/world.h"

namespace helenus::storage::contract {

using base::as_bytes;
using base::as_text;
using runtime::Task;

namespace {

using Place = ContractEntries::const_iterator;

ContractEntries numbered(int count, std::string_view prefix, std::size_t value_size) {
  ContractEntries entries;
  for (int i = 0; i < count; ++i) {
    entries[fmt::format("{}{:06}", prefix, 2 * i)] = {.value = std::string(value_size, 'v'),
                                                      .partition_size = 3};
  }
  return entries;
}

ContractEntries random_entries(std::uint64_t seed, std::size_t count) {
  static constexpr std::string_view kLetters("\0\1ab\xfe\xff", 6);
  base::Prng prng(seed);
  ContractEntries entries;
  for (std::size_t i = 0; i < count; ++i) {
    std::string key(prng.below(10), '\0');
    for (char& byte : key) byte = kLetters[prng.below(kLetters.size())];
    const auto partition_size = static_cast<std::uint16_t>(prng.between(0, key.size()));
    entries[key] = {.value = std::string(prng.below(200), 'r'), .partition_size = partition_size};
  }
  return entries;
}

ContractEntries long_and_large() {
  ContractEntries entries;
  for (int i = 0; i < 40; ++i) {
    const std::string key = std::string(1000, 'k') + fmt::format("{:03}", i);
    entries[key] = {.value = std::string(i % 7 == 0 ? 100'000 : 300, 'l'), .partition_size = 1000};
  }
  return entries;
}

void expect_at(const Cursor& cursor, const ContractEntries& entries, Place place) {
  ASSERT_EQ(cursor.valid(), place != entries.end());
  if (place == entries.end()) return;
  ASSERT_EQ(as_text(cursor.key().bytes), place->first);
  ASSERT_EQ(cursor.key().partition_size, place->second.partition_size);
  ASSERT_EQ(as_text(cursor.value()), place->second.value);
}

// The last entry before the place, or none.
Place before(const ContractEntries& entries, Place place) {
  return place == entries.begin() ? entries.end() : std::prev(place);
}

// Every key, and what lies just beside each: what a search may get wrong by one.
std::vector<std::string> probes(const ContractEntries& entries) {
  std::vector<std::string> keys = {"", std::string(1, '\0'), "m", std::string(20, '\xff')};
  for (const auto& [key, value] : entries) {
    keys.push_back(key);
    keys.push_back(key + std::string(1, '\0'));
    if (key.empty()) continue;
    keys.push_back(key.substr(0, key.size() - 1));
    std::string below = key;
    below.back() = static_cast<char>(below.back() - 1);
    keys.push_back(below);
  }
  return keys;
}

}  // namespace

void CursorContract::run_over(const ContractEntries& entries, CursorBody body) {
  GetParam()()->run(entries, body);
}

void CursorContract::run_over_all(CursorBody body) {
  const std::array<std::pair<std::string_view, ContractEntries>, 6> sets = {{
      {"nothing", {}},
      {"one entry", numbered(1, "one", 10)},
      {"many entries", numbered(3000, "key", 100)},
      {"few letters", random_entries(1, 2000)},
      {"long keys, large values", long_and_large()},
      {"an empty key", {{"", {.value = "", .partition_size = 0}}, {"a", {.value = "x"}}}},
  }};
  for (const auto& [name, entries] : sets) {
    SCOPED_TRACE(name);
    run_over(entries, body);
  }
}

namespace {

Task<void> begins_nowhere(CursorMaker make, const ContractEntries&) {
  EXPECT_FALSE(make()->valid());
  co_return;
}

Task<void> walks_forward(CursorMaker make, const ContractEntries& entries) {
  const auto cursor = make();
  const auto moved = co_await cursor->seek_first();
  CO_ASSERT_OK(moved);
  for (auto place = entries.begin(); place != entries.end(); ++place) {
    expect_at(*cursor, entries, place);
    const auto stepped = co_await cursor->next();
    CO_ASSERT_OK(stepped);
  }
  EXPECT_FALSE(cursor->valid());
}

Task<void> walks_backward(CursorMaker make, const ContractEntries& entries) {
  const auto cursor = make();
  const auto moved = co_await cursor->seek_last();
  CO_ASSERT_OK(moved);
  for (auto place = entries.rbegin(); place != entries.rend(); ++place) {
    expect_at(*cursor, entries, std::prev(place.base()));
    const auto stepped = co_await cursor->previous();
    CO_ASSERT_OK(stepped);
  }
  EXPECT_FALSE(cursor->valid());
}

Task<void> seeks(CursorMaker make, const ContractEntries& entries) {
  const auto cursor = make();
  for (const std::string& probe : probes(entries)) {
    const auto place = entries.lower_bound(probe);
    const auto sought = co_await cursor->seek(as_bytes(probe));
    CO_ASSERT_OK(sought);
    expect_at(*cursor, entries, place);
    const auto sought_before = co_await cursor->seek_before(as_bytes(probe));
    CO_ASSERT_OK(sought_before);
    expect_at(*cursor, entries, before(entries, place));
    CO_ASSERT_TRUE(!testing::Test::HasFailure());
  }
}

Task<void> walks_at_random(CursorMaker make, const ContractEntries& entries) {
  const auto cursor = make();
  base::Prng prng(5);
  const std::vector<std::string> keys = probes(entries);
  Place place = entries.end();
  for (int i = 0; i < 20'000; ++i) {
    const std::string& key = keys[prng.below(keys.size())];
    if (cursor->valid() && prng.chance(0.95)) {
      // Mostly on in the direction of this stretch, so that both edges of blocks are crossed.
      const bool forward = prng.chance((i / 500) % 2 == 0 ? 0.9 : 0.1);
      const auto moved = co_await (forward ? cursor->next() : cursor->previous());
      CO_ASSERT_OK(moved);
      place = forward ? std::next(place) : before(entries, place);
    } else if (prng.chance(0.5)) {
      const auto moved = co_await cursor->seek(as_bytes(key));
      CO_ASSERT_OK(moved);
      place = entries.lower_bound(key);
    } else {
      const auto moved = co_await cursor->seek_before(as_bytes(key));
      CO_ASSERT_OK(moved);
      place = before(entries, entries.lower_bound(key));
    }
    expect_at(*cursor, entries, place);
    CO_ASSERT_TRUE(!testing::Test::HasFailure());
  }
}

Task<void> comes_back_from_nowhere(CursorMaker make, const ContractEntries& entries) {
  const auto cursor = make();
  const auto first = co_await cursor->seek_first();
  CO_ASSERT_OK(first);
  const auto off = co_await cursor->previous();
  CO_ASSERT_OK(off);
  EXPECT_FALSE(cursor->valid());
  const auto last = co_await cursor->seek_last();
  CO_ASSERT_OK(last);
  expect_at(*cursor, entries, std::prev(entries.end()));
  const auto off_again = co_await cursor->next();
  CO_ASSERT_OK(off_again);
  EXPECT_FALSE(cursor->valid());
  const auto again = co_await cursor->seek_first();
  CO_ASSERT_OK(again);
  expect_at(*cursor, entries, entries.begin());
}

Task<void> keeps_shared_values(CursorMaker make, const ContractEntries& entries) {
  std::vector<base::Bytes> values;
  {
    const auto cursor = make();
    const auto moved = co_await cursor->seek_first();
    CO_ASSERT_OK(moved);
    while (cursor->valid()) {
      values.push_back(cursor->share_value());
      const auto stepped = co_await cursor->next();
      CO_ASSERT_OK(stepped);
    }
  }
  CO_ASSERT_TRUE(values.size() == entries.size());
  auto value = values.begin();
  for (const auto& [key, expected] : entries) EXPECT_EQ((value++)->text(), expected.value);
}

Task<void> two_do_not_disturb(CursorMaker make, const ContractEntries& entries) {
  const auto forward = make();
  const auto backward = make();
  const auto first = co_await forward->seek_first();
  CO_ASSERT_OK(first);
  const auto last = co_await backward->seek_last();
  CO_ASSERT_OK(last);
  auto from_end = entries.end();
  for (auto place = entries.begin(); place != entries.end(); ++place) {
    expect_at(*forward, entries, place);
    expect_at(*backward, entries, --from_end);
    const auto next = co_await forward->next();
    CO_ASSERT_OK(next);
    const auto previous = co_await backward->previous();
    CO_ASSERT_OK(previous);
  }
}

}  // namespace

TEST_P(CursorContract, BeginsNowhere) {
  run_over_all(begins_nowhere);
}
TEST_P(CursorContract, WalksForwardOverEverythingInOrder) {
  run_over_all(walks_forward);
}
TEST_P(CursorContract, WalksBackwardOverEverything) {
  run_over_all(walks_backward);
}
TEST_P(CursorContract, SeeksToEveryKeyAndBesideIt) {
  run_over_all(seeks);
}
TEST_P(CursorContract, WalksBackAndForthAsAMapDoes) {
  run_over_all(walks_at_random);
}
TEST_P(CursorContract, ComesBackFromPastEitherEnd) {
  run_over(numbered(500, "", 50), comes_back_from_nowhere);
}
TEST_P(CursorContract, SharedValuesOutliveTheCursor) {
  run_over_all(keeps_shared_values);
}
TEST_P(CursorContract, TwoCursorsDoNotDisturbEachOther) {
  run_over(numbered(1000, "", 100), two_do_not_disturb);
}

}  // namespace helenus::storage::contract
