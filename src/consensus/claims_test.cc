// Whose word is taken on what was decided.
#include "consensus/claims.h"

#include <chrono>

#include <gtest/gtest.h>

#include "consensus/network_test_support.h"
#include "consensus/screen.h"

namespace helenus::consensus {
namespace {

using namespace std::chrono_literals;
using model::NodeId;
using runtime::MonotonicTime;

Document next_after(const Document& document, std::uint64_t number) {
  auto next = apply({.id = change_id(number),
                     .expected = document.version,
                     .acceptors = document.acceptors,
                     .content = appended(document.content, change_id(number))},
                    document);
  EXPECT_TRUE(next.has_value());
  return *next;
}

// The claims of node 1, which is an acceptor of `founders`; node 9 is a member and no acceptor.
class ClaimsTest : public testing::Test {
 protected:
  Claims::Known known() const {
    return {.self = node_id(1), .document = document_, .accepted = accepted_};
  }
  void claim(std::uint64_t from, const Document& document, bool is_member = true) {
    claims_.claimed(known(), node_id(from), document, is_member, false, now_);
  }
  // All questions asked so far are answered by that acceptor.
  void answer(std::uint64_t from, std::optional<Proposal> accepted) {
    for (const Outgoing& question : claims_.take_messages()) {
      last_ = std::get<Probe>(question.message.body);
    }
    claims_.probed(known(), node_id(from),
                   {.version = last_.version, .ticket = last_.ticket, .accepted = accepted});
  }
  bool believes(const Document& document) {
    const auto belief = claims_.take_belief(known(), now_);
    return belief && belief->document == document;
  }
  Proposal proposal(const Document& document, std::uint64_t round = 1) const {
    return {.ballot = {.round = round, .proposer = proposer_id(1)}, .document = document};
  }

  MonotonicTime now_ = MonotonicTime() + 10s;
  Document document_ = founding_document(3);
  Document second_ = next_after(document_, 1);
  std::optional<Proposal> accepted_;
  Claims claims_{proposer_id(77), {}};
  Probe last_;
};

TEST_F(ClaimsTest, OneWordIsNotEnoughTwoAre) {
  claim(9, second_);
  EXPECT_FALSE(believes(second_));
  claim(8, second_, false);
  EXPECT_FALSE(believes(second_)) << "who is no member has no say";
  claim(2, second_);
  EXPECT_TRUE(believes(second_));
}

TEST_F(ClaimsTest, TwoWordsForTwoDocumentsAreOneForEach) {
  claim(9, second_);
  claim(2, next_after(document_, 2));
  EXPECT_FALSE(believes(second_));
  EXPECT_FALSE(believes(next_after(document_, 2)));
}

TEST_F(ClaimsTest, AMajorityThatAcceptedUnderOneBallotIsEnough) {
  accepted_ = proposal(second_);
  claim(8, second_, false);
  EXPECT_FALSE(believes(second_));
  answer(2, proposal(second_, 2));
  EXPECT_FALSE(believes(second_)) << "another ballot";
  answer(3, proposal(second_));
  EXPECT_TRUE(believes(second_));
}

TEST_F(ClaimsTest, WhatAMajorityHasNotAcceptedIsRefused) {
  claim(9, second_);
  answer(2, std::nullopt);
  EXPECT_FALSE(believes(second_));
  EXPECT_EQ(claims_.denied(), 1U);
  now_ = now_ + 1min;
  EXPECT_FALSE(believes(second_));
}

TEST_F(ClaimsTest, ALaterVersionIsRefusedWhileTheNextIsOpen) {
  claim(2, next_after(second_, 2));
  answer(3, std::nullopt);
  EXPECT_FALSE(believes(next_after(second_, 2)));
  EXPECT_EQ(claims_.denied(), 1U);
}

// Of two acceptors one has gone on by two versions, and the other has heard of none, though it
// voted for the first. Neither makes a majority, so its word must not stand against the one who
// knows.
TEST_F(ClaimsTest, AVoteForAnAncestorDeniesNothing) {
  document_ = founding_document(2);
  second_ = next_after(document_, 1);
  const Document fourth = next_after(next_after(second_, 2), 3);
  accepted_ = proposal(second_);
  claim(2, fourth);
  EXPECT_FALSE(believes(fourth));
  now_ = now_ + 2s;
  EXPECT_TRUE(believes(fourth));
}

TEST_F(ClaimsTest, AVoteForAnotherDocumentDenies) {
  document_ = founding_document(2);
  second_ = next_after(document_, 1);
  accepted_ = proposal(next_after(document_, 7));
  claim(2, next_after(second_, 2));
  now_ = now_ + 2s;
  EXPECT_FALSE(believes(next_after(second_, 2)));
  EXPECT_EQ(claims_.denied(), 1U);
}

// Node 3 has voted and crashed; node 2 alone can tell.
TEST_F(ClaimsTest, ALoneWordThatNobodyDeniesIsTakenAfterAWhile) {
  claim(2, second_);
  EXPECT_FALSE(believes(second_));
  now_ = now_ + 1s;
  EXPECT_FALSE(believes(second_));
  now_ = now_ + 1s;
  EXPECT_TRUE(believes(second_));
}

TEST_F(ClaimsTest, AHintOfAStrangerIsNeverTaken) {
  claim(8, second_, false);
  now_ = now_ + 1h;
  EXPECT_FALSE(believes(second_));
}

TEST_F(ClaimsTest, TheOnlyAcceptorDecides) {
  document_ = founding_document(1);
  second_ = next_after(document_, 1);
  Claims other(proposer_id(78), {});
  const Claims::Known of_node_two{.self = node_id(2), .document = document_, .accepted = accepted_};
  other.claimed(of_node_two, node_id(1), second_, true, true, now_);
  const auto belief = other.take_belief(of_node_two, now_);
  ASSERT_TRUE(belief.has_value());
  EXPECT_EQ(belief->document, second_);
  EXPECT_EQ(belief->learners, std::vector<NodeId>{node_id(1)});
}

TEST_F(ClaimsTest, ManyDocumentsAreNotAllKept) {
  claim(9, second_);
  for (std::uint64_t i = 2; i < 100; ++i) claim(9, next_after(document_, i));
  claim(2, second_);
  EXPECT_FALSE(believes(second_)) << "the first was forgotten, and one word is left for it";
}

TEST_F(ClaimsTest, QuestionsAreAskedAgainUntilItIsKnown) {
  claim(9, second_);
  EXPECT_EQ(claims_.take_messages().size(), 2U);
  now_ = claims_.wakes_at();
  claims_.tick(known(), now_);
  EXPECT_EQ(claims_.take_messages().size(), 2U);
  document_ = second_;
  claims_.tick(known(), now_ + 1s);
  EXPECT_TRUE(claims_.take_messages().empty());
  EXPECT_TRUE(claims_.wakes_at().is_never());
}

TEST(Screen, ADocumentDescendsFromThoseThatLedToIt) {
  Document first = founding_document(3);
  std::vector<Document> line = {first};
  for (std::uint64_t i = 1; i < 200; ++i) line.push_back(next_after(line.back(), i));
  for (const std::size_t later : {1U, 2U, 63U, 64U, 65U, 70U, 199U}) {
    EXPECT_TRUE(descends(line[later], line[0])) << later;
    EXPECT_TRUE(descends(line[later], line[later - 1])) << later;
    EXPECT_EQ(descends(line[0], line[later]), false) << later;
  }
  const Document other = next_after(next_after(next_after(first, 901), 902), 903);
  EXPECT_FALSE(descends(line[5], other));
  EXPECT_FALSE(descends(other, line[1]));
  EXPECT_TRUE(descends(other, Document()));
}

TEST(Screen, WhatContradictsIsRefused) {
  const Document first = founding_document(3);
  const Document second = next_after(first, 1);
  const Document other = next_after(first, 2);
  const Ballot ballot{.round = 3, .proposer = proposer_id(1)};
  AcceptorState state = AcceptorState::founding(node_id(1), first);
  state.promised = ballot;
  state.accepted = Proposal{.ballot = ballot, .document = second};
  const auto accept = [&](const Document& document) {
    return Message{.register_id = first.register_id,
                   .body = Accept{.proposal = {.ballot = ballot, .document = document}}};
  };
  EXPECT_TRUE(screen_question(accept(second), state, {}));
  EXPECT_TRUE(screen_question(accept(other), state, {}).failed_with(base::Errc::refused));
  Document stray = second;
  stray.register_id = RegisterId(uuid_of(4, 2));
  EXPECT_TRUE(screen_question(accept(stray), state, {}).failed_with(base::Errc::refused));
  const ContentCheck none = [](const Document&, const Document*) -> base::Result<void> {
    return base::Error(base::Errc::corrupt, "not this one");
  };
  EXPECT_TRUE(screen_question(accept(second), state, none).failed_with(base::Errc::corrupt));
  const Message promised{
      .register_id = first.register_id,
      .body = Promised{.version = Version(2),
                       .ballot = ballot,
                       .accepted = Proposal{.ballot = {.round = 4, .proposer = proposer_id(2)},
                                            .document = second}}};
  EXPECT_TRUE(screen_answer(promised, first, {}).failed_with(base::Errc::refused));
}

// A round that is far above is reached in steps, and no further than there is a way up.
TEST(Rounds, ARoundThatIsFarAboveIsNotPromised) {
  Acceptor acceptor(AcceptorState::founding(node_id(1), founding_document(1)));
  const auto prepare = [&](std::uint64_t round) {
    acceptor.receive(node_id(2),
                     {.register_id = founding_document(1).register_id,
                      .body = Prepare{.version = Version(2),
                                      .ballot = {.round = round, .proposer = proposer_id(1)}}});
    if (const auto write = acceptor.next_write()) acceptor.written(write->sequence);
    return acceptor.take_answers().back().message.body;
  };
  EXPECT_TRUE(std::holds_alternative<Refused>(prepare(kRoundMax)));
  EXPECT_TRUE(std::holds_alternative<Refused>(prepare(kRoundStepMax + 1)));
  EXPECT_EQ(acceptor.state().promised, Ballot());
  EXPECT_TRUE(std::holds_alternative<Promised>(prepare(kRoundStepMax)));
  EXPECT_TRUE(std::holds_alternative<Promised>(prepare(2 * kRoundStepMax)));
}

// One acceptor of three has been driven up, and one is away: the one that is left is brought up.
TEST(Rounds, AProposerBringsAnAcceptorUpInSteps) {
  const Document first = founding_document(3);
  Proposer proposer(proposer_id(5), first, {}, 1, {});
  AcceptorState high = AcceptorState::founding(node_id(1), first);
  high.promised = {.round = 5 * kRoundStepMax, .proposer = proposer_id(9)};
  Acceptor one(std::move(high));
  Acceptor two(AcceptorState::founding(node_id(2), first));
  MonotonicTime now = MonotonicTime() + 1s;
  ASSERT_TRUE(proposer.change(
      {.id = change_id(1), .expected = first.version, .acceptors = first.acceptors, .content = {}},
      now, now + 1min));
  std::optional<Outcome> outcome;
  for (int i = 0; i < 1000 && !outcome; ++i) {
    for (const Outgoing& question : proposer.take_messages()) {
      if (question.to == node_id(3)) continue;
      Acceptor& acceptor = question.to == node_id(1) ? one : two;
      acceptor.receive(node_id(7), question.message);
      if (const auto write = acceptor.next_write()) acceptor.written(write->sequence);
      for (const Outgoing& answer : acceptor.take_answers()) {
        proposer.receive(question.to, answer.message, now);
      }
    }
    outcome = proposer.take_outcome();
    now = now + 50ms;
    proposer.tick(now);
  }
  ASSERT_TRUE(outcome.has_value());
  EXPECT_EQ(outcome->kind, Outcome::Kind::changed);
}

}  // namespace
}  // namespace helenus::consensus
