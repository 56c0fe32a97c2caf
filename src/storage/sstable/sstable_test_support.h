// What the sstable's tests share: one simulated machine to run on, and files made from maps.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include <gtest/gtest.h>

#include "runtime/contract/world.h"
#include "runtime/task.h"
#include "sim/world.h"
#include "storage/entry/cursor_contract.h"
#include "storage/sstable/sstable_reader.h"
#include "storage/sstable/sstable_writer.h"

namespace helenus::storage {

using Rows = contract::ContractEntries;

// One machine with a disk. Bodies run one after the other, each as a process of its own.
class SimMachine {
 public:
  using Body = std::function<runtime::Task<void>(runtime::Runtime&)>;

  SimMachine();

  // Runs the body until it returns. The body is no coroutine itself: it calls one.
  void run(Body body);
  // Starts the body and cuts the power when it has made that many steps; false if it returned
  // before.
  bool run_and_cut_power(Body body, std::uint64_t steps);

  sim::DiskFaults& faults() { return machine_.disk_queue().faults; }
  sim::SimDisk& disk() { return machine_.disk(); }
  bool has_file(const std::string& path) { return disk().find(path).has_value(); }
  base::Bytes content(const std::string& path);
  void overwrite(const std::string& path, std::uint64_t offset, base::ByteView bytes);
  void replace(const std::string& path, base::ByteView bytes);

 private:
  void start(const Body& body);

  sim::World world_;
  sim::Machine& machine_;
};

// For files whose every bit a test may touch: small blocks, a deep index, nothing random.
SstableWriter::Options small_options(Compression compression = Compression::none);

runtime::Task<base::Result<SstableStatistics>> write_sstable(runtime::Runtime& runtime,
                                                             std::string path, const Rows& rows,
                                                             SstableWriter::Options options,
                                                             base::Bytes metadata = {});

using OpenResult = base::Result<std::shared_ptr<SstableReader>>;
runtime::Task<OpenResult> open_sstable(runtime::Runtime& runtime, SstableShared& shared,
                                       std::string path);

// Everything in the file, by a forward scan. Errors: the reader's.
runtime::Task<base::Result<Rows>> scan(std::shared_ptr<SstableReader> reader,
                                       SstableCursorOptions options = {});

}  // namespace helenus::storage
