#include "cql/server/admission.h"

namespace helenus::cql {

using runtime::Address;

std::string_view text_of(Refusal refusal) {
  switch (refusal) {
    case Refusal::connections:
      return "Too many connections";
    case Refusal::connections_of_address:
      return "Too many connections from this address";
    case Refusal::request_bytes:
      return "Too many bytes of requests are under way";
    case Refusal::result_bytes:
      return "Too many bytes of results are under way";
    case Refusal::response_bytes:
      return "Too many answers wait to be read";
    case Refusal::waited_too_long:
      return "The request waited too long before it could begin";
  }
  UNREACHABLE("refusal {}", static_cast<int>(refusal));
}

// ---- The node ----

NodeAdmission::NodeAdmission(const AdmissionLimits::Node& limits, HashKeys keys)
    : limits_(limits),
      request_bytes_(std::make_shared<ByteLimit>(limits.request_bytes_max)),
      result_bytes_(std::make_shared<ByteLimit>(limits.result_bytes_max)),
      body_bytes_by_address_(keys.bodies) {
  if (limits.connections_per_address_max > 0) connections_by_address_.emplace(keys.connections);
}

std::optional<Refusal> NodeAdmission::try_connect(const Address& client) {
  if (connections_.fetch_add(1, std::memory_order_relaxed) >= limits_.connections_max) {
    connections_.fetch_sub(1, std::memory_order_relaxed);
    return Refusal::connections;
  }
  if (!connections_by_address_ ||
      connections_by_address_->add(client, 1) < limits_.connections_per_address_max) {
    return std::nullopt;
  }
  disconnect(client);
  return Refusal::connections_of_address;
}

void NodeAdmission::disconnect(const Address& client) {
  if (connections_by_address_) connections_by_address_->subtract(client, 1);
  const std::size_t before = connections_.fetch_sub(1, std::memory_order_relaxed);
  ASSERT(before > 0);
}

bool NodeAdmission::try_take_body(const Address& client, std::size_t bytes) {
  const std::size_t all = body_bytes_.fetch_add(bytes, std::memory_order_relaxed);
  const std::size_t own = body_bytes_by_address_.add(client, bytes);
  if (all + bytes <= limits_.body_bytes_max() &&
      own + bytes <= limits_.body_bytes_per_address_max()) {
    return true;
  }
  give_back_body(client, bytes);
  return false;
}

void NodeAdmission::give_back_body(const Address& client, std::size_t bytes) {
  body_bytes_by_address_.subtract(client, bytes);
  const std::size_t before = body_bytes_.fetch_sub(bytes, std::memory_order_relaxed);
  ASSERT(before >= bytes);
}

// ---- A core ----

Admission::Admission(std::shared_ptr<NodeAdmission> node, AdmissionLimits::Core core,
                     AdmissionLimits::Connection connection)
    : node_(std::move(node)),
      core_(core),
      connection_(connection),
      request_bytes_(node_->limits_.request_bytes_max, node_->request_bytes_),
      result_bytes_(node_->limits_.result_bytes_max, node_->result_bytes_) {}

bool Admission::try_begin_refusal() {
  if (refusals_ >= core_.connections_refused_max) return false;
  ++refusals_;
  return true;
}

void Admission::end_refusal() {
  ASSERT(refusals_ > 0);
  --refusals_;
}

bool Admission::BodyCharge::grow_to(std::size_t bytes) {
  if (bytes <= bytes_) return true;
  if (!has_turn_ && !node_.try_take_body(client_, bytes - bytes_)) {
    if (!node_.try_take_turn()) return false;
    node_.give_back_body(client_, bytes_);
    has_turn_ = true;
  }
  bytes_ = bytes;
  return true;
}

void Admission::BodyCharge::release() {
  const std::size_t bytes = std::exchange(bytes_, 0);
  if (std::exchange(has_turn_, false)) {
    node_.give_back_turn();
  } else if (bytes > 0) {
    node_.give_back_body(client_, bytes);
  }
}

}  // namespace helenus::cql
