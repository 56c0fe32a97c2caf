#include "cql/system/system_tables.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "base/assert.h"
#include "base/codec.h"
#include "cql/schema/system_schema.h"
#include "cql/system/schema_rows.h"
#include "model/value.h"
#include "replication/map/replica_map.h"
#include "replication/tablets/held_tablets.h"

namespace helenus::cql {

using base::Bytes;
using model::DataType;
using model::text_value;

namespace {

Bytes inet_value(const runtime::Address& address) {
  return text_value(address.ip_bytes());
}

Bytes timestamp_value(runtime::WallTime time) {
  using std::chrono::milliseconds;
  return model::bigint_value(std::chrono::duration_cast<milliseconds>(time.since_origin()).count());
}

// The smallest token that a partition of these first bytes can have; see model/partition_key.h.
model::Token token_at(base::ByteView border) {
  constexpr std::size_t kKeyspaceSize = sizeof(std::uint32_t);
  std::array<std::byte, sizeof(std::uint64_t)> first{};
  if (border.size() > kKeyspaceSize) {
    const base::ByteView token = border.subspan(kKeyspaceSize);
    std::ranges::copy(token.first(std::min(token.size(), first.size())), first.begin());
  }
  const auto flipped = base::load_be<std::uint64_t>(first.data());
  return model::Token{static_cast<std::int64_t>(flipped ^ (std::uint64_t{1} << 63))};
}

model::Token last_token(const replication::HeldTablet& tablet) {
  if (tablet.key.index + 1 == tablet.keyspace->tablet_count()) return model::kTokenMax;
  const model::Token next = token_at(*tablet.info.range.to);
  ASSERT(next > model::kTokenMin);
  return model::Token{next.value() - 1};
}

Bytes tokens_value(const std::vector<model::Token>& tokens) {
  std::vector<Bytes> texts;
  for (const model::Token token : tokens) texts.push_back(text_value(to_string(token)));
  return model::compose_set(DataType::text(), std::move(texts));
}

// Where nobody is reached by other nodes, drivers are told what they would be told elsewhere.
constexpr std::uint16_t kNodePortUsual = 7000;

void add_local(const CatalogReader& catalog, const NodeFacts& facts,
               const std::vector<model::Token>& tokens, VirtualRows& rows) {
  const runtime::Address node_address =
      facts.node_address.value_or(facts.cql_address.with_port(kNodePortUsual));
  rows.add();
  rows.set("key", text_value("local"));
  rows.set("bootstrapped", text_value("COMPLETED"));
  rows.set("broadcast_address", inet_value(node_address));
  rows.set("broadcast_port", model::int_value(node_address.port()));
  rows.set("cluster_name", text_value(facts.cluster_name));
  rows.set("cql_version", text_value(kCqlVersion));
  rows.set("data_center", text_value(facts.data_center));
  rows.set("gossip_generation", model::int_value(facts.generation));
  rows.set("host_id", model::uuid_value(facts.host_id));
  rows.set("listen_address", inet_value(node_address));
  rows.set("listen_port", model::int_value(node_address.port()));
  rows.set("native_protocol_version", text_value(kNativeProtocolVersion));
  rows.set("partitioner", text_value(kPartitioner));
  rows.set("rack", text_value(facts.rack));
  rows.set("release_version", text_value(kReleaseVersion));
  rows.set("rpc_address", inet_value(facts.cql_address));
  rows.set("rpc_port", model::int_value(facts.cql_address.port()));
  rows.set("schema_version", model::uuid_value(catalog.snapshot()->schema_version()));
  rows.set("tokens", tokens_value(tokens));
}

// What the two tables of peers have in common. Drivers wait after a change of the schema until all
// nodes have the version of the node they ask; see PeerFacts::schema_version.
void add_peer(const PeerFacts& peer, const base::Uuid& schema_version_here, VirtualRows& rows) {
  const base::Uuid& held = peer.schema_version;
  rows.add();
  rows.set("peer", inet_value(peer.node_address));
  rows.set("data_center", text_value(peer.data_center));
  rows.set("host_id", model::uuid_value(peer.host_id));
  rows.set("rack", text_value(peer.rack));
  rows.set("release_version", text_value(kReleaseVersion));
  rows.set("schema_version", model::uuid_value(held.is_nil() ? schema_version_here : held));
  rows.set("tokens", tokens_value(peer.tokens));
}

// By their addresses alone: of nodes that differ in their ports only, one is shown.
void add_peers(const CatalogReader& catalog, const ClusterPeers& peers, VirtualRows& rows) {
  for (const PeerFacts& peer : peers.others) {
    add_peer(peer, catalog.snapshot()->schema_version(), rows);
    rows.set("rpc_address", inet_value(peer.cql_address));
  }
}

void add_peers_v2(const CatalogReader& catalog, const ClusterPeers& peers, VirtualRows& rows) {
  for (const PeerFacts& peer : peers.others) {
    add_peer(peer, catalog.snapshot()->schema_version(), rows);
    rows.set("peer_port", model::int_value(peer.node_address.port()));
    rows.set("native_address", inet_value(peer.cql_address));
    rows.set("native_port", model::int_value(peer.cql_address.port()));
  }
}

void add_clients(const std::vector<ClientRow>& clients, VirtualRows& rows) {
  for (const ClientRow& client : clients) {
    rows.add();
    rows.set("address", inet_value(client.address));
    rows.set("port", model::int_value(client.address.port()));
    rows.set("connected_at", timestamp_value(client.connected_at));
    if (!client.driver_name.empty()) rows.set("driver_name", text_value(client.driver_name));
    if (!client.driver_version.empty()) {
      rows.set("driver_version", text_value(client.driver_version));
    }
    if (!client.keyspace.empty()) rows.set("keyspace_name", text_value(client.keyspace));
    rows.set("request_count", model::bigint_value(static_cast<std::int64_t>(client.request_count)));
  }
}

void add_settings(const std::vector<SettingRow>& settings, VirtualRows& rows) {
  for (const SettingRow& setting : settings) {
    rows.add();
    rows.set("name", text_value(setting.name));
    rows.set("value", text_value(setting.value));
  }
}

void add_metrics(const std::vector<MetricRow>& metrics, VirtualRows& rows) {
  for (const MetricRow& metric : metrics) {
    rows.add();
    rows.set("name", text_value(metric.name));
    rows.set("labels", text_value(metric.labels));
    rows.set("value", model::double_value(metric.value));
  }
}

void add_trace_sessions(const std::vector<Traces::Session>& traces, const NodeFacts& facts,
                        VirtualRows& rows) {
  for (const Traces::Session& session : traces) {
    rows.add();
    rows.set("session_id", model::uuid_value(session.id));
    rows.set("client", inet_value(session.client));
    rows.set("command", text_value(session.command));
    const runtime::Address coordinator = session.coordinator.value_or(facts.cql_address);
    rows.set("coordinator", inet_value(coordinator));
    rows.set("coordinator_port", model::int_value(coordinator.port()));
    rows.set("duration", model::int_value(session.duration_us));
    std::vector<model::MapEntry> parameters;
    for (const auto& [name, value] : session.parameters) {
      parameters.push_back({text_value(name), text_value(value)});
    }
    rows.set("parameters", model::compose_map(DataType::text(), std::move(parameters)));
    rows.set("request", text_value(session.request));
    rows.set("started_at", timestamp_value(session.started_at));
  }
}

void add_trace_events(const std::vector<Traces::Session>& traces, const NodeFacts& facts,
                      VirtualRows& rows) {
  for (const Traces::Session& session : traces) {
    const runtime::Address source = session.coordinator.value_or(facts.cql_address);
    for (const Traces::Event& event : session.events) {
      rows.add();
      rows.set("session_id", model::uuid_value(session.id));
      rows.set("event_id", model::uuid_value(event.id));
      rows.set("activity", text_value(event.activity));
      rows.set("source", inet_value(source));
      rows.set("source_elapsed", model::int_value(event.elapsed_us));
      rows.set("source_port", model::int_value(source.port()));
      rows.set("thread", text_value("core"));
    }
  }
}

void add_tablets(const replication::Coordinator& coordinator, VirtualRows& rows) {
  const replication::HeldTabletsPtr held = coordinator.tablets();
  if (held == nullptr) return;
  for (const replication::HeldTablet& tablet : held->all()) {
    std::vector<Bytes> peers;
    for (const model::NodeId peer : tablet.peers) peers.push_back(model::uuid_value(peer.value()));
    rows.add();
    rows.set("keyspace_name", text_value(tablet.keyspace->name()));
    rows.set("first_token", model::bigint_value(token_at(tablet.info.range.from).value()));
    rows.set("last_token", model::bigint_value(last_token(tablet).value()));
    rows.set("actor", text_value(fmt::format("{}", tablet.info.actor)));
    rows.set("epoch", model::bigint_value(static_cast<std::int64_t>(tablet.epoch.value())));
    rows.set("core", model::int_value(static_cast<std::int32_t>(tablet.core.value())));
    rows.set("peers", model::compose_set(DataType(model::TypeKind::uuid), std::move(peers)));
  }
}

void add_requests(const std::vector<RequestRow>& requests, VirtualRows& rows) {
  for (const RequestRow& request : requests) {
    rows.add();
    rows.set("core", model::int_value(static_cast<std::int32_t>(request.core)));
    rows.set("id", model::bigint_value(static_cast<std::int64_t>(request.id)));
    rows.set("kind", text_value(request.kind));
    if (!request.keyspace.empty()) rows.set("keyspace_name", text_value(request.keyspace));
    rows.set("consistency", text_value(request.consistency));
    rows.set("phase", text_value(request.phase));
    rows.set("required", model::int_value(static_cast<std::int32_t>(request.required)));
    rows.set("received", model::int_value(static_cast<std::int32_t>(request.received)));
    rows.set("age_us", model::bigint_value(request.age_us));
  }
}

// Of what the metrics say, that which concerns counters.
void add_counters(const std::vector<MetricRow>& metrics, VirtualRows& rows) {
  struct Named {
    std::string_view metric;
    std::string_view name;
  };
  constexpr std::array kNames = {
      Named{"helenus_storage_increments_unfolded", "increments_unfolded"},
      Named{"helenus_operations_total", "ids_taken"},
      Named{"helenus_operations_remembered", "ids_in_window"},
      Named{"helenus_operations_screen_hits_total", "screen_hits"},
      Named{"helenus_operations_duplicates_total", "duplicates"},
      Named{"helenus_operations_false_positives_total", "false_positives"},
      Named{"helenus_operations_expired_total", "ids_expired"},
      Named{"helenus_operations_from_the_future_total", "ids_from_the_future"},
      Named{"helenus_operations_refused_total", "ids_refused"},
  };
  for (const MetricRow& metric : metrics) {
    const auto found = std::ranges::find(kNames, metric.name, &Named::metric);
    if (found == kNames.end()) continue;
    rows.add();
    rows.set("name", text_value(found->name));
    rows.set("value", model::bigint_value(static_cast<std::int64_t>(metric.value)));
  }
}

// Those that all cores of this node read. As in Cassandra the table's name is the keyspace's.
runtime::Task<base::Result<void>> add_built_indexes(const CatalogReader& catalog,
                                                    const replication::Coordinator& coordinator,
                                                    VirtualRows& rows, runtime::Until until) {
  CO_TRY(const auto unbuilt, co_await coordinator.indexes_being_built(std::move(until)));
  const CatalogPtr now = catalog.snapshot();
  for (const auto& [name, keyspace] : now->users().keyspaces()) {
    std::set<std::string_view> built;
    for (const auto& [table_name, table] : keyspace->tables) {
      for (const model::Index& index : table->indexes) {
        const auto storage = now->storage_of(index.id);
        if (storage && !unbuilt.contains(*storage)) built.insert(index.name);
      }
    }
    for (const std::string_view index : built) {
      rows.add();
      rows.set("table_name", text_value(name));
      rows.set("index_name", text_value(index));
    }
  }
  co_return {};
}

template <class Row>
using Source = std::function<SystemSources::Gathered<Row>(runtime::Until)>;
template <class Row>
using Adder = void (*)(const std::vector<Row>&, VirtualRows&);

template <class Row>
runtime::Task<base::Result<void>> gather(const Source<Row>& source, Adder<Row> add,
                                         VirtualRows& rows, runtime::Until until) {
  if (!source) co_return {};
  CO_TRY(const std::vector<Row> gathered, co_await source(std::move(until)));
  add(gathered, rows);
  co_return {};
}

template <class Row>
VirtualTable::WaitingMaker gathered(Source<Row> source,
                                    void (*add)(const std::vector<Row>&, VirtualRows&)) {
  return [source = std::move(source), add](VirtualRows& rows, runtime::Until until) {
    return gather<Row>(source, add, rows, std::move(until));
  };
}

using TraceSource = Source<Traces::Session>;
using TraceAdder = void (*)(const std::vector<Traces::Session>&, const NodeFacts&, VirtualRows&);

runtime::Task<base::Result<void>> gather_traces(const TraceSource& source, TraceAdder add,
                                                const NodeFacts& facts, VirtualRows& rows,
                                                runtime::Until until) {
  if (!source) co_return {};
  CO_TRY(const std::vector<Traces::Session> sessions, co_await source(std::move(until)));
  add(sessions, facts, rows);
  co_return {};
}

VirtualTable::WaitingMaker traced(TraceSource source, TraceAdder add, NodeFacts facts) {
  return [source = std::move(source), add, facts = std::move(facts)](VirtualRows& rows,
                                                                     runtime::Until until) {
    return gather_traces(source, add, facts, rows, std::move(until));
  };
}

}  // namespace

VirtualTables make_system_tables(const CatalogReader& catalog,
                                 const replication::Coordinator& coordinator, NodeFacts facts,
                                 SystemSources sources) {
  VirtualTables tables;
  const model::Schema& all = catalog.snapshot()->schema();
  const auto add = [&](std::string_view keyspace, std::string_view name, auto maker) {
    model::TablePtr table = all.find_table(keyspace, name);
    ASSERT(table != nullptr, "no table {}.{}", keyspace, name);
    tables.add(VirtualTable(std::move(table), std::move(maker)));
  };
  add_schema_tables(all, [&catalog] { return catalog.snapshot()->schema(); }, tables);
  add("system_traces", "sessions", traced(sources.traces, add_trace_sessions, facts));
  add("system_traces", "events", traced(sources.traces, add_trace_events, facts));
  PeersSource peers = std::move(sources.peers);
  if (!peers) {
    peers = [] { return std::make_shared<const ClusterPeers>(); };
  }
  add("system", "local", [&catalog, peers, facts = std::move(facts)](VirtualRows& rows) {
    add_local(catalog, facts, peers()->own_tokens, rows);
  });
  add("system", "peers",
      [&catalog, peers](VirtualRows& rows) { add_peers(catalog, *peers(), rows); });
  add("system", "peers_v2",
      [&catalog, peers](VirtualRows& rows) { add_peers_v2(catalog, *peers(), rows); });
  // Programs that cut a scan into parts ask for it; where there is no estimate they go by tokens.
  add("system", "size_estimates", [](VirtualRows&) {});
  add("system", "IndexInfo",
      VirtualTable::WaitingMaker([&catalog, &coordinator](VirtualRows& rows, runtime::Until until) {
        return add_built_indexes(catalog, coordinator, rows, std::move(until));
      }));
  add("helenus", "tablets", [&coordinator](VirtualRows& rows) { add_tablets(coordinator, rows); });
  add("helenus", "clients", gathered(std::move(sources.clients), add_clients));
  add("helenus", "counters", gathered(sources.metrics, add_counters));
  add("helenus", "requests", gathered(std::move(sources.requests), add_requests));
  add("helenus", "settings", [source = std::move(sources.settings)](VirtualRows& rows) {
    if (source) add_settings(source(), rows);
  });
  add("helenus", "metrics", gathered(std::move(sources.metrics), add_metrics));
  return tables;
}

}  // namespace helenus::cql
