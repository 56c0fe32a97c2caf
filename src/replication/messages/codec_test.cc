#include "causality/codec.h"

#include <cstddef>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "base/prng.h"
#include "causality/generators.h"
#include "replication/messages/messages.h"

namespace helenus::replication {
namespace {

using base::Bytes;
using rpc::Codec;

constexpr rpc::ProtocolVersion kVersion{};

Bytes bytes(std::string_view text) {
  return Bytes::copy_of(base::as_bytes(text));
}

template <class Message>
Bytes encode(const Message& message) {
  return Codec<Message>::encode(message, kVersion);
}

// What was decoded says the same bytes again; what is cut off is refused; what is changed is
// refused or says something.
template <class Message>
void check(const Message& message) {
  const Bytes whole = encode(message);
  const auto decoded = Codec<Message>::decode(whole, kVersion);
  ASSERT_TRUE(decoded.has_value()) << decoded.error().to_string();
  EXPECT_EQ(encode(*decoded), whole);
  for (std::size_t size = 0; size < whole.size(); ++size) {
    EXPECT_FALSE(Codec<Message>::decode(whole.slice(0, size), kVersion).has_value()) << size;
  }
  base::Prng prng(whole.size());
  for (int i = 0; i < 200; ++i) {
    std::vector<std::byte> changed(whole.view().begin(), whole.view().end());
    changed[prng.below(changed.size())] = static_cast<std::byte>(prng.below(256));
    const auto other = Codec<Message>::decode(Bytes::copy_of(changed), kVersion);
    if (other) EXPECT_FALSE(encode(*other).empty());
  }
}

causality::PartitionStore a_store() {
  causality::PartitionStore store;
  causality::CellStore cell = *causality::testing::any_cell();
  store.absorb(causality::testing::any_row(), causality::ColumnId{3}, std::move(cell));
  store.absorb(causality::RangeDelete{.range = *causality::testing::any_range(),
                                      .store = *causality::testing::any_cell()});
  return store;
}

RC_GTEST_PROP(ReplicationMessages, ReadsBack, ()) {
  const causality::Clock clock = *causality::testing::any_clock();
  check(ApplyMessage{.epoch = causality::Epoch{3},
                     .table = storage::TableId{7},
                     .partition = bytes("partition"),
                     .delta = causality::testing::delta_of({causality::actor_of(1, 1), 5})});
  check(ReadReply{.rows = {{.partition = a_store(),
                            .clock = clock,
                            .wall = causality::WallTime{77},
                            .is_newer_than_clock = true}}});
  check(ReadReply{.rows = {},
                  .digest = base::Hash128{.high = 5, .low = 6},
                  .digest_wall = causality::WallTime{78}});
  RowsAnswer digest;
  digest.more = true;
  digest.wall = causality::WallTime{79};
  digest.digest = base::Hash128{.high = 7, .low = 8};
  check(digest);
  RowsAnswer answer;
  answer.clock = clock;
  answer.more = true;
  answer.wall = causality::WallTime{78};
  answer.is_newer_than_clock = true;
  answer.rows.push_back({.partition = bytes("p"), .row = bytes("r"), .stored = a_store()});
  check(answer);
  check(ClockReply{.clock = clock, .floor = causality::Timestamp{-4}});
  check(AnnounceMessage{.wall = causality::WallTime{12},
                        .clocks = {{.tablet = storage::TabletId{3},
                                    .epoch = causality::Epoch{2},
                                    .life = 77,
                                    .clock = clock},
                                   {.tablet = storage::TabletId{std::uint64_t{5} << 32},
                                    .epoch = causality::Epoch{1},
                                    .life = 1,
                                    .clock = {}}}});
  check(PullMessage{.tablet = storage::TabletId{3},
                    .epoch = causality::Epoch{2},
                    .clock = clock,
                    .bytes_max = 4096});
  check(PullReply{.mutations = {{.table = storage::TableId{7},
                                 .partition = bytes("partition"),
                                 .delta = causality::encoded(causality::testing::delta_of(
                                     {causality::actor_of(1, 1), 5}))}},
                  .complete = false,
                  .withheld = clock,
                  .covered = *causality::testing::any_clock()});
  check(StreamOpenReply{.stream = 77,
                        .clock = clock,
                        .floor = causality::Timestamp{-9},
                        .dropped_before = causality::WallTime{5},
                        .newest_operation = causality::OperationTime{1234},
                        .tables = {{.table = storage::TableId{3}, .has_entries = true},
                                   {.table = storage::TableId{9}, .has_entries = false}}});
}

TEST(ReplicationMessages, RequestsReadBack) {
  WriteMessage write;
  write.epoch = causality::Epoch{2};
  write.level = model::Consistency::each_quorum;
  write.write.table = storage::TableId{9};
  write.write.partition = bytes("p");
  write.write.explicit_timestamp = true;
  write.write.unites_clocks = true;
  write.write.columns.of_rows = {causality::ColumnId{1}, causality::ColumnId{2}};
  write.write.columns.of_first = {causality::ColumnId{4}};
  causality::Mutation& mutation = write.write.mutation;
  mutation.context = causality::Context{.epoch = causality::Epoch{2}, .floor = {}, .dots = {}};
  mutation.operation = causality::OperationId{std::byte{1}};
  mutation.timestamp = causality::Timestamp{-17};
  mutation.timestamp_is_explicit = true;
  mutation.remembered_until = causality::WallTime{99};
  mutation.cells.push_back({.row = bytes("r"),
                            .column = causality::ColumnId{1},
                            .kind = causality::VersionKind::deletion,
                            .expires = causality::WallTime{5},
                            .amount = -3,
                            .value = bytes("v")});
  mutation.deleted_ranges = {{}, {.from = bytes("a"), .to = bytes("b")}};
  check(write);
  const auto read = Codec<WriteMessage>::decode(encode(write), kVersion);
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(read->level, write.level);
  EXPECT_EQ(read->write.mutation.cells, mutation.cells);
  EXPECT_EQ(read->write.mutation.deleted_ranges, mutation.deleted_ranges);
  EXPECT_EQ(read->write.mutation.operation, mutation.operation);
  EXPECT_EQ(read->write.mutation.context, mutation.context);

  check(WriteReply{.met = true, .report = {.required = 2, .received = 2, .failed = 1}});
  WriteReply minted{.met = true, .report = {.required = 2, .received = 2, .failed = 0}};
  minted.delta.emplace();
  minted.delta->dot = {.actor = causality::actor_of(1, 2), .counter = 3};
  minted.delta->timestamp = causality::Timestamp{7};
  check(minted);
  check(ApplyReply{});
  check(ReadMessage{.epoch = causality::Epoch{1},
                    .table = storage::TableId{1},
                    .at_one_moment = true,
                    .rows = {{.partition = bytes("p"), .row = bytes("a")},
                             {.partition = bytes("p"), .row = {}}}});
  ScanMessage scan;
  scan.request.table = storage::TableId{4};
  scan.request.partitions = {.from = bytes("a"), .to = bytes("z")};
  scan.request.from = RowsRequest::From::row;
  scan.request.partition = bytes("p");
  scan.request.row = bytes("r");
  scan.request.backwards = true;
  scan.request.rows_max = 256;
  check(scan);
  RepairReply repaired{.applied = 3, .complete = false};
  check(repaired);
  check(ClockMessage{
      .epoch = causality::Epoch{1}, .table = storage::TableId{1}, .partition = bytes("p")});
  check(AnnounceReply{.known = {std::nullopt, 5, 0}});
  check(PullReply{});
  check(StreamOpenMessage{.tablet = storage::TabletId{5}, .epoch = causality::Epoch{2}});
  check(StreamPageMessage{.tablet = storage::TabletId{5},
                          .stream = 9,
                          .table = storage::TableId{7},
                          .after = bytes("key"),
                          .bytes_max = 12,
                          .is_over = true});
  check(StreamPageReply{.entries = {{.key = bytes("p1a"), .partition_size = 1, .entry = bytes("x")},
                                    {.key = bytes("p1b"), .partition_size = 1, .entry = {}}},
                        .complete = false});
}

template <class Message>
void expect_refused(const Message& message) {
  EXPECT_TRUE(Codec<Message>::decode(encode(message), kVersion).failed_with(base::Errc::corrupt));
}

TEST(ReplicationMessages, AnnouncementsAndPullsKeepToTheirLimits) {
  AnnounceMessage announce;
  expect_refused(announce);
  for (std::size_t i = 0; i <= AnnounceMessage::kClocksMax; ++i) {
    announce.clocks.push_back(
        {.tablet = storage::TabletId{i}, .epoch = {}, .life = i, .clock = {}});
  }
  expect_refused(announce);
  announce.clocks.pop_back();
  check(AnnounceMessage{.wall = {}, .clocks = {announce.clocks.front(), announce.clocks.back()}});
  EXPECT_TRUE(Codec<AnnounceMessage>::decode(encode(announce), kVersion).has_value());
  // A tablet once, and in order.
  announce.clocks.back().tablet = storage::TabletId{5};
  expect_refused(announce);
  AnnounceReply reply;
  reply.known.resize(AnnounceMessage::kClocksMax + 1);
  expect_refused(reply);
  expect_refused(PullMessage{.tablet = {}, .epoch = {}, .clock = {}, .bytes_max = 0});
  expect_refused(
      PullMessage{.tablet = {}, .epoch = {}, .clock = {}, .bytes_max = PullMessage::kBytesMax + 1});
}

TEST(ReplicationMessages, StreamsAreInOrder) {
  expect_refused(StreamOpenReply{.stream = 1,
                                 .clock = {},
                                 .floor = {},
                                 .dropped_before = {},
                                 .newest_operation = {},
                                 .tables = {{.table = storage::TableId{9}, .has_entries = true},
                                            {.table = storage::TableId{9}, .has_entries = true}}});
  expect_refused(StreamPageMessage{
      .tablet = {}, .stream = 0, .table = {}, .after = {}, .bytes_max = 0, .is_over = false});
  StreamPageReply page;
  page.entries = {{.key = bytes("p1b"), .partition_size = 1, .entry = {}},
                  {.key = bytes("p1a"), .partition_size = 1, .entry = {}}};
  expect_refused(page);
  page.entries[1].key = bytes("p1b");
  expect_refused(page);
  page.entries[1].key = bytes("p1c");
  EXPECT_TRUE(Codec<StreamPageReply>::decode(encode(page), kVersion).has_value());
  page.entries[1].partition_size = 3;
  expect_refused(page);
  page.entries[1].partition_size = 0;
  expect_refused(page);
}

TEST(ReplicationMessages, WhatIsOutOfRangeIsRefused) {
  ReadMessage none;
  none.rows.clear();
  EXPECT_TRUE(Codec<ReadMessage>::decode(encode(none), kVersion).failed_with(base::Errc::corrupt));
  ScanMessage scan;
  scan.request.rows_max = kAnswerRowsMax + 1;
  EXPECT_TRUE(Codec<ScanMessage>::decode(encode(scan), kVersion).failed_with(base::Errc::corrupt));
  scan.request.rows_max = 0;
  EXPECT_TRUE(Codec<ScanMessage>::decode(encode(scan), kVersion).failed_with(base::Errc::corrupt));
}

}  // namespace
}  // namespace helenus::replication
