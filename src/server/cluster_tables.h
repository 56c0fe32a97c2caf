// What a node answers to /cluster, /tables and what is below them, and the tables that people are
// shown of it.
//
// The answer may come from anybody: it is checked field by field, and what is shown of it has no
// control characters. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace helenus::server {

struct ShownNode {
  std::string host_id;
  std::string state;  // "normal"
  std::string node_address;
  std::string client_address;
  std::string data_center;
  std::string rack;
  bool is_up = false;                                     // it answers drivers
  bool is_alive = false;                                  // it answers nodes
  std::optional<std::uint64_t> silent_ms = std::nullopt;  // none: it has not been heard of
  std::uint64_t tokens = 0;
  std::optional<std::uint64_t> load_bytes = std::nullopt;
  std::optional<double> owns = std::nullopt;  // 1 is all
  std::optional<std::string> schema_version = std::nullopt;

  // "UN": U up, S alive and serving nobody yet, D down; then N normal, J joining, L leaving,
  // E re-entering, R being removed, ? for a state of a later release.
  std::string letters() const;
};

struct ShownCluster {
  std::string cluster_name;
  std::string this_node;
  std::string keyspace;  // that `owns` is of; empty: of the tokens
  std::uint64_t metadata_version = 0;
  bool change_under_way = false;
  std::string trouble;  // of this node; empty: none
  std::vector<ShownNode> nodes;
};

struct ShownTablet {
  std::string token;
  std::size_t owner = 0;  // places in `nodes`
  std::optional<std::size_t> next_owner = std::nullopt;
  std::vector<std::size_t> replicas;
  std::vector<std::size_t> pending;
};

struct ShownRing {
  ShownCluster cluster;
  std::vector<ShownTablet> tablets;
};

// A tablet that a node holds: the tokens above `from` and up to `to`.
struct ShownHeldTablet {
  std::string keyspace;
  std::string from;
  std::string to;
  bool is_pending = false;
  std::vector<std::size_t> replicas;  // places in `nodes`
};

struct ShownHeldTablets {
  ShownCluster cluster;
  std::vector<ShownHeldTablet> tablets;
};

// What a node that holds tablets with the one that was asked lacks of what is there, and the other
// way round, as far as it has told.
struct ShownMissing {
  std::string peer;  // its address, or its id if that is not known
  std::uint64_t tablets = 0;
  std::uint64_t there = 0;
  std::uint64_t here = 0;
};

// What a node has of a table.
struct ShownTable {
  std::string keyspace;
  std::string table;
  std::uint64_t sstables = 0;
  std::uint64_t sstables_set_aside = 0;
  std::uint64_t sstable_bytes = 0;
  std::uint64_t sstable_keys = 0;
  std::uint64_t sstable_resident_bytes = 0;
  std::uint64_t memtable_keys = 0;
  std::uint64_t memtable_bytes = 0;
};

// Merges of files: those under way, and tables that wait for one.
struct ShownCompaction {
  std::string table;  // "keyspace.table"
  std::string strategy;
  std::string why;  // of one under way: "files", "garbage"
  std::uint64_t files = 0;
  std::uint64_t bytes = 0;
  std::uint64_t level = 0;
  std::uint64_t keys = 0;
  std::uint64_t keys_done = 0;
};
struct ShownCompactions {
  std::vector<ShownCompaction> running;
  std::vector<ShownCompaction> waiting;
};

// A snapshot.
struct ShownSnapshot {
  std::string name;
  std::uint64_t created_ms = 0;  // since 1970
  std::vector<std::string> keyspaces;
  std::uint64_t tables = 0;
  std::uint64_t files = 0;
  std::uint64_t bytes = 0;
  std::string trouble;  // why it is none
};

// How many tablets were taken back from one.
struct ShownRestore {
  std::uint64_t anew = 0;
  std::uint64_t united = 0;
  std::uint64_t current = 0;
};

// What was done to how many tables, or nodes.
struct ShownDone {
  std::string what;  // "flush"
  std::uint64_t tables = 0;
};

// Errors: corrupt, for what is not JSON or not what a node says.
base::Result<ShownCluster> parse_cluster(std::string_view text);
base::Result<ShownRing> parse_ring(std::string_view text);
base::Result<ShownHeldTablets> parse_held_tablets(std::string_view text);
base::Result<std::vector<ShownMissing>> parse_missing(std::string_view text);
base::Result<std::vector<ShownTable>> parse_tables(std::string_view text);
// What is under way; empty if nothing is.
base::Result<std::string> parse_ring_phase(std::string_view text);
base::Result<ShownDone> parse_done(std::string_view text);
base::Result<ShownCompactions> parse_compactions(std::string_view text);
base::Result<ShownSnapshot> parse_snapshot(std::string_view text);
base::Result<std::vector<ShownSnapshot>> parse_snapshots(std::string_view text);
base::Result<void> parse_removed(std::string_view text);
base::Result<ShownRestore> parse_restored(std::string_view text);
// What a node says of why it has no answer; nothing if it does not say. `starting` if it is not
// there yet.
struct Trouble {
  bool starting = false;
  std::string text;
};
std::optional<Trouble> parse_trouble(std::string_view text);
// The same JSON, laid out and in ASCII. Errors: corrupt.
base::Result<std::string> tidy_json(std::string_view text);

// One datacentre after the other, nodes by their addresses; then in words what is not well.
std::string format_status(const ShownCluster& cluster);
// By ascending token.
std::string format_ring(const ShownRing& ring);
// As they come: by keyspace, then by ascending token.
std::string format_held_tablets(const ShownHeldTablets& held);
// By address; "nothing to repair" if nothing is missing.
std::string format_missing(std::vector<ShownMissing> missing);
std::string format_tables(const std::vector<ShownTable>& tables);
std::string format_done(const ShownDone& done);
std::string format_compactions(const ShownCompactions& compactions);
// By name.
std::string format_snapshots(const std::vector<ShownSnapshot>& snapshots);
std::string format_restored(std::string_view name, const ShownRestore& restored);

// "1.5 GiB".
std::string format_size(std::uint64_t bytes);
// "25 s", "3 min".
std::string format_time(std::uint64_t milliseconds);

}  // namespace helenus::server
