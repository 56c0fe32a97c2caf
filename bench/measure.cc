#include "bench/measure.h"

#include <algorithm>

namespace helenus::bench {

double median(std::vector<double> values) {
  ASSERT(!values.empty());
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  if (values.size() % 2 == 1) return values[middle];
  return (values[middle - 1] + values[middle]) / 2;
}

}  // namespace helenus::bench
