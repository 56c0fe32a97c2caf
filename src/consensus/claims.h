// Claims: what other nodes say was decided, until it is believed.
//
// A Learn or a Decided is the word of one node. That node may be confused, or lie; so its word is
// kept here, and the acceptors that the document known here names are asked what they know. For a
// document to be believed it takes one of these:
//   C1  two members say that it was decided
//   C2  a majority of the acceptors of the document before it have accepted it under one ballot, or
//       say that it was decided; this node's own acceptor is asked like the others. If one acceptor
//       alone decides, its word is enough: it is the one that decides.
//   C3  one member says so, lone_claim_after has passed, and the acceptors that answered do not
//       contradict it
//   C4  nothing is known here yet, and it comes from a node that this one asked: a seed, which the
//       operator named
// It is refused at once if the acceptors that deny it leave no majority that could have chosen it
// or an ancestor of it, if it does not descend from the document known here, or if its content is
// not in order (screen.h). An acceptor denies it that still holds the known document and has
// accepted no ancestor of the candidate. One that has accepted an ancestor denies nothing, however
// far ahead the candidate is: the versions between may have been decided by others, and nobody told
// it. (Of two acceptors one may have learned three versions more, and the other none: would its
// vote for the first of them count as a denial, neither could decide alone, and nobody could
// learn.)
//
// Why no document is adopted that nobody decided, as long as at most one node at a time is confused
// or silent. By C1 one of the two is right, and it believed by these rules or counted a majority
// itself. C2 with a correct majority is the definition of chosen; with one wrong member in it, all
// others of it have accepted the document under one ballot, which its proposer offered for
// choosing, and no other document can be chosen under that ballot; in the sets there are (one,
// three or five acceptors) that takes an acceptor that is wrong itself. C3 takes a claimant that is
// wrong and, at the same time, so many acceptors silent that the rest cannot deny: two faults.
// Without C3 a node whose neighbour crashed right after it had voted could not learn what was
// decided until that neighbour is back, although a majority is up: an acceptor that votes and stops
// would stop all.
//
// A stranger has no say: it proved no secret, and who is no member is heard only as a hint to ask.
//
// Why it ends. Who holds a document answers every question about it with it, so where two holders
// are reachable C1 comes true; where one is, C3, unless it is denied. If it is denied wrongly, as
// it is newer than what was asked, it is claimed again. If it is rightly denied, a majority of the
// acceptors holds the known document, and goes on from there. Questions are asked again until then.
//
// Pure: claims, answers and time come in; questions and believed documents go out.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "consensus/acceptor.h"
#include "consensus/document.h"
#include "consensus/message.h"
#include "model/node_id.h"
#include "runtime/time.h"

namespace helenus::consensus {

class Claims {
 public:
  struct Config {
    runtime::Duration ask_again{200'000'000};
    runtime::Duration lone_claim_after{2'000'000'000};
    std::size_t candidates_max = 4;
    std::size_t learners_max = 32;  // who wait to be told that a document is known here
  };

  // What is known on this node.
  struct Known {
    model::NodeId self;
    const Document& document;
    const std::optional<Proposal>& accepted;  // by the own acceptor, for the version after it
  };

  // A document that is believed, and who is to be told so.
  struct Belief {
    Document document;
    std::vector<model::NodeId> learners;
  };

  // `id` is never used as a proposer's.
  Claims(ProposerId id, Config config) : id_(id), config_(config) {}

  // `from` says that it was decided; only a member's word counts. A learner waits to hear that it
  // is known here. Requires: it is newer than what is known, and screened.
  void claimed(const Known& known, model::NodeId from, const Document& document, bool is_member,
               bool is_learner, runtime::MonotonicTime now);
  // Whether that is the answer to a question of this.
  bool asked(const Probed& answer) const { return answer.ticket.proposer == id_; }
  void probed(const Known& known, model::NodeId from, const Probed& answer);

  // The next one that is believed, if there is one; and what became known elsewise is dropped.
  std::optional<Belief> take_belief(const Known& known, runtime::MonotonicTime now);

  // Asks again what is to be asked.
  void tick(const Known& known, runtime::MonotonicTime now);
  // When tick() and take_belief() should be called next.
  runtime::MonotonicTime wakes_at() const;
  std::vector<Outgoing> take_messages();

  // Documents that were refused since acceptors deny them.
  std::uint64_t denied() const { return denied_; }

 private:
  struct Candidate {
    Document document;
    std::set<model::NodeId> decided_by;
    std::vector<model::NodeId> learners;
    runtime::MonotonicTime since;
  };

  bool is_believed(const Candidate& candidate, const Known& known,
                   runtime::MonotonicTime now) const;
  bool has_votes(const Candidate& candidate, const Known& known) const;
  bool is_denied(const Candidate& candidate, const Known& known) const;
  Candidate& candidate_of(const Document& document, runtime::MonotonicTime now);
  void forget_known(const Known& known);
  void ask(const Known& known, runtime::MonotonicTime now);

  const ProposerId id_;
  const Config config_;
  std::vector<Candidate> candidates_;
  // What acceptors have accepted for the version after the known one; none: nothing.
  Version probed_version_;
  std::map<model::NodeId, std::optional<Proposal>> probed_;
  std::uint64_t sequence_ = 0;
  runtime::MonotonicTime asked_at_;
  std::vector<Outgoing> messages_;
  std::uint64_t denied_ = 0;
};

}  // namespace helenus::consensus
