#include "storage/engine/manifest_changes.h"

#include <algorithm>
#include <string>
#include <utility>

#include "runtime/files.h"
#include "runtime/sleep.h"

namespace helenus::storage {

using base::Errc;
using base::Error;
using base::Result;
using runtime::Task;

ManifestChanges::ManifestChanges(EngineState& state, DiskReserve& reserve)
    : state_(state), reserve_(reserve), turn_(state.runtime, 1, SIZE_MAX) {}

void ManifestChanges::wait_for_space_with(const Error& error) {
  state_.flush_error = error;
  state_.wake_everybody();
}

void ManifestChanges::space_was_found() {
  state_.flush_error.reset();
  state_.wake_everybody();
}

Task<Result<void>> ManifestChanges::install_until_done(Shard& shard, Shard::Edit edit) {
  bool waited = false;
  while (true) {
    const auto installed = co_await shard.install([&](ManifestState& state) {
      edit(state);
      state.log_reached = {.core = state_.log->core(), .position = state_.log->synced_position()};
    });
    if (installed) {
      if (waited) space_was_found();
      co_return {};
    }
    if (!installed.failed_with(Errc::no_space)) {
      state_.fail(Error(installed.error()).within("changing the manifest"));
      co_return *state_.own_fatal_error;
    }
    const bool more_room = co_await reserve_.make_room();
    if (more_room) continue;
    state_.logger.warn("no space for the manifest", base::kv("error", installed.error()));
    waited = true;
    wait_for_space_with(installed.error());
    CO_TRY_VOID(co_await runtime::sleep_for(state_.runtime, state_.options.retry_delay,
                                            state_.stop.token()));
  }
}

Generations ManifestChanges::generations() const {
  Generations generations;
  for (const auto& shard : state_.shards) {
    generations[shard->number().value()] = shard->manifest().generation;
  }
  return generations;
}

Task<Result<void>> ManifestChanges::note_generations() {
  const Generations wanted = generations();
  CO_TRY(const auto turn, co_await turn_.acquire(1, {.stop = state_.stop.token()}));
  const auto is_noted = [&](const auto& entry) {
    const auto at = noted_.find(entry.first);
    return at != noted_.end() && at->second >= entry.second;
  };
  const std::string path = generations_path(state_.options.log_directory_or_default(), state_.core);
  bool waited = false;
  while (!std::ranges::all_of(wanted, is_noted)) {
    Generations now = generations();
    const auto written =
        co_await runtime::replace_file(state_.runtime, path, encode_generations(now));
    if (written) {
      noted_ = std::move(now);
      if (waited) space_was_found();
      continue;
    }
    if (!written.failed_with(Errc::no_space)) {
      state_.fail(Error(written.error()).within("noting the generations of manifests"));
      co_return *state_.own_fatal_error;
    }
    const bool more_room = co_await reserve_.make_room();
    if (more_room) continue;
    waited = true;
    wait_for_space_with(written.error());
    CO_TRY_VOID(co_await runtime::sleep_for(state_.runtime, state_.options.retry_delay,
                                            state_.stop.token()));
  }
  co_return {};
}

}  // namespace helenus::storage
