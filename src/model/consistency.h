// Consistency: how many replicas must answer before a client is answered. The numbers are those of
// the CQL protocol.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/assert.h"

namespace helenus::model {

enum class Consistency : std::uint16_t {
  any = 0x00,
  one = 0x01,
  two = 0x02,
  three = 0x03,
  quorum = 0x04,
  all = 0x05,
  local_quorum = 0x06,
  each_quorum = 0x07,
  serial = 0x08,
  local_serial = 0x09,
  local_one = 0x0a,
};
inline constexpr std::uint16_t kConsistencyMax = 0x0a;

constexpr bool is_serial(Consistency consistency) {
  return consistency == Consistency::serial || consistency == Consistency::local_serial;
}

// Levels that count the replicas of the coordinator's data centre only.
constexpr bool is_local(Consistency consistency) {
  return consistency == Consistency::local_quorum || consistency == Consistency::local_one ||
         consistency == Consistency::local_serial;
}

// The level of a number, which comes from a frame.
constexpr std::optional<Consistency> consistency_from(std::uint16_t number) {
  if (number > kConsistencyMax) return std::nullopt;
  return static_cast<Consistency>(number);
}

// A majority of `replicas`.
constexpr std::uint32_t quorum_of(std::uint32_t replicas) {
  return replicas / 2 + 1;
}

// As CQL spells it: "LOCAL_QUORUM".
constexpr std::string_view name_of(Consistency consistency) {
  switch (consistency) {
    case Consistency::any:
      return "ANY";
    case Consistency::one:
      return "ONE";
    case Consistency::two:
      return "TWO";
    case Consistency::three:
      return "THREE";
    case Consistency::quorum:
      return "QUORUM";
    case Consistency::all:
      return "ALL";
    case Consistency::local_quorum:
      return "LOCAL_QUORUM";
    case Consistency::each_quorum:
      return "EACH_QUORUM";
    case Consistency::serial:
      return "SERIAL";
    case Consistency::local_serial:
      return "LOCAL_SERIAL";
    case Consistency::local_one:
      return "LOCAL_ONE";
  }
  UNREACHABLE("consistency {}", static_cast<unsigned>(consistency));
}

}  // namespace helenus::model
