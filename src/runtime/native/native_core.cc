#include "runtime/native/native_core.h"

#include "base/assert.h"
#include "runtime/native/pool_queue.h"
#include "runtime/native/uring_queue.h"

namespace helenus::runtime::native {

base::Result<void> NativeCores::send(CoreId to, CoreMessage message) {
  return deliver(to, std::move(message), Post::limited);
}

void NativeCores::reply(CoreId to, CoreMessage message) {
  // Refused only by a core that has stopped, where nobody waits for it.
  const auto delivered = deliver(to, std::move(message), Post::answer);
  ASSERT(delivered || delivered.failed_with(base::Errc::closed));
}

void NativeCores::send_control(CoreId to, CoreMessage message) {
  const auto delivered = inboxes_[to.value()]->send(here_, std::move(message), Post::control);
  ASSERT(delivered.has_value());
}

base::Result<void> NativeCores::deliver(CoreId to, CoreMessage message, Post post) {
  ASSERT(to.value() < count_, "core {} of {}", to, count_);
  TRY_VOID(inboxes_[to.value()]->send(here_, std::move(message), post));
  ++counted_sent_;
  return {};
}

base::Result<std::unique_ptr<NativeCore>> NativeCore::open(CoreId id, std::uint32_t count,
                                                           Files files,
                                                           const SharedServices& shared) {
  Parts parts;
  TRY(parts.loop, Loop::open(count));
  parts.requests = std::make_unique<FileRequests>(parts.loop->inbox());
  if (files == Files::io_uring) {
    TRY(parts.queue, UringQueue::open(*parts.loop, *parts.requests));
  } else {
    parts.queue = std::make_unique<PoolQueue>(shared.pool);
  }
  return std::unique_ptr<NativeCore>(new NativeCore(id, count, std::move(parts), shared));
}

NativeCore::NativeCore(CoreId id, std::uint32_t count, Parts parts, const SharedServices& shared)
    : loop_(std::move(parts.loop)),
      requests_(std::move(parts.requests)),
      queue_(std::move(parts.queue)),
      runtime_{.executor = *loop_,
               .clock = clock_,
               .timers = *loop_,
               .files = files_,
               .transport = transport_,
               .random = random_,
               .cores = cores_,
               .log_sink = shared.log_sink,
               .buggify_points = never_,
               .boot_id = shared.boot_id},
      cores_(id, count, guests_),
      files_({.runtime = runtime_,
              .pool = shared.pool,
              .inbox = loop_->inbox(),
              .requests = *requests_,
              .queue = *queue_}),
      transport_(runtime_, *loop_, shared.addresses),
      guests_(runtime_, Cores::kGuestsMax),
      housekeeping_(runtime_) {}

}  // namespace helenus::runtime::native
