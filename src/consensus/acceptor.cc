#include "consensus/acceptor.h"

#include <utility>
#include <variant>

#include "base/assert.h"
#include "base/codec.h"
#include "base/versioned_file.h"

namespace helenus::consensus {

using base::Errc;
using base::Error;

namespace {

constexpr base::FileFormat kFormat{.magic = "HLNSPAXO", .version = 1};

// A1 and A4 within one state.
bool is_sound(const AcceptorState& state) {
  if (!validate(state.decided)) return false;
  const bool takes_part = state.decided.names(state.node);
  if (state.promised != Ballot() && !takes_part) return false;
  if (!state.accepted) return true;
  return state.accepted->ballot <= state.promised &&
         follows(state.accepted->document, state.decided);
}

// A1 and A2 between one state and the next.
bool may_become(const AcceptorState& state, const AcceptorState& next) {
  if (next.node != state.node || next.decided.version < state.decided.version) return false;
  if (next.decided.version > state.decided.version) return true;
  if (next.decided != state.decided || next.promised < state.promised) return false;
  if (!state.accepted) return true;
  return next.accepted && next.accepted->ballot >= state.accepted->ballot;
}

}  // namespace

AcceptorState AcceptorState::blank(model::NodeId node) {
  return {.node = node, .decided = {}, .promised = {}, .accepted = {}};
}

AcceptorState AcceptorState::founding(model::NodeId node, Document document) {
  ASSERT(document.version == Version(1) && validate(document));
  return {.node = node, .decided = std::move(document), .promised = {}, .accepted = {}};
}

base::Bytes encode(const AcceptorState& state) {
  base::Buffer buffer;
  base::Encoder out(buffer);
  put(out, state.node.value());
  put(out, state.decided);
  put(out, state.promised);
  put(out, state.accepted);
  return base::encode_file(kFormat, buffer.view());
}

base::Result<AcceptorState> decode_acceptor_state(base::ByteView bytes) {
  TRY(const auto content, base::decode_file(kFormat, bytes));
  base::Decoder in(content);
  AcceptorState state;
  state.node = model::NodeId(base::decode_uuid(in));
  state.decided = get_document(in);
  state.promised = get_ballot(in);
  state.accepted = get_optional_proposal(in);
  TRY_VOID(in.finish());
  if (!is_sound(state)) return Error(Errc::corrupt, "a state that no acceptor can be in");
  return state;
}

Acceptor::Acceptor(AcceptorState durable)
    : state_(std::move(durable)), durable_document_(state_.decided) {
  ASSERT(is_sound(state_));
}

void Acceptor::receive(model::NodeId from, const Message& question) {
  // A proposer that knows no document knows no register either; all it can ask for is a document.
  const bool is_stranger = question.register_id == RegisterId();
  if (is_stranger && !std::holds_alternative<Probe>(question.body)) return;
  const bool is_bound = !state_.decided.is_blank();
  if (is_bound && !is_stranger && question.register_id != state_.decided.register_id) return;
  if (answers_.size() >= kAnswersMax) {
    ++questions_dropped_;
    return;
  }
  if (const auto* prepare = std::get_if<Prepare>(&question.body)) {
    on_prepare(from, *prepare, question);
  } else if (const auto* accept = std::get_if<Accept>(&question.body)) {
    on_accept(from, *accept, question);
  } else if (const auto* probe = std::get_if<Probe>(&question.body)) {
    on_probe(from, *probe, question);
  } else if (const auto* learn = std::get_if<Learn>(&question.body)) {
    on_learn(from, *learn, question);
  }
}

bool Acceptor::answered_elsewise(model::NodeId from, Version version, const Message& question) {
  if (version <= state_.decided.version) {
    answer(from, question, Decided{.document = state_.decided});
    return true;
  }
  if (version > after(state_.decided.version) || state_.decided.is_blank()) {
    answer(from, question, Behind{.version = version, .known = state_.decided.version});
    return true;
  }
  // A proposer that holds the same document asks only those that it names: the question went
  // astray.
  return !state_.decided.names(state_.node);
}

bool Acceptor::is_too_far(const Ballot& ballot) const {
  return ballot.round > state_.promised.round + kRoundStepMax;
}

void Acceptor::on_prepare(model::NodeId from, const Prepare& prepare, const Message& question) {
  if (answered_elsewise(from, prepare.version, question)) return;
  if (prepare.ballot < state_.promised || is_too_far(prepare.ballot)) {
    answer(
        from, question,
        Refused{.version = prepare.version, .ballot = prepare.ballot, .promised = state_.promised});
    return;
  }
  if (prepare.ballot > state_.promised) {
    AcceptorState next = state_;
    next.promised = prepare.ballot;
    change_state(std::move(next));
  }
  answer(
      from, question,
      Promised{.version = prepare.version, .ballot = prepare.ballot, .accepted = state_.accepted});
}

void Acceptor::on_accept(model::NodeId from, const Accept& accept, const Message& question) {
  const Proposal& proposal = accept.proposal;
  const Version version = proposal.document.version;
  if (answered_elsewise(from, version, question)) return;
  if (proposal.ballot < state_.promised || is_too_far(proposal.ballot)) {
    answer(from, question,
           Refused{.version = version, .ballot = proposal.ballot, .promised = state_.promised});
    return;
  }
  if (state_.accepted && state_.accepted->ballot == proposal.ballot) {
    ASSERT(state_.accepted->document == proposal.document,
           "A3: two documents of version {} under one ballot of round {}", version.value(),
           proposal.ballot.round);
  } else {
    ASSERT(follows(proposal.document, state_.decided), "A3: version {} was made from another {}",
           version.value(), state_.decided.version.value());
    AcceptorState next = state_;
    next.promised = proposal.ballot;
    next.accepted = proposal;
    change_state(std::move(next));
  }
  answer(from, question, Accepted{.version = version, .ballot = proposal.ballot});
}

void Acceptor::on_probe(model::NodeId from, const Probe& probe, const Message& question) {
  if (answered_elsewise(from, probe.version, question)) return;
  answer(from, question,
         Probed{.version = probe.version, .ticket = probe.ticket, .accepted = state_.accepted});
}

void Acceptor::on_learn(model::NodeId from, const Learn& learn, const Message& question) {
  const Document& document = learn.document;
  if (document.register_id != question.register_id) return;
  if (document.version == state_.decided.version) {
    ASSERT(document == state_.decided, "A3: two documents of version {}", document.version.value());
  } else if (document.version > state_.decided.version) {
    ASSERT(state_.decided.is_blank() || document.version != after(state_.decided.version) ||
               follows(document, state_.decided),
           "A3: version {} was made from another {}", document.version.value(),
           state_.decided.version.value());
    change_state({.node = state_.node, .decided = document, .promised = {}, .accepted = {}});
  }
  answer(from, question, Learned{.version = state_.decided.version});
}

void Acceptor::answer(model::NodeId to, const Message& question, Body body) {
  const RegisterId register_id =
      state_.decided.is_blank() ? question.register_id : state_.decided.register_id;
  answers_.push_back(
      {.sequence = sequence_,
       .outgoing = {.to = to, .message = {.register_id = register_id, .body = std::move(body)}}});
}

void Acceptor::change_state(AcceptorState next) {
  ASSERT(is_sound(next) && may_become(state_, next), "A1, A2 or A4 at version {}",
         state_.decided.version.value());
  state_ = std::move(next);
  ++sequence_;
}

std::optional<Acceptor::Write> Acceptor::next_write() {
  if (under_way_ || sequence_ == durable_) return std::nullopt;
  under_way_ = sequence_;
  document_under_way_ = state_.decided;
  return Write{.sequence = sequence_, .state = encode(state_)};
}

void Acceptor::written(std::uint64_t sequence) {
  ASSERT(under_way_ == sequence && sequence > durable_);
  durable_ = sequence;
  under_way_.reset();
  durable_document_ = std::move(document_under_way_);
}

std::vector<Outgoing> Acceptor::take_answers() {
  std::vector<Outgoing> ready;
  while (!answers_.empty() && answers_.front().sequence <= durable_) {
    ready.push_back(std::move(answers_.front().outgoing));
    answers_.pop_front();
  }
  return ready;
}

}  // namespace helenus::consensus
