#include "cli/sstable_command.h"

#include <string>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "storage/sstable_test_support.h"

namespace helenus::cli {
namespace {

using runtime::Runtime;
using runtime::Task;
using storage::Rows;
using storage::SimMachine;
using testing::HasSubstr;
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
  EXPECT_EQ(run({"dump", "--text", "--values", "--from", "part1/row", "--limit", "2", kPath}), 0);
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
