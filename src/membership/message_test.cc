#include "membership/message.h"

#include <algorithm>
#include <set>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "base/prng.h"
#include "membership/membership_test_support.h"

namespace helenus::membership {
namespace {

using base::Errc;
using model::NodeId;
using testing::key_of;
using testing::node_of;
using testing::value_of;

const NodeId kSender = node_of(7);

Message with(Body body) {
  return {.cluster = "troy", .sender = kSender, .body = std::move(body)};
}

// Arbitrary parts of messages, all from one arbitrary seed.
class Arbitrary {
 public:
  Arbitrary() : random_(*rc::gen::arbitrary<std::uint64_t>()) {}

  std::vector<Knowledge> knowledge() {
    std::vector<Knowledge> result;
    for (const NodeId node : nodes()) {
      const Generation generation = number(kGenerationMax);
      result.push_back({node, generation, generation == 0 ? 0 : number(kVersionMax)});
    }
    return result;
  }

  std::vector<Delta> deltas() {
    std::vector<Delta> result;
    for (const NodeId node : nodes()) {
      Delta delta;
      delta.node = node;
      delta.generation = 1 + number(kGenerationMax - 1);
      delta.after = number(kVersionMax / 2);
      Version version = delta.after;
      for (unsigned key = 0; key < kStateKeyCountMax; ++key) {
        if (!random_.chance(0.2) && key != 5) continue;
        version += 1 + number(kVersionMax / 2 / kStateKeyCountMax - 1);
        delta.states.push_back({key_of(key), version, value_of(key == 0 ? 0 : number(300))});
      }
      result.push_back(std::move(delta));
    }
    return result;
  }

 private:
  // Of any length, short ones as often as long ones.
  std::uint64_t number(std::uint64_t max) {
    return std::min(max, random_.next() >> random_.between(1, 63));
  }
  std::vector<NodeId> nodes() {
    std::set<NodeId> nodes;
    for (std::uint64_t left = random_.below(8); left > 0; --left) {
      nodes.insert(node_of(number(~0ULL)));
    }
    return {nodes.begin(), nodes.end()};
  }

  base::Prng random_;
};

RC_GTEST_PROP(GossipMessage, EveryKindComesBack, ()) {
  Arbitrary arbitrary;
  std::vector<Body> bodies;
  bodies.emplace_back(Opening{{.arc = {}, .nodes = arbitrary.knowledge()}});
  bodies.emplace_back(Answer{arbitrary.knowledge(), arbitrary.deltas()});
  bodies.emplace_back(Closing{arbitrary.deltas()});
  for (const Body& body : bodies) {
    Message message = with(body);
    RC_ASSERT((decode(encode(message)) == message));
    // What a later release adds is read over, and kept.
    message.later = value_of(3);
    RC_ASSERT((decode(encode(message)) == message));
  }
}

RC_GTEST_PROP(GossipMessage, PartsTakeTheBytesTheySay, ()) {
  Arbitrary arbitrary;
  const std::vector<Delta> deltas = arbitrary.deltas();
  const std::vector<Knowledge> wanted = arbitrary.knowledge();
  std::size_t bytes = encode(with(Answer{})).size();
  for (const Knowledge& knowledge : wanted) bytes += encoded_size(knowledge);
  for (const Delta& delta : deltas) {
    bytes += encoded_head_size(delta.generation, delta.after);
    Version previous = delta.after;
    for (const State& state : delta.states) {
      bytes += encoded_size(state, previous);
      previous = state.version;
    }
  }
  bytes += base::varint_size(deltas.size()) + base::varint_size(wanted.size()) - 2;
  RC_ASSERT(encode(with(Answer{wanted, deltas})).size() == bytes);
}

Answer example_answer() {
  return {.wanted = {{node_of(1), 5, 300}, {node_of(2), 0, 0}},
          .deltas = {{.node = node_of(3),
                      .generation = 2,
                      .after = 4,
                      .states = {{StateKey::status, 9, encode_status(Status::normal)},
                                 {key_of(31), 12, value_of(3)},
                                 {StateKey::heartbeat, 200, {}}}}}};
}

TEST(GossipMessage, ATruncatedMessageIsCorrupt) {
  const std::vector<Message> messages = {
      with(Opening{
          {.arc = {.after = node_of(1), .last = node_of(9)}, .nodes = {{node_of(3), 5, 6}}}}),
      with(example_answer()), with(Closing{example_answer().deltas})};
  for (const Message& message : messages) {
    const base::Bytes bytes = encode(message);
    ASSERT_EQ(decode(bytes), message);
    for (std::size_t size = 0; size < bytes.size(); ++size) {
      EXPECT_TRUE(decode(bytes.slice(0, size)).failed_with(Errc::corrupt)) << size;
    }
  }
}

// The worked example of docs/formats/gossip.md.
TEST(GossipMessage, AnAnswerHasTheseBytes) {
  const std::string fields =
      "01"
      "0474726f79"
      "00000000000000000000000000000007"
      "02"
      "00000000000000000000000000000001"
      "05"
      "ac02"
      "00000000000000000000000000000002"
      "00"
      "00"
      "01"
      "00000000000000000000000000000003"
      "02"
      "04"
      "03"
      "01"
      "05"
      "01"
      "01"
      "1f"
      "03"
      "03"
      "767676"
      "00"
      "bc01"
      "00";
  Message message = with(example_answer());
  EXPECT_EQ(base::to_hex(encode(message)), "01" + fields);
  message.later = base::Bytes::copy_of("new");
  EXPECT_EQ(base::to_hex(encode(message)), "01" + fields + "6e6577");
}

// The message's bytes with one of them changed.
std::string changed(const Message& message, std::size_t offset, char byte) {
  std::string bytes(encode(message).text());
  bytes.at(offset) = byte;
  return bytes;
}

// Version, kind, length of the name, name, sender.
constexpr std::size_t kBodyOffset = 1 + 1 + 1 + 4 + 16;

TEST(GossipMessage, ALaterVersionIsUnsupportedAndNoneIsCorrupt) {
  const Message message = with(Closing{});
  EXPECT_TRUE(decode(base::as_bytes(changed(message, 0, 2))).failed_with(Errc::unsupported));
  EXPECT_TRUE(decode(base::as_bytes(changed(message, 0, 0))).failed_with(Errc::corrupt));
  EXPECT_TRUE(decode(base::as_bytes(changed(message, 1, 3))).failed_with(Errc::corrupt));
  EXPECT_TRUE(decode(base::as_bytes(changed(message, 2, 0))).failed_with(Errc::corrupt));
  EXPECT_TRUE(decode({}).failed_with(Errc::corrupt));
}

TEST(GossipMessage, NamesAndMessagesHaveALimit) {
  Message message = with(Closing{});
  message.cluster = std::string(kClusterNameBytesMax, 'x');
  const base::Bytes bytes = encode(message);
  EXPECT_EQ(decode(bytes), message);
  base::Buffer longer;
  base::Encoder out(longer);
  out.u8(1);
  out.u8(2);
  out.prefixed(std::string(kClusterNameBytesMax + 1, 'x'));
  out.raw(kSender.value().bytes());
  out.varint(0);
  EXPECT_TRUE(decode(longer.view()).failed_with(Errc::corrupt));
  EXPECT_TRUE(decode(value_of(kMessageBytesMax + 1, '\1')).failed_with(Errc::corrupt));
}

TEST(GossipMessage, AnArcIsHeldAgainstItsNodes) {
  const Opening outside = {
      {.arc = {.after = node_of(3), .last = {}}, .nodes = {{node_of(3), 1, 1}}}};
  EXPECT_TRUE(decode(encode(with(outside))).failed_with(Errc::corrupt));
  const Opening backward = {{.arc = {.after = node_of(3), .last = node_of(3)}, .nodes = {}}};
  EXPECT_TRUE(decode(encode(with(backward))).failed_with(Errc::corrupt));
  EXPECT_TRUE(
      decode(base::as_bytes(changed(with(Opening{}), kBodyOffset, 4))).failed_with(Errc::corrupt));
  const Opening unsorted = {{.arc = {}, .nodes = {{node_of(3), 1, 1}, {node_of(2), 1, 1}}}};
  EXPECT_TRUE(decode(encode(with(unsorted))).failed_with(Errc::corrupt));
  const Opening no_life = {{.arc = {}, .nodes = {{node_of(3), 0, 1}}}};
  EXPECT_TRUE(decode(encode(with(no_life))).failed_with(Errc::corrupt));
  const Opening too_late = {{.arc = {}, .nodes = {{node_of(3), kGenerationMax + 1, 1}}}};
  EXPECT_TRUE(decode(encode(with(too_late))).failed_with(Errc::corrupt));
}

bool is_refused(std::vector<Delta> deltas) {
  return decode(encode(with(Closing{std::move(deltas)}))).failed_with(Errc::corrupt);
}

TEST(GossipMessage, ADeltaMustBeOneThatAnHonestNodeCouldSend) {
  const Delta good = example_answer().deltas[0];
  EXPECT_FALSE(is_refused({good}));
  EXPECT_TRUE(is_refused({good, good})) << "a node twice";
  Delta bad = good;
  bad.generation = 0;
  EXPECT_TRUE(is_refused({bad}));
  bad = good;
  bad.states.clear();
  EXPECT_TRUE(is_refused({bad}));
  bad = good;
  bad.states[1].key = bad.states[0].key;
  EXPECT_TRUE(is_refused({bad})) << "a key twice";
  bad = good;
  bad.states[1].key = key_of(kStateKeyCountMax);
  EXPECT_TRUE(is_refused({bad}));
  bad = good;
  bad.states[2].value = value_of(1);
  EXPECT_TRUE(is_refused({bad})) << "a heartbeat with a value";
  bad = good;
  bad.states[2].version = kVersionMax + 1;
  EXPECT_TRUE(is_refused({bad}));
  // The step of the first state's version, made zero.
  const std::size_t step_offset = kBodyOffset + 1 + 16 + 1 + 1 + 1 + 1;
  EXPECT_TRUE(decode(base::as_bytes(changed(with(Closing{{good}}), step_offset, 0)))
                  .failed_with(Errc::corrupt));
}

TEST(GossipMessage, AValueThatIsTooLongIsRefused) {
  base::Buffer buffer;
  base::Encoder out(buffer);
  out.raw(encode(with(Closing{})).slice(0, kBodyOffset));
  out.varint(1);
  out.raw(node_of(3).value().bytes());
  for (const std::uint64_t number : {1U, 0U, 1U}) out.varint(number);
  out.u8(static_cast<std::uint8_t>(StateKey::tokens));
  out.varint(1);
  out.prefixed(value_of(kStateValueBytesMax + 1).view());
  EXPECT_TRUE(decode(buffer.view()).failed_with(Errc::corrupt));
}

}  // namespace
}  // namespace helenus::membership
