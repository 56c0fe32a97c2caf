// Total: numbers of one type, summed up and averaged as Cassandra does: sums of integers wrap
// around, averages of them do not; sums of floating numbers are compensated; varints and decimals
// are exact.
#pragma once

#include <cstdint>

#include "base/bytes.h"
#include "base/result.h"
#include "model/data_type.h"

namespace helenus::cql {

class Total {
 public:
  // Requires: is_number(kind), the same each time. What is empty is no number and is passed over.
  // Errors: invalid_argument; a sum with more digits than there may be.
  base::Result<void> add(model::TypeKind kind, const base::Bytes& number);
  // Of no number at all: zero.
  base::Result<base::Bytes> sum(model::TypeKind kind) const;
  base::Result<base::Bytes> average(model::TypeKind kind) const;

 private:
  void add_floating(double number);
  double floating_sum() const;

  std::uint64_t count_ = 0;
  __int128 integer_ = 0;
  double sum_ = 0;
  double compensation_ = 0;
  double simple_sum_ = 0;  // tells infinite from not a number
  long double wide_ = 0;   // for averages of what adds up to more than a double has
  base::Bytes exact_;      // of varints and decimals; empty before the first
  base::Bytes mean_;       // of decimals
};

}  // namespace helenus::cql
