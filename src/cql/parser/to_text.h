// A syntax tree back to CQL text, in one canonical form: keywords in capitals, one space between
// words, names quoted where they must be.
#pragma once

#include <string>
#include <string_view>

#include "cql/parser/ast.h"

namespace helenus::cql::parser {

// For every statement that the parser gives, parse(to_text(s)) == s, unless the text is longer
// than a statement may be. There is no semicolon at its end. A tree that breaks the rules of its
// comments (an empty tuple, a user type literal among selectors) may print as something else or as
// no CQL at all. Passwords are printed.
std::string to_text(const Statement& statement);

// Markers print as `:name`, from the names in `markers` of the statement; those that it does not
// name as `?`.
std::string to_text(const Expression& expression,
                    const std::vector<std::optional<std::string>>& markers);
std::string to_text(const TypeName& type);

// The name as it must be spelled in CQL: quoted if it has capitals or other characters, is empty or
// is a reserved word.
std::string to_identifier(std::string_view name);

}  // namespace helenus::cql::parser
