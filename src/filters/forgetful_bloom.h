// ForgetfulBloom: the forgetful Bloom filter of the paper (FBF), an N-FBF of fixed size.
//
// One future, one present and N past Bloom filters of equal size and with the same hashes. A key is
// inserted into the future and the present one. A refresh, which the owner calls every t, drops the
// oldest past filter, makes the present one the newest past and the future one the present, and
// begins an empty future. A key is therefore remembered for at least (N + 1) t and at most
// (N + 2) t.
//
// Because neighbours overlap in time, a key that is in is in two of them, but for the two ends: the
// optimised check asks for both neighbours, and is wrong less often than the simple one, which asks
// for any filter. As printed (Algorithm 2) it never asks the oldest filter alone when N > 1, and so
// forgets a period early; that form is here to be compared with.
//
// This is the paper's form. SlicedForgetful has the same window in the same memory with half the
// writes and at most 0.4 of the false positives, for every N: take that one.
//
// The filters are woven together (lane_table.h), so that a lookup costs the same for any N. The
// number of keys is not bounded as that of other filters is: the rate follows from what is
// inserted.
//
// Cost: `contains` reads until no filter is left, all probes for a key that is in; insertions read
// and write all probes; `refresh` writes the whole table; the rate by fill reads it.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <utility>

#include "base/bytes.h"
#include "base/result.h"
#include "filters/filter.h"
#include "filters/key_hash.h"
#include "filters/lane_table.h"

namespace helenus::filters {

enum class ForgetfulCheck : std::uint8_t { optimised = 0, simple = 1, optimised_as_printed = 2 };

class ForgetfulBloom {
 public:
  static constexpr unsigned kPastMax = kLanesMax - 2;
  static constexpr std::uint64_t kKeysPerPeriodMax = std::uint64_t{1} << 56;

  struct Shape {
    std::uint64_t bits = 0;  // of each filter
    unsigned probes = 0;
    unsigned past = 1;           // N
    std::uint64_t capacity = 0;  // keys of N + 2 periods, at which the rate is declared
    ForgetfulCheck check = ForgetfulCheck::optimised;

    friend bool operator==(const Shape&, const Shape&) = default;
  };

  // Errors: invalid_argument for a shape without bits, probes, past or capacity, or beyond the
  // limits; overloaded when there is no memory for it.
  static base::Result<ForgetfulBloom> with_shape(Shape shape);
  // The smallest that holds `capacity` keys, spread evenly over its N + 2 periods, at a rate of at
  // most `rate_max`, between 1e-9 and 0.5.
  static base::Result<ForgetfulBloom> for_rate(std::uint64_t capacity, unsigned past,
                                               double rate_max);

  // False only when more keys have come in one period than can be counted.
  bool insert(KeyHash key);
  // Algorithm 1: true when the key was not in, and is now.
  bool insert_if_absent(KeyHash key);
  void refresh();

  bool contains(KeyHash key) const { return contains(key, shape_.check); }
  bool contains(KeyHash key, ForgetfulCheck check) const {
    const Lanes holders = table_.holders(key, shape_.probes, table_.all());
    return holders != 0 && says_yes(holders, check);
  }
  void contains_batch(std::span<const KeyHash> keys, std::span<bool> answers) const;
  void prefetch(KeyHash key) const { table_.prefetch(key, shape_.probes); }

  const Shape& shape() const { return shape_; }
  unsigned filter_count() const { return shape_.past + 2; }
  // Keys inserted `ago` refreshes ago, 0 for the current period. Requires: ago < filter_count().
  std::uint64_t keys_of_period(unsigned ago) const;

  // Keys that are still in a filter, each as often as it was inserted.
  std::uint64_t size() const;
  std::uint64_t capacity() const { return shape_.capacity; }
  // From the bits that are set.
  double false_positive_rate() const;
  // With `capacity` keys, as many in each period, by the corrected equations.
  double false_positive_rate_max() const;
  // From the numbers of keys, by the corrected equations.
  double rate_by_equation() const;
  std::uint64_t memory_bytes() const { return table_.memory_bytes(); }
  bool is_borrowed() const { return table_.is_borrowed(); }

  base::Bytes encode() const;
  // Errors: corrupt, unsupported, invalid_argument for another kind of filter.
  static base::Result<ForgetfulBloom> decode(const base::Bytes& encoded);

 private:
  using Periods = std::array<std::uint64_t, kLanesMax>;

  ForgetfulBloom(Shape shape, LaneTable table) : shape_(shape), table_(std::move(table)) {}

  static base::Result<void> check(const Shape& shape);
  // The lanes by role: bit 0 the future filter, bit 1 the present, then past, newest first.
  Lanes by_role(Lanes lanes) const {
    return ((lanes >> future_) | (lanes << (filter_count() - future_))) & table_.all();
  }
  bool says_yes(Lanes holders, ForgetfulCheck check) const;
  Lanes future_and_present() const;
  double rate_by_equation(const Periods& periods) const;
  base::Result<void> validate(std::uint64_t population) const;

  Shape shape_;
  LaneTable table_;
  unsigned future_ = 0;  // its lane; the others follow, modulo their number
  Periods periods_{};    // keys inserted so many refreshes ago
};

static_assert(Filter<ForgetfulBloom>);

}  // namespace helenus::filters
