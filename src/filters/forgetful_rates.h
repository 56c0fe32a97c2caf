// How often a Bloom filter, and a forgetful one made of several, says yes to a stranger: by the
// equations of "Idempotent distributed counters using a forgetful Bloom filter" as they should be.
// What is wrong with them as printed: filters/lab/forgetful_analysis.h.
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

// The share of `bits` that `keys` keys set. Requires: bits > 0.
double bloom_fill(std::uint64_t bits, unsigned probes, std::uint64_t keys);

// Of a forgetful filter, from the fills S(0) to S(N + 1) of the periods. Requires: at least three.
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

}  // namespace helenus::filters
