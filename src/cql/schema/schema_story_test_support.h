// For tests: a schema that statements change, one after the other.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "base/assert.h"
#include "base/codec.h"
#include "cql/parser/parser.h"
#include "cql/schema/schema_change.h"
#include "model/schema.h"

namespace helenus::cql::testing {

class SchemaStory {
 public:
  explicit SchemaStory(model::Schema system = {}) : system_(std::move(system)) {}

  // "created keyspace ks", "updated table ks.t", "nothing", or "0x2200: text".
  std::string run(std::string_view text) {
    const auto statement = parser::parse(text);
    if (!statement) return "0x2000: " + std::string(statement.error().context());
    if (!is_schema_change(*statement)) return "no change of the schema";
    base::Uuid::Octets octets{};
    base::store_be(octets.data() + 8, ++tables_);
    const SchemaChangeContext context{
        .system = system_,
        .session_keyspace = keyspace,
        .data_centers = data_centers,
        .new_table_id = base::Uuid(octets),
        .now_us = 1'700'000'000'000'000,
    };
    auto transition = apply_schema_change(schema, *statement, context);
    if (!transition) return transition.error().to_string();
    if (!transition->change) {
      EXPECT_EQ(transition->next, schema) << text;
      return "nothing";
    }
    EXPECT_NE(transition->next, schema) << text;
    schema = std::move(transition->next);
    return told(*transition->change);
  }

  // Runs statements that succeed.
  void prepare(std::initializer_list<std::string_view> statements) {
    for (const std::string_view statement : statements) {
      const std::string result = run(statement);
      EXPECT_FALSE(result.starts_with("0x")) << statement << ": " << result;
    }
  }

  const model::Table& table(std::string_view name) const {
    const model::TablePtr found = schema.find_table("ks", name);
    ASSERT(found != nullptr, "no table {}", name);
    return *found;
  }

  static std::string told(const protocol::SchemaChange& change) {
    using protocol::SchemaChangeKind;
    using protocol::SchemaTarget;
    const char* kind = change.kind == SchemaChangeKind::created   ? "created"
                       : change.kind == SchemaChangeKind::updated ? "updated"
                                                                  : "dropped";
    if (change.target == SchemaTarget::keyspace) {
      return fmt::format("{} keyspace {}", kind, change.keyspace);
    }
    return fmt::format("{} {} {}.{}", kind, change.target == SchemaTarget::type ? "type" : "table",
                       change.keyspace, change.name);
  }

  model::Schema schema;
  std::string keyspace = "ks";
  std::vector<std::string> data_centers = {"dc1"};

 private:
  model::Schema system_;
  std::uint64_t tables_ = 0;
};

inline constexpr std::string_view kCreateKeyspace =
    "CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}";

}  // namespace helenus::cql::testing
