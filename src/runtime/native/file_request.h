// FileRequest: one read, write or sync of a file while it is under way, and FileQueue: who carries
// it out. There are two queues, one over io_uring and one over the thread pool; both work through
// the same record, so that what a short transfer, a cut or an error means is written once.
//
// Core affinity: one core, except that the thread pool runs `perform` elsewhere.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "runtime/file_system.h"
#include "runtime/intrusive_list.h"
#include "runtime/native/pool_job.h"

namespace helenus::runtime::native {

class FileRequests;

// What must still be done for a request.
enum class Step : unsigned char { transfer, sync, finished };

class FileRequest final : public PoolJob, public ListHook<FileRequest> {
 public:
  enum class Kind : unsigned char { read, write, sync, write_and_sync };

  FileRequest(Inbox& home, FileRequests& owner, std::uint32_t slot_)
      : PoolJob(home), slot(slot_), owner_(owner) {}

  // `path` is what errors name; it outlives the operation.
  void begin(File::ReadAt& read, std::string_view path, int descriptor, bool direct);
  void begin(File::Write& write, std::string_view path, int descriptor, bool direct);

  // Takes in what the system said to the pending transfer or sync (a count, or minus an error
  // number) and tells what comes next. A transfer that was cut goes no further.
  Step after_transfer(std::int64_t result);
  Step after_sync(std::int64_t result);

  // Nothing more will be done, for that reason.
  void give_up(int error_number) { error_number_ = error_number; }
  // Completes the operation with what the steps led to and returns this record to its owner.
  void finish() override;

  bool transfers() const { return kind != Kind::sync; }
  std::uint64_t position() const { return offset + done; }
  std::size_t left() const { return size - done; }

  // Does all of it with calls that block.
  void work() override;

  const std::uint32_t slot;
  std::uint32_t generation = 0;
  Kind kind = Kind::read;
  bool direct = false;
  int descriptor = -1;
  std::byte* data = nullptr;  // of a write: only read from
  std::size_t size = 0;
  std::uint64_t offset = 0;
  std::size_t done = 0;

  // For the queue over io_uring: what was asked of the kernel last, how many answers are still to
  // come, in which batch it went, and what the answers said that came.
  Step step = Step::transfer;
  unsigned parts = 0;
  std::uint64_t batch = 0;
  std::int64_t transfer_result = 0;
  std::int64_t sync_result = 0;

  // Written by the core, seen by the pool's thread between two steps.
  std::atomic<bool> cut{false};

 private:
  void begin(std::string_view path, int descriptor_, bool direct_);
  Step fail(int error_number);

  FileRequests& owner_;
  File::ReadAt* read_ = nullptr;
  File::Write* write_ = nullptr;
  std::string_view path_;
  int error_number_ = 0;
};

// Carries out requests of one core.
class FileQueue {
 public:
  virtual ~FileQueue() = default;
  virtual void start(FileRequest& request) = 0;
  // Ends it soon; it still finishes in the usual way.
  virtual void cut(FileRequest& request) = 0;
};

// The records of one core, used again and again.
class FileRequests {
 public:
  // Operations that may be pending on the files of a core.
  static constexpr std::size_t kPendingMax = 65536;

  explicit FileRequests(Inbox& home) : home_(home) {}
  ~FileRequests() { ASSERT(free_.size() == records_.size(), "file operations pending"); }

  // Null when kPendingMax are pending.
  FileRequest* take();
  void give_back(FileRequest& request) { free_.push_back(&request); }
  FileRequest& at(std::uint32_t slot) { return records_[slot]; }

 private:
  Inbox& home_;
  std::deque<FileRequest> records_;
  std::vector<FileRequest*> free_;
};

}  // namespace helenus::runtime::native
