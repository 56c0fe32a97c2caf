// OperationScreen: what one core says of an operation id before anything is looked up (theory C2,
// C5): that it is surely new, perhaps known, too old or from the future.
//
//      floor = now - window - skew            now            now + skew
//   ───────────┼───────────────────────────────┼───────────────┼──────▶ time of an id
//    expired:  │ surely new, or perhaps known: the mutation   │ from the future:
//    refused   │ log decides (Engine::find_operation)         │ refused
//
// It screens; it never decides that an id is known. The filter answers "perhaps" of every id that
// was remembered for as long as the id can be above the floor, and of others at its rate. When it
// cannot remember (memory), it says "perhaps" of all: that costs lookups and nothing else.
//
// Time. `now` begins as the wall clock does, but never so that the floor lies below one that was
// used before (begin()), and from the first id on it follows the monotonic clock, drawn towards the
// wall clock by at most an eighth: a wall clock that steps back cannot let an id in again that was
// forgotten, and one that steps ahead does not expire ids at once.
//
// Pure: it is told the time. Core affinity: that of its engine.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "causality/operation.h"
#include "filters/sliced_forgetful.h"
#include "storage/mutations/operation_hold.h"

namespace helenus::storage {

struct OperationWindow {
  static constexpr std::int64_t kMillisecondsMax = std::int64_t{30} * 24 * 3600 * 1000;

  std::int64_t window_ms = 600'000;
  std::int64_t skew_ms = 60'000;
  // Of the filter.
  std::uint64_t memory_bytes_max = std::uint64_t{64} << 20;
  double false_positive_rate = 0.01;
};

class OperationScreen {
 public:
  enum class Answer : std::uint8_t { surely_new, perhaps_known, expired, from_the_future };

  explicit OperationScreen(const OperationWindow& options) : options_(options) {}

  const OperationWindow& options() const { return options_; }

  // Ids up to `floor` were forgotten by an earlier start. Requires: nothing was told yet.
  void begin(causality::OperationTime floor) { floor_min_ = std::max(floor_min_, floor); }
  // Data has come of which the mutation log does not say what ids made it (C8): those up to `floor`
  // are refused from now on, until the next start.
  void refuse_up_to(causality::OperationTime floor) { floor_min_ = std::max(floor_min_, floor); }
  // Both in nanoseconds: since 1970, and since any moment.
  void tell(std::int64_t wall_ns, std::int64_t monotonic_ns);

  causality::OperationTime now() const { return causality::OperationTime{now_ns_ / kNsPerMs}; }
  // Ids up to it are refused. Only grows from the first id on.
  causality::OperationTime floor() const;

  Answer judge(const causality::OperationId& id) const;
  // A mutation with that id is in the mutation log.
  void remember(const causality::OperationId& id);
  // Says "perhaps" of all from now on: it does not know what the log has.
  void go_blind() { is_blind_ = true; }

  // Ids that the filter answers for, each as often as it was remembered in vain beside others.
  std::uint64_t size() const { return filter_ ? filter_->size() : 0; }
  std::uint64_t memory_bytes() const { return filter_ ? filter_->memory_bytes() : 0; }
  bool is_blind() const { return is_blind_; }

 private:
  static constexpr std::int64_t kNsPerMs = 1'000'000;

  const OperationWindow options_;
  causality::OperationTime floor_min_ = kNoOperation;
  bool has_ids_ = false;
  bool is_told_ = false;
  bool is_blind_ = false;
  std::int64_t now_ns_ = 0;
  std::int64_t monotonic_ns_ = 0;
  std::optional<filters::SlicedForgetful> filter_;  // made with the first id
};

}  // namespace helenus::storage
