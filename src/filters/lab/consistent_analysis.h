// What theory says of consistent cuckoo filters: the equations of the paper (consistent_cuckoo.h
// names it) as printed, and as they should be where print is wrong.
#pragma once

#include <cstdint>
#include <vector>

namespace helenus::filters::analysis {

// Equation 2: the rate of false positives of `members` tables with `candidates` buckets of `slots`
// each. It takes the fingerprints that a lookup compares with for independent of the one it looks
// for, as in a plain cuckoo filter. They are not: candidates follow from the fingerprint alone.
double consistent_rate_as_printed(unsigned members, unsigned candidates, unsigned slots,
                                  unsigned fingerprint_bits);

// The true one: a stranger is taken for a key if any of the keys that are in has its fingerprint.
double consistent_rate(std::uint64_t keys, unsigned fingerprint_bits);

// Equation 7: the part of a bucket that can be in use with `keys` keys in `buckets` buckets: less
// than one where fewer keys than it has slots name it.
double usable_part(double keys, double buckets, unsigned candidates, unsigned slots);

// Theorem 4: keys a bucket, T, above which keys are expected not to fit; where equation 7 meets
// the part in use, keys / (buckets * slots).
double load_threshold(double buckets, unsigned candidates, unsigned slots);

// Equation 11: probabilities that the candidates of `keys` keys are exactly j different buckets of
// `buckets`; the element at j. By adding mappings one at a time, which needs no partitions.
std::vector<double> named_buckets_distribution(unsigned keys, unsigned candidates,
                                               unsigned buckets);

// Theorem 5: an upper bound of the probability that `keys` keys fit: that their candidates are
// enough buckets for them. Equation 10 prints max{n k, m} for its upper limit, where only
// min{n k, m} buckets can be named, and rounds its lower limit n / b down, where only n / b rounded
// up are enough (as its own example has it).
double fit_probability_max(unsigned keys, unsigned candidates, unsigned slots, unsigned buckets);

}  // namespace helenus::filters::analysis
