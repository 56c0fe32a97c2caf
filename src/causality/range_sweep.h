// ScopeSweep and what goes by it: work on very many scopes of one partition whose effort follows
// what overlaps, and that may be done in steps, with others running in between.
//
// Plain forms of the same, by which it is tested: PartitionStore::settle_scopes says what is meant
// by settling inside one another, PartitionStore::strip by stripping.
//
// Values alone; nothing here waits. Scopes are borrowed and must neither move nor change meanwhile,
// but as said.
#pragma once

#include <cstddef>
#include <limits>
#include <span>
#include <vector>

#include <absl/functional/function_ref.h>

#include "causality/clock.h"
#include "causality/dot_store.h"

namespace helenus::causality {

// Goes along scopes and knows which of them hold the place it has come to. A scope opens where it
// begins and closes where it ends; those that are open lie in a heap, the first to end on top.
// Cost: O(log n) for each scope, once, however many places are asked for.
class ScopeSweep {
 public:
  static constexpr std::size_t kNoLimit = std::numeric_limits<std::size_t>::max();
  // Is told of each scope that opens, and of each that closes.
  using OnChange = absl::FunctionRef<void(const ScopedStore&, bool opens)>;

  ScopeSweep() = default;
  // Requires: ascending, as PartitionStore has them. Their contexts may change.
  explicit ScopeSweep(std::span<const ScopedStore> scopes) : scopes_(scopes) {}

  // Goes on to `place`, opening and closing `steps_max` scopes at most; returns whether it is
  // there. Requires: no place before the last one.
  bool advance(const RowKey& place, std::size_t steps_max, OnChange on_change);
  bool advance(const RowKey& place, std::size_t steps_max = kNoLimit) {
    return advance(place, steps_max, [](const ScopedStore&, bool) {});
  }

  // All below require: it is where it was sent.
  // Those that hold the place, in no order.
  std::span<const ScopedStore* const> open() const { return open_; }
  // Those that begin behind the place, ascending.
  std::span<const ScopedStore> behind() const { return scopes_.subspan(next_); }

 private:
  std::span<const ScopedStore> scopes_;
  std::size_t next_ = 0;
  std::vector<const ScopedStore*> open_;
};

// PartitionStore::settle_scopes in steps. What it leaves empty is for the owner to take out.
class ScopesInside {
 public:
  // How many of the scopes around another are asked.
  static constexpr std::size_t kAroundMax = 64;

  // Requires: ascending. Changes their stores.
  explicit ScopesInside(std::span<ScopedStore> scopes);
  // Goes on with up to so many scopes, one at least; returns whether all are done.
  bool advance(std::size_t scopes_max);

 private:
  std::vector<ScopedStore*> order_;
  std::size_t next_ = 0;
  std::vector<const ScopedStore*> around_;
};

// How many versions of scopes a context may have to go on naming and yet be stripped. Where there
// are more, or more scopes than that overlap, it stays as it is: that is always allowed
// (CellStore::strip), the effort of each is bounded, and a context that named so many one by one
// would be larger than before. It is stripped by a merge that finds fewer.
inline constexpr std::size_t kSparedMax = 64;

// What PartitionStore::strip does to scopes, in steps, but for contexts of more than kSparedMax
// scopes. What it leaves empty is for the owner to take out.
class ScopesStripping {
 public:
  // Requires: ascending; `known` outlives it. Changes their contexts.
  ScopesStripping(std::span<ScopedStore> scopes, const Clock& known)
      : scopes_(scopes), known_(known), sweep_(scopes) {}
  // Goes on with up to so many scopes, one at least; returns whether all are done.
  bool advance(std::size_t scopes_max);

 private:
  // Whether there are few enough; they are in spared_ then.
  bool find_spared(const ScopedStore& scoped);

  std::span<ScopedStore> scopes_;
  const Clock& known_;
  ScopeSweep sweep_;
  std::size_t next_ = 0;
  std::vector<Dot> spared_;
};

}  // namespace helenus::causality
