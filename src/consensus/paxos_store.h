// PaxosStore: the embedded MetadataStore. A proposer and an acceptor of this node, bound to the
// other nodes by rpc and to a file.
//
//   read(), change() ──▶ Proposer ──questions──▶ rpc ──▶ PersistentAcceptor of every acceptor
//                                 ◀──answers────     ◀──
//   heard_of(node, version): somebody has a newer document; it is asked for it
//
// Questions and answers are one-way messages of one verb: each says all that its reader needs, and
// whoever misses an answer asks again. To the acceptor of this node they go the same way.
//
// Every node has an acceptor, named or not: it keeps the newest document, so that after a restart
// the node knows who decides. What the proposer learns the acceptor is taught, and the other way
// round.
//
// Whatever comes from other nodes is checked before it is acted upon (screen.h), and what they say
// was decided is believed when enough of them say so (claims.h).
//
// Operations go one after the other, in the order they came; so many may wait. One that is stopped
// ends at once, and the proposer begins a new life: what it asked may still happen.
//
// Core affinity: the core of its Runtime, which is the Rpc's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/log.h"
#include "base/result.h"
#include "consensus/claims.h"
#include "consensus/document.h"
#include "consensus/message.h"
#include "consensus/metadata_store.h"
#include "consensus/persistent_acceptor.h"
#include "consensus/proposer.h"
#include "consensus/screen.h"
#include "model/node_id.h"
#include "rpc/rpc.h"
#include "runtime/clock.h"
#include "runtime/event.h"
#include "runtime/gate.h"
#include "runtime/line_budget.h"
#include "runtime/runtime.h"
#include "runtime/semaphore.h"
#include "runtime/task.h"
#include "runtime/wait_queue.h"

namespace helenus::consensus {

class PaxosStore final : public MetadataStore {
  struct Private {
    explicit Private() = default;
  };

 public:
  struct Options {
    std::string path;  // of the acceptor's file, which PersistentAcceptor::create made
    // Asked while no document is known here; kAcceptorsMax at most.
    std::vector<model::NodeId> contacts;
    Proposer::Config proposer = {};
    Claims::Config claims = {};
    // Whether a content is in order, and may follow. May be absent: all are.
    ContentCheck check = {};
    // Whose word counts on what was decided. May be absent: everybody's.
    std::function<bool(model::NodeId node)> is_member = {};
    std::size_t operations_waiting_max = 128;
    // As PersistentAcceptor::Hooks has it.
    std::function<runtime::Task<bool>()> make_room = {};
  };

  struct Statistics {
    std::uint64_t messages_dropped = 0;  // could not be sent: nobody was reached, most of them
    std::uint64_t messages_refused = 0;  // garbage, of a later format, or of another register
    std::uint64_t claims_denied = 0;     // documents said to be decided, which acceptors deny
  };

  // Reads the acceptor's file and begins to serve rpc::verbs::kConsensus. Errors: as those of
  // PersistentAcceptor::open.
  // Requires: nobody serves that verb yet; the store outlives the Rpc's stop(), the Rpc the store.
  static runtime::Task<base::Result<std::unique_ptr<PaxosStore>>> open(runtime::Runtime& runtime,
                                                                       rpc::Rpc& rpc,
                                                                       Options options);
  // For open().
  PaxosStore(Private, runtime::Runtime& runtime, rpc::Rpc& rpc, Options options);

  runtime::Task<base::Result<Document>> read(runtime::Until until) override;
  runtime::Task<base::Result<Document>> change(Change change, runtime::Until until) override;
  runtime::Task<base::Result<Document>> wait_newer(Version known, runtime::Until until) override;

  // Makes version 1 known here; returns when it is durable. Whoever calls it answers for being the
  // only one. Errors: already_exists if a document came to be known here; timeout, cancelled,
  // closed; of the file.
  runtime::Task<base::Result<void>> found(const Document& document, runtime::Until until);

  // Returns when a document of that version or a later one is durable here. Errors: timeout,
  // cancelled, closed; of the file. Requires: such a one is known here.
  runtime::Task<base::Result<void>> wait_durable(Version version, runtime::Until until);

  // Gossip tells that this node holds a document of that version.
  void heard_of(model::NodeId node, Version version);

  // The newest document known here; blank if none is.
  const Document& known() const { return proposer_->known(); }
  // Why this node's acceptor answers nothing any more, if that is so: the node should stop.
  const std::optional<base::Error>& failure() const { return acceptor_->failure(); }
  const Statistics& statistics() const { return statistics_; }

  // Ends what is under way with Errc::closed, and returns when nothing is and the file is at rest.
  runtime::Task<void> stop();

 private:
  struct Alarm final : runtime::Timer {
    explicit Alarm(PaxosStore& store_) : store(store_) {}
    void fire() override { store.on_alarm(); }
    PaxosStore& store;
  };

  runtime::Task<base::Result<base::Bytes>> handle(rpc::Incoming incoming);
  // Errors: of the bytes; refused if it is about another register than this node's.
  base::Result<Message> understand(const rpc::Incoming& incoming) const;
  // Acts upon a message, if it passes the checks of screen.h. Errors: refused.
  base::Result<void> take(model::NodeId from, const Message& message);
  // Somebody says that this was decided.
  base::Result<void> take_claim(model::NodeId from, const Message& message,
                                const Document& document);
  // Makes known what is believed by now.
  void settle_claims();
  // The newest document on this node, and what its acceptor has accepted for the next version.
  Claims::Known newest() const;
  bool counts(model::NodeId node) const;
  // Runs one operation to its end; a read without a change.
  runtime::Task<base::Result<Outcome>> operate(std::optional<Change> change, runtime::Until until);
  base::Error no_answer() const;
  void begin_life(Document known);
  void on_durable(const Document& document);
  void on_alarm();
  // Sends what the proposer says, and sees to what it found out.
  void pump();
  void send(const Outgoing& outgoing);

  runtime::Runtime& runtime_;
  rpc::Rpc& rpc_;
  const Options options_;
  base::Logger log_;
  std::unique_ptr<PersistentAcceptor> acceptor_;
  std::unique_ptr<Proposer> proposer_;
  std::optional<Claims> claims_;
  std::set<model::NodeId> asked_;  // while nothing was known here
  Version announced_;              // the newest that waiters and the acceptor were told of
  std::optional<Outcome> outcome_;
  Statistics statistics_;
  runtime::LineBudget lines_;  // about messages, which others send as many of as they like
  bool stopped_ = false;
  Alarm alarm_;
  runtime::Semaphore turn_;
  runtime::Event finished_;  // the operation under way
  runtime::WaitQueue newer_;
  runtime::WaitQueue durable_;  // a newer document is in the file
  runtime::Gate users_;
};

}  // namespace helenus::consensus
