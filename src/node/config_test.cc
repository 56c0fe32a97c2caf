// Stories about the configuration of a node.
#include "node/config.h"

#include <fstream>
#include <sstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cql/server/connection.h"
#include "cql/server/server.h"
#include "node/config_file.h"

namespace helenus::node {
namespace {

using ::testing::HasSubstr;

std::string content_of(const std::string& path) {
  std::ifstream file(path);
  EXPECT_TRUE(file.is_open()) << path;
  std::stringstream content;
  content << file.rdbuf();
  return content.str();
}

std::string shown(const Config& config) {
  std::string text;
  for (const ConfigField& field : config_fields()) {
    text += fmt::format("{}: {}\n", field.name, field.show(config));
  }
  return text;
}

// What a file is refused with; empty if it is taken.
std::string refusal(std::string_view text) {
  Config config;
  const auto read = read_config("helenus.yaml", text, config);
  return read ? "" : std::string(read.error().context());
}

TEST(ConfigFile, SetsWhatItNamesAndLeavesTheRest) {
  Config config;
  config.rack = "r7";
  const auto read = read_config("helenus.yaml",
                                "# a comment\n"
                                "cluster_name: 'Test Cluster'\n"
                                "cql_address: 0.0.0.0:19042\n"
                                "cql_broadcast_address: 192.0.2.1\n"
                                "admin_remote: true\n"
                                "commitlog_sync: periodic\n"
                                "replication_by: anti_entropy\n"
                                "cores: 3\n"
                                "log: info,storage=debug\n",
                                config);
  ASSERT_TRUE(read.has_value()) << read.error().to_string();
  EXPECT_EQ(config.cluster_name, "Test Cluster");
  EXPECT_EQ(config.cql_address_for_clients().to_string(), "192.0.2.1:19042");
  EXPECT_TRUE(config.admin_remote);
  EXPECT_EQ(config.commitlog_sync, storage::LogSyncMode::periodic);
  EXPECT_EQ(config.replication_by, ReplicationBy::anti_entropy);
  EXPECT_EQ(config.cores, 3U);
  EXPECT_EQ(config.rack, "r7");
}

TEST(ConfigFile, AnEmptyOneSetsNothing) {
  for (const std::string_view text : {"", "\n# nothing\n", "---\n"}) {
    Config config;
    ASSERT_TRUE(read_config("helenus.yaml", text, config).has_value()) << text;
    EXPECT_EQ(shown(config), shown(Config()));
  }
}

TEST(ConfigFile, TheSampleIsTheDefaults) {
  Config config;
  const std::string sample = content_of(HELENUS_DOCUMENTS "/operations/helenus.yaml");
  const auto read = read_config("helenus.yaml", sample, config);
  ASSERT_TRUE(read.has_value()) << read.error().to_string();
  EXPECT_EQ(shown(config), shown(Config()));
  for (const ConfigField& field : config_fields()) {
    EXPECT_THAT(sample, HasSubstr(fmt::format("{}:", field.name)));
  }
}

// Another number, within the range of its field as far as defaults are not at its beginning.
std::uint64_t changed(std::uint64_t value) {
  return value == 0 ? 1 : value - value / 4;
}

// Who edits one line of the sample changes that and nothing else.
TEST(ConfigFile, ALineOfTheSampleDecidesNothingForOthers) {
  const std::string sample = content_of(HELENUS_DOCUMENTS "/operations/helenus.yaml");
  int edited = 0;
  for (const ConfigField& field : config_fields()) {
    const std::string value = field.show(Config());
    const std::string line = fmt::format("\n{}: {}\n", field.name, value);
    const std::size_t at = sample.find(line);
    if (at == std::string::npos || value.find_first_not_of("0123456789") != std::string::npos) {
      continue;
    }
    const std::string other = fmt::format("\n{}: {}\n", field.name, changed(std::stoul(value)));
    Config whole;
    Config alone;
    ASSERT_TRUE(
        read_config("helenus.yaml", std::string(sample).replace(at, line.size(), other), whole));
    ASSERT_TRUE(read_config("helenus.yaml", other, alone));
    EXPECT_EQ(shown(whole), shown(alone)) << field.name;
    ++edited;
  }
  EXPECT_GE(edited, 15);
}

TEST(ConfigFile, EveryFieldIsDocumented) {
  const std::string text = content_of(HELENUS_DOCUMENTS "/operations/configuration.md");
  for (const ConfigField& field : config_fields()) {
    EXPECT_THAT(text, HasSubstr(fmt::format("| `{}` |", field.name)));
  }
}

TEST(ConfigFile, WhatIsWrongIsToldWithItsLine) {
  EXPECT_EQ(refusal("cores: 1\npaint: red\n"), "helenus.yaml:2: there is no field 'paint'");
  EXPECT_EQ(refusal("\n\ncores: many\n"),
            "helenus.yaml:3: cores: 'many' is no number from 0 to 1024");
  EXPECT_EQ(refusal("cores: -1"), "helenus.yaml:1: cores: '-1' is no number from 0 to 1024");
  EXPECT_EQ(refusal("cores: 1\nrack: r\ncores: 2"), "helenus.yaml:3: cores is set twice");
  EXPECT_EQ(refusal("rack:\n  - r1"), "helenus.yaml:1: rack: a single value is wanted");
  EXPECT_EQ(refusal("rack:"), "helenus.yaml:1: rack: a single value is wanted");
  EXPECT_EQ(refusal("rack: ''"), "helenus.yaml:1: rack: may not be empty");
  EXPECT_EQ(refusal("- a\n- b"), "helenus.yaml:1: not of the form `name: value`");
  EXPECT_EQ(refusal("? [a, b]\n: c"), "helenus.yaml:1: a field's name must be a word");
  EXPECT_EQ(refusal("cores: 1\n---\ncores: 2\n"), "helenus.yaml:3: a second document");
  EXPECT_THAT(refusal("cores: 1\nrack: [\n"), HasSubstr("helenus.yaml:"));
  EXPECT_THAT(refusal("a: b: c"), HasSubstr("helenus.yaml:1: "));
  EXPECT_THAT(refusal("cql_address: localhost"), HasSubstr("helenus.yaml:1: cql_address: "));
  // What the server has room for, compressed and plain.
  EXPECT_EQ(refusal("cql_request_bytes_max: 134215680"), "");
  EXPECT_THAT(refusal("cql_request_bytes_max: 134217728"), HasSubstr("cql_request_bytes_max"));
  EXPECT_EQ(refusal("cql_broadcast_address: here"),
            "helenus.yaml:1: cql_broadcast_address: 'here' is no IP address");
  EXPECT_THAT(refusal("commitlog_sync: never"), HasSubstr("neither batch, group nor periodic"));
  EXPECT_THAT(refusal("replication_by: post"), HasSubstr("neither deltas nor anti_entropy"));
  EXPECT_THAT(refusal("file_backend: tape"), HasSubstr("neither auto, io_uring nor threads"));
  EXPECT_THAT(refusal("admin_remote: perhaps"), HasSubstr("neither true nor false"));
  EXPECT_THAT(refusal("log: loud"), HasSubstr("helenus.yaml:1: log: "));
  EXPECT_THAT(refusal(std::string(kConfigFileSizeMax + 1, '#')), HasSubstr("larger than"));
}

TEST(ConfigFile, EveryFieldRefusesWhatIsNotOfItsKind) {
  for (const ConfigField& field : config_fields()) {
    const std::string name(field.name);
    const bool is_list = field.set_items != nullptr;
    const std::string_view wanted = is_list ? "a list" : "a single value";
    std::vector<std::string_view> values = {"{a: b}", "", "~"};
    if (!is_list) values.insert(values.end(), {"\n  - a", "[1, 2]"});
    for (const std::string_view value : values) {
      EXPECT_EQ(refusal(fmt::format("# first\n{}: {}\n", name, value)),
                fmt::format("helenus.yaml:2: {}: {} is wanted", name, wanted));
    }
    EXPECT_THAT(refusal(fmt::format("\n{}: ''\n", name)),
                ::testing::StartsWith(fmt::format("helenus.yaml:2: {}: ", name)));
    const std::string shown_value = field.show(Config());
    if (shown_value.empty()) continue;
    EXPECT_EQ(refusal(fmt::format("{0}: {1}\n\n{0}: {1}\n", name, shown_value)),
              fmt::format("helenus.yaml:3: {} is set twice", name));
  }
}

TEST(ConfigFile, AListIsReadInEitherStyleAndAsOneText) {
  for (const std::string_view text : {"seeds: [192.0.2.1:7000, '[2001:db8::1]:7001']",
                                      "seeds:\n  - 192.0.2.1:7000\n  - '[2001:db8::1]:7001'\n",
                                      "seeds: 192.0.2.1:7000, [2001:db8::1]:7001"}) {
    Config config;
    const auto read = read_config("helenus.yaml", text, config);
    ASSERT_TRUE(read.has_value()) << read.error().to_string();
    EXPECT_EQ(find_config_field("seeds")->show(config), "192.0.2.1:7000, [2001:db8::1]:7001");
  }
  EXPECT_EQ(refusal("seeds: []"), "");
  EXPECT_THAT(refusal("seeds: [localhost]"),
              HasSubstr("helenus.yaml:1: seeds: 'localhost' is not"));
  EXPECT_THAT(refusal("seeds: '1.2.3.4:5,'"), HasSubstr("seeds: '' is not an address"));
  EXPECT_THAT(refusal("\nseeds: [1.2.3.4:5, '1.2.3.4:6,']"),
              HasSubstr("helenus.yaml:2: seeds: '' is not an address"));
  EXPECT_EQ(refusal("seeds:\n  - 1.2.3.4:5\n  - [6]"),
            "helenus.yaml:3: seeds: a list of words is wanted");
  EXPECT_EQ(refusal("seeds: [1.2.3.4:5, 1.2.3.4:5]"),
            "helenus.yaml:1: seeds: 1.2.3.4:5 is there twice");
  std::string many = "seeds: 10.0.0.0:1";
  for (int i = 1; i < 65; ++i) many += fmt::format(",10.0.0.{}:1", i);
  EXPECT_EQ(refusal(many), "helenus.yaml:1: seeds: 65 seeds; there may be 64");
}

TEST(ConfigFile, DataMayLieInSeveralFolders) {
  for (const std::string_view text : {"data_directory: [/disk1, /disk2/, '/disk 3']",
                                      "data_directory:\n  - /disk1\n  - /disk2\n  - /disk 3\n"}) {
    Config config;
    const auto read = read_config("helenus.yaml", text, config);
    ASSERT_TRUE(read.has_value()) << read.error().to_string();
    EXPECT_EQ(config.data_directory, "/disk1");
    EXPECT_EQ(config.more_data_directories, (std::vector<std::string>{"/disk2", "/disk 3"}));
    EXPECT_EQ(find_config_field("data_directory")->show(config), "/disk1, /disk2, /disk 3");
  }
  // What comes later takes the place of all that came before.
  Config config;
  ASSERT_TRUE(read_config("helenus.yaml", "data_directory: [/a, /b]", config));
  ASSERT_TRUE(find_config_field("data_directory")->set(config, "/c"));
  EXPECT_EQ(find_config_field("data_directory")->show(config), "/c");
  EXPECT_EQ(refusal("\ndata_directory: [/a, /b, /a/]"),
            "helenus.yaml:2: data_directory: /a is there twice");
  EXPECT_EQ(refusal("data_directory: [/a, '']"),
            "helenus.yaml:1: data_directory: may not be empty");
  EXPECT_EQ(refusal("data_directory:\n  - /a\n  - {b: c}\n"),
            "helenus.yaml:3: data_directory: a list of words is wanted");
  std::string many = "\ndata_directory: [/0";
  for (int i = 1; i < 65; ++i) many += fmt::format(", /{}", i);
  EXPECT_EQ(refusal(many + "]"), "helenus.yaml:2: data_directory: 65 folders; there may be 64");
}

TEST(ConfigFile, ACommaIsPartOfAPathInTheFileAndBetweenPathsOnTheCommandLine) {
  const ConfigField* field = find_config_field("data_directory");
  Config config;
  ASSERT_TRUE(read_config("helenus.yaml", "data_directory: /a, b/", config));
  EXPECT_EQ(config.data_directory, "/a, b");
  EXPECT_TRUE(config.more_data_directories.empty());
  ASSERT_TRUE(read_config("helenus.yaml", "data_directory: ['/a,b', /c]", config));
  EXPECT_EQ(config.data_directory, "/a,b");
  EXPECT_EQ(config.more_data_directories, std::vector<std::string>{"/c"});
  ASSERT_TRUE(field->set(config, "/a, /b"));
  EXPECT_EQ(config.data_directory, "/a");
  EXPECT_EQ(config.more_data_directories, std::vector<std::string>{"/b"});
  EXPECT_EQ(refusal("rack: r\n\ndata_directory: ['/a,b', '/a,b/']"),
            "helenus.yaml:3: data_directory: /a,b is there twice");
  EXPECT_TRUE(field->set(config, "/a,").failed_with(base::Errc::invalid_argument));
}

TEST(ConfigFile, APhiMayHaveAFraction) {
  Config config;
  ASSERT_TRUE(read_config("helenus.yaml", "phi_threshold: 5.5", config).has_value());
  EXPECT_EQ(find_config_field("phi_threshold")->show(config), "5.5");
  for (const std::string_view value : {"0.5", "65", "nan", "inf", "many", "1e1", "8x"}) {
    EXPECT_EQ(refusal(fmt::format("phi_threshold: {}", value)),
              fmt::format("helenus.yaml:1: phi_threshold: '{}' is no number from 1 to 64", value));
  }
}

TEST(ConfigFile, ABackgroundShareIsAFraction) {
  Config config;
  EXPECT_EQ(find_config_field("background_share")->show(config), "0.25");
  ASSERT_TRUE(read_config("helenus.yaml", "background_share: 0.5", config).has_value());
  EXPECT_EQ(config.background_share, 0.5);
  for (const std::string_view value : {"0", "1", "nan", "25%"}) {
    EXPECT_EQ(
        refusal(fmt::format("background_share: {}", value)),
        fmt::format("helenus.yaml:1: background_share: '{}' is no number from 0.01 to 0.9", value));
  }
}

TEST(ConfigFile, EveryNumberHasItsRange) {
  struct Range {
    std::string_view field;
    std::int64_t least;
    std::int64_t most;
  };
  for (const Range& range : {Range{"cql_connections_max", 1, 65536},
                             Range{"cql_connections_per_address_max", 0, 65536},
                             Range{"cql_request_bytes_max", 65536, 134'215'680},
                             Range{"request_timeout_ms", 1, 3'600'000},
                             Range{"write_timeout_ms", 1, 3'600'000},
                             Range{"client_lost_after_ms", 1000, 600'000},
                             Range{"commitlog_sync_period_ms", 1, 600'000},
                             Range{"commitlog_segment_mib", 32, 1024},
                             Range{"commitlog_total_mib", 128, 1 << 20},
                             Range{"disk_reserve_mib", 0, 1 << 20},
                             Range{"memtable_mib", 8, 1 << 20},
                             Range{"block_cache_mib", 0, 1 << 20},
                             Range{"compactions_max", 1, 64},
                             Range{"compaction_mib_per_second", 0, 1 << 20},
                             Range{"merge_ranges_mib", 1, 1 << 20},
                             Range{"operation_window_ms", 1000, 604'800'000},
                             Range{"operation_skew_ms", 0, 3'600'000},
                             Range{"cores", 0, 1024},
                             Range{"tokens", 1, 65536},
                             Range{"gossip_interval_ms", 10, 60'000},
                             Range{"anti_entropy_interval_ms", 10, 60'000}}) {
    const auto refused = [&](std::string_view value) {
      return refusal(fmt::format("\n\n{}: {}\n", range.field, value));
    };
    EXPECT_EQ(refused(fmt::to_string(range.least)), "");
    EXPECT_EQ(refused(fmt::to_string(range.most)), "");
    for (const std::string& value :
         {fmt::to_string(range.least - 1), fmt::to_string(range.most + 1), std::string("many"),
          std::string("1.5"), std::string("0x40"), std::string("64 MiB"), std::string("true"),
          std::string("99999999999999999999")}) {
      EXPECT_EQ(refused(value), fmt::format("helenus.yaml:3: {}: '{}' is no number from {} to {}",
                                            range.field, value, range.least, range.most));
    }
  }
}

TEST(ConfigFile, OneAddressHasHalfOfTheConnectionsUnlessItSaysOtherwise) {
  const auto share = [](std::string_view text) {
    Config config;
    EXPECT_TRUE(read_config("helenus.yaml", text, config).has_value());
    const ConfigField* field = find_config_field("cql_connections_per_address_max");
    EXPECT_EQ(field->show(config), std::to_string(config.cql_connections_per_address()));
    return config.cql_connections_per_address();
  };
  EXPECT_EQ(share(""), 2048U);
  EXPECT_EQ(share("cql_connections_max: 1000"), 500U);
  EXPECT_EQ(share("cql_connections_max: 65536"), 2048U);
  EXPECT_EQ(share("cql_connections_max: 1"), 1U);
  EXPECT_EQ(share("cql_connections_max: 1000\ncql_connections_per_address_max: 900"), 900U);
  EXPECT_EQ(share("cql_connections_max: 1000\ncql_connections_per_address_max: 0"), 0U);
}

TEST(ConfigFile, EveryFieldReadsWhatItShows) {
  const Config config;
  for (const ConfigField& field : config_fields()) {
    const std::string value = field.show(config);
    if (value.empty()) continue;
    Config other;
    EXPECT_TRUE(field.set(other, value).has_value()) << field.name;
    EXPECT_EQ(field.show(other), value);
  }
}

// What a file is refused with because its fields do not fit together.
std::string misfit(std::string_view text) {
  Config config;
  ConfigSource source;
  const auto read = read_config("helenus.yaml", text, config, source);
  EXPECT_TRUE(read.has_value()) << read.error().to_string();
  const auto valid = validate(config, source);
  return valid ? "" : std::string(valid.error().context());
}

TEST(ConfigFile, FieldsThatDoNotFitTogetherAreToldWithTheLineOfTheLastOfThem) {
  EXPECT_EQ(misfit("commitlog_total_mib: 128\n\ncommitlog_segment_mib: 64\nrack: r\n"),
            "helenus.yaml:3: commitlog_total_mib: 128 has no room for four segments of 64 MiB");
  EXPECT_EQ(misfit("rack: r\ncommitlog_total_mib: 128\n"),
            "helenus.yaml:2: commitlog_total_mib: 128 has no room for four segments of 64 MiB");
  EXPECT_THAT(misfit("\ncql_address: 0.0.0.0:9042"),
              HasSubstr("helenus.yaml:2: cql_broadcast_address: must be"));
  EXPECT_THAT(misfit("admin_address: 192.0.2.1:7070\nadmin_remote: false"),
              HasSubstr("helenus.yaml:2: admin_address: 192.0.2.1:7070 is no loopback address"));
  EXPECT_THAT(misfit("seeds:\n  - 192.0.2.1:7000\nlisten_address: 192.0.2.2:0"),
              HasSubstr("helenus.yaml:3: listen_address: other nodes must know the port"));
  EXPECT_THAT(misfit("cores: 1\nrack: " + std::string(257, 'x')),
              HasSubstr("helenus.yaml:2: rack: 257 bytes; at most 256"));
  EXPECT_THAT(misfit("partitioner: ByteOrderedPartitioner"),
              HasSubstr("helenus.yaml:1: partitioner: "));
  EXPECT_EQ(misfit("commitlog_total_mib: 256\ncommitlog_segment_mib: 64"), "");
}

TEST(ConfigFile, AFieldThatWasSetAfterTheFileHasNoLine) {
  Config config;
  ConfigSource source;
  ASSERT_TRUE(read_config("helenus.yaml", "admin_address: 192.0.2.1:7070", config, source));
  source.lines.erase("admin_address");
  EXPECT_TRUE(validate(config, source).error().context().starts_with("admin_address: "));
}

TEST(Config, TheLargestRequestFitsTheServer) {
  EXPECT_GE(cql::AdmissionLimits().node.request_bytes_max,
            2 * std::size_t{134'215'680} + cql::Connection::kRequestOverhead);
}

TEST(Config, FieldsThatDoNotFitTogetherAreRefused) {
  EXPECT_TRUE(validate(Config()).has_value());
  Config open;
  open.admin_address = runtime::Address::v4({0, 0, 0, 0}, 7070);
  EXPECT_THAT(validate(open).error().to_string(), HasSubstr("admin_address"));
  open.admin_remote = true;
  EXPECT_TRUE(validate(open).has_value());
  Config wildcard;
  wildcard.cql_address = runtime::Address::v4({0, 0, 0, 0}, 9042);
  EXPECT_THAT(validate(wildcard).error().to_string(), HasSubstr("cql_broadcast_address"));
  wildcard.cql_broadcast_address = runtime::Address::v4({192, 0, 2, 1}, 0);
  EXPECT_TRUE(validate(wildcard).has_value());
  Config others;
  others.listen_address = runtime::Address::v4({0, 0, 0, 0}, 7000);
  EXPECT_THAT(validate(others).error().to_string(), HasSubstr("broadcast_address"));
  others.broadcast_address = runtime::Address::v4({192, 0, 2, 1}, 0);
  EXPECT_TRUE(validate(others).has_value());
  EXPECT_EQ(others.node_address().to_string(), "192.0.2.1:7000");
  others.listen_address = others.listen_address.with_port(0);
  EXPECT_THAT(validate(others).error().to_string(), HasSubstr("listen_address"));
  Config ordered;
  ordered.partitioner = ring::Partitioner::ordered;
  EXPECT_THAT(validate(ordered).error().to_string(),
              HasSubstr("partitioner: rows are stored and paged by tokens of "
                        "org.apache.cassandra.dht.Murmur3Partitioner"));
  Config named;
  named.cluster_name = std::string(129, 'x');
  EXPECT_THAT(validate(named).error().to_string(), HasSubstr("cluster_name"));
  named.cluster_name = std::string(128, 'x');
  named.rack = std::string(257, 'x');
  EXPECT_THAT(validate(named).error().to_string(), HasSubstr("rack"));
  Config small;
  small.commitlog_total_mib = 100;
  EXPECT_THAT(validate(small).error().to_string(), HasSubstr("commitlog_total_mib"));
}

}  // namespace
}  // namespace helenus::node
