// What selectors are of one row.
#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "base/codec.h"
#include "cql/plan/selectors.h"
#include "model/element_key.h"
#include "model/json.h"
#include "model/partition_key.h"
#include "ring/murmur3.h"

namespace helenus::cql {

using base::Bytes;
using base::ByteView;
using model::DataType;
using model::OptionalBytes;
using model::TypeKind;
using protocol::ColumnSpec;

namespace {

OptionalBytes element_of_set(const DataType& type, const Bytes& set, const Bytes& element) {
  const auto elements = model::split_collection(set);
  if (!elements) return std::nullopt;
  for (const base::ByteView there : *elements) {
    if (model::compare(type.element(), there, element) == 0) return element;
  }
  return std::nullopt;
}

OptionalBytes element_of(const DataType& type, const OptionalBytes& collection,
                         const OptionalBytes& key) {
  if (!collection || !key) return std::nullopt;
  if (type.kind() == TypeKind::set) return element_of_set(type, *collection, *key);
  const auto entries = model::split_map(*collection);
  if (!entries) return std::nullopt;
  for (const auto& [entry_key, value] : *entries) {
    if (model::compare(type.key(), entry_key, *key) == 0) return Bytes::copy_of(value);
  }
  return std::nullopt;
}

// The elements, or the entries, from one to another, both included.
OptionalBytes slice_of_value(const DataType& type, const std::vector<OptionalBytes>& values) {
  if (!values[0]) return std::nullopt;
  const bool of_set = type.kind() == TypeKind::set;
  const DataType& bound = of_set ? type.element() : type.key();
  const auto is_within = [&](ByteView key) {
    return (!values[1] || model::compare(bound, key, *values[1]) >= 0) &&
           (!values[2] || model::compare(bound, key, *values[2]) <= 0);
  };
  std::vector<Bytes> elements;
  std::vector<model::MapEntry> entries;
  if (of_set) {
    const auto all = model::split_collection(*values[0]);
    if (!all) return std::nullopt;
    for (const ByteView element : *all) {
      if (is_within(element)) elements.push_back(Bytes::copy_of(element));
    }
  } else {
    const auto all = model::split_map(*values[0]);
    if (!all) return std::nullopt;
    for (const auto& [key, value] : *all) {
      if (is_within(key)) entries.emplace_back(Bytes::copy_of(key), Bytes::copy_of(value));
    }
  }
  if (elements.empty() && entries.empty() && type.is_multi_cell()) return std::nullopt;
  return of_set ? model::compose_set(bound, std::move(elements))
                : model::compose_map(bound, std::move(entries));
}

OptionalBytes field_of_value(const DataType& type, const OptionalBytes& value, std::size_t field) {
  if (!value) return std::nullopt;
  const auto fields = model::split_tuple(type.parts().size(), *value);
  if (!fields || !(*fields)[field]) return std::nullopt;
  return Bytes::copy_of(*(*fields)[field]);
}

QueryResult<OptionalBytes> token_of_values(const std::vector<OptionalBytes>& values) {
  std::vector<ByteView> views;
  for (const OptionalBytes& value : values) {
    if (!value) return OptionalBytes();
    views.push_back(value->view());
  }
  TRY(const Bytes routing_key, model::make_routing_key(views));
  return OptionalBytes(model::bigint_value(ring::token_of(routing_key).value()));
}

}  // namespace

QueryResult<OptionalBytes> Selector::combine(std::vector<OptionalBytes> values,
                                             const Evaluation& evaluation) const {
  switch (kind_) {
    case Kind::token:
      return token_of_values(values);
    case Kind::function:
      return function_->call(values, evaluation.moment);
    case Kind::element:
      return element_of(parts_[0].type(), values[0], values[1]);
    case Kind::slice:
      return slice_of_value(parts_[0].type(), values);
    case Kind::field:
      return field_of_value(parts_[0].type(), values[0], column_);
    case Kind::json:
      return OptionalBytes(json_text(values));
    default:
      UNREACHABLE("a selector that combines");
  }
}

namespace {

OptionalBytes ttl_of(const std::optional<std::int64_t>& expires, const Evaluation& evaluation) {
  if (!expires) return std::nullopt;
  const std::int64_t left = *expires - evaluation.moment.seconds().value();
  return model::int_value(static_cast<std::int32_t>(left));
}

// A list in which elements may be null.
Bytes list_with_nulls(const std::vector<OptionalBytes>& elements) {
  constexpr std::uint32_t kNull = 0xffffffff;
  base::Buffer out;
  base::Encoder(out).u32_be(static_cast<std::uint32_t>(elements.size()));
  for (const OptionalBytes& element : elements) {
    base::Encoder(out).u32_be(element ? static_cast<std::uint32_t>(element->size()) : kNull);
    if (element) out.append(element->view());
  }
  return std::move(out).freeze();
}

// Nothing for null.
QueryResult<Bytes> name_of_element(const DataType& type, const OptionalBytes& element) {
  if (!element) return Bytes();
  TRY(Bytes name,
      model::element_name(type.kind() == TypeKind::set ? type.element() : type.key(), *element));
  return name;
}

}  // namespace

QueryResult<OptionalBytes> Selector::property_of(const Row& row,
                                                 const Evaluation& evaluation) const {
  const Cell& cell = row.cells[column_];
  if (!cell.value) return OptionalBytes();
  if (extent_ != Extent::cell) return property_of_elements(cell, evaluation);
  if (kind_ == Kind::ttl) return ttl_of(cell.expires_seconds, evaluation);
  return OptionalBytes(model::bigint_value(cell.timestamp_us));
}

QueryResult<OptionalBytes> Selector::property_of_elements(const Cell& cell,
                                                          const Evaluation& evaluation) const {
  if (cell.elements == nullptr) return OptionalBytes();
  Bytes from;
  Bytes to;
  if (field_) {
    from = model::field_name(*field_);
  } else if (!parts_.empty()) {
    TRY(const OptionalBytes first, parts_.front().of_row(Row(), evaluation));
    if (!first && extent_ == Extent::element) return OptionalBytes();
    TRY(from, name_of_element(*of_type_, first));
    TRY(const OptionalBytes last, parts_.back().of_row(Row(), evaluation));
    TRY(to, name_of_element(*of_type_, last));
  }
  std::vector<OptionalBytes> told;
  std::optional<std::int64_t> newest;
  for (const CellElement& element : *cell.elements) {
    if (extent_ == Extent::element ? element.name != from
                                   : element.name < from || (!to.empty() && to < element.name)) {
      continue;
    }
    if (of_type_->kind() == TypeKind::udt && extent_ == Extent::all) {
      TRY(const std::size_t field, model::named_field(element.name));
      told.resize(field);  // those between are null
    }
    newest = std::max(newest.value_or(element.timestamp_us), element.timestamp_us);
    told.push_back(kind_ == Kind::ttl ? ttl_of(element.expires_seconds, evaluation)
                                      : OptionalBytes(model::bigint_value(element.timestamp_us)));
  }
  if (told.empty()) return OptionalBytes();
  if (kind_ == Kind::max_writetime) return OptionalBytes(model::bigint_value(*newest));
  if (extent_ == Extent::element) return told.front();
  if (of_type_->kind() == TypeKind::udt) told.resize(of_type_->parts().size());
  return OptionalBytes(list_with_nulls(told));
}

QueryResult<OptionalBytes> Selector::of_row(const Row& row, const Evaluation& evaluation) const {
  switch (kind_) {
    case Kind::column:
      return row.cells[column_].value;
    case Kind::writetime:
    case Kind::max_writetime:
    case Kind::ttl:
      return property_of(row, evaluation);
    case Kind::term: {
      TRY(TermValue value, term_->evaluate(evaluation));
      return value.has_bytes() ? OptionalBytes(std::move(value.bytes)) : std::nullopt;
    }
    default:
      break;
  }
  std::vector<OptionalBytes> values;
  values.reserve(parts_.size());
  for (const Selector& part : parts_) {
    TRY(OptionalBytes value, part.of_row(row, evaluation));
    values.push_back(std::move(value));
  }
  return combine(std::move(values), evaluation);
}

Selector Selector::json_of(std::vector<Selector> parts, const std::vector<ColumnSpec>& columns) {
  Selector selector(Kind::json, DataType::text());
  selector.parts_ = std::move(parts);
  for (const ColumnSpec& column : columns) selector.names_.push_back(model::json_name(column.name));
  return selector;
}

Bytes Selector::json_text(const std::vector<OptionalBytes>& values) const {
  std::string text = "{";
  for (std::size_t i = 0; i < values.size(); ++i) {
    text += fmt::format("{}{}: {}", i > 0 ? ", " : "", names_[i],
                        values[i] ? model::to_json(parts_[i].type(), *values[i]) : "null");
  }
  return model::text_value(text + "}");
}

Selector Selector::of_column(std::size_t column, DataType type) {
  Selector selector(Kind::column, std::move(type));
  selector.column_ = column;
  return selector;
}

}  // namespace helenus::cql
