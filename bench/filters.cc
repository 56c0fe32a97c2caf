// bench-filters: every filter at a million keys, which fit the caches, and at a hundred million,
// which do not; single thread.
//
//   bench-filters [--quick] [--json FILE] [--large] [--keys N]... [--only PART]
//
// A plain run takes minutes: all parts at 1,000,000 keys, and at 100,000,000 those that are quick
// there. --large: all at both, which takes the better part of an hour. --keys: these sizes instead,
// for all parts. --only: the parts whose name has PART in it.
//
// Beside a cuckoo filter as its paper has it ("plain cuckoo"), keys are integers hashed in the loop
// by the same function for both. Beside RocksDB's filters, keys are strings of 8 bytes hashed by
// XXH3 on both sides. A lookup's answer is handed to `keep`, so that the compiler cannot turn the
// loop over one filter's lookups into one of vectors.
//
// A batch stands beside two other ways to ask the same filter. "One by one": each answer is used
// before the next key is known, as by a caller that acts on it, so that a lookup begins when the
// one before has ended. "In a loop": keys are known beforehand and nothing waits for an answer, so
// that the processor overlaps lookups by itself as far as its window of instructions reaches.
#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "bench/filters_peers.h"
#include "bench/measure.h"
#include "bench/report.h"
#include "bench/stopwatch.h"
#include "filters/adaptive_cuckoo.h"
#include "filters/blocked_bloom.h"
#include "filters/bloom.h"
#include "filters/consistent_cuckoo.h"
#include "filters/cuckoo.h"
#include "filters/forgetful_bloom.h"
#include "filters/hash_ring.h"
#include "filters/lab/adaptive_forgetful.h"
#include "filters/lab/dynamic_cuckoo.h"
#include "filters/lab/recyclable_bloom.h"
#include "filters/sliced_forgetful.h"

namespace helenus::bench {
namespace {

using filters::KeyHash;

// Keys that are never inserted.
constexpr std::uint64_t kStrangers = std::uint64_t{1} << 40;
constexpr std::size_t kBatch = 1024;

// How long and how often to measure at one size.
struct Scale {
  std::uint64_t keys;
  std::uint64_t lookups;    // a round
  std::uint64_t strangers;  // that are counted for the rate of false positives
  int rounds;
  int builds;
};

// Rounds are many and short, a few milliseconds where the filter fits the caches: on a shared
// machine both contestants then see the same neighbours, and few rounds are cut in two.
Scale scale_for(std::uint64_t keys, bool quick) {
  const bool large = keys > 20'000'000;
  return {.keys = keys,
          .lookups = std::min<std::uint64_t>(keys, large ? 1'000'000 : 250'000),
          .strangers = std::min<std::uint64_t>(keys, 4'000'000),
          .rounds = quick   ? 5
                    : large ? 15
                            : 101,
          .builds = quick || large ? 1 : 15};
}

std::string size_name(std::uint64_t keys) {
  if (keys % 1'000'000 == 0) return fmt::format("{}M", keys / 1'000'000);
  if (keys % 1'000 == 0) return fmt::format("{}k", keys / 1'000);
  return fmt::format("{}", keys);
}

// Millions of operations a second of `operation(i)` for i in [0, count).
template <class Operation>
double mega_per_second(std::uint64_t count, Operation&& operation) {
  const CpuStopwatch stopwatch;
  for (std::uint64_t i = 0; i < count; ++i) operation(i);
  return static_cast<double>(count) / stopwatch.seconds() / 1e6;
}

template <class F>
double lookups(const F& filter, std::uint64_t first_key, std::uint64_t count) {
  return mega_per_second(
      count, [&](std::uint64_t i) { keep(filter.contains(KeyHash::of_integer(first_key + i))); });
}

template <class F>
double lookups_one_by_one(const F& filter, std::uint64_t first_key, std::uint64_t count) {
  std::uint64_t answer = 0;
  return mega_per_second(count, [&](std::uint64_t i) {
    answer = filter.contains(KeyHash::of_integer(first_key + i + answer)) ? 1 : 0;
    // A register that may have changed: no compiler can make a branch of the answer, which the
    // processor would guess right and not wait for.
    asm volatile("" : "+r"(answer));
  });
}

template <class F>
double batched_lookups(const F& filter, std::uint64_t first_key, std::uint64_t count) {
  std::vector<KeyHash> keys(kBatch);
  const auto answers = std::make_unique<bool[]>(kBatch);
  const CpuStopwatch stopwatch;
  std::uint64_t done = 0;
  for (; done < count; done += kBatch) {
    for (std::size_t i = 0; i < kBatch; ++i) keys[i] = KeyHash::of_integer(first_key + done + i);
    filter.contains_batch(keys, std::span(answers.get(), kBatch));
    keep(answers[0]);
  }
  return static_cast<double>(done) / stopwatch.seconds() / 1e6;
}

// Lookups of 8-byte keys, hashed from their bytes.
template <class F>
double string_lookups(const F& filter, std::uint64_t first_key, std::uint64_t count) {
  return mega_per_second(count, [&](std::uint64_t i) {
    const std::uint64_t key = first_key + i;
    if constexpr (std::same_as<F, RocksDbFilter>) {
      keep(filter.contains(key));
    } else {
      keep(filter.contains(std::as_bytes(std::span(&key, 1))));
    }
  });
}

template <class F>
void insert_all(F& filter, std::uint64_t keys) {
  for (std::uint64_t i = 0; i < keys; ++i) ASSERT(filter.insert(KeyHash::of_integer(i)));
}

template <class F>
void insert_all_strings(F& filter, std::uint64_t keys) {
  for (std::uint64_t i = 0; i < keys; ++i) {
    ASSERT(filter.insert(std::as_bytes(std::span(&i, 1))));
  }
}

// Percent of strangers that get a yes; at least what one yes would be, since a row needs a number.
template <class Contains>
double false_positive_percent(std::uint64_t count, Contains&& contains) {
  std::uint64_t yes = 0;
  for (std::uint64_t i = 0; i < count; ++i) yes += contains(kStrangers + i) ? 1 : 0;
  return 100.0 * static_cast<double>(std::max<std::uint64_t>(yes, 1)) / static_cast<double>(count);
}

template <class F>
double bits_per_key(const F& filter, std::uint64_t keys) {
  return 8.0 * static_cast<double>(filter.memory_bytes()) / static_cast<double>(keys);
}

// One filter beside one peer at one size: names its rows.
class Duel {
 public:
  Duel(Report& report, std::string ours, std::string peer, const Scale& scale)
      : report_(report), ours_(std::move(ours)), peer_(std::move(peer)), scale_(scale) {}

  const Scale& scale() const { return scale_; }

  void row(const char* what, const char* unit, double ours, double peer) {
    row(what, unit, ours, peer_, peer);
  }
  void row(const char* what, const char* unit, double ours, std::string peer_name, double peer) {
    report_.row({.name = fmt::format("{} {}, {}", ours_, size_name(scale_.keys), what),
                 .value = ours,
                 .unit = unit,
                 .peer = std::move(peer_name),
                 .peer_value = peer});
  }
  template <class Ours, class Peer>
  void rate(const char* what, int rounds, Ours&& ours, Peer&& peer) {
    const Medians medians = by_turns(rounds, ours, peer);
    row(what, "Mops", medians.ours, medians.peer);
  }

 private:
  Report& report_;
  std::string ours_;
  std::string peer_;
  Scale scale_;
};

// Goes on after `keys` keys to the first refusal and returns how many are in.
template <class F>
std::uint64_t fill_up(F& filter, std::uint64_t keys) {
  while (filter.insert(KeyHash::of_integer(keys))) ++keys;
  return keys;
}

// Erases keys 0 to `keys` - 1.
template <class F>
double erase_all(F& filter, std::uint64_t keys) {
  return mega_per_second(keys,
                         [&](std::uint64_t i) { keep(filter.erase(KeyHash::of_integer(i))); });
}

// `contains_batch` beside the other ways to ask the same filter.
template <class F>
void batch_rows(Duel& duel, const F& filter) {
  const Scale& scale = duel.scale();
  const auto compare = [&](const char* what, std::uint64_t from, const char* peer, auto&& other) {
    const Medians medians = by_turns(
        scale.rounds, [&] { return batched_lookups(filter, from, scale.lookups); },
        [&] { return other(filter, from, scale.lookups); });
    duel.row(what, "Mops", medians.ours, peer, medians.peer);
  };
  compare("batch negative", kStrangers, "one by one", lookups_one_by_one<F>);
  compare("batch positive", 0, "one by one", lookups_one_by_one<F>);
  compare("batch negative", kStrangers, "in a loop", lookups<F>);
  compare("batch positive", 0, "in a loop", lookups<F>);
}

// Fills both and gives the rows that every pair of filters has.
template <class F, class Peer, class Make>
void filled_rows(Duel& duel, std::optional<F>& ours, std::optional<Peer>& plain, Make&& make) {
  const Scale& scale = duel.scale();
  const auto timed_fill = [&](auto& filter) {
    const CpuStopwatch stopwatch;
    insert_all(filter, scale.keys);
    return static_cast<double>(scale.keys) / stopwatch.seconds() / 1e6;
  };
  duel.rate(
      "insert all", scale.builds,
      [&] {
        ours = make();
        return timed_fill(*ours);
      },
      [&] {
        plain.emplace(scale.keys);
        return timed_fill(*plain);
      });
  duel.rate(
      "negative", scale.rounds, [&] { return lookups(*ours, kStrangers, scale.lookups); },
      [&] { return lookups(*plain, kStrangers, scale.lookups); });
  duel.rate(
      "positive", scale.rounds, [&] { return lookups(*ours, 0, scale.lookups); },
      [&] { return lookups(*plain, 0, scale.lookups); });
  duel.rate(
      "batch negative", scale.rounds,
      [&] { return batched_lookups(*ours, kStrangers, scale.lookups); },
      [&] { return lookups(*plain, kStrangers, scale.lookups); });
  const auto hits = [](const auto& filter) {
    return [&filter](std::uint64_t key) { return filter.contains(KeyHash::of_integer(key)); };
  };
  duel.row("bits a key", "bits", bits_per_key(*ours, scale.keys), bits_per_key(*plain, scale.keys));
  duel.row("false positives", "%", false_positive_percent(scale.strangers, hits(*ours)),
           false_positive_percent(scale.strangers, hits(*plain)));
}

template <unsigned kBits>
void cuckoo_beside_plain(Report& report, const Scale& scale) {
  using Ours = filters::Cuckoo<kBits>;
  using Plain = PlainCuckoo<kBits>;
  Duel duel(report, fmt::format("cuckoo {}", kBits), fmt::format("plain cuckoo {}", kBits), scale);
  std::optional<Ours> ours;
  std::optional<Plain> plain;
  filled_rows(duel, ours, plain, [&] { return *Ours::for_capacity(scale.keys); });
  batch_rows(duel, *ours);
  const std::uint64_t ours_filled = fill_up(*ours, scale.keys);
  const std::uint64_t plain_filled = fill_up(*plain, scale.keys);
  duel.row("load at first refusal", "%", 100 * ours->load(), 100 * plain->load());
  duel.row("erase all", "Mops", erase_all(*ours, ours_filled), erase_all(*plain, plain_filled));
}

// The filters that RocksDB's two stand beside, each made for a size.
template <class F>
struct Contender {
  const char* name;
  F (*make)(std::uint64_t keys);
};

// A filter of RocksDB, and how fast it was built.
struct Peer {
  const char* name;
  RocksDbFilter filter;
  double build_mops;
};

template <class F>
void beside_rocksdb(Report& report, const Scale& scale, const Contender<F>& contender,
                    std::span<Peer* const> peers) {
  std::optional<F> ours;
  std::vector<double> builds;
  for (int i = 0; i < scale.builds; ++i) {
    ours = contender.make(scale.keys);
    const CpuStopwatch stopwatch;
    insert_all_strings(*ours, scale.keys);
    builds.push_back(static_cast<double>(scale.keys) / stopwatch.seconds() / 1e6);
  }
  const double build_mops = median(std::move(builds));
  const double false_positives = false_positive_percent(scale.strangers, [&](std::uint64_t key) {
    return ours->contains(std::as_bytes(std::span(&key, 1)));
  });
  for (const Peer* peer : peers) {
    const RocksDbFilter& theirs = peer->filter;
    Duel duel(report, contender.name, peer->name, scale);
    duel.row("build, strings", "Mops", build_mops, peer->build_mops);
    duel.rate(
        "negative, strings", scale.rounds,
        [&] { return string_lookups(*ours, kStrangers, scale.lookups); },
        [&] { return string_lookups(theirs, kStrangers, scale.lookups); });
    duel.rate(
        "positive, strings", scale.rounds, [&] { return string_lookups(*ours, 0, scale.lookups); },
        [&] { return string_lookups(theirs, 0, scale.lookups); });
    duel.row("bits a key", "bits", bits_per_key(*ours, scale.keys),
             bits_per_key(theirs, scale.keys));
    duel.row("false positives", "%", false_positives,
             false_positive_percent(scale.strangers,
                                    [&](std::uint64_t key) { return theirs.contains(key); }));
  }
}

void build(Peer& peer, const Scale& scale) {
  std::vector<double> builds;
  for (int i = 0; i < scale.builds; ++i) {
    const CpuStopwatch stopwatch;
    peer.filter.build(scale.keys);
    builds.push_back(static_cast<double>(scale.keys) / stopwatch.seconds() / 1e6);
  }
  peer.build_mops = median(std::move(builds));
}

void all_beside_rocksdb(Report& report, const Scale& scale) {
  using filters::BlockedBloom;
  using filters::Bloom;
  using filters::Cuckoo12;
  using filters::Cuckoo16;
  // What a cuckoo filter of 12 bits takes.
  constexpr double kBitsPerKey = 12.6;
  Peer bloom{"RocksDB Bloom", RocksDbFilter(RocksDbFilter::Kind::bloom, kBitsPerKey), 0};
  Peer ribbon{"RocksDB Ribbon", RocksDbFilter(RocksDbFilter::Kind::ribbon, kBitsPerKey), 0};
  const std::array peers = {&bloom, &ribbon};
  for (Peer* peer : peers) build(*peer, scale);
  const auto duel = [&]<class F>(const char* name, F (*make)(std::uint64_t)) {
    beside_rocksdb<F>(report, scale, {.name = name, .make = make}, peers);
  };
  duel("cuckoo 12", +[](std::uint64_t keys) { return *Cuckoo12::for_capacity(keys); });
  duel("cuckoo 16", +[](std::uint64_t keys) { return *Cuckoo16::for_capacity(keys); });
  duel(
      "blocked Bloom",
      +[](std::uint64_t keys) { return *BlockedBloom::with_bits_per_key(keys, kBitsPerKey); });
  duel(
      "Bloom", +[](std::uint64_t keys) {
        const auto bits = static_cast<std::uint64_t>(static_cast<double>(keys) * kBitsPerKey);
        return *Bloom::with_shape({.bits = bits, .probes = 9, .capacity = keys});
      });
}

// An adaptive filter beside the plain one of the same width, which never learns.
void adaptive_beside_cuckoo(Report& report, const Scale& scale) {
  Duel duel(report, "adaptive 16", "cuckoo 16", scale);
  auto adaptive = *filters::AdaptiveCuckoo<16>::for_capacity(scale.keys);
  auto cuckoo = *filters::Cuckoo16::for_capacity(scale.keys);
  auto residents = *filters::ResidentKeys::for_slots(adaptive.slot_count());
  const double adaptive_build = mega_per_second(scale.keys, [&](std::uint64_t i) {
    ASSERT(adaptive.insert(KeyHash::of_integer(i), residents));
  });
  const double cuckoo_build = mega_per_second(
      scale.keys, [&](std::uint64_t i) { ASSERT(cuckoo.insert(KeyHash::of_integer(i))); });
  duel.row("insert all", "Mops", adaptive_build, cuckoo_build);
  duel.rate(
      "negative", scale.rounds, [&] { return lookups(adaptive, kStrangers, scale.lookups); },
      [&] { return lookups(cuckoo, kStrangers, scale.lookups); });
  duel.rate(
      "positive", scale.rounds, [&] { return lookups(adaptive, 0, scale.lookups); },
      [&] { return lookups(cuckoo, 0, scale.lookups); });
  for (std::uint64_t i = 0; i < scale.strangers; ++i) {
    const KeyHash stranger = KeyHash::of_integer(kStrangers + i);
    const filters::Matches matches = adaptive.matches(stranger);
    std::vector<filters::Resident> fetched;
    for (const std::uint64_t slot : matches.slots()) {
      fetched.push_back({.slot = slot, .key = residents.at(slot)});
    }
    if (!matches.empty()) keep(adaptive.adapt(stranger, fetched).has_value());
  }
  const auto hits = [](const auto& filter) {
    return [&filter](std::uint64_t key) { return filter.contains(KeyHash::of_integer(key)); };
  };
  duel.row("false positives, asked again", "%",
           false_positive_percent(scale.strangers, hits(adaptive)),
           false_positive_percent(scale.strangers, hits(cuckoo)));
}

// A filter that grows as keys come and shrinks as they go, beside one that was made for all of
// them.
template <class Peer, class F>
void elastic_beside_plain(Report& report, const Scale& scale, const std::string& name,
                          const std::string& peer_name, const std::function<F()>& make) {
  Duel duel(report, name, peer_name, scale);
  std::optional<F> ours;
  std::optional<Peer> plain;
  filled_rows(duel, ours, plain, make);
  const std::uint64_t gone = scale.keys / 10 * 9;
  duel.row("erase nine tenths", "Mops", erase_all(*ours, gone), erase_all(*plain, gone));
  duel.row("bits a key of the tenth that is left", "bits", bits_per_key(*ours, scale.keys - gone),
           bits_per_key(*plain, scale.keys - gone));
}

void consistent_beside_plain(Report& report, const Scale& scale) {
  using filters::ConsistentCuckoo;
  const auto duel = [&](const char* name, const ConsistentCuckoo::Options& options) {
    elastic_beside_plain<PlainCuckoo<32>, ConsistentCuckoo>(
        report, scale, name, "plain cuckoo 32",
        [&] { return *ConsistentCuckoo::with_options(options); });
  };
  duel("consistent, even ring", {.capacity = scale.keys});
  // Ten places a bucket, as the paper has it, are too many for larger ones.
  if (scale.keys > 10'000'000) return;
  for (const unsigned slots : {8U, 4U}) {
    duel(slots == 8 ? "consistent, hashed ring" : "consistent, hashed ring of small buckets",
         {.capacity = scale.keys,
          .shape = {.slots = slots,
                    .ring = filters::IndexIndependentCuckoo::Ring::hashed,
                    .places = 10},
          .grow_above_percent = 90,
          .shrink_below_percent = 80});
  }
}

// The search for the owner of a position on a ring of as many nodes, beside a balanced tree's.
void ring_beside_map(Report& report, const Scale& scale) {
  using filters::HashRing;
  // Nodes of a tree take 48 bytes each.
  if (scale.keys > 20'000'000) return;
  Duel duel(report, "hash ring", "std::map", scale);
  const auto position = [](std::uint64_t i) {
    return static_cast<HashRing::Position>(KeyHash::of_integer(i).value() >> 32);
  };
  HashRing ring;
  std::map<HashRing::Position, HashRing::Node> map;
  for (std::uint64_t i = 0; map.size() < scale.keys; ++i) {
    if (!map.try_emplace(position(i), static_cast<HashRing::Node>(i)).second) continue;
    ring.add(position(i), static_cast<HashRing::Node>(i));
  }
  duel.rate(
      "successor", scale.rounds,
      [&] {
        return mega_per_second(scale.lookups, [&](std::uint64_t i) {
          keep(ring.find_owner(position(kStrangers + i)));
        });
      },
      [&] {
        return mega_per_second(scale.lookups, [&](std::uint64_t i) {
          const auto found = map.lower_bound(position(kStrangers + i));
          keep(found == map.end() ? map.begin()->second : found->second);
        });
      });
  duel.row("bytes a node, of a tree's at least", "bytes",
           static_cast<double>(ring.memory_bytes()) / static_cast<double>(scale.keys), 48);
}

void dynamic_beside_plain(Report& report, const Scale& scale) {
  elastic_beside_plain<PlainCuckoo<16>, filters::DynamicCuckoo>(
      report, scale, "dynamic", "plain cuckoo 16",
      [&] { return *filters::DynamicCuckoo::for_capacity(scale.keys); });
}

// A sliced filter whose window holds `keys` keys, one a tick, in its steady state.
class SteadySliced {
 public:
  SteadySliced(std::uint64_t keys, unsigned slices)
      : filter_(*filters::SlicedForgetful::with_options(
            {.window = keys,
             .rate_max = kRate,
             .capacity = keys * slices / (slices - 1) * 21 / 20 + slices,
             .slices = slices,
             .sizing = filters::SlicedForgetful::Sizing::fixed})) {
    admit(keys + 2 * keys / slices);
  }

  static constexpr double kRate = 0.01;
  const filters::SlicedForgetful& filter() const { return filter_; }

  // New keys, each at a tick of its own: slices end, expire and are swept as time goes by.
  double admit(std::uint64_t count) {
    return mega_per_second(count, [&](std::uint64_t) {
      filter_.advance_to(next_);
      const auto admission = filter_.insert_if_absent(KeyHash::of_integer(next_++));
      ASSERT(admission != filters::Admission::shed);
    });
  }

 private:
  filters::SlicedForgetful filter_;
  std::uint64_t next_ = 0;
};

// The paper's filter with as many keys in its window, refreshed when a period is over: each pays
// for its own forgetting in the time that is measured.
class SteadyForgetful {
 public:
  SteadyForgetful(std::uint64_t keys, unsigned past)
      : filter_(*filters::ForgetfulBloom::for_rate(keys * (past + 2) / (past + 1), past,
                                                   SteadySliced::kRate)),
        keys_per_period_(keys / (past + 1)) {
    for (unsigned period = 0; period < past + 2; ++period) admit(keys_per_period_);
  }

  const filters::ForgetfulBloom& filter() const { return filter_; }

  double admit(std::uint64_t count) {
    return mega_per_second(count, [&](std::uint64_t) {
      if (next_ % keys_per_period_ == 0 && next_ > 0) filter_.refresh();
      keep(filter_.insert_if_absent(KeyHash::of_integer(next_++)));
    });
  }

 private:
  filters::ForgetfulBloom filter_;
  std::uint64_t keys_per_period_;
  std::uint64_t next_ = 0;
};

// The one that forgets everything when it is full: for as many keys as the others' window has.
class SteadyRecyclable {
 public:
  explicit SteadyRecyclable(std::uint64_t keys)
      : filter_(*filters::RecyclableBloom::for_rate(keys, SteadySliced::kRate)) {
    admit(keys / 2);
  }

  const filters::RecyclableBloom& filter() const { return filter_; }

  double admit(std::uint64_t count) {
    return mega_per_second(count, [&](std::uint64_t) {
      const KeyHash key = KeyHash::of_integer(next_++);
      if (!filter_.contains(key)) keep(filter_.insert_recycling(key));
    });
  }

 private:
  filters::RecyclableBloom filter_;
  std::uint64_t next_ = 0;
};

// The paper's filter with the mended resizing, in the shape and at the load of SteadyForgetful with
// N = 1, to twice the rate: it has nothing to resize, and still looks, with every key.
class SteadyAdaptive {
 public:
  explicit SteadyAdaptive(std::uint64_t keys)
      : filter_(of_shape(
            filters::ForgetfulBloom::for_rate(keys * 3 / 2, 1, SteadySliced::kRate)->shape())),
        keys_per_tick_(keys / (2 * kTicksPerPeriod)) {
    admit(keys * 3 / 2);
  }

  const filters::AdaptiveForgetful& filter() const { return filter_; }

  double admit(std::uint64_t count) {
    return mega_per_second(count, [&](std::uint64_t) {
      if (next_ % keys_per_tick_ == 0 && next_ > 0) ASSERT(filter_.tick().has_value());
      const auto admission = filter_.insert_if_absent(KeyHash::of_integer(next_++));
      ASSERT(admission != filters::Admission::shed);
    });
  }

 private:
  static constexpr filters::Ticks kTicksPerPeriod = 8;

  static filters::AdaptiveForgetful of_shape(const filters::ForgetfulBloom::Shape& shape) {
    return *filters::AdaptiveForgetful::with_options({.bits = shape.bits,
                                                      .probes = shape.probes,
                                                      .filters = 3,
                                                      .period = kTicksPerPeriod,
                                                      .rate_max = 2 * SteadySliced::kRate});
  }

  filters::AdaptiveForgetful filter_;
  std::uint64_t keys_per_tick_;
  std::uint64_t next_ = 0;
};

template <class Ours, class Peer>
void steady_rows(Report& report, const Scale& scale, const char* ours_name, Ours& ours,
                 const char* peer_name, Peer& peer) {
  Duel duel(report, ours_name, peer_name, scale);
  // A period of the form with the longest ones, so that every round has its share of forgetting.
  const std::uint64_t count = scale.keys / 2;
  duel.rate(
      "insert if absent", scale.builds, [&] { return ours.admit(count); },
      [&] { return peer.admit(count); });
  duel.rate(
      "negative", scale.rounds, [&] { return lookups(ours.filter(), kStrangers, scale.lookups); },
      [&] { return lookups(peer.filter(), kStrangers, scale.lookups); });
  duel.row("bits a key of the window", "bits", bits_per_key(ours.filter(), scale.keys),
           bits_per_key(peer.filter(), scale.keys));
  const auto hits = [](const auto& filter) {
    return [&filter](std::uint64_t key) { return filter.contains(KeyHash::of_integer(key)); };
  };
  duel.row("false positives", "%", false_positive_percent(scale.strangers, hits(ours.filter())),
           false_positive_percent(scale.strangers, hits(peer.filter())));
}

// Filters that forget, in their steady state, for one window, load and target: with many slices
// beside few, and the sliced form beside the paper's. The paper's is for the smaller sizes.
void forgetful_rows(Report& report, const Scale& scale) {
  SteadySliced few(scale.keys, 3);
  SteadySliced many(scale.keys, 16);
  steady_rows(report, scale, "sliced, N = 14", many, "sliced, N = 1", few);
  if (scale.keys > 20'000'000) return;
  SteadyForgetful paper_few(scale.keys, 1);
  SteadyForgetful paper_many(scale.keys, 14);
  steady_rows(report, scale, "N-FBF, N = 14", paper_many, "N-FBF, N = 1", paper_few);
  steady_rows(report, scale, "sliced, N = 1", few, "N-FBF, N = 1", paper_few);
  steady_rows(report, scale, "sliced, N = 14", many, "N-FBF, N = 14", paper_many);
  SteadyRecyclable recyclable(scale.keys);
  steady_rows(report, scale, "recyclable", recyclable, "N-FBF, N = 1", paper_few);
  SteadyAdaptive adaptive(scale.keys);
  steady_rows(report, scale, "adaptive N-FBF", adaptive, "N-FBF, N = 1", paper_few);
}

// The sizes at which a part is measured unless sizes are given.
enum class Sizes : std::uint8_t { million, million_and_hundred_million };

struct Part {
  std::string_view name;
  void (*compare)(Report&, const Scale&);
  Sizes sizes = Sizes::million;
};

constexpr std::array kParts = {
    Part{"cuckoo 8", cuckoo_beside_plain<8>},
    Part{"cuckoo 12", cuckoo_beside_plain<12>},
    Part{"cuckoo 16", cuckoo_beside_plain<16>},
    Part{"cuckoo 32", cuckoo_beside_plain<32>},
    Part{"adaptive", adaptive_beside_cuckoo},
    Part{"consistent", consistent_beside_plain},
    Part{"hash ring", ring_beside_map},
    Part{"dynamic", dynamic_beside_plain},
    Part{"forgetful", forgetful_rows, Sizes::million_and_hundred_million},
    Part{"RocksDB", all_beside_rocksdb},
};

std::string own_options() {
  std::string names;
  for (const Part& part : kParts)
    names += fmt::format("{}\"{}\"", names.empty() ? "" : ", ", part.name);
  return fmt::format(
      "  --large      all parts at 1,000,000 and at 100,000,000 keys, for the better part of an "
      "hour\n"
      "  --keys N     all parts at N keys; may be repeated\n"
      "  --only PART  the parts whose name has PART in it, of {}\n",
      names);
}

// What to measure.
struct Choice {
  std::vector<std::uint64_t> sizes;  // empty: each part's own
  bool is_large = false;
  std::string only;
};

Choice choice_of(const Options& options) {
  Choice choice;
  for (std::size_t i = 0; i < options.others.size(); ++i) {
    const std::string& option = options.others[i];
    if (option == "--large") {
      choice.is_large = true;
      continue;
    }
    ASSERT(option == "--keys" || option == "--only", "no option {}; see --help", option);
    ASSERT(++i < options.others.size(), "{} takes a value", option);
    const std::string& value = options.others[i];
    if (option == "--only") {
      choice.only = value;
      continue;
    }
    std::uint64_t keys = 0;
    const auto parsed = std::from_chars(value.data(), value.data() + value.size(), keys);
    ASSERT(parsed.ec == std::errc() && keys >= 1000, "--keys takes a number of at least 1000");
    choice.sizes.push_back(keys);
  }
  return choice;
}

// One part at one size.
struct Run {
  const Part* part;
  std::uint64_t keys;
};

std::vector<Run> runs_of(const Choice& choice, bool quick) {
  constexpr std::uint64_t kMillion = 1'000'000;
  std::vector<std::uint64_t> sizes = choice.sizes;
  if (sizes.empty())
    sizes =
        quick && !choice.is_large ? std::vector{kMillion} : std::vector{kMillion, 100 * kMillion};
  std::vector<Run> runs;
  for (const std::uint64_t keys : sizes) {
    for (const Part& part : kParts) {
      const bool is_wanted = !choice.sizes.empty() || choice.is_large || keys == kMillion ||
                             part.sizes == Sizes::million_and_hundred_million;
      if (is_wanted && part.name.contains(choice.only)) runs.push_back({&part, keys});
    }
  }
  return runs;
}

void compare_filters(const Options& options, Report& report) {
  const std::vector<Run> runs = runs_of(choice_of(options), options.quick);
  const Stopwatch stopwatch;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    fmt::print(stderr, "part {} of {}, \"{}\" at {} keys; {:.0f} s so far\n", i + 1, runs.size(),
               runs[i].part->name, size_name(runs[i].keys), stopwatch.seconds());
    runs[i].part->compare(report, scale_for(runs[i].keys, options.quick));
  }
}

}  // namespace
}  // namespace helenus::bench

int main(int argc, char** argv) {
  return helenus::bench::benchmark_main(argc, argv, helenus::bench::compare_filters,
                                        helenus::bench::own_options());
}
