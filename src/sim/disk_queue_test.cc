#include "sim/disk_queue.h"

#include <memory>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/file_system.h"
#include "runtime/files.h"
#include "runtime/sleep.h"
#include "runtime/when_all.h"
#include "sim/function_process.h"
#include "sim/world.h"

namespace helenus::sim {
namespace {

using base::Errc;
using runtime::OpenOptions;
using runtime::Runtime;
using runtime::StopToken;
using runtime::Task;
using runtime::Until;

// One machine; each story is a run of its process.
class DiskQueueTest : public testing::Test {
 protected:
  void build(std::uint64_t seed) {
    world_ = std::make_unique<World>(seed);
    machine_ = &world_->add_machine({}, {});
  }
  void start(FunctionProcess::Function story) {
    machine_->set_process(FunctionProcess::factory(std::move(story)));
    machine_->start();
  }
  // Tells the story to its end.
  void tell(FunctionProcess::Function story) {
    start(std::move(story));
    EXPECT_TRUE(world_->run_until([&] { return !machine_->is_up(); }, 1h));
  }
  DiskFaults& faults() { return machine_->disk_queue().faults; }
  std::uint64_t size_of(std::string_view path) {
    const auto info = machine_->disk().info(path);
    return info ? info->size : 0;
  }

  std::unique_ptr<World> world_;
  Machine* machine_ = nullptr;
};

Task<void> write_64k(Runtime& rt, bool& begun) {
  const auto file = co_await rt.files.open("/file", OpenOptions::create_new());
  EXPECT_TRUE(file.has_value());
  const std::vector<std::byte> bytes(65536, std::byte{1});
  begun = true;
  const auto written = co_await (*file)->write_at(0, bytes, Until::forever());
  EXPECT_TRUE(written.has_value());
}

TEST_F(DiskQueueTest, AWriteThatAKillCatchesIsThereWhollyInPartOrNotAtAll) {
  bool none = false;
  bool part = false;
  bool all = false;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    build(seed);
    bool begun = false;
    start([&](Runtime& rt, StopToken) { return write_64k(rt, begun); });
    ASSERT_TRUE(world_->run_until([&] { return begun; }, 1s));
    machine_->kill();
    none |= size_of("/file") == 0;
    all |= size_of("/file") == 65536;
    part |= size_of("/file") > 0 && size_of("/file") < 65536;
  }
  EXPECT_TRUE(none && part && all);
}

Task<void> write_and_sync(Runtime& rt, bool& syncing) {
  const auto file = co_await rt.files.open("/file", OpenOptions::create_new());
  EXPECT_TRUE(file.has_value());
  const auto named = co_await rt.files.sync_directory("/");
  EXPECT_TRUE(named.has_value());
  const auto written = co_await (*file)->write_at(0, base::as_bytes("x"), Until::forever());
  EXPECT_TRUE(written.has_value());
  syncing = true;
  const auto synced = co_await (*file)->sync(Until::forever());
  EXPECT_TRUE(synced.has_value());
}

TEST_F(DiskQueueTest, ASyncThatAPowerLossCatchesMayHaveHappened) {
  std::set<std::uint64_t> sizes;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    build(seed);
    bool syncing = false;
    start([&](Runtime& rt, StopToken) { return write_and_sync(rt, syncing); });
    ASSERT_TRUE(world_->run_until([&] { return syncing; }, 1s));
    machine_->power_loss();
    sizes.insert(size_of("/file"));
  }
  EXPECT_EQ(sizes, (std::set<std::uint64_t>{0, 1}));
}

TEST_F(DiskQueueTest, AReadErrorIsAnErrorAndNeverAnEnd) {
  build(1);
  tell([&](Runtime& rt, StopToken) -> Task<void> {
    const auto put = co_await runtime::replace_file(rt, "/file", base::Bytes::of_static("content"));
    EXPECT_TRUE(put.has_value());
    const auto file = co_await rt.files.open("/file", OpenOptions::read_only());
    EXPECT_TRUE(file.has_value());
    faults().read_error = 1;
    std::array<std::byte, 16> memory;
    EXPECT_TRUE(
        (co_await (*file)->read_at(0, memory, Until::forever())).failed_with(Errc::io_error));
    EXPECT_TRUE((co_await (*file)->size()).failed_with(Errc::io_error));
    EXPECT_TRUE((co_await rt.files.list("/")).failed_with(Errc::io_error));
    EXPECT_TRUE((co_await rt.files.info("/file")).failed_with(Errc::io_error));
    EXPECT_TRUE(
        (co_await rt.files.open("/absent", OpenOptions::read_only())).failed_with(Errc::io_error));
    faults().read_error = 0;
    const auto content = co_await runtime::read_file(rt, "/file", 100);
    EXPECT_TRUE(content.has_value());
    EXPECT_EQ(content->text(), "content");
  });
  EXPECT_EQ(machine_->disk_queue().counts().read_errors, 5);
}

TEST_F(DiskQueueTest, AWriteErrorLeavesPartOfItAndANameInDoubt) {
  std::set<std::uint64_t> sizes;
  std::set<bool> named;
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    build(seed);
    tell([&](Runtime& rt, StopToken) -> Task<void> {
      const auto file = co_await rt.files.open("/file", OpenOptions::create_new());
      EXPECT_TRUE(file.has_value());
      faults().write_error = 1;
      const std::vector<std::byte> bytes(5000);
      EXPECT_TRUE(
          (co_await (*file)->write_at(0, bytes, Until::forever())).failed_with(Errc::io_error));
      EXPECT_TRUE((co_await rt.files.rename("/file", "/renamed")).failed_with(Errc::io_error));
    });
    named.insert(machine_->disk().find("/renamed").has_value());
    sizes.insert(size_of("/file") + size_of("/renamed"));
  }
  EXPECT_TRUE(sizes.contains(0) && sizes.contains(5000));
  EXPECT_GT(sizes.size(), 5);
  EXPECT_EQ(named.size(), 2) << "a rename that failed may have happened";
}

TEST_F(DiskQueueTest, AFullDiskSaysSo) {
  build(1);
  machine_->disk().set_capacity(FileImage::kPageSize);
  tell([&](Runtime& rt, StopToken) -> Task<void> {
    const auto file = co_await rt.files.open("/file", OpenOptions::create_new());
    EXPECT_TRUE(file.has_value());
    const std::vector<std::byte> bytes(3 * FileImage::kPageSize);
    const auto written = co_await (*file)->append_and_sync(bytes, Until::forever());
    EXPECT_TRUE(written.failed_with(Errc::no_space));
    EXPECT_TRUE(written.error().context().contains("/file"));
    EXPECT_TRUE((co_await (*file)->preallocate(100'000)).failed_with(Errc::no_space));
  });
}

Task<base::Result<void>> write_then_note(runtime::File& file, std::uint64_t offset, int number,
                                         std::vector<int>& notes) {
  auto written = co_await file.write_at(offset, base::as_bytes("x"), Until::forever());
  notes.push_back(number);
  co_return written;
}

TEST_F(DiskQueueTest, OperationsUnderWayTogetherEndInAnyOrder) {
  std::set<std::vector<int>> orders;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    build(seed);
    std::vector<int> notes;
    tell([&](Runtime& rt, StopToken) -> Task<void> {
      const auto file = co_await rt.files.open("/file", OpenOptions::create_new());
      EXPECT_TRUE(file.has_value());
      std::vector<Task<base::Result<void>>> writes;
      for (int i = 0; i < 3; ++i) {
        writes.push_back(write_then_note(**file, static_cast<std::uint64_t>(i), i, notes));
      }
      for (const auto& written : co_await runtime::when_all(std::move(writes))) {
        EXPECT_TRUE(written.has_value());
      }
    });
    orders.insert(notes);
  }
  EXPECT_EQ(orders.size(), 6);
}

TEST_F(DiskQueueTest, ASlowDiskIsSlow) {
  const auto time_of_a_sync = [&](std::uint32_t slowness) {
    build(1);
    faults().slowness = slowness;
    tell([](Runtime& rt, StopToken) -> Task<void> {
      const auto put = co_await runtime::replace_file(rt, "/file", base::Bytes::of_static("x"));
      EXPECT_TRUE(put.has_value());
    });
    return world_->now().since_origin();
  };
  EXPECT_GT(time_of_a_sync(100), 50 * time_of_a_sync(1));
}

TEST_F(DiskQueueTest, ASlowSyncLeavesWritesAsFastAsEver) {
  build(1);
  tell([&](Runtime& rt, StopToken) -> Task<void> {
    const auto file = co_await rt.files.open("/file", OpenOptions::create_new());
    EXPECT_TRUE(file.has_value());
    faults().sync_slowness = 1000;
    const auto begun = rt.clock.now();
    EXPECT_TRUE((co_await (*file)->append(base::as_bytes("x"), Until::forever())).has_value());
    const auto written = rt.clock.now();
    EXPECT_TRUE((co_await (*file)->sync(Until::forever())).has_value());
    const auto synced = rt.clock.now();
    EXPECT_TRUE((co_await rt.files.sync_directory("/")).has_value());
    EXPECT_LT(written - begun, 10ms);
    EXPECT_GE(synced - written, 500ms);
    EXPECT_GE(rt.clock.now() - synced, 500ms);
  });
}

TEST_F(DiskQueueTest, ALockDiesWithItsProcess) {
  for (const bool power : {false, true}) {
    build(1);
    const auto lock_and_wait = [](Runtime& rt, StopToken stop) -> Task<void> {
      const auto lock = co_await rt.files.lock("/LOCK");
      EXPECT_TRUE(lock.has_value());
      const auto second = co_await rt.files.lock("/LOCK");
      EXPECT_TRUE(second.failed_with(Errc::locked));
      (void)co_await runtime::sleep_for(rt, 1h, stop);
    };
    start(lock_and_wait);
    world_->run_for(1s);
    if (power) {
      machine_->power_loss();
    } else {
      machine_->kill();
    }
    start(lock_and_wait);
    world_->run_for(1s);
  }
}

TEST_F(DiskQueueTest, FilesOpenAtACrashAreLetGo) {
  build(1);
  bool begun = false;
  start([&](Runtime& rt, StopToken) { return write_64k(rt, begun); });
  ASSERT_TRUE(world_->run_until([&] { return begun; }, 1s));
  machine_->kill();
  ASSERT_TRUE(machine_->disk().remove("/file").has_value());
  EXPECT_EQ(machine_->disk().used_bytes(), 0) << "nobody holds it any more";
}

}  // namespace
}  // namespace helenus::sim
