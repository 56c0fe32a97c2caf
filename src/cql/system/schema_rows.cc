#include "cql/system/schema_rows.h"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/assert.h"
#include "cql/schema/system_schema.h"
#include "model/value.h"

namespace helenus::cql {

using base::Bytes;
using model::DataType;
using model::text_value;

namespace {

using SchemaSource = std::function<model::Schema()>;
// Which keyspaces a table tells of: the stored ones or the virtual ones.
using Choice = bool (*)(std::string_view);

bool is_real(std::string_view keyspace) {
  return !is_virtual_keyspace(keyspace);
}

Bytes map_value(const model::OptionMap& map) {
  std::vector<model::MapEntry> entries;
  for (const auto& [key, value] : map) entries.emplace_back(text_value(key), text_value(value));
  return model::compose_map(DataType::text(), std::move(entries));
}

Bytes extensions_value(const std::map<std::string, Bytes>& map) {
  std::vector<model::MapEntry> entries;
  for (const auto& [key, value] : map) entries.emplace_back(text_value(key), value);
  return model::compose_map(DataType::text(), std::move(entries));
}

Bytes list_value(const std::vector<std::string>& texts) {
  std::vector<Bytes> elements;
  for (const std::string& text : texts) elements.push_back(text_value(text));
  return model::compose_list(elements);
}

// A table without COMPACT STORAGE is 'compound' to drivers; without the flag they show another.
Bytes flags_value(const model::Table& table) {
  std::vector<Bytes> flags = {text_value("compound")};
  if (table.is_counter()) flags.push_back(text_value("counter"));
  return model::compose_set(DataType::text(), std::move(flags));
}

template <class Visitor>
void each_keyspace(const model::Schema& schema, Choice chosen, Visitor visit) {
  for (const auto& [name, keyspace] : schema.keyspaces()) {
    if (chosen(name)) visit(*keyspace);
  }
}

template <class Visitor>
void each_table(const model::Schema& schema, Choice chosen, Visitor visit) {
  each_keyspace(schema, chosen, [&](const model::Keyspace& keyspace) {
    for (const auto& [name, table] : keyspace.tables) visit(*table);
  });
}

void add_keyspaces(const model::Schema& schema, VirtualRows& rows) {
  each_keyspace(schema, is_real, [&](const model::Keyspace& keyspace) {
    rows.add();
    rows.set("keyspace_name", text_value(keyspace.name));
    rows.set("durable_writes", model::boolean_value(keyspace.durable_writes));
    rows.set("replication", map_value(keyspace.replication));
  });
}

void set_options(const model::TableOptions& options, VirtualRows& rows) {
  rows.set("additional_write_policy", text_value(options.additional_write_policy));
  rows.set("bloom_filter_fp_chance", model::double_value(options.bloom_filter_fp_chance));
  rows.set("caching", map_value(options.caching));
  rows.set("cdc", model::boolean_value(options.cdc));
  rows.set("comment", text_value(options.comment));
  rows.set("compaction", map_value(options.compaction));
  rows.set("compression", map_value(options.compression));
  rows.set("crc_check_chance", model::double_value(options.crc_check_chance));
  // Without a meaning since Cassandra 4, kept for drivers.
  rows.set("dclocal_read_repair_chance", model::double_value(0));
  rows.set("read_repair_chance", model::double_value(0));
  rows.set("default_time_to_live", model::int_value(options.default_time_to_live));
  rows.set("extensions", extensions_value(options.extensions));
  rows.set("gc_grace_seconds", model::int_value(options.gc_grace_seconds));
  rows.set("max_index_interval", model::int_value(options.max_index_interval));
  if (options.memtable != "default") rows.set("memtable", text_value(options.memtable));
  rows.set("memtable_flush_period_in_ms", model::int_value(options.memtable_flush_period_in_ms));
  rows.set("min_index_interval", model::int_value(options.min_index_interval));
  rows.set("read_repair", text_value(options.read_repair));
  rows.set("speculative_retry", text_value(options.speculative_retry));
}

// Options of ours have no columns of their own there; drivers show extensions.
model::TableOptions with_ours_as_extensions(model::TableOptions options) {
  const model::TableOptions defaults;
  const auto extend = [&](const char* name, std::string_view value) {
    options.extensions.try_emplace(name, text_value(value));
  };
  if (options.conflicts != defaults.conflicts) {
    extend("helenus.conflicts", name_of(options.conflicts));
  }
  if (options.causal_writes != defaults.causal_writes) {
    extend("helenus.causal_writes", name_of(options.causal_writes));
  }
  if (options.delete_memory_seconds != defaults.delete_memory_seconds) {
    extend("helenus.delete_memory", std::to_string(options.delete_memory_seconds));
  }
  for (const auto& [name, value] : options.filter) {
    options.extensions.try_emplace("helenus.filter." + name, text_value(value));
  }
  return options;
}

void add_tables(const model::Schema& schema, VirtualRows& rows) {
  each_table(schema, is_real, [&](const model::Table& table) {
    rows.add();
    rows.set("keyspace_name", text_value(table.keyspace));
    rows.set("table_name", text_value(table.name));
    rows.set("flags", flags_value(table));
    rows.set("id", model::uuid_value(table.id));
    set_options(with_ours_as_extensions(table.options), rows);
  });
}

std::string_view clustering_order(const model::Column& column) {
  if (column.kind != model::ColumnKind::clustering) return "none";
  return column.descending ? "desc" : "asc";
}

void add_columns(const model::Schema& schema, Choice chosen, VirtualRows& rows) {
  each_table(schema, chosen, [&](const model::Table& table) {
    for (const model::Column& column : table.columns) {
      const bool is_key = column.kind == model::ColumnKind::partition_key ||
                          column.kind == model::ColumnKind::clustering;
      rows.add();
      rows.set("keyspace_name", text_value(table.keyspace));
      rows.set("table_name", text_value(table.name));
      rows.set("column_name", text_value(column.name));
      rows.set("clustering_order", text_value(clustering_order(column)));
      rows.set("column_name_bytes", text_value(column.name));
      rows.set("kind", text_value(name_of(column.kind)));
      rows.set("position",
               model::int_value(is_key ? static_cast<std::int32_t>(column.position) : -1));
      rows.set("type", text_value(column.type.to_cql()));
    }
  });
}

void add_dropped_columns(const model::Schema& schema, VirtualRows& rows) {
  each_table(schema, is_real, [&](const model::Table& table) {
    for (const model::DroppedColumn& dropped : table.dropped_columns) {
      rows.add();
      rows.set("keyspace_name", text_value(table.keyspace));
      rows.set("table_name", text_value(table.name));
      rows.set("column_name", text_value(dropped.name));
      rows.set("dropped_time", model::bigint_value(dropped.dropped_at_us / 1000));
      rows.set("kind", text_value(name_of(dropped.kind)));
      rows.set("type", text_value(dropped.type.to_cql()));
    }
  });
}

void add_indexes(const model::Schema& schema, VirtualRows& rows) {
  each_table(schema, is_real, [&](const model::Table& table) {
    for (const model::Index& index : table.indexes) {
      model::OptionMap options = index.options;
      options["target"] = model::target_text(table, index);
      rows.add();
      rows.set("keyspace_name", text_value(table.keyspace));
      rows.set("table_name", text_value(table.name));
      rows.set("index_name", text_value(index.name));
      rows.set("kind", text_value(index.is_custom ? "CUSTOM" : "COMPOSITES"));
      rows.set("options", map_value(options));
    }
  });
}

void add_types(const model::Schema& schema, VirtualRows& rows) {
  each_keyspace(schema, is_real, [&](const model::Keyspace& keyspace) {
    for (const auto& [name, type] : keyspace.types) {
      std::vector<std::string> field_types;
      for (const DataType& part : type.parts()) field_types.push_back(part.to_cql());
      const auto field_names = type.field_names();
      rows.add();
      rows.set("keyspace_name", text_value(keyspace.name));
      rows.set("type_name", text_value(name));
      rows.set("field_names", list_value({field_names.begin(), field_names.end()}));
      rows.set("field_types", list_value(field_types));
    }
  });
}

void add_virtual_keyspaces(const model::Schema& schema, VirtualRows& rows) {
  each_keyspace(schema, is_virtual_keyspace, [&](const model::Keyspace& keyspace) {
    rows.add();
    rows.set("keyspace_name", text_value(keyspace.name));
  });
}

void add_virtual_tables(const model::Schema& schema, VirtualRows& rows) {
  each_table(schema, is_virtual_keyspace, [&](const model::Table& table) {
    rows.add();
    rows.set("keyspace_name", text_value(table.keyspace));
    rows.set("table_name", text_value(table.name));
    rows.set("comment", text_value(table.options.comment));
  });
}

}  // namespace

void add_schema_tables(const model::Schema& system, SchemaSource schema, VirtualTables& tables) {
  using Maker = std::function<void(const model::Schema&, VirtualRows&)>;
  const auto add = [&](std::string_view keyspace, std::string_view name, Maker make) {
    model::TablePtr table = system.find_table(keyspace, name);
    ASSERT(table != nullptr, "no table {}.{}", keyspace, name);
    tables.add(VirtualTable(std::move(table), [schema, make = std::move(make)](VirtualRows& rows) {
      make(schema(), rows);
    }));
  };
  const auto nothing = [](const model::Schema&, VirtualRows&) {};
  add("system_schema", "keyspaces", add_keyspaces);
  add("system_schema", "tables", add_tables);
  add("system_schema", "columns",
      [](const model::Schema& now, VirtualRows& rows) { add_columns(now, is_real, rows); });
  add("system_schema", "dropped_columns", add_dropped_columns);
  add("system_schema", "types", add_types);
  add("system_schema", "indexes", add_indexes);
  for (const char* name : {"triggers", "views", "functions", "aggregates"}) {
    add("system_schema", name, nothing);
  }
  add("system_virtual_schema", "keyspaces", add_virtual_keyspaces);
  add("system_virtual_schema", "tables", add_virtual_tables);
  add("system_virtual_schema", "columns", [](const model::Schema& now, VirtualRows& rows) {
    add_columns(now, is_virtual_keyspace, rows);
  });
}

}  // namespace helenus::cql
