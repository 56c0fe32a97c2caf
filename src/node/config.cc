#include "node/config.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <initializer_list>
#include <utility>

#include <fmt/ranges.h>

#include "base/log.h"
#include "membership/gossip_service.h"
#include "metadata/cluster_metadata.h"
#include "ring/topology.h"
#include "runtime/loopback.h"
#include "storage/engine/engine_options.h"

namespace helenus::node {

using base::Errc;
using base::Error;
using base::Result;
using runtime::Address;
using runtime::BackgroundShare;
using storage::LogSyncMode;

namespace {

constexpr std::array<std::pair<std::string_view, LogSyncMode>, 3> kSyncModes = {{
    {"batch", LogSyncMode::batch},
    {"group", LogSyncMode::group},
    {"periodic", LogSyncMode::periodic},
}};
constexpr std::array<std::pair<std::string_view, ReplicationBy>, 2> kReplications = {{
    {"deltas", ReplicationBy::deltas},
    {"anti_entropy", ReplicationBy::anti_entropy},
}};
constexpr std::array<std::string_view, 3> kFileBackends = {"auto", "io_uring", "threads"};

template <std::string Config::* kMember>
Result<void> set_text(Config& config, std::string_view value) {
  if (value.empty()) return Error(Errc::invalid_argument, "may not be empty");
  config.*kMember = value;
  return {};
}
template <std::string Config::* kMember>
std::string show_text(const Config& config) {
  return config.*kMember;
}

constexpr std::uint32_t kGuardrailMax = 2'147'483'647;

template <auto kMember, std::uint32_t kLeast, std::uint32_t kMost>
Result<void> set_number(Config& config, std::string_view value) {
  std::uint32_t number = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (error != std::errc() || end != value.data() + value.size() || number < kLeast ||
      number > kMost) {
    return Error(Errc::invalid_argument, "'{}' is no number from {} to {}", value, kLeast, kMost);
  }
  config.*kMember = number;
  return {};
}
template <auto kMember>
Result<void> set_guardrail(Config& config, std::string_view value) {
  std::uint32_t number = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (error != std::errc() || end != value.data() + value.size() || number > kGuardrailMax) {
    return Error(Errc::invalid_argument, "'{}' is no number from 0 to {}", value, kGuardrailMax);
  }
  config.guardrails.*kMember = number;
  return {};
}
template <auto kMember>
std::string show_guardrail(const Config& config) {
  return std::to_string(config.guardrails.*kMember);
}

template <auto kMember>
Result<void> set_guardrail_flag(Config& config, std::string_view value) {
  if (value != "true" && value != "false") {
    return Error(Errc::invalid_argument, "'{}' is neither true nor false", value);
  }
  config.guardrails.*kMember = value == "true";
  return {};
}
template <auto kMember>
std::string show_guardrail_flag(const Config& config) {
  return config.guardrails.*kMember ? "true" : "false";
}

template <std::uint32_t Config::* kMember>
std::string show_number(const Config& config) {
  return std::to_string(config.*kMember);
}

std::string show_connections_per_address(const Config& config) {
  return std::to_string(config.cql_connections_per_address());
}

template <Address Config::* kMember>
Result<void> set_address(Config& config, std::string_view value) {
  TRY(config.*kMember, Address::parse(value));
  return {};
}
template <Address Config::* kMember>
std::string show_address(const Config& config) {
  return (config.*kMember).to_string();
}

template <std::optional<Address> Config::* kMember>
Result<void> set_broadcast(Config& config, std::string_view value) {
  // Any port will do to read an address: others are told the one that is listened on.
  const bool v6 = value.contains(':');
  const auto address =
      Address::parse(v6 ? fmt::format("[{}]:1", value) : fmt::format("{}:1", value));
  if (!address) return Error(Errc::invalid_argument, "'{}' is no IP address", value);
  config.*kMember = *address;
  return {};
}
template <std::optional<Address> Config::* kMember>
std::string show_broadcast(const Config& config) {
  return (config.*kMember) ? (config.*kMember)->ip_text() : "";
}

std::string_view trimmed(std::string_view text) {
  const auto begin = text.find_first_not_of(' ');
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(' ') - begin + 1);
}

std::vector<std::string> items_of(std::string_view list) {
  std::vector<std::string> items;
  for (std::string_view rest = list;;) {
    const auto comma = rest.find(',');
    items.emplace_back(trimmed(rest.substr(0, comma)));
    if (comma == std::string_view::npos) return items;
    rest.remove_prefix(comma + 1);
  }
}

// A path may have a comma, but not on the command line.
Result<void> set_data_directories(Config& config, std::span<const std::string> items) {
  std::vector<std::string> paths;
  for (std::string_view path : items) {
    while (path.size() > 1 && path.ends_with('/')) path.remove_suffix(1);
    if (path.empty()) return Error(Errc::invalid_argument, "may not be empty");
    if (std::ranges::find(paths, path) != paths.end()) {
      return Error(Errc::invalid_argument, "{} is there twice", path);
    }
    paths.emplace_back(path);
  }
  if (paths.size() > storage::EngineOptions::kDataDirectoriesMax) {
    return Error(Errc::invalid_argument, "{} folders; there may be {}", paths.size(),
                 storage::EngineOptions::kDataDirectoriesMax);
  }
  config.data_directory = std::move(paths.front());
  paths.erase(paths.begin());
  config.more_data_directories = std::move(paths);
  return {};
}
Result<void> set_data_directories_text(Config& config, std::string_view value) {
  return set_data_directories(config, items_of(value));
}
std::string show_data_directories(const Config& config) {
  std::string text = config.data_directory;
  for (const std::string& path : config.more_data_directories) text += ", " + path;
  return text;
}

Result<void> set_seeds_text(Config& config, std::string_view value) {
  std::vector<Address> seeds;
  for (const std::string& item : items_of(value)) {
    TRY(const Address seed, Address::parse(item));
    if (std::ranges::find(seeds, seed) != seeds.end()) {
      return Error(Errc::invalid_argument, "{} is there twice", seed);
    }
    seeds.push_back(seed);
  }
  if (seeds.size() > membership::GossipService::kSeedsMax) {
    return Error(Errc::invalid_argument, "{} seeds; there may be {}", seeds.size(),
                 membership::GossipService::kSeedsMax);
  }
  config.seeds = std::move(seeds);
  return {};
}
// No address has a comma: with one an item is several.
Result<void> set_seeds(Config& config, std::span<const std::string> items) {
  return set_seeds_text(config, fmt::format("{}", fmt::join(items, ",")));
}
std::string show_seeds(const Config& config) {
  return fmt::format("{}", fmt::join(config.seeds, ", "));
}

Result<void> set_partitioner(Config& config, std::string_view value) {
  TRY(config.partitioner, ring::parse_partitioner(value));
  return {};
}
std::string show_partitioner(const Config& config) {
  const std::string_view name = ring::class_name_of(config.partitioner);
  return std::string(name.substr(name.find_last_of('.') + 1));
}

template <double Config::* kMember, double kLeast, double kMost>
Result<void> set_decimal(Config& config, std::string_view value) {
  double number = 0;
  const auto [end, error] =
      std::from_chars(value.data(), value.data() + value.size(), number, std::chars_format::fixed);
  const bool is_number = error == std::errc() && end == value.data() + value.size();
  if (!is_number || !(number >= kLeast && number <= kMost)) {
    return Error(Errc::invalid_argument, "'{}' is no number from {} to {}", value, kLeast, kMost);
  }
  config.*kMember = number;
  return {};
}
template <double Config::* kMember>
std::string show_decimal(const Config& config) {
  return fmt::format("{}", config.*kMember);
}

template <bool Config::* kMember>
Result<void> set_truth(Config& config, std::string_view value) {
  if (value != "true" && value != "false") {
    return Error(Errc::invalid_argument, "'{}' is neither true nor false", value);
  }
  config.*kMember = value == "true";
  return {};
}
template <bool Config::* kMember>
std::string show_truth(const Config& config) {
  return config.*kMember ? "true" : "false";
}

Result<void> set_sync(Config& config, std::string_view value) {
  for (const auto& [name, mode] : kSyncModes) {
    if (name != value) continue;
    config.commitlog_sync = mode;
    return {};
  }
  return Error(Errc::invalid_argument, "'{}' is neither batch, group nor periodic", value);
}
std::string show_sync(const Config& config) {
  for (const auto& [name, mode] : kSyncModes) {
    if (mode == config.commitlog_sync) return std::string(name);
  }
  return "";
}

Result<void> set_replication(Config& config, std::string_view value) {
  for (const auto& [name, by] : kReplications) {
    if (name != value) continue;
    config.replication_by = by;
    return {};
  }
  return Error(Errc::invalid_argument, "'{}' is neither deltas nor anti_entropy", value);
}
std::string show_replication(const Config& config) {
  for (const auto& [name, by] : kReplications) {
    if (by == config.replication_by) return std::string(name);
  }
  return "";
}

Result<void> set_backend(Config& config, std::string_view value) {
  if (std::ranges::find(kFileBackends, value) == kFileBackends.end()) {
    return Error(Errc::invalid_argument, "'{}' is neither auto, io_uring nor threads", value);
  }
  config.file_backend = value;
  return {};
}

Result<void> set_log(Config& config, std::string_view value) {
  TRY_VOID(base::LogLevels::parse(value));
  config.log = value;
  return {};
}

constexpr std::uint32_t kMibMax = 1U << 20;

// The server keeps 256 MiB for the requests of all clients, and the largest must fit twice,
// compressed and plain.
constexpr std::uint32_t kCqlRequestBytesMax = 134'215'680;

constexpr std::array kFields = {
    ConfigField{"cluster_name", set_text<&Config::cluster_name>, show_text<&Config::cluster_name>},
    ConfigField{"data_center", set_text<&Config::data_center>, show_text<&Config::data_center>},
    ConfigField{"rack", set_text<&Config::rack>, show_text<&Config::rack>},
    ConfigField{"data_directory", set_data_directories_text, show_data_directories,
                set_data_directories},
    ConfigField{"listen_address", set_address<&Config::listen_address>,
                show_address<&Config::listen_address>},
    ConfigField{"broadcast_address", set_broadcast<&Config::broadcast_address>,
                show_broadcast<&Config::broadcast_address>},
    ConfigField{"cluster_secret_file", set_text<&Config::cluster_secret_file>,
                show_text<&Config::cluster_secret_file>},
    ConfigField{"seeds", set_seeds_text, show_seeds, set_seeds},
    ConfigField{"replace_node", set_text<&Config::replace_node>, show_text<&Config::replace_node>},
    ConfigField{"tokens", set_number<&Config::tokens, 1, ring::kTokensMax>,
                show_number<&Config::tokens>},
    ConfigField{"partitioner", set_partitioner, show_partitioner},
    ConfigField{"gossip_interval_ms", set_number<&Config::gossip_interval_ms, 10, 60'000>,
                show_number<&Config::gossip_interval_ms>},
    ConfigField{"phi_threshold", set_decimal<&Config::phi_threshold, 1.0, 64.0>,
                show_decimal<&Config::phi_threshold>},
    ConfigField{"replication_by", set_replication, show_replication},
    ConfigField{"anti_entropy_interval_ms",
                set_number<&Config::anti_entropy_interval_ms, 10, 60'000>,
                show_number<&Config::anti_entropy_interval_ms>},
    ConfigField{"cql_address", set_address<&Config::cql_address>,
                show_address<&Config::cql_address>},
    ConfigField{"cql_broadcast_address", set_broadcast<&Config::cql_broadcast_address>,
                show_broadcast<&Config::cql_broadcast_address>},
    ConfigField{"cql_connections_max", set_number<&Config::cql_connections_max, 1, 65536>,
                show_number<&Config::cql_connections_max>},
    ConfigField{"cql_connections_per_address_max",
                set_number<&Config::cql_connections_per_address_max, 0, 65536>,
                show_connections_per_address},
    ConfigField{"cql_request_bytes_max",
                set_number<&Config::cql_request_bytes_max, 65536, kCqlRequestBytesMax>,
                show_number<&Config::cql_request_bytes_max>},
    ConfigField{"request_timeout_ms", set_number<&Config::request_timeout_ms, 1, 3'600'000>,
                show_number<&Config::request_timeout_ms>},
    ConfigField{"write_timeout_ms", set_number<&Config::write_timeout_ms, 1, 3'600'000>,
                show_number<&Config::write_timeout_ms>},
    ConfigField{"client_lost_after_ms", set_number<&Config::client_lost_after_ms, 1'000, 600'000>,
                show_number<&Config::client_lost_after_ms>},
    ConfigField{"batch_size_warn_threshold",
                set_guardrail<&cql::Guardrails::batch_size_warn_threshold>,
                show_guardrail<&cql::Guardrails::batch_size_warn_threshold>},
    ConfigField{"batch_size_fail_threshold",
                set_guardrail<&cql::Guardrails::batch_size_fail_threshold>,
                show_guardrail<&cql::Guardrails::batch_size_fail_threshold>},
    ConfigField{"unlogged_batch_across_partitions_warn_threshold",
                set_guardrail<&cql::Guardrails::unlogged_batch_across_partitions_warn_threshold>,
                show_guardrail<&cql::Guardrails::unlogged_batch_across_partitions_warn_threshold>},
    ConfigField{"keyspaces_warn_threshold",
                set_guardrail<&cql::Guardrails::keyspaces_warn_threshold>,
                show_guardrail<&cql::Guardrails::keyspaces_warn_threshold>},
    ConfigField{"keyspaces_fail_threshold",
                set_guardrail<&cql::Guardrails::keyspaces_fail_threshold>,
                show_guardrail<&cql::Guardrails::keyspaces_fail_threshold>},
    ConfigField{"tables_warn_threshold", set_guardrail<&cql::Guardrails::tables_warn_threshold>,
                show_guardrail<&cql::Guardrails::tables_warn_threshold>},
    ConfigField{"tables_fail_threshold", set_guardrail<&cql::Guardrails::tables_fail_threshold>,
                show_guardrail<&cql::Guardrails::tables_fail_threshold>},
    ConfigField{"columns_per_table_warn_threshold",
                set_guardrail<&cql::Guardrails::columns_per_table_warn_threshold>,
                show_guardrail<&cql::Guardrails::columns_per_table_warn_threshold>},
    ConfigField{"columns_per_table_fail_threshold",
                set_guardrail<&cql::Guardrails::columns_per_table_fail_threshold>,
                show_guardrail<&cql::Guardrails::columns_per_table_fail_threshold>},
    ConfigField{"secondary_indexes_per_table_warn_threshold",
                set_guardrail<&cql::Guardrails::secondary_indexes_per_table_warn_threshold>,
                show_guardrail<&cql::Guardrails::secondary_indexes_per_table_warn_threshold>},
    ConfigField{"secondary_indexes_per_table_fail_threshold",
                set_guardrail<&cql::Guardrails::secondary_indexes_per_table_fail_threshold>,
                show_guardrail<&cql::Guardrails::secondary_indexes_per_table_fail_threshold>},
    ConfigField{"fields_per_udt_warn_threshold",
                set_guardrail<&cql::Guardrails::fields_per_udt_warn_threshold>,
                show_guardrail<&cql::Guardrails::fields_per_udt_warn_threshold>},
    ConfigField{"fields_per_udt_fail_threshold",
                set_guardrail<&cql::Guardrails::fields_per_udt_fail_threshold>,
                show_guardrail<&cql::Guardrails::fields_per_udt_fail_threshold>},
    ConfigField{"page_size_warn_threshold",
                set_guardrail<&cql::Guardrails::page_size_warn_threshold>,
                show_guardrail<&cql::Guardrails::page_size_warn_threshold>},
    ConfigField{"page_size_fail_threshold",
                set_guardrail<&cql::Guardrails::page_size_fail_threshold>,
                show_guardrail<&cql::Guardrails::page_size_fail_threshold>},
    ConfigField{"partition_keys_in_select_warn_threshold",
                set_guardrail<&cql::Guardrails::partition_keys_in_select_warn_threshold>,
                show_guardrail<&cql::Guardrails::partition_keys_in_select_warn_threshold>},
    ConfigField{"partition_keys_in_select_fail_threshold",
                set_guardrail<&cql::Guardrails::partition_keys_in_select_fail_threshold>,
                show_guardrail<&cql::Guardrails::partition_keys_in_select_fail_threshold>},
    ConfigField{"allow_filtering_enabled",
                set_guardrail_flag<&cql::Guardrails::allow_filtering_enabled>,
                show_guardrail_flag<&cql::Guardrails::allow_filtering_enabled>},
    ConfigField{"secondary_indexes_enabled",
                set_guardrail_flag<&cql::Guardrails::secondary_indexes_enabled>,
                show_guardrail_flag<&cql::Guardrails::secondary_indexes_enabled>},
    ConfigField{"user_timestamps_enabled",
                set_guardrail_flag<&cql::Guardrails::user_timestamps_enabled>,
                show_guardrail_flag<&cql::Guardrails::user_timestamps_enabled>},
    ConfigField{"group_by_enabled", set_guardrail_flag<&cql::Guardrails::group_by_enabled>,
                show_guardrail_flag<&cql::Guardrails::group_by_enabled>},
    ConfigField{"drop_truncate_table_enabled",
                set_guardrail_flag<&cql::Guardrails::drop_truncate_table_enabled>,
                show_guardrail_flag<&cql::Guardrails::drop_truncate_table_enabled>},
    ConfigField{"alter_table_enabled", set_guardrail_flag<&cql::Guardrails::alter_table_enabled>,
                show_guardrail_flag<&cql::Guardrails::alter_table_enabled>},
    ConfigField{"column_value_size_warn_threshold",
                set_guardrail<&cql::Guardrails::column_value_size_warn_threshold>,
                show_guardrail<&cql::Guardrails::column_value_size_warn_threshold>},
    ConfigField{"column_value_size_fail_threshold",
                set_guardrail<&cql::Guardrails::column_value_size_fail_threshold>,
                show_guardrail<&cql::Guardrails::column_value_size_fail_threshold>},
    ConfigField{"collection_size_warn_threshold",
                set_guardrail<&cql::Guardrails::collection_size_warn_threshold>,
                show_guardrail<&cql::Guardrails::collection_size_warn_threshold>},
    ConfigField{"collection_size_fail_threshold",
                set_guardrail<&cql::Guardrails::collection_size_fail_threshold>,
                show_guardrail<&cql::Guardrails::collection_size_fail_threshold>},
    ConfigField{"items_per_collection_warn_threshold",
                set_guardrail<&cql::Guardrails::items_per_collection_warn_threshold>,
                show_guardrail<&cql::Guardrails::items_per_collection_warn_threshold>},
    ConfigField{"items_per_collection_fail_threshold",
                set_guardrail<&cql::Guardrails::items_per_collection_fail_threshold>,
                show_guardrail<&cql::Guardrails::items_per_collection_fail_threshold>},
    ConfigField{"admin_address", set_address<&Config::admin_address>,
                show_address<&Config::admin_address>},
    ConfigField{"admin_remote", set_truth<&Config::admin_remote>,
                show_truth<&Config::admin_remote>},
    ConfigField{"key_value_remote", set_truth<&Config::key_value_remote>,
                show_truth<&Config::key_value_remote>},
    ConfigField{"commitlog_directory", set_text<&Config::commitlog_directory>,
                show_text<&Config::commitlog_directory>},
    ConfigField{"commitlog_sync", set_sync, show_sync},
    ConfigField{"commitlog_sync_period_ms",
                set_number<&Config::commitlog_sync_period_ms, 1, 600'000>,
                show_number<&Config::commitlog_sync_period_ms>},
    ConfigField{"commitlog_segment_mib", set_number<&Config::commitlog_segment_mib, 32, 1024>,
                show_number<&Config::commitlog_segment_mib>},
    ConfigField{"commitlog_total_mib", set_number<&Config::commitlog_total_mib, 128, kMibMax>,
                show_number<&Config::commitlog_total_mib>},
    ConfigField{"accept_lost_log_of_start",
                set_number<&Config::accept_lost_log_of_start, 0, UINT32_MAX>,
                show_number<&Config::accept_lost_log_of_start>},
    ConfigField{"disk_reserve_mib", set_number<&Config::disk_reserve_mib, 0, kMibMax>,
                show_number<&Config::disk_reserve_mib>},
    ConfigField{"memtable_mib", set_number<&Config::memtable_mib, 8, kMibMax>,
                show_number<&Config::memtable_mib>},
    ConfigField{"block_cache_mib", set_number<&Config::block_cache_mib, 0, kMibMax>,
                show_number<&Config::block_cache_mib>},
    ConfigField{"file_reads_max", set_number<&Config::file_reads_max, 1, 65536>,
                show_number<&Config::file_reads_max>},
    ConfigField{"compactions_max", set_number<&Config::compactions_max, 1, 64>,
                show_number<&Config::compactions_max>},
    ConfigField{"compaction_mib_per_second",
                set_number<&Config::compaction_mib_per_second, 0, kMibMax>,
                show_number<&Config::compaction_mib_per_second>},
    ConfigField{"merge_ranges_mib", set_number<&Config::merge_ranges_mib, 1, kMibMax>,
                show_number<&Config::merge_ranges_mib>},
    ConfigField{"operation_window_ms", set_number<&Config::operation_window_ms, 1000, 604'800'000>,
                show_number<&Config::operation_window_ms>},
    ConfigField{"operation_skew_ms", set_number<&Config::operation_skew_ms, 0, 3'600'000>,
                show_number<&Config::operation_skew_ms>},
    ConfigField{"cores", set_number<&Config::cores, 0, 1024>, show_number<&Config::cores>},
    ConfigField{
        "background_share",
        set_decimal<&Config::background_share, BackgroundShare::kLeast, BackgroundShare::kMost>,
        show_decimal<&Config::background_share>},
    ConfigField{"file_backend", set_backend, show_text<&Config::file_backend>},
    ConfigField{"log", set_log, show_text<&Config::log>},
};

bool is_wildcard(const Address& address) {
  return std::ranges::all_of(address.ip_bytes(), [](char octet) { return octet == 0; });
}

}  // namespace

std::span<const ConfigField> config_fields() {
  return kFields;
}

const ConfigField* find_config_field(std::string_view name) {
  const auto* found = std::ranges::find(kFields, name, &ConfigField::name);
  return found == kFields.end() ? nullptr : found;
}

namespace {

// Of fields that do not fit together; the first is the one to change.
Error misfit(const ConfigSource& source, std::initializer_list<std::string_view> fields,
             std::string_view what) {
  int line = 0;
  for (const std::string_view field : fields) {
    const auto found = source.lines.find(field);
    if (found != source.lines.end()) line = std::max(line, found->second);
  }
  const std::string place = line == 0 ? "" : fmt::format("{}:{}: ", source.file_name, line);
  return {Errc::invalid_argument, "{}{}: {}", place, *fields.begin(), what};
}

Result<void> validate_names(const Config& config, const ConfigSource& source) {
  const auto check = [&](std::string_view field, const std::string& name,
                         std::size_t size_max) -> Result<void> {
    if (name.size() <= size_max) return {};
    return misfit(source, {field}, fmt::format("{} bytes; at most {}", name.size(), size_max));
  };
  TRY_VOID(check("cluster_name", config.cluster_name, metadata::kClusterNameSizeMax));
  TRY_VOID(check("data_center", config.data_center, ring::Topology::kNameSizeMax));
  return check("rack", config.rack, ring::Topology::kNameSizeMax);
}

Result<void> validate_cluster(const Config& config, const ConfigSource& source) {
  TRY_VOID(validate_names(config, source));
  if (is_wildcard(config.node_address())) {
    return misfit(source, {"broadcast_address", "listen_address"},
                  fmt::format("must be the address that other nodes connect to when "
                              "listen_address is {}",
                              config.listen_address));
  }
  if (config.listen_address.port() == 0 && (!config.seeds.empty() || config.broadcast_address)) {
    return misfit(source, {"listen_address", "seeds", "broadcast_address"},
                  "other nodes must know the port; 0, a free one, is for a node alone");
  }
  if (config.partitioner != ring::Partitioner::murmur3) {
    return misfit(source, {"partitioner"},
                  fmt::format("rows are stored and paged by tokens of {}, so no other is served",
                              ring::class_name_of(ring::Partitioner::murmur3)));
  }
  return {};
}

}  // namespace

Result<void> validate(const Config& config, const ConfigSource& source) {
  TRY_VOID(validate_cluster(config, source));
  if (!config.admin_remote && !runtime::is_loopback(config.admin_address)) {
    return misfit(source, {"admin_address", "admin_remote"},
                  fmt::format("{} is no loopback address, and whoever reaches it may ask; to open "
                              "it, set admin_remote: true",
                              config.admin_address));
  }
  if (is_wildcard(config.cql_address_for_clients())) {
    return misfit(source, {"cql_broadcast_address", "cql_address"},
                  fmt::format("must be the address that clients connect to when cql_address is {}",
                              config.cql_address));
  }
  if (config.commitlog_total_mib < 4 * config.commitlog_segment_mib) {
    return misfit(source, {"commitlog_total_mib", "commitlog_segment_mib"},
                  fmt::format("{} has no room for four segments of {} MiB",
                              config.commitlog_total_mib, config.commitlog_segment_mib));
  }
  return {};
}

}  // namespace helenus::node
