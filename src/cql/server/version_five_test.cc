// Version 5 of the protocol, between a client and a server: segments, and what frames have more.
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "cql/server/server_test_support.h"

namespace helenus::cql {
namespace {

using protocol::Compression;

protocol::StartupRequest startup_with(std::string_view compression) {
  protocol::StartupRequest startup;
  startup.options = {{"CQL_VERSION", "3.0.0"}};
  if (!compression.empty()) startup.options.emplace_back("COMPRESSION", compression);
  return startup;
}

Bytes in_segments(base::ByteView frames, Compression compression) {
  base::Buffer out;
  protocol::append_segments(frames, compression, out);
  return std::move(out).freeze();
}

Bytes query(std::int16_t stream, std::string_view text) {
  return TestClient::frame_of_version_five(stream,
                                           protocol::QueryRequest{.text = text, .parameters = {}});
}

Task<bool> open(TestClient& client, Address server, std::string_view compression) {
  const bool connected = co_await client.connect(server);
  if (!connected) co_return false;
  const bool sent =
      co_await client.send(TestClient::frame_of_version_five(0, startup_with(compression)));
  if (!sent) co_return false;
  const auto ready = co_await client.receive();
  client.begin_segments(*protocol::compression_named(compression));
  co_return ready&& std::holds_alternative<protocol::ReadyMessage>(ready->message);
}

Task<void> talk(Runtime& rt, Address server, std::string compression) {
  const Compression how = *protocol::compression_named(compression);
  TestClient client(rt);
  const bool opened = co_await open(client, server, compression);
  CO_ASSERT_TRUE(opened);
  // Two frames in one segment.
  base::Buffer both;
  both.append(query(1, "wait 100 later").view());
  both.append(query(2, "echo hello").view());
  const bool sent = co_await client.send(in_segments(both.view(), how));
  CO_ASSERT_TRUE(sent);
  EXPECT_EQ(TestClient::describe(co_await client.receive()), "hello");
  EXPECT_EQ(TestClient::describe(co_await client.receive()), "later");
  // A frame in several, each way.
  const std::string large = "echo " + std::string(60'000, 'x');
  const bool sent_large = co_await client.send(
      in_segments(query(3, "rows 300000" + std::string(400'000, ' ')).view(), how));
  CO_ASSERT_TRUE(sent_large);
  const auto rows = co_await client.receive();
  CO_ASSERT_OK(rows);
  EXPECT_EQ(rows->stream, 3);
  EXPECT_TRUE(std::holds_alternative<protocol::RowsResult>(rows->message));
  const bool sent_more = co_await client.send(in_segments(query(4, large).view(), how));
  CO_ASSERT_TRUE(sent_more);
  EXPECT_EQ(TestClient::describe(co_await client.receive()), large.substr(5));
  // A connection that is well goes on after an error.
  const bool sent_bad = co_await client.send(in_segments(query(5, "fail").view(), how));
  CO_ASSERT_TRUE(sent_bad);
  EXPECT_EQ(TestClient::describe(co_await client.receive()), "error 2200");
}

TEST_F(ServerTest, SpeaksVersionFiveInSegments) {
  tell([](Runtime& rt, Address server) -> Task<void> { co_await talk(rt, server, ""); });
}

TEST_F(ServerTest, SpeaksVersionFiveInCompressedSegments) {
  tell([](Runtime& rt, Address server) -> Task<void> { co_await talk(rt, server, "lz4"); });
}

TEST_F(ServerTest, ADamagedSegmentEndsTheConnection) {
  tell([](Runtime& rt, Address server) -> Task<void> {
    TestClient client(rt);
    const bool opened = co_await open(client, server, "");
    CO_ASSERT_TRUE(opened);
    base::Buffer damaged;
    damaged.append(in_segments(query(1, "echo hello").view(), Compression::none).view());
    damaged.data()[damaged.size() - 1] ^= std::byte{1};
    const bool sent = co_await client.send(std::move(damaged).freeze());
    CO_ASSERT_TRUE(sent);
    EXPECT_EQ(TestClient::describe(co_await client.receive()), "error 000a");
    EXPECT_TRUE((co_await client.receive()).failed_with(Errc::closed));
  });
}

TEST_F(ServerTest, AConnectionKeepsToItsVersion) {
  tell([](Runtime& rt, Address server) -> Task<void> {
    TestClient client(rt);
    const bool connected = co_await client.connect(server);
    CO_ASSERT_TRUE(connected);
    const bool asked =
        co_await client.send(TestClient::frame_of_version_five(1, protocol::OptionsRequest()));
    CO_ASSERT_TRUE(asked);
    EXPECT_EQ(TestClient::describe(co_await client.receive()), "SUPPORTED");
    const bool sent = co_await client.send(TestClient::frame(2, protocol::OptionsRequest()));
    CO_ASSERT_TRUE(sent);
    const auto refused = co_await client.receive();
    EXPECT_EQ(TestClient::describe(refused), "error 000a");
    EXPECT_TRUE((co_await client.receive()).failed_with(Errc::closed));
  });
}

}  // namespace
}  // namespace helenus::cql
