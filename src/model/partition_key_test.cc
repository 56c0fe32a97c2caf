#include "model/partition_key.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "model/consistency.h"
#include "model/token.h"
#include "model/value.h"

namespace helenus::model {
namespace {

using base::Bytes;
using base::ByteView;
using base::Errc;

std::vector<ByteView> views(const std::vector<std::string>& texts) {
  std::vector<ByteView> result;
  for (const std::string& text : texts) result.push_back(base::as_bytes(text));
  return result;
}

TEST(RoutingKey, OneColumnIsItsBytesAndSeveralAreComposite) {
  EXPECT_EQ(make_routing_key(views({"ab"}))->text(), "ab");
  EXPECT_EQ(base::to_hex(*make_routing_key(views({"a", "b"}))), "0001610000016200");
  EXPECT_EQ(base::to_hex(*make_routing_key(views({"", ""}))), "000000000000");
}

TEST(RoutingKey, EmptyAndLongKeysAreRefused) {
  EXPECT_TRUE(make_routing_key(views({""})).failed_with(Errc::invalid_argument));
  EXPECT_TRUE(make_routing_key(views({std::string(kRoutingKeySizeMax, 'x')})));
  EXPECT_TRUE(make_routing_key(views({std::string(kRoutingKeySizeMax + 1, 'x')}))
                  .failed_with(Errc::invalid_argument));
  EXPECT_TRUE(make_routing_key(views({std::string(kRoutingKeySizeMax - 5, 'x'), ""}))
                  .failed_with(Errc::invalid_argument));
}

RC_GTEST_PROP(RoutingKey, ColumnsComeBack, (std::vector<std::string> columns)) {
  RC_PRE(!columns.empty());
  RC_PRE(columns.size() > 1 || !columns[0].empty());
  const Bytes key = *make_routing_key(views(columns));
  const auto back = split_routing_key(columns.size(), key);
  RC_ASSERT(back.has_value());
  std::vector<std::string> texts;
  for (const ByteView value : *back) texts.emplace_back(base::as_text(value));
  RC_ASSERT(texts == columns);
}

TEST(RoutingKey, DamagedKeysAreRefused) {
  using namespace std::string_view_literals;
  const auto refused = [](std::string_view bytes) {
    return split_routing_key(2, base::as_bytes(bytes)).failed_with(Errc::corrupt);
  };
  EXPECT_TRUE(refused(""sv));
  EXPECT_TRUE(refused("\0\1a\0"sv));
  EXPECT_TRUE(refused("\0\1a\1\0\1b\0"sv));
  EXPECT_TRUE(refused("\0\1a\0\0\1b\0x"sv));
  EXPECT_TRUE(refused("\0\7a\0\0\1b\0"sv));
}

constexpr KeyspaceNumber kKeyspace{7};

TEST(RowKey, KnownBytes) {
  EXPECT_EQ(base::to_hex(make_partition(kKeyspace, Token{-1}, base::as_bytes("ab"))),
            "000000077fffffffffffffff00026162");
  EXPECT_EQ(base::to_hex(first_key_of(kKeyspace, Token{0})), "000000078000000000000000");
  EXPECT_EQ(base::to_hex(first_key_after(kKeyspace, Token{0})), "000000078000000000000001");
  EXPECT_EQ(base::to_hex(first_key_after(kKeyspace, kTokenMax)), "00000008");
  EXPECT_EQ(base::to_hex(first_key_of(kKeyspace)), "00000007");
}

TEST(RowKey, KeyspacesDoNotInterleave) {
  const Bytes last = make_partition(kKeyspace, kTokenMax, base::as_bytes("\xff"));
  const Bytes first = make_partition(KeyspaceNumber{8}, kTokenMin, base::as_bytes("a"));
  EXPECT_LT(last, first_key_of(KeyspaceNumber{8}));
  EXPECT_LT(first_key_of(KeyspaceNumber{8}), first);
  EXPECT_EQ(split_row_key(last)->keyspace, kKeyspace);
}

RC_GTEST_PROP(RowKey, PartsComeBack,
              (std::int64_t token, std::string routing_key, std::string clustering)) {
  const Bytes partition = make_partition(kKeyspace, Token{token}, base::as_bytes(routing_key));
  const Bytes key = *make_row_key(partition, base::as_bytes(clustering));
  const auto parts = split_row_key(key);
  RC_ASSERT(parts.has_value());
  RC_ASSERT(parts->token == Token{token});
  RC_ASSERT(base::as_text(parts->routing_key) == routing_key);
  RC_ASSERT(base::as_text(parts->clustering) == clustering);
  RC_ASSERT(base::equal(parts->partition, partition));
}

RC_GTEST_PROP(RowKey, PartitionsGoByTokenAndNeverInterleave, ()) {
  const auto draw = [] {
    return make_partition(
        kKeyspace, Token{*rc::gen::inRange<std::int64_t>(-2, 3)},
        base::as_bytes(*rc::gen::container<std::string>(rc::gen::element('\0', 'a', '\xff'))));
  };
  const Bytes a = draw();
  const Bytes b = draw();
  RC_PRE(a != b);
  RC_ASSERT((!a.text().starts_with(b.text()) && !b.text().starts_with(a.text())));
  const Token token_a = split_row_key(a)->token;
  const Token token_b = split_row_key(b)->token;
  if (token_a != token_b) RC_ASSERT((a < b) == (token_a < token_b));
  RC_ASSERT((a >= first_key_of(kKeyspace, token_b)) == (token_a >= token_b));
  RC_ASSERT((a < first_key_after(kKeyspace, token_b)) == (token_a <= token_b));
}

TEST(RowKey, EveryKeyComesBeforeTheEndOfTheRing) {
  const std::string longest(kRoutingKeySizeMax, '\xff');
  EXPECT_LT(make_partition(kKeyspace, kTokenMax, base::as_bytes(longest)),
            first_key_after(kKeyspace, kTokenMax));
}

TEST(RowKey, LongAndDamagedKeysAreRefused) {
  const Bytes partition = make_partition(kKeyspace, Token{1}, base::as_bytes("k"));
  const std::string most(kRowKeySizeMax - partition.size(), 'x');
  EXPECT_TRUE(make_row_key(partition, base::as_bytes(most)));
  EXPECT_TRUE(
      make_row_key(partition, base::as_bytes(most + "x")).failed_with(Errc::invalid_argument));
  for (std::size_t size = 0; size < partition.size(); ++size) {
    EXPECT_TRUE(split_row_key(partition.view().first(size)).failed_with(Errc::corrupt));
  }
}

RC_GTEST_PROP(TokenText, ReadsBack, (std::int64_t token)) {
  RC_ASSERT(*parse_token(to_string(Token{token})) == Token{token});
}

TEST(TokenText, OtherTextsAreRefused) {
  for (const std::string_view text : {"", "x", "1x", " 1", "9223372036854775808"}) {
    EXPECT_TRUE(parse_token(text).failed_with(Errc::invalid_argument)) << text;
  }
}

TEST(ConsistencyLevel, NumbersAndNamesAreTheProtocols) {
  EXPECT_EQ(consistency_from(6), Consistency::local_quorum);
  EXPECT_EQ(name_of(*consistency_from(10)), "LOCAL_ONE");
  EXPECT_FALSE(consistency_from(11));
  EXPECT_TRUE(is_local(Consistency::local_serial) && is_serial(Consistency::local_serial));
  EXPECT_FALSE(is_local(Consistency::quorum));
  EXPECT_EQ(quorum_of(3), 2U);
  EXPECT_EQ(quorum_of(4), 3U);
}

}  // namespace
}  // namespace helenus::model
