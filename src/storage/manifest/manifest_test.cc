#include "storage/manifest/manifest.h"

#include <limits>
#include <string>

#include <gtest/gtest.h>

namespace helenus::storage {
namespace {

using base::Errc;

SstableRecord file_numbered(std::uint64_t number) {
  return {.number = FileNumber{number},
          .directory = static_cast<std::uint32_t>(number % 3),
          .bytes = 1000 * number,
          .keys = 10 * number,
          .freeze_first = FreezeNumber{number},
          .freeze_last = FreezeNumber{number + 1},
          .key_first = base::Bytes::copy_of("a"),
          .key_last = base::Bytes::copy_of("zz")};
}

ManifestState some_state() {
  ManifestState state;
  state.next_file = FileNumber{300};
  state.next_freeze = FreezeNumber{400};
  FlushedLog flushed;
  flushed.add_before(3);
  flushed.add(0, {{3, 1}, 4096});
  flushed.add(5, {{4, 9}, 512});
  state.tables[TableId{7}] = {.options = {.policy = causality::Policy::siblings},
                              .flushed = flushed,
                              .sstables = {file_numbered(1), file_numbered(299)}};
  state.tables[TableId{9}] = {};
  state.tables[TableId{10}].options.filter = TableFilter{.kind = FilterKind::none};
  state.tables[TableId{11}].options.filter =
      TableFilter{.kind = FilterKind::cuckoo, .bits_per_hash = 12};
  state.tables[TableId{12}].options.filter =
      TableFilter{.kind = FilterKind::bloom, .false_positive_rate = 0.25};
  TabletRecord tablet{.range = {.from = {}, .to = base::Bytes::copy_of("k")},
                      .actor = causality::actor_of(3, 1),
                      .clock = {}};
  tablet.clock.add(causality::DotRange{causality::actor_of(3, 1), 1, 70000});
  tablet.clock.add(causality::Dot{causality::actor_of(4, 2), 9});
  tablet.shed.add(causality::Dot{causality::actor_of(4, 2), 9});
  tablet.shed_largest = causality::Timestamp{-17};
  state.tablets[TabletId{0}] = tablet;
  state.tablets[TabletId{255}] = {.range = {.from = base::Bytes::copy_of("k"), .to = {}},
                                  .actor = causality::actor_of(3, 2),
                                  .clock = {}};
  state.mutation_files = {file_numbered(2), file_numbered(17)};
  state.dropped_ranges = {{.from = {}, .to = base::Bytes::copy_of("b")},
                          {.from = base::Bytes::copy_of("b"), .to = base::Bytes::copy_of("c")},
                          {.from = base::Bytes::copy_of("x"), .to = {}}};
  state.tablets[TabletId{255}].covered.add(causality::Dot{causality::actor_of(3, 2), 4});
  state.set_aside[FileNumber{1}] = {{.from = {}, .to = base::Bytes::copy_of("b")}};
  state.set_aside[FileNumber{299}] = {};
  state.generation = 1000;
  state.log_reached = {.core = 5, .position = {{4, 9}, 512}};
  return state;
}

TEST(Manifest, RoundTrips) {
  for (const ManifestState& state : {ManifestState(), some_state()}) {
    const auto decoded = decode_manifest(encode(state));
    ASSERT_TRUE(decoded.has_value()) << decoded.error().to_string();
    EXPECT_EQ(*decoded, state);
  }
}

TEST(Manifest, TheWorkedExampleOfTheFormatIsWhatIsWritten) {
  EXPECT_EQ(base::to_hex(encode(ManifestState())),
            "484c4e534d4e4654020101000000000000000000000000000000000000000000000073a97e92");
}

TEST(Manifest, EveryTruncationAndEveryFlippedBitIsAnError) {
  const std::string whole(encode(some_state()).text());
  for (std::size_t size = 0; size < whole.size(); ++size) {
    EXPECT_FALSE(decode_manifest(base::Bytes::copy_of(whole.substr(0, size))).has_value());
  }
  for (std::size_t bit = 0; bit < whole.size() * 8; ++bit) {
    std::string damaged = whole;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << (bit % 8)));
    EXPECT_FALSE(decode_manifest(base::Bytes::copy_of(damaged)).has_value()) << "bit " << bit;
  }
}

TEST(Manifest, ALaterVersionIsNamedAsSuch) {
  std::string later(encode(some_state()).text());
  later[8] = 5;
  EXPECT_TRUE(decode_manifest(base::Bytes::copy_of(later)).failed_with(Errc::unsupported));
}

TEST(Manifest, NumbersNotGivenYetAreRefusedThoughTheChecksumHolds) {
  ManifestState state = some_state();
  state.next_file = FileNumber{299};
  EXPECT_TRUE(decode_manifest(encode(state)).failed_with(Errc::corrupt));
  state = some_state();
  state.next_freeze = FreezeNumber{300};
  EXPECT_TRUE(decode_manifest(encode(state)).failed_with(Errc::corrupt));
  state = some_state();
  state.mutation_files.push_back(file_numbered(300));
  EXPECT_TRUE(decode_manifest(encode(state)).failed_with(Errc::corrupt));
}

TEST(Manifest, AFilterThatCannotBeIsRefusedThoughTheChecksumHolds) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  for (const TableFilter& filter : {
           TableFilter{.kind = FilterKind::consistent_cuckoo, .false_positive_rate = 0.01},
           TableFilter{.kind = FilterKind::none, .bits_per_hash = 8},
           TableFilter{.kind = FilterKind::bloom, .false_positive_rate = 0.6},
           TableFilter{.kind = FilterKind::bloom, .false_positive_rate = kNan},
           TableFilter{.kind = FilterKind::cuckoo, .false_positive_rate = 1e-6},
           TableFilter{.kind = FilterKind::cuckoo, .bits_per_hash = kNan},
           TableFilter{.kind = FilterKind::cuckoo, .bits_per_hash = 33},
           TableFilter{.kind = static_cast<FilterKind>(kFilterKinds.size())},
       }) {
    ManifestState state;
    state.tables[TableId{1}].options.filter = filter;
    EXPECT_TRUE(decode_manifest(encode(state)).failed_with(Errc::corrupt));
  }
}

TEST(Manifest, FilesOutOfOrderAreRefusedThoughTheChecksumHolds) {
  ManifestState state = some_state();
  std::swap(state.tables[TableId{7}].sstables[0], state.tables[TableId{7}].sstables[1]);
  EXPECT_TRUE(decode_manifest(encode(state)).failed_with(Errc::corrupt));
  state = some_state();
  std::swap(state.mutation_files[0], state.mutation_files[1]);
  EXPECT_TRUE(decode_manifest(encode(state)).failed_with(Errc::corrupt));
  state = some_state();
  std::swap(state.dropped_ranges[0], state.dropped_ranges[1]);
  EXPECT_TRUE(decode_manifest(encode(state)).failed_with(Errc::corrupt));
  state = some_state();
  std::swap(state.tables[TableId{7}].sstables[0].key_first,
            state.tables[TableId{7}].sstables[0].key_last);
  EXPECT_TRUE(decode_manifest(encode(state)).failed_with(Errc::corrupt));
}

TEST(Manifest, RemembersHowFilesAreMerged) {
  ManifestState state = some_state();
  state.tables[TableId{7}].options.compaction = {.rule = CompactionRule::leveled,
                                                 .enabled = false,
                                                 .files_min = 2,
                                                 .files_max = 9,
                                                 .small_bytes = 0,
                                                 .file_bytes = 1 << 20,
                                                 .fanout = 4};
  state.tables[TableId{7}].sstables.back().level = 3;
  state.tables[TableId{9}].options.compaction = {.rule = CompactionRule::time_window,
                                                 .window = std::chrono::hours(3)};
  const base::Bytes bytes = encode(state);
  const auto decoded = decode_manifest(bytes);
  ASSERT_TRUE(decoded.has_value()) << decoded.error().to_string();
  EXPECT_EQ(*decoded, state);
  EXPECT_EQ(encode(*decoded), bytes);
  // A level alone, without a rule or an index.
  ManifestState leveled;
  leveled.next_file = FileNumber{3};
  leveled.next_freeze = FreezeNumber{3};
  leveled.tables[TableId{7}].sstables = {file_numbered(1)};
  leveled.tables[TableId{7}].sstables.back().level = 1;
  EXPECT_EQ(decode_manifest(encode(leveled)), leveled);
  for (const CompactionStrategy& wrong :
       {CompactionStrategy{.files_min = 1}, CompactionStrategy{.files_min = 5, .files_max = 4},
        CompactionStrategy{.file_bytes = 0}, CompactionStrategy{.fanout = 1},
        CompactionStrategy{.window = std::chrono::milliseconds(1)}}) {
    EXPECT_TRUE(validate(wrong).failed_with(Errc::invalid_argument));
    leveled.tables[TableId{7}].options.compaction = wrong;
    EXPECT_TRUE(decode_manifest(encode(leveled)).failed_with(Errc::corrupt));
  }
}

}  // namespace
}  // namespace helenus::storage
