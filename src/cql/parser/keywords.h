// The keywords of CQL 3.4.6 and where each may also serve as a name.
//
// CQL has more keywords than most languages and lets most of them be names; which ones, and of
// what, is Cassandra's choice and kept here exactly. Enumerators are spelled the way Cassandra's
// errors name keywords: `expecting K_FROM`.
#pragma once

#include <cstdint>
#include <string_view>

namespace helenus::cql::parser {

enum class KeywordClass : std::uint8_t {
  reserved,  // a name only between double quotes
  basic,     // a name of anything
  native,    // a native type; a name of anything but a user type
  special,   // a name of anything but a user type or a function, where it means something else
};

// clang-format off
#define HELENUS_CQL_KEYWORDS(X)                                                                    \
  X(add, reserved) X(allow, reserved) X(alter, reserved) X(and, reserved) X(apply, reserved)       \
  X(asc, reserved) X(authorize, reserved) X(batch, reserved) X(begin, reserved) X(by, reserved)    \
  X(columnfamily, reserved) X(create, reserved) X(delete, reserved) X(desc, reserved)              \
  X(describe, reserved) X(drop, reserved) X(entries, reserved) X(execute, reserved)                \
  X(from, reserved) X(full, reserved) X(grant, reserved) X(if, reserved) X(in, reserved)           \
  X(index, reserved) X(infinity, reserved) X(insert, reserved) X(into, reserved) X(is, reserved)   \
  X(keyspace, reserved) X(limit, reserved) X(materialized, reserved) X(modify, reserved)           \
  X(nan, reserved) X(norecursive, reserved) X(not, reserved) X(null, reserved) X(of, reserved)     \
  X(on, reserved) X(or, reserved) X(order, reserved) X(primary, reserved) X(rename, reserved)      \
  X(revoke, reserved) X(schema, reserved) X(select, reserved) X(set, reserved) X(table, reserved)  \
  X(to, reserved) X(token, reserved) X(truncate, reserved) X(unlogged, reserved)                   \
  X(update, reserved) X(use, reserved) X(using, reserved) X(view, reserved) X(where, reserved)     \
  X(with, reserved)                                                                                \
  X(access, basic) X(aggregate, basic) X(aggregates, basic) X(all, basic) X(as, basic)             \
  X(called, basic) X(cluster, basic) X(clustering, basic) X(columnfamilies, basic)                 \
  X(compact, basic) X(contains, basic) X(custom, basic) X(datacenters, basic) X(default, basic)    \
  X(exists, basic) X(filtering, basic) X(finalfunc, basic) X(frozen, basic) X(function, basic)     \
  X(functions, basic) X(group, basic) X(hashed, basic) X(initcond, basic) X(input, basic)          \
  X(internals, basic) X(keys, basic) X(keyspaces, basic) X(language, basic) X(like, basic)         \
  X(list, basic) X(login, basic) X(map, basic) X(mbean, basic) X(mbeans, basic)                    \
  X(nologin, basic) X(nosuperuser, basic) X(only, basic) X(options, basic) X(partition, basic)     \
  X(password, basic) X(per, basic) X(permission, basic) X(permissions, basic) X(replace, basic)    \
  X(returns, basic) X(role, basic) X(roles, basic) X(sfunc, basic) X(static, basic)                \
  X(storage, basic) X(stype, basic) X(superuser, basic) X(tables, basic) X(trigger, basic)         \
  X(tuple, basic) X(type, basic) X(types, basic) X(unset, basic) X(user, basic) X(users, basic)    \
  X(values, basic)                                                                                 \
  X(ascii, native) X(bigint, native) X(blob, native) X(boolean, native) X(counter, native)         \
  X(date, native) X(decimal, native) X(double, native) X(duration, native) X(float, native)        \
  X(inet, native) X(int, native) X(smallint, native) X(text, native) X(time, native)               \
  X(timestamp, native) X(timeuuid, native) X(tinyint, native) X(uuid, native) X(varchar, native)   \
  X(varint, native)                                                                                \
  X(cast, special) X(count, special) X(distinct, special) X(json, special) X(key, special)         \
  X(ttl, special) X(writetime, special)
// clang-format on

enum class Keyword : std::uint8_t {
  none,  // an identifier that is no keyword, or no identifier at all
#define HELENUS_CQL_KEYWORD(word, keyword_class) k_##word,
  HELENUS_CQL_KEYWORDS(HELENUS_CQL_KEYWORD)
#undef HELENUS_CQL_KEYWORD
};

// The keyword that `word` is, in whatever case; Keyword::none for anything else.
Keyword find_keyword(std::string_view word);

// In lower case. Requires: not Keyword::none.
std::string_view spelling_of(Keyword keyword);
KeywordClass class_of(Keyword keyword);

// Words that are no keywords, but may become native types one day: no user type may have such a
// name without quotes.
bool is_reserved_type_name(std::string_view name);

}  // namespace helenus::cql::parser
