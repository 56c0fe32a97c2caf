// DiskQueue: the operations under way on one machine's disk: how long they take, which of them
// fail, and what becomes of those that a crash or a cancelled wait catches half way.
//
// An operation touches the disk when it ends. One that does not end by itself may have happened,
// in part, or not: that is drawn. Operations end in any order, so that nothing may rely on two of
// them keeping theirs.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/file_system.h"
#include "sim/machine_id.h"
#include "sim/sim_disk.h"
#include "sim/world_time.h"

namespace helenus::sim {

class DiskQueue;
class SimFile;
class World;

// What the disk does wrong at the moment; all off at first.
struct DiskFaults {
  double read_error = 0;   // chance that a read, or looking something up, fails
  double write_error = 0;  // that a write, or changing a name, fails
  double sync_error = 0;
  double misdirection = 0;  // that a synced write lands elsewhere
  // The three errors above strike only paths that end so; every path, if empty.
  std::string only_suffix = {};
  std::uint32_t slowness = 1;
  std::uint32_t sync_slowness = 1;  // of syncs; they are as slow as the slower of the two says
};

struct DiskFaultCounts {
  std::uint64_t read_errors = 0;
  std::uint64_t write_errors = 0;
  std::uint64_t sync_errors = 0;
  std::uint64_t no_space = 0;
};

// Waits as long as a look at the disk's names takes.
class DiskPause final : public runtime::Operation<void> {
 public:
  enum class Kind : unsigned char { names, names_sync };
  DiskPause(runtime::Runtime& runtime, DiskQueue& queue, Kind kind_)
      : Operation(runtime, runtime::Until::forever()), kind(kind_), queue_(queue) {}
  const Kind kind;

 private:
  void start() override;
  void cancel() override { UNREACHABLE("nobody can"); }
  DiskQueue& queue_;
};

class DiskQueue {
 public:
  // Base latencies.
  static constexpr std::uint64_t kReadNs = 80'000;
  static constexpr std::uint64_t kWriteNs = 20'000;
  static constexpr std::uint64_t kSyncNs = 500'000;
  static constexpr std::uint64_t kNamesNs = 30'000;

  DiskQueue(World& world, MachineId machine, SimDisk& disk)
      : world_(world), machine_(machine), disk_(disk) {}

  DiskFaults faults;
  const DiskFaultCounts& counts() const { return counts_; }
  // Reads, writes, syncs and looks at names, so far.
  std::uint32_t operations_begun() const { return serials_; }
  SimDisk& disk() { return disk_; }

  void start(SimFile& file, runtime::File::ReadAt& read);
  void start(SimFile& file, runtime::File::Write& write);
  void start(DiskPause& pause);
  // Ends an operation of the file early. Requires: it is under way.
  void cancel(runtime::File::ReadAt& read);
  void cancel(runtime::File::Write& write);

  void on_event(std::uint64_t argument);
  // The process is gone, and nobody waits any more. Before its memory is.
  void abandon_all();

  // Draws whether this one, of that path, fails, and counts it.
  bool read_fails(std::string_view path);
  bool write_fails(std::string_view path);
  bool sync_fails(std::string_view path);

 private:
  enum class Kind : unsigned char { none, read, write, sync, pause };
  struct Slot {
    Kind kind = Kind::none;
    std::uint32_t serial = 0;
    SimFile* file = nullptr;
    runtime::File::ReadAt* read = nullptr;
    runtime::File::Write* write = nullptr;
    DiskPause* pause = nullptr;
    std::uint64_t mark = 0;  // of a sync: what it covers
  };

  bool strikes(double chance, std::string_view path);
  void launch(Slot slot, std::uint64_t base_ns, std::uint32_t slowness);
  void launch_sync(Slot slot);
  Slot take(std::size_t index);
  void finish_read(const Slot& slot);
  void finish_write(const Slot& slot);
  void finish_sync(const Slot& slot);
  void start_sync(SimFile& file, runtime::File::Write& write);
  // Lets it have happened wholly, in part, or not at all.
  void leave_in_doubt(const Slot& slot);

  World& world_;
  const MachineId machine_;
  SimDisk& disk_;
  DiskFaultCounts counts_;
  std::uint32_t serials_ = 0;
  std::vector<Slot> slots_;
  std::vector<std::size_t> free_;
};

}  // namespace helenus::sim
