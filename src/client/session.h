// Session: a client of a cluster. Keeps one connection to each node it was told of, opens it again
// when it breaks, and sends each statement to the next node in turn or to the one that the caller
// names.
//
//   Session session(rt, {.contact_points = {a, b, c}});
//   CO_TRY_VOID(co_await session.start(Until::after(rt, 10s)));
//   auto result = co_await session.execute(Query{.text = "..."}, {}, {}, Until::after(rt, 1s));
//   co_await session.stop();
//
// A statement is sent once. It goes to another node only if the one before took no byte of it, or
// if the caller says that it is idempotent. A node that does not know a prepared statement
// (UNPREPARED, so nothing was executed) is told its text, and the statement is sent to it again.
//
// Core affinity: the core of its Runtime.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/log.h"
#include "base/result.h"
#include "client/connection.h"
#include "client/request_error.h"
#include "client/result_set.h"
#include "client/statement.h"
#include "cql/protocol/response.h"
#include "runtime/address.h"
#include "runtime/gate.h"
#include "runtime/operation.h"
#include "runtime/runtime.h"
#include "runtime/stop_token.h"
#include "runtime/task.h"
#include "runtime/task_group.h"
#include "runtime/wait_queue.h"

namespace helenus::client {

struct SessionOptions {
  // The nodes to talk to: at most kNodesMax, each of them once.
  std::vector<runtime::Address> contact_points;
  ConnectionOptions connection = {};
  runtime::Duration connect_timeout = std::chrono::seconds(5);
  // The pause after a failed attempt to connect doubles from the first to the second, and is drawn
  // from its upper half. So it does after a connection that lived less than the second.
  runtime::Duration back_off_min = std::chrono::milliseconds(100);
  runtime::Duration back_off_max = std::chrono::seconds(10);
  // Told of every event of every connection, and so several times of the same thing.
  Connection::EventSink on_event = {};
};

// Where a statement goes.
struct Route {
  // That node and no other; without it, the next one that is connected.
  std::optional<runtime::Address> node = std::nullopt;
  // The statement may be executed more than once: it is sent to the next node when its outcome on
  // one is unknown, or when that one answers OVERLOADED or BOOTSTRAPPING. Not if `node` is named.
  bool idempotent = false;
  // How long one node may take, where another may be tried.
  runtime::Duration attempt_timeout = runtime::Duration::max();
};

struct NodeStatus {
  runtime::Address address;
  bool connected = false;
  // What nodes last said of it by STATUS_CHANGE.
  std::optional<cql::protocol::StatusChangeKind> reported;
  // Why it is not connected; none if it is, or if the first attempt is under way.
  std::optional<base::Error> problem;
};

class Session {
 public:
  static constexpr std::size_t kNodesMax = 1024;
  // Nodes that one statement is sent to at most.
  static constexpr std::size_t kAttemptsMax = 4;

  // Requires: 1 to kNodesMax contact points.
  Session(runtime::Runtime& runtime, SessionOptions options);
  // Requires: stop() returned, or start() was never called, or the core has halted.
  ~Session() = default;
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // Begins to connect to all nodes and returns when one is connected. After an error (timeout,
  // cancelled) it goes on in the background; call stop() to end it. Once.
  runtime::Task<base::Result<void>> start(runtime::Until until);
  // Closes all connections; statements under way end as Connection::close() says. Returns when
  // nothing runs here any more and every caller has left. For good.
  runtime::Task<void> stop();

  // Errors: timeout, cancelled; not_found (no node of this session); closed.
  runtime::Task<base::Result<void>> wait_connected(runtime::Address node, runtime::Until until);
  // In the order of the contact points.
  std::vector<NodeStatus> nodes() const;

  // Does not wait for a connection: without one (to the node named) it fails at once, not sent,
  // with Errc::unavailable.
  runtime::Task<RequestResult<ResultSet>> execute(Statement statement, RequestOptions options,
                                                  Route route, runtime::Until until);
  // Prepares on one node. The others are told when they first need it.
  runtime::Task<RequestResult<Prepared>> prepare(std::string text, Route route,
                                                 runtime::Until until);

 private:
  // What is known of one node. Lives as long as the session.
  struct Link {
    Link(runtime::Runtime& runtime, runtime::Address address_)
        : address(address_), hurry(runtime) {}

    // The connection, if it is fit for statements.
    Connection* usable() const {
      return ready && connection->is_open() ? connection.get() : nullptr;
    }

    const runtime::Address address;
    std::unique_ptr<Connection> connection;
    bool ready = false;  // it is started up and registered for events
    std::optional<cql::protocol::StatusChangeKind> reported;
    std::optional<base::Error> problem;
    std::uint32_t failures = 0;  // in a row
    runtime::WaitQueue hurry;    // ends the pause before the next attempt
  };

  runtime::Task<void> keep_connected(Link& link);
  // Connects, and returns why that failed, or why the connection ended.
  runtime::Task<base::Error> stay_connected(Link& link);
  runtime::Duration draw_pause(std::uint32_t failures);
  void on_event(const cql::protocol::Event& event);

  Link* find(const runtime::Address& address) const;
  // The next node to send a statement to; null if there is none left.
  Link* pick(const Route& route, const std::vector<const Link*>& tried);
  bool may_go_elsewhere(const RequestError& error, const Route& route) const;
  // On one node; prepares there what it does not know.
  runtime::Task<RequestResult<ResultSet>> execute_on(Link& link, Statement statement,
                                                     RequestOptions options, runtime::Until until);
  runtime::Task<bool> prepare_again(Link& link, Prepared prepared, runtime::Until until);

  runtime::Runtime& runtime_;
  const SessionOptions options_;
  base::Logger log_;
  std::vector<std::unique_ptr<Link>> links_;
  std::size_t turn_ = 0;
  bool started_ = false;
  runtime::WaitQueue connected_;  // woken whenever a node becomes usable
  runtime::Gate gate_;
  runtime::StopSource stopping_;
  runtime::TaskGroup tasks_;
};

}  // namespace helenus::client
