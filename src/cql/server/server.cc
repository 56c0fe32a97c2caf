#include "cql/server/server.h"

#include <utility>

#include "runtime/random.h"
#include "runtime/sleep.h"

namespace helenus::cql {

using base::Errc;
using base::kv;
using runtime::Task;
using runtime::Until;
using namespace std::chrono_literals;

namespace {

constexpr runtime::Duration kAcceptRetryDelay = 100ms;
// How long one that is refused may take to ask for something, and to read the refusal.
constexpr runtime::Duration kRefusedTimeout = 2s;

protocol::Response supported(const std::string& cql_version) {
  constexpr unsigned kOld = protocol::kVersion;
  constexpr unsigned kNew = protocol::kVersionOfSegments;
  return protocol::Response::of(protocol::SupportedMessage{
      .options = {{std::string(protocol::kOptionCqlVersion), {cql_version}},
                  {std::string(protocol::kOptionCompression),
                   {std::string(name_of(protocol::Compression::lz4))}},
                  {std::string(protocol::kOptionProtocolVersions),
                   {fmt::format("{0}/v{0}", kOld), fmt::format("{0}/v{0}", kNew)}}}});
}

ConnectionTimeouts brief(ConnectionTimeouts timeouts) {
  timeouts.startup_timeout = kRefusedTimeout;
  timeouts.frame_timeout = kRefusedTimeout;
  timeouts.write_timeout = kRefusedTimeout;
  timeouts.linger_timeout = kRefusedTimeout;
  return timeouts;
}

}  // namespace

Server::Server(runtime::Runtime& runtime, RequestHandler& handler, ServerOptions options)
    : runtime_(runtime),
      options_(std::move(options)),
      refused_timeouts_(brief(options_.timeouts)),
      log_(runtime.logger("cql.server")),
      own_admission_(options_.admission == nullptr
                         ? std::make_unique<Admission>(
                               options_.limits, NodeAdmission::HashKeys::drawn(runtime.random))
                         : nullptr),
      admission_(options_.admission == nullptr ? own_admission_.get() : options_.admission),
      supported_(supported(options_.cql_version)),
      context_{.runtime = runtime,
               .handler = handler,
               .admission = *admission_,
               .statistics = statistics_,
               .supported = supported_,
               .timeouts = options_.timeouts,
               .standstill = standstill_},
      refused_context_{.runtime = runtime,
                       .handler = handler,
                       .admission = *admission_,
                       .statistics = statistics_,
                       .supported = supported_,
                       .timeouts = refused_timeouts_,
                       .standstill = standstill_},
      standstill_(runtime, options_.timeouts.lost_after,
                  [this](runtime::Duration duration) { on_standstill(duration); }),
      tasks_(runtime) {
  const AdmissionLimits::Node& limits = admission_->node_limits();
  ASSERT(limits.request_bytes_max >= (2 * limits.request_size_max) + Connection::kRequestOverhead);
}

base::Result<void> Server::start(const runtime::Address& address) {
  ASSERT(listener_ == nullptr && !stopping_.stop_requested());
  runtime::ListenOptions listen;
  listen.shared_between_cores = options_.shared_between_cores;
  listen.lost_after = options_.timeouts.lost_after;
  TRY(listener_, runtime_.transport.listen(address, listen));
  tasks_.spawn(accept_connections());
  tasks_.spawn(standstill_.run(stopping_.token()));
  return {};
}

Task<void> Server::stop() {
  stopping_.request_stop();
  if (listener_ != nullptr) listener_->close();
  for (const auto& [id, connection] : connections_) connection->drain();
  for (const auto& [id, connection] : refused_) connection->abort();
  const auto drained = co_await tasks_.join(Until::after(runtime_, options_.drain_timeout));
  if (!drained) {
    log_.warn("requests did not end in time", kv("connections", connections_.size()),
              kv("requests", statistics_.requests_current));
    for (const auto& [id, connection] : connections_) connection->abort();
  }
  co_await tasks_.join();
}

Task<void> Server::accept_connections() {
  const runtime::StopToken stop = stopping_.token();
  for (;;) {
    auto stream = co_await listener_->accept({.stop = stop});
    if (stream) {
      admit(*std::move(stream));
      continue;
    }
    if (stream.failed_with(Errc::cancelled) || stream.failed_with(Errc::closed)) co_return;
    log_.warn("accepting a connection failed", kv("error", stream.error()));
    const auto paused = co_await runtime::sleep_for(runtime_, kAcceptRetryDelay, stop);
    if (!paused) co_return;
  }
}

void Server::on_standstill(runtime::Duration duration) {
  if (connections_.empty() && refused_.empty()) return;
  log_.warn("this core stood still: its clients' connections are closed", kv("ms", duration / 1ms),
            kv("connections", connections_.size()));
  statistics_.connections_timed_out += connections_.size();
  for (const auto& [id, connection] : connections_) connection->abort();
  for (const auto& [id, connection] : refused_) connection->abort();
}

void Server::admit(std::unique_ptr<runtime::Stream> stream) {
  ++statistics_.connections_accepted;
  const std::optional<Refusal> refusal = admission_->try_connect(stream->peer_address());
  if (!refusal) {
    ++statistics_.connections_current;
    tasks_.spawn(serve(std::move(stream)));
    return;
  }
  ++statistics_.connections_refused;
  if (admission_->try_begin_refusal()) tasks_.spawn(turn_away(std::move(stream), *refusal));
}

Task<void> Server::serve(std::unique_ptr<runtime::Stream> stream) {
  const std::uint64_t id = next_id_++;
  const runtime::Address client = stream->peer_address();
  if (!stopping_.stop_requested()) {
    Connection connection(context_, std::move(stream), id);
    connections_.emplace(id, &connection);
    co_await connection.run();
    connections_.erase(id);
  }
  --statistics_.connections_current;
  admission_->disconnect(client);
}

Task<void> Server::turn_away(std::unique_ptr<runtime::Stream> stream, Refusal refusal) {
  const std::uint64_t id = next_id_++;
  if (!stopping_.stop_requested()) {
    Connection connection(refused_context_, std::move(stream), id, refusal);
    refused_.emplace(id, &connection);
    co_await connection.run();
    refused_.erase(id);
  }
  admission_->end_refusal();
}

void Server::broadcast(const protocol::Event& event) {
  const base::Bytes frame = protocol::encode_event_frame(event);
  for (const auto& [id, connection] : connections_) {
    connection->send_event(protocol::kind_of(event), frame);
  }
}

std::vector<ClientInfo> Server::clients() const {
  std::vector<ClientInfo> clients;
  clients.reserve(connections_.size());
  for (const auto& [id, connection] : connections_) {
    const Session& session = connection->session();
    clients.push_back({.id = id,
                       .address = session.client,
                       .connected_at = session.connected_at,
                       .driver_name = session.driver_name,
                       .driver_version = session.driver_version,
                       .keyspace = session.keyspace,
                       .compression = std::string(name_of(session.compression)),
                       .requests = connection->requests_served(),
                       .requests_under_way = connection->requests_under_way()});
  }
  return clients;
}

}  // namespace helenus::cql
