// TableOptions: what stands behind WITH in CREATE TABLE.
//
// Those of Cassandra 4.1 are accepted, kept and echoed, with its defaults; they say what this
// database does only where the comment says so. Ours follow behind.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "base/result.h"

namespace helenus::model {

// What concurrent versions of a cell become when read.
enum class Conflicts : std::uint8_t {
  lww = 0,       // the one with the largest timestamp
  siblings = 1,  // all of them; a client that has seen them writes what replaces them
};

// What a write without a context of its client's is taken to have seen.
enum class CausalWrites : std::uint8_t {
  local = 0,   // everything its minting replica has seen
  quorum = 1,  // everything a majority has seen, at the price of one more round trip
};

std::string_view name_of(Conflicts conflicts);
std::string_view name_of(CausalWrites causal_writes);
// The words above ('lww', 'siblings'; 'local', 'quorum'). Errors: invalid_argument.
base::Result<Conflicts> parse_conflicts(std::string_view text);
base::Result<CausalWrites> parse_causal_writes(std::string_view text);

using OptionMap = std::map<std::string, std::string>;

struct TableOptions {
  // Cassandra's.
  std::string additional_write_policy = "99p";
  double bloom_filter_fp_chance = 0.01;
  OptionMap caching = {{"keys", "ALL"}, {"rows_per_partition", "NONE"}};
  bool cdc = false;
  std::string comment;
  OptionMap compaction = {
      {"class", "org.apache.cassandra.db.compaction.SizeTieredCompactionStrategy"},
      {"max_threshold", "32"},
      {"min_threshold", "4"}};
  OptionMap compression = {{"chunk_length_in_kb", "16"},
                           {"class", "org.apache.cassandra.io.compress.LZ4Compressor"}};
  double crc_check_chance = 1.0;
  std::int32_t default_time_to_live = 0;  // obeyed: seconds; 0 is for ever
  std::map<std::string, base::Bytes> extensions;
  std::int32_t gc_grace_seconds = 864000;
  std::int32_t max_index_interval = 2048;
  std::string memtable = "default";
  std::int32_t memtable_flush_period_in_ms = 0;
  std::int32_t min_index_interval = 128;
  std::string read_repair = "BLOCKING";
  std::string speculative_retry = "99p";

  // Ours.
  Conflicts conflicts = Conflicts::lww;
  // The kind of filter of the table's files and its parameters; empty for the default.
  OptionMap filter;
  CausalWrites causal_writes = CausalWrites::local;
  // For how long at least a delete is remembered, so that it beats explicit older timestamps that
  // come later; a delete with an explicit timestamp is remembered an hour in any case.
  std::int32_t delete_memory_seconds = 0;

  friend bool operator==(const TableOptions&, const TableOptions&) = default;
};

// Whether the numbers are in Cassandra's ranges. Errors: invalid_argument with its words
// ("gc_grace_seconds must be greater than or equal to 0 (got -1)").
base::Result<void> validate(const TableOptions& options);

}  // namespace helenus::model
