// PartitionLatches: the partitions of one core that stand still, each for one request.
//
// A write with an explicit timestamp reads before it is minted (rule (d),
// explicit_timestamp_filter.h): what it found must still be all there is when its context is fixed.
// So it holds the partition's latch from before its first look until it is staged.
//
// Invariant: while a latch is held, nothing is staged to its partition but by its holder.
//
// Who keeps it. Whoever stages something to a partition, in whatever way it came (a client's write,
// a delta of a peer, what anti-entropy or a stream brings), asks is_held() and stages in one step,
// with no suspension in between; if it is held, it takes the latch first and lets go of it after
// staging. While no explicit write is under way that is one look at an empty map.
//
// Why one partition is enough. A context covers all its tablet has seen, yet a mutation supersedes
// in the cells and ranges that it names alone, and all of these are of its partition. What is
// staged to other partitions meanwhile adds dots to the context that no version here has: it
// changes neither what the write beats nor what beats it. Timestamps that minting gives do not
// depend on the clock either. Flushes and merges change the files of a partition that stands still,
// but nothing of what holds in it.
//
// Why nobody waits for ever. Those who wait for a latch get it in the order they came. Whoever
// takes several takes them in ascending order (take_all), and waits for none while it holds one
// otherwise; a holder waits for files, the log and room, none of which waits for a latch. What each
// core holds it holds for its own part of a request, and waits for no other core meanwhile. A
// holder that ends in whatever way lets go.
//
// Core affinity: one core.
#pragma once

#include <cstddef>
#include <map>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "runtime/operation.h"
#include "runtime/runtime.h"
#include "runtime/semaphore.h"
#include "runtime/task.h"
#include "storage/ids/table_id.h"

namespace helenus::replication {

class PartitionLatches {
  struct Latch {
    explicit Latch(runtime::Runtime& runtime) : turn(runtime, 1, kWaitersMax) {}
    runtime::Semaphore turn;
    std::size_t users = 0;  // who holds it and who waits
  };
  using Place = std::pair<storage::TableId, base::Bytes>;
  using Latches = std::map<Place, Latch>;

 public:
  // How many wait for one partition at most.
  static constexpr std::size_t kWaitersMax = 1 << 16;

  // Requires: the runtime outlives it; it outlives all holds.
  explicit PartitionLatches(runtime::Runtime& runtime) : runtime_(runtime) {}
  PartitionLatches(const PartitionLatches&) = delete;
  PartitionLatches& operator=(const PartitionLatches&) = delete;

  // A latch that is held, or none. Lets go when destroyed.
  class [[nodiscard]] Hold {
   public:
    Hold() = default;
    Hold(Hold&& other) noexcept
        : latches_(std::exchange(other.latches_, nullptr)),
          at_(other.at_),
          permit_(std::move(other.permit_)) {}
    Hold& operator=(Hold other) noexcept {
      std::swap(latches_, other.latches_);
      std::swap(at_, other.at_);
      std::swap(permit_, other.permit_);
      return *this;
    }
    ~Hold() { release(); }

    void release();

   private:
    friend class PartitionLatches;
    // Keeps the latch from going away, held or not.
    Hold(PartitionLatches& latches, Latches::iterator at);

    PartitionLatches* latches_ = nullptr;
    Latches::iterator at_;
    runtime::Permit permit_;
  };

  // Whether somebody holds the partition, or waits for it.
  bool is_held(storage::TableId table, const base::Bytes& partition) const {
    return !latches_.empty() && latches_.contains({table, partition});
  }
  // Waits for those that came before. Errors: timeout, cancelled; overloaded if too many wait.
  // Requires: the caller holds none.
  runtime::Task<base::Result<Hold>> take(storage::TableId table, base::Bytes partition,
                                         runtime::Until until);
  // All of them, each once. Errors: as of take(); then none is held. Requires: as of take().
  runtime::Task<base::Result<std::vector<Hold>>> take_all(std::vector<Place> places,
                                                          runtime::Until until);

 private:
  runtime::Runtime& runtime_;
  Latches latches_;
};

}  // namespace helenus::replication
