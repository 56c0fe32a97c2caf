#include "cql/plan/column_change.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/assert.h"
#include "base/codec.h"
#include "cql/plan/value_guard.h"
#include "model/element_key.h"
#include "model/sort_elements.h"

namespace helenus::cql {

using base::Bytes;
using base::ByteView;
using causality::CellChange;
using causality::VersionKind;
using model::Column;
using model::DataType;
using model::TypeKind;
using Assignment = ModificationPlan::Assignment;
using Change = ModificationPlan::Change;
using Elements = ColumnChange::Elements;

namespace {

// ---- Names of a list's elements ----

constexpr std::uint32_t kNumberBits = 20;
// 2010-01-01, in ticks since 1970.
constexpr std::int64_t kPrependOrigin = std::int64_t{1'262'304'000} * 10'000'000;

Bytes list_name(std::int64_t ticks, std::uint64_t nonce, std::uint32_t number) {
  constexpr std::uint64_t kNumberMask = (std::uint64_t{1} << kNumberBits) - 1;
  base::Buffer out(2 * sizeof(std::uint64_t));
  base::store_be(out.extend(sizeof(std::uint64_t)).data(),
                 static_cast<std::uint64_t>(ticks) ^ (std::uint64_t{1} << 63));
  base::store_be(out.extend(sizeof(std::uint64_t)).data(), (nonce & ~kNumberMask) | number);
  return std::move(out).freeze();
}

// More than a request may change is refused before anything of it is made.
QueryResult<void> check_elements(std::size_t count) {
  if (count > kChangesMax) return invalid("Batch too large");
  return {};
}

// Of so many elements, in their order.
QueryResult<std::vector<Bytes>> list_names(std::size_t count, bool before, Moment& moment) {
  constexpr std::uint32_t kNumbers = 1U << kNumberBits;
  if (count >= kNumbers) return invalid("A list of more than {} elements", kNumbers - 1);
  const std::uint32_t taken = moment.take_numbers(static_cast<std::uint32_t>(count));
  if (taken + count > kNumbers) return invalid("A request with more than {} elements", kNumbers);
  // What is put before a list later stands before what was put there earlier.
  const auto first = before ? kNumbers - taken - static_cast<std::uint32_t>(count) : taken;
  const std::int64_t ticks = before ? 2 * kPrependOrigin - moment.ticks() : moment.ticks();
  std::vector<Bytes> names;
  names.reserve(count);
  for (std::uint32_t i = 0; i < count; ++i) {
    names.push_back(list_name(ticks, moment.nonce(), first + i));
  }
  return names;
}

// ---- One column ----

class ChangeMaker {
 public:
  ChangeMaker(const ModificationPlan& plan, const Assignment& assignment, const Lifetime& lifetime,
              const Evaluation& evaluation)
      : column_(plan.table->columns[assignment.column]),
        assignment_(assignment),
        lifetime_(lifetime),
        evaluation_(evaluation) {}

  QueryResult<ColumnChange> of_cell();
  QueryResult<void> guard(const TermValue& value) const {
    if (evaluation_.guard == nullptr || !value.has_bytes()) return {};
    return evaluation_.guard->check(column_, value.bytes);
  }
  QueryResult<ColumnChange> of_elements(const ListElements* list);

 private:
  const DataType& type() const { return column_.type; }
  CellChange value_at(ByteView name, Bytes value) const;
  CellChange deletion_at(ByteView name) const;
  QueryResult<std::int64_t> amount_of(const Bytes& value) const;

  QueryResult<void> put_all(const Bytes& value);
  QueryResult<void> put_list(const Bytes& value, bool before);
  QueryResult<void> put_fields(const Bytes& value);
  QueryResult<void> take_all(const Bytes& value, const ListElements* list);
  QueryResult<void> change_element(const ListElements* list);
  QueryResult<Bytes> name_of_element(const ListElements* list) const;
  QueryResult<Bytes> name_in_list(ByteView index, const ListElements& list) const;

  const Column& column_;
  const Assignment& assignment_;
  const Lifetime& lifetime_;
  const Evaluation& evaluation_;
  ColumnChange made_;
};

CellChange ChangeMaker::deletion_at(ByteView name) const {
  CellChange cell;
  cell.row = model::element_suffix(column_.id, name);
  cell.column = column_.id;
  cell.kind = VersionKind::deletion;
  cell.expires = lifetime_.of_deletes;
  return cell;
}

CellChange ChangeMaker::value_at(ByteView name, Bytes value) const {
  CellChange cell;
  cell.row = model::element_suffix(column_.id, name);
  cell.column = column_.id;
  cell.expires = lifetime_.of_values;
  cell.value = std::move(value);
  return cell;
}

QueryResult<std::int64_t> ChangeMaker::amount_of(const Bytes& value) const {
  TRY(const std::int64_t amount, model::read_bigint(value));
  if (assignment_.change == Change::add) return amount;
  if (amount == std::numeric_limits<std::int64_t>::min()) {
    return invalid(
        "The negation of {} overflows supported counter precision (signed 8 bytes "
        "integer) for column {}",
        amount, column_.name);
  }
  return -amount;
}

QueryResult<ColumnChange> ChangeMaker::of_cell() {
  CellChange cell;
  cell.column = column_.id;
  cell.kind = VersionKind::deletion;
  cell.expires = lifetime_.of_deletes;
  if (assignment_.change == Change::remove) {
    made_.cells.push_back(std::move(cell));
    return std::move(made_);
  }
  TRY(TermValue value, assignment_.value->evaluate(evaluation_));
  if (value.is_unset()) return std::move(made_);
  TRY_VOID(guard(value));
  if (assignment_.change != Change::set) {
    if (!value.has_bytes()) return invalid("Invalid null value for counter increment");
    cell.kind = VersionKind::increment;
    cell.expires.reset();
    TRY(cell.amount, amount_of(value.bytes));
  } else if (value.has_bytes()) {
    cell.kind = VersionKind::value;
    cell.value = std::move(value.bytes);
    cell.expires = lifetime_.of_values;
  }
  made_.cells.push_back(std::move(cell));
  return std::move(made_);
}

// ---- In elements ----

QueryResult<void> ChangeMaker::put_list(const Bytes& value, bool before) {
  TRY(const auto parts, model::split_collection(value, evaluation_.pace));
  TRY(const auto names, list_names(parts.size(), before, evaluation_.moment));
  for (std::size_t i = 0; i < parts.size(); ++i) {
    TRY_VOID(evaluation_.turn());
    made_.cells.push_back(value_at(names[i], Bytes::copy_of(parts[i])));
  }
  return {};
}

QueryResult<void> ChangeMaker::put_fields(const Bytes& value) {
  TRY(const auto fields, model::split_tuple(type().parts().size(), value));
  for (std::size_t i = 0; i < fields.size(); ++i) {
    if (!fields[i]) continue;
    made_.cells.push_back(value_at(model::field_name(i), Bytes::copy_of(*fields[i])));
  }
  return {};
}

QueryResult<void> ChangeMaker::put_all(const Bytes& value) {
  if (type().is_collection()) TRY_VOID(check_elements(model::count_of_collection(value)));
  switch (type().kind()) {
    case TypeKind::list:
      return put_list(value, assignment_.change == Change::prepend);
    case TypeKind::udt:
      return put_fields(value);
    case TypeKind::set: {
      TRY(const auto parts, model::split_collection(value, evaluation_.pace));
      for (const ByteView part : parts) {
        TRY_VOID(evaluation_.turn());
        TRY(const Bytes name, model::element_name(type().element(), part));
        made_.cells.push_back(value_at(name, {}));
      }
      return {};
    }
    default: {
      TRY(const auto entries, model::split_map(value, evaluation_.pace));
      for (const auto& [key, mapped] : entries) {
        TRY_VOID(evaluation_.turn());
        TRY(const Bytes name, model::element_name(type().key(), key));
        made_.cells.push_back(value_at(name, Bytes::copy_of(mapped)));
      }
      return {};
    }
  }
}

// What is taken away comes as a list, of a list; else as a set of elements or of keys.
QueryResult<void> ChangeMaker::take_all(const Bytes& value, const ListElements* list) {
  TRY_VOID(check_elements(model::count_of_collection(value)));
  TRY(auto parts, model::split_collection(value, evaluation_.pace));
  if (type().kind() == TypeKind::list) {
    ASSERT(list != nullptr);
    TRY_VOID(model::sort_and_unite(
        type().element(), parts, [](ByteView part) { return part; }, evaluation_.pace));
    const auto comes_before = [&](ByteView a, ByteView b) {
      return model::compare(type().element(), a, b) < 0;
    };
    for (const ListElement& element : *list) {
      TRY_VOID(evaluation_.turn());
      if (std::ranges::binary_search(parts, element.value.view(), comes_before))
        made_.cells.push_back(deletion_at(element.name));
    }
    return {};
  }
  const DataType& named = type().kind() == TypeKind::set ? type().element() : type().key();
  for (const ByteView part : parts) {
    TRY_VOID(evaluation_.turn());
    TRY(const Bytes name, model::element_name(named, part));
    made_.cells.push_back(deletion_at(name));
  }
  return {};
}

QueryResult<Bytes> ChangeMaker::name_in_list(ByteView index, const ListElements& list) const {
  TRY(const std::int32_t number, model::read_int(index));
  if (list.empty()) {
    return invalid("Attempted to {} a list which is null", assignment_.change == Change::set_element
                                                               ? "set an element on"
                                                               : "delete an element from");
  }
  if (number < 0 || static_cast<std::size_t>(number) >= list.size()) {
    return invalid("List index {} out of bound, list has size {}", number, list.size());
  }
  return list[static_cast<std::size_t>(number)].name;
}

QueryResult<Bytes> ChangeMaker::name_of_element(const ListElements* list) const {
  if (type().kind() == TypeKind::udt) return model::field_name(assignment_.field);
  const std::string_view what = type().kind() == TypeKind::list  ? "list index"
                                : type().kind() == TypeKind::set ? "set element"
                                                                 : "map key";
  TRY(const TermValue element, assignment_.element->evaluate(evaluation_));
  if (element.is_unset()) return invalid("Invalid unset value for {}", what);
  if (element.is_null()) {
    return type().kind() == TypeKind::list ? invalid("Invalid null value for list index")
                                           : invalid("Invalid null {}", what);
  }
  if (type().kind() == TypeKind::list) {
    ASSERT(list != nullptr);
    return name_in_list(element.bytes, *list);
  }
  TRY(Bytes name,
      model::element_name(type().kind() == TypeKind::set ? type().element() : type().key(),
                          element.bytes));
  return name;
}

QueryResult<void> ChangeMaker::change_element(const ListElements* list) {
  TermValue value;
  if (assignment_.change == Change::set_element) {
    TRY(value, assignment_.value->evaluate(evaluation_));
    if (value.is_unset()) return {};
  }
  TRY(const Bytes name, name_of_element(list));
  made_.cells.push_back(value.has_bytes() ? value_at(name, std::move(value.bytes))
                                          : deletion_at(name));
  return {};
}

QueryResult<ColumnChange> ChangeMaker::of_elements(const ListElements* list) {
  const Change change = assignment_.change;
  if (change == Change::remove) {
    made_.elements = Elements::deleted;
    return std::move(made_);
  }
  if (change == Change::set_element || change == Change::remove_element) {
    TRY_VOID(change_element(list));
    return std::move(made_);
  }
  if (type().is_collection()) TRY_VOID(check_elements(assignment_.value->count_bound(evaluation_)));
  TRY(const TermValue value, assignment_.value->evaluate(evaluation_));
  if (value.is_unset()) return std::move(made_);
  if (change != Change::take) TRY_VOID(guard(value));
  if (change == Change::set) made_.elements = Elements::replaced;
  if (value.is_null()) return std::move(made_);
  if (change == Change::take) {
    TRY_VOID(take_all(value.bytes, list));
  } else {
    TRY_VOID(put_all(value.bytes));
  }
  return std::move(made_);
}

}  // namespace

bool reads_list(const model::Table& table, const Assignment& assignment) {
  return table.columns[assignment.column].type.kind() == TypeKind::list &&
         (assignment.change == Change::take || assignment.change == Change::set_element ||
          assignment.change == Change::remove_element);
}

bool ModificationPlan::reads() const {
  return std::ranges::any_of(
      assignments, [&](const Assignment& assignment) { return reads_list(*table, assignment); });
}

QueryResult<ColumnChange> change_of(const ModificationPlan& plan, const Assignment& assignment,
                                    const Lifetime& lifetime, const Evaluation& evaluation,
                                    const ListElements* list) {
  ChangeMaker maker(plan, assignment, lifetime, evaluation);
  const bool in_elements = plan.table->columns[assignment.column].type.is_multi_cell();
  return in_elements ? maker.of_elements(list) : maker.of_cell();
}

}  // namespace helenus::cql
