// The parts that statements of CQL are made of: names, types, expressions, relations.
//
// Names are folded (lower case unless quoted), literals are their text and the kind the lexer saw,
// types are spelled and not looked up, bind markers are numbered in the order of the text. Whether
// a table exists, a literal fits its column or a function is known is the planner's business.
//
// All of it is plain values: a tree owns everything it shows, is copied deeply and compared
// structurally. Positions take no part in comparisons, so parse(to_text(s)) == s. The depth of a
// tree is bounded by kNestingDepthMax of limits.h: chains such as `1 + 1 + 1` and `a.b.c` are
// vectors here, so that recursion over a tree (its destructor too) needs little stack whatever a
// client sent.
//
// Where Cassandra's grammar gives one text two readings, the tree keeps both open and says so
// below.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace helenus::cql::parser {

// Where something begins in the text: lines from 1, columns from 0 and in bytes, as Cassandra
// counts them. Any two positions are equal, see above.
struct Position {
  std::uint32_t line = 1;
  std::uint32_t column = 0;

  friend bool operator==(const Position& /*a*/, const Position& /*b*/) { return true; }
};

// A T elsewhere in memory, with the value semantics of a T: what lets a tree contain itself.
// A moved-from Box can only be assigned to or destroyed.
template <class T>
class Box {
 public:
  Box() : value_(std::make_unique<T>()) {}
  Box(T value) : value_(std::make_unique<T>(std::move(value))) {}  // NOLINT: a Box is its T
  Box(const Box& other) : value_(std::make_unique<T>(*other)) {}
  Box& operator=(const Box& other) { return *this = Box(other); }
  Box(Box&&) noexcept = default;
  Box& operator=(Box&&) noexcept = default;
  ~Box() = default;

  T& operator*() { return *value_; }
  const T& operator*() const { return *value_; }
  T* operator->() { return value_.get(); }
  const T* operator->() const { return value_.get(); }

  friend bool operator==(const Box& a, const Box& b) { return *a == *b; }

 private:
  std::unique_ptr<T> value_;
};

// ------------------------------------------------------------------------------------- names

// An identifier as it is looked up: in lower case, or exactly as it stood between double quotes.
// A role's name may also come from a string literal, and then keeps its case. Only a column may
// have the empty name.
struct Name {
  std::string text;
  Position position;

  friend bool operator==(const Name&, const Name&) = default;
};

// `name` or `keyspace.name`.
struct QualifiedName {
  std::optional<Name> keyspace;
  Name name;

  friend bool operator==(const QualifiedName&, const QualifiedName&) = default;
};

// ------------------------------------------------------------------------------------- types

enum class TypeKind : std::uint8_t {
  native,  // `name` is one of CQL's own, in lower case; text and varchar are both kept as written
  list,    // one argument
  set,     // one argument
  map,     // two arguments
  tuple,   // one argument or more
  vector,  // one argument, and `dimension`
  user,    // `keyspace` and `name`
  custom,  // `name` is what stood between single quotes: a class of Java
};

struct TypeName {
  TypeKind kind = TypeKind::native;
  // frozen<...> around this type; nested ones count once. Never set for native and custom types:
  // the parser refuses those as Cassandra does.
  bool frozen = false;
  std::optional<Name> keyspace;
  std::string name;
  std::vector<TypeName> arguments;
  std::uint32_t dimension = 0;  // of a vector
  Position position;

  friend bool operator==(const TypeName&, const TypeName&) = default;
};

// ------------------------------------------------------------------------------- expressions
//
// One kind of tree for terms (values of an INSERT, right sides of relations) and for selectors
// (what a SELECT gives). In terms there are no Column, CountRows, CellProperty and Selection nodes;
// in selectors there are no UserTypeLiteral nodes.

struct Expression;

enum class LiteralKind : std::uint8_t {
  null,      // text is empty
  string,    // text without its quotes, doubled quotes made single
  integer,   // an optional minus and digits, of any length
  floating,  // as written, or NaN, Infinity, -Infinity
  boolean,   // true or false
  duration,  // as written: 1y2mo3d, -5h30m, P1Y2M, P3W, P2024-01-02T03:04:05
  uuid,      // as written: 8-4-4-4-12 hexadecimal digits
  blob,      // as written: 0x and any number of hexadecimal digits, odd numbers too
};

struct Literal {
  LiteralKind kind = LiteralKind::null;
  std::string text;
  Position position;

  friend bool operator==(const Literal&, const Literal&) = default;
};

// `?` or `:name`; `index` is its place among the markers of the whole statement, a batch included.
// Its name, if it has one, is in Statement::markers.
struct Marker {
  std::uint16_t index = 0;
  Position position;

  friend bool operator==(const Marker&, const Marker&) = default;
};

// A column in a selector. Also a key within a selector's `{a: 1}`, see MapLiteral.
struct Column {
  Name name;

  friend bool operator==(const Column&, const Column&) = default;
};

struct ListLiteral {
  std::vector<Expression> elements;

  friend bool operator==(const ListLiteral&, const ListLiteral&) = default;
};

// `{}` is one of these with no elements: an empty map if the column is a map.
struct SetLiteral {
  std::vector<Expression> elements;

  friend bool operator==(const SetLiteral&, const SetLiteral&) = default;
};

struct MapEntry;

// In a term, `{a: 1}` is a UserTypeLiteral. In a selector `a` could be a column as well as a field,
// so it is a MapLiteral with a Column for its key, and the type expected decides.
struct MapLiteral {
  std::vector<MapEntry> entries;

  friend bool operator==(const MapLiteral&, const MapLiteral&) = default;
};

struct UserTypeField;

// At least one field. A field may stand twice; Cassandra lets the last one win.
struct UserTypeLiteral {
  std::vector<UserTypeField> fields;

  friend bool operator==(const UserTypeLiteral&, const UserTypeLiteral&) = default;
};

// `(a, b)`, at least one element. With exactly one it is a tuple of one if a tuple is expected, and
// mere parentheses if not.
struct TupleLiteral {
  std::vector<Expression> elements;

  friend bool operator==(const TupleLiteral&, const TupleLiteral&) = default;
};

// `f(a, b)` or `ks.f(a, b)`. token, count (but for count(*)), min, now, blobAsInt are such calls;
// so are their quoted spellings.
struct FunctionCall {
  Box<QualifiedName> function;
  std::vector<Expression> arguments;

  friend bool operator==(const FunctionCall&, const FunctionCall&) = default;
};

// `count(*)`.
struct CountRows {
  friend bool operator==(const CountRows&, const CountRows&) = default;
};

enum class CellPropertyKind : std::uint8_t { writetime, ttl };

// `writetime(column)`, `ttl(column)`, and of a part of it: `ttl(column[key])`.
struct CellProperty {
  CellPropertyKind kind = CellPropertyKind::writetime;
  Box<Expression> of;  // a Column, or a Selection from one

  friend bool operator==(const CellProperty&, const CellProperty&) = default;
};

// `cast(operand AS type)`; the type is a native one.
struct Cast {
  Box<Expression> operand;
  Box<TypeName> type;

  friend bool operator==(const Cast&, const Cast&) = default;
};

// `(type) operand`: tells of which type a literal or marker is; converts nothing.
struct TypeHint {
  Box<TypeName> type;
  Box<Expression> operand;

  friend bool operator==(const TypeHint&, const TypeHint&) = default;
};

// A minus that is not part of a literal; -5 is the literal.
struct Negation {
  Box<Expression> operand;

  friend bool operator==(const Negation&, const Negation&) = default;
};

enum class ArithmeticOperator : std::uint8_t { add, subtract, multiply, divide, remainder };

// A chain of one precedence, evaluated from left to right: operands[0] operators[0] operands[1] ...
// One operand more than operators, at least two. All operators are of {add, subtract}, or all of
// {multiply, divide, remainder}.
struct Arithmetic {
  std::vector<Expression> operands;
  std::vector<ArithmeticOperator> operators;

  friend bool operator==(const Arithmetic&, const Arithmetic&) = default;
};

// `[key]` of a map, a set or a list.
struct ElementStep {
  Box<Expression> key;

  friend bool operator==(const ElementStep&, const ElementStep&) = default;
};

// `[from..to]`, either end may be open but not both.
struct SliceStep {
  std::optional<Box<Expression>> from;
  std::optional<Box<Expression>> to;

  friend bool operator==(const SliceStep&, const SliceStep&) = default;
};

// `.field`.
struct FieldStep {
  Name field;

  friend bool operator==(const FieldStep&, const FieldStep&) = default;
};

using SelectionStep = std::variant<ElementStep, SliceStep, FieldStep>;

// `column[key].field`: the steps are taken from left to right. At least one.
struct Selection {
  Box<Expression> from;
  std::vector<SelectionStep> steps;

  friend bool operator==(const Selection&, const Selection&) = default;
};

struct Expression {
  using Node = std::variant<Literal, Marker, Column, ListLiteral, SetLiteral, MapLiteral,
                            UserTypeLiteral, TupleLiteral, FunctionCall, CountRows, CellProperty,
                            Cast, TypeHint, Negation, Arithmetic, Selection>;
  Node node;
  Position position;

  friend bool operator==(const Expression&, const Expression&) = default;
};

// A megabyte of text may hold half a million of them, so the rare and large parts are in boxes.
static_assert(sizeof(Expression) <= 64);

struct MapEntry {
  Expression key;
  Expression value;

  friend bool operator==(const MapEntry&, const MapEntry&) = default;
};

struct UserTypeField {
  Name name;
  Expression value;

  friend bool operator==(const UserTypeField&, const UserTypeField&) = default;
};

// ------------------------------------------------------------------- relations and conditions

enum class Operator : std::uint8_t {
  equal,
  not_equal,
  less,
  less_or_equal,
  greater,
  greater_or_equal,
  in,
  contains,
  contains_key,
  like,
  is_not_null,
};

// What is compared with: one value, a list of them, or a marker that will hold the list.
struct Operand {
  // is_not_null: none. in: any number, none included. All others: exactly one.
  std::vector<Expression> values;
  // `IN ?`: the only value is a Marker, and the whole list is bound to it.
  bool is_list_marker = false;

  friend bool operator==(const Operand&, const Operand&) = default;
};

enum class RelationKind : std::uint8_t {
  column,        // a = 1, a IN (1, 2), a CONTAINS KEY 1, a LIKE 'x', a IS NOT NULL
  element,       // a[1] = 2; comparisons only
  columns,       // (a, b) > (1, 2), (a, b) IN ((1, 2)); `columns` may also hold just one
  token,         // token(a, b) > token(1, 2); comparisons only
  custom_index,  // expr(index, term): `columns` holds the name of the index, `comparison` is equal
};

// One restriction of a WHERE clause; they are joined by AND.
struct Relation {
  RelationKind kind = RelationKind::column;
  std::vector<Name> columns;
  std::optional<Expression> element;  // the key, of RelationKind::element
  Operator comparison = Operator::equal;
  Operand operand;
  Position position;

  friend bool operator==(const Relation&, const Relation&) = default;
};

// A column or a part of one, in SET, DELETE and IF: `c`, `c[element]` or `c.field`.
struct ColumnTarget {
  Name column;
  std::optional<Expression> element;
  std::optional<Name> field;

  friend bool operator==(const ColumnTarget&, const ColumnTarget&) = default;
};

// One of the conditions behind IF, joined by AND: comparisons, in, contains and contains_key (the
// last two of whole columns only).
struct Condition {
  ColumnTarget target;
  Operator comparison = Operator::equal;
  Operand operand;

  friend bool operator==(const Condition&, const Condition&) = default;
};

}  // namespace helenus::cql::parser
