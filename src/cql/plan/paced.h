// How what a client sent much of is gone through: its text when that is planned, its values when
// they are bound. Others run meanwhile.
//
//   CO_TRY_VOID(co_await in_turns_of(runtime, until, bytes, [&](base::Pace* pace) {
//     return collect(plan, {values, moment, pace}, ...);
//   }));
#pragma once

#include <cstddef>
#include <functional>

#include "base/pace.h"
#include "cql/errors/query_error.h"
#include "runtime/operation.h"
#include "runtime/runtime.h"
#include "runtime/task.h"

namespace helenus::cql {

// A request of so many bytes, its text and its values, is executed at once; a longer one in turns
// with others, and one longer still in the background. Values are gone through much faster than
// texts (statement_plan.h).
inline constexpr std::size_t kBoundAtOnceMax = std::size_t{8} << 10;
inline constexpr std::size_t kBoundInForegroundMax = std::size_t{256} << 10;

using PacedWork = std::move_only_function<QueryResult<void>(base::Pace* pace)>;

// What the work refers to outlives the task. Errors: of the work; overloaded when the deadline
// passes.
runtime::Task<QueryResult<void>> in_turns_of(runtime::Runtime& runtime, runtime::Until until,
                                             std::size_t bytes, PacedWork work);

}  // namespace helenus::cql
