// Planning of INSERT, UPDATE, DELETE and BATCH.
#include "cql/plan/modification_plan.h"

#include <algorithm>
#include <limits>

#include "base/assert.h"
#include "cql/parser/to_text.h"
#include "cql/plan/row_reader.h"
#include "cql/plan/select_plan.h"

namespace helenus::cql {

using model::Column;
using model::ColumnKind;
using model::DataType;
using model::TypeKind;
using protocol::ColumnSpec;
using Assignment = ModificationPlan::Assignment;
using Change = ModificationPlan::Change;

namespace {

QueryError no_conditions() {
  return invalid("Lightweight transactions (IF conditions) are not supported yet");
}

// A UUID, as drivers bind one; as a blob its 16 bytes.
QueryResult<Term> compile_operation(const parser::Expression& expression, PlanScope& scope,
                                    std::string keyspace, std::string table) {
  const auto* literal = std::get_if<parser::Literal>(&expression.node);
  const bool is_blob = literal != nullptr && literal->kind == parser::LiteralKind::blob;
  return compile_term(expression,
                      {std::move(keyspace), std::move(table), "[operation]",
                       DataType(is_blob ? TypeKind::blob : TypeKind::uuid)},
                      scope);
}

bool is_key(const Column& column) {
  return column.kind == ColumnKind::partition_key || column.kind == ColumnKind::clustering;
}

class ModificationPlanner {
 public:
  ModificationPlanner(const CatalogSnapshot& catalog, const std::string& session_keyspace,
                      MarkerTypes& markers, StatementKind kind)
      : catalog_(catalog), session_keyspace_(session_keyspace), markers_(markers) {
    plan_.kind = kind;
  }

  QueryResult<void> begin(const parser::QualifiedName& table);
  QueryResult<void> plan_attributes(const parser::Attributes& attributes);
  QueryResult<ModificationPlan> insert(const parser::Insert& insert);
  QueryResult<ModificationPlan> insert_json(const parser::InsertJson& insert);
  QueryResult<ModificationPlan> update(const parser::Update& update);
  QueryResult<ModificationPlan> remove(const parser::Delete& remove);

 private:
  PlanScope scope() { return {*keyspace_, markers_}; }
  ColumnSpec receiver(const Column& column) const {
    return {plan_.table->keyspace, plan_.table->name, column.name, column.type};
  }
  ColumnSpec receiver(std::string name, TypeKind kind) const {
    return {plan_.table->keyspace, plan_.table->name, std::move(name), DataType(kind)};
  }
  QueryResult<void> add(Assignment assignment);
  // Errors: invalid for a column that the statement has named before.
  enum class Named : std::uint8_t { not_yet, elements, whole };
  QueryResult<void> name_once(std::size_t column, Named named);
  QueryResult<Assignment> assignment_of(const parser::Assignment& assignment);
  // c[e] = v, c.f = v.
  QueryResult<Assignment> element_assignment(const parser::Assignment& assignment,
                                             std::size_t index);
  // c = c + v and the like.
  QueryResult<Assignment> collection_assignment(const parser::Assignment& assignment,
                                                std::size_t index);
  QueryResult<Assignment> removal_of(const parser::ColumnTarget& target);
  QueryResult<void> plan_where(const std::vector<parser::Relation>& where);
  bool assigns_only_static() const;

  const CatalogSnapshot& catalog_;
  const std::string& session_keyspace_;
  MarkerTypes& markers_;
  model::KeyspacePtr keyspace_;
  std::vector<Named> named_;  // columns
  ModificationPlan plan_;
};

QueryResult<void> ModificationPlanner::begin(const parser::QualifiedName& table) {
  TRY(plan_.table, find_table(table, catalog_.schema(), session_keyspace_));
  keyspace_ = catalog_.schema().find_keyspace(plan_.table->keyspace);
  const auto storage = catalog_.storage_of(plan_.table->id);
  if (!storage) {
    return invalid("Modification is not supported by table {}.{}", plan_.table->keyspace,
                   plan_.table->name);
  }
  TRY_VOID(check_rows(catalog_));
  plan_.storage = *storage;
  plan_.policy = policy_of(*plan_.table);
  return {};
}

QueryResult<void> ModificationPlanner::plan_attributes(const parser::Attributes& attributes) {
  if (attributes.operation) {
    PlanScope here = scope();
    TRY(plan_.operation,
        compile_operation(*attributes.operation, here, plan_.table->keyspace, plan_.table->name));
  }
  if (attributes.timestamp) {
    if (plan_.is_counter()) return invalid("Cannot provide custom timestamp for counter updates");
    PlanScope here = scope();
    TRY(plan_.timestamp,
        compile_term(*attributes.timestamp, receiver("[timestamp]", TypeKind::bigint), here));
  }
  if (attributes.time_to_live) {
    if (plan_.is_counter()) return invalid("Cannot provide custom TTL for counter updates");
    PlanScope here = scope();
    TRY(plan_.time_to_live,
        compile_term(*attributes.time_to_live, receiver("[ttl]", TypeKind::int_), here));
  }
  return {};
}

QueryResult<void> ModificationPlanner::add(Assignment assignment) {
  // Elements are changed beside one another, but not beside the whole.
  const bool is_whole = assignment.change == Change::set || assignment.change == Change::add ||
                        assignment.change == Change::subtract;
  TRY_VOID(name_once(assignment.column, is_whole ? Named::whole : Named::elements));
  plan_.assignments.push_back(std::move(assignment));
  return {};
}

QueryResult<void> ModificationPlanner::name_once(std::size_t column, Named named) {
  TRY_VOID(markers_.turn());
  named_.resize(plan_.table->columns.size());
  if (named_[column] != Named::not_yet &&
      (named == Named::whole || named_[column] == Named::whole)) {
    return invalid("Multiple definitions found for column {}", plan_.table->columns[column].name);
  }
  named_[column] = named;
  return {};
}

bool ModificationPlanner::assigns_only_static() const {
  return !plan_.assignments.empty() &&
         std::ranges::all_of(plan_.assignments, [&](const Assignment& assignment) {
           return plan_.table->columns[assignment.column].kind == ColumnKind::static_column;
         });
}

QueryResult<ModificationPlan> ModificationPlanner::insert(const parser::Insert& insert) {
  if (insert.if_not_exists) return no_conditions();
  if (plan_.is_counter()) {
    return invalid("INSERT statements are not allowed on counter tables, use UPDATE instead");
  }
  if (insert.columns.empty()) return invalid("Column names for INSERT must be provided");
  if (insert.columns.size() != insert.values.size()) {
    return invalid("Unmatched column names/values");
  }
  TRY_VOID(plan_attributes(insert.attributes));
  std::vector<Predicate> keys;
  bool names_clustering = false;
  for (std::size_t i = 0; i < insert.columns.size(); ++i) {
    TRY(const std::size_t index, column_index(*plan_.table, insert.columns[i].text));
    const Column& column = plan_.table->columns[index];
    PlanScope here = scope();
    TRY(Term value, compile_term(insert.values[i], receiver(column), here));
    if (!is_key(column)) {
      TRY_VOID(add({.column = index, .value = std::move(value)}));
      continue;
    }
    TRY_VOID(name_once(index, Named::whole));
    names_clustering = names_clustering || column.kind == ColumnKind::clustering;
    Predicate key;
    key.columns.push_back(index);
    key.values.push_back(std::move(value));
    keys.push_back(std::move(key));
  }
  plan_.only_static = assigns_only_static() && !names_clustering;
  Restrictions::Rules rules;
  rules.keyspace = catalog_.keyspace_number(plan_.table->keyspace);
  rules.kind = StatementKind::insert;
  rules.only_static = plan_.only_static;
  TRY(plan_.where, Restrictions::of_keys(std::move(keys), plan_.table, rules));
  return std::move(plan_);
}

QueryResult<ModificationPlan> ModificationPlanner::insert_json(const parser::InsertJson& insert) {
  if (insert.if_not_exists) return no_conditions();
  if (plan_.is_counter()) {
    return invalid("INSERT statements are not allowed on counter tables, use UPDATE instead");
  }
  TRY_VOID(plan_attributes(insert.attributes));
  PlanScope here = scope();
  TRY(Term text, compile_term(insert.json, receiver("[json]", TypeKind::varchar), here));
  plan_.json = ModificationPlan::Json{.text = std::move(text),
                                      .first_value = markers_.count(),
                                      .default_unset = insert.default_unset};
  const std::vector<Column>& columns = plan_.table->columns;
  if (markers_.count() + columns.size() > std::numeric_limits<std::uint16_t>::max()) {
    return invalid("A statement with {} markers, and as many columns, is too large",
                   markers_.count());
  }
  std::vector<Predicate> keys;
  for (std::size_t index = 0; index < columns.size(); ++index) {
    TRY_VOID(markers_.turn());
    Term value =
        Term::of_value(static_cast<std::uint16_t>(markers_.count() + index), columns[index].type);
    if (!is_key(columns[index])) {
      plan_.assignments.push_back({.column = index, .value = std::move(value)});
      continue;
    }
    Predicate key;
    key.columns.push_back(index);
    key.values.push_back(std::move(value));
    keys.push_back(std::move(key));
  }
  Restrictions::Rules rules;
  rules.keyspace = catalog_.keyspace_number(plan_.table->keyspace);
  rules.kind = StatementKind::insert;
  TRY(plan_.where, Restrictions::of_keys(std::move(keys), plan_.table, rules));
  return std::move(plan_);
}

namespace {

// As Cassandra shows an assignment that it refuses.
std::string text_of(const parser::Assignment& assignment) {
  const std::string& column = assignment.target.column.text;
  const std::string value = parser::to_text(assignment.value, {});
  if (assignment.target.element) {
    return fmt::format("{}[{}] = {}", column, parser::to_text(*assignment.target.element, {}),
                       value);
  }
  if (assignment.target.field) {
    return fmt::format("{}.{} = {}", column, assignment.target.field->text, value);
  }
  switch (assignment.kind) {
    case parser::AssignmentKind::set:
      return fmt::format("{} = {}", column, value);
    case parser::AssignmentKind::add:
      return fmt::format("{0} = {0} + {1}", column, value);
    case parser::AssignmentKind::subtract:
      return fmt::format("{0} = {0} - {1}", column, value);
    case parser::AssignmentKind::prepend:
      // With a minus, as Cassandra shows it.
      return fmt::format("{0} = {1} - {0}", column, value);
  }
  UNREACHABLE("a kind of assignment");
}

// What stands between the brackets of c[e].
ColumnSpec element_receiver(const ColumnSpec& column) {
  ColumnSpec receiver = column;
  switch (column.type.kind()) {
    case TypeKind::list:
      receiver.name = fmt::format("idx({})", column.name);
      receiver.type = DataType(TypeKind::int_);
      break;
    case TypeKind::set:
      receiver.name = fmt::format("value({})", column.name);
      receiver.type = column.type.element();
      break;
    default:
      receiver.name = fmt::format("key({})", column.name);
      receiver.type = column.type.key();
  }
  return receiver;
}

ColumnSpec mapped_receiver(const ColumnSpec& column) {
  ColumnSpec receiver = column;
  receiver.name = fmt::format("value({})", column.name);
  receiver.type =
      column.type.kind() == TypeKind::list ? column.type.element() : column.type.mapped();
  return receiver;
}

QueryResult<std::size_t> field_of(const Column& column, const std::string& field) {
  const auto index = column.type.field_index(field);
  if (!index) return invalid("UDT column {} does not have a field named {}", column.name, field);
  return *index;
}

}  // namespace

QueryResult<Assignment> ModificationPlanner::element_assignment(
    const parser::Assignment& assignment, std::size_t index) {
  const Column& column = plan_.table->columns[index];
  Assignment made{.column = index, .change = Change::set_element};
  PlanScope here = scope();
  ColumnSpec value = receiver(column);
  if (assignment.target.field) {
    if (column.type.kind() != TypeKind::udt) {
      return invalid("Invalid operation ({}) for non-UDT column {}", text_of(assignment),
                     column.name);
    }
    if (!column.type.is_multi_cell()) {
      return invalid("Invalid operation ({}) for frozen UDT column {}", text_of(assignment),
                     column.name);
    }
    TRY(made.field, field_of(column, assignment.target.field->text));
    value.name = fmt::format("{}.{}", column.name, assignment.target.field->text);
    value.type = column.type.parts()[made.field];
  } else {
    if (!column.type.is_collection()) {
      return invalid("Invalid operation ({}) for non collection column {}", text_of(assignment),
                     column.name);
    }
    if (!column.type.is_multi_cell()) {
      return invalid("Invalid operation ({}) for frozen collection column {}", text_of(assignment),
                     column.name);
    }
    if (column.type.kind() == TypeKind::set) {
      return invalid("Invalid operation ({}) for set column {}", text_of(assignment), column.name);
    }
    TRY(made.element,
        compile_term(*assignment.target.element, element_receiver(receiver(column)), here));
    value = mapped_receiver(receiver(column));
  }
  TRY(made.value, compile_term(assignment.value, value, here));
  return made;
}

QueryResult<Assignment> ModificationPlanner::collection_assignment(
    const parser::Assignment& assignment, std::size_t index) {
  const Column& column = plan_.table->columns[index];
  const TypeKind kind = column.type.kind();
  Assignment made{.column = index};
  if (assignment.kind == parser::AssignmentKind::prepend && kind != TypeKind::list) {
    return invalid("Invalid operation ({}) for non list column {}", text_of(assignment),
                   column.name);
  }
  if (!column.type.is_multi_cell()) {
    return invalid("Invalid operation ({}) for frozen {} column {}", text_of(assignment),
                   assignment.kind == parser::AssignmentKind::prepend ? "list" : "collection",
                   column.name);
  }
  ColumnSpec value = receiver(column);
  made.change = Change::put;
  if (assignment.kind == parser::AssignmentKind::prepend) made.change = Change::prepend;
  if (assignment.kind == parser::AssignmentKind::subtract) {
    made.change = Change::take;
    if (kind == TypeKind::map) {
      TRY(value.type, DataType::set_of(column.type.key()));
    }
  }
  PlanScope here = scope();
  TRY(made.value, compile_term(assignment.value, value, here));
  return made;
}

QueryResult<Assignment> ModificationPlanner::assignment_of(const parser::Assignment& assignment) {
  TRY(const std::size_t index, column_index(*plan_.table, assignment.target.column.text));
  const Column& column = plan_.table->columns[index];
  if (is_key(column)) return invalid("PRIMARY KEY part {} found in SET part", column.name);
  if (assignment.target.element || assignment.target.field) {
    return element_assignment(assignment, index);
  }
  if (assignment.kind != parser::AssignmentKind::set && column.type.is_collection()) {
    return collection_assignment(assignment, index);
  }
  Assignment made{.column = index};
  switch (assignment.kind) {
    case parser::AssignmentKind::set:
      if (column.type.is_counter()) {
        return invalid(
            "Cannot set the value of counter column {} (counters can only be "
            "incremented/decremented, not set)",
            column.name);
      }
      break;
    case parser::AssignmentKind::add:
      made.change = Change::add;
      break;
    case parser::AssignmentKind::subtract:
      made.change = Change::subtract;
      break;
    case parser::AssignmentKind::prepend:
      return invalid("Invalid operation ({}) for non list column {}", text_of(assignment),
                     column.name);
  }
  PlanScope here = scope();
  TRY(made.value, compile_term(assignment.value, receiver(column), here));
  if (made.change != Change::set && !column.type.is_counter()) {
    return invalid("Invalid operation ({}) for non counter column {}", text_of(assignment),
                   column.name);
  }
  return made;
}

QueryResult<Assignment> ModificationPlanner::removal_of(const parser::ColumnTarget& target) {
  TRY(const std::size_t index, column_index(*plan_.table, target.column.text));
  const Column& column = plan_.table->columns[index];
  if (is_key(column)) {
    return invalid("Invalid identifier {} for deletion (should not be a PRIMARY KEY part)",
                   column.name);
  }
  Assignment made{.column = index, .change = Change::remove};
  if (target.element) {
    if (!column.type.is_collection()) {
      return invalid("Invalid deletion operation for non collection column {}", column.name);
    }
    if (!column.type.is_multi_cell()) {
      return invalid("Invalid deletion operation for frozen collection column {}", column.name);
    }
    made.change = Change::remove_element;
    PlanScope here = scope();
    TRY(made.element, compile_term(*target.element, element_receiver(receiver(column)), here));
  } else if (target.field) {
    if (column.type.kind() != TypeKind::udt) {
      return invalid("Invalid field deletion operation for non-UDT column {}", column.name);
    }
    if (!column.type.is_multi_cell()) {
      return invalid("Frozen UDT column {} does not support field deletions", column.name);
    }
    made.change = Change::remove_element;
    TRY(made.field, field_of(column, target.field->text));
  }
  return made;
}

QueryResult<void> ModificationPlanner::plan_where(const std::vector<parser::Relation>& where) {
  Restrictions::Rules rules;
  rules.keyspace = catalog_.keyspace_number(plan_.table->keyspace);
  rules.kind = plan_.kind;
  rules.only_static = assigns_only_static();
  rules.whole_rows = plan_.whole_rows;
  PlanScope here = scope();
  TRY(plan_.where, Restrictions::plan(where, plan_.table, rules, here));
  plan_.only_static = rules.only_static;
  return {};
}

QueryResult<ModificationPlan> ModificationPlanner::update(const parser::Update& update) {
  if (update.if_exists || !update.conditions.empty()) return no_conditions();
  TRY_VOID(plan_attributes(update.attributes));
  for (const parser::Assignment& assignment : update.assignments) {
    TRY(Assignment made, assignment_of(assignment));
    TRY_VOID(add(std::move(made)));
  }
  TRY_VOID(plan_where(update.where));
  return std::move(plan_);
}

QueryResult<ModificationPlan> ModificationPlanner::remove(const parser::Delete& remove) {
  if (remove.if_exists || !remove.conditions.empty()) return no_conditions();
  TRY_VOID(plan_attributes(remove.attributes));
  plan_.whole_rows = remove.targets.empty();
  for (const parser::ColumnTarget& target : remove.targets) {
    TRY(Assignment made, removal_of(target));
    plan_.assignments.push_back(std::move(made));
  }
  TRY_VOID(plan_where(remove.where));
  return std::move(plan_);
}

}  // namespace

QueryResult<ModificationPlan> plan_insert(const parser::Insert& insert,
                                          const CatalogSnapshot& catalog,
                                          const std::string& session_keyspace,
                                          MarkerTypes& markers) {
  ModificationPlanner planner(catalog, session_keyspace, markers, StatementKind::insert);
  TRY_VOID(planner.begin(insert.table));
  return planner.insert(insert);
}

QueryResult<ModificationPlan> plan_insert_json(const parser::InsertJson& insert,
                                               const CatalogSnapshot& catalog,
                                               const std::string& session_keyspace,
                                               MarkerTypes& markers) {
  ModificationPlanner planner(catalog, session_keyspace, markers, StatementKind::insert);
  TRY_VOID(planner.begin(insert.table));
  return planner.insert_json(insert);
}

QueryResult<ModificationPlan> plan_update(const parser::Update& update,
                                          const CatalogSnapshot& catalog,
                                          const std::string& session_keyspace,
                                          MarkerTypes& markers) {
  ModificationPlanner planner(catalog, session_keyspace, markers, StatementKind::update);
  TRY_VOID(planner.begin(update.table));
  return planner.update(update);
}

QueryResult<ModificationPlan> plan_delete(const parser::Delete& remove,
                                          const CatalogSnapshot& catalog,
                                          const std::string& session_keyspace,
                                          MarkerTypes& markers) {
  ModificationPlanner planner(catalog, session_keyspace, markers, StatementKind::delete_);
  TRY_VOID(planner.begin(remove.table));
  return planner.remove(remove);
}

QueryResult<void> check_batch(parser::BatchKind kind, std::size_t counters, std::size_t others) {
  if (kind == parser::BatchKind::counter && others > 0) {
    return invalid("Cannot include non-counter statement in a counter batch");
  }
  if (kind == parser::BatchKind::logged && counters > 0) {
    return invalid("Cannot include a counter statement in a logged batch");
  }
  if (counters > 0 && others > 0) {
    return invalid("Counter and non-counter mutations cannot exist in the same batch");
  }
  return {};
}

QueryResult<BatchPlan> plan_batch(const parser::Batch& batch, const CatalogSnapshot& catalog,
                                  const std::string& session_keyspace, MarkerTypes& markers) {
  BatchPlan plan;
  plan.kind = batch.kind;
  if (batch.attributes.operation) {
    const model::Keyspace no_types;
    PlanScope scope{no_types, markers};
    TRY(plan.operation, compile_operation(*batch.attributes.operation, scope, "", ""));
  }
  if (batch.attributes.time_to_live) {
    return invalid("Global TTL on the BATCH statement is not supported.");
  }
  if (batch.attributes.timestamp) {
    if (batch.kind == parser::BatchKind::counter) {
      return invalid("Cannot provide custom timestamp for counter BATCH");
    }
    const model::Keyspace no_types;
    PlanScope scope{no_types, markers};
    TRY(plan.timestamp, compile_term(*batch.attributes.timestamp,
                                     {"", "", "[timestamp]", DataType(TypeKind::bigint)}, scope));
  }
  std::size_t counters = 0;
  for (const parser::Batch::Modification& statement : batch.statements) {
    QueryResult<ModificationPlan> planned = invalid("This statement cannot be in a batch");
    if (const auto* insert = std::get_if<parser::Insert>(&statement)) {
      planned = plan_insert(*insert, catalog, session_keyspace, markers);
    } else if (const auto* json = std::get_if<parser::InsertJson>(&statement)) {
      planned = plan_insert_json(*json, catalog, session_keyspace, markers);
    } else if (const auto* update = std::get_if<parser::Update>(&statement)) {
      planned = plan_update(*update, catalog, session_keyspace, markers);
    } else if (const auto* remove = std::get_if<parser::Delete>(&statement)) {
      planned = plan_delete(*remove, catalog, session_keyspace, markers);
    }
    TRY(ModificationPlan modification, std::move(planned));
    if (modification.operation) {
      return invalid("An operation is that of a whole BATCH, and of no statement in it");
    }
    if (modification.timestamp && plan.timestamp) {
      return invalid("Timestamp must be set either on BATCH or individual statements");
    }
    counters += modification.is_counter() ? 1 : 0;
    plan.modifications.push_back(std::move(modification));
  }
  TRY_VOID(check_batch(plan.kind, counters, plan.modifications.size() - counters));
  return plan;
}

}  // namespace helenus::cql
