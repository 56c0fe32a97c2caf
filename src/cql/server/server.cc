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
  const std::string version = fmt::format("{}/v{}", protocol::kVersion, protocol::kVersion);
  return protocol::Response::of(protocol::SupportedMessage{
      .options = {{std::string(protocol::kOptionCqlVersion), {cql_version}},
                  {std::string(protocol::kOptionCompression),
                   {std::string(name_of(protocol::Compression::lz4))}},
                  {std::string(protocol::kOptionProtocolVersions), {version}}}});
}

ConnectionLimits brief(ConnectionLimits limits) {
  limits.startup_timeout = kRefusedTimeout;
  limits.frame_timeout = kRefusedTimeout;
  limits.write_timeout = kRefusedTimeout;
  limits.linger_timeout = kRefusedTimeout;
  return limits;
}

}  // namespace

Server::Server(runtime::Runtime& runtime, RequestHandler& handler, ServerOptions options)
    : runtime_(runtime),
      options_(std::move(options)),
      connection_limit_(options_.connections != nullptr
                            ? options_.connections
                            : std::make_shared<ConnectionLimit>(
                                  options_.connections_max,
                                  ConnectionLimit::PerAddress{
                                      .connections_max = options_.connections_per_address_max,
                                      .hash_key = runtime.random.next()})),
      refused_limits_(brief(options_.connection)),
      log_(runtime.logger("cql.server")),
      request_bytes_(options_.request_bytes_max, options_.request_bytes),
      incomplete_requests_(
          options_.incomplete_requests != nullptr
              ? options_.incomplete_requests
              : std::make_shared<IncompleteRequests>(
                    IncompleteRequests::limits_within(options_.request_bytes_max,
                                                      options_.connection.body_size_max),
                    runtime.random.next())),
      supported_(supported(options_.cql_version)),
      context_{.runtime = runtime,
               .handler = handler,
               .request_bytes = request_bytes_,
               .incomplete_requests = *incomplete_requests_,
               .statistics = statistics_,
               .supported = supported_,
               .limits = options_.connection},
      refused_context_{.runtime = runtime,
                       .handler = handler,
                       .request_bytes = request_bytes_,
                       .incomplete_requests = *incomplete_requests_,
                       .statistics = statistics_,
                       .supported = supported_,
                       .limits = refused_limits_},
      tasks_(runtime) {
  const std::size_t largest =
      (2 * options_.connection.body_size_max) + Connection::kRequestOverhead;
  ASSERT(options_.request_bytes_max >= largest);
  ASSERT(options_.request_bytes == nullptr || options_.request_bytes->bytes_max() >= largest);
}

base::Result<void> Server::start(const runtime::Address& address) {
  ASSERT(listener_ == nullptr && !stopping_.stop_requested());
  runtime::ListenOptions listen;
  listen.shared_between_cores = options_.shared_between_cores;
  TRY(listener_, runtime_.transport.listen(address, listen));
  tasks_.spawn(accept_connections());
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

void Server::admit(std::unique_ptr<runtime::Stream> stream) {
  ++statistics_.connections_accepted;
  const auto entry = connection_limit_->try_enter(stream->peer_address());
  if (entry == ConnectionLimit::Admission::admitted) {
    ++statistics_.connections_current;
    tasks_.spawn(serve(std::move(stream)));
    return;
  }
  ++statistics_.connections_refused;
  if (connections_refused_current_ < options_.connections_refused_max) {
    ++connections_refused_current_;
    tasks_.spawn(turn_away(std::move(stream), entry == ConnectionLimit::Admission::address_is_full
                                                  ? Connection::Admission::refused_address
                                                  : Connection::Admission::refused));
  }
}

Task<void> Server::serve(std::unique_ptr<runtime::Stream> stream) {
  const std::uint64_t id = next_id_++;
  const runtime::Address client = stream->peer_address();
  if (!stopping_.stop_requested()) {
    Connection connection(context_, std::move(stream), id, Connection::Admission::served);
    connections_.emplace(id, &connection);
    co_await connection.run();
    connections_.erase(id);
  }
  --statistics_.connections_current;
  connection_limit_->leave(client);
}

Task<void> Server::turn_away(std::unique_ptr<runtime::Stream> stream,
                             Connection::Admission refusal) {
  const std::uint64_t id = next_id_++;
  if (!stopping_.stop_requested()) {
    Connection connection(refused_context_, std::move(stream), id, refusal);
    refused_.emplace(id, &connection);
    co_await connection.run();
    refused_.erase(id);
  }
  --connections_refused_current_;
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
