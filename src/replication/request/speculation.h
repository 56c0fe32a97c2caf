// Speculation: when a read that waits for a replica asks another one as well, as a table says it
// (speculative_retry: '99p', '50ms', 'MIN(99p,50ms)', 'ALWAYS', 'NEVER').
//
// A percentile is of what is usual of the replicas that were asked, as this core sees it; while
// that is not known it is kUnknown.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "runtime/time.h"

namespace helenus::replication {

struct Speculation {
  static constexpr runtime::Duration kUnknown = std::chrono::milliseconds(50);
  // Below this a percentile says more of the machine than of a replica.
  static constexpr runtime::Duration kPercentileMin = std::chrono::milliseconds(1);

  enum class Kind : std::uint8_t { percentile, fixed, sooner, later, always, never };
  Kind kind = Kind::percentile;
  double percentile = 99;
  runtime::Duration fixed{};

  // Of the text as the schema keeps it; the default for what is no such text.
  static Speculation parse(std::string_view text);
  bool needs_usual() const { return kind != Kind::fixed && kind < Kind::always; }
  // How long to wait before another replica is asked; none: not at all. `usual`: the percentile.
  std::optional<runtime::Duration> patience(std::optional<runtime::Duration> usual) const;

  friend bool operator==(const Speculation&, const Speculation&) = default;
};

}  // namespace helenus::replication
