#include "runtime/native/uring_queue.h"

#include <array>
#include <cerrno>
#include <span>

#include "base/assert.h"
#include "runtime/native/system_error.h"

namespace helenus::runtime::native {

namespace {

constexpr unsigned kPartBits = 2;
constexpr unsigned kSlotBits = 30;
static_assert(FileRequests::kPendingMax < (std::size_t{1} << kSlotBits));

base::Result<void> check_operations(io_uring& ring) {
  io_uring_probe* probe = ::io_uring_get_probe_ring(&ring);
  if (probe == nullptr) return base::Error(base::Errc::unsupported, "io_uring: cannot be probed");
  bool complete = true;
  for (const int operation :
       {IORING_OP_READ, IORING_OP_WRITE, IORING_OP_FSYNC, IORING_OP_ASYNC_CANCEL}) {
    complete = complete && ::io_uring_opcode_supported(probe, operation) != 0;
  }
  ::io_uring_free_probe(probe);
  if (!complete) return base::Error(base::Errc::unsupported, "io_uring: lacks an operation");
  return {};
}

}  // namespace

base::Result<std::unique_ptr<UringQueue>> UringQueue::open(Loop& loop, FileRequests& requests) {
  auto queue = std::unique_ptr<UringQueue>(new UringQueue(loop, requests));
  io_uring_params parameters{};
  parameters.flags = IORING_SETUP_CQSIZE;
  parameters.cq_entries = kAnswers;
  const int refused = ::io_uring_queue_init_params(kEntries, &queue->ring_, &parameters);
  if (refused < 0) return system_error(-refused, "set up io_uring");
  queue->open_ = true;
  TRY_VOID(check_operations(queue->ring_));
  TRY_VOID(loop.watch(queue->ring_.ring_fd, EPOLLIN, *queue));
  loop.set_flusher(queue.get());
  return queue;
}

UringQueue::~UringQueue() {
  ASSERT(in_flight_ == 0 && waiting_.empty(), "file requests still with the kernel");
  if (!open_) return;
  loop_.set_flusher(nullptr);
  ::io_uring_queue_exit(&ring_);
}

void UringQueue::start(FileRequest& request) {
  request.step = request.transfers() ? Step::transfer : Step::sync;
  if (!waiting_.empty() || !try_issue(request)) waiting_.push_back(request);
}

bool UringQueue::try_issue(FileRequest& request) {
  const bool sync_behind =
      request.step == Step::transfer && request.kind == FileRequest::Kind::write_and_sync;
  const unsigned entries = sync_behind ? 2 : 1;
  if (in_flight_ >= kInFlightMax || ::io_uring_sq_space_left(&ring_) < entries) return false;
  ++in_flight_;
  request.parts = entries;
  request.batch = batch_;
  if (request.step == Step::transfer) add_transfer(request, sync_behind);
  if (request.step == Step::sync || sync_behind) add_sync(request);
  return true;
}

void UringQueue::add_transfer(const FileRequest& request, bool link) {
  io_uring_sqe& entry = next_entry();
  std::byte* const data = request.data + request.done;
  const auto size = static_cast<unsigned>(request.left());
  if (request.kind == FileRequest::Kind::read) {
    ::io_uring_prep_read(&entry, request.descriptor, data, size, request.position());
  } else {
    ::io_uring_prep_write(&entry, request.descriptor, data, size, request.position());
  }
  ::io_uring_sqe_set_data64(&entry, tag(request, Part::transfer));
  if (link) ::io_uring_sqe_set_flags(&entry, IOSQE_IO_LINK);
}

void UringQueue::add_sync(const FileRequest& request) {
  io_uring_sqe& entry = next_entry();
  ::io_uring_prep_fsync(&entry, request.descriptor, IORING_FSYNC_DATASYNC);
  ::io_uring_sqe_set_data64(&entry, tag(request, Part::sync));
}

void UringQueue::cut(FileRequest& request) {
  request.cut.store(true, std::memory_order_relaxed);
  if (request.parts == 0) {
    static_cast<ListHook<FileRequest>&>(request).unlink();
    request.give_up(ECANCELED);
    request.finish();
    return;
  }
  // A wish: without room for it the request ends in its own time.
  for (const Part part : {Part::transfer, Part::sync}) {
    if (::io_uring_sq_space_left(&ring_) == 0) return;
    io_uring_sqe& entry = next_entry();
    ::io_uring_prep_cancel64(&entry, tag(request, part), 0);
    ::io_uring_sqe_set_data64(&entry, tag(request, Part::cancellation));
  }
}

bool UringQueue::flush() {
  if (in_flight_ == 0) return false;
  submit();
  collect();
  // What waited for room has it now.
  if (::io_uring_sq_ready(&ring_) > 0) submit();
  return ::io_uring_sq_ready(&ring_) > 0;
}

void UringQueue::submit() {
  if (::io_uring_sq_ready(&ring_) == 0) return;
  // Short of memory, or of room for answers, the kernel takes the entries in a later turn.
  const int submitted = ::io_uring_submit(&ring_);
  ASSERT(submitted >= 0 || submitted == -EAGAIN || submitted == -EBUSY || submitted == -EINTR,
         "io_uring: {}", system_text(-submitted));
  if (::io_uring_sq_ready(&ring_) > 0) last_batch_cut_short_ = batch_;
  ++batch_;
}

void UringQueue::collect() {
  for (;;) {
    std::array<io_uring_cqe*, 64> answers;
    const unsigned count = ::io_uring_peek_batch_cqe(&ring_, answers.data(), answers.size());
    if (count == 0) break;
    for (const io_uring_cqe* answer : std::span(answers).first(count)) on_answer(*answer);
    ::io_uring_cq_advance(&ring_, count);
  }
  while (!waiting_.empty() && try_issue(waiting_.front())) waiting_.pop_front();
}

void UringQueue::on_answer(const io_uring_cqe& answer) {
  const auto part = static_cast<Part>(answer.user_data & ((1U << kPartBits) - 1));
  if (part == Part::cancellation) return;
  const auto slot = (answer.user_data >> kPartBits) & ((std::uint64_t{1} << kSlotBits) - 1);
  FileRequest& request = requests_.at(static_cast<std::uint32_t>(slot));
  ASSERT(tag(request, part) == answer.user_data && request.parts > 0,
         "an answer to a request that has ended");
  (part == Part::transfer ? request.transfer_result : request.sync_result) = answer.res;
  if (--request.parts == 0) on_answered(request);
}

void UringQueue::on_answered(FileRequest& request) {
  --in_flight_;
  Step next = Step::sync;
  if (request.step == Step::transfer) {
    next = request.after_transfer(request.transfer_result);
    const bool link_held = request.batch > last_batch_cut_short_;
    if (request.sync_result == 0 && !link_held) request.sync_result = -ECANCELED;
  }
  if (next == Step::sync) next = request.after_sync(request.sync_result);
  if (next == Step::finished) {
    request.finish();
    return;
  }
  request.step = next;
  if (!try_issue(request)) waiting_.push_back(request);
}

io_uring_sqe& UringQueue::next_entry() {
  io_uring_sqe* entry = ::io_uring_get_sqe(&ring_);
  ASSERT(entry != nullptr);
  return *entry;
}

std::uint64_t UringQueue::tag(const FileRequest& request, Part part) {
  return std::uint64_t{request.generation} << (kSlotBits + kPartBits) |
         std::uint64_t{request.slot} << kPartBits | static_cast<std::uint64_t>(part);
}

}  // namespace helenus::runtime::native
