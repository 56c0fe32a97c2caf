#include "storage/sstable/sstable_test_support.h"

#include <utility>

namespace helenus::storage {

using base::Result;
using runtime::Task;

namespace {

class BodyProcess final : public sim::Process {
 public:
  BodyProcess(runtime::Runtime& runtime, const SimMachine::Body& body)
      : runtime_(runtime), body_(body) {}
  Task<void> run(runtime::StopToken) override { co_await body_(runtime_); }

 private:
  runtime::Runtime& runtime_;
  const SimMachine::Body& body_;
};

}  // namespace

SimMachine::SimMachine() : world_(1), machine_(world_.add_machine({.name = "m"}, {})) {}

void SimMachine::start(const Body& body) {
  machine_.set_process(
      [&body](runtime::Runtime& runtime) { return std::make_unique<BodyProcess>(runtime, body); });
  machine_.start();
}

void SimMachine::run(Body body) {
  start(body);
  const bool returned =
      world_.run_until([&] { return !machine_.is_up(); }, std::chrono::hours(24 * 365));
  EXPECT_TRUE(returned) << "the body waits for something that will never happen";
  machine_.kill();
}

bool SimMachine::run_and_cut_power(Body body, std::uint64_t steps) {
  start(body);
  for (std::uint64_t i = 0; i < steps && machine_.is_up(); ++i) {
    if (!world_.step()) break;
  }
  const bool cut = machine_.is_up();
  machine_.power_loss();
  return cut;
}

base::Bytes SimMachine::content(const std::string& path) {
  const auto inode = disk().find(path);
  EXPECT_TRUE(inode.has_value()) << path;
  base::Buffer bytes;
  const auto size = static_cast<std::size_t>(disk().size(*inode));
  bytes.truncate(disk().read(*inode, 0, bytes.extend(size)));
  return std::move(bytes).freeze();
}

void SimMachine::overwrite(const std::string& path, std::uint64_t offset, base::ByteView bytes) {
  const auto inode = disk().find(path);
  EXPECT_TRUE(inode.has_value()) << path;
  EXPECT_TRUE(disk().write(*inode, offset, bytes).has_value());
}

void SimMachine::replace(const std::string& path, base::ByteView bytes) {
  const auto inode = disk().open(path, {.write = true, .create = true, .truncate = true});
  EXPECT_TRUE(inode.has_value()) << path;
  EXPECT_TRUE(disk().write(*inode, 0, bytes).has_value());
}

SstableWriter::Options small_options(Compression compression) {
  SstableWriter::Options options;
  options.compression = compression;
  options.block_bytes = 100;
  options.index = {.node_bytes = 1, .upper_node_bytes = 1};
  options.filter.hashes_max = 24;
  options.write_bytes = 512;
  options.id.emplace().bytes.fill(std::byte{0x5a});
  return options;
}

Task<Result<SstableStatistics>> write_sstable(runtime::Runtime& runtime, std::string path,
                                              const Rows& rows, SstableWriter::Options options,
                                              base::Bytes metadata) {
  CO_TRY(const auto writer,
         co_await SstableWriter::create(runtime, std::move(path), std::move(options)));
  for (const auto& [key, row] : rows) {
    const RowKey row_key{.bytes = base::as_bytes(key), .partition_size = row.partition_size};
    CO_TRY_VOID(co_await writer->add(row_key, base::as_bytes(row.value)));
  }
  co_return co_await writer->finish(std::move(metadata));
}

Task<OpenResult> open_sstable(runtime::Runtime& runtime, SstableShared& shared, std::string path) {
  co_return co_await SstableReader::open(runtime, shared, std::move(path), {},
                                         runtime::Until::forever());
}

Task<Result<Rows>> scan(std::shared_ptr<SstableReader> reader, SstableCursorOptions options) {
  const auto cursor = reader->cursor(std::move(options));
  Rows rows;
  CO_TRY_VOID(co_await cursor->seek_first());
  while (cursor->valid()) {
    rows[std::string(base::as_text(cursor->key().bytes))] = {
        .value = std::string(base::as_text(cursor->value())),
        .partition_size = cursor->key().partition_size};
    CO_TRY_VOID(co_await cursor->next());
  }
  co_return rows;
}

}  // namespace helenus::storage
