#include "cli/sstable_command.h"

#include <string>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "causality/codec.h"
#include "storage/compaction/merge_writer.h"
#include "storage/sstable/sstable_test_support.h"

namespace helenus::cli {
namespace {

using runtime::Runtime;
using runtime::Task;
using storage::Rows;
using storage::SimMachine;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

const std::string kPath = "/table.sst";

TEST(SstableCommand, HelpIsTextAndNoError) {
  const ParsedCommand parsed = parse_sstable_command({"--help"});
  EXPECT_FALSE(parsed.command.has_value());
  EXPECT_EQ(parsed.exit_code, kExitWell);
  for (const char* word : {"dump", "verify", "statistics"}) {
    EXPECT_THAT(parsed.text, HasSubstr(word));
  }
  EXPECT_THAT(parse_sstable_command({"dump", "--help"}).text, HasSubstr("--limit"));
}

TEST(SstableCommand, BadArgumentsAreALineAndExitCodeTwo) {
  const std::vector<std::vector<std::string>> wrong = {
      {},
      {"frob"},
      {"dump"},
      {"dump", "--limit", "many", "file"},
      {"dump", "--no-such-option", "file"},
      {"dump", "--from", "0xabc", "file"},
      {"dump", "--from", "0xzz", "file"},
      {"dump", "--raw", "--values", "file"},
      {"verify"},
      {"statistics", "--hex", "file"},
  };
  for (const auto& words : wrong) {
    const ParsedCommand parsed = parse_sstable_command(words);
    EXPECT_FALSE(parsed.command.has_value());
    EXPECT_EQ(parsed.exit_code, kExitBadArguments);
    EXPECT_THAT(parsed.text, StartsWith("helenus-sstable: "));
    EXPECT_EQ(std::ranges::count(parsed.text, '\n'), 1);
  }
}

TEST(SstableCommand, AKeyToBeginFromIsTextOrHexadecimal) {
  EXPECT_EQ(parse_sstable_command({"dump", "--from", "abc", "f"}).command->from, "abc");
  EXPECT_EQ(parse_sstable_command({"dump", "--from", "0x00fFA1", "f"}).command->from,
            std::string("\x00\xff\xa1", 3));
}

class SstableProgram : public testing::Test {
 protected:
  static Task<void> write(Runtime& runtime, const Rows& rows) {
    const auto written = co_await storage::write_sstable(
        runtime, kPath, rows, storage::small_options(), base::Bytes::copy_of("metadata"));
    CO_ASSERT_OK(written);
  }
  static Task<void> call(Runtime& runtime, SstableCommand command, Printer printer,
                         int& exit_code) {
    exit_code = co_await run_sstable_command(runtime, std::move(command), std::move(printer), {});
  }

  void SetUp() override {
    Rows rows;
    for (int i = 0; i < 100; ++i) {
      rows[fmt::format("part{}/row{:03}", i / 50, i)] = {.value = fmt::format("value {}", i),
                                                         .partition_size = 6};
    }
    machine_.run([&](Runtime& runtime) { return write(runtime, rows); });
  }
  // The exit code; what was printed is in out_ and error_.
  int run(std::vector<std::string> words) {
    out_.clear();
    error_.clear();
    const ParsedCommand parsed = parse_sstable_command(std::move(words));
    EXPECT_TRUE(parsed.command.has_value()) << parsed.text;
    int exit_code = -1;
    const Printer printer{.out = [this](std::string_view text) { out_ += text; },
                          .error = [this](std::string_view text) { error_ += text; }};
    machine_.run(
        [&](Runtime& runtime) { return call(runtime, *parsed.command, printer, exit_code); });
    return exit_code;
  }

  SimMachine machine_;
  std::string out_;
  std::string error_;
};

TEST_F(SstableProgram, DumpShowsRowsFromAKeyOnUpToALimit) {
  EXPECT_EQ(run({"dump", "--text", "--raw", "--from", "part1/row", "--limit", "2", kPath}), 0);
  EXPECT_EQ(out_,
            "        50  part1/|row050  8 bytes  value 50\n"
            "        51  part1/|row051  8 bytes  value 51\n");
  EXPECT_EQ(run({"dump", "--limit", "1", kPath}), 0);
  EXPECT_EQ(out_, "         0  70617274302f|726f77303030  7 bytes\n");
  EXPECT_EQ(run({"dump", kPath}), 0);
  EXPECT_EQ(std::ranges::count(out_, '\n'), 100);
  EXPECT_EQ(run({"dump", "--from", "z", kPath}), 0);
  EXPECT_EQ(out_, "");
}

TEST_F(SstableProgram, VerifySaysThatAFileIsSound) {
  EXPECT_EQ(run({"verify", kPath}), 0);
  EXPECT_THAT(out_, StartsWith("/table.sst: sound, 100 keys in "));
  EXPECT_THAT(out_, HasSubstr("; its entries are not of a table\n"));
  EXPECT_EQ(error_, "");
  EXPECT_EQ(run({"verify", "--progress", kPath}), 0);
  EXPECT_THAT(error_, HasSubstr("100 keys\n"));
}

TEST_F(SstableProgram, DamageIsOneLineWithFileAndOffsetAndExitCodeOne) {
  const base::Bytes good = machine_.content(kPath);
  const std::byte flipped = good[200] ^ std::byte{4};
  machine_.overwrite(kPath, 200, {&flipped, 1});
  for (const char* command : {"verify", "dump"}) {
    EXPECT_EQ(run({command, kPath}), kExitDamaged);
    EXPECT_THAT(error_, StartsWith("helenus-sstable: corrupt: /table.sst: data block at offset "));
    EXPECT_EQ(std::ranges::count(error_, '\n'), 1);
  }
}

TEST_F(SstableProgram, OneBadFileDoesNotKeepTheOthersFromBeingLookedAt) {
  EXPECT_EQ(run({"verify", "/absent.sst", kPath}), kExitDamaged);
  EXPECT_THAT(error_, HasSubstr("/absent.sst"));
  EXPECT_THAT(out_, HasSubstr("sound"));
}

// ---- A file that an engine wrote

causality::Delta delta_of(causality::Counter counter, std::int64_t timestamp) {
  causality::Delta delta;
  delta.dot = {causality::actor_of(1, 1), counter};
  delta.timestamp = causality::Timestamp{timestamp};
  if (counter > 1) {
    delta.context.dots.add(causality::DotRange{delta.dot.actor, 1, counter - 1});
  }
  return delta;
}

causality::CellChange cell_of(const std::string& row, const std::string& value) {
  causality::CellChange cell;
  cell.row = base::Bytes::copy_of(row);
  cell.column = causality::ColumnId{3};
  cell.value = base::Bytes::copy_of(value);
  return cell;
}

// A value, one that expires, a row that was deleted, and ranges: two of them, or so many that they
// lie in parts.
Task<void> write_table(Runtime& runtime, int ranges) {
  storage::Memtable memtable(causality::Policy::lww);
  const auto apply = [&](const causality::Delta& delta) {
    memtable.apply(base::as_bytes("part"), delta, causality::encoded(delta), delta.dot.counter);
  };
  causality::Delta put = delta_of(1, 10);
  put.cells = {cell_of("a", "hello"), cell_of("b", "fleeting")};
  put.cells[1].expires = causality::WallTime{77};
  apply(put);
  causality::Delta row = delta_of(2, 20);
  row.deleted_ranges = {causality::range_of_row(base::Bytes::copy_of("r"))};
  apply(row);
  for (int i = 0; i < ranges; ++i) {
    causality::Delta range = delta_of(3 + static_cast<causality::Counter>(i), 30 + i);
    range.deleted_ranges = {{base::Bytes::copy_of(fmt::format("x{:02}", 2 * i)),
                             base::Bytes::copy_of(fmt::format("x{:02}", 2 * i + 1))}};
    apply(range);
  }
  memtable.freeze();
  storage::TabletKnowledge known;
  known.base.add(causality::DotRange{causality::actor_of(1, 1), 1, 100});
  known.stable = {.dots = {}, .wall = causality::WallTime{5}};
  storage::MergePlan plan{.table = storage::TableId{7},
                          .freeze_first = storage::FreezeNumber{4},
                          .freeze_last = storage::FreezeNumber{4},
                          .knowledge = {{storage::TabletId{9}, known}},
                          .tablets = {{.id = storage::TabletId{9}, .range = {}}},
                          .others = {}};
  const auto writer = co_await storage::SstableWriter::create(runtime, "/engine.sst", {});
  CO_ASSERT_OK(writer);
  storage::MergeWriter merge(runtime, std::move(plan));
  const auto source = storage::entries_of(
      std::shared_ptr<const storage::Memtable>(std::shared_ptr<void>(), &memtable));
  CO_ASSERT_OK(co_await merge.run(*source, **writer, {}));
  CO_ASSERT_OK(co_await (*writer)->finish(encode(merge.metadata())));
}

TEST_F(SstableProgram, DumpTellsInWordsWhatIsInTheFile) {
  machine_.run([](Runtime& runtime) { return write_table(runtime, 2); });
  EXPECT_EQ(run({"dump", "--text", "--values", "/engine.sst"}), 0) << error_;
  for (const char* words : {
           "table 7, freezes 4 to 4, 1 entries of ranges, ",
           "tablet 9 had seen {1.1:1-100}",
           "tablet 9 knew to be stable {}, and expired up to 5",
           "tablet 9 has 3 deletes and 1 values that expire, none beyond {1.1:1-4}",
           "         0  part|\\x00  ",
           "            rows 'x00' up to 'x01': [1.1:3@30=deleted] after {}\n",
           "            rows 'x02' up to 'x03': [1.1:4@31=deleted] after {}\n",
           "            column 3: [1.1:1@10='hello'] after {}\n",
           "            column 3: [1.1:1@10='fleeting' until 77] after {}\n",
           "            the row deleted: [1.1:2@20=deleted] after {}\n",
       }) {
    EXPECT_THAT(out_, HasSubstr(words));
  }
  EXPECT_EQ(run({"statistics", "/engine.sst"}), 0);
  EXPECT_THAT(out_, HasSubstr("table 7, freezes 4 to 4"));
  EXPECT_EQ(run({"statistics", "--json", "/engine.sst"}), 0);
  EXPECT_EQ(nlohmann::json::parse(out_)["metadata"][1], "tablet 9 had seen {1.1:1-100}");
}

TEST_F(SstableProgram, RangesInPartsAreShownWithTheirDepthsAndVerified) {
  machine_.run([](Runtime& runtime) { return write_table(runtime, 40); });
  EXPECT_EQ(run({"dump", "--text", "--values", "/engine.sst"}), 0) << error_;
  EXPECT_THAT(out_, HasSubstr("            more ranges at depths 5\n"));
  EXPECT_THAT(out_, HasSubstr("part|\\x00x18"));
  EXPECT_EQ(run({"verify", "/engine.sst"}), 0) << error_;
  EXPECT_THAT(out_, Not(HasSubstr("not of a table")));
}

TEST_F(SstableProgram, OfAFileThatNoEngineWroteTheDumpSaysSo) {
  EXPECT_EQ(run({"dump", "--values", "--limit", "1", kPath}), 0);
  EXPECT_THAT(out_, StartsWith("not that of a table: unsupported: sstable metadata of version"));
  EXPECT_THAT(out_, HasSubstr("            not an entry of a table\n"));
}

TEST_F(SstableProgram, StatisticsAreATableOrJson) {
  EXPECT_EQ(run({"statistics", kPath}), 0);
  EXPECT_THAT(out_, HasSubstr("keys                              100\n"));
  EXPECT_THAT(out_, HasSubstr("partitions                          2\n"));
  EXPECT_EQ(run({"statistics", "--json", kPath}), 0);
  const auto json = nlohmann::json::parse(out_);
  EXPECT_EQ(json["keys"], 100);
  EXPECT_EQ(json["partitions"], 2);
  EXPECT_EQ(json["metadata_bytes"], 8);
  EXPECT_EQ(json["first_key"], "70617274302f726f77303030");
  EXPECT_EQ(json["compression"], "none");
  EXPECT_EQ(json["filter"], "cuckoo");
  EXPECT_GT(json["filter_memory_bytes"], 100);
}

}  // namespace
}  // namespace helenus::cli
