// How relations become restrictions: compiled one by one, then sorted into what names partitions,
// what names rows, and what is left to be filtered.
#include <algorithm>
#include <map>
#include <ranges>
#include <set>

#include "base/assert.h"
#include "cql/parser/to_text.h"
#include "cql/plan/restrictions.h"

namespace helenus::cql {

using model::Column;
using model::ColumnKind;
using model::DataType;
using model::Table;
using model::TypeKind;
using parser::Operator;
using parser::Relation;
using parser::RelationKind;
using protocol::ColumnSpec;

class RestrictionsPlanner {
 public:
  RestrictionsPlanner(const model::TablePtr& table, Restrictions::Rules rules)
      : table_(*table), rules_(rules) {
    made_.table_ = table;
    made_.keyspace_ = rules.keyspace;
    made_.clustering_ = table->clustering_columns();
  }

  QueryResult<void> add(const Relation& relation, PlanScope& scope);
  QueryResult<void> add(Predicate predicate);
  QueryResult<Restrictions> finish();

 private:
  // What is known to restrict a column.
  struct Seen {
    bool equal = false;
    bool in = false;
    bool lower = false;
    bool upper = false;
    bool any() const { return equal || in || lower || upper; }
  };

  QueryResult<Predicate> compile(const Relation& relation, PlanScope& scope);
  QueryResult<void> check_column(const Relation& relation, const Column& column) const;
  QueryResult<void> check_tuple(const Relation& relation, const Predicate& predicate) const;
  QueryResult<void> compile_operand(const Relation& relation, Predicate& predicate,
                                    const ColumnSpec& receiver, PlanScope& scope);
  QueryResult<void> add_token(const Relation& relation, PlanScope& scope);
  QueryResult<void> note(const Predicate& predicate);
  QueryResult<void> plan_partitions();
  QueryResult<void> plan_rows();
  QueryResult<void> check_rows_of_write() const;
  QueryResult<void> refuse_leftover(const Predicate& predicate) const;
  QueryResult<void> plan_others();
  // What the filters need: ALLOW FILTERING, or indexes that answer them; and which one is asked.
  QueryResult<void> plan_index();
  // The number of an index that answers it, in Table::indexes.
  std::optional<std::size_t> index_for(const Predicate& predicate) const;
  bool is_allowed(const Predicate& predicate) const {
    return rules_.allow_filtering || index_for(predicate);
  }
  // Takes out the predicate that begins at this clustering column, if there is one that suits.
  template <class Suits>
  std::optional<Predicate> take_clustering(std::size_t position, Suits suits);

  std::size_t partition_size() const { return table_.partition_key().size(); }
  std::size_t position_of(const Predicate& predicate) const {
    return predicate.columns.front() - partition_size();
  }
  std::string columns_text(const std::vector<std::size_t>& columns,
                           std::string_view between = ", ") const;
  static std::string text_of(const Relation& relation);

  const Table& table_;
  const Restrictions::Rules rules_;
  Restrictions made_;
  std::map<std::size_t, Seen> seen_;
  std::vector<Predicate> on_partition_;
  std::vector<Predicate> on_clustering_;
  std::vector<Predicate> on_others_;
  bool has_token_ = false;
};

std::string RestrictionsPlanner::columns_text(const std::vector<std::size_t>& columns,
                                              std::string_view between) const {
  std::string text;
  for (const std::size_t column : columns) {
    if (!text.empty()) text += between;
    text += table_.columns[column].name;
  }
  return text;
}

// ---- Compiling relations ----

// A relation with one value, as Cassandra shows it.
std::string RestrictionsPlanner::text_of(const Relation& relation) {
  std::string columns;
  for (const parser::Name& name : relation.columns) {
    columns += (columns.empty() ? "" : ", ") + name.text;
  }
  if (relation.kind == RelationKind::columns) columns = "(" + columns + ")";
  if (relation.element) columns += fmt::format("[{}]", parser::to_text(*relation.element, {}));
  return fmt::format("{} {} {}", columns, name_of(relation.comparison),
                     parser::to_text(relation.operand.values.front(), {}));
}

QueryResult<void> RestrictionsPlanner::check_column(const Relation& relation,
                                                    const Column& column) const {
  const DataType& type = column.type;
  switch (relation.comparison) {
    case Operator::not_equal:
      return invalid("Unsupported \"!=\" relation: {}", text_of(relation));
    case Operator::like:
      return invalid(
          "LIKE restriction is only supported on properly indexed columns. {} is not valid.",
          text_of(relation));
    case Operator::is_not_null:
      return invalid("Unsupported restriction: {} IS NOT NULL", column.name);
    case Operator::contains:
      if (!type.is_collection()) {
        return invalid("Cannot use CONTAINS on non-collection column {}", column.name);
      }
      return {};
    case Operator::contains_key:
      if (type.kind() != TypeKind::map) {
        return invalid("Cannot use CONTAINS KEY on non-map column {}", column.name);
      }
      return {};
    default:
      break;
  }
  if (relation.kind == RelationKind::element) {
    if (type.kind() != TypeKind::map) {
      return invalid("Column {} cannot be used as a map", column.name);
    }
    return {};
  }
  if (type.is_collection() && type.is_multi_cell()) {
    return invalid("Collection column '{}' ({}) cannot be restricted by a '{}' relation",
                   column.name, type.to_cql(), name_of(relation.comparison));
  }
  if (relation.comparison != Operator::equal && relation.comparison != Operator::in &&
      type.mentions(TypeKind::duration)) {
    return invalid("Slice restrictions are not supported on duration columns");
  }
  if (relation.comparison != Operator::equal && relation.comparison != Operator::in &&
      type.mentions(TypeKind::vector)) {
    return invalid("Slice restrictions are not supported on vector columns");
  }
  return {};
}

QueryResult<void> RestrictionsPlanner::check_tuple(const Relation& relation,
                                                   const Predicate& predicate) const {
  for (std::size_t i = 0; i < predicate.columns.size(); ++i) {
    if (table_.columns[predicate.columns[i]].kind != ColumnKind::clustering) {
      return invalid(
          "Multi-column relations can only be applied to clustering columns but was applied to: "
          "{}",
          relation.columns[i].text);
    }
    if (i > 0 && predicate.columns[i] != predicate.columns[i - 1] + 1) {
      return invalid(
          "Clustering columns must appear in the PRIMARY KEY order in multi-column relations: ({}) "
          "{} (...)",
          columns_text(predicate.columns), name_of(relation.comparison));
    }
  }
  for (const parser::Expression& value : relation.operand.values) {
    const auto* tuple = std::get_if<parser::TupleLiteral>(&value.node);
    if (tuple != nullptr && tuple->elements.size() != predicate.columns.size()) {
      return invalid("Expected {} elements in value tuple, but got {}: {}",
                     predicate.columns.size(), tuple->elements.size(), parser::to_text(value, {}));
    }
    if (tuple == nullptr && !std::holds_alternative<parser::Marker>(value.node)) {
      return invalid("Invalid value for the multi-column relation on ({})",
                     columns_text(predicate.columns));
    }
  }
  return {};
}

QueryResult<void> RestrictionsPlanner::compile_operand(const Relation& relation,
                                                       Predicate& predicate,
                                                       const ColumnSpec& receiver,
                                                       PlanScope& scope) {
  if (relation.operand.is_list_marker) {
    TRY(const DataType list, DataType::list_of(receiver.type, true));
    const ColumnSpec whole{
        receiver.keyspace, receiver.table,
        predicate.is_tuple ? "in" + receiver.name : fmt::format("in({})", receiver.name), list};
    TRY(Term term, compile_term(relation.operand.values.front(), whole, scope));
    predicate.is_list = true;
    predicate.values.push_back(std::move(term));
    return {};
  }
  TRY_VOID(check_count(relation.operand.values.size(), receiver.name));
  std::vector<ColumnSpec> columns;
  for (const std::size_t index : predicate.columns) {
    const Column& column = table_.columns[index];
    columns.push_back({table_.keyspace, table_.name, column.name, column.type});
  }
  for (const parser::Expression& value : relation.operand.values) {
    const auto* tuple = std::get_if<parser::TupleLiteral>(&value.node);
    TRY(Term term, predicate.is_tuple && tuple != nullptr
                       ? compile_tuple(*tuple, columns, receiver.type, scope)
                       : compile_term(value, receiver, scope));
    predicate.values.push_back(std::move(term));
  }
  return {};
}

QueryResult<Predicate> RestrictionsPlanner::compile(const Relation& relation, PlanScope& scope) {
  Predicate predicate;
  predicate.comparison = relation.comparison;
  std::vector<DataType> types;
  for (const parser::Name& name : relation.columns) {
    TRY(const std::size_t index, column_index(table_, name.text));
    predicate.columns.push_back(index);
    types.push_back(table_.columns[index].type);
    TRY_VOID(check_column(relation, table_.columns[index]));
  }
  const Column& first = table_.columns[predicate.columns.front()];
  ColumnSpec receiver{table_.keyspace, table_.name, first.name, first.type};
  if (relation.kind == RelationKind::columns) {
    TRY_VOID(check_tuple(relation, predicate));
    predicate.is_tuple = true;
    TRY(receiver.type, DataType::tuple_of(std::move(types)));
    receiver.name = fmt::format("({})", columns_text(predicate.columns, ","));
  } else if (relation.kind == RelationKind::element) {
    const ColumnSpec key{table_.keyspace, table_.name, fmt::format("key({})", first.name),
                         first.type.key()};
    TRY(predicate.element, compile_term(*relation.element, key, scope));
    receiver.type = first.type.mapped();
    receiver.name = fmt::format("value({})", first.name);
  } else if (relation.comparison == Operator::contains_key) {
    receiver.type = first.type.key();
    receiver.name = fmt::format("key({})", first.name);
  } else if (relation.comparison == Operator::contains) {
    receiver.type = first.type.kind() == TypeKind::map ? first.type.mapped() : first.type.element();
    receiver.name = fmt::format("value({})", first.name);
  }
  TRY_VOID(compile_operand(relation, predicate, receiver, scope));
  return predicate;
}

QueryResult<void> RestrictionsPlanner::add_token(const Relation& relation, PlanScope& scope) {
  const auto keys = table_.partition_key();
  std::vector<std::string> names;
  for (const Column& column : keys) names.push_back(column.name);
  std::vector<std::string> given;
  for (const parser::Name& name : relation.columns) {
    TRY_VOID(column_index(table_, name.text));
    given.push_back(name.text);
  }
  if (std::set(names.begin(), names.end()) != std::set(given.begin(), given.end())) {
    return invalid(
        "The token() function must be applied to all partition key components or none of them");
  }
  if (names != given) {
    return invalid("The token function arguments must be in the partition key order: {}",
                   fmt::join(names, ", "));
  }
  has_token_ = true;
  Restrictions::TokenBound bound;
  const parser::Expression& value = relation.operand.values.front();
  const auto* call = std::get_if<parser::FunctionCall>(&value.node);
  if (call != nullptr && call->function->name.text == "token") {
    if (call->arguments.size() != keys.size()) {
      return invalid(
          "Invalid number of arguments in call to function token: {} required but {} "
          "provided",
          keys.size(), call->arguments.size());
    }
    for (std::size_t i = 0; i < keys.size(); ++i) {
      TRY(Term term, compile_term(call->arguments[i],
                                  {table_.keyspace, table_.name,
                                   fmt::format("arg{}(system.token)", i), keys[i].type},
                                  scope));
      bound.values.push_back(std::move(term));
    }
  } else {
    TRY(Term term, compile_term(value,
                                {table_.keyspace, table_.name, "partition key token",
                                 DataType(TypeKind::bigint)},
                                scope));
    bound.values.push_back(std::move(term));
    bound.is_number = true;
  }
  Predicate sides;
  sides.comparison = relation.comparison;
  const bool equal = relation.comparison == Operator::equal;
  if (!equal && !sides.is_slice()) {
    return invalid("Unsupported operator {} on the token() function", name_of(relation.comparison));
  }
  bound.inclusive = equal || sides.is_inclusive();
  if ((equal || sides.is_lower()) && std::exchange(made_.token_from_, bound)) {
    return invalid("More than one restriction was found for the start bound on {}",
                   fmt::join(names, ", "));
  }
  if ((equal || sides.is_upper()) && std::exchange(made_.token_to_, bound)) {
    return invalid("More than one restriction was found for the end bound on {}",
                   fmt::join(names, ", "));
  }
  return {};
}

QueryResult<void> RestrictionsPlanner::note(const Predicate& predicate) {
  if (predicate.comparison == Operator::contains ||
      predicate.comparison == Operator::contains_key || predicate.element) {
    return {};
  }
  for (const std::size_t column : predicate.columns) {
    const std::string& name = table_.columns[column].name;
    Seen& seen = seen_[column];
    if (seen.any() && (seen.equal || predicate.is_equal())) {
      return invalid("{} cannot be restricted by more than one relation if it includes an Equal",
                     name);
    }
    if (seen.any() && (seen.in || predicate.is_in())) {
      return invalid("{} cannot be restricted by more than one relation if it includes a IN", name);
    }
    if (predicate.is_lower() && seen.lower) {
      return invalid("More than one restriction was found for the start bound on {}", name);
    }
    if (predicate.is_upper() && seen.upper) {
      return invalid("More than one restriction was found for the end bound on {}", name);
    }
    seen.equal = seen.equal || predicate.is_equal();
    seen.in = seen.in || predicate.is_in();
    seen.lower = seen.lower || predicate.is_lower();
    seen.upper = seen.upper || predicate.is_upper();
  }
  return {};
}

QueryResult<void> RestrictionsPlanner::add(const Relation& relation, PlanScope& scope) {
  if (relation.kind == RelationKind::custom_index) {
    return invalid("There is no index {} on {}.{}", relation.columns.front().text, table_.keyspace,
                   table_.name);
  }
  if (relation.kind == RelationKind::token) return add_token(relation, scope);
  TRY(Predicate predicate, compile(relation, scope));
  return add(std::move(predicate));
}

QueryResult<void> RestrictionsPlanner::add(Predicate predicate) {
  TRY_VOID(note(predicate));
  switch (table_.columns[predicate.columns.front()].kind) {
    case ColumnKind::partition_key:
      on_partition_.push_back(std::move(predicate));
      break;
    case ColumnKind::clustering:
      on_clustering_.push_back(std::move(predicate));
      break;
    default:
      on_others_.push_back(std::move(predicate));
      break;
  }
  return {};
}

// ---- Sorting them ----

QueryResult<void> RestrictionsPlanner::plan_partitions() {
  std::vector<std::string> missing;
  std::vector<Predicate> named;
  for (std::size_t i = 0; i < partition_size(); ++i) {
    const auto found = std::ranges::find_if(on_partition_, [&](const Predicate& predicate) {
      return predicate.columns.front() == i && (predicate.is_equal() || predicate.is_in());
    });
    if (found == on_partition_.end()) {
      missing.push_back(table_.columns[i].name);
    } else {
      named.push_back(*found);
    }
  }
  made_.names_partitions_ = missing.empty();
  if (rules_.kind != StatementKind::select) {
    if (has_token_) {
      return invalid("The token function cannot be used in WHERE clauses for {} statements",
                     name_of(rules_.kind));
    }
    const bool sliced = std::ranges::any_of(on_partition_, &Predicate::is_slice);
    if (!missing.empty() && !sliced) {
      return invalid("Some partition key parts are missing: {}", fmt::join(missing, ", "));
    }
    if (sliced || on_partition_.size() != named.size()) {
      return invalid(
          "Only EQ and IN relation are supported on the partition key (unless you use "
          "the token() function) for {} statements",
          name_of(rules_.kind));
    }
  }
  if (made_.names_partitions_) {
    made_.has_in_ = std::ranges::any_of(named, &Predicate::is_in);
    made_.partition_ = std::move(named);
    return {};
  }
  for (const Predicate& predicate : on_partition_) {
    if (!is_allowed(predicate)) return needs_allow_filtering();
  }
  std::ranges::move(on_partition_, std::back_inserter(made_.filters_));
  return {};
}

template <class Suits>
std::optional<Predicate> RestrictionsPlanner::take_clustering(std::size_t position, Suits suits) {
  const auto found = std::ranges::find_if(on_clustering_, [&](const Predicate& predicate) {
    return position_of(predicate) == position && suits(predicate);
  });
  if (found == on_clustering_.end()) return std::nullopt;
  Predicate taken = std::move(*found);
  on_clustering_.erase(found);
  return taken;
}

QueryResult<void> RestrictionsPlanner::refuse_leftover(const Predicate& predicate) const {
  if (is_allowed(predicate)) return {};
  if (predicate.comparison == Operator::contains ||
      predicate.comparison == Operator::contains_key || predicate.element) {
    return invalid(
        "Clustering columns can only be restricted with CONTAINS with a secondary index "
        "or filtering");
  }
  const std::string& name = table_.columns[predicate.columns.front()].name;
  const std::string& before = table_.columns[predicate.columns.front() - 1].name;
  const auto preceding = seen_.find(predicate.columns.front() - 1);
  if (preceding != seen_.end() && (preceding->second.lower || preceding->second.upper)) {
    return invalid(
        "Clustering column \"{}\" cannot be restricted (preceding column \"{}\" is "
        "restricted by a non-EQ relation)",
        name, before);
  }
  for (std::size_t column = partition_size(); column < predicate.columns.front(); ++column) {
    if (seen_.contains(column)) continue;
    return invalid(
        "PRIMARY KEY column \"{}\" cannot be restricted as preceding column \"{}\" is "
        "not restricted",
        name, table_.columns[column].name);
  }
  return invalid(
      "Clustering column \"{}\" cannot be restricted (preceding column \"{}\" is "
      "restricted by a non-EQ relation)",
      name, before);
}

QueryResult<void> RestrictionsPlanner::check_rows_of_write() const {
  const bool ranges_allowed = rules_.kind == StatementKind::delete_ && rules_.whole_rows;
  std::size_t restricted = 0;
  for (const Predicate& predicate : made_.prefix_) restricted += predicate.columns.size();
  const auto missing = table_.clustering().subspan(restricted);
  if (!ranges_allowed && made_.has_slice()) {
    if (rules_.kind == StatementKind::delete_) {
      return invalid("Range deletions are not supported for specific columns");
    }
    return invalid(
        "Slice restrictions are not supported on the clustering columns in {} statements",
        name_of(rules_.kind));
  }
  if (rules_.only_static) {
    if (!made_.restricts_clustering_) return {};
    return invalid(
        "Invalid restrictions on clustering columns since the {} statement modifies only static "
        "columns",
        name_of(rules_.kind));
  }
  if (ranges_allowed || missing.empty()) return {};
  if (rules_.kind == StatementKind::delete_) {
    return invalid("Range deletions are not supported for specific columns");
  }
  std::vector<std::string> names;
  for (const Column& column : missing) names.push_back(column.name);
  return invalid("Some clustering keys are missing: {}", fmt::join(names, ", "));
}

QueryResult<void> RestrictionsPlanner::plan_rows() {
  made_.restricts_clustering_ = !on_clustering_.empty();
  std::size_t position = 0;
  const auto by_values = [](const Predicate& predicate) {
    return predicate.is_equal() || predicate.is_in();
  };
  while (auto predicate = take_clustering(position, by_values)) {
    position += predicate->columns.size();
    made_.has_in_ = made_.has_in_ || predicate->is_in();
    made_.prefix_.push_back(std::move(*predicate));
  }
  made_.names_rows_ = made_.names_partitions_ && position == table_.clustering().size();
  made_.lower_ = take_clustering(position, [](const Predicate& p) { return p.is_lower(); });
  made_.upper_ = take_clustering(position, [](const Predicate& p) { return p.is_upper(); });
  for (const Predicate& predicate : on_clustering_) TRY_VOID(refuse_leftover(predicate));
  if (rules_.kind != StatementKind::select) TRY_VOID(check_rows_of_write());
  std::ranges::move(on_clustering_, std::back_inserter(made_.filters_));
  if (made_.names_partitions_ || !made_.restricts_clustering_) return {};
  for (const Predicate& predicate : made_.prefix_) {
    if (!is_allowed(predicate)) return needs_allow_filtering();
  }
  for (const auto* bound : {&made_.lower_, &made_.upper_}) {
    if (*bound && !is_allowed(**bound)) return needs_allow_filtering();
  }
  // Without partitions there is nowhere to look rows up: they are filtered.
  std::ranges::move(made_.prefix_, std::back_inserter(made_.filters_));
  made_.prefix_.clear();
  if (made_.lower_) made_.filters_.push_back(*std::exchange(made_.lower_, std::nullopt));
  if (made_.upper_) made_.filters_.push_back(*std::exchange(made_.upper_, std::nullopt));
  return {};
}

QueryResult<void> RestrictionsPlanner::plan_others() {
  if (on_others_.empty()) return {};
  std::vector<std::string> names;
  for (const Predicate& predicate : on_others_) {
    const Column& column = table_.columns[predicate.columns.front()];
    names.push_back(column.name);
    made_.restricts_regular_ = made_.restricts_regular_ || column.kind == ColumnKind::regular;
    if (rules_.kind == StatementKind::select && predicate.is_in()) {
      return invalid("IN predicates on non-primary-key columns ({}) is not yet supported",
                     column.name);
    }
  }
  if (rules_.kind != StatementKind::select) {
    return invalid("Non PRIMARY KEY columns found in where clause: {} ", fmt::join(names, ", "));
  }
  for (const Predicate& predicate : on_others_) {
    if (!is_allowed(predicate)) return needs_allow_filtering();
  }
  std::ranges::move(on_others_, std::back_inserter(made_.filters_));
  return {};
}

namespace {

bool answers(const model::Index& index, const DataType& type, const Predicate& predicate) {
  using model::IndexTarget;
  switch (index.target) {
    case IndexTarget::values:
      return predicate.comparison == Operator::contains;
    case IndexTarget::keys:
      return predicate.comparison == Operator::contains_key;
    case IndexTarget::entries:
      return predicate.element && predicate.comparison == Operator::equal;
    case IndexTarget::column:
    case IndexTarget::full:
      if (predicate.is_equal()) return true;
      // As in Cassandra: only storage-attached ones are ordered.
      return predicate.is_slice() && !predicate.element && index.is_custom &&
             index.target == IndexTarget::column && !type.mentions(TypeKind::udt);
  }
  return false;
}

}  // namespace

std::optional<std::size_t> RestrictionsPlanner::index_for(const Predicate& predicate) const {
  if (rules_.kind != StatementKind::select || predicate.is_tuple) return std::nullopt;
  const Column& column = table_.columns[predicate.columns.front()];
  for (std::size_t i = 0; i < table_.indexes.size(); ++i) {
    const model::Index& index = table_.indexes[i];
    if (index.column == column.id && answers(index, column.type, predicate)) return i;
  }
  return std::nullopt;
}

// One index is asked, one with a single value if there is one; of an ordered one both bounds. As in
// Cassandra, conditions on several indexes need no ALLOW FILTERING where all are storage-attached.
QueryResult<void> RestrictionsPlanner::plan_index() {
  bool all_custom = true;
  for (std::size_t i = 0; i < made_.filters_.size(); ++i) {
    const auto number = index_for(made_.filters_[i]);
    if (!number) continue;
    all_custom = all_custom && table_.indexes[*number].is_custom;
    const bool is_bound = made_.filters_[i].is_slice();
    const bool is_first = !made_.index_;
    const bool is_better =
        !is_first && !is_bound && made_.filters_[made_.index_->filters.front()].is_slice();
    if (is_first || is_better) {
      made_.index_ = Restrictions::IndexUse{.number = *number, .filters = {i}};
    } else if (is_bound && made_.index_->number == *number &&
               made_.filters_[made_.index_->filters.front()].is_slice()) {
      made_.index_->filters.push_back(i);
    }
  }
  if (rules_.allow_filtering || made_.filters_.size() <= 1 || all_custom) return {};
  return needs_allow_filtering();
}

QueryResult<Restrictions> RestrictionsPlanner::finish() {
  TRY_VOID(plan_partitions());
  TRY_VOID(plan_rows());
  TRY_VOID(plan_others());
  TRY_VOID(plan_index());
  return std::move(made_);
}

QueryResult<Restrictions> Restrictions::plan(const std::vector<Relation>& relations,
                                             const model::TablePtr& table, Rules rules,
                                             PlanScope& scope) {
  RestrictionsPlanner planner(table, rules);
  for (const Relation& relation : relations) TRY_VOID(planner.add(relation, scope));
  return planner.finish();
}

QueryResult<Restrictions> Restrictions::of_keys(std::vector<Predicate> equalities,
                                                const model::TablePtr& table, Rules rules) {
  RestrictionsPlanner planner(table, rules);
  for (Predicate& equality : equalities) TRY_VOID(planner.add(std::move(equality)));
  return planner.finish();
}

}  // namespace helenus::cql
