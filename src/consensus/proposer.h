// Proposer: reads the register and changes it, one operation at a time, by asking acceptors.
//
// A read asks the acceptors of the newest document v known here whether they accepted anything for
// v + 1. If a majority says no, v + 1 was not chosen when the read began: whatever chose it would
// share a member with that majority. So v was the newest document at some moment of the read. If a
// majority accepted the same proposal, it is chosen. Otherwise the read finishes what somebody
// began, by proposing it again, and looks once more.
//
// A change from version v runs Paxos for v + 1 among the acceptors that document v names
// (acceptor.h has the safety argument). If it finds a proposal of somebody else there, it finishes
// that one and has lost. When the change is chosen it is acknowledged only after a majority of the
// acceptors that the *new* document names hold it durably. With an unchanged set that is the
// majority that accepted. With a changed one it is what allows the operator to switch off the old
// acceptors once the change is acknowledged.
//
// Who loses the answer may ask for the same change again, with the same id, here or elsewhere: the
// trail of the document tells whether it happened, and it happens at most once (document.h).
//
// Invariants, kept by construction and asserted here in production. The numbers are this header's,
// not those of docs/theory.md:
//   P1  ballots of one life only go up, and under each one document at most is proposed
//   P2  a proposal is made only after a majority promised, and is the one of the highest ballot
//       among theirs if there is one
//   P3  the version of the known document never goes down; one version, one document
//   P4  a document follows the known one before it is proposed or taken for chosen
// An answer counts only if it echoes the ballot or ticket of the question under way, so it was
// given after the operation began.
//
// Nothing is kept on disk: a new life has a new ProposerId, and may start from any document that
// was ever decided, or from none and some contact points.
//
// Pure: messages, time and a seed come in, messages and outcomes go out. After each call the owner
// sends take_messages(), looks at take_outcome(), and calls tick() when wakes_at() has come.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "base/hash.h"
#include "base/prng.h"
#include "base/result.h"
#include "consensus/acceptor.h"
#include "consensus/document.h"
#include "consensus/message.h"
#include "model/node_id.h"
#include "runtime/time.h"

namespace helenus::consensus {

struct Outcome {
  enum class Kind : std::uint8_t {
    read,         // `document` is what the register held at some moment of the read
    changed,      // the change happened; `document` is its result or a later one
    conflict,     // it did not: the register is, at `document` or later, not where it expects it
    unavailable,  // time was up and this proposer had not proposed the change: of a first attempt,
                  // that it did not happen
    unknown,      // time was up, or the trail no longer tells: ask again, or read
  };
  Kind kind = Kind::unknown;
  Document document;
};

class Proposer {
 public:
  struct Config {
    runtime::Duration round_timeout{200'000'000};  // then the same question is asked again
    runtime::Duration pause_min{5'000'000};        // after a higher ballot got in the way, doubled
    runtime::Duration pause_max{1'000'000'000};    // at each further time up to this
  };

  // Requires: `known` was decided, or is blank; `contacts` (asked while it is blank) are at most
  // kAcceptorsMax; `id` was never used before.
  Proposer(ProposerId id, Document known, std::vector<model::NodeId> contacts, std::uint64_t seed,
           Config config);

  // Starts an operation. Requires: !is_busy(), and the last outcome was taken.
  void read(runtime::MonotonicTime now, runtime::MonotonicTime deadline);
  // Errors: invalid_argument if no document could look like that; nothing was started then.
  base::Result<void> change(Change change, runtime::MonotonicTime now,
                            runtime::MonotonicTime deadline);

  void receive(model::NodeId from, const Message& answer, runtime::MonotonicTime now);
  // A decided document that came another way, as by gossip.
  void learn(const Document& document, runtime::MonotonicTime now);
  void tick(runtime::MonotonicTime now);

  // When to call tick(); never if idle.
  runtime::MonotonicTime wakes_at() const;
  std::vector<Outgoing> take_messages();
  std::optional<Outcome> take_outcome();

  bool is_busy() const { return phase_ != Phase::idle; }
  const Document& known() const { return known_; }
  // All that the next steps depend on, times and randomness left out: for exploring states.
  void add_to(base::Digest& digest) const;

 private:
  enum class Phase : std::uint8_t { idle, probing, preparing, accepting, spreading, pausing };

  void start(runtime::MonotonicTime now, runtime::MonotonicTime deadline);
  // Goes on from the known document, with whatever the operation needs next.
  void advance(runtime::MonotonicTime now);
  void probe(runtime::MonotonicTime now);
  void prepare(runtime::MonotonicTime now);
  void propose(runtime::MonotonicTime now);
  void spread(const std::set<model::NodeId>& holders, runtime::MonotonicTime now);
  void pause(runtime::MonotonicTime now);
  void chosen(const Document& document, runtime::MonotonicTime now);
  void finish(Outcome::Kind kind);

  void on(model::NodeId from, const Promised& answer, runtime::MonotonicTime now);
  void on(model::NodeId from, const Accepted& answer, runtime::MonotonicTime now);
  void on(model::NodeId from, const Refused& answer, runtime::MonotonicTime now);
  void on(model::NodeId from, const Probed& answer, runtime::MonotonicTime now);
  void on(model::NodeId from, const Learned& answer, runtime::MonotonicTime now);
  void on(model::NodeId from, const Behind& answer, runtime::MonotonicTime now);

  // Brings an acceptor that has promised that round nearer to ours.
  void climb(model::NodeId acceptor, std::uint64_t promised);
  void ask(Phase phase, Body question, runtime::MonotonicTime now);
  void ask_again(runtime::MonotonicTime now);
  void send(model::NodeId to, Body body);
  const std::vector<model::NodeId>& peers() const;
  bool is_peer(model::NodeId node) const;
  bool has_majority(const std::set<model::NodeId>& nodes) const;

  const ProposerId id_;
  const Config config_;
  const std::vector<model::NodeId> contacts_;
  base::Prng prng_;
  Document known_;
  std::uint64_t round_ = 0;   // the highest seen or used
  std::uint64_t ticket_ = 0;  // the last one used

  // The operation.
  Phase phase_ = Phase::idle;
  std::optional<Change> change_;  // none: a read
  bool in_doubt_ = false;         // the change was proposed, or has happened
  unsigned pauses_ = 0;
  runtime::MonotonicTime deadline_;
  runtime::MonotonicTime wakes_at_ = runtime::MonotonicTime::never();

  // The question under way, and who answered it how.
  Body question_;
  Ballot ballot_;
  std::set<model::NodeId> agreed_;    // promised, accepted, learned, or have accepted nothing
  std::set<model::NodeId> refused_;   // saw a higher ballot, or have accepted something
  std::set<model::NodeId> behind_;    // are being taught
  std::set<model::NodeId> climbing_;  // are being brought up to our round
  struct Found {
    Document document;
    std::set<model::NodeId> holders;
  };
  std::map<Ballot, Found> accepted_by_;  // found by a probe
  std::optional<Proposal> highest_;      // of a prepare; of a probe, one that was found

  std::vector<Outgoing> messages_;
  std::optional<Outcome> outcome_;
};

}  // namespace helenus::consensus
