// A proposer among acceptors that answer when the test lets them: who may be down, what it does
// then, and what it says about it.
#include "consensus/proposer.h"

#include <chrono>
#include <deque>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "consensus/network_test_support.h"

namespace helenus::consensus {
namespace {

using testing::IsEmpty;

class ProposerTest : public testing::Test {
 protected:
  static constexpr std::uint64_t kNodes = 6;

  ProposerTest() {
    for (std::uint64_t i = 1; i <= kNodes; ++i) {
      acceptors_.emplace(node_id(i), i <= 3 ? AcceptorState::founding(node_id(i), first_)
                                            : AcceptorState::blank(node_id(i)));
    }
  }

  Proposer make(Document known) {
    return Proposer(proposer_id(++proposers_), std::move(known), node_ids(kNodes), 7, {});
  }
  Proposer make() { return make(first_); }

  static Change change(std::uint64_t id, const Document& from,
                       std::optional<std::vector<model::NodeId>> acceptors = std::nullopt) {
    return {.id = change_id(id),
            .expected = from.version,
            .acceptors = acceptors.value_or(from.acceptors),
            .content = appended(from.content, change_id(id))};
  }

  // Delivers messages in the order they were sent until nobody has anything to say.
  void settle(Proposer& proposer) {
    for (auto messages = proposer.take_messages(); !messages.empty();
         messages = proposer.take_messages()) {
      for (const auto& message : messages) deliver(proposer, message);
    }
  }
  void deliver(Proposer& proposer, const Outgoing& outgoing) {
    if (down_.contains(outgoing.to)) return;
    Acceptor& acceptor = acceptors_.at(outgoing.to);
    acceptor.receive(node_id(50), outgoing.message);
    if (const auto write = acceptor.next_write()) acceptor.written(write->sequence);
    for (const auto& answer : acceptor.take_answers()) {
      proposer.receive(outgoing.to, answer.message, now_);
    }
  }
  // Lets time pass, with all that it brings, until the operation ends.
  Outcome finish(Proposer& proposer) {
    settle(proposer);
    for (unsigned i = 0; i < 100 && proposer.is_busy(); ++i) {
      now_ = std::max(now_, proposer.wakes_at());
      proposer.tick(now_);
      settle(proposer);
    }
    auto outcome = proposer.take_outcome();
    EXPECT_TRUE(outcome);
    return outcome.value_or(Outcome());
  }
  Outcome read(Proposer& proposer) {
    proposer.read(now_, now_ + std::chrono::seconds(2));
    return finish(proposer);
  }
  Outcome make_change(Proposer& proposer, const Change& wanted) {
    EXPECT_TRUE(proposer.change(wanted, now_, now_ + std::chrono::seconds(2)));
    return finish(proposer);
  }

  const Document first_ = founding_document(3);
  std::map<model::NodeId, Acceptor> acceptors_;
  std::set<model::NodeId> down_;
  runtime::MonotonicTime now_;
  std::uint64_t proposers_ = 0;
};

TEST_F(ProposerTest, ChangesAndReadsWithOneOfThreeAcceptorsDown) {
  down_ = {node_id(2)};
  auto proposer = make();
  const auto changed = make_change(proposer, change(1, first_));
  EXPECT_EQ(changed.kind, Outcome::Kind::changed);
  EXPECT_EQ(changed.document.version, Version(2));
  auto reader = make();
  const auto seen = read(reader);
  EXPECT_EQ(seen.kind, Outcome::Kind::read);
  EXPECT_EQ(seen.document, changed.document);
}

TEST_F(ProposerTest, SaysThatNothingHappenedIfNobodyWasThere) {
  down_ = {node_id(1), node_id(2)};
  auto proposer = make();
  EXPECT_EQ(read(proposer).kind, Outcome::Kind::unavailable);
  EXPECT_EQ(make_change(proposer, change(1, first_)).kind, Outcome::Kind::unavailable);
  down_.clear();
  EXPECT_EQ(read(proposer).document, first_);
}

TEST_F(ProposerTest, DoesNotClaimToKnowWhatBecameOfAProposal) {
  auto proposer = make();
  ASSERT_TRUE(proposer.change(change(1, first_), now_, now_ + std::chrono::seconds(2)));
  const auto prepares = proposer.take_messages();
  for (const auto& message : prepares) deliver(proposer, message);
  // One acceptor gets the proposal, then all are gone.
  const auto accepts = proposer.take_messages();
  deliver(proposer, accepts.front());
  down_ = {node_id(1), node_id(2), node_id(3)};
  EXPECT_EQ(finish(proposer).kind, Outcome::Kind::unknown);

  // The same change, asked for again by a later life, happens once.
  down_.clear();
  auto later = make();
  const auto outcome = make_change(later, change(1, first_));
  EXPECT_EQ(outcome.kind, Outcome::Kind::changed);
  EXPECT_EQ(outcome.document.version, Version(2));
  EXPECT_EQ(make_change(later, change(1, first_)).kind, Outcome::Kind::changed);
  EXPECT_EQ(later.known().version, Version(2));
}

TEST_F(ProposerTest, FinishesWhatAnotherBeganAndThenHasLost) {
  auto first = make();
  ASSERT_TRUE(first.change(change(1, first_), now_, now_ + std::chrono::seconds(2)));
  const auto prepares = first.take_messages();
  for (const auto& message : prepares) deliver(first, message);
  const auto accepts = first.take_messages();
  deliver(first, accepts.front());

  down_ = {node_id(3)};
  auto second = make();
  const auto lost = make_change(second, change(2, first_));
  EXPECT_EQ(lost.kind, Outcome::Kind::conflict);
  EXPECT_EQ(lost.document.trail, std::vector{change_id(1)});
  // The one who began it finds out that it happened.
  EXPECT_EQ(finish(first).kind, Outcome::Kind::changed);
}

TEST_F(ProposerTest, AReadFinishesWhatItFindsHalfDone) {
  auto writer = make();
  ASSERT_TRUE(writer.change(change(1, first_), now_, now_ + std::chrono::seconds(2)));
  const auto prepares = writer.take_messages();
  for (const auto& message : prepares) deliver(writer, message);
  const auto accepts = writer.take_messages();
  deliver(writer, accepts.front());

  down_ = {node_id(3)};
  auto reader = make();
  const auto seen = read(reader);
  EXPECT_EQ(seen.kind, Outcome::Kind::read);
  EXPECT_EQ(seen.document.version, Version(2));
}

TEST_F(ProposerTest, AcknowledgesNewAcceptorsOnlyWhenTheyHoldTheDocument) {
  const std::vector<model::NodeId> next = {node_id(4), node_id(5), node_id(6)};
  down_ = {node_id(4), node_id(5)};
  auto proposer = make();
  EXPECT_EQ(make_change(proposer, change(1, first_, next)).kind, Outcome::Kind::unknown);

  down_ = {node_id(4)};
  auto again = make();
  EXPECT_EQ(make_change(again, change(1, first_, next)).kind, Outcome::Kind::changed);
  // Now the old ones may go for ever.
  down_ = {node_id(1), node_id(2), node_id(3), node_id(4)};
  const auto changed = make_change(again, change(2, again.known()));
  EXPECT_EQ(changed.kind, Outcome::Kind::changed);
  EXPECT_EQ(changed.document.version, Version(3));
  // And one who knows nothing finds the document through its contact points.
  auto newcomer = make(Document());
  EXPECT_EQ(read(newcomer).document, changed.document);
}

TEST_F(ProposerTest, CatchesUpFromAnOldDocument) {
  auto writer = make();
  for (std::uint64_t i = 1; i <= 5; ++i) {
    ASSERT_EQ(make_change(writer, change(i, writer.known())).kind, Outcome::Kind::changed);
  }
  auto late = make();
  EXPECT_EQ(read(late).document, writer.known());
  auto loser = make();
  EXPECT_EQ(make_change(loser, change(9, first_)).kind, Outcome::Kind::conflict);
}

TEST_F(ProposerTest, DeniesAChangeFromAVersionThatIsNotThereYet) {
  auto proposer = make();
  Change early = change(1, first_);
  early.expected = Version(4);
  const auto outcome = make_change(proposer, early);
  EXPECT_EQ(outcome.kind, Outcome::Kind::conflict);
  EXPECT_EQ(outcome.document, first_);
}

TEST_F(ProposerTest, AdmitsThatAChangeIsTooOldToTell) {
  auto writer = make();
  for (std::uint64_t i = 1; i <= kTrailMax + 1; ++i) {
    ASSERT_EQ(make_change(writer, change(i, writer.known())).kind, Outcome::Kind::changed);
  }
  EXPECT_EQ(make_change(writer, change(1, first_)).kind, Outcome::Kind::unknown);
  Change second = change(2, first_);
  second.expected = Version(2);
  EXPECT_EQ(make_change(writer, second).kind, Outcome::Kind::changed);
}

TEST_F(ProposerTest, RefusesADocumentThatNobodyCouldDecideAfter) {
  auto proposer = make();
  const auto start = [&](const Change& wanted) {
    return proposer.change(wanted, now_, now_ + std::chrono::seconds(1));
  };
  EXPECT_TRUE(start(change(1, first_, std::vector<model::NodeId>()))
                  .failed_with(base::Errc::invalid_argument));
  EXPECT_TRUE(start(change(1, first_, std::vector{node_id(1), node_id(1)}))
                  .failed_with(base::Errc::invalid_argument));
  EXPECT_TRUE(start(change(1, first_, node_ids(kAcceptorsMax + 1)))
                  .failed_with(base::Errc::invalid_argument));
  EXPECT_TRUE(start(change(1, Document())).failed_with(base::Errc::invalid_argument));
  Change large = change(1, first_);
  large.content = base::Bytes::copy_of(std::string(kContentSizeMax + 1, 'x'));
  EXPECT_TRUE(start(large).failed_with(base::Errc::invalid_argument));
  EXPECT_FALSE(proposer.is_busy());
}

TEST_F(ProposerTest, CountsNoAnswerToAnOlderQuestion) {
  auto reader = make();
  reader.read(now_, now_ + std::chrono::seconds(2));
  std::vector<std::pair<model::NodeId, Message>> old_answers;
  for (const auto& question : reader.take_messages()) {
    Acceptor& acceptor = acceptors_.at(question.to);
    acceptor.receive(node_id(50), question.message);
    for (const auto& answer : acceptor.take_answers()) {
      old_answers.emplace_back(question.to, answer.message);
    }
  }
  reader.tick(now_ + std::chrono::seconds(2));
  ASSERT_EQ(reader.take_outcome().value_or(Outcome()).kind, Outcome::Kind::unavailable);

  auto writer = make();
  ASSERT_EQ(make_change(writer, change(1, first_)).kind, Outcome::Kind::changed);
  reader.read(now_, now_ + std::chrono::seconds(2));
  for (const auto& [from, answer] : old_answers) reader.receive(from, answer, now_);
  EXPECT_TRUE(reader.is_busy());
  EXPECT_EQ(finish(reader).document.version, Version(2));
}

TEST_F(ProposerTest, LearnsFromGossipAndIgnoresAnotherRegister) {
  auto writer = make();
  ASSERT_EQ(make_change(writer, change(1, first_)).kind, Outcome::Kind::changed);
  auto listener = make();
  Document foreign = writer.known();
  foreign.register_id = RegisterId(uuid_of(4, 2));
  listener.learn(foreign, now_);
  EXPECT_EQ(listener.known(), first_);
  listener.learn(writer.known(), now_);
  EXPECT_EQ(listener.known(), writer.known());
  listener.learn(first_, now_);
  EXPECT_EQ(listener.known(), writer.known());
  EXPECT_THAT(listener.take_messages(), IsEmpty());
}

using ProposerDeathTest = ProposerTest;

TEST_F(ProposerDeathTest, StopsWhenOneVersionHasTwoDocuments) {
  auto proposer = make();
  ASSERT_EQ(make_change(proposer, change(1, first_)).kind, Outcome::Kind::changed);
  const auto other = apply(change(2, first_), first_);
  ASSERT_TRUE(other);
  EXPECT_DEATH(proposer.learn(*other, now_), "two documents of version 2");
}

}  // namespace
}  // namespace helenus::consensus
