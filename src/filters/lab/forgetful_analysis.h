// How often a forgetful Bloom filter says yes to a stranger by the equations of "Idempotent
// distributed counters using a forgetful Bloom filter", as printed.
//
// Equation 1 is misprinted: for l elements in m bits with k probes it should read
//
//   p = (1 - (1 - 1/m)^(kl))^k, about (1 - e^(-kl/m))^k
//
// Equations 2 and 3 multiply the rates of two neighbouring filters as if they were independent.
// They are not: neighbours share the elements of one period and all hash functions. With `a` the
// share of bits that one period's elements set, both neighbours have a bit set with probability a +
// (1 - a) a^2, not (1 - (1 - a)^2)^2, and a pair says yes to a stranger 5 times (a = 0.3) to 5,000
// times (a = 0.05) as often as printed. As they should be: filters/forgetful_rates.h.
#pragma once

#include <cstdint>
#include <span>

#include "filters/forgetful_bloom.h"

namespace helenus::filters {

// Equation 1: its right side, which is right; and its left side, which is not a rate of anything.
double bloom_rate_approximated(std::uint64_t bits, unsigned probes, std::uint64_t keys);
double bloom_rate_as_printed(std::uint64_t bits, unsigned probes, std::uint64_t keys);

// Equations 2 and 3, from the rates of the constituent filters: future, present, newest past to
// oldest past. Requires: at least three.
double forgetful_rate_as_printed(std::span<const double> rates);
// The same of a filter, from the numbers of its keys.
double rate_as_printed(const ForgetfulBloom& filter);

}  // namespace helenus::filters
