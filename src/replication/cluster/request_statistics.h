// RequestStatistics: what one core has coordinated for clients, as operators see it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/result.h"
#include "model/consistency.h"

namespace helenus::replication {

struct RequestStatistics {
  static constexpr std::size_t kLevels = std::size_t{model::kConsistencyMax} + 1;
  using ByLevel = std::array<std::uint64_t, kLevels>;

  // Of partitions, or parts of a scan.
  ByLevel reads{};
  ByLevel writes{};
  // Of those among several nodes: too few replicas were up; too few answered in time; too many
  // answered with an error.
  ByLevel unavailable{};
  ByLevel timed_out{};
  ByLevel failed{};

  // Replicas that were asked beside those that a read needed: for a slow one, or one that failed.
  std::uint64_t spares_asked = 0;
  // Reads for which all replicas but one were asked for digests, and those of them that had to ask
  // for everything after that.
  std::uint64_t digest_reads = 0;
  std::uint64_t digest_mismatches = 0;
  // Reads whose replicas differed, and mutations that were sent to who lacked them before the read
  // was answered.
  std::uint64_t repairs = 0;
  std::uint64_t repaired_mutations = 0;
  // Deltas that were left to anti-entropy, as too much was on its way, and those that were sent and
  // not acknowledged in time.
  std::uint64_t deltas_sent = 0;
  std::uint64_t deltas_not_sent = 0;
  std::uint64_t deltas_lost = 0;
  // Questions to nodes that are suspected, whether they answer again.
  std::uint64_t probes = 0;

  void add(const RequestStatistics& other) {
    for (std::size_t i = 0; i < kLevels; ++i) {
      reads[i] += other.reads[i];
      writes[i] += other.writes[i];
      unavailable[i] += other.unavailable[i];
      timed_out[i] += other.timed_out[i];
      failed[i] += other.failed[i];
    }
    spares_asked += other.spares_asked;
    digest_reads += other.digest_reads;
    digest_mismatches += other.digest_mismatches;
    repairs += other.repairs;
    repaired_mutations += other.repaired_mutations;
    deltas_sent += other.deltas_sent;
    deltas_not_sent += other.deltas_not_sent;
    deltas_lost += other.deltas_lost;
    probes += other.probes;
  }
  // Of a read or a write at that level.
  void count_error(model::Consistency level, base::Errc code) {
    const bool is_late = code == base::Errc::timeout || code == base::Errc::cancelled ||
                         code == base::Errc::connection_lost;
    ByLevel& errors = code == base::Errc::unavailable ? unavailable : is_late ? timed_out : failed;
    ++errors[static_cast<std::size_t>(level)];
  }
};

}  // namespace helenus::replication
