// An acceptor alone: what it says to what, and that it says nothing before its disk knows.
#include "consensus/acceptor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "consensus/network_test_support.h"

namespace helenus::consensus {
namespace {

using testing::IsEmpty;
using testing::SizeIs;

class AcceptorTest : public testing::Test {
 protected:
  static Ballot ballot(std::uint64_t round, std::uint64_t proposer = 1) {
    return {.round = round, .proposer = proposer_id(proposer)};
  }
  Message about(Body body) const {
    return {.register_id = first_.register_id, .body = std::move(body)};
  }
  static void write(Acceptor& acceptor) {
    if (const auto under_way = acceptor.next_write()) acceptor.written(under_way->sequence);
  }
  // The answer to one question, once all is durable.
  Body ask(Acceptor& acceptor, Body question) const {
    acceptor.receive(node_id(9), about(std::move(question)));
    write(acceptor);
    auto answers = acceptor.take_answers();
    EXPECT_THAT(answers, SizeIs(1));
    return answers.empty() ? Body() : answers.front().message.body;
  }

  const Document first_ = founding_document(3);
  const Document second_ = next_document(first_);
  Acceptor acceptor_{AcceptorState::founding(node_id(1), first_)};
};

TEST_F(AcceptorTest, SaysNothingBeforeItsPromiseIsDurable) {
  acceptor_.receive(node_id(9), about(Prepare{.version = Version(2), .ballot = ballot(1)}));
  EXPECT_THAT(acceptor_.take_answers(), IsEmpty());
  const auto first_write = acceptor_.next_write();
  ASSERT_TRUE(first_write);
  EXPECT_FALSE(acceptor_.next_write());
  EXPECT_THAT(acceptor_.take_answers(), IsEmpty());

  // What comes while the disk works waits for the next write, though its question changes nothing.
  acceptor_.receive(node_id(9), about(Prepare{.version = Version(2), .ballot = ballot(2)}));
  acceptor_.receive(node_id(9), about(Prepare{.version = Version(2), .ballot = ballot(1)}));
  acceptor_.written(first_write->sequence);
  EXPECT_THAT(acceptor_.take_answers(), SizeIs(1));
  const auto second_write = acceptor_.next_write();
  ASSERT_TRUE(second_write);
  acceptor_.written(second_write->sequence);
  EXPECT_THAT(acceptor_.take_answers(), SizeIs(2));

  const auto kept = decode_acceptor_state(second_write->state);
  ASSERT_TRUE(kept);
  EXPECT_EQ(kept->promised, ballot(2));
  EXPECT_EQ(*kept, acceptor_.state());
}

TEST_F(AcceptorTest, KeepsItsPromiseAndItsProposalThroughACrash) {
  const Accept accept{.proposal = {.ballot = ballot(3), .document = second_}};
  EXPECT_EQ(ask(acceptor_, accept), Body(Accepted{.version = Version(2), .ballot = ballot(3)}));
  const auto disk = encode(acceptor_.state());
  auto state = decode_acceptor_state(disk);
  ASSERT_TRUE(state);
  Acceptor again(*std::move(state));
  EXPECT_EQ(ask(again, Prepare{.version = Version(2), .ballot = ballot(2)}),
            Body(Refused{.version = Version(2), .ballot = ballot(2), .promised = ballot(3)}));
  EXPECT_EQ(
      ask(again, Prepare{.version = Version(2), .ballot = ballot(4)}),
      Body(Promised{.version = Version(2), .ballot = ballot(4), .accepted = accept.proposal}));
  EXPECT_EQ(ask(again, accept),
            Body(Refused{.version = Version(2), .ballot = ballot(3), .promised = ballot(4)}));
}

TEST_F(AcceptorTest, AnswersARepeatedQuestionAlikeWithoutWriting) {
  const Prepare prepare{.version = Version(2), .ballot = ballot(1)};
  const Accept accept{.proposal = {.ballot = ballot(1), .document = second_}};
  const auto promised = ask(acceptor_, prepare);
  EXPECT_EQ(ask(acceptor_, prepare), promised);
  const auto accepted = ask(acceptor_, accept);
  acceptor_.receive(node_id(9), about(accept));
  EXPECT_FALSE(acceptor_.next_write());
  EXPECT_EQ(acceptor_.take_answers().front().message.body, accepted);
}

TEST_F(AcceptorTest, TellsTheDecidedDocumentToWhoeverAsksAboutAnOlderVersion) {
  EXPECT_EQ(ask(acceptor_, Learn{.document = second_}), Body(Learned{.version = Version(2)}));
  EXPECT_EQ(acceptor_.durable_document(), second_);
  const Body decided = Decided{.document = second_};
  EXPECT_EQ(ask(acceptor_, Prepare{.version = Version(2), .ballot = ballot(7)}), decided);
  EXPECT_EQ(ask(acceptor_, Accept{.proposal = {.ballot = ballot(7), .document = second_}}),
            decided);
  EXPECT_EQ(ask(acceptor_, Probe{.version = Version(1), .ticket = {}}), decided);
  // An older document teaches nothing.
  EXPECT_EQ(ask(acceptor_, Learn{.document = first_}), Body(Learned{.version = Version(2)}));
  EXPECT_EQ(acceptor_.state().decided, second_);
}

TEST_F(AcceptorTest, ForgetsTheInstanceThatIsDecided) {
  ask(acceptor_, Accept{.proposal = {.ballot = ballot(5), .document = next_document(first_, 8)}});
  ask(acceptor_, Learn{.document = second_});
  EXPECT_EQ(acceptor_.state().promised, Ballot());
  EXPECT_EQ(acceptor_.state().accepted, std::nullopt);
  const Body vacant = Probed{.version = Version(3), .ticket = {}, .accepted = std::nullopt};
  EXPECT_EQ(ask(acceptor_, Probe{.version = Version(3), .ticket = {}}), vacant);
}

TEST_F(AcceptorTest, AsksToBeTaughtBeforeItTakesPart) {
  const Prepare prepare{.version = Version(3), .ballot = ballot(1)};
  EXPECT_EQ(ask(acceptor_, prepare), Body(Behind{.version = Version(3), .known = Version(1)}));
  Acceptor blank(AcceptorState::blank(node_id(2)));
  EXPECT_EQ(ask(blank, prepare), Body(Behind{.version = Version(3), .known = Version(0)}));
  EXPECT_EQ(ask(blank, Learn{.document = second_}), Body(Learned{.version = Version(2)}));
  EXPECT_EQ(ask(blank, prepare),
            Body(Promised{.version = Version(3), .ballot = ballot(1), .accepted = std::nullopt}));
}

TEST_F(AcceptorTest, TakesNoPartInWhatItIsNotNamedFor) {
  Acceptor stranger(AcceptorState::founding(node_id(7), first_));
  stranger.receive(node_id(9), about(Prepare{.version = Version(2), .ballot = ballot(1)}));
  EXPECT_FALSE(stranger.next_write());
  EXPECT_THAT(stranger.take_answers(), IsEmpty());
}

TEST_F(AcceptorTest, IgnoresAnotherRegisterAndWhatIsNoQuestion) {
  const RegisterId other(uuid_of(4, 2));
  acceptor_.receive(node_id(9), {.register_id = other, .body = Learn{.document = second_}});
  acceptor_.receive(node_id(9), about(Learned{.version = Version(5)}));
  Document foreign = second_;
  foreign.register_id = other;
  acceptor_.receive(node_id(9), about(Learn{.document = foreign}));
  acceptor_.receive(node_id(9), {.register_id = {}, .body = Learn{.document = second_}});
  EXPECT_FALSE(acceptor_.next_write());
  EXPECT_THAT(acceptor_.take_answers(), IsEmpty());
}

TEST_F(AcceptorTest, DropsQuestionsThatTheDiskCannotKeepUpWith) {
  for (std::size_t i = 0; i <= Acceptor::kAnswersMax; ++i) {
    acceptor_.receive(node_id(9), about(Prepare{.version = Version(2), .ballot = ballot(i + 1)}));
  }
  EXPECT_EQ(acceptor_.questions_dropped(), 1U);
  write(acceptor_);
  EXPECT_THAT(acceptor_.take_answers(), SizeIs(Acceptor::kAnswersMax));
  EXPECT_EQ(acceptor_.state().promised, ballot(Acceptor::kAnswersMax));
}

using AcceptorDeathTest = AcceptorTest;

TEST_F(AcceptorDeathTest, StopsRatherThanGoOnWithTwoHistories) {
  ask(acceptor_, Accept{.proposal = {.ballot = ballot(1), .document = second_}});
  const Accept other{.proposal = {.ballot = ballot(1), .document = next_document(first_, 2)}};
  EXPECT_DEATH(acceptor_.receive(node_id(9), about(other)), "under one ballot");
  ask(acceptor_, Learn{.document = second_});
  EXPECT_DEATH(acceptor_.receive(node_id(9), about(Learn{.document = next_document(first_, 2)})),
               "two documents of version 2");
  const Document third = next_document(next_document(first_, 2), 3);
  EXPECT_DEATH(acceptor_.receive(node_id(9), about(Learn{.document = third})),
               "made from another 2");
}

}  // namespace
}  // namespace helenus::consensus
