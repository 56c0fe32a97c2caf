// What the engine itself writes as bytes: mutation records, the metadata of sstables, the folder's
// file and the manifest. Each comes back as it was, no part of one passes for a whole one, and what
// version one wrote is read for ever.
#include <fstream>
#include <functional>
#include <iterator>
#include <string>

#include <gtest/gtest.h>

#include "causality/codec.h"
#include "storage/engine/directory_set.h"
#include "storage/engine/engine_folder.h"
#include "storage/engine/engine_test_support.h"
#include "storage/manifest/knowledge.h"
#include "storage/manifest/manifest.h"
#include "storage/mutations/mutation_file.h"
#include "storage/mutations/mutation_record.h"

namespace helenus::storage::testing {
namespace {

using base::Bytes;
using base::Errc;
using causality::actor_of;

std::string golden(const std::string& name) {
  std::ifstream file(std::string(HELENUS_TESTDATA "/") + name, std::ios::binary);
  EXPECT_TRUE(file.is_open()) << name;
  return {std::istreambuf_iterator<char>(file), {}};
}

// Every shorter one fails, and so does one with a byte more.
void expect_only_whole(const std::string& whole, const std::function<bool(const Bytes&)>& decodes) {
  EXPECT_TRUE(decodes(Bytes::copy_of(whole)));
  for (std::size_t size = 0; size < whole.size(); ++size) {
    EXPECT_FALSE(decodes(Bytes::copy_of(whole.substr(0, size)))) << size;
  }
  EXPECT_FALSE(decodes(Bytes::copy_of(whole + '\0')));
}

// The mutation that docs/formats/mutation-record.md takes apart.
causality::Delta delta_of_the_example() {
  causality::Clock clock;
  auto delta = causality::mint(clock, actor_of(3, 1), causality::Epoch{1}, causality::Policy::lww,
                               put_of("r", "red", 1000), causality::kTimestampMin);
  return *std::move(delta);
}

std::string record_of_the_example() {
  base::Buffer buffer;
  encode_mutation(TabletId{2}, Replication::none, base::as_bytes("plum"), delta_of_the_example(),
                  buffer);
  return std::string(base::as_text(buffer.view()));
}

bool decodes_as_mutation(const Bytes& bytes) {
  const auto record = decode_mutation(bytes);
  return record && causality::decode_delta(record->delta).has_value();
}

TEST(MutationRecord, RoundTripsAndOnlyWhole) {
  const std::string whole = record_of_the_example();
  const auto record = decode_mutation(Bytes::copy_of(whole));
  ASSERT_TRUE(record.has_value());
  EXPECT_EQ(record->tablet, TabletId{2});
  EXPECT_EQ(record->replication, Replication::none);
  EXPECT_EQ(base::as_text(record->partition), "plum");
  EXPECT_EQ(*causality::decode_delta(record->delta), delta_of_the_example());
  expect_only_whole(whole, decodes_as_mutation);
}

TEST(MutationRecord, AnotherVersionAndAKeyThatCannotBeAreRefused) {
  for (const char version : {'\0', '\2'}) {
    std::string other = record_of_the_example();
    other[0] = version;
    EXPECT_TRUE(decode_mutation(Bytes::copy_of(other)).failed_with(Errc::unsupported));
  }
  std::string unknown_birth = record_of_the_example();
  unknown_birth[1] = 2;
  EXPECT_TRUE(decode_mutation(Bytes::copy_of(unknown_birth)).failed_with(Errc::corrupt));
  base::Buffer empty;
  encode_mutation(TabletId{2}, Replication::peers, {}, delta_of_the_example(), empty);
  EXPECT_TRUE(decode_mutation(std::move(empty).freeze()).failed_with(Errc::corrupt));
}

TEST(MutationRecord, StreamsNameTableAndShard) {
  for (const std::uint64_t table : {std::uint64_t{0}, std::uint64_t{7}, kTableIdMax}) {
    for (const std::uint32_t shard : {0U, 1U, kShardsMax - 1}) {
      const TableId stream = stream_of(TableId{table}, ShardNumber{shard});
      EXPECT_EQ(table_of_stream(stream), TableId{table});
      EXPECT_EQ(shard_of_stream(stream), ShardNumber{shard});
    }
  }
}

// The metadata that docs/formats/engine.md takes apart.
SstableMetadata metadata_of_the_example() {
  SstableMetadata metadata{.table = TableId{7},
                           .freeze_first = FreezeNumber{3},
                           .freeze_last = FreezeNumber{5},
                           .deleted_ranges = 1,
                           .at_last_freeze = {}};
  TabletKnowledge& knowledge = metadata.at_last_freeze[TabletId{2}];
  knowledge.base.add(causality::DotRange{actor_of(3, 1), 1, 9});
  knowledge.stable.dots.add(causality::DotRange{actor_of(3, 1), 1, 4});
  knowledge.stable.wall = causality::WallTime{1000};
  metadata.at_last_freeze[TabletId{6}] = {};
  metadata.cells = 300;
  Garbage& garbage = metadata.garbage[TabletId{2}];
  garbage.deletes = 5;
  garbage.increments = 6;
  garbage.expiring.add(causality::WallTime{2000});
  garbage.expiring.add(causality::WallTime{2000});
  garbage.up_to.add(causality::DotRange{actor_of(3, 1), 1, 9});
  metadata.named_above[TabletId{2}].add(causality::Dot{actor_of(3, 1), 11});
  metadata.newest_write = causality::Timestamp{70'000};
  return metadata;
}

void expect_same(const SstableMetadata& found, const SstableMetadata& wanted) {
  EXPECT_EQ(found.table, wanted.table);
  EXPECT_EQ(found.freeze_first, wanted.freeze_first);
  EXPECT_EQ(found.freeze_last, wanted.freeze_last);
  EXPECT_EQ(found.deleted_ranges, wanted.deleted_ranges);
  EXPECT_EQ(found.cells, wanted.cells);
  EXPECT_EQ(found.garbage, wanted.garbage);
  EXPECT_EQ(found.newest_write, wanted.newest_write);
  EXPECT_EQ(found.named_above, wanted.named_above);
  ASSERT_EQ(found.at_last_freeze.size(), wanted.at_last_freeze.size());
  for (const auto& [tablet, knowledge] : wanted.at_last_freeze) {
    const auto at = found.at_last_freeze.find(tablet);
    ASSERT_TRUE(at != found.at_last_freeze.end());
    EXPECT_EQ(at->second.base, knowledge.base);
    EXPECT_EQ(at->second.stable.dots, knowledge.stable.dots);
    EXPECT_EQ(at->second.stable.wall, knowledge.stable.wall);
  }
}

TEST(SstableMetadata, RoundTripsAndOnlyWhole) {
  const Bytes whole = encode(metadata_of_the_example());
  const auto decoded = decode_sstable_metadata(whole);
  ASSERT_TRUE(decoded.has_value());
  expect_same(*decoded, metadata_of_the_example());
  expect_only_whole(std::string(whole.text()),
                    [](const Bytes& bytes) { return decode_sstable_metadata(bytes).has_value(); });
}

TEST(SstableMetadata, AnotherVersionAndFreezesOutOfOrderAreRefused) {
  for (const char version : {'\0', '\2'}) {
    std::string other(encode(metadata_of_the_example()).text());
    other[0] = version;
    EXPECT_TRUE(decode_sstable_metadata(Bytes::copy_of(other)).failed_with(Errc::unsupported));
  }
  SstableMetadata disordered = metadata_of_the_example();
  std::swap(disordered.freeze_first, disordered.freeze_last);
  EXPECT_TRUE(decode_sstable_metadata(encode(disordered)).failed_with(Errc::corrupt));
}

TEST(EngineFolder, RoundTripsAndOnlyWhole) {
  for (const std::uint32_t shards : {1U, 8U, kShardsMax}) {
    EXPECT_EQ(decode_folder_file(encode_folder_file(shards)), shards);
  }
  expect_only_whole(std::string(encode_folder_file(8).text()),
                    [](const Bytes& bytes) { return decode_folder_file(bytes).has_value(); });
}

TEST(EngineFolder, EveryFlippedBitAndALaterVersionAreRefused) {
  const std::string whole(encode_folder_file(8).text());
  for (std::size_t bit = 0; bit < whole.size() * 8; ++bit) {
    std::string damaged = whole;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << (bit % 8)));
    EXPECT_FALSE(decode_folder_file(base::as_bytes(damaged)).has_value()) << bit;
  }
  std::string later = whole;
  later[8] = 2;
  EXPECT_TRUE(decode_folder_file(base::as_bytes(later)).failed_with(Errc::unsupported));
}

// The manifest that docs/formats/manifest.md takes apart.
base::Uuid node_of_the_examples() {
  base::Uuid::Octets octets;
  for (std::size_t at = 0; at < octets.size(); ++at) octets[at] = std::byte(0x20 + at);
  return base::Uuid(octets);
}
ManifestState manifest_of_the_example() {
  ManifestState state;
  state.next_file = FileNumber{4};
  state.next_freeze = FreezeNumber{6};
  FlushedLog flushed;
  flushed.add_before(2);
  flushed.add(0, {{2, 1}, 4096});
  state.tables[TableId{7}] = {
      .options = {.filter = TableFilter{.kind = FilterKind::bloom, .false_positive_rate = 0.001}},
      .flushed = flushed,
      .sstables = {{.number = FileNumber{3},
                    .directory = 0,
                    .bytes = 700,
                    .keys = 2,
                    .freeze_first = FreezeNumber{3},
                    .freeze_last = FreezeNumber{5},
                    .key_first = Bytes::copy_of("apple"),
                    .key_last = Bytes::copy_of("plum")}}};
  TabletRecord tablet{
      .range = {.from = {}, .to = Bytes::copy_of("q")}, .actor = actor_of(3, 1), .clock = {}};
  tablet.clock.add(causality::DotRange{actor_of(3, 1), 1, 9});
  tablet.shed.add(causality::DotRange{actor_of(3, 1), 2, 4});
  tablet.shed_largest = causality::Timestamp{1000};
  state.tablets[TabletId{2}] = tablet;
  state.mutation_files = {{.number = FileNumber{2},
                           .directory = 1,
                           .bytes = 400,
                           .keys = 5,
                           .freeze_first = FreezeNumber{4},
                           .freeze_last = FreezeNumber{4},
                           .key_first = Bytes::copy_of("a"),
                           .key_last = Bytes::copy_of("b")}};
  state.dropped_ranges = {{.from = Bytes::copy_of("x"), .to = {}}};
  state.set_aside[FileNumber{3}] = {{.from = {}, .to = Bytes::copy_of("b")}};
  state.generation = 9;
  state.log_reached = {.core = 0, .position = {{2, 1}, 8192}};
  state.node = node_of_the_examples();
  return state;
}

// Those that docs/formats/engine.md takes apart.
DirectoryMarker marker_of_the_example() {
  base::Uuid::Octets octets;
  for (std::size_t at = 0; at < octets.size(); ++at) octets[at] = std::byte(0x10 + at);
  DirectoryMarker marker{.folder = base::Uuid(octets), .index = 1, .directories = 2, .start = 9};
  marker.node = node_of_the_examples();
  return marker;
}
Generations generations_of_the_example() {
  return {{0, 12}, {3, 300}};
}

// The metadata that docs/formats/mutation-log.md takes apart.
MutationFileMetadata mutations_of_the_example() {
  MutationFileMetadata metadata;
  metadata[TabletId{2}].dots.add(causality::DotRange{actor_of(3, 1), 5, 9});
  metadata[TabletId{2}].largest = causality::Timestamp{1000};
  metadata[TabletId{6}].dots.add(causality::Dot{actor_of(4, 2), 1});
  return metadata;
}

TEST(MutationFileMetadata, RoundTripsAndOnlyWhole) {
  const Bytes whole = encode(mutations_of_the_example());
  EXPECT_EQ(decode_mutation_file_metadata(whole), mutations_of_the_example());
  expect_only_whole(std::string(whole.text()), [](const Bytes& bytes) {
    return decode_mutation_file_metadata(bytes).has_value();
  });
}

TEST(MutationFileMetadata, WhatIsNoneAndWhatCannotBeIsRefused) {
  const auto decode = [](const MutationFileMetadata& metadata) {
    return decode_mutation_file_metadata(encode(metadata));
  };
  EXPECT_TRUE(decode_mutation_file_metadata(encode(metadata_of_the_example()))
                  .failed_with(Errc::unsupported));
  std::string later(encode(mutations_of_the_example()).text());
  later[1] = 2;
  EXPECT_TRUE(decode_mutation_file_metadata(Bytes::copy_of(later)).failed_with(Errc::unsupported));
  MutationFileMetadata empty = mutations_of_the_example();
  empty[TabletId{7}] = {};
  EXPECT_TRUE(decode(empty).failed_with(Errc::corrupt));
  MutationFileMetadata closed = mutations_of_the_example();
  closed[TabletId{7}].dots.close(actor_of(1, 1));
  EXPECT_TRUE(decode(closed).failed_with(Errc::corrupt));
}

TEST(MutationFile, KeysSortAsTabletsAndDotsDo) {
  std::vector<TabletDot> places;
  for (const std::uint64_t tablet : {std::uint64_t{0}, std::uint64_t{255}, std::uint64_t{256}}) {
    for (const std::uint32_t node : {1U, 300U}) {
      for (const std::uint32_t incarnation : {1U, 256U}) {
        for (const std::uint64_t counter : {std::uint64_t{1}, std::uint64_t{1} << 40}) {
          places.push_back({TabletId{tablet}, {actor_of(node, incarnation), counter}});
        }
      }
    }
  }
  std::string before;
  for (const TabletDot& place : places) {
    const MutationKey key = mutation_key(place.tablet, place.dot);
    EXPECT_EQ(decode_mutation_key(key), place);
    const std::string text(base::as_text(key));
    EXPECT_LT(before, text);
    before = text;
  }
  EXPECT_TRUE(decode_mutation_key(base::as_bytes("short")).failed_with(Errc::corrupt));
}

TEST(MutationFileMetadata, HasTheNewestOperationIdOfEachTablet) {
  MutationFileMetadata metadata = mutations_of_the_example();
  metadata[TabletId{6}].newest_operation = causality::OperationTime{1'700'000'000'000};
  EXPECT_EQ(decode_mutation_file_metadata(encode(metadata)), metadata);
  const std::string without(encode(mutations_of_the_example()).text());
  // No ids written down, ids of a tablet that has nothing, of one twice, and an id that is none.
  for (const std::string_view tail :
       {std::string_view("\0", 1), std::string_view("\1\7\2"), std::string_view("\2\2\2\2\2"),
        std::string_view("\1\2\xff\xff\xff\xff\xff\xff\xff\xff\xff\1")}) {
    EXPECT_TRUE(decode_mutation_file_metadata(Bytes::copy_of(without + std::string(tail)))
                    .failed_with(Errc::corrupt));
  }
}

TEST(MutationFile, OperationsSortBehindMutationsAndAsTheirIdsDo) {
  std::string before(base::as_text(mutation_key(TabletId{1U << 30}, {actor_of(9, 9), 9})));
  for (const std::uint64_t tablet : {std::uint64_t{0}, std::uint64_t{256}}) {
    for (const unsigned id : {1U, 200U}) {
      for (const std::uint64_t counter : {std::uint64_t{1}, std::uint64_t{300}}) {
        IndexedOperation indexed{.tablet = TabletId{tablet}, .operation = {}, .dot = {}};
        indexed.operation[0] = static_cast<std::byte>(id);
        indexed.dot = {actor_of(1, 1), counter};
        const OperationKey key = operation_key(indexed);
        EXPECT_TRUE(is_operation_key(key));
        EXPECT_EQ(decode_operation_key(key), indexed);
        const std::string text(base::as_text(key));
        EXPECT_LT(before, text);
        EXPECT_LE(base::as_text(operation_begin(indexed.tablet, indexed.operation)), text);
        before = text;
      }
    }
  }
  EXPECT_FALSE(is_operation_key(mutation_key(TabletId{1}, {actor_of(1, 1), 1})));
  EXPECT_TRUE(decode_operation_key(base::as_bytes("short")).failed_with(Errc::corrupt));
}

TEST(MutationFile, AValueIsTheTableAndTheRecord) {
  base::Buffer buffer;
  encode_mutation_value(TableId{300}, base::as_bytes("record"), buffer);
  const auto value = decode_mutation_value(std::move(buffer).freeze());
  ASSERT_TRUE(value.has_value());
  EXPECT_EQ(value->table, TableId{300});
  EXPECT_EQ(value->record.text(), "record");
  EXPECT_TRUE(decode_mutation_value(Bytes::copy_of("\x80")).failed_with(Errc::corrupt));
}

TEST(EngineGolden, EveryVersionReadsForEver) {
  const auto mutation = decode_mutation(Bytes::copy_of(golden("mutation-record-v1")));
  ASSERT_TRUE(mutation.has_value());
  EXPECT_EQ(mutation->replication, Replication::none);
  EXPECT_EQ(*causality::decode_delta(mutation->delta), delta_of_the_example());
  const auto metadata = decode_sstable_metadata(Bytes::copy_of(golden("sstable-metadata-v1")));
  ASSERT_TRUE(metadata.has_value());
  expect_same(*metadata, metadata_of_the_example());
  EXPECT_EQ(decode_mutation_file_metadata(Bytes::copy_of(golden("mutation-file-metadata-v1"))),
            mutations_of_the_example());
  EXPECT_EQ(decode_folder_file(base::as_bytes(golden("engine-v1"))), 8U);
  EXPECT_EQ(decode_manifest(Bytes::copy_of(golden("manifest-v2"))), manifest_of_the_example());
  ManifestState of_nobody = manifest_of_the_example();
  of_nobody.node.reset();
  EXPECT_EQ(decode_manifest(Bytes::copy_of(golden("manifest-v1"))), of_nobody);
  EXPECT_EQ(decode_directory_marker(base::as_bytes(golden("place-v2"))), marker_of_the_example());
  DirectoryMarker without_node = marker_of_the_example();
  without_node.node.reset();
  EXPECT_EQ(decode_directory_marker(base::as_bytes(golden("place-v1"))), without_node);
  EXPECT_EQ(decode_generations(base::as_bytes(golden("generations-v1"))),
            generations_of_the_example());
}

TEST(EngineGolden, TheNewestVersionIsWhatIsWritten) {
  const auto hex = [](const std::string& text) { return base::to_hex(base::as_bytes(text)); };
  EXPECT_EQ(hex(record_of_the_example()), hex(golden("mutation-record-v1")));
  EXPECT_EQ(base::to_hex(encode(metadata_of_the_example())), hex(golden("sstable-metadata-v1")));
  EXPECT_EQ(base::to_hex(encode(mutations_of_the_example())),
            hex(golden("mutation-file-metadata-v1")));
  EXPECT_EQ(base::to_hex(encode_folder_file(8)), hex(golden("engine-v1")));
  EXPECT_EQ(base::to_hex(encode(manifest_of_the_example())), hex(golden("manifest-v2")));
  EXPECT_EQ(base::to_hex(encode(marker_of_the_example())), hex(golden("place-v2")));
  EXPECT_EQ(base::to_hex(encode_generations(generations_of_the_example())),
            hex(golden("generations-v1")));
}

}  // namespace
}  // namespace helenus::storage::testing
