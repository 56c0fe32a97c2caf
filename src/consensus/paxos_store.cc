#include "consensus/paxos_store.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "base/assert.h"
#include "rpc/verb.h"
#include "runtime/random.h"
#include "runtime/random_uuid.h"

namespace helenus {

template <>
struct rpc::Codec<consensus::Message> {
  static base::Bytes encode(const consensus::Message& message, rpc::ProtocolVersion) {
    return consensus::encode(message);
  }
};

}  // namespace helenus

namespace helenus::consensus {

using base::Errc;
using base::Error;
using base::Result;
using model::NodeId;
using runtime::Task;
using runtime::Until;

namespace {

// Nodes that one without a document asks; it has a few seeds.
constexpr std::size_t kAskedMax = 64;

}  // namespace

Task<Result<std::unique_ptr<PaxosStore>>> PaxosStore::open(runtime::Runtime& runtime, rpc::Rpc& rpc,
                                                           Options options) {
  const std::string path = options.path;
  auto store = std::make_unique<PaxosStore>(Private(), runtime, rpc, std::move(options));
  PaxosStore& self = *store;
  CO_TRY(self.acceptor_,
         co_await PersistentAcceptor::open(
             runtime, path, rpc.node(),
             {.send = [&self](const Outgoing& answer) { self.send(answer); },
              .learned = [&self](const Document& document) { self.on_durable(document); },
              .failed = [&self] { self.durable_.wake_all(); },
              .make_room = self.options_.make_room}));
  self.announced_ = self.acceptor_->durable_document().version;
  self.claims_.emplace(ProposerId(runtime::draw_uuid(runtime.random)), self.options_.claims);
  self.begin_life(self.acceptor_->durable_document());
  rpc.serve(rpc::verbs::kConsensus,
            [&self](rpc::Incoming incoming) { return self.handle(std::move(incoming)); });
  co_return std::move(store);
}

PaxosStore::PaxosStore(Private, runtime::Runtime& runtime, rpc::Rpc& rpc, Options options)
    : runtime_(runtime),
      rpc_(rpc),
      options_(std::move(options)),
      log_(runtime.logger("consensus")),
      alarm_(*this),
      turn_(runtime, 1, options_.operations_waiting_max),
      finished_(runtime),
      newer_(runtime),
      durable_(runtime),
      users_(runtime) {}

void PaxosStore::begin_life(Document known) {
  const ProposerId id(runtime::draw_uuid(runtime_.random));
  proposer_ = std::make_unique<Proposer>(id, std::move(known), options_.contacts,
                                         runtime_.random.next(), options_.proposer);
}

Task<Result<Document>> PaxosStore::read(Until until) {
  CO_TRY(Outcome outcome, co_await operate(std::nullopt, std::move(until)));
  if (outcome.kind != Outcome::Kind::read) co_return no_answer();
  co_return std::move(outcome.document);
}

Task<Result<Document>> PaxosStore::change(Change change, Until until) {
  const Version expected = change.expected;
  CO_TRY(Outcome outcome, co_await operate(std::move(change), std::move(until)));
  switch (outcome.kind) {
    case Outcome::Kind::changed:
      co_return std::move(outcome.document);
    case Outcome::Kind::conflict:
      co_return Error(Errc::already_exists,
                      "the metadata is not at version {} any more, or not yet", expected);
    case Outcome::Kind::unavailable:
      co_return no_answer();
    case Outcome::Kind::unknown:
      co_return Error(Errc::timeout, "the change of version {} may have happened, or may yet",
                      expected);
    case Outcome::Kind::read:
      break;
  }
  UNREACHABLE("a change is not a read");
}

Task<Result<Document>> PaxosStore::wait_newer(Version version, Until until) {
  CO_TRY(const auto pass, users_.enter());
  while (known().version <= version) CO_TRY_VOID(co_await newer_.wait(until));
  co_return known();
}

Error PaxosStore::no_answer() const {
  if (known().is_blank()) {
    return Error(Errc::unavailable, "none of {} contact points gave the metadata in time",
                 options_.contacts.size());
  }
  return Error(Errc::unavailable, "fewer than {} of the {} acceptors of version {} agreed in time",
               majority_of(known().acceptors.size()), known().acceptors.size(), known().version);
}

Task<Result<Outcome>> PaxosStore::operate(std::optional<Change> change, Until until) {
  CO_TRY(const auto pass, users_.enter());
  CO_TRY(const auto turn, co_await turn_.acquire(1, until));
  if (stopped_) co_return Error(Errc::closed);
  finished_.reset();
  outcome_.reset();
  if (change) {
    CO_TRY_VOID(proposer_->change(*std::move(change), runtime_.clock.now(), until.deadline));
  } else {
    proposer_->read(runtime_.clock.now(), until.deadline);
  }
  pump();
  // The proposer keeps the deadline.
  auto waited = co_await finished_.wait({.stop = until.stop});
  if (outcome_) co_return *std::exchange(outcome_, std::nullopt);
  begin_life(known());
  if (!waited) co_return std::move(waited).error();
  co_return Error(Errc::closed);
}

Task<Result<void>> PaxosStore::found(const Document& document, Until until) {
  CO_TRY(const auto pass, users_.enter());
  ASSERT(document.version == Version(1));
  if (!known().is_blank()) {
    co_return Error(Errc::already_exists,
                    "version {} of a cluster's metadata came to be known here", known().version);
  }
  proposer_->learn(document, runtime_.clock.now());
  pump();
  while (acceptor_->durable_document().is_blank()) {
    if (acceptor_->failure()) co_return Error(*acceptor_->failure());
    CO_TRY_VOID(co_await durable_.wait(until));
  }
  co_return {};
}

Task<Result<void>> PaxosStore::wait_durable(Version version, Until until) {
  CO_TRY(const auto pass, users_.enter());
  while (acceptor_->durable_document().version < version) {
    if (acceptor_->failure()) co_return Error(*acceptor_->failure());
    CO_TRY_VOID(co_await durable_.wait(until));
  }
  co_return {};
}

void PaxosStore::heard_of(NodeId node, Version version) {
  if (stopped_ || version <= known().version || node == rpc_.node()) return;
  if (known().is_blank() && asked_.size() < kAskedMax) asked_.insert(node);
  // Whoever holds the version after ours answers a question about it with the newest it has.
  send({.to = node,
        .message = {.register_id = known().register_id,
                    .body = Probe{.version = after(known().version), .ticket = {}}}});
}

Result<Message> PaxosStore::understand(const rpc::Incoming& incoming) const {
  TRY(Message message, decode_message(incoming.payload));
  const bool names_a_register = message.register_id != RegisterId();
  if (names_a_register && !known().is_blank() && message.register_id != known().register_id) {
    return Error(Errc::refused, "about the register {}, and this node is of {}",
                 message.register_id, known().register_id);
  }
  return message;
}

Task<Result<base::Bytes>> PaxosStore::handle(rpc::Incoming incoming) {
  if (stopped_) co_return Error(Errc::closed);
  Result<void> taken = {};
  auto message = understand(incoming);
  if (message) {
    taken = take(incoming.from, *message);
  } else {
    taken = std::move(message).error();
  }
  if (!taken) {
    ++statistics_.messages_refused;
    if (lines_.admits(log_, runtime_.clock.now())) {
      log_.warn("a message was refused", base::kv("from", incoming.from),
                base::kv("reason", taken.error()));
    }
    co_return std::move(taken).error();
  }
  co_return base::Bytes();
}

Result<void> PaxosStore::take(NodeId from, const Message& message) {
  const bool is_own = from == rpc_.node();
  if (const auto* learn = std::get_if<Learn>(&message.body); learn != nullptr && !is_own) {
    return take_claim(from, message, learn->document);
  }
  if (const auto* decided = std::get_if<Decided>(&message.body); decided != nullptr && !is_own) {
    return take_claim(from, message, decided->document);
  }
  if (is_question(message)) {
    TRY_VOID(screen_question(message, acceptor_->acceptor().state(), options_.check));
    acceptor_->receive(from, message);
    return {};
  }
  TRY_VOID(screen_answer(message, known(), options_.check));
  const auto* probed = std::get_if<Probed>(&message.body);
  if (probed != nullptr && claims_->asked(*probed)) {
    claims_->probed(newest(), from, *probed);
    settle_claims();
  } else {
    proposer_->receive(from, message, runtime_.clock.now());
  }
  pump();
  return {};
}

Claims::Known PaxosStore::newest() const {
  static const std::optional<Proposal> kNothing;
  const AcceptorState& state = acceptor_->acceptor().state();
  if (state.decided.version >= known().version) {
    return {.self = rpc_.node(), .document = state.decided, .accepted = state.accepted};
  }
  return {.self = rpc_.node(), .document = known(), .accepted = kNothing};
}

bool PaxosStore::counts(NodeId node) const {
  if (known().is_blank()) {
    const bool is_contact = std::ranges::find(options_.contacts, node) != options_.contacts.end();
    return is_contact || asked_.contains(node);
  }
  return !options_.is_member || options_.is_member(node);
}

Result<void> PaxosStore::take_claim(NodeId from, const Message& message, const Document& document) {
  const Document& known_here = newest().document;
  if (document.register_id != message.register_id) {
    return Error(Errc::refused, "a document of another register than the message");
  }
  const bool is_learn = std::holds_alternative<Learn>(message.body);
  if (document.version < known_here.version || document == known_here) {
    // Nothing new: a teacher hears what is known here.
    if (is_learn) acceptor_->receive(from, message);
    return {};
  }
  TRY_VOID(screen_document(document, known_here, options_.check));
  if (known_here.is_blank() && !counts(from)) {
    return Error(Errc::refused, "nobody was asked for a document there");
  }
  claims_->claimed(newest(), from, document, counts(from), is_learn, runtime_.clock.now());
  settle_claims();
  pump();
  return {};
}

void PaxosStore::settle_claims() {
  const auto now = runtime_.clock.now();
  while (const auto belief = claims_->take_belief(newest(), now)) {
    proposer_->learn(belief->document, now);
    pump();
    for (const NodeId learner : belief->learners) {
      acceptor_->receive(learner, {.register_id = belief->document.register_id,
                                   .body = Learn{.document = belief->document}});
    }
  }
  if (claims_->denied() == statistics_.claims_denied) return;
  statistics_.claims_denied = claims_->denied();
  if (lines_.admits(log_, now)) {
    log_.error("somebody says that metadata were decided, and the acceptors deny it");
  }
}

void PaxosStore::on_durable(const Document& document) {
  proposer_->learn(document, runtime_.clock.now());
  durable_.wake_all();
  pump();
}

void PaxosStore::on_alarm() {
  proposer_->tick(runtime_.clock.now());
  claims_->tick(newest(), runtime_.clock.now());
  settle_claims();
  pump();
}

void PaxosStore::pump() {
  if (stopped_) return;
  for (const Outgoing& question : proposer_->take_messages()) send(question);
  for (const Outgoing& question : claims_->take_messages()) send(question);
  if (auto outcome = proposer_->take_outcome()) {
    outcome_ = *std::move(outcome);
    finished_.set();
  }
  const auto wakes_at = std::min(proposer_->wakes_at(), claims_->wakes_at());
  if (wakes_at.is_never()) {
    alarm_.disarm();
  } else {
    runtime_.timers.arm(alarm_, wakes_at);
  }
  if (known().version <= announced_) return;
  announced_ = known().version;
  log_.info("the metadata changed", base::kv("version", announced_));
  newer_.wake_all();
  acceptor_->receive(rpc_.node(),
                     {.register_id = known().register_id, .body = Learn{.document = known()}});
}

void PaxosStore::send(const Outgoing& outgoing) {
  auto message = rpc::Payload::of(outgoing.message, rpc_.versions().newest);
  if (!rpc_.tell(outgoing.to, rpc::verbs::kConsensus, std::move(message))) {
    ++statistics_.messages_dropped;
  }
}

Task<void> PaxosStore::stop() {
  stopped_ = true;
  alarm_.disarm();
  finished_.set();
  newer_.wake_all(Error(Errc::closed));
  durable_.wake_all(Error(Errc::closed));
  co_await users_.close();
  co_await acceptor_->stop();
}

}  // namespace helenus::consensus
