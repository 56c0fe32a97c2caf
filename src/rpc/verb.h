// Verb: which kind of message this is. One list for the whole product, so that a number is given
// once: when a verb is retired its number stays in the list.
//
// Each verb travels in a lane. A lane is a connection of its own, so that no bulk transfer stands
// in front of a heartbeat.
#pragma once

#include <cstdint>
#include <string_view>

namespace helenus::rpc {

enum class Lane : std::uint8_t {
  control,  // gossip and consensus: small, and must get through
  data,     // everything that moves rows
};
inline constexpr std::size_t kLaneCount = 2;

constexpr std::string_view name_of(Lane lane) {
  return lane == Lane::control ? "control" : "data";
}

struct Verb {
  std::uint16_t number = 0;
  Lane lane = Lane::control;

  friend bool operator==(const Verb&, const Verb&) = default;
};

namespace verbs {

inline constexpr Verb kGossip{.number = 1, .lane = Lane::control};
inline constexpr Verb kConsensus{.number = 2, .lane = Lane::control};
inline constexpr Verb kMetadataVersion{.number = 3, .lane = Lane::control};
inline constexpr Verb kWrite{.number = 4, .lane = Lane::data};
inline constexpr Verb kApply{.number = 5, .lane = Lane::data};
inline constexpr Verb kRead{.number = 6, .lane = Lane::data};
inline constexpr Verb kScan{.number = 7, .lane = Lane::data};
inline constexpr Verb kClock{.number = 8, .lane = Lane::data};
inline constexpr Verb kAnnounce{.number = 9, .lane = Lane::data};
inline constexpr Verb kPull{.number = 10, .lane = Lane::data};
inline constexpr Verb kRepair{.number = 11, .lane = Lane::data};
inline constexpr Verb kStreamOpen{.number = 20, .lane = Lane::data};
inline constexpr Verb kStreamPage{.number = 21, .lane = Lane::data};
inline constexpr Verb kTraces{.number = 14, .lane = Lane::data};
inline constexpr Verb kRingProgress{.number = 30, .lane = Lane::control};

// From here on for tests alone; no release sends them.
inline constexpr std::uint16_t kTestsFirst = 0xff00;

}  // namespace verbs

}  // namespace helenus::rpc
