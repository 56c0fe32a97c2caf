// NativeCore: one core's loop with everything that runs on it, and NativeCores: its way to the
// others.
//
// Made on the thread that opens the host; from then on it belongs to the thread that calls run(),
// and to the opener again once that thread has ended.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/log.h"
#include "base/result.h"
#include "runtime/cores.h"
#include "runtime/native/file_request.h"
#include "runtime/native/loop.h"
#include "runtime/native/native_file_system.h"
#include "runtime/native/native_random.h"
#include "runtime/native/native_transport.h"
#include "runtime/native/thread_pool.h"
#include "runtime/runtime.h"
#include "runtime/task_group.h"

namespace helenus::runtime::native {

class NativeCores final : public Cores {
 public:
  NativeCores(CoreId here, std::uint32_t count, TaskGroup& guests)
      : here_(here), count_(count), guests_(guests) {}

  // The inboxes of all cores, by number. Called once, before anything runs.
  void connect(std::vector<Inbox*> inboxes) { inboxes_ = std::move(inboxes); }

  std::uint32_t count() const override { return count_; }
  CoreId here() const override { return here_; }
  base::Result<void> send(CoreId to, CoreMessage message) override;
  void reply(CoreId to, CoreMessage message) override;
  TaskGroup& guests() override { return guests_; }

  // A message of the host itself.
  void send_control(CoreId to, CoreMessage message);
  // Messages that left this core, without the host's own.
  std::uint64_t counted_sent() const { return counted_sent_; }

 private:
  base::Result<void> deliver(CoreId to, CoreMessage message, Post post);

  const CoreId here_;
  const std::uint32_t count_;
  TaskGroup& guests_;
  std::vector<Inbox*> inboxes_;
  std::uint64_t counted_sent_ = 0;
};

// Nothing happens on purpose in the native world.
class NeverBuggify final : public Buggify {
 public:
  bool fires(std::string_view) override { return false; }
};

// What all cores of a host use.
struct SharedServices {
  ThreadPool& pool;
  SharedAddresses& addresses;
  base::LogSink& log_sink;
  std::string boot_id;
};

class NativeCore {
 public:
  enum class Files : unsigned char { io_uring, threads };

  // Errors: overloaded (descriptors, memory); for io_uring those of UringQueue::open.
  static base::Result<std::unique_ptr<NativeCore>> open(CoreId id, std::uint32_t count, Files files,
                                                        const SharedServices& shared);
  NativeCore(const NativeCore&) = delete;
  NativeCore& operator=(const NativeCore&) = delete;

  void run() { loop_->run(runtime_); }

  Runtime& runtime() { return runtime_; }
  Loop& loop() { return *loop_; }
  NativeCores& cores() { return cores_; }
  // For the host's own tasks on this core.
  TaskGroup& housekeeping() { return housekeeping_; }

 private:
  // What can fail to be made.
  struct Parts {
    std::unique_ptr<Loop> loop;
    std::unique_ptr<FileRequests> requests;
    std::unique_ptr<FileQueue> queue;
  };
  NativeCore(CoreId id, std::uint32_t count, Parts parts, const SharedServices& shared);

  const std::unique_ptr<Loop> loop_;
  const std::unique_ptr<FileRequests> requests_;
  const std::unique_ptr<FileQueue> queue_;
  NativeClock clock_;
  NativeRandom random_;
  NeverBuggify never_;
  Runtime runtime_;
  NativeCores cores_;
  NativeFileSystem files_;
  NativeTransport transport_;
  TaskGroup guests_;
  TaskGroup housekeeping_;
};

}  // namespace helenus::runtime::native
