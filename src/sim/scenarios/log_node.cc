#include "sim/scenarios/log_node.h"

#include <utility>

#include "base/codec.h"
#include "base/crc32c.h"
#include "runtime/files.h"
#include "runtime/random.h"

namespace helenus::sim {

using base::Errc;
using base::Error;
using base::Result;
using runtime::Task;
using runtime::Until;

namespace {

constexpr std::size_t kWaitingMax = 64;
constexpr std::size_t kBatchMax = 8;
constexpr std::size_t kHeaderSize = 8;
constexpr std::size_t kRecordSizeMax = 8192;
constexpr std::uint64_t kPaddingMax = 2000;
constexpr std::size_t kFileSizeMax = std::size_t{64} << 20;
constexpr std::string_view kDirectory = "/log";
constexpr std::string_view kPath = "/log/log";

enum class Kind : std::uint8_t { append = 1, list = 2 };

}  // namespace

base::Bytes encode_append(std::uint64_t record) {
  base::Buffer buffer;
  base::Encoder out(buffer);
  out.u8(static_cast<std::uint8_t>(Kind::append));
  out.u64_le(record);
  return std::move(buffer).freeze();
}

base::Bytes encode_list() {
  base::Buffer buffer;
  base::Encoder(buffer).u8(static_cast<std::uint8_t>(Kind::list));
  return std::move(buffer).freeze();
}

Result<std::vector<std::uint64_t>> decode_listing(const base::Bytes& answer) {
  base::Decoder in(answer);
  std::vector<std::uint64_t> records(in.count(sizeof(std::uint64_t)));
  for (std::uint64_t& record : records) record = in.u64_le();
  TRY_VOID(in.finish());
  return records;
}

void append_log_record(base::Buffer& out, std::uint64_t record, std::size_t padding) {
  const std::size_t begin = out.size();
  base::Encoder encoder(out);
  encoder.u32_le(static_cast<std::uint32_t>(sizeof(record) + padding));
  encoder.u32_le(0);
  encoder.u64_le(record);
  for (std::byte& byte : out.extend(padding)) byte = static_cast<std::byte>(record * 7 + 1);
  const base::ByteView payload = out.view().subspan(begin + kHeaderSize);
  base::store_le(out.data() + begin + 4, base::crc32c(payload));
}

LogContent parse_log(base::ByteView bytes) {
  LogContent content;
  for (;;) {
    base::Decoder in(bytes.subspan(content.size));
    const std::uint32_t size = in.u32_le();
    const std::uint32_t checksum = in.u32_le();
    if (size < sizeof(std::uint64_t) || size > kRecordSizeMax) return content;
    const base::ByteView payload = in.raw(size);
    if (!in.ok() || base::crc32c(payload) != checksum) return content;
    content.records.push_back(base::load_le<std::uint64_t>(payload.data()));
    content.size += in.offset();
  }
}

LogNode::LogNode(runtime::Runtime& runtime, runtime::Address address)
    : runtime_(runtime),
      address_(address),
      log_(runtime.logger("sim.log")),
      dice_(runtime.random.fork()),
      waiting_(runtime, kWaitingMax),
      writer_(runtime) {}

Task<void> LogNode::run(runtime::StopToken stop) {
  runtime::StopSource failure(stop);
  failure_ = &failure;
  if (const auto recovered = co_await recover(); !recovered) {
    log_.warn("cannot recover", base::kv("error", recovered.error()));
    co_return;
  }
  writer_.spawn(write_batches());
  const auto served = co_await serve(runtime_, address_, *this, failure.token());
  if (!served) log_.warn("cannot serve", base::kv("error", served.error()));
  waiting_.close();
  co_await writer_.join();
}

Task<Result<void>> LogNode::recover() {
  CO_TRY_VOID(co_await runtime_.files.make_directories(std::string(kDirectory)));
  CO_TRY_VOID(co_await runtime_.files.sync_directory("/"));
  auto bytes = co_await runtime::read_file(runtime_, std::string(kPath), kFileSizeMax);
  if (!bytes && !bytes.failed_with(Errc::not_found)) co_return std::move(bytes).error();
  const base::Bytes found = bytes.value_or(base::Bytes());
  LogContent content = parse_log(found);
  log_.info("recovers", base::kv("records", content.records.size()),
            base::kv("bytes_torn", found.size() - content.size));
  CO_TRY_VOID(
      co_await runtime::replace_file(runtime_, std::string(kPath), found.slice(0, content.size)));
  CO_TRY(file_, co_await runtime_.files.open(std::string(kPath), {.write = true}));
  records_ = std::move(content.records);
  co_return {};
}

Task<Result<base::Bytes>> LogNode::handle(base::Bytes request) {
  base::Decoder in(request);
  const auto kind = static_cast<Kind>(in.u8());
  base::Buffer answer;
  if (kind == Kind::append) {
    const std::uint64_t record = in.u64_le();
    CO_TRY_VOID(in.finish());
    CO_TRY_VOID(co_await append(record));
  } else {
    CO_TRY_VOID(in.finish());
    base::Encoder out(answer);
    out.varint(records_.size());
    for (const std::uint64_t record : records_) out.u64_le(record);
  }
  co_return std::move(answer).freeze();
}

Task<Result<void>> LogNode::append(std::uint64_t record) {
  const auto pending = std::make_shared<Pending>(runtime_, record);
  CO_TRY_VOID(co_await waiting_.push(pending, Until::forever()));
  CO_TRY_VOID(co_await pending->over.wait(Until::forever()));
  if (!pending->durable) co_return Error(Errc::unavailable, "the log has failed");
  co_return {};
}

Task<void> LogNode::write_batches() {
  bool failed = false;
  for (;;) {
    auto first = co_await waiting_.pop(Until::forever());
    if (!first) co_return;
    std::vector<std::shared_ptr<Pending>> batch{*std::move(first)};
    while (batch.size() < kBatchMax && !runtime_.buggify("log.small_batch")) {
      auto next = waiting_.try_pop();
      if (!next) break;
      batch.push_back(*std::move(next));
    }
    // After one failure the end of the file is in doubt: nothing more goes behind it.
    if (!failed) {
      const auto written = co_await write_batch(batch);
      failed = !written;
      if (failed) {
        log_.warn("cannot append", base::kv("error", written.error()));
        failure_->request_stop();
      }
    }
    for (const auto& pending : batch) pending->over.set();
  }
}

Task<Result<void>> LogNode::write_batch(std::vector<std::shared_ptr<Pending>> batch) {
  base::Buffer bytes;
  for (const auto& pending : batch) {
    append_log_record(bytes, pending->record, dice_.below(kPaddingMax));
  }
  CO_TRY_VOID(co_await file_->append_and_sync(bytes.view(), Until::forever()));
  for (const auto& pending : batch) {
    pending->durable = true;
    records_.push_back(pending->record);
  }
  co_return {};
}

}  // namespace helenus::sim
