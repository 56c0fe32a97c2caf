#include "cql/parser/to_text.h"

#include <iterator>
#include <variant>

#include "cql/parser/text_writer.h"

namespace helenus::cql::parser {
namespace {

constexpr std::string_view kIfExists = "IF EXISTS ";
constexpr std::string_view kIfNotExists = "IF NOT EXISTS ";

// A function a kind of statement.
class StatementWriter {
 public:
  explicit StatementWriter(const Statement& statement) : out_(statement.markers) {
    std::visit(*this, statement.node);
  }
  std::string take() { return out_.take(); }

  void operator()(const Select& select) {
    out_.raw("SELECT ").raw_if(select.json, "JSON ").raw_if(select.distinct, "DISTINCT ");
    out_.selectors(select.selectors).raw(" FROM ").name(select.table).where(select.where);
    if (!select.group_by.empty()) out_.raw(" GROUP BY ").expressions(select.group_by);
    if (!select.order_by.empty()) orderings(" ORDER BY ", select.order_by, "");
    if (select.per_partition_limit) {
      out_.raw(" PER PARTITION LIMIT ").expression(*select.per_partition_limit);
    }
    if (select.limit) out_.raw(" LIMIT ").expression(*select.limit);
    out_.raw_if(select.allow_filtering, " ALLOW FILTERING");
  }

  void operator()(const Insert& insert) {
    out_.raw("INSERT INTO ").name(insert.table).raw(" (").names(insert.columns);
    out_.raw(") VALUES (").expressions(insert.values).raw(")");
    out_.raw_if(insert.if_not_exists, " IF NOT EXISTS").attributes(insert.attributes);
  }

  void operator()(const InsertJson& insert) {
    out_.raw("INSERT INTO ").name(insert.table).raw(" JSON ").expression(insert.json);
    out_.raw_if(insert.default_unset, " DEFAULT UNSET");
    out_.raw_if(insert.if_not_exists, " IF NOT EXISTS").attributes(insert.attributes);
  }

  void operator()(const Update& update) {
    out_.raw("UPDATE ").name(update.table).attributes(update.attributes).raw(" SET ");
    out_.list(update.assignments, ", ", [this](const Assignment& item) { assignment(item); });
    out_.where(update.where);
    conditions(update.if_exists, update.conditions);
  }

  void operator()(const Delete& deletion) {
    out_.raw("DELETE ");
    out_.list(deletion.targets, ", ", [this](const ColumnTarget& item) { out_.target(item); });
    out_.raw_if(!deletion.targets.empty(), " ").raw("FROM ").name(deletion.table);
    out_.attributes(deletion.attributes).where(deletion.where);
    conditions(deletion.if_exists, deletion.conditions);
  }

  void operator()(const Batch& batch) {
    out_.raw("BEGIN ");
    out_.raw_if(batch.kind == BatchKind::unlogged, "UNLOGGED ");
    out_.raw_if(batch.kind == BatchKind::counter, "COUNTER ");
    out_.raw("BATCH").attributes(batch.attributes).raw(" ");
    for (const Batch::Modification& statement : batch.statements) {
      std::visit(*this, statement);
      out_.raw("; ");
    }
    out_.raw("APPLY BATCH");
  }

  void operator()(const Truncate& truncate) { out_.raw("TRUNCATE ").name(truncate.table); }
  void operator()(const Use& use) { out_.raw("USE ").name(use.keyspace); }

  void operator()(const CreateKeyspace& create) {
    out_.raw("CREATE KEYSPACE ").raw_if(create.if_not_exists, kIfNotExists).name(create.keyspace);
    with(create.properties);
  }
  void operator()(const AlterKeyspace& alter) {
    out_.raw("ALTER KEYSPACE ").raw_if(alter.if_exists, kIfExists).name(alter.keyspace);
    with(alter.properties);
  }
  void operator()(const DropKeyspace& drop) {
    out_.raw("DROP KEYSPACE ").raw_if(drop.if_exists, kIfExists).name(drop.keyspace);
  }

  void operator()(const CreateTable& create) {
    out_.raw("CREATE TABLE ").raw_if(create.if_not_exists, kIfNotExists).name(create.table);
    out_.raw(" (");
    out_.list(create.columns, ", ", [this](const ColumnDefinition& item) { column(item); });
    out_.raw_if(!create.columns.empty() && !create.primary_keys.empty(), ", ");
    out_.list(create.primary_keys, ", ", [this](const PrimaryKey& item) { primary_key(item); });
    out_.raw(")");
    std::string_view joint = " WITH ";
    if (!create.clustering_order.empty()) {
      out_.raw(joint);
      orderings("CLUSTERING ORDER BY (", create.clustering_order, ")");
      joint = " AND ";
    }
    if (create.compact_storage) {
      out_.raw(joint).raw("COMPACT STORAGE");
      joint = " AND ";
    }
    with(create.properties, joint);
  }

  void operator()(const AlterTable& alter) {
    out_.raw("ALTER TABLE ").raw_if(alter.if_exists, kIfExists).name(alter.table);
    std::visit(*this, alter.change);
  }
  void operator()(const AddColumns& add) {
    out_.raw(" ADD ").raw_if(add.if_not_exists, kIfNotExists).raw("(");
    out_.list(add.columns, ", ", [this](const ColumnDefinition& item) { column(item); });
    out_.raw(")");
  }
  void operator()(const DropColumns& drop) {
    out_.raw(" DROP ").raw_if(drop.if_exists, kIfExists).raw("(").names(drop.columns).raw(")");
    if (drop.timestamp) out_.raw(" USING TIMESTAMP ").literal(*drop.timestamp);
  }
  void operator()(const RenameColumns& rename) {
    out_.raw(" RENAME ").raw_if(rename.if_exists, kIfExists);
    renamings(rename.columns);
  }
  void operator()(const AlterColumnType& alter) {
    out_.raw(" ALTER ").name(alter.column).raw(" TYPE ").type(alter.type);
  }
  void operator()(const DropCompactStorage& /*drop*/) { out_.raw(" DROP COMPACT STORAGE"); }
  void operator()(const Properties& properties) { with(properties); }
  void operator()(const DropTable& drop) {
    out_.raw("DROP TABLE ").raw_if(drop.if_exists, kIfExists).name(drop.table);
  }

  void operator()(const CreateType& create) {
    out_.raw("CREATE TYPE ").raw_if(create.if_not_exists, kIfNotExists);
    user_type(create.type);
    out_.raw(" (");
    fields(create.fields);
    out_.raw(")");
  }
  void operator()(const AlterType& alter) {
    out_.raw("ALTER TYPE ").raw_if(alter.if_exists, kIfExists);
    user_type(alter.type);
    std::visit(*this, alter.change);
  }
  void operator()(const AddField& add) {
    out_.raw(" ADD ").raw_if(add.if_not_exists, kIfNotExists);
    out_.name(add.field.name).raw(" ").type(add.field.type);
  }
  void operator()(const RenameFields& rename) {
    out_.raw(" RENAME ").raw_if(rename.if_exists, kIfExists);
    renamings(rename.fields);
  }
  void operator()(const AlterFieldType& alter) {
    out_.raw(" ALTER ").name(alter.field.name).raw(" TYPE ").type(alter.field.type);
  }
  void operator()(const DropType& drop) {
    out_.raw("DROP TYPE ").raw_if(drop.if_exists, kIfExists);
    user_type(drop.type);
  }

  void operator()(const CreateIndex& create) {
    out_.raw("CREATE ").raw_if(create.custom, "CUSTOM ").raw("INDEX ");
    out_.raw_if(create.if_not_exists, kIfNotExists);
    if (create.index) out_.name(*create.index).raw(" ");
    out_.raw("ON ").name(create.table).raw(" (");
    out_.list(create.targets, ", ", [this](const IndexTarget& item) { index_target(item); });
    out_.raw(")");
    if (create.custom_class) out_.raw(" USING ").string(*create.custom_class);
    with(create.properties);
  }
  void operator()(const DropIndex& drop) {
    out_.raw("DROP INDEX ").raw_if(drop.if_exists, kIfExists).name(drop.index);
  }

  void operator()(const CreateMaterializedView& create) {
    out_.raw("CREATE MATERIALIZED VIEW ").raw_if(create.if_not_exists, kIfNotExists);
    out_.name(create.view).raw(" AS SELECT ").selectors(create.selectors);
    out_.raw(" FROM ").name(create.table).where(create.where).raw(" ");
    primary_key(create.primary_key);
    std::string_view joint = " WITH ";
    if (!create.clustering_order.empty()) {
      out_.raw(joint);
      orderings("CLUSTERING ORDER BY (", create.clustering_order, ")");
      joint = " AND ";
    }
    with(create.properties, joint);
  }
  void operator()(const AlterMaterializedView& alter) {
    out_.raw("ALTER MATERIALIZED VIEW ").raw_if(alter.if_exists, kIfExists).name(alter.view);
    with(alter.properties);
  }
  void operator()(const DropMaterializedView& drop) {
    out_.raw("DROP MATERIALIZED VIEW ").raw_if(drop.if_exists, kIfExists).name(drop.view);
  }

  void operator()(const CreateFunction& create) {
    out_.raw("CREATE ").raw_if(create.or_replace, "OR REPLACE ").raw("FUNCTION ");
    out_.raw_if(create.if_not_exists, kIfNotExists).function_name(create.function).raw(" (");
    fields(create.arguments);
    out_.raw(create.called_on_null_input ? ") CALLED" : ") RETURNS NULL");
    out_.raw(" ON NULL INPUT RETURNS ").type(create.returns);
    out_.raw(" LANGUAGE ").raw(create.language).raw(" AS ").string(create.body);
  }
  void operator()(const DropFunction& drop) {
    out_.raw("DROP FUNCTION ").raw_if(drop.if_exists, kIfExists).function_name(drop.function);
    if (drop.arguments) out_.raw(" ").argument_types(*drop.arguments);
  }
  void operator()(const CreateAggregate& create) {
    out_.raw("CREATE ").raw_if(create.or_replace, "OR REPLACE ").raw("AGGREGATE ");
    out_.raw_if(create.if_not_exists, kIfNotExists).function_name(create.aggregate);
    out_.raw(" ").argument_types(create.arguments);
    out_.raw(" SFUNC ").function_name_part(create.state_function);
    out_.raw(" STYPE ").type(create.state_type);
    if (create.final_function) {
      out_.raw(" FINALFUNC ").function_name_part(*create.final_function);
    }
    if (create.initial_condition) out_.raw(" INITCOND ").expression(*create.initial_condition);
  }
  void operator()(const DropAggregate& drop) {
    out_.raw("DROP AGGREGATE ").raw_if(drop.if_exists, kIfExists).function_name(drop.aggregate);
    if (drop.arguments) out_.raw(" ").argument_types(*drop.arguments);
  }

  void operator()(const CreateTrigger& create) {
    out_.raw("CREATE TRIGGER ").raw_if(create.if_not_exists, kIfNotExists).name(create.trigger);
    out_.raw(" ON ").name(create.table).raw(" USING ").string(create.trigger_class);
  }
  void operator()(const DropTrigger& drop) {
    out_.raw("DROP TRIGGER ").raw_if(drop.if_exists, kIfExists).name(drop.trigger);
    out_.raw(" ON ").name(drop.table);
  }

  void operator()(const CreateRole& create) {
    out_.raw("CREATE ROLE ").raw_if(create.if_not_exists, kIfNotExists).role_name(create.role);
    role_options(create.options);
  }
  void operator()(const AlterRole& alter) {
    out_.raw("ALTER ROLE ").raw_if(alter.if_exists, kIfExists).role_name(alter.role);
    role_options(alter.options);
  }
  void operator()(const DropRole& drop) {
    out_.raw("DROP ROLE ").raw_if(drop.if_exists, kIfExists).role_name(drop.role);
  }
  void operator()(const GrantPermissions& grant) {
    out_.raw("GRANT ");
    permissions(grant.permissions);
    out_.raw(" ON ");
    resource(grant.resource);
    out_.raw(" TO ").role_name(grant.role);
  }
  void operator()(const RevokePermissions& revoke) {
    out_.raw("REVOKE ");
    permissions(revoke.permissions);
    out_.raw(" ON ");
    resource(revoke.resource);
    out_.raw(" FROM ").role_name(revoke.role);
  }
  void operator()(const ListPermissions& list) {
    out_.raw("LIST ");
    permissions(list.permissions);
    if (list.resource) {
      out_.raw(" ON ");
      resource(*list.resource);
    }
    if (list.role) out_.raw(" OF ").role_name(*list.role);
    out_.raw_if(!list.recursive, " NORECURSIVE");
  }
  void operator()(const GrantRole& grant) {
    out_.raw("GRANT ").role_name(grant.granted).raw(" TO ").role_name(grant.role);
  }
  void operator()(const RevokeRole& revoke) {
    out_.raw("REVOKE ").role_name(revoke.revoked).raw(" FROM ").role_name(revoke.role);
  }
  void operator()(const ListRoles& list) {
    out_.raw("LIST ROLES");
    if (list.role) out_.raw(" OF ").role_name(*list.role);
    out_.raw_if(!list.recursive, " NORECURSIVE");
  }
  void operator()(const ListUsers& /*list*/) { out_.raw("LIST USERS"); }

  void operator()(const Describe& describe) {
    static constexpr std::string_view kTargets[] = {
        "CLUSTER",   "SCHEMA",   "FULL SCHEMA", "KEYSPACES",         "KEYSPACE", "ONLY KEYSPACE",
        "TABLES",    "TABLE",    "INDEX",       "MATERIALIZED VIEW", "TYPES",    "TYPE",
        "FUNCTIONS", "FUNCTION", "AGGREGATES",  "AGGREGATE"};
    out_.raw("DESCRIBE ");
    const bool is_anything = describe.kind == DescribeKind::anything;
    if (!is_anything) out_.raw(kTargets[static_cast<std::size_t>(describe.kind)]);
    if (describe.name) {
      out_.raw_if(!is_anything, " ");
      if (describe.kind == DescribeKind::type) {
        user_type(*describe.name);
      } else if (describe.kind == DescribeKind::function ||
                 describe.kind == DescribeKind::aggregate) {
        out_.function_name(*describe.name);
      } else {
        if (describe.name->keyspace) out_.no_keyword(*describe.name->keyspace).raw(".");
        out_.no_keyword(describe.name->name);
      }
    }
    out_.raw_if(describe.with_internals, " WITH INTERNALS");
  }

 private:
  void assignment(const Assignment& assignment) {
    out_.target(assignment.target).raw(" = ");
    const Name& column = assignment.target.column;
    if (assignment.kind == AssignmentKind::add) out_.name(column).raw(" + ");
    if (assignment.kind == AssignmentKind::subtract) out_.name(column).raw(" - ");
    out_.expression(assignment.value);
    if (assignment.kind == AssignmentKind::prepend) out_.raw(" + ").name(column);
  }

  void conditions(bool if_exists, const std::vector<Condition>& conditions) {
    out_.raw_if(if_exists, " IF EXISTS").raw_if(!conditions.empty(), " IF ");
    out_.list(conditions, " AND ", [this](const Condition& item) { out_.condition(item); });
  }

  void with(const Properties& properties, std::string_view joint = " WITH ") {
    for (const Property& property : properties) {
      out_.raw(joint).property(property);
      joint = " AND ";
    }
  }

  void orderings(std::string_view before, const std::vector<Ordering>& items,
                 std::string_view after) {
    out_.raw(before);
    out_.list(items, ", ", [this](const Ordering& item) { out_.ordering(item); });
    out_.raw(after);
  }

  void column(const ColumnDefinition& column) {
    out_.name(column.name).raw(" ").type(column.type).raw_if(column.is_static, " STATIC");
  }

  void primary_key(const PrimaryKey& key) {
    const bool is_composite = key.partition.size() > 1;
    out_.raw("PRIMARY KEY (").raw_if(is_composite, "(").names(key.partition);
    out_.raw_if(is_composite, ")").raw_if(!key.clustering.empty(), ", ").names(key.clustering);
    out_.raw(")");
  }

  void fields(const std::vector<FieldDefinition>& fields) {
    out_.list(fields, ", ", [this](const FieldDefinition& field) {
      out_.name(field.name).raw(" ").type(field.type);
    });
  }

  void renamings(const std::vector<Renaming>& renamings) {
    out_.list(renamings, " AND ", [this](const Renaming& renaming) {
      out_.name(renaming.from).raw(" TO ").name(renaming.to);
    });
  }

  void user_type(const QualifiedName& type) { out_.user_type_name(type.keyspace, type.name.text); }

  void index_target(const IndexTarget& target) {
    static constexpr std::string_view kFunctions[] = {"", "values(", "keys(", "entries(", "full("};
    out_.raw(kFunctions[static_cast<std::size_t>(target.kind)]).name(target.column);
    out_.raw_if(target.kind != IndexTargetKind::column, ")");
  }

  void role_options(const RoleOptions& options) {
    std::string_view joint = " WITH ";
    const auto option = [&](std::string_view text) -> TextWriter& {
      out_.raw(joint).raw(text);
      joint = " AND ";
      return out_;
    };
    if (options.password) option("PASSWORD = ").string(*options.password);
    if (options.hashed_password) option("HASHED PASSWORD = ").string(*options.hashed_password);
    if (options.superuser) option("SUPERUSER = ").raw(*options.superuser ? "true" : "false");
    if (options.login) option("LOGIN = ").raw(*options.login ? "true" : "false");
    if (options.options) option("OPTIONS = ").property_map(*options.options);
    if (!options.access) return;
    if (!options.access->datacenters) {
      option("ACCESS TO ALL DATACENTERS");
      return;
    }
    option("ACCESS TO DATACENTERS {");
    out_.list(*options.access->datacenters, ", ",
              [this](const std::string& datacenter) { out_.string(datacenter); });
    out_.raw("}");
  }

  void permissions(const Permissions& permissions) {
    static constexpr std::string_view kPermissions[] = {
        "CREATE", "ALTER", "DROP", "SELECT", "MODIFY", "AUTHORIZE", "DESCRIBE", "EXECUTE"};
    if (permissions.size() == std::size(kPermissions)) {
      out_.raw("ALL");
      return;
    }
    out_.list(permissions, ", ", [this](Permission permission) {
      out_.raw(kPermissions[static_cast<std::size_t>(permission)]);
    });
  }

  void resource(const Resource& resource) {
    static constexpr std::string_view kKinds[] = {
        "ALL KEYSPACES", "KEYSPACE ",     "ALL TABLES IN KEYSPACE ",    "TABLE ",    "ALL ROLES",
        "ROLE ",         "ALL FUNCTIONS", "ALL FUNCTIONS IN KEYSPACE ", "FUNCTION ", "ALL MBEANS",
        "MBEAN ",        "MBEANS "};
    out_.raw(kKinds[static_cast<std::size_t>(resource.kind)]);
    switch (resource.kind) {
      case ResourceKind::keyspace:
      case ResourceKind::all_tables_in_keyspace:
      case ResourceKind::table:
      case ResourceKind::all_functions_in_keyspace:
        out_.name(resource.name);
        break;
      case ResourceKind::role:
        out_.role_name(resource.name.name);
        break;
      case ResourceKind::function:
        out_.function_name(resource.name).argument_types(resource.arguments);
        break;
      case ResourceKind::mbean:
      case ResourceKind::mbeans:
        out_.string(resource.pattern);
        break;
      case ResourceKind::all_keyspaces:
      case ResourceKind::all_roles:
      case ResourceKind::all_functions:
      case ResourceKind::all_mbeans:
        break;
    }
  }

  TextWriter out_;
};

}  // namespace

std::string to_text(const Statement& statement) {
  return StatementWriter(statement).take();
}

std::string to_text(const Expression& expression,
                    const std::vector<std::optional<std::string>>& markers) {
  return TextWriter(markers).expression(expression).take();
}

std::string to_text(const TypeName& type) {
  const std::vector<std::optional<std::string>> no_markers;
  return TextWriter(no_markers).type(type).take();
}

std::string to_identifier(std::string_view name) {
  const std::vector<std::optional<std::string>> no_markers;
  return TextWriter(no_markers).name(Name{.text = std::string(name), .position = {}}).take();
}

}  // namespace helenus::cql::parser
