#include "admin/table_report.h"

#include <utility>

#include <nlohmann/json.hpp>

namespace helenus::admin {

using Json = nlohmann::ordered_json;

std::string tables_json(std::span<const TableReport> tables) {
  Json list = Json::array();
  for (const TableReport& each : tables) {
    Json json;
    json["keyspace"] = each.keyspace;
    json["table"] = each.table;
    json["sstables"] = each.here.sstables;
    json["sstables_set_aside"] = each.here.sstables_set_aside;
    json["sstable_bytes"] = each.here.sstable_bytes;
    json["sstable_keys"] = each.here.sstable_keys;
    json["sstable_deletes"] = each.here.sstable_deletes;
    json["sstable_increments"] = each.here.sstable_increments;
    json["sstable_resident_bytes"] = each.here.sstable_resident_bytes;
    json["memtable_keys"] = each.here.memtable_keys;
    json["memtable_bytes"] = each.here.memtable_bytes;
    list.push_back(std::move(json));
  }
  Json json;
  json["tables"] = std::move(list);
  return json.dump(1) + "\n";
}

namespace {

constexpr std::string_view name_of_rule(storage::CompactionRule rule) {
  switch (rule) {
    case storage::CompactionRule::leveled:
      return "leveled";
    case storage::CompactionRule::time_window:
      return "time-window";
    case storage::CompactionRule::size_tiered:
      break;
  }
  return "size-tiered";
}

Json json_of(const TableReport& table, const storage::RunningCompaction& compaction) {
  Json json;
  json["keyspace"] = table.keyspace;
  json["table"] = table.table;
  json["strategy"] = name_of_rule(compaction.rule);
  json["for"] = compaction.collects ? "garbage" : "files";
  json["files"] = compaction.files;
  json["bytes"] = compaction.bytes;
  json["level"] = compaction.level;
  json["keys"] = compaction.keys;
  json["keys_done"] = compaction.keys_done;
  return json;
}

}  // namespace

std::string compactions_json(std::span<const TableReport> tables) {
  Json running = Json::array();
  Json waiting = Json::array();
  for (const TableReport& each : tables) {
    for (const auto& compaction : each.here.compactions) {
      running.push_back(json_of(each, compaction));
    }
    if (each.here.compaction_backlog_bytes == 0) continue;
    Json json;
    json["keyspace"] = each.keyspace;
    json["table"] = each.table;
    json["strategy"] = name_of_rule(each.here.compaction_rule);
    json["files"] = each.here.sstables;
    json["bytes"] = each.here.compaction_backlog_bytes;
    waiting.push_back(std::move(json));
  }
  Json json;
  json["running"] = std::move(running);
  json["waiting"] = std::move(waiting);
  return json.dump(1) + "\n";
}

std::string done_json(std::string_view what, std::size_t tables) {
  Json json;
  json["done"] = what;
  json["tables"] = tables;
  return json.dump() + "\n";
}

}  // namespace helenus::admin
