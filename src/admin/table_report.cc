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

std::string done_json(std::string_view what, std::size_t tables) {
  Json json;
  json["done"] = what;
  json["tables"] = tables;
  return json.dump() + "\n";
}

}  // namespace helenus::admin
