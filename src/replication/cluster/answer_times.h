// AnswerTimes: how long each node takes to answer, as one core sees it, and who may have stopped.
//
// Suspicion. A node that owes an answer, and from which nothing came for three times as long as it
// usually takes (the 99th percentile, at least kSuspectAfterMin), is suspected: it is asked last
// until it answers something. The failure detector takes seconds to be sure; until then this keeps
// requests away from a process that stands still. Suspicion changes the order of asking and nothing
// else: it may be wrong, and costs no answer then. Who is asked last might never be asked again, so
// a suspect is owed a probe from time to time (claim_probe).
//
// What is usual is of the last few thousand answers of each kind of request: a scan may take longer
// than a point read. More than kSuspectAfterMax is never waited for: a write that waits for others
// at the node that mints it takes until its deadline, and says nothing of that node.
//
// Core affinity: one core.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>

#include "model/node_id.h"
#include "runtime/time.h"

namespace helenus::replication {

// Times of late, roughly: a bucket is a fifth of its times wide. As more come the older ones count
// less. A value of about a kilobyte.
class RecentTimes {
 public:
  void record(runtime::Duration time);
  bool empty() const { return count_ == 0; }
  // The upper end of the bucket of the quantile. Requires: 0 < q <= 1, not empty.
  runtime::Duration quantile(double q) const;

 private:
  static constexpr std::size_t kBucketsPerDoubling = 4;
  static constexpr std::size_t kBuckets = 32 * kBucketsPerDoubling;  // of microseconds
  static constexpr std::uint32_t kHalvedAt = 4096;
  static std::size_t bucket_of(std::uint64_t microseconds);
  static std::uint64_t end_of(std::size_t bucket);

  std::array<std::uint16_t, kBuckets> buckets_{};
  std::uint32_t count_ = 0;
};

class AnswerTimes {
 public:
  static constexpr runtime::Duration kSuspectAfterMin = std::chrono::milliseconds(100);
  static constexpr runtime::Duration kSuspectAfterMax = std::chrono::milliseconds(750);
  static constexpr runtime::Duration kProbePeriod = std::chrono::milliseconds(100);

  enum class Kind : std::uint8_t { point, scan, delta, write };
  static constexpr std::size_t kKinds = 4;

 private:
  class Peer;

 public:
  // A request that is under way, until one of its verbs is called or it is destroyed. Stays where
  // it is.
  class Asked {
   public:
    Asked(AnswerTimes& times, model::NodeId node, Kind kind, runtime::MonotonicTime now);
    ~Asked();
    Asked(const Asked&) = delete;
    Asked& operator=(const Asked&) = delete;

    // One of these, once.
    void answered(runtime::MonotonicTime now);
    // The node said that it cannot: no measure of how long an answer takes.
    void refused(runtime::MonotonicTime now);
    // Nothing came as long as it was waited for.
    void given_up(runtime::MonotonicTime now);

   private:
    friend class Peer;
    void unlink();
    Peer& peer_;
    const Kind kind_;
    const runtime::MonotonicTime began_at_;
    bool is_open_ = true;
    Asked* before_ = nullptr;  // of those open, in the order in which they began
    Asked* behind_ = nullptr;
  };

  // Cost: a search among the nodes that were asked.
  bool is_suspected(model::NodeId node, runtime::MonotonicTime now) const;
  // Whether a suspect should be asked something now; then the next one is due in kProbePeriod.
  bool claim_probe(model::NodeId node, runtime::MonotonicTime now);
  // What is usual of that node and kind; nothing before its first answer.
  std::optional<runtime::Duration> usual(model::NodeId node, Kind kind, double quantile) const;

 private:
  class Peer {
   public:
    bool is_suspected(runtime::MonotonicTime now) const;

    std::array<RecentTimes, kKinds> times;
    runtime::MonotonicTime answered_at{};
    runtime::MonotonicTime probe_not_before{};
    // A request was given up while it was suspected, and nothing was answered since.
    bool is_silent = false;
    Asked* oldest = nullptr;
    Asked* newest = nullptr;

   private:
    runtime::Duration patience(Kind kind) const;
  };

  std::map<model::NodeId, Peer> peers_;
};

}  // namespace helenus::replication
