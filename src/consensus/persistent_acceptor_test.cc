// The acceptor's file: killed, without power and with a failing disk at every event, it never
// forgets what it was heard to say; damaged, it does not open.
#include "consensus/persistent_acceptor.h"

#include <functional>
#include <map>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "consensus/network_test_support.h"
#include "runtime/contract/world.h"
#include "runtime/files.h"
#include "runtime/sleep.h"
#include "sim/function_process.h"
#include "sim/world.h"

namespace helenus::consensus {
namespace {

using base::Errc;
using runtime::Runtime;
using runtime::StopToken;
using runtime::Task;
using testing::HasSubstr;

// A sanitizer makes each way several times as dear, and its faults do not hide in one alone.
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
constexpr std::uint64_t kShare = 3;
#else
constexpr std::uint64_t kShare = 1;
#endif

const std::string kPath = "/acceptor";

// What others heard, which no crash undoes.
struct Heard {
  std::map<Version, Ballot> promised;
  std::map<Version, Ballot> accepted;
  Version learned{1};
  std::size_t answers = 0;

  void take(const Message& answer) {
    ++answers;
    if (const auto* promise = std::get_if<Promised>(&answer.body)) {
      promised[promise->version] = std::max(promised[promise->version], promise->ballot);
    } else if (const auto* acceptance = std::get_if<Accepted>(&answer.body)) {
      accepted[acceptance->version] = std::max(accepted[acceptance->version], acceptance->ballot);
    } else if (const auto* refusal = std::get_if<Refused>(&answer.body)) {
      promised[refusal->version] = std::max(promised[refusal->version], refusal->promised);
    } else if (const auto* found = std::get_if<Probed>(&answer.body); found && found->accepted) {
      accepted[found->version] = std::max(accepted[found->version], found->accepted->ballot);
    } else if (const auto* lesson = std::get_if<Learned>(&answer.body)) {
      learned = std::max(learned, lesson->version);
    } else if (const auto* decided = std::get_if<Decided>(&answer.body)) {
      learned = std::max(learned, decided->document.version);
    }
  }

  // Nothing of it is forgotten in this state.
  void check(const AcceptorState& state) const {
    const Version decided = state.decided.version;
    EXPECT_GE(decided, learned);
    for (const auto& [version, ballot] : promised) {
      EXPECT_TRUE(decided >= version || state.promised >= ballot)
          << "promise of " << version.value();
    }
    for (const auto& [version, ballot] : accepted) {
      EXPECT_TRUE(decided >= version || (state.accepted && state.accepted->ballot >= ballot))
          << "acceptance of " << version.value();
    }
  }
};

// Proposers who ask one acceptor in turn and together, and go on after its crashes.
class Askers {
 public:
  explicit Askers(std::uint64_t seed) : prng_(seed) {}

  Message next(const AcceptorState& state) {
    const Version version = after(state.decided.version);
    const auto about = [&](Body body) {
      return Message{.register_id = state.decided.register_id, .body = std::move(body)};
    };
    const std::uint64_t choice = prng_.below(6);
    if (choice <= 1) return about(Prepare{.version = version, .ballot = next_ballot()});
    if (choice <= 3) return about(Accept{.proposal = next_proposal(state)});
    if (choice == 4 && state.accepted) return about(Learn{.document = state.accepted->document});
    return about(Probe{.version = version, .ticket = {.proposer = proposer_id(1), .sequence = 1}});
  }
  bool waits() { return prng_.chance(0.4); }

 private:
  Ballot next_ballot() {
    round_ += prng_.below(3);
    return {.round = round_, .proposer = proposer_id(++proposers_)};
  }
  Proposal next_proposal(const AcceptorState& state) {
    const ChangeId id = change_id(++proposers_);
    auto document = apply({.id = id,
                           .expected = state.decided.version,
                           .acceptors = state.decided.acceptors,
                           .content = appended(state.decided.content, id)},
                          state.decided);
    ASSERT(document);
    return {.ballot = next_ballot(), .document = *std::move(document)};
  }

  base::Prng prng_;
  std::uint64_t round_ = 1;
  std::uint64_t proposers_ = 1;
};

class PersistentAcceptorTest : public testing::Test {
 protected:
  using Story = std::function<Task<void>(Runtime&)>;

  explicit PersistentAcceptorTest(std::uint64_t seed = 1)
      : world_(seed), machine_(world_.add_machine({.name = "m"}, {})), askers_(seed) {}

  void begin(Story story) {
    machine_.set_process(sim::FunctionProcess::factory(
        [story = std::move(story)](Runtime& rt, StopToken) { return story(rt); }));
    machine_.start();
  }
  void finish() {
    EXPECT_TRUE(world_.run_until([&] { return !machine_.is_up(); }, std::chrono::hours(1)))
        << "waits for ever";
  }
  void tell(Story story) {
    begin(std::move(story));
    finish();
  }
  void create() {
    tell([](Runtime& rt) -> Task<void> {
      CO_ASSERT_OK(co_await PersistentAcceptor::create(
          rt, kPath, AcceptorState::founding(node_id(1), founding_document(3))));
    });
  }
  PersistentAcceptor::Hooks hooks() {
    return {.send = [this](const Outgoing& answer) { heard_.take(answer.message); },
            .learned = [this](const Document& document) { learned_.push_back(document.version); }};
  }

  // Opens, checks, and answers some questions.
  Task<void> life(Runtime& rt, int questions) {
    auto opened = co_await PersistentAcceptor::open(rt, kPath, node_id(1), hooks());
    if (!opened) {
      open_error_ = opened.error();
      co_return;
    }
    PersistentAcceptor& acceptor = **opened;
    heard_.check(acceptor.acceptor().state());
    for (int i = 0; i < questions; ++i) {
      acceptor.receive(node_id(2), askers_.next(acceptor.acceptor().state()));
      if (askers_.waits()) {
        CO_ASSERT_OK(co_await runtime::sleep_for(rt, std::chrono::milliseconds(2), {}));
      }
    }
    co_await acceptor.stop();
    failure_ = acceptor.failure();
    heard_.check(acceptor.acceptor().state());
  }

  sim::World world_;
  sim::Machine& machine_;
  Askers askers_;
  Heard heard_;
  std::vector<Version> learned_;
  std::optional<base::Error> open_error_;
  std::optional<base::Error> failure_;
};

TEST_F(PersistentAcceptorTest, AnswersAndRemembers) {
  create();
  tell([this](Runtime& rt) { return life(rt, 60); });
  EXPECT_GT(heard_.answers, 40U);
  EXPECT_GT(heard_.learned, Version(2));
  EXPECT_TRUE(std::ranges::is_sorted(learned_));
  EXPECT_EQ(learned_.back(), heard_.learned);
  machine_.power_loss();
  tell([this](Runtime& rt) { return life(rt, 1); });
  EXPECT_FALSE(open_error_);
}

TEST_F(PersistentAcceptorTest, DoesNotOpenWithoutAState) {
  tell([this](Runtime& rt) { return life(rt, 1); });
  ASSERT_TRUE(open_error_);
  EXPECT_EQ(open_error_->code(), Errc::not_found);
  EXPECT_THAT(open_error_->to_string(), HasSubstr(kPath));
}

TEST_F(PersistentAcceptorTest, DoesNotOpenTheStateOfAnotherNode) {
  create();
  tell([this](Runtime& rt) -> Task<void> {
    const auto opened = co_await PersistentAcceptor::open(rt, kPath, node_id(2), hooks());
    EXPECT_TRUE(opened.failed_with(Errc::refused));
  });
}

TEST_F(PersistentAcceptorTest, DoesNotOpenWhenAnyByteIsDamagedOrMissing) {
  const base::Bytes whole = encode(AcceptorState::founding(node_id(1), founding_document(3)));
  for (std::size_t at = 0; at < whole.size(); ++at) {
    tell([&](Runtime& rt) -> Task<void> {
      std::string damaged(whole.text());
      damaged[at] = static_cast<char>(damaged[at] ^ 0x20);
      CO_ASSERT_OK(co_await runtime::replace_file(rt, kPath, base::Bytes::copy_of(damaged)));
      const auto opened = co_await PersistentAcceptor::open(rt, kPath, node_id(1), hooks());
      EXPECT_TRUE(opened.failed_with(Errc::corrupt) || opened.failed_with(Errc::unsupported)) << at;
      EXPECT_THAT(opened.error().to_string(), HasSubstr(kPath));
      CO_ASSERT_OK(co_await runtime::replace_file(rt, kPath, whole.slice(0, at)));
      const auto cut = co_await PersistentAcceptor::open(rt, kPath, node_id(1), hooks());
      EXPECT_TRUE(cut.failed_with(Errc::corrupt)) << at;
      // Who does not open it leaves it as it is.
      const auto content = co_await runtime::read_file(rt, kPath, whole.size());
      EXPECT_EQ(content, whole.slice(0, at));
    });
  }
}

TEST_F(PersistentAcceptorTest, NamesTheOffsetOfTheChecksumThatIsWrong) {
  tell([this](Runtime& rt) -> Task<void> {
    std::string damaged(encode(AcceptorState::blank(node_id(1))).text());
    const std::size_t checksum_at = damaged.size() - 4;
    damaged[12] = static_cast<char>(damaged[12] ^ 1);
    CO_ASSERT_OK(co_await runtime::replace_file(rt, kPath, base::Bytes::copy_of(damaged)));
    const auto opened = co_await PersistentAcceptor::open(rt, kPath, node_id(1), hooks());
    EXPECT_TRUE(opened.failed_with(Errc::corrupt));
    EXPECT_THAT(opened.error().to_string(), HasSubstr(fmt::format("offset {}", checksum_at)));
  });
}

// One way through the lives of an acceptor, with trouble after so many events of the first.
class Troubled final : public PersistentAcceptorTest {
 public:
  enum class Trouble : unsigned char { kill, power_loss, write_error, sync_error };

  explicit Troubled(std::uint64_t seed) : PersistentAcceptorTest(seed) {}
  void TestBody() override {}

  // False once the life came to its end before.
  bool go(Trouble trouble, std::uint64_t events) {
    create();
    begin([this](Runtime& rt) { return life(rt, 12); });
    for (std::uint64_t left = events; left > 0 && machine_.is_up(); --left) world_.step();
    const bool in_time = machine_.is_up();
    meet(trouble);
    machine_.disk_queue().faults = {};
    machine_.power_loss();
    for (int more = 0; more < 2; ++more) {
      tell([this](Runtime& rt) { return life(rt, 8); });
      machine_.power_loss();
    }
    EXPECT_FALSE(open_error_) << open_error_->to_string();
    return in_time;
  }
  std::size_t answers() const { return heard_.answers; }
  bool failed() const { return failed_; }

 private:
  void meet(Trouble trouble) {
    sim::DiskFaults& faults = machine_.disk_queue().faults;
    switch (trouble) {
      case Trouble::kill:
        return machine_.kill();
      case Trouble::power_loss:
        return machine_.power_loss();
      case Trouble::write_error:
        faults.write_error = 1;
        break;
      case Trouble::sync_error:
        faults.sync_error = 1;
        break;
    }
    finish();
    failed_ = failure_.has_value() || open_error_.has_value();
    failure_.reset();
    open_error_.reset();
  }

  bool failed_ = false;
};

// A promise that a killed process had written but not yet made durable is durable before the next
// process tells of it.
class KilledWhileItPromises final : public PersistentAcceptorTest {
 public:
  explicit KilledWhileItPromises(std::uint64_t seed) : PersistentAcceptorTest(seed) {}
  void TestBody() override {}

  // Whether the next process told of a promise that the killed one did not.
  bool go(std::uint64_t events) {
    create();
    machine_.power_loss();
    begin([this](Runtime& rt) { return ask(rt, 5); });
    for (; events > 0 && machine_.is_up(); --events) world_.step();
    machine_.kill();
    const bool told_before = heard_.answers > 0;
    tell([this](Runtime& rt) { return ask(rt, 1); });
    machine_.power_loss();
    tell([this](Runtime& rt) { return life(rt, 0); });
    return !told_before && heard_.promised[Version(2)].round == 5;
  }

 private:
  Task<void> ask(Runtime& rt, std::uint64_t round) {
    auto opened = co_await PersistentAcceptor::open(rt, kPath, node_id(1), hooks());
    CO_ASSERT_OK(opened);
    const Ballot ballot{.round = round, .proposer = proposer_id(round)};
    (*opened)->receive(node_id(2), {.register_id = founding_document(3).register_id,
                                    .body = Prepare{.version = Version(2), .ballot = ballot}});
    co_await (*opened)->stop();
  }
};

TEST(PersistentAcceptor, TellsOfNothingThatAPowerLossCouldUndo) {
  std::size_t told_later = 0;
  for (std::uint64_t seed = 1; seed <= 10 / kShare; ++seed) {
    for (std::uint64_t events = 1; events <= 80 && !testing::Test::HasFailure(); ++events) {
      SCOPED_TRACE(fmt::format("seed {}, event {}", seed, events));
      told_later += KilledWhileItPromises(seed).go(events) ? 1 : 0;
    }
  }
  EXPECT_GT(told_later, 5 / kShare);
}

class PersistentAcceptorTrouble : public testing::TestWithParam<Troubled::Trouble> {};

TEST_P(PersistentAcceptorTrouble, AtEveryEventIsSurvivedWithoutForgetting) {
  std::size_t answers = 0;
  std::size_t failures = 0;
  std::uint64_t ways = 0;
  for (std::uint64_t seed = 1; seed <= 3 / kShare; ++seed) {
    for (std::uint64_t events = 1; !testing::Test::HasFailure(); ++events) {
      SCOPED_TRACE(fmt::format("seed {}, event {}", seed, events));
      Troubled way(seed);
      const bool in_time = way.go(GetParam(), events);
      answers += way.answers();
      failures += way.failed() ? 1 : 0;
      if (!in_time) break;
      ++ways;
    }
  }
  EXPECT_GT(ways, 100 / kShare);
  EXPECT_GT(answers, 10 * ways);
  const bool of_the_disk =
      GetParam() == Troubled::Trouble::write_error || GetParam() == Troubled::Trouble::sync_error;
  EXPECT_EQ(failures > ways / 2, of_the_disk);
}

INSTANTIATE_TEST_SUITE_P(OfEveryKind, PersistentAcceptorTrouble,
                         testing::Values(Troubled::Trouble::kill, Troubled::Trouble::power_loss,
                                         Troubled::Trouble::write_error,
                                         Troubled::Trouble::sync_error));

}  // namespace
}  // namespace helenus::consensus
