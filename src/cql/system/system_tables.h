// The rows of the tables of system_schema.h: who this node is, what the schema is, and how the node
// fares. Drivers believe them: a wrong type or a missing row breaks a connect.
//
// Core affinity: that of the catalog, or of its view.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/uuid.h"
#include "cql/catalog/catalog_snapshot.h"
#include "cql/system/peers.h"
#include "cql/system/traces.h"
#include "cql/system/virtual_table.h"
#include "model/token.h"
#include "replication/coordinator/coordinator.h"
#include "runtime/address.h"
#include "runtime/operation.h"
#include "runtime/task.h"
#include "runtime/time.h"

namespace helenus::cql {

// What clients are told they talk to. Drivers choose by these what they ask.
inline constexpr std::string_view kReleaseVersion = "4.1.7";
inline constexpr std::string_view kCqlVersion = "3.4.6";
inline constexpr std::string_view kNativeProtocolVersion = "5";
inline constexpr std::string_view kPartitioner = "org.apache.cassandra.dht.Murmur3Partitioner";
inline constexpr std::string_view kSnitch = "SimpleSnitch";

// Who this node is.
struct NodeFacts {
  base::Uuid host_id;
  std::string cluster_name;
  std::string data_center;
  std::string rack;
  // What clients connect to. Never a wildcard: a driver connects to what it reads here.
  runtime::Address cql_address;
  // When the node started, in seconds; grows from one start to the next.
  std::int32_t generation = 0;
  // Where other nodes reach it. None: nobody does, and drivers are told Cassandra's usual port.
  std::optional<runtime::Address> node_address = std::nullopt;
};

struct ClientRow {
  runtime::Address address;
  runtime::WallTime connected_at;
  std::string driver_name;
  std::string driver_version;
  std::string keyspace;
  std::uint64_t request_count = 0;
};

struct SettingRow {
  std::string name;
  std::string value;
};

struct MetricRow {
  std::string name;
  std::string labels;  // as Prometheus writes them, without braces; may be empty
  double value = 0;
};

// A request that is under way among replicas on several nodes.
struct RequestRow {
  std::uint32_t core = 0;
  std::uint64_t id = 0;  // of the core
  std::string kind;
  std::string keyspace;
  std::string consistency;
  std::string phase;
  std::uint32_t required = 0;
  std::uint32_t received = 0;
  std::int64_t age_us = 0;
};

// Where the rows of the keyspaces helenus and system_traces come from. Each is asked anew for each
// read; no two rows may have the same key. An absent one has no rows.
struct SystemSources {
  template <class Row>
  using Gathered = runtime::Task<base::Result<std::vector<Row>>>;

  // Of all cores.
  std::function<Gathered<ClientRow>(runtime::Until)> clients;
  std::function<Gathered<MetricRow>(runtime::Until)> metrics;
  std::function<Gathered<RequestRow>(runtime::Until)> requests;
  // Of other nodes, too.
  std::function<Gathered<Traces::Session>(runtime::Until)> traces;
  std::function<std::vector<SettingRow>()> settings;
  // Without one the node is alone, and nobody knows its tokens.
  PeersSource peers = nullptr;
};

// All tables of make_system_schema(). What is passed outlives them.
VirtualTables make_system_tables(const CatalogReader& catalog,
                                 const replication::Coordinator& coordinator, NodeFacts facts,
                                 SystemSources sources);

}  // namespace helenus::cql
