#include "storage/log/log_catalog.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "base/codec.h"
#include "base/crc32c.h"
#include "base/versioned_file.h"
#include "runtime/files.h"

namespace helenus::storage {

using base::Errc;
using base::Error;
using base::Result;
using runtime::Task;
using runtime::Until;

namespace {

constexpr std::string_view kMagic = "HLNSLCAT";
constexpr std::uint32_t kVersion = 1;
constexpr std::size_t kChecksumSize = 4;

void encode_recovered(const RecoveredLog& log, base::Encoder& out) {
  out.varint(log.incarnation);
  out.varint(log.core);
  out.u64_le(log.log_id);
  out.varint(log.end_sequence);
  out.varint(log.end_offset);
  out.varint(log.segments.size());
  std::uint32_t before = 0;
  for (const std::uint32_t sequence : log.segments) {
    out.varint(sequence - before);
    before = sequence;
  }
}

std::uint32_t varint32(base::Decoder& in) {
  const std::uint64_t value = in.varint();
  if (value > UINT32_MAX) in.fail("number too large");
  return static_cast<std::uint32_t>(value);
}

RecoveredLog decode_recovered(base::Decoder& in) {
  RecoveredLog log;
  log.incarnation = varint32(in);
  log.core = varint32(in);
  log.log_id = in.u64_le();
  log.end_sequence = varint32(in);
  log.end_offset = in.varint();
  const std::size_t count = in.count(1);
  std::uint64_t sequence = 0;
  for (std::size_t i = 0; i < count && in.ok(); ++i) {
    const std::uint64_t step = in.varint();
    sequence += step;
    if (step == 0 || sequence > UINT32_MAX) in.fail("segments out of order");
    log.segments.push_back(static_cast<std::uint32_t>(sequence));
  }
  if (log.core >= kCoresMax || count == 0 || count > kSegmentsMax || sequence > log.end_sequence ||
      log.end_offset > kSegmentSizeMax) {
    in.fail("a recovered log makes no sense");
  }
  return log;
}

auto order_of(const RecoveredLog& log) {
  return std::tuple(log.incarnation, log.core);
}

}  // namespace

base::Bytes encode(const LogCatalog& catalog) {
  base::Buffer buffer(256);
  base::Encoder out(buffer);
  out.raw(base::as_bytes(kMagic));
  out.u32_le(kVersion);
  out.u32_le(catalog.incarnation);
  out.u8(catalog.in_doubt ? 1 : 0);
  out.u64_le(catalog.identity.device);
  out.u64_le(catalog.identity.inode);
  out.u64_le(catalog.identity.born_ns);
  out.prefixed(catalog.boot_id);
  out.varint(catalog.current.size());
  for (const std::uint64_t log_id : catalog.current) out.u64_le(log_id);
  out.varint(catalog.recovered.size());
  for (const RecoveredLog& log : catalog.recovered) encode_recovered(log, out);
  out.u32_le(base::crc32c(buffer.view()));
  return std::move(buffer).freeze();
}

Result<LogCatalog> decode_log_catalog(base::ByteView bytes) {
  if (bytes.size() < kMagic.size() + 4 + kChecksumSize ||
      !base::equal(bytes.first(kMagic.size()), base::as_bytes(kMagic))) {
    return Error(Errc::corrupt, "at offset 0: does not begin with {}", kMagic);
  }
  const auto covered = bytes.first(bytes.size() - kChecksumSize);
  if (base::load_le<std::uint32_t>(bytes.data() + covered.size()) != base::crc32c(covered)) {
    return Error(Errc::corrupt, "at offset {}: checksum of all that is before does not match",
                 covered.size());
  }
  base::Decoder in(covered.subspan(kMagic.size()));
  const std::uint32_t version = in.u32_le();
  if (version != kVersion) return base::unsupported_version(version, kVersion);
  LogCatalog catalog;
  catalog.incarnation = in.u32_le();
  const std::uint8_t doubt = in.u8();
  if (doubt > 1) in.fail("neither in doubt nor not");
  catalog.in_doubt = doubt == 1;
  catalog.identity.device = in.u64_le();
  catalog.identity.inode = in.u64_le();
  catalog.identity.born_ns = in.u64_le();
  catalog.boot_id = in.prefixed_text();
  const std::size_t cores = in.count(8);
  if (cores > kCoresMax) in.fail("too many cores");
  for (std::size_t i = 0; i < cores && in.ok(); ++i) catalog.current.push_back(in.u64_le());
  const std::size_t recovered = in.count(1);
  if (recovered > LogCatalog::kRecoveredMax) in.fail("too many recovered logs");
  for (std::size_t i = 0; i < recovered && in.ok(); ++i) {
    catalog.recovered.push_back(decode_recovered(in));
  }
  TRY_VOID(in.finish());
  const auto out_of_order = [](const RecoveredLog& a, const RecoveredLog& b) {
    return order_of(a) >= order_of(b);
  };
  if (std::ranges::adjacent_find(catalog.recovered, out_of_order) != catalog.recovered.end() ||
      (!catalog.recovered.empty() && catalog.recovered.back().incarnation >= catalog.incarnation)) {
    return Error(Errc::corrupt, "recovered logs out of order");
  }
  return catalog;
}

std::string log_catalog_path(const std::string& directory) {
  return directory + "/catalog";
}

Task<Result<std::optional<LoadedCatalog>>> load_log_catalog(runtime::Runtime& runtime,
                                                            std::string directory) {
  const std::string path = log_catalog_path(directory);
  auto content = co_await runtime::read_file(runtime, path, LogCatalog::kFileSizeMax);
  if (content.failed_with(Errc::not_found)) co_return std::nullopt;
  if (!content) co_return std::move(content).error();
  auto catalog = decode_log_catalog(*content);
  if (!catalog) co_return std::move(catalog).error().within(path);
  CO_TRY(const auto info, co_await runtime.files.info(path));
  const bool original = info.identity == catalog->identity;
  co_return LoadedCatalog{.catalog = *std::move(catalog), .original = original};
}

Task<Result<void>> store_log_catalog(runtime::Runtime& runtime, std::string directory,
                                     LogCatalog catalog) {
  const std::string path = log_catalog_path(directory);
  const std::string fresh = path + ".new";
  CO_TRY(auto file,
         co_await runtime.files.open(fresh, {.write = true, .create = true, .truncate = true}));
  // A rename leaves the file's identity as it is.
  CO_TRY(const auto info, co_await runtime.files.info(fresh));
  catalog.identity = info.identity;
  const base::Bytes content = encode(catalog);
  CO_TRY_VOID(co_await file->write_at(0, content, Until::forever()));
  CO_TRY_VOID(co_await file->sync(Until::forever()));
  CO_TRY_VOID(co_await file->close());
  CO_TRY_VOID(co_await runtime.files.rename(fresh, path));
  co_return co_await runtime.files.sync_directory(directory);
}

}  // namespace helenus::storage
