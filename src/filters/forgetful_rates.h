// How often a Bloom filter, and a forgetful one made of several, says yes to a stranger: by the
// equations of "Idempotent distributed counters using a forgetful Bloom filter" as printed, as they
// should be, and from the bits that are set.
//
// Equation 1 is misprinted: for l elements in m bits with k probes it should read
//
//   p = (1 - (1 - 1/m)^(kl))^k, about (1 - e^(-kl/m))^k
//
// Equations 2 and 3 multiply the rates of two neighbouring filters as if they were independent.
// They are not: neighbours share the elements of one period and all hash functions. With `a` the
// share of bits that one period's elements set, both neighbours have a bit set with probability a +
// (1 - a) a^2, not (1 - (1 - a)^2)^2, and a pair says yes to a stranger 5 times (a = 0.3) to 5,000
// times (a = 0.05) as often as printed.
//
// An element is inserted into the future and the present filter. With S(i) the bits set by the
// elements of i periods ago, filter 0 (future) is S(0) and filter j is S(j-1) or S(j); with N past
// filters, filter N + 1 is the oldest. The optimised check says yes when one of these does:
//
//   filter 0;  filters j and j + 1, for j from 1 to N;  filter N + 1
//
// The last pair is implied by the last filter. Of neighbours in this list we count what both say
// only once, and take each to depend on the one before it alone.
#pragma once

#include <cstdint>
#include <span>

namespace helenus::filters {

// The probability that an absent key has all of its `probes` bits set. Requires: bits > 0.
double bloom_rate(std::uint64_t bits, unsigned probes, std::uint64_t keys);
// Equation 1: its right side, which is right; and its left side, which is not a rate of anything.
double bloom_rate_approximated(std::uint64_t bits, unsigned probes, std::uint64_t keys);
double bloom_rate_as_printed(std::uint64_t bits, unsigned probes, std::uint64_t keys);

// The share of `bits` that `keys` keys set. Requires: bits > 0.
double bloom_fill(std::uint64_t bits, unsigned probes, std::uint64_t keys);

// Equations 2 and 3, from the rates of the constituent filters: future, present, newest past to
// oldest past. Requires: at least three.
double forgetful_rate_as_printed(std::span<const double> rates);

// The same as it should be, from the fills S(0) to S(N + 1) of the periods. Requires: at least
// three.
double forgetful_rate(std::span<const double> period_fills, unsigned probes);
// The same of the check as printed in Algorithm 2, which for N > 1 asks for the last pair where it
// should ask for the oldest filter.
double forgetful_rate_of_printed_check(std::span<const double> period_fills, unsigned probes);
// Of the simple check, which asks every filter alone.
double forgetful_rate_simple(std::span<const double> period_fills, unsigned probes);

// Of filters that share nothing, by their fills: that at least one says yes.
double sliced_rate(std::span<const double> fills, unsigned probes);

// The probability that at least one event happens, where each depends on the one before it alone.
// `alone[i]` is the probability of event i, `both[i]` that of events i and i + 1 together.
// Requires: one fewer of `both`.
double chain_rate(std::span<const double> alone, std::span<const double> both);

// The rate that keeps a counter within an error of `percent`: a false positive takes an increment
// for one that was already counted, so that the counter falls short by the rate of them. (Where a
// filter only screens, as in front of an exact index, the error is zero and the rate is the share
// of increments that have to look there.)
constexpr double rate_for_counter_error(double percent) {
  return percent / 100;
}

}  // namespace helenus::filters
