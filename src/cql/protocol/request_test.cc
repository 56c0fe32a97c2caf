#include "cql/protocol/request.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "cql/protocol/protocol_test_support.h"

namespace helenus::cql::protocol {
namespace {

using base::as_bytes;
using base::Bytes;
using base::Errc;

Bytes frame_bytes(const Request& request) {
  base::Buffer out;
  encode_request(request, out);
  return std::move(out).freeze();
}

base::Result<Request> read(base::ByteView frame_as_sent) {
  Frame frame = only_frame(Direction::request, frame_as_sent);
  return decode_request(frame.header, std::move(frame.body));
}

Request with(RequestMessage message) {
  Request request;
  request.stream = 3;
  request.message = std::move(message);
  return request;
}

QueryParameters all_parameters() {
  return {.consistency = Consistency::quorum,
          .serial_consistency = Consistency::local_serial,
          .skip_metadata = true,
          .page_size = 100,
          .paging_state = as_bytes("state"),
          .default_timestamp_us = 1,
          .values = {Value::of(as_bytes("v")), Value::null(), Value::unset()},
          .names = {}};
}

std::vector<Request> one_of_each() {
  auto named = all_parameters();
  named.names = {"a", "b", "c"};
  BatchRequest batch{
      .type = BatchType::unlogged,
      .statements =
          {{.prepared = false, .text = "INSERT", .id = {}, .values = {Value::of(as_bytes("x"))}},
           {.prepared = true, .text = {}, .id = as_bytes("0123456789abcdef"), .values = {}}},
      .consistency = Consistency::each_quorum,
      .serial_consistency = Consistency::serial,
      .default_timestamp_us = -5};
  std::vector<Request> requests = {
      with(OptionsRequest()),
      with(StartupRequest{.options = {{"CQL_VERSION", "3.0.0"}, {"COMPRESSION", "lz4"}}}),
      with(QueryRequest{.text = "SELECT * FROM t", .parameters = {}}),
      with(QueryRequest{.text = "SELECT", .parameters = all_parameters()}),
      with(QueryRequest{.text = "SELECT", .parameters = named}),
      with(PrepareRequest{.text = "INSERT"}),
      with(ExecuteRequest{.id = as_bytes("0123456789abcdef"), .parameters = all_parameters()}),
      with(RegisterRequest{.kinds = {EventKind::schema_change, EventKind::topology_change}}),
      with(std::move(batch)),
      with(AuthResponseRequest{.token = as_bytes(std::string_view("\0user\0pass", 10))}),
      with(AuthResponseRequest{.token = std::nullopt})};
  requests[3].payload = {{.key = "helenus-context", .value = as_bytes("c")},
                         {.key = "other", .value = std::nullopt}};
  requests[3].tracing = true;
  return requests;
}

TEST(Request, IsReadAsItWasWritten) {
  for (const Request& request : one_of_each()) {
    const auto again = read(frame_bytes(request));
    ASSERT_TRUE(again.has_value()) << again.error().to_string();
    EXPECT_EQ(*again, request) << name_of(opcode_of(request.message));
  }
}

TEST(RegisterRequest, NamesEventsInCapitalsOrNot) {
  const auto named =
      read(from_hex("04 00 0001 0b 00000022 0002"
                    "000d 736368656d615f6368616e6765"         // schema_change
                    "000f 5354415455535f4368616e67652121"));  // STATUS_Change!!
  EXPECT_FALSE(named.has_value());
  const auto good =
      read(from_hex("04 00 0001 0b 00000020 0002"
                    "000d 736368656d615f6368616e6765"
                    "000d 5354415455535f4368616e6765"));
  ASSERT_TRUE(good.has_value()) << good.error().to_string();
  EXPECT_EQ(std::get<RegisterRequest>(good->message).kinds,
            (std::vector{EventKind::schema_change, EventKind::status_change}));
}

TEST(Request, CutShortAnywhereIsAnError) {
  for (const Request& request : one_of_each()) {
    const Frame whole = only_frame(Direction::request, frame_bytes(request));
    for (std::size_t size = 0; size < whole.body.size(); ++size) {
      const auto cut = decode_request(whole.header, whole.body.slice(0, size));
      EXPECT_TRUE(cut.failed_with(Errc::corrupt))
          << name_of(whole.header.opcode) << " cut to " << size;
    }
  }
}

TEST(Request, ForgivesBytesBehindTheMessage) {
  const Frame whole =
      only_frame(Direction::request, frame_bytes(with(PrepareRequest{.text = "SELECT 1"})));
  const auto longer = decode_request(whole.header, Bytes::copy_of(whole.body.view()));
  base::Buffer padded;
  padded.append(whole.body);
  padded.append("extra");
  EXPECT_EQ(*decode_request(whole.header, std::move(padded).freeze()), *longer);
}

TEST(QueryRequest, HasTheLayoutOfTheProtocol) {
  const auto request = with(QueryRequest{.text = "S", .parameters = all_parameters()});
  EXPECT_EQ(frame_bytes(request),
            from_hex("04 00 0003 07 0000002e"
                     "00000001 53"                         // the text
                     "0004 3f"                             // QUORUM, flags
                     "0003 00000001 76 ffffffff fffffffe"  // values
                     "00000064"                            // page size
                     "00000005 7374617465"                 // paging state
                     "0009"                                // LOCAL_SERIAL
                     "0000000000000001"));                 // timestamp
}

TEST(BatchRequest, HasTheLayoutOfTheProtocol) {
  const BatchRequest batch{.type = BatchType::counter,
                           .statements = {{.prepared = false, .text = "U", .id = {}, .values = {}},
                                          {.prepared = true,
                                           .text = {},
                                           .id = as_bytes("id"),
                                           .values = {Value::of(as_bytes("v"))}}},
                           .consistency = Consistency::one,
                           .serial_consistency = std::nullopt,
                           .default_timestamp_us = 2};
  EXPECT_EQ(frame_bytes(with(batch)), from_hex("04 00 0003 0d 00000022"
                                               "02 0002"
                                               "00 00000001 55 0000"
                                               "01 0002 6964 0001 00000001 76"
                                               "0001 20 0000000000000002"));
}

std::string problem_of(std::string_view frame_hex) {
  const auto request = read(from_hex(frame_hex));
  return request ? "" : std::string(request.error().context());
}

TEST(Request, SaysWhatWasWrong) {
  EXPECT_TRUE(problem_of("04 00 0000 0b 00000005 0001 0001 41").contains("register"));
  EXPECT_TRUE(problem_of("04 00 0000 0d 00000006 03 0000 0001 00").contains("type of a batch"));
  EXPECT_TRUE(problem_of("04 00 0000 0d 0000000d 00 0001 02 00000000 0000 0001 00")
                  .contains("neither text nor prepared"));
  for (const auto* flags : {"01", "04", "08", "40"}) {
    EXPECT_TRUE(problem_of(fmt::format("04 00 0000 0d 00000006 00 0000 0001 {}", flags))
                    .contains("only queries have"));
  }
  EXPECT_TRUE(problem_of("04 00 0000 07 00000007 00000000 0011 00").contains("consistency"));
  EXPECT_TRUE(problem_of("04 00 0000 09 00000004 ffffffff").contains("negative"));
  EXPECT_TRUE(problem_of("04 04 0000 05 00000002 0001").contains("more elements"));
  EXPECT_TRUE(problem_of("04 00 0000 01 00000002 ffff").contains("more elements"));
  EXPECT_TRUE(problem_of("04 00 0000 0a 00000007 0000 0001 01 ffff").contains("more elements"));
}

TEST(Request, IgnoresFlagsItDoesNotKnow) {
  // Names without values name nothing, and 0x80 is of a later version.
  const auto request = read(from_hex("04 e0 0000 07 00000007 00000000 0001 c0"));
  ASSERT_TRUE(request.has_value());
  EXPECT_EQ(std::get<QueryRequest>(request->message), QueryRequest());
}

TEST(Request, LendsItsBodyAndKeepsParts) {
  auto request = with(ExecuteRequest{.id = as_bytes("id"), .parameters = all_parameters()});
  Bytes kept;
  {
    const auto decoded = read(frame_bytes(request));
    ASSERT_TRUE(decoded.has_value());
    Request moved = *decoded;
    kept = moved.keep(std::get<ExecuteRequest>(moved.message).parameters.values[0].bytes);
    EXPECT_EQ(kept.data(),
              std::get<ExecuteRequest>(moved.message).parameters.values[0].bytes.data());
  }
  EXPECT_EQ(kept.text(), "v");
  EXPECT_EQ(request.keep(as_bytes("elsewhere")).text(), "elsewhere");
}

TEST(Request, FindsAKeyOfThePayload) {
  Request request = with(OptionsRequest());
  request.payload = {{.key = "a", .value = as_bytes("1")}, {.key = "b", .value = std::nullopt}};
  ASSERT_TRUE(request.payload_of("a").has_value());
  EXPECT_EQ(base::as_text(*request.payload_of("a")), "1");
  EXPECT_FALSE(request.payload_of("b").has_value());
  EXPECT_FALSE(request.payload_of("c").has_value());
}

TEST(StartupRequest, FindsOptionsInAnyCase) {
  const StartupRequest request{.options = {{"cql_version", "1"}, {"CQL_VERSION", "3.0.0"}}};
  EXPECT_EQ(request.find(kOptionCqlVersion), "3.0.0");
  EXPECT_EQ(request.find(kOptionCompression), std::nullopt);
}

TEST(PreparedId, IsAFunctionOfKeyspaceAndTextForEver) {
  const auto id = prepared_id("ks", "SELECT * FROM t WHERE k = ?");
  EXPECT_EQ(id, prepared_id("ks", "SELECT * FROM t WHERE k = ?"));
  EXPECT_NE(id, prepared_id("other", "SELECT * FROM t WHERE k = ?"));
  EXPECT_NE(prepared_id("ab", "c"), prepared_id("a", "bc"));
  EXPECT_EQ(base::to_hex(prepared_id("", "")), "6e340b9cffb37a989ca544e6bb780a2c");
}

RC_GTEST_PROP(Request, OfArbitraryBytesDecodesOrSaysWhyNot,
              (const std::vector<std::uint8_t>& body, std::uint8_t flags)) {
  for (const Opcode opcode :
       {Opcode::startup, Opcode::options, Opcode::query, Opcode::prepare, Opcode::execute,
        Opcode::registration, Opcode::batch, Opcode::auth_response}) {
    const FrameHeader header{.flags = flags, .opcode = opcode};
    const auto request = decode_request(header, Bytes::copy_of(std::as_bytes(std::span(body))));
    if (!request) {
      RC_ASSERT(!request.error().context().empty());
      continue;
    }
    const auto again = read(frame_bytes(*request));
    RC_ASSERT(again.has_value());
    RC_ASSERT(*again == *request);
  }
}

TEST(Request, VersionFiveSaysMore) {
  auto parameters = all_parameters();
  parameters.keyspace = "ks";
  parameters.now_seconds = 1'700'000'000;
  BatchRequest batch;
  batch.keyspace = "other";
  batch.now_seconds = -1;
  std::vector<Request> requests = {with(QueryRequest{.text = "SELECT", .parameters = parameters}),
                                   with(QueryRequest{.text = "SELECT", .parameters = {}}),
                                   with(PrepareRequest{.text = "INSERT", .keyspace = "ks"}),
                                   with(PrepareRequest{.text = "INSERT"}),
                                   with(ExecuteRequest{.id = as_bytes("0123456789abcdef"),
                                                       .metadata_id = as_bytes("fedcba9876543210"),
                                                       .parameters = parameters}),
                                   with(std::move(batch))};
  for (Request& request : requests) {
    request.version = kVersionOfSegments;
    const Bytes sent = frame_bytes(request);
    EXPECT_EQ(std::to_integer<int>(sent.data()[0]), 5);
    const auto again = read(sent.view());
    ASSERT_TRUE(again.has_value()) << again.error().to_string();
    EXPECT_TRUE(*again == request);
  }
}

}  // namespace
}  // namespace helenus::cql::protocol
