// Where in a commit log something lies.
//
// A log is what one core wrote in one incarnation (one start of the engine in its folder). Its
// segments are numbered from 1. Incarnations only grow, so positions of one core are totally
// ordered, across restarts too. Positions of different cores are not comparable in any useful way.
#pragma once

#include <compare>
#include <cstdint>

#include <fmt/format.h>

namespace helenus::storage {

struct SegmentId {
  std::uint32_t incarnation = 0;
  std::uint32_t sequence = 0;
  friend constexpr auto operator<=>(const SegmentId&, const SegmentId&) = default;
};

struct LogPosition {
  SegmentId segment;
  std::uint64_t offset = 0;  // of a byte of the segment's file
  friend constexpr auto operator<=>(const LogPosition&, const LogPosition&) = default;
};

}  // namespace helenus::storage

template <>
struct fmt::formatter<helenus::storage::SegmentId> : fmt::formatter<std::string_view> {
  auto format(const helenus::storage::SegmentId& id, fmt::format_context& ctx) const {
    return fmt::format_to(ctx.out(), "{}.{}", id.incarnation, id.sequence);
  }
};

template <>
struct fmt::formatter<helenus::storage::LogPosition> : fmt::formatter<std::string_view> {
  auto format(const helenus::storage::LogPosition& position, fmt::format_context& ctx) const {
    return fmt::format_to(ctx.out(), "{}+{}", position.segment, position.offset);
  }
};
