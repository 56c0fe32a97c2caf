// UringQueue: carries out file requests of one core through io_uring.
//
// Requests made in one turn of the loop go to the kernel with one system call at its end. A write
// with a sync behind it is two linked entries: the kernel starts the sync when the write is done,
// without a way through user space. A short write breaks that link (the kernel then cancels the
// sync); what is left is linked anew.
//
// A link holds only between entries that the kernel takes in one call. Short of memory it may stop
// in the middle of a pair, and then runs the sync on its own, perhaps before the write: after such
// a call the syncs of its pairs prove nothing, and are asked for again.
//
// At most kInFlightMax requests are with the kernel; the others wait in order. A request that is
// cut while waiting ends at once; one with the kernel is asked to be cancelled, and ends when the
// kernel has let go of its memory.
//
// Entries carry the slot and generation of their request, so that a late cancellation never hits
// the next user of the same record.
#pragma once

#include <cstdint>
#include <memory>

#include <liburing.h>

#include "base/result.h"
#include "runtime/native/file_request.h"
#include "runtime/native/loop.h"

namespace helenus::runtime::native {

class UringQueue final : public FileQueue, private Flusher, private Pollable {
 public:
  // Entries of the submission ring: what one system call can carry.
  static constexpr unsigned kEntries = 256;
  // Entries of the completion ring: two for each request, and their cancellations.
  static constexpr unsigned kAnswers = 1024;
  static constexpr unsigned kInFlightMax = 256;

  // Errors: unsupported, permission_denied, overloaded: the kernel refuses io_uring, or lacks an
  // operation that is needed.
  static base::Result<std::unique_ptr<UringQueue>> open(Loop& loop, FileRequests& requests);
  ~UringQueue() override;
  UringQueue(const UringQueue&) = delete;
  UringQueue& operator=(const UringQueue&) = delete;

  void start(FileRequest& request) override;
  void cut(FileRequest& request) override;

 private:
  enum class Part : std::uint64_t { transfer, sync, cancellation };

  UringQueue(Loop& loop, FileRequests& requests) : loop_(loop), requests_(requests) {}

  bool flush() override;
  void on_ready(std::uint32_t) override { collect(); }

  // Says no when the limit is reached or the ring is full.
  bool try_issue(FileRequest& request);
  void add_transfer(const FileRequest& request, bool link);
  void add_sync(const FileRequest& request);
  void submit();
  void collect();
  void on_answer(const io_uring_cqe& answer);
  void on_answered(FileRequest& request);
  io_uring_sqe& next_entry();
  static std::uint64_t tag(const FileRequest& request, Part part);

  Loop& loop_;
  FileRequests& requests_;
  io_uring ring_{};
  bool open_ = false;
  unsigned in_flight_ = 0;
  // Entries that go to the kernel in one call have the same batch number.
  std::uint64_t batch_ = 1;
  std::uint64_t last_batch_cut_short_ = 0;
  IntrusiveList<FileRequest> waiting_;
};

}  // namespace helenus::runtime::native
