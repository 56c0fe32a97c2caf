// How the elements of a set and the entries of a map come into their order.
#pragma once

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <utility>
#include <vector>

#include "base/pace.h"
#include "base/result.h"
#include "model/value.h"

namespace helenus::model {

// Sorts by the key; of elements with equal keys the last stays. Requires: keys validate. Errors: of
// the pace; the elements are as they were then.
template <class Element, class Projection>
base::Result<void> sort_and_unite(const DataType& type, std::vector<Element>& elements,
                                  Projection key_of, base::Pace* pace) {
  // What a driver sends is mostly sorted, and always is what was read before.
  bool ascends = true;
  for (std::size_t i = 1; ascends && i < elements.size(); ++i) {
    TRY_VOID(base::Pace::turn(pace));
    ascends = compare(type, key_of(elements[i - 1]), key_of(elements[i])) < 0;
  }
  if (ascends) return {};
  std::vector<std::size_t> order(elements.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  base::Result<void> may_go_on;
  // Without its pace it sorts on: an order that changes would be none.
  std::ranges::sort(order, [&](std::size_t a, std::size_t b) {
    if (may_go_on) may_go_on = base::Pace::turn(pace);
    const auto ordering = compare(type, key_of(elements[a]), key_of(elements[b]));
    return ordering == 0 ? a < b : ordering < 0;
  });
  TRY_VOID(std::move(may_go_on));
  std::vector<std::size_t> kept;
  kept.reserve(order.size());
  for (const std::size_t index : order) {
    TRY_VOID(base::Pace::turn(pace));
    const bool again =
        !kept.empty() && compare(type, key_of(elements[kept.back()]), key_of(elements[index])) == 0;
    if (again) kept.pop_back();
    kept.push_back(index);
  }
  std::vector<Element> sorted;
  sorted.reserve(kept.size());
  for (const std::size_t index : kept) sorted.push_back(std::move(elements[index]));
  elements = std::move(sorted);
  return {};
}

}  // namespace helenus::model
