// For tests: files as the engine's first version wrote them, in which all deletes of more than a
// cell, those of single rows too, lie in one entry under the partition's own key.
#pragma once

#include <cstdint>

#include "base/result.h"
#include "runtime/runtime.h"
#include "runtime/task.h"
#include "storage/engine/engine_options.h"

namespace helenus::storage::testing {

// Writes every file of a stopped engine's tables anew in that form, under its own name. Returns how
// many deletes of rows lie among the ranges now. A crash in the middle leaves a folder that cannot
// be opened.
runtime::Task<base::Result<std::uint64_t>> write_in_first_format(runtime::Runtime& runtime,
                                                                 EngineOptions options);

}  // namespace helenus::storage::testing
