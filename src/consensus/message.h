// The messages between a proposer and the acceptors, and their bytes.
//
// A network may lose, repeat, delay and reorder them; each says all that its reader needs. What a
// proposer asks names the version to be decided; what it is told echoes the ballot or the ticket of
// the question, so that an answer to an older question is never counted for a newer one.
//
//   question                        answers
//   Prepare   phase 1 of Paxos      Promised | Refused
//   Accept    phase 2 of Paxos      Accepted | Refused
//   Probe     a read                Probed
//   Learn     this was decided      Learned
// and to any of the first three: Decided (the version is taken: here is the newest document) or
// Behind (the one before it is not known here: teach me).
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <variant>

#include "base/bytes.h"
#include "base/result.h"
#include "base/strong.h"
#include "base/uuid.h"
#include "consensus/document.h"

namespace helenus::consensus {

// One life of a proposer: drawn at random at every start and never used again. A proposer keeps
// nothing on disk, so a second life under the same id could put two documents under one ballot.
using ProposerId = base::Strong<struct ProposerIdTag, base::Uuid>;

// Honest rounds count attempts; a larger one is damage, and would leave nobody a way to go above.
inline constexpr std::uint64_t kRoundMax = std::uint64_t{1} << 48;
// How far above the highest round that it knows a round may lie for an acceptor to promise it, and
// for a proposer to follow it. Without it one message with the greatest round would leave nobody a
// way to go above, for ever; with it that takes 2^32 messages, a durable write each, about one
// version. A proposer that is further ahead, as acceptors begin each version at round 0, brings an
// acceptor up to its round in steps of this size (Proposer::climb), so every majority can still be
// had.
inline constexpr std::uint64_t kRoundStepMax = std::uint64_t{1} << 16;

// Ordered by round, then by proposer. Round 0 is lower than every ballot that is ever used.
struct Ballot {
  std::uint64_t round = 0;
  ProposerId proposer;

  friend auto operator<=>(const Ballot&, const Ballot&) = default;
};

// Which question of which life of a proposer.
struct Ticket {
  ProposerId proposer;
  std::uint64_t sequence = 0;

  friend bool operator==(const Ticket&, const Ticket&) = default;
};

// The document to be made version document.version, under a ballot.
struct Proposal {
  Ballot ballot;
  Document document;

  friend bool operator==(const Proposal&, const Proposal&) = default;
};

struct Prepare {
  Version version;
  Ballot ballot;
  friend bool operator==(const Prepare&, const Prepare&) = default;
};
struct Accept {
  Proposal proposal;
  friend bool operator==(const Accept&, const Accept&) = default;
};
struct Probe {
  Version version;
  Ticket ticket;
  friend bool operator==(const Probe&, const Probe&) = default;
};
struct Learn {
  Document document;
  friend bool operator==(const Learn&, const Learn&) = default;
};

struct Promised {
  Version version;
  Ballot ballot;
  std::optional<Proposal> accepted;  // what was accepted under the highest ballot so far
  friend bool operator==(const Promised&, const Promised&) = default;
};
struct Accepted {
  Version version;
  Ballot ballot;
  friend bool operator==(const Accepted&, const Accepted&) = default;
};
struct Refused {
  Version version;
  Ballot ballot;    // of the question
  Ballot promised;  // higher than it, or so much lower that it must be reached in steps
  friend bool operator==(const Refused&, const Refused&) = default;
};
struct Probed {
  Version version;
  Ticket ticket;
  std::optional<Proposal> accepted;
  friend bool operator==(const Probed&, const Probed&) = default;
};
struct Learned {
  Version version;  // the newest that is durable here
  friend bool operator==(const Learned&, const Learned&) = default;
};
struct Decided {
  Document document;
  friend bool operator==(const Decided&, const Decided&) = default;
};
struct Behind {
  Version version;  // of the question
  Version known;
  friend bool operator==(const Behind&, const Behind&) = default;
};

using Body = std::variant<Prepare, Accept, Probe, Learn, Promised, Accepted, Refused, Probed,
                          Learned, Decided, Behind>;

// Messages about another register are ignored by everybody.
struct Message {
  RegisterId register_id;
  Body body;
  base::Bytes later{};  // what a later release added

  friend bool operator==(const Message&, const Message&) = default;
};

// Whether it is for an acceptor; for a proposer otherwise.
bool is_question(const Message& message);

// The bytes: docs/formats/consensus.md. A reader keeps what follows the fields it knows as `later`,
// and makes nothing of it. What decodes encodes to the bytes it came from.
base::Bytes encode(const Message& message);
// Errors: corrupt; unsupported for a later version of the format.
base::Result<Message> decode_message(base::ByteView bytes);

// Parts that the acceptor's state on disk shares with the messages.
void put(base::Encoder& out, const Ballot& ballot);
Ballot get_ballot(base::Decoder& in);
void put(base::Encoder& out, const std::optional<Proposal>& proposal);
std::optional<Proposal> get_optional_proposal(base::Decoder& in);

}  // namespace helenus::consensus
