// Config: what an operator decides about a node. Each field has a name in the configuration file
// (config_file.h); docs/operations/configuration.md tells of them one by one.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/secret.h"
#include "cql/execute/guardrails.h"
#include "ring/partitioner.h"
#include "runtime/address.h"
#include "runtime/background_share.h"
#include "storage/log/log_options.h"

namespace helenus::node {

// What the block cache has where nothing is set, and nobody says what the machine has.
inline constexpr std::uint32_t kBlockCacheMibUnknown = 256;

// How what is written comes to the other replicas: as it is written, or by anti-entropy alone.
enum class ReplicationBy : std::uint8_t { deltas, anti_entropy };

struct Config {
  // Everything the node keeps lies below this folder; one node at a time uses it.
  std::string data_directory = "data";
  // Folders that have files of tables besides that one, as on other disks. In the file they follow
  // it in the same list. Their order is part of the data.
  std::vector<std::string> more_data_directories = {};
  // Health, status and metrics over HTTP.
  runtime::Address admin_address = runtime::Address::v4({127, 0, 0, 1}, 7070);
  // Whether admin_address may be another than a loopback address: it asks nobody who they are.
  bool admin_remote = false;
  // Whether rows are read and written over HTTP by clients that are not on this machine.
  bool key_value_remote = false;

  // Whether it keeps data and serves CQL; without, a node is its identity and its admin port. Not
  // in the file: for tests.
  bool with_database = true;

  // Its place. None of them changes later.
  std::string cluster_name = "Helenus";
  std::string data_center = "datacenter1";
  std::string rack = "rack1";

  // Where other nodes connect, and where they are told to; the latter must be given when the former
  // is a wildcard. Its port is never used. Port 0 is for a node alone.
  runtime::Address listen_address = runtime::Address::v4({127, 0, 0, 1}, 7000);
  std::optional<runtime::Address> broadcast_address = std::nullopt;
  // The file of the secret that the nodes of the cluster know each other by; if empty,
  // cluster_secret in the data folder, if that is there. Its content may be given instead; not in
  // the file of settings: for tests.
  std::string cluster_secret_file = {};
  base::Secret<std::string> cluster_secret = {};
  // Nodes to ask for the cluster; none: this node alone.
  std::vector<runtime::Address> seeds = {};
  std::string replace_node = {};  // a dead one, in whose place this one joins: its id or address
  // Of a cluster that this node founds.
  ring::Partitioner partitioner = ring::Partitioner::murmur3;
  std::uint32_t tokens = ring::kTokensDefault;
  std::uint32_t gossip_interval_ms = 1000;
  double phi_threshold = 8;
  ReplicationBy replication_by = ReplicationBy::deltas;
  std::uint32_t anti_entropy_interval_ms = 100;

  // Where clients connect, and what drivers are told to connect to; the latter must be given when
  // the former is a wildcard. Its port is never used.
  runtime::Address cql_address = runtime::Address::v4({127, 0, 0, 1}, 9042);
  std::optional<runtime::Address> cql_broadcast_address = std::nullopt;
  static constexpr std::uint32_t kCqlConnectionsPerAddressMaxDefault = 2048;
  std::uint32_t cql_connections_max = 4096;
  // Of one client's address; zero is no limit but the one above. See
  // cql_connections_per_address().
  std::optional<std::uint32_t> cql_connections_per_address_max = std::nullopt;
  std::uint32_t cql_request_bytes_max = std::uint32_t{16} << 20;
  std::uint32_t request_timeout_ms = 10'000;
  // Of a write, if that is less.
  std::uint32_t write_timeout_ms = 4'000;
  // See cql::ConnectionTimeouts::lost_after.
  std::uint32_t client_lost_after_ms = 3'000;

  // In Cassandra's names (cql/execute/guardrails.h).
  cql::Guardrails guardrails = {};

  // The commit log's folder; "commitlog" in the data folder if empty.
  std::string commitlog_directory = {};
  storage::LogSyncMode commitlog_sync = storage::LogSyncMode::batch;
  std::uint32_t commitlog_sync_period_ms = 1000;
  std::uint32_t commitlog_segment_mib = 64;
  std::uint32_t commitlog_total_mib = 8192;
  // Of which start the lost log is given up (storage::EngineOptions); zero is none.
  std::uint32_t accept_lost_log_of_start = 0;

  // What is kept of the disk for deletes (storage::EngineOptions); zero is nothing.
  std::uint32_t disk_reserve_mib = 128;

  // Into how many parts the ring is cut; fixed when the folder is made.
  std::uint32_t memtable_mib = 256;
  // Zero: by the machine; where nobody says what that has, kBlockCacheMibUnknown.
  std::uint32_t block_cache_mib = 0;
  std::uint32_t file_reads_max = 64;  // of each core
  std::uint32_t compactions_max = 2;
  std::uint32_t compaction_mib_per_second = 0;  // zero is no limit
  std::uint32_t merge_ranges_mib = 64;          // of each flush and compaction

  // For how long an operation is known by its id, and how far ahead of a node's clock an id may be.
  std::uint32_t operation_window_ms = 600'000;
  std::uint32_t operation_skew_ms = 60'000;

  // Event loops, one a core, that serve clients and keep data. 0: as many as the machine gives.
  std::uint32_t cores = 0;
  // What flushes, compactions and the like have of a core while requests wait.
  double background_share = runtime::BackgroundShare::kDefault;
  std::string file_backend = "auto";
  std::string log = "info";

  // As set, or no more than half of all, so that one address cannot take all of them.
  std::uint32_t cql_connections_per_address() const {
    return cql_connections_per_address_max.value_or(
        std::clamp(cql_connections_max / 2, 1U, kCqlConnectionsPerAddressMaxDefault));
  }
  // What other nodes are told to connect to, with the port.
  runtime::Address node_address() const {
    return broadcast_address ? broadcast_address->with_port(listen_address.port()) : listen_address;
  }
  // What clients are told to connect to, with the port.
  runtime::Address cql_address_for_clients() const {
    return cql_broadcast_address ? cql_broadcast_address->with_port(cql_address.port())
                                 : cql_address;
  }
};

// One field of the file.
struct ConfigField {
  std::string_view name;
  // From one text, as on the command line, where the items of a list have commas between them.
  // Errors: invalid_argument with what is wrong with the value.
  base::Result<void> (*set)(Config& config, std::string_view value);
  std::string (*show)(const Config& config);
  // Of a list: from its items, at least one. Null if its value is none.
  base::Result<void> (*set_items)(Config& config, std::span<const std::string> items) = nullptr;
};

// All of them, in the order of the documentation.
std::span<const ConfigField> config_fields();
// Null for a name that is no field's.
const ConfigField* find_config_field(std::string_view name);

// Where fields were set.
struct ConfigSource {
  std::string file_name;
  // Of the fields that the file sets and nothing has set after it.
  std::map<std::string, int, std::less<>> lines;
};

// Whether the fields fit together. Errors: invalid_argument, naming the field; if the source has a
// line of those that do not fit, beginning with the last of them: "helenus.yaml:12: rack: ...".
base::Result<void> validate(const Config& config, const ConfigSource& source = {});

}  // namespace helenus::node
