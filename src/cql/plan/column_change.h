// ColumnChange: what one assignment of a modification does to storage, wherever its row lies.
//
// A cell of its own is under the row's key. Elements of a collection and fields of a user-defined
// type are cells under keys behind it (model/element_key.h):
//
//   c = v            all elements are deleted as one range, and those of v written
//   c = c + v        those of v are written; a list's under new names behind all there are
//   c = v + c        a list's under new names before all there are
//   c = c - v        cells are deleted: of a set those of v, of a map those of its keys, of a list
//                    all that have a value of v, which must be read
//   c[e] = v, c.f    one cell; of a list the one that stands there, which must be read
//
// Names of a list's elements: time in ticks of 100 ns since 1970, its sign bit flipped (8 bytes);
// what tells apart those of one time (8 bytes): 44 bits of dice, a number of 20 bits. They are
// given where the statement is executed, once: a write that is sent to another replica because the
// first one did not take it has the same, and so has a replay of the log. What is put before a list
// has a time as far before 2010 as it is after it, as in Cassandra.
#pragma once

#include <optional>

#include <absl/container/inlined_vector.h>

#include "base/bytes.h"
#include "causality/delta.h"
#include "cql/errors/query_error.h"
#include "cql/plan/modification_plan.h"

namespace helenus::cql {

// How long what a modification does lasts.
struct Lifetime {
  std::optional<causality::WallTime> of_values;
  std::optional<causality::WallTime> of_deletes;
};

struct ColumnChange {
  enum class Elements : std::uint8_t { kept, replaced, deleted };
  // `row` is what stands behind the row's key. Nearly every change is of one cell.
  absl::InlinedVector<causality::CellChange, 1> cells;
  Elements elements = Elements::kept;  // all that the column has had
};

// Whether the assignment must know what is in its list.
bool reads_list(const model::Table& table, const ModificationPlan::Assignment& assignment);

// Nothing for UNSET. Requires: `list` is there if reads_list(). Errors: invalid.
QueryResult<ColumnChange> change_of(const ModificationPlan& plan,
                                    const ModificationPlan::Assignment& assignment,
                                    const Lifetime& lifetime, const Evaluation& evaluation,
                                    const ListElements* list);

}  // namespace helenus::cql
