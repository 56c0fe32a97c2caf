// What nodes tell each other of traces, as bytes.
#include "node/trace_messages.h"

#include <utility>

#include <gtest/gtest.h>

namespace helenus::node {
namespace {

constexpr rpc::ProtocolVersion kTraceVersion{};

TracesReply a_reply() {
  cql::Traces::Session session;
  session.id = base::Uuid::from_random(1, 2);
  session.client = runtime::Address::v4({10, 0, 0, 9}, 4711);
  session.command = "QUERY";
  session.request = "Execute CQL3 query";
  session.parameters = {{"query", "SELECT 1"}, {"page_size", "5000"}};
  session.started_at = runtime::WallTime(std::chrono::seconds(1'700'000'000));
  session.duration_us = 1234;
  session.events = {{base::Uuid::from_random(3, 4), "Asking 10.0.0.2:7000", 7},
                    {base::Uuid::from_random(5, 6), "", -1}};
  TracesReply reply;
  reply.coordinator = runtime::Address::v4({10, 0, 0, 1}, 9042);
  reply.sessions.push_back(std::move(session));
  reply.sessions.emplace_back();
  return reply;
}

TEST(TraceMessages, ComeBackAsTheyWere) {
  const TracesReply reply = a_reply();
  const base::Bytes bytes = rpc::Codec<TracesReply>::encode(reply, kTraceVersion);
  const auto back = rpc::Codec<TracesReply>::decode(bytes, kTraceVersion);
  ASSERT_TRUE(back.has_value()) << back.error().to_string();
  EXPECT_EQ(rpc::Codec<TracesReply>::encode(*back, kTraceVersion), bytes);
  ASSERT_EQ(back->sessions.size(), 2U);
  const cql::Traces::Session& session = back->sessions.front();
  EXPECT_EQ(session.coordinator, reply.coordinator) << "who was asked knows it by itself";
  EXPECT_EQ(session.id, reply.sessions.front().id);
  EXPECT_EQ(session.client, reply.sessions.front().client);
  EXPECT_EQ(session.parameters, reply.sessions.front().parameters);
  EXPECT_EQ(session.started_at, reply.sessions.front().started_at);
  EXPECT_EQ(session.duration_us, 1234);
  ASSERT_EQ(session.events.size(), 2U);
  EXPECT_EQ(session.events.front().activity, "Asking 10.0.0.2:7000");
  EXPECT_EQ(session.events.back().elapsed_us, -1);
}

TEST(TraceMessages, WhatIsCutOrTooLongIsRefused) {
  const base::Bytes bytes = rpc::Codec<TracesReply>::encode(a_reply(), kTraceVersion);
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_FALSE(rpc::Codec<TracesReply>::decode(bytes.slice(0, size), kTraceVersion)) << size;
  }
  TracesReply long_text = a_reply();
  long_text.sessions.front().request = std::string(cql::Traces::kTextSizeMax + 1, 'x');
  EXPECT_FALSE(rpc::Codec<TracesReply>::decode(
      rpc::Codec<TracesReply>::encode(long_text, kTraceVersion), kTraceVersion));
  TracesReply no_text = a_reply();
  no_text.sessions.front().request = "\xff";
  EXPECT_FALSE(rpc::Codec<TracesReply>::decode(
      rpc::Codec<TracesReply>::encode(no_text, kTraceVersion), kTraceVersion));
  const base::Bytes request = rpc::Codec<TracesRequest>::encode({}, kTraceVersion);
  EXPECT_TRUE(rpc::Codec<TracesRequest>::decode(request, kTraceVersion));
  EXPECT_FALSE(rpc::Codec<TracesRequest>::decode(base::Bytes(), kTraceVersion));
}

}  // namespace
}  // namespace helenus::node
