#include "server/cluster_tables.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

namespace helenus::server {

using base::Errc;
using base::Error;
using base::Result;
using Json = nlohmann::ordered_json;

namespace {

// ---- Reading ----

// What a terminal would take for an order is shown as a question mark.
std::string printable(std::string text) {
  std::ranges::replace_if(
      text, [](char c) { return static_cast<unsigned char>(c) < ' ' || c == '\x7f'; }, '?');
  return text;
}

// The fields of an object that somebody sent; the first one that is missing or of another kind is
// the error.
class Fields {
 public:
  explicit Fields(const Json& object) : object_(object) {
    if (!object.is_object()) fail("an object");
  }

  std::string text(const char* name) {
    const Json* value = find(name);
    return value != nullptr && value->is_string() ? printable(value->get<std::string>())
                                                  : failed<std::string>(name);
  }
  bool flag(const char* name) {
    const Json* value = find(name);
    return value != nullptr && value->is_boolean() ? value->get<bool>() : failed<bool>(name);
  }
  std::uint64_t count(const char* name) {
    const Json* value = find(name);
    return value != nullptr && value->is_number_unsigned() ? value->get<std::uint64_t>()
                                                           : failed<std::uint64_t>(name);
  }
  const Json& list(const char* name) {
    const Json* value = find(name);
    if (value != nullptr && value->is_array()) return *value;
    fail(name);
    return empty_;
  }

  bool has(const char* name) const {
    const Json* value = find(name);
    return value != nullptr && !value->is_null();
  }
  std::optional<std::string> optional_text(const char* name) {
    return has(name) ? std::optional(text(name)) : std::nullopt;
  }
  std::optional<std::uint64_t> optional_count(const char* name) {
    return has(name) ? std::optional(count(name)) : std::nullopt;
  }
  std::optional<double> optional_number(const char* name) {
    if (!has(name)) return std::nullopt;
    const Json* value = find(name);
    return value->is_number() ? value->get<double>() : failed<double>(name);
  }

  void fail(std::string_view name) {
    if (wrong_.empty()) wrong_ = name;
  }
  Result<void> finish() const {
    if (wrong_.empty()) return {};
    return Error(Errc::corrupt, "an answer without {}", wrong_);
  }

 private:
  const Json* find(const char* name) const {
    if (!object_.is_object()) return nullptr;
    const auto found = object_.find(name);
    return found == object_.end() ? nullptr : &*found;
  }
  template <class Value>
  Value failed(std::string_view name) {
    fail(name);
    return Value();
  }

  const Json& object_;
  const Json empty_ = Json::array();
  std::string wrong_;
};

Result<Json> parse_json(std::string_view text) {
  Json json = Json::parse(text, nullptr, false);
  if (json.is_discarded()) return Error(Errc::corrupt, "an answer that is not JSON");
  return json;
}

Result<ShownNode> node_of(const Json& json) {
  Fields fields(json);
  ShownNode node;
  node.host_id = fields.text("host_id");
  node.state = fields.text("state");
  node.node_address = fields.text("node_address");
  node.client_address = fields.text("client_address");
  node.data_center = fields.text("data_center");
  node.rack = fields.text("rack");
  node.is_up = fields.flag("is_up");
  node.is_alive = fields.has("is_alive") ? fields.flag("is_alive") : node.is_up;
  node.silent_ms = fields.optional_count("silent_ms");
  node.tokens = fields.optional_count("tokens").value_or(0);
  node.load_bytes = fields.optional_count("load_bytes");
  node.owns = fields.optional_number("owns");
  node.schema_version = fields.optional_text("schema_version");
  TRY_VOID(fields.finish());
  return node;
}

Result<ShownCluster> cluster_of(const Json& json) {
  Fields fields(json);
  ShownCluster cluster;
  cluster.cluster_name = fields.text("cluster_name");
  cluster.this_node = fields.text("this_node");
  cluster.keyspace = fields.optional_text("keyspace").value_or("");
  cluster.metadata_version = fields.count("metadata_version");
  cluster.change_under_way = fields.flag("change_under_way");
  if (fields.has("trouble")) cluster.trouble = fields.text("trouble");
  const Json& nodes = fields.list("nodes");
  TRY_VOID(fields.finish());
  for (const Json& each : nodes) {
    TRY(ShownNode node, node_of(each));
    cluster.nodes.push_back(std::move(node));
  }
  return cluster;
}

Result<std::vector<std::size_t>> places_in(const Json& list, std::size_t nodes) {
  std::vector<std::size_t> places;
  for (const Json& place : list) {
    if (!place.is_number_unsigned() || place.get<std::uint64_t>() >= nodes) {
      return Error(Errc::corrupt, "an answer that names a node which it does not tell of");
    }
    places.push_back(place.get<std::size_t>());
  }
  return places;
}

Result<ShownTablet> tablet_of(const Json& json, std::size_t nodes) {
  Fields fields(json);
  ShownTablet tablet;
  tablet.token = fields.text("token");
  Json owners = Json::array({fields.count("owner")});
  if (fields.has("next_owner")) owners.push_back(fields.count("next_owner"));
  const Json none = Json::array();
  const Json& replicas = fields.has("replicas") ? fields.list("replicas") : none;
  const Json& pending = fields.has("pending") ? fields.list("pending") : none;
  TRY_VOID(fields.finish());
  TRY(const auto owner_places, places_in(owners, nodes));
  tablet.owner = owner_places.front();
  if (owner_places.size() > 1) tablet.next_owner = owner_places.back();
  TRY(tablet.replicas, places_in(replicas, nodes));
  TRY(tablet.pending, places_in(pending, nodes));
  return tablet;
}

}  // namespace

std::string ShownNode::letters() const {
  constexpr std::array<std::pair<std::string_view, char>, 5> kStates = {{{"normal", 'N'},
                                                                         {"joining", 'J'},
                                                                         {"leaving", 'L'},
                                                                         {"removing", 'R'},
                                                                         {"re-entering", 'E'}}};
  const auto* found = std::ranges::find(kStates, state, &std::pair<std::string_view, char>::first);
  const char life = is_up ? 'U' : is_alive ? 'S' : 'D';
  return {life, found == kStates.end() ? '?' : found->second};
}

Result<ShownCluster> parse_cluster(std::string_view text) {
  TRY(const Json json, parse_json(text));
  return cluster_of(json);
}

Result<ShownRing> parse_ring(std::string_view text) {
  TRY(const Json json, parse_json(text));
  ShownRing ring;
  TRY(ring.cluster, cluster_of(json));
  Fields fields(json);
  const Json& tablets = fields.list("tablets");
  TRY_VOID(fields.finish());
  for (const Json& each : tablets) {
    TRY(ShownTablet tablet, tablet_of(each, ring.cluster.nodes.size()));
    ring.tablets.push_back(std::move(tablet));
  }
  return ring;
}

Result<ShownHeldTablets> parse_held_tablets(std::string_view text) {
  TRY(const Json json, parse_json(text));
  ShownHeldTablets held;
  TRY(held.cluster, cluster_of(json));
  Fields fields(json);
  const Json& tablets = fields.list("tablets");
  TRY_VOID(fields.finish());
  for (const Json& each : tablets) {
    Fields tablet(each);
    ShownHeldTablet shown{.keyspace = tablet.text("keyspace"),
                          .from = tablet.text("from"),
                          .to = tablet.text("to"),
                          .is_pending = tablet.flag("is_pending"),
                          .replicas = {}};
    const Json& replicas = tablet.list("replicas");
    TRY_VOID(tablet.finish());
    TRY(shown.replicas, places_in(replicas, held.cluster.nodes.size()));
    held.tablets.push_back(std::move(shown));
  }
  return held;
}

Result<std::vector<ShownMissing>> parse_missing(std::string_view text) {
  TRY(const Json json, parse_json(text));
  Fields fields(json);
  const Json& list = fields.list("peers");
  TRY_VOID(fields.finish());
  std::vector<ShownMissing> missing;
  for (const Json& each : list) {
    Fields peer(each);
    const std::string host_id = peer.text("host_id");
    ShownMissing shown{.peer = peer.optional_text("node_address").value_or(host_id),
                       .tablets = peer.count("tablets"),
                       .there = peer.count("missing_there"),
                       .here = peer.count("missing_here")};
    TRY_VOID(peer.finish());
    missing.push_back(std::move(shown));
  }
  return missing;
}

Result<std::vector<ShownTable>> parse_tables(std::string_view text) {
  TRY(const Json json, parse_json(text));
  Fields fields(json);
  const Json& list = fields.list("tables");
  TRY_VOID(fields.finish());
  std::vector<ShownTable> tables;
  for (const Json& each : list) {
    Fields table(each);
    ShownTable shown;
    shown.keyspace = table.text("keyspace");
    shown.table = table.text("table");
    shown.sstables = table.count("sstables");
    shown.sstables_set_aside = table.count("sstables_set_aside");
    shown.sstable_bytes = table.count("sstable_bytes");
    shown.sstable_keys = table.count("sstable_keys");
    shown.sstable_resident_bytes = table.count("sstable_resident_bytes");
    shown.memtable_keys = table.count("memtable_keys");
    shown.memtable_bytes = table.count("memtable_bytes");
    TRY_VOID(table.finish());
    tables.push_back(std::move(shown));
  }
  return tables;
}

Result<ShownDone> parse_done(std::string_view text) {
  TRY(const Json json, parse_json(text));
  Fields fields(json);
  ShownDone done{.what = fields.text("done"), .tables = fields.count("tables")};
  TRY_VOID(fields.finish());
  return done;
}

Result<std::string> parse_ring_phase(std::string_view text) {
  TRY(const Json json, parse_json(text));
  Fields fields(json);
  std::string phase = fields.text("phase");
  TRY_VOID(fields.finish());
  return phase;
}

std::optional<Trouble> parse_trouble(std::string_view text) {
  const auto json = parse_json(text);
  if (!json) return std::nullopt;
  Fields fields(*json);
  if (fields.has("phase")) {
    Trouble trouble{.starting = true, .text = fields.text("phase")};
    if (fields.finish()) return trouble;
  } else if (fields.has("error")) {
    Trouble trouble{.starting = false, .text = fields.text("error")};
    if (fields.finish()) return trouble;
  }
  return std::nullopt;
}

Result<std::string> tidy_json(std::string_view text) {
  TRY(const Json json, parse_json(text));
  return json.dump(2, ' ', true, Json::error_handler_t::replace) + "\n";
}

// ---- Showing ----

namespace {

// Columns as wide as their widest cell, two spaces apart; the last one is not filled up.
class Table {
 public:
  explicit Table(std::vector<std::string> head) { add(std::move(head)); }

  // Requires: as many cells as the head.
  void add(std::vector<std::string> row) {
    widths_.resize(row.size());
    for (std::size_t i = 0; i < row.size(); ++i) widths_[i] = std::max(widths_[i], row[i].size());
    rows_.push_back(std::move(row));
  }

  std::string text() const {
    std::string text;
    for (const auto& row : rows_) {
      std::string line;
      for (std::size_t i = 0; i < row.size(); ++i) {
        line += i == 0 ? "" : "  ";
        line += fmt::format("{:<{}}", row[i], widths_[i]);
      }
      line.erase(line.find_last_not_of(' ') + 1);
      text += line + "\n";
    }
    return text;
  }

 private:
  std::vector<std::vector<std::string>> rows_;
  std::vector<std::size_t> widths_;
};

std::string format_share(const std::optional<double>& share) {
  return share ? fmt::format("{:.1f}%", *share * 100) : "?";
}

std::string format_head(const ShownCluster& cluster) {
  const auto up = std::ranges::count(cluster.nodes, true, &ShownNode::is_up);
  return fmt::format("Cluster {}: {} of {} nodes up, metadata version {}{}\n", cluster.cluster_name,
                     up, cluster.nodes.size(), cluster.metadata_version,
                     cluster.change_under_way ? ", data is being moved" : "");
}

constexpr std::string_view kLegend =
    "U up, S starting, D down; N normal, J joining, L leaving, E re-entering, R being removed\n";

// Who is not up, and since when as far as the node that was asked knows.
std::string format_absent(const ShownCluster& cluster) {
  std::string text;
  for (const ShownNode& node : cluster.nodes) {
    if (node.is_up) continue;
    if (node.is_alive) {
      text += fmt::format("{} is alive and does not serve clients.\n", node.node_address);
    } else if (node.silent_ms) {
      text += fmt::format("{} is down: it was last heard of {} ago.\n", node.node_address,
                          format_time(*node.silent_ms));
    } else {
      text +=
          fmt::format("{} is down: it was not heard of since the node that was asked started.\n",
                      node.node_address);
    }
  }
  return text.empty() ? text : "\n" + text;
}

// Different schemas on nodes that are up last for a moment, or mean trouble.
std::string format_schemas(const ShownCluster& cluster) {
  std::set<std::string> versions;
  for (const ShownNode& node : cluster.nodes) {
    if (node.is_up && node.schema_version) versions.insert(*node.schema_version);
  }
  if (versions.size() < 2) return "";
  return fmt::format("\nThe nodes that are up have {} different schemas.\n", versions.size());
}

}  // namespace

std::string format_size(std::uint64_t bytes) {
  constexpr std::array kUnits = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  if (bytes < 1024) return fmt::format("{} B", bytes);
  auto size = static_cast<double>(bytes) / 1024;
  std::size_t unit = 0;
  // What would be shown as 1024.0 is one of the next unit.
  while (size >= 1023.95 && unit + 1 < kUnits.size()) {
    size /= 1024;
    ++unit;
  }
  return fmt::format("{:.1f} {}", size, kUnits[unit]);
}

std::string format_time(std::uint64_t milliseconds) {
  const std::uint64_t seconds = milliseconds / 1000;
  if (seconds < 120) return fmt::format("{} s", seconds);
  if (seconds < 120 * 60) return fmt::format("{} min", seconds / 60);
  if (seconds < std::uint64_t{48} * 3600) return fmt::format("{} h", seconds / 3600);
  return fmt::format("{} days", seconds / 86400);
}

std::string format_status(const ShownCluster& cluster) {
  std::map<std::string, std::vector<const ShownNode*>> by_datacentre;
  for (const ShownNode& node : cluster.nodes) by_datacentre[node.data_center].push_back(&node);
  std::string text = format_head(cluster) + std::string(kLegend);
  const std::string owns =
      cluster.keyspace.empty() ? "Owns" : fmt::format("Owns of {}", cluster.keyspace);
  for (auto& [datacentre, nodes] : by_datacentre) {
    std::ranges::sort(nodes, {}, [](const ShownNode* node) {
      return std::tie(node->node_address, node->host_id);
    });
    Table table({"", "Address", "Load", "Tokens", owns, "Host ID", "Rack", "Schema"});
    for (const ShownNode* node : nodes) {
      table.add({node->letters(), node->node_address,
                 node->load_bytes ? format_size(*node->load_bytes) : "?",
                 std::to_string(node->tokens), format_share(node->owns), node->host_id, node->rack,
                 node->schema_version.value_or("?")});
    }
    text += fmt::format("\nDatacentre {}\n{}", datacentre, table.text());
  }
  if (!cluster.trouble.empty()) text += fmt::format("\nTrouble: {}\n", cluster.trouble);
  return text + format_absent(cluster) + format_schemas(cluster);
}

namespace {

std::string addresses_of(const ShownCluster& cluster, const std::vector<std::size_t>& places) {
  std::vector<std::string_view> texts;
  for (const std::size_t place : places) texts.push_back(cluster.nodes[place].node_address);
  return fmt::format("{}", fmt::join(texts, " "));
}

}  // namespace

std::string format_held_tablets(const ShownHeldTablets& held) {
  Table table({"Keyspace", "Tokens above", "up to", "Replicas"});
  for (const ShownHeldTablet& tablet : held.tablets) {
    table.add({tablet.keyspace, tablet.from, tablet.to,
               addresses_of(held.cluster, tablet.replicas) +
                   (tablet.is_pending ? ", and this node receives its data" : "")});
  }
  return fmt::format("Node {} holds {} tablets\n\n{}", held.cluster.this_node, held.tablets.size(),
                     table.text());
}

std::string format_missing(std::vector<ShownMissing> missing) {
  std::ranges::sort(missing, {}, &ShownMissing::peer);
  Table table({"Node", "Tablets", "Missing there", "Missing here"});
  for (const ShownMissing& each : missing) {
    table.add({each.peer, std::to_string(each.tablets), std::to_string(each.there),
               std::to_string(each.here)});
  }
  const bool is_equal = std::ranges::all_of(
      missing, [](const ShownMissing& each) { return each.there == 0 && each.here == 0; });
  return (missing.empty() ? "" : table.text()) + (is_equal ? "nothing to repair\n" : "");
}

std::string format_tables(const std::vector<ShownTable>& tables) {
  Table table({"Table", "SSTables", "Size", "Keys", "Kept in memory", "Memtables", "Keys in them"});
  std::string trouble;
  for (const ShownTable& each : tables) {
    const std::string name = each.keyspace + "." + each.table;
    table.add({name, std::to_string(each.sstables), format_size(each.sstable_bytes),
               std::to_string(each.sstable_keys), format_size(each.sstable_resident_bytes),
               format_size(each.memtable_bytes), std::to_string(each.memtable_keys)});
    if (each.sstables_set_aside > 0) {
      trouble += fmt::format("{} files of {} are damaged and not merged any more; see the log.\n",
                             each.sstables_set_aside, name);
    }
  }
  return table.text() + (trouble.empty() ? "" : "\n" + trouble);
}

std::string format_done(const ShownDone& done) {
  const std::string tables = done.tables == 1 ? "1 table" : fmt::format("{} tables", done.tables);
  if (done.what == "drain") {
    return fmt::format("The node serves no clients any more, {} flushed. It can be stopped.\n",
                       done.tables == 1 ? "1 table is" : tables + " are");
  }
  if (done.what == "accept-data-loss") {
    if (done.tables == 0) return "No node that is down is waited for: nothing is given up.\n";
    return fmt::format("What only {} had that {} down is given up.\n",
                       done.tables == 1 ? "one node" : fmt::format("{} nodes", done.tables),
                       done.tables == 1 ? "is" : "are");
  }
  if (done.what == "leave") {
    return "The node has left the cluster, and serves no clients any more. It can be stopped.\n";
  }
  if (done.what == "remove") return "The node is removed: others hold what it held.\n";
  if (done.what == "abandon") return "The change is given up: all is as it was before.\n";
  return fmt::format("{}: {}\n", done.what, tables);
}

std::string format_ring(const ShownRing& ring) {
  const ShownCluster& cluster = ring.cluster;
  const auto addresses = [&](const std::vector<std::size_t>& places) {
    return addresses_of(cluster, places);
  };
  const bool of_keyspace = !cluster.keyspace.empty();
  std::vector<std::string> head = {"Token", "", "Owner", "Rack", "Datacentre"};
  if (of_keyspace) head.push_back(fmt::format("Replicas of {}", cluster.keyspace));
  Table table(std::move(head));
  for (const ShownTablet& tablet : ring.tablets) {
    const ShownNode& owner = cluster.nodes[tablet.owner];
    std::string owners = owner.node_address;
    if (tablet.next_owner) owners += " -> " + cluster.nodes[*tablet.next_owner].node_address;
    std::vector<std::string> row = {tablet.token, owner.letters(), std::move(owners), owner.rack,
                                    owner.data_center};
    if (of_keyspace) {
      row.push_back(addresses(tablet.replicas));
      if (!tablet.pending.empty()) row.back() += " + " + addresses(tablet.pending);
    }
    table.add(std::move(row));
  }
  return format_head(cluster) + std::string(kLegend) + "\n" + table.text();
}

// ---- Compactions ----

namespace {

Result<ShownCompaction> compaction_of(const Json& json, bool is_running) {
  Fields fields(json);
  ShownCompaction compaction;
  compaction.table = fields.text("keyspace") + "." + fields.text("table");
  compaction.strategy = fields.text("strategy");
  compaction.files = fields.count("files");
  compaction.bytes = fields.count("bytes");
  if (is_running) {
    compaction.why = fields.text("for");
    compaction.level = fields.count("level");
    compaction.keys = fields.count("keys");
    compaction.keys_done = fields.count("keys_done");
  }
  TRY_VOID(fields.finish());
  return compaction;
}

}  // namespace

Result<ShownCompactions> parse_compactions(std::string_view text) {
  TRY(const Json json, parse_json(text));
  Fields fields(json);
  const Json& running = fields.list("running");
  const Json& waiting = fields.list("waiting");
  TRY_VOID(fields.finish());
  ShownCompactions compactions;
  for (const Json& each : running) {
    TRY(ShownCompaction compaction, compaction_of(each, true));
    compactions.running.push_back(std::move(compaction));
  }
  for (const Json& each : waiting) {
    TRY(ShownCompaction compaction, compaction_of(each, false));
    compactions.waiting.push_back(std::move(compaction));
  }
  return compactions;
}

std::string format_compactions(const ShownCompactions& compactions) {
  if (compactions.running.empty() && compactions.waiting.empty()) return "nothing to merge\n";
  std::string text;
  if (!compactions.running.empty()) {
    Table table({"Merging", "Strategy", "For", "Files", "Size", "Into level", "Done"});
    for (const ShownCompaction& each : compactions.running) {
      const std::uint64_t share =
          each.keys == 0 ? 0 : std::min<std::uint64_t>(100, each.keys_done * 100 / each.keys);
      table.add({each.table, each.strategy, each.why, std::to_string(each.files),
                 format_size(each.bytes), std::to_string(each.level), fmt::format("{} %", share)});
    }
    text += table.text();
  }
  if (!compactions.waiting.empty()) {
    Table table({"Waiting", "Strategy", "Files", "To be rewritten, about"});
    for (const ShownCompaction& each : compactions.waiting) {
      table.add({each.table, each.strategy, std::to_string(each.files), format_size(each.bytes)});
    }
    text += table.text();
  }
  return text;
}

// ---- Snapshots ----

namespace {

Result<ShownSnapshot> snapshot_of(const Json& json) {
  Fields fields(json);
  ShownSnapshot snapshot;
  snapshot.name = fields.text("name");
  snapshot.created_ms = fields.count("created");
  snapshot.tables = fields.count("tables");
  snapshot.files = fields.count("files");
  snapshot.bytes = fields.count("bytes");
  snapshot.trouble = fields.optional_text("trouble").value_or("");
  const Json& keyspaces = fields.list("keyspaces");
  TRY_VOID(fields.finish());
  for (const Json& keyspace : keyspaces) {
    if (!keyspace.is_string()) return Error(Errc::corrupt, "an answer without keyspaces");
    snapshot.keyspaces.push_back(printable(keyspace.get<std::string>()));
  }
  return snapshot;
}

// "2026-11-19 22:31:07", UTC.
std::string format_moment(std::uint64_t milliseconds) {
  const auto seconds = std::chrono::sys_seconds(std::chrono::seconds(milliseconds / 1000));
  return fmt::format("{:%Y-%m-%d %H:%M:%S}", seconds);
}

}  // namespace

Result<ShownSnapshot> parse_snapshot(std::string_view text) {
  TRY(const Json json, parse_json(text));
  return snapshot_of(json);
}

Result<std::vector<ShownSnapshot>> parse_snapshots(std::string_view text) {
  TRY(const Json json, parse_json(text));
  Fields fields(json);
  const Json& list = fields.list("snapshots");
  TRY_VOID(fields.finish());
  std::vector<ShownSnapshot> snapshots;
  for (const Json& each : list) {
    TRY(ShownSnapshot snapshot, snapshot_of(each));
    snapshots.push_back(std::move(snapshot));
  }
  return snapshots;
}

Result<void> parse_removed(std::string_view text) {
  TRY(const Json json, parse_json(text));
  Fields fields(json);
  std::ignore = fields.text("removed");
  return fields.finish();
}

Result<ShownRestore> parse_restored(std::string_view text) {
  TRY(const Json json, parse_json(text));
  Fields fields(json);
  const ShownRestore restored{.anew = fields.count("tablets_anew"),
                              .united = fields.count("tablets_united"),
                              .current = fields.count("tablets_current")};
  TRY_VOID(fields.finish());
  return restored;
}

std::string format_snapshots(const std::vector<ShownSnapshot>& snapshots) {
  if (snapshots.empty()) return "there are no snapshots\n";
  Table table({"Name", "Made (UTC)", "Keyspaces", "Tables", "Files", "Size"});
  for (const ShownSnapshot& each : snapshots) {
    if (!each.trouble.empty()) {
      table.add({each.name, each.trouble, "", "", "", ""});
      continue;
    }
    table.add({each.name, format_moment(each.created_ms),
               fmt::format("{}", fmt::join(each.keyspaces, " ")), std::to_string(each.tables),
               std::to_string(each.files), format_size(each.bytes)});
  }
  return table.text();
}

std::string format_restored(std::string_view name, const ShownRestore& restored) {
  std::string text = fmt::format("Snapshot {} was restored\n", name);
  if (restored.anew > 0) {
    text +=
        fmt::format("{} tablets that only this node holds are as they were then\n", restored.anew);
  }
  const std::uint64_t shared = restored.united + restored.current;
  if (shared > 0) {
    text += fmt::format(
        "{} tablets that other nodes hold, too, are as the cluster has them; {} of them lacked "
        "something that the snapshot has\n",
        shared, restored.united);
  }
  return text;
}

}  // namespace helenus::server
