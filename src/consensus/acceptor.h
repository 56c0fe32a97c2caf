// Acceptor: the memory of the register. It promises, accepts and learns, and nothing that it says
// leaves before the state that the words rest on is durable.
//
// The protocol. Version v + 1 of the document is the outcome of one instance of single-decree Paxos
// (L. Lamport, Paxos Made Simple, 2001) whose acceptors are those that document v names. So a
// change of the acceptors is a change of the document like any other, and takes effect with the
// next version (a state machine that is reconfigured through itself, with a window of one: L.
// Lamport, D. Malkhi, L. Zhou, Reconfiguring a State Machine, 2010).
//
// Why it is safe. Claim: for every version at most one document is ever chosen. By induction:
//   - Version 1 is given to the founding acceptors by one founder.
//   - Let document v be unique. Whoever takes part in the instance of v + 1, as acceptor or as
//     proposer, holds document v, so all of them mean the same acceptors and the same majorities.
//     That instance is plain Paxos with a fixed set: two majorities of one set share a member, a
//     ballot has one proposer and that one proposes one document under it, and an acceptor never
//     goes back behind a promise. So at most one document v + 1 is chosen.
// Old and new sets need not overlap, need not be changed one member at a time, and there is no
// joint phase: two sets never decide on the same version. What a change of the set does need is
// that the new acceptors know the document before the old ones may go; proposer.h sees to it before
// it acknowledges a change.
//
// An acceptor keeps one instance only. When it learns that version v + 1 is decided, it drops its
// promise and its proposal for v + 1 in the same durable write that takes in the document, and from
// then on it answers every question about v + 1 or older with the decided document. It promises
// less than before, never more, so dropping is safe.
//
// Invariants, kept by construction and asserted here in production:
//   A1  per version the promised ballot never goes down, and the accepted ballot is at most the
//       promised one
//   A2  the version of the decided document never goes down
//   A3  one version, one document; one ballot, one document
//   A4  an acceptor takes part only in the version after the document it holds, and only if that
//       document names it
//   A5  an answer leaves only when everything up to the state it was made from is durable
// A broken A3 means that this node's disk forgot a promise: the process stops rather than go on
// with two histories. No message of another node gets that far: PaxosStore looks at each before it
// hands it in (screen.h), and hands in a Learn when it believes it (claims.h).
//
// Rounds go up in steps of kRoundStepMax at most, so that one message cannot use up all of them.
// The argument above asks for nothing of rounds but their order.
//
// Losing the state is not an option: an acceptor that answers again under its old name after it
// forgot breaks the argument. So the first state is made durable together with the node's identity,
// before the node is named in any document; a node that later finds its identity and no state, or a
// state it cannot decode, does not start. Whoever lost its disk comes back under a new NodeId.
//
// Pure: messages and the completion of writes come in, messages and writes go out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "consensus/document.h"
#include "consensus/message.h"
#include "model/node_id.h"

namespace helenus::consensus {

struct AcceptorState {
  model::NodeId node;  // whose memory this is: that of another node is worth nothing here
  Document decided;
  Ballot promised;                   // for the version after `decided`
  std::optional<Proposal> accepted;  // likewise

  // Of a node that knows nothing yet, and of one that the founding document names.
  static AcceptorState blank(model::NodeId node);
  static AcceptorState founding(model::NodeId node, Document document);

  friend bool operator==(const AcceptorState&, const AcceptorState&) = default;
};

// The bytes, with a checksum: docs/formats/consensus.md.
base::Bytes encode(const AcceptorState& state);
// Errors: corrupt, unsupported.
base::Result<AcceptorState> decode_acceptor_state(base::ByteView bytes);

// A message and where it goes.
struct Outgoing {
  model::NodeId to;
  Message message;
};

class Acceptor {
 public:
  // Answers that wait for the disk. Beyond it questions are dropped, as a network may drop them.
  static constexpr std::size_t kAnswersMax = 1024;

  // All of the state, to replace what is on disk atomically.
  struct Write {
    std::uint64_t sequence = 0;
    base::Bytes state;
  };

  // Requires: `durable` is on disk already, and state.node is this node.
  explicit Acceptor(AcceptorState durable);

  // Takes a question in; what is no question, or about another register, is ignored. Requires: it
  // was screened, and a Learn is believed.
  void receive(model::NodeId from, const Message& question);

  // What to write next, if anything changed and no write is under way: changes that come in the
  // meantime share the next write. A write that fails is final: this acceptor must stop.
  std::optional<Write> next_write();
  // That write is durable. Requires: it is the one under way.
  void written(std::uint64_t sequence);

  // The answers that may go now.
  std::vector<Outgoing> take_answers();

  // The state in memory, which may be ahead of the disk.
  const AcceptorState& state() const { return state_; }
  // The newest document that is durable here.
  const Document& durable_document() const { return durable_document_; }
  std::uint64_t questions_dropped() const { return questions_dropped_; }

 private:
  struct Answer {
    std::uint64_t sequence;  // durable before it may go
    Outgoing outgoing;
  };

  // Answers what needs no part in the instance of `version`; false if there is more to do.
  bool answered_elsewise(model::NodeId from, Version version, const Message& question);
  bool is_too_far(const Ballot& ballot) const;
  void on_prepare(model::NodeId from, const Prepare& prepare, const Message& question);
  void on_accept(model::NodeId from, const Accept& accept, const Message& question);
  void on_probe(model::NodeId from, const Probe& probe, const Message& question);
  void on_learn(model::NodeId from, const Learn& learn, const Message& question);
  void answer(model::NodeId to, const Message& question, Body body);
  void change_state(AcceptorState next);

  AcceptorState state_;
  Document durable_document_;
  Document document_under_way_;
  std::uint64_t sequence_ = 0;  // counts changes of state_
  std::uint64_t durable_ = 0;   // the last change that is on disk
  std::optional<std::uint64_t> under_way_;
  std::deque<Answer> answers_;
  std::uint64_t questions_dropped_ = 0;
};

}  // namespace helenus::consensus
