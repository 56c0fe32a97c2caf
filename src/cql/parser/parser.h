// CQL text to a syntax tree: Cassandra 4.1's language (CQL 3.4.6) and USING OPERATION of ours.
//
// Written by hand as recursive descent over the tokens of lexer.h. No backtracking but for the type
// in front of a term, so time is linear in the text; recursion is bounded by kNestingDepthMax.
#pragma once

#include <string_view>

#include "base/pace.h"
#include "base/result.h"
#include "cql/parser/ast.h"

namespace helenus::cql::parser {

// One statement; semicolons may follow it, nothing else. Bytes of a string literal are taken as
// they are, valid UTF-8 or not. Errors are Errc::invalid_argument, with a context in Cassandra's
// words that is meant for the client as it stands:
//   line 1:7 no viable alternative at input 'FROM' (SELECT [FROM]...)
//   line 1:25 mismatched input ';' expecting K_FROM
// Limits: limits.h. A long text is parsed at that pace, if there is one, whose errors are passed
// on.
base::Result<Statement> parse(std::string_view text, base::Pace* pace = nullptr);

}  // namespace helenus::cql::parser
