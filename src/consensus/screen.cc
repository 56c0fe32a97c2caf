#include "consensus/screen.h"

#include <algorithm>
#include <variant>

namespace helenus::consensus {

using base::Errc;
using base::Error;
using base::Result;

namespace {

// The id of the change that made that version, if the trail still has it.
const ChangeId* change_of(const Document& document, std::uint64_t version) {
  if (version > document.version.value()) return nullptr;
  const std::uint64_t newer = document.version.value() - version;
  if (newer >= document.trail.size()) return nullptr;
  return &document.trail[document.trail.size() - 1 - newer];
}

Result<void> screen_proposal(const Proposal& proposal, const Document& known,
                             const ContentCheck& check) {
  if (proposal.document.version != after(known.version)) return {};  // nobody will look at it
  if (!follows(proposal.document, known)) {
    return Error(Errc::refused, "version {} was made from another {}", proposal.document.version,
                 known.version);
  }
  if (check) TRY_VOID(check(proposal.document, &known));
  return {};
}

}  // namespace

bool descends(const Document& later, const Document& earlier) {
  if (earlier.is_blank()) return true;
  if (later.register_id != earlier.register_id || later.version < earlier.version) return false;
  if (later.version == earlier.version) return later == earlier;
  if (later.version == after(earlier.version)) return follows(later, earlier);
  const std::uint64_t oldest =
      std::max<std::uint64_t>(earlier.version.value(), kTrailMax) - kTrailMax + 1;
  for (std::uint64_t version = oldest; version <= earlier.version.value(); ++version) {
    const ChangeId* ours = change_of(earlier, version);
    const ChangeId* theirs = change_of(later, version);
    if (ours != nullptr && theirs != nullptr && *ours != *theirs) return false;
  }
  return true;
}

Result<void> screen_document(const Document& document, const Document& known,
                             const ContentCheck& check) {
  if (!descends(document, known)) {
    return Error(Errc::refused, "version {} does not come of version {} that is known here",
                 document.version, known.version);
  }
  if (!check || document.version == known.version) return {};
  const bool is_next = !known.is_blank() && document.version == after(known.version);
  return check(document, is_next ? &known : nullptr);
}

Result<void> screen_question(const Message& question, const AcceptorState& state,
                             const ContentCheck& check) {
  const auto* accept = std::get_if<Accept>(&question.body);
  if (accept == nullptr || state.decided.is_blank()) return {};
  const Proposal& proposal = accept->proposal;
  if (proposal.document.version == after(state.decided.version) && state.accepted &&
      state.accepted->ballot == proposal.ballot && state.accepted->document != proposal.document) {
    return Error(Errc::refused, "two documents of version {} under one ballot of round {}",
                 proposal.document.version, proposal.ballot.round);
  }
  return screen_proposal(proposal, state.decided, check);
}

Result<void> screen_answer(const Message& answer, const Document& known,
                           const ContentCheck& check) {
  if (const auto* promised = std::get_if<Promised>(&answer.body)) {
    if (!promised->accepted) return {};
    if (promised->accepted->ballot > promised->ballot) {
      return Error(Errc::refused, "a proposal above the ballot that was promised");
    }
    return screen_proposal(*promised->accepted, known, check);
  }
  const auto* probed = std::get_if<Probed>(&answer.body);
  if (probed == nullptr || !probed->accepted) return {};
  return screen_proposal(*probed->accepted, known, check);
}

}  // namespace helenus::consensus
