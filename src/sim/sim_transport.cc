#include "sim/sim_transport.h"

#include <algorithm>
#include <utility>

#include "sim/core.h"
#include "sim/machine.h"

namespace helenus::sim {

using base::Errc;
using base::Error;

SimStream::SimStream(runtime::Runtime& runtime, Tcp& tcp, Endpoint& endpoint)
    : Stream(runtime),
      tcp_(tcp),
      endpoint_(&endpoint),
      local_(endpoint.local_address),
      peer_(endpoint.peer_address) {
  ASSERT(endpoint.stream == nullptr);
  endpoint.stream = this;
}

SimStream::~SimStream() {
  if (endpoint_ == nullptr) return;
  ASSERT(endpoint_->read == nullptr && endpoint_->write == nullptr, "destroyed while in use");
  close();
}

void SimStream::shutdown_write() {
  if (endpoint_ != nullptr) tcp_.shutdown_write(*endpoint_);
}

void SimStream::close() {
  if (endpoint_ == nullptr) return;
  Endpoint& endpoint = *std::exchange(endpoint_, nullptr);
  Read* const read = std::exchange(endpoint.read, nullptr);
  Write* const write = std::exchange(endpoint.write, nullptr);
  endpoint.stream = nullptr;
  tcp_.detach(endpoint);
  if (read != nullptr) read->complete(Error(Errc::closed));
  if (write != nullptr) write->complete(Error(Errc::closed));
}

void SimStream::start_read(Read& read) {
  if (endpoint_ == nullptr) return read.complete(Error(Errc::closed));
  tcp_.start_read(*endpoint_, read);
}

void SimStream::cancel_read(Read& read) {
  ASSERT(endpoint_ != nullptr && endpoint_->read == &read);
  endpoint_->read = nullptr;
  read.complete(Error(Errc::cancelled));
}

void SimStream::start_write(Write& write) {
  ASSERT(write.pieces.size() <= kPiecesMax, "{} pieces", write.pieces.size());
  // After a write that was cut, part of it may have gone out: more would be taken for its rest.
  if (endpoint_ == nullptr || write_failed_) return write.complete(Error(Errc::closed));
  tcp_.start_write(*endpoint_, write);
}

void SimStream::cancel_write(Write& write) {
  ASSERT(endpoint_ != nullptr && endpoint_->write == &write);
  endpoint_->write = nullptr;
  write_failed_ = true;
  write.complete(Error(Errc::cancelled));
}

SimListener::SimListener(Core& core, Tcp& tcp, std::uint64_t id, runtime::Address address,
                         runtime::ListenOptions options)
    : Listener(core.runtime()),
      core_(core),
      tcp_(tcp),
      id_(id),
      address_(address),
      options_(options) {}

SimListener::~SimListener() {
  ASSERT(closed_ || accept_ == nullptr, "destroyed while in use");
  close();
}

bool SimListener::full() const {
  return shaking_hands_ + static_cast<int>(waiting_.size()) >= std::max(options_.backlog, 1);
}

void SimListener::enqueue(EndpointId endpoint) {
  waiting_.push_back(endpoint);
  if (accept_ == nullptr) return;
  Accept& accept = *std::exchange(accept_, nullptr);
  const EndpointId first = waiting_.front();
  waiting_.pop_front();
  accept.complete(tcp_.make_stream(first));
}

void SimListener::close() {
  if (closed_) return;
  closed_ = true;
  tcp_.close(*this);
  if (accept_ != nullptr) std::exchange(accept_, nullptr)->complete(Error(Errc::closed));
}

void SimListener::on_detached() {
  closed_ = true;
  accept_ = nullptr;
}

void SimListener::start_accept(Accept& accept) {
  if (closed_) return accept.complete(Error(Errc::closed));
  ASSERT(accept_ == nullptr, "one accept at a time");
  if (waiting_.empty()) {
    accept_ = &accept;
    return;
  }
  const EndpointId first = waiting_.front();
  waiting_.pop_front();
  accept.complete(tcp_.make_stream(first));
}

void SimListener::cancel_accept(Accept& accept) {
  ASSERT(accept_ == &accept);
  accept_ = nullptr;
  accept.complete(Error(Errc::cancelled));
}

base::Result<std::unique_ptr<runtime::Listener>> SimTransport::listen(
    const runtime::Address& address, runtime::ListenOptions options) {
  return tcp_.listen(core_, address, options);
}

namespace {

// Lets go of an endpoint unless it became a stream.
class Claim {
 public:
  Claim(Tcp& tcp, EndpointId endpoint) : tcp_(tcp), endpoint_(endpoint) {}
  ~Claim() {
    if (endpoint_ != 0) tcp_.abandon(endpoint_);
  }
  Claim(const Claim&) = delete;
  Claim& operator=(const Claim&) = delete;
  EndpointId take() { return std::exchange(endpoint_, 0); }

 private:
  Tcp& tcp_;
  EndpointId endpoint_;
};

}  // namespace

runtime::Task<base::Result<std::unique_ptr<runtime::Stream>>> SimTransport::connect(
    runtime::Address address, runtime::Until until, std::optional<runtime::Address> from) {
  const auto doing = fmt::format("connecting to {}", address);
  const auto to_machine = tcp_.machine_at(core_.machine().id(), address);
  if (!to_machine) co_return Error(Errc::unavailable, "{}: no such machine", doing);
  CO_TRY(const EndpointId endpoint, tcp_.prepare(core_, address, *to_machine, from));
  Claim claim(tcp_, endpoint);
  auto connected = co_await Connecting(core_.runtime(), tcp_, endpoint, std::move(until));
  if (!connected) co_return std::move(connected).error().within(doing);
  co_return tcp_.make_stream(claim.take());
}

void Connecting::start() {
  tcp_.start_connecting(endpoint_, *this);
}

void Connecting::cancel() {
  tcp_.abandon(endpoint_);
  complete(Error(Errc::cancelled));
}

}  // namespace helenus::sim
