// SimTransport: the transport of one simulated core, over Tcp.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "runtime/transport.h"
#include "sim/tcp.h"

namespace helenus::sim {

class Core;

class SimStream final : public runtime::Stream {
 public:
  // Attaches itself to the endpoint.
  SimStream(runtime::Runtime& runtime, Tcp& tcp, Endpoint& endpoint);
  ~SimStream() override;

  void shutdown_write() override;
  void close() override;
  runtime::Address local_address() const override { return local_; }
  runtime::Address peer_address() const override { return peer_; }

  // The kernel has taken the endpoint away: the process is gone.
  void on_detached() { endpoint_ = nullptr; }

 private:
  void start_read(Read& read) override;
  void cancel_read(Read& read) override;
  void start_write(Write& write) override;
  void cancel_write(Write& write) override;

  Tcp& tcp_;
  Endpoint* endpoint_;
  const runtime::Address local_;
  const runtime::Address peer_;
  bool write_failed_ = false;
};

class SimListener final : public runtime::Listener {
 public:
  SimListener(Core& core, Tcp& tcp, std::uint64_t id, runtime::Address address,
              runtime::ListenOptions options);
  ~SimListener() override;

  runtime::Address address() const override { return address_; }
  void close() override;

  std::uint64_t id() const { return id_; }
  bool shared() const { return options_.shared_between_cores; }
  std::optional<Duration> lost_after() const { return options_.lost_after; }
  Core& core() { return core_; }
  // Connections that shake hands or wait to be accepted.
  bool full() const;
  void on_handshake() { ++shaking_hands_; }
  void on_handshake_over() { --shaking_hands_; }
  void enqueue(EndpointId endpoint);
  std::deque<EndpointId>& waiting() { return waiting_; }
  // The process is gone.
  void on_detached();

 private:
  void start_accept(Accept& accept) override;
  void cancel_accept(Accept& accept) override;

  Core& core_;
  Tcp& tcp_;
  const std::uint64_t id_;
  const runtime::Address address_;
  const runtime::ListenOptions options_;
  bool closed_ = false;
  int shaking_hands_ = 0;
  std::deque<EndpointId> waiting_;
  Accept* accept_ = nullptr;
};

class SimTransport final : public runtime::Transport {
 public:
  SimTransport(Core& core, Tcp& tcp) : core_(core), tcp_(tcp) {}

  using Transport::connect;
  using Transport::listen;
  base::Result<std::unique_ptr<runtime::Listener>> listen(const runtime::Address& address,
                                                          runtime::ListenOptions options) override;
  runtime::Task<base::Result<std::unique_ptr<runtime::Stream>>> connect(
      runtime::Address address, runtime::Until until,
      std::optional<runtime::Address> from) override;

 private:
  Core& core_;
  Tcp& tcp_;
};

}  // namespace helenus::sim
