// Probe: the question "do you live?", asked directly or through another node, and its answer.
//
// A probe carries on whose behalf it runs, so that who passes it on need not remember anything:
//
//   origin ── ping ──▶ subject ── acknowledgement ──▶ origin
//   origin ── ping_request ──▶ helper ── ping ──▶ subject ── acknowledgement ──▶ helper ──▶ origin
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/codec.h"
#include "base/uuid.h"
#include "model/node_id.h"

namespace helenus::membership {

struct Probe {
  enum class Kind : std::uint8_t { ping = 0, ping_request = 1, acknowledgement = 2 };

  Kind kind = Kind::ping;
  std::uint64_t number = 0;  // the origin's own, to tell answers apart
  model::NodeId origin;
  model::NodeId subject;

  friend bool operator==(const Probe&, const Probe&) = default;
};

struct OutgoingProbe {
  model::NodeId to;
  Probe probe;

  friend bool operator==(const OutgoingProbe&, const OutgoingProbe&) = default;
};

// What any node sends on receiving a probe, whichever detector it runs itself: the answer to a
// ping, a ping for another one, an acknowledgement passed on. Nothing for an acknowledgement of its
// own, and for what is not meant for it.
inline std::optional<OutgoingProbe> answer_to(const Probe& probe, model::NodeId from,
                                              model::NodeId self) {
  Probe next = probe;
  switch (probe.kind) {
    case Probe::Kind::ping:
      if (probe.subject != self) return std::nullopt;
      next.kind = Probe::Kind::acknowledgement;
      return OutgoingProbe{from, next};
    case Probe::Kind::ping_request:
      if (probe.subject == self) {
        next.kind = Probe::Kind::acknowledgement;
        return OutgoingProbe{from, next};
      }
      // One helper only: a request that would travel on could go round for ever.
      if (probe.origin != from) return std::nullopt;
      next.kind = Probe::Kind::ping;
      return OutgoingProbe{probe.subject, next};
    case Probe::Kind::acknowledgement:
      if (probe.origin == self || probe.subject != from) return std::nullopt;
      return OutgoingProbe{probe.origin, next};
  }
  return std::nullopt;
}

// How many bytes it takes on the wire, in a message like those of gossip.
inline std::size_t encoded_size(const Probe& probe, std::string_view cluster) {
  constexpr std::size_t kHead = 1 + 1 + 1 + base::Uuid::kSize;  // version, kind, length, sender
  return kHead + cluster.size() + 1 + base::varint_size(probe.number) + 2 * base::Uuid::kSize;
}

}  // namespace helenus::membership
