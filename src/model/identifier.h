// Identifiers of CQL: names of keyspaces, tables, columns, types and fields, and how they are
// printed so that a parser reads them back.
#pragma once

#include <string>
#include <string_view>

namespace helenus::model {

// Whether `word`, in lower case, may not stand as a name without quotes (SELECT, TABLE, ...).
// Words that are keywords only in their place (TYPE, TTL, ...) are not reserved.
bool is_reserved_word(std::string_view word);

// The name as a CQL text must spell it: bare when it is [a-z][a-z0-9_]* and not reserved, else in
// double quotes with inner ones doubled.
std::string to_cql_identifier(std::string_view name);

// 'text' with inner single quotes doubled.
std::string to_cql_string(std::string_view text);

}  // namespace helenus::model
