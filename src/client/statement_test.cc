// Statements become requests, or are refused before anything is sent; what an error says of a
// statement's effect.
#include "client/statement.h"

#include <memory>
#include <string>
#include <utility>
#include <variant>

#include <gtest/gtest.h>

#include "client/request_error.h"
#include "cql/protocol/frame.h"
#include "model/value.h"

namespace helenus::client {
namespace {

using base::Bytes;
using base::Errc;
using cql::protocol::ErrorCode;
using cql::protocol::ErrorMessage;

constexpr std::size_t kSizeMax = std::size_t{1} << 20;

// The request as a server reads it.
base::Result<cql::protocol::Request> as_read(const Statement& statement,
                                             const RequestOptions& options) {
  TRY(auto request, make_request(statement, options, kSizeMax));
  request.stream = 5;
  base::Buffer out;
  encode_request(request, out);
  cql::protocol::FrameReader reader(cql::protocol::Direction::request);
  for (base::ByteView rest = out.view(); !rest.empty();) {
    rest = rest.subspan(reader.feed(rest));
    for (auto step = reader.next();
         !std::holds_alternative<cql::protocol::FrameReader::NeedBytes>(step);
         step = reader.next()) {
      auto* frame = std::get_if<cql::protocol::Frame>(&step);
      if (frame != nullptr) return decode_request(frame->header, std::move(frame->body));
    }
  }
  return base::Error(Errc::internal, "no frame");
}

Prepared prepared(std::string_view id) {
  return std::make_shared<const PreparedStatement>(PreparedStatement{.text = "text",
                                                                     .id = Bytes::copy_of(id),
                                                                     .markers = {},
                                                                     .partition_key_markers = {},
                                                                     .columns = {}});
}

TEST(Statement, AQueryCarriesItsValuesAndOptions) {
  const Query query{.text = "INSERT",
                    .values = {model::int_value(7), BoundValue::null(), BoundValue::unset()},
                    .names = {"a", "b", "c"}};
  const RequestOptions options{
      .consistency = model::Consistency::quorum,
      .serial_consistency = model::Consistency::local_serial,
      .default_timestamp_us = 12,
      .page_size = 100,
      .paging_state = Bytes::copy_of("page"),
      .payload = {{.key = "helenus-context", .value = Bytes::copy_of("seen")},
                  {.key = "empty", .value = std::nullopt}},
      .tracing = true};
  const auto read = as_read(query, options);
  ASSERT_TRUE(read.has_value()) << read.error().to_string();
  EXPECT_TRUE(read->tracing);
  EXPECT_EQ(base::as_text(read->payload_of("helenus-context").value()), "seen");
  EXPECT_FALSE(read->payload_of("empty").has_value());
  const auto& sent = std::get<cql::protocol::QueryRequest>(read->message);
  EXPECT_EQ(sent.text, "INSERT");
  EXPECT_EQ(sent.parameters.consistency, model::Consistency::quorum);
  EXPECT_EQ(sent.parameters.serial_consistency, model::Consistency::local_serial);
  EXPECT_EQ(sent.parameters.default_timestamp_us, 12);
  EXPECT_EQ(sent.parameters.page_size, 100);
  EXPECT_EQ(base::as_text(sent.parameters.paging_state.value()), "page");
  EXPECT_FALSE(sent.parameters.skip_metadata);
  const Bytes seven = model::int_value(7);
  const cql::protocol::Values values = {
      cql::protocol::Value::of(seven), cql::protocol::Value::null(), cql::protocol::Value::unset()};
  EXPECT_EQ(sent.parameters.values, values);
  EXPECT_EQ(sent.parameters.names, (std::vector<std::string_view>{"a", "b", "c"}));
}

TEST(Statement, ABatchMixesTextsAndPreparedOnes) {
  const Batch batch{
      .type = Batch::Type::unlogged,
      .statements = {Query{.text = "one"},
                     Execution{.prepared = prepared("id"), .values = {model::int_value(1)}}}};
  const auto read = as_read(batch, {.default_timestamp_us = 3});
  ASSERT_TRUE(read.has_value()) << read.error().to_string();
  const auto& sent = std::get<cql::protocol::BatchRequest>(read->message);
  EXPECT_EQ(sent.type, Batch::Type::unlogged);
  EXPECT_EQ(sent.default_timestamp_us, 3);
  ASSERT_EQ(sent.statements.size(), 2U);
  EXPECT_EQ(sent.statements[0].text, "one");
  EXPECT_FALSE(sent.statements[0].prepared);
  EXPECT_EQ(base::as_text(sent.statements[1].id), "id");
  EXPECT_EQ(sent.statements[1].values.size(), 1U);
}

TEST(Statement, WhatTheProtocolHasNoRoomForIsRefused) {
  const std::vector<BoundValue> many(65536, BoundValue::null());
  const std::string long_name(65536, 'x');
  const std::vector<Statement> refused = {
      Query{.text = std::string(kSizeMax + 1, 'x')},
      Query{.text = "", .values = {Bytes::copy_of(std::string(kSizeMax, 'x'))}},
      Query{.text = "", .values = many},
      Query{.text = "", .values = {BoundValue::null()}, .names = {long_name}},
      Query{.text = "", .values = {BoundValue::null()}, .names = {"a", "b"}},
      Batch{.statements = std::vector<std::variant<Query, Execution>>(65536, Query{.text = ""})},
      Batch{.statements = {Query{.text = "", .values = {BoundValue::null()}, .names = {"a"}}}},
      Execution{.prepared = prepared("id"), .values = many}};
  for (const Statement& statement : refused) {
    EXPECT_TRUE(make_request(statement, {}, kSizeMax).failed_with(Errc::invalid_argument));
  }
  const Query query{.text = ""};
  const RequestOptions long_key{.payload = {{.key = long_name, .value = std::nullopt}}};
  EXPECT_TRUE(make_request(query, long_key, kSizeMax).failed_with(Errc::invalid_argument));
  const RequestOptions large{.paging_state = Bytes::copy_of(std::string(kSizeMax, 'x'))};
  EXPECT_TRUE(make_request(query, large, kSizeMax).failed_with(Errc::invalid_argument));
}

TEST(Statement, PreparedOnesAreFoundByTheirId) {
  const Statement batch =
      Batch{.statements = {Query{.text = "one"}, Execution{.prepared = prepared("a"), .values = {}},
                           Execution{.prepared = prepared("b"), .values = {}}}};
  EXPECT_EQ(prepared_count(batch), 2U);
  EXPECT_EQ(find_prepared(batch, base::as_bytes("b"))->id.text(), "b");
  EXPECT_EQ(find_prepared(batch, base::as_bytes("c")), nullptr);
  EXPECT_EQ(prepared_count(Query{.text = ""}), 0U);
}

TEST(RequestError, SaysWhetherTheStatementMayHaveHappened) {
  const base::Error timeout(Errc::timeout);
  EXPECT_FALSE(RequestError::not_sent(timeout).may_have_happened());
  EXPECT_TRUE(RequestError::unknown(timeout).may_have_happened());
  const auto of = [](ErrorMessage message) {
    return RequestError::answered(std::move(message)).may_have_happened();
  };
  EXPECT_FALSE(of({ErrorCode::syntax_error, ""}));
  EXPECT_FALSE(of({cql::protocol::UnavailableDetails(), ""}));
  EXPECT_FALSE(of({cql::protocol::UnpreparedDetails(), ""}));
  EXPECT_TRUE(of({ErrorCode::overloaded, ""}));
  EXPECT_TRUE(of({cql::protocol::WriteTimeoutDetails(), ""}));
  EXPECT_TRUE(of({cql::protocol::WriteFailureDetails(), ""}));
  const auto unavailable =
      RequestError::answered({cql::protocol::UnavailableDetails(), "no"}).after_doubt();
  EXPECT_TRUE(unavailable.may_have_happened()) << "by an attempt before";
  EXPECT_EQ(unavailable.to_string(), "answered 0x1000: no");
  EXPECT_EQ(unavailable.to_error().to_string(), "refused: answered 0x1000: no");
  EXPECT_EQ(RequestError::unknown(timeout).to_string(), "outcome unknown: timeout");
}

}  // namespace
}  // namespace helenus::client
