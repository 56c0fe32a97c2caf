// A schema that has something of everything, for tests and the golden file.
#pragma once

#include <utility>
#include <vector>

#include "model/schema.h"

namespace helenus::model::testing {

inline base::Uuid uuid_of_text(std::string_view text) {
  return *base::Uuid::parse(text);
}

inline Column column_of(std::string name, ColumnKind kind, std::uint32_t position, DataType type,
                        std::uint32_t id, bool descending = false) {
  return {.name = std::move(name),
          .kind = kind,
          .position = position,
          .type = std::move(type),
          .descending = descending,
          .id = causality::ColumnId{id}};
}

// A type that mentions another, which comes behind it by name.
inline DataType sample_street() {
  return *DataType::user_type("shop", "street",
                              {{.name = "name", .type = DataType::text()},
                               {.name = "Number", .type = DataType(TypeKind::int_)}});
}
inline DataType sample_address() {
  return *DataType::user_type("shop", "address",
                              {{.name = "street", .type = sample_street().frozen()},
                               {.name = "tags", .type = *DataType::set_of(DataType::text())}});
}

inline Table sample_orders() {
  Table table;
  table.keyspace = "shop";
  table.name = "orders";
  table.id = uuid_of_text("5a1c395e-b41f-11e5-9f22-ba0be0483c18");
  table.columns = {
      column_of("customer", ColumnKind::partition_key, 0, DataType(TypeKind::uuid), 1),
      column_of("year", ColumnKind::partition_key, 1, DataType(TypeKind::smallint), 2),
      column_of("at", ColumnKind::clustering, 0, DataType(TypeKind::timestamp), 3, true),
      column_of("Item", ColumnKind::clustering, 1, DataType::text(), 4),
      column_of("home", ColumnKind::static_column, 0, sample_address().frozen(), 5),
      column_of("lines", ColumnKind::regular, 0,
                *DataType::map_of(
                    DataType::text(),
                    *DataType::tuple_of({DataType(TypeKind::int_), DataType(TypeKind::decimal)})),
                6),
      column_of("price", ColumnKind::regular, 0, DataType(TypeKind::decimal), 8),
  };
  table.dropped_columns = {{.name = "old_home",
                            .kind = ColumnKind::regular,
                            .type = sample_street().frozen(),
                            .dropped_at_us = 1'700'000'000'000'000,
                            .id = causality::ColumnId{7}}};
  table.next_column_id = 9;
  table.options.comment = "what people's carts became";
  table.options.default_time_to_live = 86400;
  table.options.extensions = {{"x", base::Bytes::of_static("\xca\xfe")}};
  table.options.conflicts = Conflicts::siblings;
  table.options.causal_writes = CausalWrites::quorum;
  table.options.filter = {{"class", "cuckoo"}};
  table.options.delete_memory_seconds = 7200;
  return table;
}

inline Table sample_users() {
  Table table;
  table.keyspace = "shop";
  table.name = "users";
  table.id = uuid_of_text("6b2d4a6f-b41f-11e5-9f22-ba0be0483c18");
  table.columns = {column_of("id", ColumnKind::partition_key, 0, DataType(TypeKind::int_), 1),
                   column_of("name", ColumnKind::regular, 0, DataType::text(), 2)};
  table.next_column_id = 3;
  return table;
}

inline Schema sample_schema() {
  Keyspace shop;
  shop.name = "shop";
  shop.replication = {{"class", "org.apache.cassandra.locator.NetworkTopologyStrategy"},
                      {"dc1", "3"},
                      {"dc2", "2"}};
  shop.types.emplace("address", sample_address());
  shop.types.emplace("street", sample_street());
  Keyspace empty;
  empty.name = "Empty";
  empty.replication = {{"class", "org.apache.cassandra.locator.SimpleStrategy"},
                       {"replication_factor", "1"}};
  empty.durable_writes = false;
  return Schema()
      .with(std::move(shop))
      .with(std::move(empty))
      .with(sample_orders())
      .with(sample_users());
}

}  // namespace helenus::model::testing
