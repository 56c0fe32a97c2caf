// Writes the parts of statements as CQL. Private to this folder; others call to_text().
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cql/parser/ast.h"

namespace helenus::cql::parser {

class TextWriter {
 public:
  // The names of the markers must outlive the writer.
  explicit TextWriter(const std::vector<std::optional<std::string>>& markers)
      : markers_(&markers) {}

  std::string take() { return std::move(text_); }

  TextWriter& raw(std::string_view text) {
    text_ += text;
    return *this;
  }
  TextWriter& raw_if(bool condition, std::string_view text) {
    return condition ? raw(text) : *this;
  }

  // Names differ in which keywords they may be, see KeywordClass.
  TextWriter& name(const Name& name);
  TextWriter& name(const QualifiedName& name);
  TextWriter& function_name_part(const Name& name);
  TextWriter& function_name(const QualifiedName& name);
  TextWriter& user_type_name(const std::optional<Name>& keyspace, std::string_view name);
  TextWriter& role_name(const Name& name);
  // A name that is quoted if it is any keyword at all.
  TextWriter& no_keyword(const Name& name);

  TextWriter& string(std::string_view text);
  TextWriter& literal(const Literal& literal);
  TextWriter& type(const TypeName& type);
  TextWriter& expression(const Expression& expression);
  TextWriter& target(const ColumnTarget& target);
  TextWriter& relation(const Relation& relation);
  TextWriter& condition(const Condition& condition);
  TextWriter& where(const std::vector<Relation>& relations);
  TextWriter& selectors(const std::vector<Selector>& selectors);
  TextWriter& ordering(const Ordering& ordering);
  TextWriter& attributes(const Attributes& attributes);
  TextWriter& property_map(const PropertyMap& map);
  TextWriter& property(const Property& property);
  TextWriter& argument_types(const std::vector<TypeName>& types);

  // Each of `items` by `write`, with `separator` between.
  template <class Items, class Write>
  TextWriter& list(const Items& items, std::string_view separator, Write write) {
    bool first = true;
    for (const auto& item : items) {
      if (!first) raw(separator);
      first = false;
      write(item);
    }
    return *this;
  }
  TextWriter& names(const std::vector<Name>& items) {
    return list(items, ", ", [this](const Name& item) { name(item); });
  }
  TextWriter& expressions(const std::vector<Expression>& items) {
    return list(items, ", ", [this](const Expression& item) { expression(item); });
  }

 private:
  void node(const Literal& node);
  void node(const Marker& node);
  void node(const Column& node);
  void node(const ListLiteral& node);
  void node(const SetLiteral& node);
  void node(const MapLiteral& node);
  void node(const UserTypeLiteral& node);
  void node(const TupleLiteral& node);
  void node(const FunctionCall& node);
  void node(const CountRows& node);
  void node(const CellProperty& node);
  void node(const Cast& node);
  void node(const TypeHint& node);
  void node(const Negation& node);
  void node(const Arithmetic& node);
  void node(const Selection& node);
  void step(const SelectionStep& step);
  void operand(Operator comparison, const Operand& operand);
  // As it is, or between double quotes.
  TextWriter& word(std::string_view text, bool is_bare);

  const std::vector<std::optional<std::string>>* markers_;
  std::string text_;
};

}  // namespace helenus::cql::parser
