#include "base/log.h"

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <unistd.h>

#include "base/log_capture.h"
#include "base/log_spdlog.h"
#include "base/secret.h"

namespace helenus::base {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// Formatting it shows: it counts how often that happens.
struct Witness {
  int* formatted_count;
};

std::string line_of(std::string value) {
  const LogField fields[] = {{.key = "key", .value = std::move(value)}};
  return format_line("T", {LogLevel::info, "module", "message", fields});
}

}  // namespace
}  // namespace helenus::base

template <>
struct fmt::formatter<helenus::base::Witness> : fmt::formatter<int> {
  auto format(const helenus::base::Witness& witness, fmt::format_context& ctx) const {
    return fmt::formatter<int>::format(++*witness.formatted_count, ctx);
  }
};

namespace helenus::base {
namespace {

TEST(Logger, WritesLevelModuleMessageAndFieldsInOrder) {
  CapturingSink sink(LogLevels(LogLevel::trace), [] { return "2026-11-15T09:30:00.123456Z"; });
  const Logger log(sink, "storage.commit_log");
  log.warn("segment is torn", kv("segment", 7), kv("reason", "bad checksum"), kv("last", true));
  EXPECT_THAT(sink.lines(),
              ElementsAre("2026-11-15T09:30:00.123456Z warn  storage.commit_log  segment is torn "
                          "segment=7 reason=\"bad checksum\" last=true"));
}

TEST(Logger, EachVerbHasItsLevel) {
  CapturingSink sink;
  const Logger log(sink, "m");
  log.trace("a");
  log.debug("b");
  log.info("c");
  log.warn("d");
  log.error("e");
  EXPECT_THAT(sink.lines(), ElementsAre("- trace m  a", "- debug m  b", "- info  m  c",
                                        "- warn  m  d", "- error m  e"));
}

TEST(Logger, ALineBelowTheLevelFormatsNothing) {
  CapturingSink sink{LogLevels(LogLevel::warn)};
  const Logger log(sink, "m");
  int formatted_count = 0;
  log.trace("quiet", kv("value", Witness{&formatted_count}));
  log.info("quiet", kv("value", Witness{&formatted_count}));
  EXPECT_EQ(formatted_count, 0);
  EXPECT_FALSE(log.enabled(LogLevel::info));
  log.warn("loud", kv("value", Witness{&formatted_count}));
  EXPECT_EQ(formatted_count, 1);
  EXPECT_TRUE(log.enabled(LogLevel::warn));
  EXPECT_THAT(sink.lines(), ElementsAre("- warn  m  loud value=1"));
}

TEST(Logger, OffSilencesErrorsToo) {
  CapturingSink sink{LogLevels(LogLevel::off)};
  Logger(sink, "m").error("nobody listens");
  EXPECT_THAT(sink.lines(), IsEmpty());
  NullSink null_sink;
  EXPECT_FALSE(Logger(null_sink, "m").enabled(LogLevel::error));
}

TEST(Logger, TakesTheLevelOfItsModule) {
  CapturingSink sink(*LogLevels::parse("error,storage=debug"));
  Logger(sink, "storage").debug("heard");
  Logger(sink, "rpc").warn("not heard");
  EXPECT_THAT(sink.lines(), ElementsAre("- debug storage  heard"));
}

TEST(Logger, ErrorsAndSecretsFormatAsTheyShould) {
  CapturingSink sink;
  const Secret<std::string> password("hunter2");
  Logger(sink, "m").error("login failed", kv("error", Error(Errc::timeout, "after {} s", 3)),
                          kv("password", password));
  EXPECT_THAT(sink.lines(),
              ElementsAre("- error m  login failed error=\"timeout: after 3 s\" password=***"));
  EXPECT_EQ(password.reveal(), "hunter2");
}

TEST(CapturingSink, CountsAndForgetsLines) {
  CapturingSink sink;
  const Logger log(sink, "m");
  log.info("one");
  log.info("two");
  EXPECT_EQ(sink.count("info"), 2u);
  EXPECT_EQ(sink.count("two"), 1u);
  EXPECT_EQ(sink.count("three"), 0u);
  sink.clear();
  EXPECT_THAT(sink.lines(), IsEmpty());
}

TEST(LogLevels, TheLongestNameThatCoversAModuleWins) {
  const auto levels = LogLevels::parse("warn, storage = info, storage.compaction=trace");
  ASSERT_TRUE(levels);
  EXPECT_EQ(levels->level_for("rpc"), LogLevel::warn);
  EXPECT_EQ(levels->level_for("storage"), LogLevel::info);
  EXPECT_EQ(levels->level_for("storage.commit_log"), LogLevel::info);
  EXPECT_EQ(levels->level_for("storage.compaction"), LogLevel::trace);
  EXPECT_EQ(levels->level_for("storage.compaction.picker"), LogLevel::trace);
  EXPECT_EQ(levels->level_for("storage_tools"), LogLevel::warn);
  EXPECT_EQ(levels->level_for(""), LogLevel::warn);
}

TEST(LogLevels, TheDefaultIsInfoUnlessGivenAnywhere) {
  EXPECT_EQ(LogLevels::parse("rpc=off")->level_for("storage"), LogLevel::info);
  EXPECT_EQ(LogLevels::parse("rpc=off,debug")->level_for("storage"), LogLevel::debug);
}

TEST(LogLevels, PrintsWhatItParses) {
  const auto levels = LogLevels::parse("storage=debug,error,rpc=off");
  ASSERT_TRUE(levels);
  EXPECT_EQ(levels->to_string(), "error,rpc=off,storage=debug");
  EXPECT_EQ(*LogLevels::parse(levels->to_string()), *levels);
}

TEST(LogLevels, BadTextIsRefusedWithThePartAtFault) {
  const auto problem_of = [](std::string_view text) {
    const auto levels = LogLevels::parse(text);
    EXPECT_TRUE(levels.failed_with(Errc::invalid_argument)) << text;
    return levels ? std::string() : std::string(levels.error().context());
  };
  EXPECT_THAT(problem_of(""), HasSubstr("'' names no level"));
  EXPECT_THAT(problem_of("info,"), HasSubstr("'' names no level"));
  EXPECT_THAT(problem_of("loud"), HasSubstr("'loud' names no level"));
  EXPECT_THAT(problem_of("INFO"), HasSubstr("'INFO' names no level"));
  EXPECT_THAT(problem_of("storage="), HasSubstr("'storage=' names no level"));
  EXPECT_THAT(problem_of("=info"), HasSubstr("'=info' names no module"));
  EXPECT_THAT(problem_of("a b=info"), HasSubstr("'a b=info' names no module"));
  EXPECT_THAT(problem_of("a..b=info"), HasSubstr("names no module"));
  EXPECT_THAT(problem_of("a.=info"), HasSubstr("names no module"));
  EXPECT_THAT(problem_of("info,debug"), HasSubstr("'debug' is a second default"));
  EXPECT_THAT(problem_of("a=info,a=info"), HasSubstr("'a=info' sets a module a second time"));
  EXPECT_THAT(problem_of(std::string(LogLevels::kTextSizeMax + 1, ' ')), HasSubstr("4097 bytes"));

  std::string many = "info";
  for (std::size_t index = 0; index < LogLevels::kOverridesMax; ++index) {
    many += fmt::format(",m{}=info", index);
  }
  EXPECT_TRUE(LogLevels::parse(many));
  EXPECT_THAT(problem_of(many + ",last=info"), HasSubstr("'last=info' is one module too many"));
}

TEST(FormatLine, WordsStayBareAndTheRestIsQuoted) {
  EXPECT_THAT(line_of("word"), EndsWith(" key=word"));
  EXPECT_THAT(line_of("10.0.0.1:9042"), EndsWith(" key=10.0.0.1:9042"));
  EXPECT_THAT(line_of("gr\xc3\xbc\xc3\x9f"), EndsWith(" key=gr\xc3\xbc\xc3\x9f"));
  EXPECT_THAT(line_of(""), EndsWith(" key=\"\""));
  EXPECT_THAT(line_of("two words"), EndsWith(" key=\"two words\""));
  EXPECT_THAT(line_of("a=b"), EndsWith(" key=\"a=b\""));
  EXPECT_THAT(line_of("say \"hi\""), EndsWith(R"( key="say \"hi\"")"));
  EXPECT_THAT(line_of("back\\slash"), EndsWith(R"( key="back\\slash")"));
}

TEST(FormatLine, AHostileValueCannotForgeALineOrAField) {
  EXPECT_EQ(line_of("x\n2026-11-15T09:30:00Z info  auth  login ok"),
            "T info  module  message key=\"x\\n2026-11-15T09:30:00Z info  auth  login ok\"");
  EXPECT_THAT(line_of("x\" admin=\"true"), EndsWith(R"( key="x\" admin=\"true")"));
  EXPECT_THAT(line_of("\x1b[2J\r\t"), EndsWith(R"( key="\x1b[2J\r\t")"));
  EXPECT_THAT(line_of(std::string("\0\x7f", 2)), EndsWith(R"( key="\x00\x7f")"));
  EXPECT_THAT(line_of("\xc2\x9b"), EndsWith(R"( key="\xc2\x9b")"));          // a C1 control
  EXPECT_THAT(line_of("\xe2\x80\xa8"), EndsWith(R"( key="\xe2\x80\xa8")"));  // line separator
  EXPECT_THAT(line_of("\xe2\x80\xae"), EndsWith(R"( key="\xe2\x80\xae")"));  // right to left
}

TEST(FormatLine, MalformedUtf8IsEscaped) {
  EXPECT_THAT(line_of("\xff"), EndsWith(R"( key="\xff")"));
  EXPECT_THAT(line_of("\x80x"), EndsWith(R"( key="\x80x")"));
  EXPECT_THAT(line_of("\xc3"), EndsWith(R"( key="\xc3")"));                  // ends inside
  EXPECT_THAT(line_of("\xc3x"), EndsWith(R"( key="\xc3x")"));                // breaks off
  EXPECT_THAT(line_of("\xc0\x8a"), EndsWith(R"( key="\xc0\x8a")"));          // overlong newline
  EXPECT_THAT(line_of("\xe0\x80\x8a"), EndsWith(R"( key="\xe0\x80\x8a")"));  // overlong newline
  EXPECT_THAT(line_of("\xed\xa0\x80"), EndsWith(R"( key="\xed\xa0\x80")"));  // surrogate
  EXPECT_THAT(line_of("\xf4\x90\x80\x80"), EndsWith(R"( key="\xf4\x90\x80\x80")"));
  EXPECT_THAT(line_of("\xf0\x9f\xa6\x89"), EndsWith(" key=\xf0\x9f\xa6\x89"));
}

TEST(FormatLine, KeysAndMessagesAreHarmlessToo) {
  const LogField fields[] = {{.key = "a b=\"c\n", .value = "v"}};
  EXPECT_EQ(format_line("T", {LogLevel::info, "mod\nule", "mes\nsage", fields}),
            "T info  mod\\nule  mes\\nsage a_b_\\_c\\n=v");
}

TEST(FormatLine, ALongValueIsCutAndSaysSo) {
  const std::string line = line_of(std::string(kLogTextSizeMax + 5, 'x'));
  EXPECT_THAT(line, EndsWith("x... 5 bytes more\""));
  EXPECT_LT(line.size(), kLogTextSizeMax + 100);
  EXPECT_THAT(line_of(std::string(kLogTextSizeMax, 'x')), EndsWith("xxx"));
}

RC_GTEST_PROP(FormatLine, AnyValueGivesOnePrintableLineThatReadsBack, (std::string value)) {
  const std::string line = line_of(value);
  for (const char c : line) RC_ASSERT(static_cast<unsigned char>(c) >= 0x20 && c != 0x7f);
  const std::string prefix = "T info  module  message key=";
  RC_ASSERT(line.starts_with(prefix));

  std::string_view text = std::string_view(line).substr(prefix.size());
  if (!text.starts_with('"')) {
    RC_ASSERT(text == value);
    return;
  }
  text = text.substr(1, text.size() - 2);
  std::string read;
  while (!text.empty()) {
    RC_ASSERT(text[0] != '"');
    std::size_t size = 1;
    if (text[0] != '\\') {
      read += text[0];
    } else if (text[1] == 'x') {
      read += static_cast<char>(std::stoi(std::string(text.substr(2, 2)), nullptr, 16));
      size = 4;
    } else {
      read += text[1] == 'n' ? '\n' : text[1] == 'r' ? '\r' : text[1] == 't' ? '\t' : text[1];
      size = 2;
    }
    text.remove_prefix(size);
  }
  RC_ASSERT(read == value);
}

class SpdlogSinkTest : public ::testing::Test {
 protected:
  SpdlogSinkTest()
      : folder_(std::filesystem::temp_directory_path() /
                fmt::format("helenus_log_test_{}_{}", ::getpid(),
                            ::testing::UnitTest::GetInstance()->current_test_info()->name())) {
    std::filesystem::create_directories(folder_);
  }
  ~SpdlogSinkTest() override { std::filesystem::remove_all(folder_); }

  std::string path() const { return folder_ / "helenus.log"; }
  SpdlogSink::Options options() const {
    return {.levels = LogLevels(LogLevel::debug),
            .time_text = [] { return "T"; },
            .file = SpdlogSink::File{.path = path()}};
  }
  std::string content(const std::string& file) const {
    std::stringstream text;
    text << std::ifstream(file).rdbuf();
    return text.str();
  }

  std::filesystem::path folder_;
};

TEST_F(SpdlogSinkTest, WritesLinesToItsFileAndLosesNone) {
  auto sink = SpdlogSink::open(options());
  ASSERT_TRUE(sink);
  const Logger log(**sink, "m");
  log.trace("not wanted");
  log.info("one", kv("n", 1));
  EXPECT_EQ(content(path()), "T info  m  one n=1\n") << "info is flushed at once";
  log.debug("two");
  (*sink)->flush();
  EXPECT_EQ(content(path()), "T info  m  one n=1\nT debug m  two\n");
  EXPECT_EQ((*sink)->lines_refused_count(), 0u);
}

TEST_F(SpdlogSinkTest, RotatesAtItsSizeAndDropsTheOldest) {
  auto with_rotation = options();
  with_rotation.file->bytes_max = std::size_t{64} << 10;
  with_rotation.file->old_files_max = 1;
  auto sink = SpdlogSink::open(with_rotation);
  ASSERT_TRUE(sink);
  const Logger log(**sink, "m");
  for (int line = 0; line < 200; ++line) log.info("padding", kv("x", std::string(1000, 'x')));
  EXPECT_TRUE(std::filesystem::exists(folder_ / "helenus.1.log"));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "helenus.2.log"));
  EXPECT_LE(std::filesystem::file_size(path()), with_rotation.file->bytes_max);
}

TEST_F(SpdlogSinkTest, AFileThatCannotBeOpenedIsAnError) {
  auto no_file = options();
  no_file.file->path = folder_;
  const auto sink = SpdlogSink::open(no_file);
  ASSERT_TRUE(sink.failed_with(Errc::io_error));
  EXPECT_THAT(sink.error().context(), HasSubstr(folder_.string()));
}

TEST_F(SpdlogSinkTest, LimitsOutOfRangeAreRefused) {
  auto tiny = options();
  tiny.file->bytes_max = 1;
  EXPECT_TRUE(SpdlogSink::open(tiny).failed_with(Errc::invalid_argument));
  auto endless = options();
  endless.file->old_files_max = SIZE_MAX;
  EXPECT_TRUE(SpdlogSink::open(endless).failed_with(Errc::invalid_argument));
}

TEST_F(SpdlogSinkTest, ALineTheDeviceRefusesGoesToStandardErrorAndIsCounted) {
  auto full = options();
  full.file->path = "/dev/full";
  auto sink = SpdlogSink::open(full);
  ASSERT_TRUE(sink);
  const Logger log(**sink, "m");
  ::testing::internal::CaptureStderr();
  for (int line = 0; line < 10; ++line) log.info("padding", kv("x", std::string(4000, 'x')));
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("log file failed"));
  EXPECT_GT((*sink)->lines_refused_count(), 0u);
}

TEST_F(SpdlogSinkTest, WithoutAFileLinesGoToStandardError) {
  auto to_stderr = options();
  to_stderr.file.reset();
  ::testing::internal::CaptureStderr();
  auto sink = SpdlogSink::open(to_stderr);
  ASSERT_TRUE(sink);
  Logger(**sink, "m").error("hello");
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "T error m  hello\n");
}

}  // namespace
}  // namespace helenus::base
