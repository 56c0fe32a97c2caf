#include "cql/plan/paced.h"

#include <utility>

#include "runtime/fiber.h"
#include "runtime/in_background.h"

namespace helenus::cql {

using runtime::Runtime;
using runtime::Task;
using runtime::Until;

namespace {

Task<QueryResult<void>> on_fiber(Runtime& runtime, Until until, PacedWork work) {
  QueryResult<void> done;
  CO_TRY_VOID(co_await runtime::in_turns(runtime, std::move(until),
                                         [&](base::Pace& pace) { done = work(&pace); }));
  co_return done;
}

}  // namespace

Task<QueryResult<void>> in_turns_of(Runtime& runtime, Until until, std::size_t bytes,
                                    PacedWork work) {
  if (bytes <= kBoundAtOnceMax) co_return work(nullptr);
  auto working = on_fiber(runtime, std::move(until), std::move(work));
  if (bytes <= kBoundInForegroundMax) co_return co_await std::move(working);
  co_return co_await runtime::in_background(runtime, std::move(working));
}

}  // namespace helenus::cql
