#include "cql/protocol/response.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "cql/protocol/protocol_test_support.h"
#include "cql/protocol/rows.h"

namespace helenus::cql::protocol {
namespace {

using base::as_bytes;
using base::Bytes;
using base::Errc;
using model::DataType;
using model::TypeKind;

Bytes frame_bytes(const Response& response, Compression compression = Compression::none) {
  base::Buffer out;
  encode_frame(response, 3, compression, out);
  return std::move(out).freeze();
}

base::Result<DecodedResponse> read(const Response& response) {
  const Frame frame = only_frame(Direction::response, frame_bytes(response));
  return decode_response(frame.header, frame.body);
}

Inet loopback() {
  return {.octets = {std::byte{127}, {}, {}, std::byte{1}}, .size = 4, .port = 9042};
}

std::vector<ColumnSpec> two_columns() {
  return {{.keyspace = "k", .table = "t", .name = "a", .type = DataType(TypeKind::int_)},
          {.keyspace = "k", .table = "t", .name = "b", .type = DataType::text()}};
}

std::vector<ResponseMessage> all_errors() {
  std::vector<ResponseMessage> errors;
  for (const ErrorCode code :
       {ErrorCode::server_error, ErrorCode::protocol_error, ErrorCode::bad_credentials,
        ErrorCode::overloaded, ErrorCode::bootstrapping, ErrorCode::truncate_error,
        ErrorCode::cdc_write_failure, ErrorCode::syntax_error, ErrorCode::unauthorized,
        ErrorCode::invalid, ErrorCode::config_error}) {
    errors.emplace_back(ErrorMessage(code, "because"));
  }
  for (const ErrorDetails& details : std::vector<ErrorDetails>{
           UnavailableDetails{.consistency = Consistency::all, .required = 3, .alive = 2},
           WriteTimeoutDetails{.consistency = Consistency::quorum,
                               .received = 1,
                               .block_for = 2,
                               .write_type = WriteType::cas},
           ReadTimeoutDetails{.consistency = Consistency::quorum,
                              .received = 1,
                              .block_for = 2,
                              .data_present = true},
           ReadFailureDetails{.consistency = Consistency::quorum,
                              .received = 1,
                              .block_for = 2,
                              .failures = 1,
                              .data_present = false},
           FunctionFailureDetails{
               .keyspace = "k", .function = "f", .argument_types = {"int", "text"}},
           WriteFailureDetails{.consistency = Consistency::quorum,
                               .received = 1,
                               .block_for = 2,
                               .failures = 1,
                               .write_type = WriteType::unlogged_batch},
           AlreadyExistsDetails{.keyspace = "k", .table = ""},
           UnpreparedDetails{.id = Bytes::copy_of("0123456789abcdef")}}) {
    errors.emplace_back(ErrorMessage(details, "because"));
  }
  return errors;
}

std::vector<ResponseMessage> one_of_each() {
  const SchemaChange table{.kind = SchemaChangeKind::updated,
                           .target = SchemaTarget::table,
                           .keyspace = "k",
                           .name = "t",
                           .argument_types = {}};
  const SchemaChange function{.kind = SchemaChangeKind::dropped,
                              .target = SchemaTarget::function,
                              .keyspace = "k",
                              .name = "f",
                              .argument_types = {"int"}};
  const SchemaChange keyspace{.kind = SchemaChangeKind::created,
                              .target = SchemaTarget::keyspace,
                              .keyspace = "k",
                              .name = "",
                              .argument_types = {}};
  std::vector<ResponseMessage> messages = {
      ReadyMessage(),
      AuthenticateMessage{.authenticator = "org.apache.cassandra.auth.PasswordAuthenticator"},
      AuthChallengeMessage{.token = Bytes::copy_of("token")},
      AuthSuccessMessage{.token = std::nullopt},
      SupportedMessage{.options = {{"CQL_VERSION", {"3.4.6"}}, {"COMPRESSION", {}}}},
      VoidResult(),
      SetKeyspaceResult{.keyspace = "k"},
      SchemaChangeResult{.change = table},
      SchemaChangeResult{.change = keyspace},
      PreparedResult{.id = Bytes::copy_of("0123456789abcdef"),
                     .markers = two_columns(),
                     .partition_key_markers = {1, 0},
                     .columns = {}},
      PreparedResult{.id = Bytes::copy_of("id"),
                     .markers = {},
                     .partition_key_markers = {},
                     .columns = two_columns()},
      RowsResult{.column_count = 2,
                 .columns = two_columns(),
                 .paging_state = Bytes::copy_of("next"),
                 .row_count = 1,
                 .rows = from_hex("00000004 00000007 ffffffff")},
      RowsResult{.column_count = 2,
                 .columns = {},
                 .paging_state = std::nullopt,
                 .row_count = 0,
                 .rows = {}},
      Event(TopologyChange{.kind = TopologyChangeKind::moved_node, .node = loopback()}),
      Event(StatusChange{.kind = StatusChangeKind::down, .node = loopback()}),
      Event(function)};
  for (ResponseMessage& error : all_errors()) messages.push_back(std::move(error));
  return messages;
}

TEST(Response, IsReadAsItWasWritten) {
  for (const ResponseMessage& message : one_of_each()) {
    const auto again = read(Response::of(message));
    ASSERT_TRUE(again.has_value()) << again.error().to_string();
    EXPECT_EQ(again->message, message) << name_of(opcode_of(message));
    EXPECT_EQ(again->stream, 3);
  }
}

TEST(Response, CutShortAnywhereIsAnErrorAndSoIsWhatFollowsIt) {
  for (const ResponseMessage& message : one_of_each()) {
    const Frame whole = only_frame(Direction::response, frame_bytes(Response::of(message)));
    for (std::size_t size = 0; size < whole.body.size(); ++size) {
      const auto cut = decode_response(whole.header, whole.body.slice(0, size));
      EXPECT_TRUE(cut.failed_with(Errc::corrupt))
          << name_of(whole.header.opcode) << " cut to " << size;
    }
    base::Buffer longer;
    longer.append(whole.body);
    longer.append("x");
    EXPECT_TRUE(
        decode_response(whole.header, std::move(longer).freeze()).failed_with(Errc::corrupt));
  }
}

TEST(Response, PutsTraceWarningsAndPayloadInFront) {
  Response response = Response::of(SetKeyspaceResult{.keyspace = "k"});
  response.prefix.tracing = *base::Uuid::parse("00010203-0405-0607-0809-0a0b0c0d0e0f");
  response.prefix.warnings = {"w"};
  response.prefix.payload = {{.key = "p", .value = Bytes::copy_of("v")}};
  EXPECT_EQ(frame_bytes(response), from_hex("84 0e 0003 08 00000026"
                                            "000102030405060708090a0b0c0d0e0f"
                                            "0001 0001 77"
                                            "0001 0001 70 00000001 76"
                                            "00000003 0001 6b"));
  const auto again = read(response);
  ASSERT_TRUE(again.has_value());
  EXPECT_EQ(again->prefix, response.prefix);
}

TEST(Response, IsCompressedWhereThatPays) {
  const Response large =
      Response::of(AuthSuccessMessage{.token = Bytes::copy_of(std::string(10'000, 'x'))});
  const Bytes sent = frame_bytes(large, Compression::lz4);
  EXPECT_LT(sent.size(), 200U);
  const Frame frame = only_frame(Direction::response, sent);
  const auto body = plain_body(frame, Compression::lz4, kBodySizeMaxDefault);
  ASSERT_TRUE(body.has_value());
  EXPECT_TRUE(decode_response(frame.header, *body).has_value());
  const Response small = Response::of(VoidResult());
  EXPECT_EQ(frame_bytes(small, Compression::lz4), frame_bytes(small));
}

TEST(Response, CutsTextsThatDoNotFit) {
  Response response = Response::error(ErrorCode::invalid, std::string(70'000, 'x'));
  response.prefix.warnings = {std::string(65'534, 'w') + "ü"};
  const auto again = read(response);
  ASSERT_TRUE(again.has_value());
  EXPECT_EQ(std::get<ErrorMessage>(again->message).message, std::string(65'535, 'x'));
  EXPECT_EQ(again->prefix.warnings, std::vector<std::string>{std::string(65'534, 'w')});
}

TEST(Error, HasTheLayoutOfTheProtocol) {
  const auto body = [](const ErrorMessage& error) { return Response::of(error).body[0]; };
  EXPECT_EQ(body({ErrorCode::syntax_error, "no"}), from_hex("00002000 0002 6e6f"));
  EXPECT_EQ(body({UnavailableDetails{.consistency = Consistency::quorum, .required = 2, .alive = 1},
                  "no"}),
            from_hex("00001000 0002 6e6f 0004 00000002 00000001"));
  EXPECT_EQ(body({WriteTimeoutDetails{.consistency = Consistency::one,
                                      .received = 0,
                                      .block_for = 1,
                                      .write_type = WriteType::cas},
                  "no"}),
            from_hex("00001100 0002 6e6f 0001 00000000 00000001 0003 434153"));
  EXPECT_EQ(body({ReadFailureDetails{.consistency = Consistency::one,
                                     .received = 0,
                                     .block_for = 1,
                                     .failures = 1,
                                     .data_present = true},
                  "no"}),
            from_hex("00001300 0002 6e6f 0001 00000000 00000001 00000001 01"));
  EXPECT_EQ(body({UnpreparedDetails{.id = from_hex("0102")}, "no"}),
            from_hex("00002500 0002 6e6f 0002 0102"));
}

TEST(Event, IsOneFrameOnItsOwnStream) {
  EXPECT_EQ(encode_event_frame(StatusChange{.kind = StatusChangeKind::up, .node = loopback()}),
            from_hex("84 00 ffff 0c 0000001c"
                     "000d 5354415455535f4348414e4745 0002 5550 04 7f000001 00002352"));
}

TEST(PreparedResult, HasTheLayoutOfTheProtocol) {
  const PreparedResult prepared{.id = from_hex("aabb"),
                                .markers = two_columns(),
                                .partition_key_markers = {1},
                                .columns = {}};
  EXPECT_EQ(Response::of(prepared).body[0], from_hex("00000004 0002 aabb"
                                                     "00000001 00000002 00000001 0001"
                                                     "0001 6b 0001 74 0001 61 0009 0001 62 000d"
                                                     "00000004 00000000"));
}

TEST(RowsWriter, StreamsRowsAndPutsTheHeadInFront) {
  const EncodedColumns columns(two_columns());
  RowsWriter writer(columns, false);
  writer.cell(from_hex("00000007"));
  writer.cell(std::nullopt);
  writer.end_row();
  EXPECT_EQ(writer.row_count(), 1U);
  EXPECT_EQ(writer.size(), 12U);
  const Response response = std::move(writer).finish(from_hex("aa"));
  EXPECT_EQ(response.opcode, Opcode::result);
  EXPECT_EQ(response.body[0], from_hex("00000002 00000003 00000002 00000001 aa"
                                       "0001 6b 0001 74 0001 61 0009 0001 62 000d"
                                       "00000001"));
  EXPECT_EQ(response.body[1], from_hex("00000004 00000007 ffffffff"));
  const auto rows = std::get<RowsResult>(read(response)->message);
  CellCursor cells(rows);
  EXPECT_EQ(base::load_be<std::uint32_t>(cells.next()->data()), 7U);
  EXPECT_FALSE(cells.next().has_value());
  EXPECT_TRUE(cells.done());
}

TEST(RowsWriter, LeavesMetadataOutWhenAsked) {
  const EncodedColumns columns(two_columns());
  RowsWriter writer(columns, true);
  const Response response = std::move(writer).finish(std::nullopt);
  EXPECT_EQ(response.body[0], from_hex("00000002 00000004 00000002 00000000"));
  EXPECT_TRUE(response.body[1].empty());
}

TEST(RowsWriter, CutsAPageByBytesAndLeavesTheRowThatDidNotFit) {
  const EncodedColumns columns(two_columns());
  RowsWriter writer(columns, true, 1000);
  const std::string text(100, 'x');
  for (;;) {
    writer.cell(as_bytes("4444"));
    writer.cell(as_bytes(text));
    if (writer.size_with_row() > 1000) break;
    writer.end_row();
  }
  writer.abandon_row();
  EXPECT_EQ(writer.row_count(), 8U);
  EXPECT_EQ(writer.size(), 8U * 112);
  const auto rows = std::get<RowsResult>(read(std::move(writer).finish(as_bytes("s")))->message);
  EXPECT_EQ(rows.row_count, 8U);
  EXPECT_EQ(rows.paging_state->text(), "s");
}

std::string problem_of(Opcode opcode, std::string_view body_hex) {
  const auto response =
      decode_response({.direction = Direction::response, .opcode = opcode}, from_hex(body_hex));
  return response ? "" : std::string(response.error().context());
}

TEST(Response, SaysWhatWasWrong) {
  EXPECT_TRUE(problem_of(Opcode::error, "00001234 0000").contains("code of an error"));
  EXPECT_TRUE(problem_of(Opcode::result, "00000006").contains("kind of a result"));
  EXPECT_TRUE(problem_of(Opcode::event, "0001 78").contains("event is unknown"));
  EXPECT_TRUE(problem_of(Opcode::result, "00000005 0001 78").contains("none of those"));
  // More pages without saying where; more columns, and more rows, than there are bytes for.
  EXPECT_TRUE(problem_of(Opcode::result, "00000002 00000006 00000001 ffffffff 00000000")
                  .contains("no paging state"));
  EXPECT_TRUE(problem_of(Opcode::result, "00000002 00000000 0000ffff").contains("columns"));
  EXPECT_TRUE(problem_of(Opcode::result, "00000002 00000004 00010000 00000000")
                  .contains("too many columns"));
  EXPECT_TRUE(problem_of(Opcode::result, "00000002 00000004 00000001 7fffffff").contains("rows"));
  EXPECT_TRUE(
      problem_of(Opcode::result, "00000002 00000004 00000001 ffffffff").contains("negative"));
  EXPECT_EQ(problem_of(Opcode::result, "00000002 00000004 00000000 7fffffff"), "");
}

RC_GTEST_PROP(Response, OfArbitraryBytesDecodesOrSaysWhyNot,
              (const std::vector<std::uint8_t>& bytes, std::uint8_t flags)) {
  const Bytes body = Bytes::copy_of(std::as_bytes(std::span(bytes)));
  for (const Opcode opcode :
       {Opcode::error, Opcode::ready, Opcode::authenticate, Opcode::supported, Opcode::result,
        Opcode::event, Opcode::auth_challenge, Opcode::auth_success}) {
    const FrameHeader header{.direction = Direction::response, .flags = flags, .opcode = opcode};
    const auto response = decode_response(header, body);
    if (!response) RC_ASSERT(!response.error().context().empty());
  }
}

TEST(Response, VersionFiveTellsFailuresByReason) {
  Response failed =
      Response::of(ErrorMessage(WriteFailureDetails{.consistency = Consistency::quorum,
                                                    .received = 1,
                                                    .block_for = 2,
                                                    .failures = 3,
                                                    .write_type = WriteType::simple},
                                "no"));
  const std::string before = base::to_hex(failed.body[0].view());
  tell_failures_by_reason(failed);
  std::string after = base::to_hex(failed.body[0].view());
  EXPECT_EQ(after.size(), before.size());
  // code, message, level, received, wanted; then how many there are in the map.
  const std::size_t at = 2 * (4 + 2 + 2 + 2 + 4 + 4);
  EXPECT_EQ(before.substr(at, 8), "00000003");
  EXPECT_EQ(after.substr(at, 8), "00000000");
  Response other = Response::error(ErrorCode::invalid, "x");
  const Bytes body = other.body[0];
  tell_failures_by_reason(other);
  EXPECT_EQ(other.body[0], body);
}

}  // namespace
}  // namespace helenus::cql::protocol
