// LogNode: the node of the append-log scenario.
//
// The log is one file of records: length, CRC32C, number, padding. Appends are gathered into one
// write with one sync (group commit), so that no record is durable before an earlier one. Recovery
// takes the records up to the first that is not whole, writes them to a fresh file in the place of
// the old, and goes on behind them: nothing is appended behind a tail in doubt, and what was read
// from a cache is on disk before anybody sees it. When the disk fails, the node ends and recovers.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/log.h"
#include "base/prng.h"
#include "runtime/channel.h"
#include "runtime/event.h"
#include "runtime/file_system.h"
#include "runtime/task_group.h"
#include "sim/process.h"
#include "sim/scenarios/service.h"

namespace helenus::sim {

base::Bytes encode_append(std::uint64_t record);
base::Bytes encode_list();
base::Result<std::vector<std::uint64_t>> decode_listing(const base::Bytes& answer);

// The records at the beginning of a log file, and how many bytes they take: what is behind them
// is torn. Hostile bytes are a torn tail.
struct LogContent {
  std::vector<std::uint64_t> records;
  std::size_t size = 0;
};
LogContent parse_log(base::ByteView bytes);
void append_log_record(base::Buffer& out, std::uint64_t record, std::size_t padding);

class LogNode final : public Process, private RequestHandler {
 public:
  LogNode(runtime::Runtime& runtime, runtime::Address address);

  runtime::Task<void> run(runtime::StopToken stop) override;

 private:
  // An append on its way to the disk.
  struct Pending {
    Pending(runtime::Runtime& runtime, std::uint64_t record_) : record(record_), over(runtime) {}
    const std::uint64_t record;
    bool durable = false;
    runtime::Event over;
  };

  runtime::Task<base::Result<base::Bytes>> handle(base::Bytes request) override;
  runtime::Task<base::Result<void>> recover();
  runtime::Task<base::Result<void>> append(std::uint64_t record);
  runtime::Task<void> write_batches();
  runtime::Task<base::Result<void>> write_batch(std::vector<std::shared_ptr<Pending>> batch);

  runtime::Runtime& runtime_;
  const runtime::Address address_;
  base::Logger log_;
  base::Prng dice_;
  std::vector<std::uint64_t> records_;  // durable
  std::unique_ptr<runtime::File> file_;
  runtime::StopSource* failure_ = nullptr;
  runtime::Channel<std::shared_ptr<Pending>> waiting_;
  runtime::TaskGroup writer_;
};

}  // namespace helenus::sim
