#include "client/session.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "base/assert.h"
#include "runtime/random.h"

namespace helenus::client {

using base::Errc;
using base::Error;
using base::kv;
using base::Result;
using cql::protocol::ErrorCode;
using cql::protocol::EventKind;
using cql::protocol::StatusChange;
using cql::protocol::StatusChangeKind;
using runtime::Address;
using runtime::Duration;
using runtime::Task;
using runtime::Until;

namespace {

bool is_at(const cql::protocol::Inet& node, const Address& address) {
  return node.port == address.port() && base::as_text(node.ip()) == address.ip_bytes();
}

Error not_connected(const Address& address) {
  return Error(Errc::unavailable, "{} is not connected", address);
}

}  // namespace

Session::Session(runtime::Runtime& runtime, SessionOptions options)
    : runtime_(runtime),
      options_(std::move(options)),
      log_(runtime.logger("client")),
      connected_(runtime),
      gate_(runtime),
      tasks_(runtime) {
  for (const Address& address : options_.contact_points) {
    if (find(address) == nullptr) links_.push_back(std::make_unique<Link>(runtime, address));
  }
  ASSERT(!links_.empty() && links_.size() <= kNodesMax, "{} contact points", links_.size());
}

// ---- Connections ----

Task<Result<void>> Session::start(Until until) {
  ASSERT(!std::exchange(started_, true), "a session starts once");
  const auto pass = gate_.enter();
  if (!pass) co_return pass.error();
  for (const auto& link : links_) tasks_.spawn(keep_connected(*link));
  const auto is_usable = [](const auto& link) { return link->usable() != nullptr; };
  while (std::ranges::none_of(links_, is_usable)) {
    if (stopping_.stop_requested()) co_return Error(Errc::closed, "the session was stopped");
    CO_TRY_VOID(co_await connected_.wait(until));
  }
  co_return {};
}

Task<void> Session::stop() {
  stopping_.request_stop();
  connected_.wake_all();
  co_await tasks_.join();
  co_await gate_.close();
}

Task<Result<void>> Session::wait_connected(Address node, Until until) {
  const auto pass = gate_.enter();
  if (!pass) co_return pass.error();
  const Link* link = find(node);
  if (link == nullptr) co_return Error(Errc::not_found, "{} is no node of this session", node);
  while (link->usable() == nullptr) {
    if (stopping_.stop_requested()) co_return Error(Errc::closed, "the session was stopped");
    CO_TRY_VOID(co_await connected_.wait(until));
  }
  co_return {};
}

std::vector<NodeStatus> Session::nodes() const {
  std::vector<NodeStatus> nodes;
  for (const auto& link : links_) {
    nodes.push_back({.address = link->address,
                     .connected = link->usable() != nullptr,
                     .reported = link->reported,
                     .problem = link->problem});
  }
  return nodes;
}

Task<void> Session::keep_connected(Link& link) {
  while (!stopping_.stop_requested()) {
    const auto began_at = runtime_.clock.now();
    link.problem = co_await stay_connected(link);
    if (stopping_.stop_requested()) co_return;
    log_.debug("no connection to a node", kv("address", link.address), kv("reason", *link.problem));
    if (runtime_.clock.now() - began_at >= options_.back_off_max) link.failures = 0;
    const Duration pause = draw_pause(link.failures++);
    // A node that is reported up is tried at once: woken or not, it goes on.
    std::ignore = co_await link.hurry.wait(Until::after(runtime_, pause, stopping_.token()));
  }
}

Task<Error> Session::stay_connected(Link& link) {
  const auto until = Until::after(runtime_, options_.connect_timeout, stopping_.token());
  auto opened =
      co_await Connection::open(runtime_, link.address, options_.connection, until,
                                [this](const cql::protocol::Event& event) { on_event(event); });
  if (!opened) co_return std::move(opened).error();
  link.connection = *std::move(opened);
  const auto registered = co_await link.connection->register_for(
      {EventKind::topology_change, EventKind::status_change, EventKind::schema_change}, until);
  std::optional<Error> problem;
  if (registered) {
    link.ready = true;
    link.problem.reset();
    connected_.wake_all();
    const auto closed = co_await link.connection->wait_closed({.stop = stopping_.token()});
    problem = closed ? *link.connection->closed_by() : closed.error();
    link.ready = false;
  } else {
    problem = registered.error().to_error();
  }
  co_await link.connection->stop();
  link.connection.reset();
  co_return *std::move(problem);
}

Duration Session::draw_pause(std::uint32_t failures) {
  const std::uint32_t doublings = std::min<std::uint32_t>(failures, 20);
  const Duration pause = std::min(options_.back_off_max, options_.back_off_min * (1U << doublings));
  const auto half = static_cast<std::uint64_t>(pause.count() / 2);
  return Duration(static_cast<std::int64_t>(half + runtime_.random.between(0, half)));
}

void Session::on_event(const cql::protocol::Event& event) {
  if (const auto* change = std::get_if<StatusChange>(&event)) {
    for (const auto& link : links_) {
      if (!is_at(change->node, link->address)) continue;
      link->reported = change->kind;
      if (change->kind == StatusChangeKind::up) link->hurry.wake_all();
    }
  }
  if (options_.on_event) options_.on_event(event);
}

// ---- Statements ----

Session::Link* Session::find(const Address& address) const {
  const auto found =
      std::ranges::find_if(links_, [&](const auto& link) { return link->address == address; });
  return found == links_.end() ? nullptr : found->get();
}

Session::Link* Session::pick(const Route& route, const std::vector<const Link*>& tried) {
  const auto was_tried = [&](const Link* link) {
    return std::ranges::find(tried, link) != tried.end();
  };
  if (route.node) {
    Link* link = find(*route.node);
    return link != nullptr && link->usable() != nullptr && !was_tried(link) ? link : nullptr;
  }
  // A node that others say is down is taken only if there is no other.
  for (const bool also_down : {false, true}) {
    for (std::size_t i = 0; i < links_.size(); ++i) {
      const std::size_t index = (turn_ + i) % links_.size();
      Link* link = links_[index].get();
      if (link->usable() == nullptr || was_tried(link)) continue;
      if (!also_down && link->reported == StatusChangeKind::down) continue;
      turn_ = (index + 1) % links_.size();
      return link;
    }
  }
  return nullptr;
}

bool Session::may_go_elsewhere(const RequestError& error, const Route& route) const {
  if (route.node || stopping_.stop_requested() || error.is(Errc::cancelled)) return false;
  switch (error.fate()) {
    case Fate::not_sent:
      return !error.is(Errc::invalid_argument);
    case Fate::unknown:
      return route.idempotent;
    case Fate::answered:
      return route.idempotent &&
             (error.is(ErrorCode::overloaded) || error.is(ErrorCode::bootstrapping));
  }
  UNREACHABLE("fate {}", static_cast<unsigned>(error.fate()));
}

Task<RequestResult<ResultSet>> Session::execute(Statement statement, RequestOptions options,
                                                Route route, Until until) {
  const auto pass = gate_.enter();
  if (!pass) co_return RequestError::not_sent(pass.error());
  auto last = RequestError::not_sent(route.node ? not_connected(*route.node)
                                                : Error(Errc::unavailable, "no node is connected"));
  std::vector<const Link*> tried;
  bool in_doubt = false;
  for (std::size_t attempt = 0; attempt < kAttemptsMax; ++attempt) {
    Link* link = pick(route, tried);
    if (link == nullptr) break;
    tried.push_back(link);
    Until attempt_until = until;
    if (!route.node) {
      attempt_until.deadline =
          std::min(until.deadline, runtime_.clock.now() + route.attempt_timeout);
    }
    auto result = co_await execute_on(*link, statement, options, std::move(attempt_until));
    if (result) co_return result;
    // What an attempt left in doubt is not forgotten for one after it that was not sent.
    if (!in_doubt || result.error().fate() != Fate::not_sent) last = std::move(result).error();
    in_doubt = in_doubt || last.fate() == Fate::unknown;
    if (!may_go_elsewhere(last, route)) break;
    if (until.stop.stop_requested() || runtime_.clock.now() >= until.deadline) break;
  }
  co_return in_doubt ? std::move(last).after_doubt() : std::move(last);
}

Task<RequestResult<ResultSet>> Session::execute_on(Link& link, Statement statement,
                                                   RequestOptions options, Until until) {
  // A server may forget one statement while it is told another: there is an end to it.
  for (std::size_t missing = 0;; ++missing) {
    Connection* connection = link.usable();
    if (connection == nullptr) co_return RequestError::not_sent(not_connected(link.address));
    auto result = co_await connection->execute(statement, options, until);
    if (!result.failed_with(ErrorCode::unprepared)) co_return result;
    if (missing >= prepared_count(statement)) co_return result;
    const auto& details =
        std::get<cql::protocol::UnpreparedDetails>(result.error().answer()->details);
    const Prepared prepared = find_prepared(statement, details.id);
    if (prepared == nullptr) co_return result;
    const bool known = co_await prepare_again(link, prepared, until);
    if (!known) co_return result;
  }
}

Task<bool> Session::prepare_again(Link& link, Prepared prepared, Until until) {
  Connection* connection = link.usable();
  if (connection == nullptr) co_return false;
  const auto again = co_await connection->prepare(prepared->text, std::move(until));
  co_return again && (*again)->id == prepared->id;
}

Task<RequestResult<Prepared>> Session::prepare(std::string text, Route route, Until until) {
  const auto pass = gate_.enter();
  if (!pass) co_return RequestError::not_sent(pass.error());
  Link* link = pick(route, {});
  if (link == nullptr) {
    co_return RequestError::not_sent(route.node ? not_connected(*route.node)
                                                : Error(Errc::unavailable, "no node is connected"));
  }
  auto prepared = co_await link->usable()->prepare(std::move(text), std::move(until));
  co_return prepared;
}

}  // namespace helenus::client
