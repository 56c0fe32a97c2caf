#include "cql/execute/guardrail_checks.h"

#include <algorithm>
#include <set>
#include <utility>
#include <variant>

#include <fmt/ranges.h>

#include "cql/schema/schema_change.h"

namespace helenus::cql {

namespace {

constexpr std::string_view kFilteringReason =
    " ALLOW FILTERING can potentially visit all the data in the table and have unpredictable "
    "performance.";

// A limit and what is said of it; the words come with the number that is there and the limit.
struct Threshold {
  std::string_view name;
  std::uint32_t warn = 0;
  std::uint32_t fail = 0;
};

template <class Words>
QueryResult<void> guard(const Threshold& threshold, std::size_t value, Warnings& warnings,
                        Words words) {
  if (threshold.fail > 0 && value > threshold.fail) {
    return invalid("Guardrail {} violated: {}", threshold.name, words(false, threshold.fail));
  }
  if (threshold.warn > 0 && value > threshold.warn) {
    warnings.push_back(
        fmt::format("Guardrail {} violated: {}", threshold.name, words(true, threshold.warn)));
  }
  return {};
}

QueryResult<void> guard_flag(bool enabled, std::string_view name, std::string_view what,
                             std::string_view reason = "") {
  if (enabled) return {};
  return invalid("Guardrail {} violated: {} is not allowed{}{}", name, what,
                 reason.empty() ? "" : ".", reason);
}

std::set<std::string> names_of(const std::vector<model::TablePtr>& tables) {
  std::set<std::string> names;
  for (const model::TablePtr& table : tables) {
    names.insert(fmt::format("{}.{}", table->keyspace, table->name));
  }
  return names;
}

std::size_t count_of_tables(const model::Schema& schema) {
  std::size_t count = 0;
  for (const auto& [name, keyspace] : schema.keyspaces()) count += keyspace->tables.size();
  return count;
}

// Asks about one statement that changes the schema.
class SchemaGuard {
 public:
  SchemaGuard(const Guardrails& guardrails, const model::Schema& schema,
              std::string_view session_keyspace, Warnings& warnings)
      : rails_(guardrails), schema_(schema), session_(session_keyspace), warnings_(warnings) {}

  QueryResult<void> operator()(const parser::CreateKeyspace& statement) {
    return guard({.name = "keyspaces",
                  .warn = rails_.keyspaces_warn_threshold,
                  .fail = rails_.keyspaces_fail_threshold},
                 schema_.keyspaces().size() + 1, warnings_, [&](bool warns, std::uint32_t limit) {
                   return warns
                              ? fmt::format(
                                    "Creating keyspace {}, current number of keyspaces {} "
                                    "exceeds warning threshold of {}.",
                                    statement.keyspace.text, schema_.keyspaces().size() + 1, limit)
                              : fmt::format(
                                    "Cannot have more than {} keyspaces, aborting the "
                                    "creation of keyspace {}",
                                    limit, statement.keyspace.text);
                 });
  }

  QueryResult<void> operator()(const parser::CreateTable& statement) {
    TRY_VOID(guard_columns(statement.table.name.text, statement.columns.size()));
    const std::size_t tables = count_of_tables(schema_) + 1;
    return guard({.name = "tables",
                  .warn = rails_.tables_warn_threshold,
                  .fail = rails_.tables_fail_threshold},
                 tables, warnings_, [&](bool warns, std::uint32_t limit) {
                   return warns ? fmt::format(
                                      "Creating table {}, current number of tables {} "
                                      "exceeds warning threshold of {}.",
                                      statement.table.name.text, tables, limit)
                                : fmt::format(
                                      "Cannot have more than {} tables, aborting the "
                                      "creation of table {}",
                                      limit, statement.table.name.text);
                 });
  }

  QueryResult<void> operator()(const parser::AlterTable& statement) {
    if (!std::holds_alternative<parser::Properties>(statement.change)) {
      TRY_VOID(guard_flag(rails_.alter_table_enabled, "alter_table",
                          "User access to ALTER TABLE statement for column mutation"));
    }
    const auto* added = std::get_if<parser::AddColumns>(&statement.change);
    const model::TablePtr table = added == nullptr ? nullptr : find(statement.table);
    if (table == nullptr) return {};
    return guard_columns(table->name, table->columns.size() + added->columns.size());
  }

  QueryResult<void> operator()(const parser::DropTable& /*statement*/) {
    return guard_flag(rails_.drop_truncate_table_enabled, "drop_truncate_table_enabled",
                      "DROP and TRUNCATE TABLE functionality");
  }

  QueryResult<void> operator()(const parser::Truncate& /*statement*/) {
    return guard_flag(rails_.drop_truncate_table_enabled, "drop_truncate_table_enabled",
                      "DROP and TRUNCATE TABLE functionality");
  }

  QueryResult<void> operator()(const parser::CreateIndex& statement) {
    TRY_VOID(guard_flag(rails_.secondary_indexes_enabled, "secondary_indexes",
                        "User creation of secondary indexes"));
    const model::TablePtr table = find(statement.table);
    if (table == nullptr) return {};
    const std::string index = statement.index ? statement.index->text : std::string("null");
    const std::size_t count = table->indexes.size() + 1;
    return guard({.name = "secondary_indexes_per_table",
                  .warn = rails_.secondary_indexes_per_table_warn_threshold,
                  .fail = rails_.secondary_indexes_per_table_fail_threshold},
                 count, warnings_, [&](bool warns, std::uint32_t limit) {
                   return warns ? fmt::format(
                                      "Creating secondary index {}, current number of "
                                      "indexes {} exceeds warning threshold of {}.",
                                      index, count, limit)
                                : fmt::format(
                                      "Tables cannot have more than {} secondary indexes, "
                                      "aborting the creation of secondary index {}",
                                      limit, index);
                 });
  }

  QueryResult<void> operator()(const parser::CreateType& statement) {
    return guard({.name = "fields_per_udt",
                  .warn = rails_.fields_per_udt_warn_threshold,
                  .fail = rails_.fields_per_udt_fail_threshold},
                 statement.fields.size(), warnings_, [&](bool warns, std::uint32_t limit) {
                   const std::string& type = statement.type.name.text;
                   const std::size_t count = statement.fields.size();
                   return warns ? fmt::format(
                                      "The user type {} has {} columns, this exceeds the "
                                      "warning threshold of {}.",
                                      type, count, limit)
                                : fmt::format(
                                      "User types cannot have more than {} columns, but {} "
                                      "provided for user type {}.",
                                      limit, count, type);
                 });
  }

  template <class Other>
  QueryResult<void> operator()(const Other& /*statement*/) {
    return {};
  }

 private:
  QueryResult<void> guard_columns(const std::string& table, std::size_t count) {
    return guard({.name = "columns_per_table",
                  .warn = rails_.columns_per_table_warn_threshold,
                  .fail = rails_.columns_per_table_fail_threshold},
                 count, warnings_, [&](bool warns, std::uint32_t limit) {
                   return warns ? fmt::format(
                                      "The table {} has {} columns, this exceeds the "
                                      "warning threshold of {}.",
                                      table, count, limit)
                                : fmt::format(
                                      "Tables cannot have more than {} columns, but {} "
                                      "provided for table {}",
                                      limit, count, table);
                 });
  }

  // Null for what is refused anyway.
  model::TablePtr find(const parser::QualifiedName& name) const {
    const auto keyspace = keyspace_of(name, session_);
    return keyspace ? schema_.find_table(*keyspace, name.name.text) : nullptr;
  }

  const Guardrails& rails_;
  const model::Schema& schema_;
  const std::string_view session_;
  Warnings& warnings_;
};

}  // namespace

QueryResult<void> guard_select(const Guardrails& guardrails, const SelectPlan& plan,
                               std::optional<std::int32_t> page_size, Warnings& warnings) {
  if (!plan.storage) return {};
  if (plan.allow_filtering) {
    TRY_VOID(guard_flag(guardrails.allow_filtering_enabled, "allow_filtering",
                        "Querying with ALLOW FILTERING", kFilteringReason));
  }
  if (!plan.group_by.empty()) {
    TRY_VOID(guard_flag(guardrails.group_by_enabled, "group_by", "GROUP BY functionality"));
  }
  const auto size = static_cast<std::size_t>(std::max(page_size.value_or(0), 0));
  return guard({.name = "page_size",
                .warn = guardrails.page_size_warn_threshold,
                .fail = guardrails.page_size_fail_threshold},
               size, warnings, [&](bool warns, std::uint32_t limit) {
                 return warns ? fmt::format(
                                    "Query for table {} with page size {} exceeds warning "
                                    "threshold of {}.",
                                    plan.table->name, size, limit)
                              : fmt::format(
                                    "Aborting query for table {}, page size {} exceeds fail "
                                    "threshold of {}.",
                                    plan.table->name, size, limit);
               });
}

QueryResult<void> guard_partition_keys(const Guardrails& guardrails, const SelectPlan& plan,
                                       std::size_t partitions, Warnings& warnings) {
  if (!plan.storage) return {};
  return guard({.name = "partition_keys_in_select",
                .warn = guardrails.partition_keys_in_select_warn_threshold,
                .fail = guardrails.partition_keys_in_select_fail_threshold},
               partitions, warnings, [&](bool warns, std::uint32_t limit) {
                 return warns ? fmt::format(
                                    "Query with partition keys in IN clause on table {}, with "
                                    "number of partition keys {} exceeds warning threshold of "
                                    "{}.",
                                    plan.table->name, partitions, limit)
                              : fmt::format(
                                    "Aborting query with partition keys in IN clause on table "
                                    "{}, number of partition keys {} exceeds fail threshold of "
                                    "{}.",
                                    plan.table->name, partitions, limit);
               });
}

QueryResult<void> guard_timestamp(const Guardrails& guardrails, bool says_timestamp) {
  return guard_flag(guardrails.user_timestamps_enabled || !says_timestamp, "user_timestamps",
                    "User provided timestamps (USING TIMESTAMP)");
}

void measure(const std::vector<replication::PartitionWrite>& writes, BatchSize& batch) {
  constexpr std::size_t kCellOverhead = 8;  // its timestamp
  std::set<base::ByteView,
           decltype([](base::ByteView a, base::ByteView b) { return base::compare(a, b) < 0; })>
      partitions;
  for (const replication::PartitionWrite& write : writes) {
    partitions.insert(write.partition.view());
    batch.bytes += write.partition.size();
    for (const causality::CellChange& cell : write.mutation.cells) {
      batch.bytes += cell.row.size() + cell.value.size() + kCellOverhead;
    }
    batch.bytes += write.mutation.deleted_ranges.size() * kCellOverhead;
  }
  batch.partitions = partitions.size();
}

QueryResult<void> guard_batch(const Guardrails& guardrails, const BatchSize& batch,
                              Warnings& warnings) {
  if (batch.partitions <= 1) return {};
  const std::uint32_t warn = guardrails.batch_size_warn_threshold;
  const std::uint32_t fail = guardrails.batch_size_fail_threshold;
  const bool of_many =
      batch.unlogged && guardrails.unlogged_batch_across_partitions_warn_threshold > 0 &&
      batch.partitions > guardrails.unlogged_batch_across_partitions_warn_threshold;
  const bool is_large = warn > 0 && batch.bytes > warn;
  if (fail > 0 && batch.bytes > fail) return invalid("Batch too large");
  if (!is_large && !of_many) return {};
  const std::set<std::string> names = names_of(batch.tables);
  if (is_large) {
    warnings.push_back(
        fmt::format("Batch for [{}] is of size {}, exceeding specified threshold of {} by {}.",
                    fmt::join(names, ", "), batch.bytes, warn, batch.bytes - warn));
  }
  if (of_many) {
    warnings.push_back(fmt::format(
        "Unlogged batch covering {} partitions detected against table{} [{}]. You should use a "
        "logged batch for atomicity, or asynchronous writes for performance.",
        batch.partitions, names.size() == 1 ? "" : "s", fmt::join(names, ", ")));
  }
  return {};
}

QueryResult<void> guard_schema_change(const Guardrails& guardrails,
                                      const parser::Statement& statement,
                                      const model::Schema& schema,
                                      std::string_view session_keyspace, Warnings& warnings) {
  return std::visit(SchemaGuard(guardrails, schema, session_keyspace, warnings), statement.node);
}

}  // namespace helenus::cql
