// What nodes tell each other of a change of the ring, as bytes.
#include "node/ring_messages.h"

#include <gtest/gtest.h>

namespace helenus::node {
namespace {

constexpr rpc::ProtocolVersion kRingVersion{};
using ReplyCodec = rpc::Codec<RingProgressReply>;

RingProgressReply a_progress() {
  RingProgressReply reply;
  reply.progress = {.pending = 300,
                    .pending_to_fill = 7,
                    .joint = 2,
                    .joint_behind = 1,
                    .waits_for = {model::NodeId(base::Uuid::from_random(1, 2)),
                                  model::NodeId(base::Uuid::from_random(3, 4))},
                    .withheld = 5,
                    .as_of = causality::Epoch(99)};
  return reply;
}

TEST(RingMessages, ComeBackAsTheyWere) {
  const base::Bytes bytes = ReplyCodec::encode(a_progress(), kRingVersion);
  const auto back = ReplyCodec::decode(bytes, kRingVersion);
  ASSERT_TRUE(back.has_value()) << back.error().to_string();
  EXPECT_EQ(*back, a_progress());
  const base::Bytes request = rpc::Codec<RingProgressRequest>::encode({}, kRingVersion);
  EXPECT_TRUE(rpc::Codec<RingProgressRequest>::decode(request, kRingVersion));
}

TEST(RingMessages, WhatIsCutOrSaysNothingPossibleIsRefused) {
  const base::Bytes bytes = ReplyCodec::encode(a_progress(), kRingVersion);
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_FALSE(ReplyCodec::decode(bytes.slice(0, size), kRingVersion)) << size;
  }
  RingProgressReply wrong = a_progress();
  wrong.progress.joint_behind = 3;
  EXPECT_FALSE(ReplyCodec::decode(ReplyCodec::encode(wrong, kRingVersion), kRingVersion));
  EXPECT_FALSE(rpc::Codec<RingProgressRequest>::decode(base::Bytes(), kRingVersion));
}

}  // namespace
}  // namespace helenus::node
