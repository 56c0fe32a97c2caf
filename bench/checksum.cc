// bench-checksum: what every block, record and message pays for being checked and placed.
//
// crc32c stands beside zlib's crc32, the 32-bit checksum most programs use; hash64 beside
// std::hash, which the standard containers would use.
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

#include <fmt/format.h>
#include <zlib.h>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "base/hash.h"
#include "base/prng.h"
#include "bench/measure.h"
#include "bench/report.h"

namespace helenus::bench {
namespace {

std::string random_text(std::size_t size) {
  base::Prng prng(1);
  std::string text(size, '\0');
  for (char& byte : text) byte = static_cast<char>(prng.below(256));
  return text;
}

void compare_checksums(const Options& options, Report& report) {
  const double seconds = options.quick ? 0.02 : 0.2;
  const int rounds = options.quick ? 3 : 9;
  const auto gigabytes_per_second = [&](std::size_t size, auto&& operation) {
    return operations_per_second(seconds, operation) * static_cast<double>(size) / 1e9;
  };
  for (const std::size_t size : {std::size_t{64}, std::size_t{4096}, std::size_t{65536}}) {
    const std::string text = random_text(size);
    const auto* zlib_bytes = reinterpret_cast<const Bytef*>(text.data());
    const auto crc32c = [&] { keep(base::crc32c(base::as_bytes(text))); };
    const auto zlib = [&] { keep(::crc32(0, zlib_bytes, static_cast<uInt>(size))); };
    const auto hash64 = [&] { keep(base::hash64(base::as_bytes(text))); };
    const auto std_hash = [&] { keep(std::hash<std::string_view>{}(text)); };

    const auto measure = [&](const char* name, auto& ours, const char* peer_name, auto& peer) {
      const Medians medians = by_turns(
          rounds, [&] { return gigabytes_per_second(size, ours); },
          [&] { return gigabytes_per_second(size, peer); });
      report.row({.name = fmt::format("{} of {} bytes", name, size),
                  .value = medians.ours,
                  .unit = "GB/s",
                  .peer = peer_name,
                  .peer_value = medians.peer});
    };
    measure("crc32c", crc32c, "zlib crc32", zlib);
    measure("hash64", hash64, "std::hash", std_hash);
  }
}

}  // namespace
}  // namespace helenus::bench

int main(int argc, char** argv) {
  return helenus::bench::benchmark_main(argc, argv, helenus::bench::compare_checksums);
}
