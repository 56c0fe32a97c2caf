// A delete of a range cut around what it does not win: a delete with an explicit timestamp leaves
// newer rows and newer deletes alone (Replica::judge).
#pragma once

#include <vector>

#include "causality/dot_store.h"

namespace helenus::replication {

// What is left of the scope without the holes: ascending, disjoint, none empty. The holes may
// overlap one another and reach beyond the scope, in any order.
// Law: a row is in the result exactly if it is in the scope and in no hole.
std::vector<causality::Scope> cut(const causality::Scope& scope,
                                  std::vector<causality::Scope> holes);

}  // namespace helenus::replication
