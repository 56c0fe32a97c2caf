// The bytes of messages, documents and acceptors' states: what they mean, and what is refused.
#include <algorithm>
#include <limits>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/crc32c.h"
#include "consensus/acceptor.h"
#include "consensus/message.h"
#include "consensus/network_test_support.h"

namespace helenus::consensus {
namespace {

using base::Errc;

Document second_document() {
  const Document first = founding_document(3);
  auto document = apply({.id = change_id(1),
                         .expected = first.version,
                         .acceptors = node_ids(2),
                         .content = base::Bytes::of_static("schema")},
                        first);
  EXPECT_TRUE(document);
  return *document;
}

Ballot some_ballot() {
  return {.round = 300, .proposer = proposer_id(5)};
}
Proposal some_proposal() {
  return {.ballot = some_ballot(), .document = second_document()};
}

std::vector<Message> one_of_each() {
  const Version version(2);
  const Ticket ticket{.proposer = proposer_id(5), .sequence = 12};
  const std::vector<Body> bodies = {
      Prepare{.version = version, .ballot = some_ballot()},
      Accept{.proposal = some_proposal()},
      Probe{.version = version, .ticket = ticket},
      Learn{.document = second_document()},
      Promised{.version = version, .ballot = some_ballot(), .accepted = std::nullopt},
      Promised{.version = version, .ballot = some_ballot(), .accepted = some_proposal()},
      Accepted{.version = version, .ballot = some_ballot()},
      Refused{.version = version, .ballot = some_ballot(), .promised = some_ballot()},
      Probed{.version = version, .ticket = ticket, .accepted = some_proposal()},
      Learned{.version = version},
      Decided{.document = second_document()},
      Behind{.version = version, .known = Version(0)}};
  std::vector<Message> messages;
  for (const auto& body : bodies) {
    messages.push_back({.register_id = RegisterId(uuid_of(4, 1)), .body = body});
  }
  return messages;
}

TEST(ConsensusCodec, EveryMessageComesBackAsItWas) {
  for (auto message : one_of_each()) {
    const auto decoded = decode_message(encode(message));
    ASSERT_TRUE(decoded) << message.body.index();
    EXPECT_EQ(*decoded, message);
    // What a later release adds is read over, and kept.
    message.later = base::Bytes::of_static("new");
    EXPECT_EQ(decode_message(encode(message)), message);
  }
}

TEST(ConsensusCodec, EveryMessageThatIsCutIsRefused) {
  for (const auto& message : one_of_each()) {
    const auto bytes = encode(message);
    for (std::size_t size = 0; size < bytes.size(); ++size) {
      EXPECT_TRUE(decode_message(bytes.view().first(size)).failed_with(Errc::corrupt));
    }
  }
}

TEST(ConsensusCodec, AnotherVersionOrKindIsRefused) {
  base::Buffer bytes;
  bytes.append(encode(one_of_each().front()));
  bytes.mutable_view()[0] = std::byte{2};
  EXPECT_TRUE(decode_message(bytes.view()).failed_with(Errc::unsupported));
  bytes.mutable_view()[0] = std::byte{0};
  EXPECT_TRUE(decode_message(bytes.view()).failed_with(Errc::corrupt));
  bytes.mutable_view()[0] = std::byte{1};
  bytes.mutable_view()[1] = std::byte{11};
  EXPECT_TRUE(decode_message(bytes.view()).failed_with(Errc::corrupt));
}

TEST(ConsensusCodec, ValuesThatNoNodeSendsAreRefused) {
  const auto refuses = [](Body body) {
    const Message message{.register_id = {}, .body = std::move(body)};
    return decode_message(encode(message)).failed_with(Errc::corrupt);
  };
  const Ballot beyond{.round = kRoundMax + 1, .proposer = {}};
  EXPECT_TRUE(refuses(Prepare{.version = Version(2), .ballot = beyond}));
  EXPECT_TRUE(refuses(Prepare{.version = Version(0), .ballot = some_ballot()}));
  EXPECT_TRUE(refuses(Learn{.document = Document()}));
  EXPECT_TRUE(refuses(Accept{.proposal = {.ballot = {}, .document = second_document()}}));
  EXPECT_TRUE(
      refuses(Accept{.proposal = {.ballot = some_ballot(), .document = founding_document(1)}}));
  EXPECT_TRUE(refuses(
      Promised{.version = Version(3), .ballot = some_ballot(), .accepted = some_proposal()}));
  const auto refuses_document = [&](auto spoil) {
    Document document = second_document();
    spoil(document);
    return refuses(Learn{.document = document});
  };
  EXPECT_TRUE(refuses_document([](Document& it) { it.acceptors.clear(); }));
  EXPECT_TRUE(refuses_document([](Document& it) { it.acceptors = node_ids(kAcceptorsMax + 1); }));
  EXPECT_TRUE(refuses_document([](Document& it) { std::ranges::reverse(it.acceptors); }));
  EXPECT_TRUE(refuses_document([](Document& it) { it.acceptors[1] = it.acceptors[0]; }));
  EXPECT_TRUE(refuses_document([](Document& it) { it.trail.clear(); }));
  EXPECT_TRUE(refuses_document([](Document& it) { it.trail.resize(kTrailMax + 1); }));
  EXPECT_TRUE(refuses_document([](Document& it) { it.version = Version(kVersionMax + 1); }));
}

AcceptorState some_state() {
  AcceptorState state = AcceptorState::founding(node_id(1), founding_document(3));
  state.promised = {.round = 301, .proposer = proposer_id(6)};
  state.accepted = some_proposal();
  return state;
}

TEST(ConsensusCodec, AStateComesBackAsItWas) {
  for (const auto& state : {some_state(), AcceptorState::blank(node_id(4))}) {
    const auto decoded = decode_acceptor_state(encode(state));
    ASSERT_TRUE(decoded);
    EXPECT_EQ(*decoded, state);
  }
}

TEST(ConsensusCodec, AStateWithAnyByteChangedOrMissingIsRefused) {
  const auto bytes = encode(some_state());
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    EXPECT_FALSE(decode_acceptor_state(bytes.view().first(at)));
    base::Buffer damaged;
    damaged.append(bytes);
    damaged.mutable_view()[at] ^= std::byte{0x10};
    EXPECT_FALSE(decode_acceptor_state(damaged.view())) << at;
  }
}

TEST(ConsensusCodec, AStateThatNoAcceptorCanBeInIsRefused) {
  AcceptorState behind_its_promise = some_state();
  behind_its_promise.promised = {};
  EXPECT_TRUE(decode_acceptor_state(encode(behind_its_promise)).failed_with(Errc::corrupt));
  AcceptorState not_named = some_state();
  not_named.node = node_id(9);
  EXPECT_TRUE(decode_acceptor_state(encode(not_named)).failed_with(Errc::corrupt));
  AcceptorState does_not_follow = some_state();
  does_not_follow.decided = second_document();
  EXPECT_TRUE(decode_acceptor_state(encode(does_not_follow)).failed_with(Errc::corrupt));
}

// The worked example of docs/formats/consensus.md.
TEST(ConsensusCodec, APrepareHasTheseBytes) {
  const Message message{
      .register_id = RegisterId(base::Uuid()),
      .body = Prepare{.version = Version(2),
                      .ballot = {.round = 300, .proposer = ProposerId(base::Uuid())}}};
  const std::string fields =
      "00"
      "00000000000000000000000000000000"
      "02"
      "ac02"
      "00000000000000000000000000000000";
  EXPECT_EQ(base::to_hex(encode(message)), "01" + fields);
}

TEST(Document, TellsTheFateOfChanges) {
  Document document = founding_document(3);
  const auto change = [](std::uint64_t id, std::uint64_t expected) {
    return Change{.id = change_id(id),
                  .expected = Version(expected),
                  .acceptors = node_ids(3),
                  .content = {}};
  };
  EXPECT_EQ(fate_of(change(1, 1), document), Fate::open);
  for (std::uint64_t id = 1; id <= kTrailMax + 5; ++id) {
    const Document previous = document;
    auto next = apply(change(id, previous.version.value()), previous);
    ASSERT_TRUE(next);
    document = *next;
    EXPECT_TRUE(follows(document, previous));
    EXPECT_FALSE(follows(previous, document));
    EXPECT_FALSE(follows(document, document));
  }
  EXPECT_EQ(document.trail.size(), kTrailMax);
  EXPECT_EQ(fate_of(change(5, 5), document), Fate::forgotten);
  EXPECT_EQ(fate_of(change(6, 6), document), Fate::happened);
  EXPECT_EQ(fate_of(change(7, 6), document), Fate::lost);
  EXPECT_EQ(fate_of(change(9, document.version.value()), document), Fate::open);
}

TEST(Document, FollowsOnlyOneOfTheSameRegisterAndTrail) {
  const Document first = founding_document(3);
  const Document second = second_document();
  Document foreign = second;
  foreign.register_id = RegisterId(uuid_of(4, 2));
  EXPECT_FALSE(follows(foreign, first));
  const auto third = apply(
      {.id = change_id(2), .expected = Version(2), .acceptors = second.acceptors, .content = {}},
      second);
  ASSERT_TRUE(third);
  Document elsewhere = second;
  elsewhere.trail = {change_id(8)};
  EXPECT_TRUE(follows(*third, second));
  EXPECT_FALSE(follows(*third, elsewhere));
  EXPECT_FALSE(follows(first, Document()));
}

}  // namespace
}  // namespace helenus::consensus
