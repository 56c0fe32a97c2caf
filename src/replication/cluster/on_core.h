// on_core: runs a part of a task on the core that has what it needs, which may be this one.
#pragma once

#include <utility>

#include "base/result.h"
#include "runtime/cores.h"
#include "runtime/operation.h"
#include "runtime/run_on.h"
#include "runtime/runtime.h"
#include "runtime/task.h"

namespace helenus::replication {

// `work` outlives the task; see runtime::run_on.
template <class T, class Work>
runtime::Task<base::Result<T>> on_core(runtime::Runtime& here, runtime::CoreId core,
                                       const Work& work, runtime::Until until) {
  if (core == here.cores.here()) co_return co_await work(here, std::move(until));
  co_return co_await runtime::run_on<T>(
      here, core,
      [&work](runtime::Runtime& there, runtime::Until remaining) {
        return work(there, std::move(remaining));
      },
      std::move(until));
}

}  // namespace helenus::replication
