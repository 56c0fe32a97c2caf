#include "cql/schema/system_schema.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <variant>

#include "base/assert.h"
#include "base/hash.h"
#include "cql/parser/parser.h"
#include "cql/schema/table_change.h"

namespace helenus::cql {

namespace {

struct SystemTable {
  std::string_view keyspace;
  std::string_view definition;  // CREATE TABLE
};

constexpr std::array kTables = {
    SystemTable{"system",
                "CREATE TABLE local (key text PRIMARY KEY, bootstrapped text, "
                "broadcast_address inet, broadcast_port int, cluster_name text, cql_version text, "
                "data_center text, gossip_generation int, host_id uuid, listen_address inet, "
                "listen_port int, native_protocol_version text, partitioner text, rack text, "
                "release_version text, rpc_address inet, rpc_port int, schema_version uuid, "
                "tokens set<text>, truncated_at map<uuid, blob>) "
                "WITH comment = 'information about the local node'"},
    SystemTable{"system",
                "CREATE TABLE peers (peer inet PRIMARY KEY, data_center text, host_id uuid, "
                "preferred_ip inet, rack text, release_version text, rpc_address inet, "
                "schema_version uuid, tokens set<text>) "
                "WITH comment = 'information about known peers in the cluster'"},
    SystemTable{"system",
                "CREATE TABLE peers_v2 (peer inet, peer_port int, data_center text, host_id uuid, "
                "native_address inet, native_port int, preferred_ip inet, preferred_port int, "
                "rack text, release_version text, schema_version uuid, tokens set<text>, "
                "PRIMARY KEY ((peer), peer_port)) "
                "WITH comment = 'information about known peers in the cluster'"},
    SystemTable{"system",
                "CREATE TABLE size_estimates (keyspace_name text, table_name text, "
                "range_start text, range_end text, mean_partition_size bigint, "
                "partitions_count bigint, "
                "PRIMARY KEY ((keyspace_name), table_name, range_start, range_end)) "
                "WITH comment = 'per-table primary range size estimates'"},
    SystemTable{"system",
                "CREATE TABLE \"IndexInfo\" (table_name text, index_name text, value blob, "
                "PRIMARY KEY ((table_name), index_name)) "
                "WITH comment = 'built column indexes'"},
    SystemTable{"system_schema",
                "CREATE TABLE keyspaces (keyspace_name text PRIMARY KEY, durable_writes boolean, "
                "replication frozen<map<text, text>>) WITH comment = 'keyspace definitions'"},
    SystemTable{"system_schema",
                "CREATE TABLE tables (keyspace_name text, table_name text, "
                "additional_write_policy text, bloom_filter_fp_chance double, "
                "caching frozen<map<text, text>>, cdc boolean, comment text, "
                "compaction frozen<map<text, text>>, compression frozen<map<text, text>>, "
                "crc_check_chance double, dclocal_read_repair_chance double, "
                "default_time_to_live int, extensions frozen<map<text, blob>>, "
                "flags frozen<set<text>>, gc_grace_seconds int, id uuid, max_index_interval int, "
                "memtable text, memtable_flush_period_in_ms int, min_index_interval int, "
                "read_repair text, read_repair_chance double, speculative_retry text, "
                "PRIMARY KEY ((keyspace_name), table_name)) "
                "WITH comment = 'table definitions'"},
    SystemTable{"system_schema",
                "CREATE TABLE columns (keyspace_name text, table_name text, column_name text, "
                "clustering_order text, column_name_bytes blob, kind text, position int, "
                "type text, PRIMARY KEY ((keyspace_name), table_name, column_name)) "
                "WITH comment = 'column definitions'"},
    SystemTable{"system_schema",
                "CREATE TABLE dropped_columns (keyspace_name text, table_name text, "
                "column_name text, dropped_time timestamp, kind text, type text, "
                "PRIMARY KEY ((keyspace_name), table_name, column_name)) "
                "WITH comment = 'dropped column registry'"},
    SystemTable{"system_schema",
                "CREATE TABLE triggers (keyspace_name text, table_name text, trigger_name text, "
                "options frozen<map<text, text>>, "
                "PRIMARY KEY ((keyspace_name), table_name, trigger_name)) "
                "WITH comment = 'trigger definitions'"},
    SystemTable{"system_schema",
                "CREATE TABLE views (keyspace_name text, view_name text, "
                "additional_write_policy text, base_table_id uuid, base_table_name text, "
                "bloom_filter_fp_chance double, caching frozen<map<text, text>>, cdc boolean, "
                "comment text, compaction frozen<map<text, text>>, "
                "compression frozen<map<text, text>>, crc_check_chance double, "
                "dclocal_read_repair_chance double, default_time_to_live int, "
                "extensions frozen<map<text, blob>>, gc_grace_seconds int, id uuid, "
                "include_all_columns boolean, max_index_interval int, memtable text, "
                "memtable_flush_period_in_ms int, min_index_interval int, read_repair text, "
                "read_repair_chance double, speculative_retry text, where_clause text, "
                "PRIMARY KEY ((keyspace_name), view_name)) WITH comment = 'view definitions'"},
    SystemTable{"system_schema",
                "CREATE TABLE indexes (keyspace_name text, table_name text, index_name text, "
                "kind text, options frozen<map<text, text>>, "
                "PRIMARY KEY ((keyspace_name), table_name, index_name)) "
                "WITH comment = 'secondary index definitions'"},
    SystemTable{"system_schema",
                "CREATE TABLE types (keyspace_name text, type_name text, "
                "field_names frozen<list<text>>, field_types frozen<list<text>>, "
                "PRIMARY KEY ((keyspace_name), type_name)) "
                "WITH comment = 'user defined type definitions'"},
    SystemTable{"system_schema",
                "CREATE TABLE functions (keyspace_name text, function_name text, "
                "argument_types frozen<list<text>>, argument_names frozen<list<text>>, body text, "
                "called_on_null_input boolean, language text, return_type text, "
                "PRIMARY KEY ((keyspace_name), function_name, argument_types)) "
                "WITH comment = 'user defined function definitions'"},
    SystemTable{"system_schema",
                "CREATE TABLE aggregates (keyspace_name text, aggregate_name text, "
                "argument_types frozen<list<text>>, final_func text, initcond text, "
                "return_type text, state_func text, state_type text, "
                "PRIMARY KEY ((keyspace_name), aggregate_name, argument_types)) "
                "WITH comment = 'user defined aggregate definitions'"},
    SystemTable{"system_traces",
                "CREATE TABLE sessions (session_id uuid PRIMARY KEY, client inet, command text, "
                "coordinator inet, coordinator_port int, duration int, "
                "parameters map<text, text>, request text, started_at timestamp) "
                "WITH comment = 'tracing sessions'"},
    SystemTable{"system_traces",
                "CREATE TABLE events (session_id uuid, event_id timeuuid, activity text, "
                "source inet, source_elapsed int, source_port int, thread text, "
                "PRIMARY KEY ((session_id), event_id)) "
                "WITH comment = 'tracing events'"},
    SystemTable{"system_virtual_schema",
                "CREATE TABLE keyspaces (keyspace_name text PRIMARY KEY) "
                "WITH comment = 'virtual keyspace definitions'"},
    SystemTable{"system_virtual_schema",
                "CREATE TABLE tables (keyspace_name text, table_name text, comment text, "
                "PRIMARY KEY ((keyspace_name), table_name)) "
                "WITH comment = 'virtual table definitions'"},
    SystemTable{"system_virtual_schema",
                "CREATE TABLE columns (keyspace_name text, table_name text, column_name text, "
                "clustering_order text, column_name_bytes blob, kind text, position int, "
                "type text, PRIMARY KEY ((keyspace_name), table_name, column_name)) "
                "WITH comment = 'virtual column definitions'"},
    SystemTable{"helenus",
                "CREATE TABLE clients (address inet, port int, connected_at timestamp, "
                "driver_name text, driver_version text, keyspace_name text, "
                "request_count bigint, PRIMARY KEY ((address), port)) "
                "WITH comment = 'connections of clients to this node'"},
    SystemTable{"helenus",
                "CREATE TABLE counters (name text PRIMARY KEY, value bigint) "
                "WITH comment = 'increments that are not folded yet, and operation ids, of this "
                "node'"},
    SystemTable{"helenus",
                "CREATE TABLE requests (core int, id bigint, age_us bigint, consistency text, "
                "keyspace_name text, kind text, phase text, received int, required int, "
                "PRIMARY KEY ((core), id)) "
                "WITH comment = 'requests of this moment that concern replicas on several nodes, "
                "and what they wait for'"},
    SystemTable{"helenus",
                "CREATE TABLE settings (name text PRIMARY KEY, value text) "
                "WITH comment = 'what this node was configured with'"},
    SystemTable{"helenus",
                "CREATE TABLE tablets (keyspace_name text, first_token bigint, last_token bigint, "
                "actor text, epoch bigint, core int, peers set<uuid>, "
                "PRIMARY KEY ((keyspace_name), first_token)) "
                "WITH comment = 'the parts of the ring that this node holds, the names it writes "
                "under, and who else holds them'"},
    SystemTable{"helenus",
                "CREATE TABLE metrics (name text, labels text, value double, "
                "PRIMARY KEY ((name), labels)) "
                "WITH comment = 'what /metrics tells, of this node'"},
};

constexpr std::array<std::string_view, 2> kVirtualKeyspaces = {"helenus", "system_virtual_schema"};

base::Uuid id_of(std::string_view keyspace, std::string_view table) {
  const std::string name = fmt::format("{}.{}", keyspace, table);
  const base::Hash128 hash = base::hash128(base::as_bytes(name));
  return base::Uuid::from_random(hash.high, hash.low);
}

model::Table make_system_table(const SystemTable& table, const model::Keyspace& keyspace) {
  const auto statement = parser::parse(table.definition);
  ASSERT(statement.has_value(), "{}: {}", table.definition, statement.error().to_string());
  const auto& create = std::get<parser::CreateTable>(statement->node);
  auto made = make_table(create, keyspace, id_of(table.keyspace, create.table.name.text));
  ASSERT(made.has_value(), "{}: {}", table.definition, made.error().to_string());
  made->options.gc_grace_seconds = 0;
  return *std::move(made);
}

}  // namespace

model::Schema make_system_schema() {
  model::Schema schema;
  for (const SystemTable& table : kTables) {
    if (schema.find_keyspace(table.keyspace) == nullptr) {
      model::Keyspace keyspace;
      keyspace.name = table.keyspace;
      keyspace.replication = {{"class", std::string(kLocalStrategy)}};
      schema = schema.with(std::move(keyspace));
    }
    const model::KeyspacePtr keyspace = schema.find_keyspace(table.keyspace);
    schema = schema.with(make_system_table(table, *keyspace));
  }
  return schema;
}

bool is_virtual_keyspace(std::string_view keyspace) {
  return std::ranges::find(kVirtualKeyspaces, keyspace) != kVirtualKeyspaces.end();
}

}  // namespace helenus::cql
