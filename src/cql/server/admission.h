// Admission: what clients may take of a node, and what becomes of one who asks for more. Every
// limit of clients is here; nothing waits here, and what does not fit is refused.
//
//   what is counted                          of               beyond it
//   connections                              the node         OVERLOADED to the first request, then
//                                                             the connection is closed
//   connections of one address               the node         likewise
//   connections that are told so             the core         closed without a word
//   bytes of requests in memory              the node         OVERLOADED on that stream
//   ... whose bodies have not come whole     the node         reading of it stops for a while, then
//                                                             OVERLOADED on that stream
//   ... of one address                       the node         likewise
//   bytes of results that are made           the node         OVERLOADED to the read
//   bytes of responses not yet written       the core         a large response becomes OVERLOADED,
//                                                             and no reading from clients that have
//                                                             responses waiting
//   requests under way, their bytes          the connection   reading stops
//   bytes of its responses not yet written   the connection   reading stops; far beyond it a
//                                                             large response becomes OVERLOADED,
//                                                             and an event closes the connection
//
// An address is all of an IPv4 address, and the first 64 bits of an IPv6 address: whoever has one
// such network has as many addresses as there are. Connections come to cores as the system spreads
// them, and the largest request may come to any, so those are limits of the node: a part for each
// core would refuse clients while others are free, or add up to more than the node may take.
//
// Bodies. A body takes memory as it comes, and nobody but its client knows when the rest will.
// Without a limit of their own a few clients that send almost all of a large body, and then wait,
// would hold all there is for requests. So bodies that are coming in have a part of it: what is
// left is for requests that are there. And one address has less than all of that part: clients
// elsewhere get large requests through beside it.
//
//   bytes of all requests                   |-------------------------------------------|
//   bodies that are coming in, of all       |-------------------------------|  three quarters
//   of one address                          |---------------|                  half of them
//
// One body of the largest size is always let in, where these parts are smaller.
//
// A body that finds no room keeps what it has and waits. Many that wait for one another would do so
// for ever; so one body at a time, that has the *turn*, is let in beside the parts and takes
// nothing of them. It waits for none of the others: it comes whole or is given up, and then the
// next one takes the turn. So bodies that their clients send to the end all come in, one after the
// other at the least, while there is memory for one more body besides those parts. Where there is
// not, or where who has the turn is slow, it is for those who wait to give up in time.
//
// Pure: it knows no clock and no stream.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "base/assert.h"
#include "cql/protocol/frame.h"
#include "cql/server/address_counters.h"
#include "cql/server/byte_budget.h"
#include "runtime/address.h"
#include "runtime/random.h"

namespace helenus::cql {

struct AdmissionLimits {
  // What all cores share.
  struct Node {
    std::size_t connections_max = 8192;
    // As many as there may be at all if zero.
    std::size_t connections_per_address_max = 0;
    // The body of one request.
    std::size_t request_size_max = protocol::kBodySizeMaxDefault;
    // No less than a request of the largest size needs, compressed and plain.
    std::size_t request_bytes_max = std::size_t{256} << 20;
    std::size_t result_bytes_max = std::size_t{512} << 20;

    // Of request_bytes_max, for bodies that have not come whole.
    std::size_t body_bytes_max() const {
      return std::max(request_bytes_max / 4 * 3, request_size_max);
    }
    std::size_t body_bytes_per_address_max() const {
      return std::max(request_bytes_max / 8 * 3, request_size_max);
    }
  };
  struct Core {
    std::size_t connections_refused_max = 64;
    std::size_t response_bytes_max = std::size_t{512} << 20;
  };
  struct Connection {
    std::size_t requests_max = 1024;
    // A single request may exceed it.
    std::size_t request_bytes_max = std::size_t{32} << 20;
    // Beyond the first we stop reading; beyond the second large responses become errors.
    std::size_t response_bytes_high = std::size_t{1} << 20;
    std::size_t response_bytes_max = std::size_t{64} << 20;
  };

  Node node = {};
  Core core = {};
  Connection connection = {};
};

// What is refused; all of it as OVERLOADED.
enum class Refusal : std::uint8_t {
  connections,
  connections_of_address,
  request_bytes,
  result_bytes,
  response_bytes,
  waited_too_long,
};
std::string_view text_of(Refusal refusal);

// What the cores of a node share.
//
// Core affinity: none.
class NodeAdmission {
 public:
  // Of the counters by address. They are drawn at random, so that nobody can choose addresses whose
  // counters are another's.
  struct HashKeys {
    std::uint64_t connections = 0;
    std::uint64_t bodies = 0;

    static HashKeys drawn(runtime::Random& random) {
      const std::uint64_t first = random.next();
      return {.connections = first, .bodies = random.next()};
    }
  };

  NodeAdmission(const AdmissionLimits::Node& limits, HashKeys keys);
  NodeAdmission(const NodeAdmission&) = delete;
  NodeAdmission& operator=(const NodeAdmission&) = delete;

  const AdmissionLimits::Node& limits() const { return limits_; }
  std::size_t connections() const { return connections_.load(std::memory_order_relaxed); }
  // Taken by cores, which take a little more than they use.
  std::size_t request_bytes_taken() const { return request_bytes_->bytes_taken(); }
  std::size_t result_bytes_taken() const { return result_bytes_->bytes_taken(); }
  // Of bodies that have not come whole, without the one that has the turn.
  std::size_t body_bytes() const { return body_bytes_.load(std::memory_order_relaxed); }

 private:
  friend class Admission;

  std::optional<Refusal> try_connect(const runtime::Address& client);
  void disconnect(const runtime::Address& client);
  // Two that ask at once may both be refused what one of them could have had.
  bool try_take_body(const runtime::Address& client, std::size_t bytes);
  void give_back_body(const runtime::Address& client, std::size_t bytes);
  bool try_take_turn() { return !turn_is_taken_.exchange(true, std::memory_order_relaxed); }
  void give_back_turn() { turn_is_taken_.store(false, std::memory_order_relaxed); }

  const AdmissionLimits::Node limits_;
  std::atomic<std::size_t> connections_{0};
  std::optional<AddressCounters<std::uint32_t>> connections_by_address_;
  const std::shared_ptr<ByteLimit> request_bytes_;
  const std::shared_ptr<ByteLimit> result_bytes_;
  std::atomic<std::size_t> body_bytes_{0};
  AddressCounters<std::size_t> body_bytes_by_address_;
  std::atomic<bool> turn_is_taken_{false};
};

// What one core admits.
//
// Core affinity: one core.
class Admission {
 public:
  // Results up to this size are taken for nothing, as most are.
  static constexpr std::size_t kSmallResultSize = std::size_t{64} << 10;
  // Responses up to this size are sent whatever waits: they are what writes are answered with, and
  // an error in their place would be a lie.
  static constexpr std::size_t kSmallResponseSize = std::size_t{16} << 10;

  Admission(std::shared_ptr<NodeAdmission> node, AdmissionLimits::Core core,
            AdmissionLimits::Connection connection);
  // Of a node of one core.
  Admission(const AdmissionLimits& limits, NodeAdmission::HashKeys keys)
      : Admission(std::make_shared<NodeAdmission>(limits.node, keys), limits.core,
                  limits.connection) {}
  Admission(const Admission&) = delete;
  Admission& operator=(const Admission&) = delete;

  const AdmissionLimits::Node& node_limits() const { return node_->limits(); }

  // ---- Connections ----

  // Nothing if it may be served; it must disconnect then.
  [[nodiscard]] std::optional<Refusal> try_connect(const runtime::Address& client) {
    return node_->try_connect(client);
  }
  void disconnect(const runtime::Address& client) { node_->disconnect(client); }
  // Whether one more connection may be told that it is refused; its end must be told then.
  [[nodiscard]] bool try_begin_refusal();
  void end_refusal();

  // ---- Requests ----

  // What requests hold; given back when destroyed. The admission outlives it.
  using RequestCharge = ByteBudget::Charge;
  RequestCharge request_charge() { return RequestCharge(request_bytes_); }
  std::size_t request_bytes() const { return request_bytes_.bytes_used(); }

  // What a body that is coming in holds, beside a RequestCharge; given back when destroyed. The
  // admission outlives it.
  class [[nodiscard]] BodyCharge {
   public:
    BodyCharge(Admission& admission, const runtime::Address& client)
        : node_(*admission.node_), client_(client) {}
    BodyCharge(const BodyCharge&) = delete;
    BodyCharge& operator=(const BodyCharge&) = delete;
    ~BodyCharge() { release(); }

    std::size_t bytes() const { return bytes_; }
    // Holds `bytes` from now on, unless it holds as many already. False, and nothing changes, when
    // they are not to be had and another one has the turn.
    [[nodiscard]] bool grow_to(std::size_t bytes);
    void release();

   private:
    NodeAdmission& node_;
    const runtime::Address client_;
    std::size_t bytes_ = 0;
    bool has_turn_ = false;
  };

  // ---- Results ----

  // What a result that is being made holds; given back when destroyed. The admission outlives it.
  class [[nodiscard]] ResultCharge {
   public:
    explicit ResultCharge(Admission& admission) : charge_(admission.result_bytes_) {}
    // Holds `bytes` from now on, unless it holds as many already or they are few. False, and
    // nothing changes, when they are not to be had.
    [[nodiscard]] bool grow_to(std::size_t bytes) {
      return bytes <= kSmallResultSize || charge_.grow_to(bytes);
    }

   private:
    ByteBudget::Charge charge_;
  };
  std::size_t result_bytes() const { return result_bytes_.bytes_used(); }

  // ---- A connection's requests and responses ----

  // What one connection has under way.
  struct Load {
    std::size_t requests = 0;
    std::size_t request_bytes = 0;
    std::size_t response_bytes = 0;
  };
  // Whether further requests of the connection are read.
  bool may_read(const Load& load) const {
    return load.requests < connection_.requests_max &&
           load.request_bytes < connection_.request_bytes_max &&
           load.response_bytes < (is_crowded() ? 1 : connection_.response_bytes_high);
  }
  // Whether a response of so many bytes is sent, and not an error in its place.
  bool may_respond(const Load& load, std::size_t bytes) const {
    return bytes <= kSmallResponseSize ||
           (!is_crowded() && load.response_bytes < connection_.response_bytes_max);
  }
  // Whether an event is sent, and the connection not closed.
  bool may_send_event(const Load& load) const {
    return load.response_bytes < connection_.response_bytes_max;
  }
  // A connection's responses that are not written are so many bytes now.
  void count_responses(std::size_t bytes_before, std::size_t bytes_now) {
    ASSERT(response_bytes_ >= bytes_before);
    response_bytes_ += bytes_now - bytes_before;
  }
  std::size_t response_bytes() const { return response_bytes_; }

 private:
  bool is_crowded() const { return response_bytes_ >= core_.response_bytes_max; }

  const std::shared_ptr<NodeAdmission> node_;
  const AdmissionLimits::Core core_;
  const AdmissionLimits::Connection connection_;
  ByteBudget request_bytes_;
  ByteBudget result_bytes_;
  std::size_t refusals_ = 0;
  std::size_t response_bytes_ = 0;
};

}  // namespace helenus::cql
