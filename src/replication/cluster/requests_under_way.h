// RequestsUnderWay: what one core does at this moment for clients, or as the replica that mints for
// another node, with replicas on several nodes: what operators look at when something hangs.
//
// A RequestUnderWay lives in the frame of who carries the request out, and says what that waits
// for. It costs a few stores.
//
// Core affinity: one core.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model/consistency.h"
#include "replication/map/level_rule.h"
#include "runtime/time.h"

namespace helenus::replication {

// One of them, as people are shown it.
struct RequestFacts {
  std::uint64_t id = 0;  // of the core; grows
  std::string kind;
  std::string keyspace;
  model::Consistency level = model::Consistency::one;
  std::string phase;
  std::uint32_t required = 0;
  std::uint32_t received = 0;
  runtime::Duration age{};
};

class RequestsUnderWay;

class RequestUnderWay {
 public:
  // `kind` and `keyspace` outlive it.
  RequestUnderWay(RequestsUnderWay& all, std::string_view kind, std::string_view keyspace,
                  model::Consistency level, runtime::MonotonicTime now);
  ~RequestUnderWay();
  RequestUnderWay(const RequestUnderWay&) = delete;
  RequestUnderWay& operator=(const RequestUnderWay&) = delete;

  // What is waited for from now on; it outlives this. `tally` counts the answers that came, until
  // the next phase.
  void enter(std::string_view phase, const AckTally* tally = nullptr) {
    phase_ = phase;
    tally_ = tally;
  }

 private:
  friend class RequestsUnderWay;
  RequestsUnderWay& all_;
  RequestUnderWay* before_ = nullptr;
  RequestUnderWay* behind_ = nullptr;
  const std::uint64_t id_;
  const std::string_view kind_;
  const std::string_view keyspace_;
  const model::Consistency level_;
  const runtime::MonotonicTime began_at_;
  std::string_view phase_ = "begins";
  const AckTally* tally_ = nullptr;
};

class RequestsUnderWay {
 public:
  static constexpr std::size_t kShownMax = 10'000;

  // The oldest first; kShownMax at most.
  std::vector<RequestFacts> list(runtime::MonotonicTime now) const;

 private:
  friend class RequestUnderWay;
  std::uint64_t next_id_ = 1;
  RequestUnderWay* oldest_ = nullptr;
  RequestUnderWay* newest_ = nullptr;
};

}  // namespace helenus::replication
