#include "consensus/message.h"

#include <array>
#include <utility>

#include "base/assert.h"
#include "base/codec.h"

namespace helenus::consensus {

using base::Decoder;
using base::Encoder;
using base::Errc;
using base::Error;

namespace {

constexpr std::uint8_t kMessageVersion = 1;

Version get_version(Decoder& in) {
  const Version version(in.varint());
  if (version == Version(0)) in.fail("version 0 is never decided");
  return version;
}

void put(Encoder& out, const Ticket& ticket) {
  consensus::put(out, ticket.proposer.value());
  out.varint(ticket.sequence);
}
Ticket get_ticket(Decoder& in) {
  const ProposerId proposer(base::decode_uuid(in));
  return {.proposer = proposer, .sequence = in.varint()};
}

void put(Encoder& out, const Proposal& proposal) {
  consensus::put(out, proposal.ballot);
  consensus::put(out, proposal.document);
}
Proposal get_proposal(Decoder& in) {
  const Ballot ballot = get_ballot(in);
  if (ballot.round == 0) in.fail("a proposal without a ballot");
  Proposal proposal{.ballot = ballot, .document = get_document(in)};
  // Version 1 is founded, not decided.
  if (proposal.document.version <= Version(1)) in.fail("a proposal for version 0 or 1");
  return proposal;
}

// A proposal inside an answer is about the version of the question.
std::optional<Proposal> get_accepted(Decoder& in, Version version) {
  auto accepted = get_optional_proposal(in);
  if (accepted && accepted->document.version != version) in.fail("a proposal of another version");
  return accepted;
}

Document get_decided(Decoder& in) {
  Document document = get_document(in);
  if (document.is_blank()) in.fail("a blank document is never decided");
  return document;
}

void put_body(Encoder& out, const Prepare& body) {
  out.varint(body.version.value());
  consensus::put(out, body.ballot);
}
void put_body(Encoder& out, const Accept& body) {
  put(out, body.proposal);
}
void put_body(Encoder& out, const Probe& body) {
  out.varint(body.version.value());
  put(out, body.ticket);
}
void put_body(Encoder& out, const Learn& body) {
  consensus::put(out, body.document);
}
void put_body(Encoder& out, const Promised& body) {
  out.varint(body.version.value());
  consensus::put(out, body.ballot);
  consensus::put(out, body.accepted);
}
void put_body(Encoder& out, const Accepted& body) {
  out.varint(body.version.value());
  consensus::put(out, body.ballot);
}
void put_body(Encoder& out, const Refused& body) {
  out.varint(body.version.value());
  consensus::put(out, body.ballot);
  consensus::put(out, body.promised);
}
void put_body(Encoder& out, const Probed& body) {
  out.varint(body.version.value());
  put(out, body.ticket);
  consensus::put(out, body.accepted);
}
void put_body(Encoder& out, const Learned& body) {
  out.varint(body.version.value());
}
void put_body(Encoder& out, const Decided& body) {
  consensus::put(out, body.document);
}
void put_body(Encoder& out, const Behind& body) {
  out.varint(body.version.value());
  out.varint(body.known.value());
}

Body get_prepare(Decoder& in) {
  const Version version = get_version(in);
  return Prepare{.version = version, .ballot = get_ballot(in)};
}
Body get_accept(Decoder& in) {
  return Accept{.proposal = get_proposal(in)};
}
Body get_probe(Decoder& in) {
  const Version version = get_version(in);
  return Probe{.version = version, .ticket = get_ticket(in)};
}
Body get_learn(Decoder& in) {
  return Learn{.document = get_decided(in)};
}
Body get_promised(Decoder& in) {
  const Version version = get_version(in);
  const Ballot ballot = get_ballot(in);
  return Promised{.version = version, .ballot = ballot, .accepted = get_accepted(in, version)};
}
Body get_accepted_answer(Decoder& in) {
  const Version version = get_version(in);
  return Accepted{.version = version, .ballot = get_ballot(in)};
}
Body get_refused(Decoder& in) {
  const Version version = get_version(in);
  const Ballot ballot = get_ballot(in);
  return Refused{.version = version, .ballot = ballot, .promised = get_ballot(in)};
}
Body get_probed(Decoder& in) {
  const Version version = get_version(in);
  const Ticket ticket = get_ticket(in);
  return Probed{.version = version, .ticket = ticket, .accepted = get_accepted(in, version)};
}
Body get_learned(Decoder& in) {
  return Learned{.version = get_version(in)};
}
Body get_decided_answer(Decoder& in) {
  return Decided{.document = get_decided(in)};
}
Body get_behind(Decoder& in) {
  const Version version = get_version(in);
  return Behind{.version = version, .known = Version(in.varint())};
}

// In the order of Body's alternatives, whose index is the kind on the wire.
constexpr std::array kReaders = {&get_prepare,  &get_accept,          &get_probe,   &get_learn,
                                 &get_promised, &get_accepted_answer, &get_refused, &get_probed,
                                 &get_learned,  &get_decided_answer,  &get_behind};
static_assert(kReaders.size() == std::variant_size_v<Body>);

}  // namespace

void put(Encoder& out, const Ballot& ballot) {
  out.varint(ballot.round);
  put(out, ballot.proposer.value());
}

Ballot get_ballot(Decoder& in) {
  const std::uint64_t round = in.varint();
  if (round > kRoundMax) in.fail("a round beyond all that were ever tried");
  return {.round = round, .proposer = ProposerId(base::decode_uuid(in))};
}

void put(Encoder& out, const std::optional<Proposal>& proposal) {
  out.u8(proposal ? 1 : 0);
  if (proposal) put(out, *proposal);
}

std::optional<Proposal> get_optional_proposal(Decoder& in) {
  const std::uint8_t present = in.u8();
  if (present > 1) in.fail("neither a proposal nor none");
  if (present != 1) return std::nullopt;
  return get_proposal(in);
}

bool is_question(const Message& message) {
  return message.body.index() <= Body(Learn()).index();
}

base::Bytes encode(const Message& message) {
  base::Buffer buffer;
  Encoder out(buffer);
  out.u8(kMessageVersion);
  out.u8(static_cast<std::uint8_t>(message.body.index()));
  put(out, message.register_id.value());
  std::visit([&out](const auto& body) { put_body(out, body); }, message.body);
  out.raw(message.later);
  return std::move(buffer).freeze();
}

base::Result<Message> decode_message(base::ByteView bytes) {
  Decoder in(bytes);
  const std::uint8_t version = in.u8();
  if (version > kMessageVersion) {
    return Error(Errc::unsupported, "a message of version {}, where {} is understood", version,
                 kMessageVersion);
  }
  if (version == 0) in.fail("version 0");
  const std::uint8_t kind = in.u8();
  if (kind >= kReaders.size()) in.fail("no such kind of message");
  Message message{.register_id = RegisterId(base::decode_uuid(in)), .body = {}};
  TRY_VOID(in.status());
  message.body = kReaders[kind](in);
  if (in.ok()) message.later = base::Bytes::copy_of(in.raw(in.remaining()));
  TRY_VOID(in.finish());
  return message;
}

}  // namespace helenus::consensus
