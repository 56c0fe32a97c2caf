// What a node answers to its operators over HTTP (docs/operations/cluster.md).
#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "admin/table_report.h"
#include "keyvalue/key_value_metrics.h"
#include "node/node.h"

namespace helenus::node {

using base::kv;
using base::Result;
using runtime::Task;

namespace {

// How long what an operator asked for may take.
constexpr runtime::Duration kChangeTimeout = std::chrono::hours(1);

constexpr std::string_view kAcceptDataLoss = "/reentry/accept-data-loss";
constexpr std::string_view kRepair = "/cluster/repair";
constexpr std::string_view kRing = "/ring/";
constexpr std::array<std::string_view, 12> kChanges = {
    "/tables/flush", "/tables/compact",   "/tables/verify",    "/drain",
    kRepair,         kAcceptDataLoss,     "/ring/leave",       "/ring/remove",
    "/ring/abandon", "/snapshots/create", "/snapshots/remove", "/snapshots/restore"};

admin::HttpResponse json_answer(int status, std::string body) {
  return {.status = status, .content_type = "application/json", .body = std::move(body)};
}

admin::HttpResponse refusal(const base::Error& error) {
  const int status = error.code() == base::Errc::not_found          ? 404
                     : error.code() == base::Errc::invalid_argument ? 400
                                                                    : 503;
  return json_answer(status, admin::error_json(error));
}

admin::HttpResponse answer_with(Result<std::string> told) {
  return told ? json_answer(200, *std::move(told)) : refusal(told.error());
}

admin::HttpResponse method_refusal(std::string allow) {
  return {.status = 405, .body = allow + "\n", .allow = std::move(allow)};
}

}  // namespace

Task<admin::HttpResponse> Node::answer(const admin::HttpRequest& request) {
  if (request.path.starts_with(admin::kDataPath) && config_.with_database) {
    co_return co_await answer_rows(request);
  }
  const bool changes = std::ranges::find(kChanges, request.path) != kChanges.end();
  if (changes != (request.method == "POST")) {
    co_return method_refusal(changes ? "POST" : "GET, HEAD");
  }
  if (request.path == "/healthz") co_return co_await answer_health();
  if (request.path == kAcceptDataLoss && reentry_) co_return co_await answer_accept_data_loss();
  if (changes && request.path.starts_with(kRing)) co_return co_await answer_ring(request);
  if (request.path == "/ring" && ring_change_) co_return co_await answer_ring_progress();
  if (request.path.starts_with("/snapshots") && database_) {
    co_return co_await answer_snapshots(request);
  }
  if (request.path == kRepair && database_) co_return co_await answer_repair(request);
  if (changes && database_) co_return co_await answer_change(request);
  if (request.path == "/cluster/missing" && database_) co_return co_await answer_missing();
  if (request.path.starts_with("/cluster") && database_) co_return answer_cluster(request);
  if (request.path == "/compactions" && database_) co_return co_await answer_compactions();
  if (request.path == "/tables" && database_) co_return co_await answer_tables(request);
  if (request.path == "/metrics" && database_) co_return co_await answer_metrics();
  co_return no_such_path(request);
}

admin::HttpResponse Node::no_such_path(const admin::HttpRequest& request) {
  return {.status = 404,
          .body = fmt::format("nothing at {}; try /healthz, /metrics, /cluster or /tables\n",
                              request.path)};
}

Task<admin::HttpResponse> Node::answer_metrics() {
  if (!started_) co_return admin::HttpResponse{.status = 503, .body = "the node is starting\n"};
  auto metrics = co_await database_->metrics();
  if (!metrics) {
    co_return admin::HttpResponse{.status = 503, .body = metrics.error().to_string() + "\n"};
  }
  reporter_->add_metrics(*metrics);
  keyvalue::add_key_value_metrics(key_value_->statistics(), *metrics);
  co_return admin::HttpResponse{.content_type = std::string(admin::kPrometheusContentType),
                                .body = admin::to_prometheus(*metrics)};
}

admin::HttpResponse Node::answer_cluster(const admin::HttpRequest& request) const {
  using Tell = Result<std::string> (admin::ClusterReporter::*)(std::string_view) const;
  const bool is_status = request.path == "/cluster";
  const Tell tell = request.path == "/cluster/ring"      ? &admin::ClusterReporter::ring
                    : request.path == "/cluster/tablets" ? &admin::ClusterReporter::tablets
                                                         : nullptr;
  if (tell == nullptr && !is_status) return no_such_path(request);
  if (!started_) return json_answer(503, admin::starting_json(phase()));
  const auto keyspace = admin::keyspace_in(request.query);
  if (!keyspace) return refusal(keyspace.error());
  if (is_status) return answer_with(reporter_->status(*keyspace, trouble()));
  return answer_with(((*reporter_).*tell)(*keyspace));
}

std::string Node::trouble() const {
  if (!reentry_) return {};
  return reentry_->phase().empty() ? reentry_->trouble() : "this node " + reentry_->phase();
}

Task<admin::HttpResponse> Node::answer_missing() {
  if (!started_) co_return json_answer(503, admin::starting_json(phase()));
  const auto report = co_await database_->anti_entropy();
  if (!report) co_return refusal(report.error());
  co_return json_answer(200, reporter_->missing(*report));
}

Task<admin::HttpResponse> Node::answer_repair(const admin::HttpRequest& request) {
  const auto pass = changes_.enter();
  if (!pass) co_return refusal(pass.error());
  if (!started_) co_return json_answer(503, admin::starting_json(phase()));
  const auto keyspace = admin::keyspace_in(request.query);
  if (!keyspace) co_return refusal(keyspace.error());
  const auto until = runtime::Until::after(runtime_, kChangeTimeout, changes_stop_.token());
  const auto report = co_await database_->repair(*keyspace, until);
  if (!report) co_return refusal(report.error());
  co_return json_answer(200, reporter_->missing(*report));
}

Task<admin::HttpResponse> Node::answer_compactions() {
  if (!started_) co_return json_answer(503, admin::starting_json(phase()));
  const auto tables = co_await database_->compactions();
  if (!tables) co_return refusal(tables.error());
  co_return json_answer(200, admin::compactions_json(*tables));
}

Task<admin::HttpResponse> Node::answer_tables(const admin::HttpRequest& request) {
  if (!started_) co_return json_answer(503, admin::starting_json(phase()));
  const auto keyspace = admin::name_in(request.query, "keyspace");
  if (!keyspace) co_return refusal(keyspace.error());
  const auto table = admin::name_in(request.query, "table");
  if (!table) co_return refusal(table.error());
  const auto tables = co_await database_->tables(*keyspace, *table);
  if (!tables) co_return refusal(tables.error());
  co_return json_answer(200, admin::tables_json(*tables));
}

Task<admin::HttpResponse> Node::answer_rows(const admin::HttpRequest& request) {
  const auto pass = changes_.enter();
  if (!pass) co_return refusal(pass.error());
  if (!started_) co_return json_answer(503, admin::starting_json(phase()));
  if (drained_) co_return json_answer(503, R"({"error": "the node is drained"})");
  co_return co_await key_value_->answer(request, changes_stop_.token());
}

Task<admin::HttpResponse> Node::answer_change(const admin::HttpRequest& request) {
  const auto pass = changes_.enter();
  if (!pass) co_return refusal(pass.error());
  if (!started_) co_return json_answer(503, admin::starting_json(phase()));
  const auto keyspace = admin::name_in(request.query, "keyspace");
  if (!keyspace) co_return refusal(keyspace.error());
  const auto table = admin::name_in(request.query, "table");
  if (!table) co_return refusal(table.error());
  const std::string what = request.path.substr(request.path.rfind('/') + 1);
  log_.info("an operator asks for a change", kv("change", what), kv("keyspace", *keyspace),
            kv("table", *table));
  if (what == "drain") {
    if (!keyspace->empty() || !table->empty()) {
      co_return refusal(base::Error(base::Errc::invalid_argument, "a drain is of the whole node"));
    }
    co_await drain();
  }
  const auto maintenance = what == "compact"  ? Database::Maintenance::compact
                           : what == "verify" ? Database::Maintenance::verify
                                              : Database::Maintenance::flush;
  const auto until = runtime::Until::after(runtime_, kChangeTimeout, changes_stop_.token());
  const auto done = co_await database_->maintain(maintenance, *keyspace, *table, until);
  if (!done) co_return refusal(done.error());
  co_return json_answer(200, admin::done_json(what, *done));
}

// While the node starts, above all.
Task<admin::HttpResponse> Node::answer_accept_data_loss() {
  const auto pass = changes_.enter();
  if (!pass) co_return refusal(pass.error());
  const auto given_up = co_await reentry_->accept_data_loss();
  if (!given_up) co_return refusal(given_up.error());
  co_return json_answer(200, admin::done_json("accept-data-loss", given_up->size()));
}

// A node's name in a query: an id, or an address.
namespace {

Result<std::string> node_in(std::string_view query) {
  constexpr std::string_view kParameter = "node=";
  constexpr std::size_t kSizeMax = 64;
  const std::size_t at = query.starts_with(kParameter) ? 0 : query.find("&node=");
  if (at == std::string_view::npos) return base::Error(base::Errc::invalid_argument, "which node?");
  query.remove_prefix(at + kParameter.size() + (at == 0 ? 0 : 1));
  const std::string name(query.substr(0, query.find('&')));
  const bool is_name = std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'f') || (c >= '0' && c <= '9') || c == '.' || c == ':' || c == '-' ||
           c == '[' || c == ']';
  });
  if (is_name && !name.empty() && name.size() <= kSizeMax) return name;
  return base::Error(base::Errc::invalid_argument, "this is neither the id of a node nor IP:PORT");
}

}  // namespace

// Also of a node that starts: whoever joins may give that up.
Task<admin::HttpResponse> Node::answer_ring(const admin::HttpRequest& request) {
  const auto pass = changes_.enter();
  if (!pass) co_return refusal(pass.error());
  const std::string what = request.path.substr(request.path.rfind('/') + 1);
  if (!ring_change_ || !cluster_ || (!started_ && what != "abandon")) {
    co_return json_answer(503, admin::starting_json(phase()));
  }
  log_.info("an operator asks for a change of the ring", kv("change", what),
            kv("query", request.query));
  const auto until = runtime::Until::after(runtime_, kChangeTimeout, changes_stop_.token());
  Result<void> done;
  if (what == "leave") {
    done = co_await ring_change_->leave(until);
  } else if (what == "abandon") {
    done = co_await ring_change_->abandon(until);
  } else {
    const auto node = node_in(request.query);
    if (!node) co_return refusal(node.error());
    const bool accepts = request.query.find("accept_data_loss=true") != std::string::npos;
    done = co_await ring_change_->remove(*node, accepts, until);
  }
  if (!done) co_return refusal(done.error());
  co_return json_answer(200, admin::done_json(what, 0));
}

Task<admin::HttpResponse> Node::answer_ring_progress() {
  const auto pass = changes_.enter();
  if (!pass) co_return refusal(pass.error());
  // A node that joins knows the metadata before it has started.
  if (!started_ && (!cluster_ || cluster_->applied_version().value() == 0)) {
    co_return json_answer(503, admin::starting_json(phase()));
  }
  const nlohmann::ordered_json json = {{"phase", co_await ring_change_->tell()}};
  co_return json_answer(
      200, json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n");
}

// Other nodes go on with their requests about rows: without clients they become fewer. What they
// write after the flush is in the log.
Task<void> Node::drain() {
  drained_ = true;
  co_await reporter_->stop();
  co_await database_->stop_clients();
}

Task<admin::HttpResponse> Node::answer_health() {
  nlohmann::ordered_json health = {{"status", "ok"}, {"node", identity_->node.value().to_string()}};
  std::optional<Database::CoreFailure> failure;
  if (database_) failure = co_await database_->failure();
  if (stopping_) {
    health["status"] = "stopping";
  } else if (drained_) {
    health["status"] = "drained";
  } else if (failure && !failure->for_now) {
    health["status"] = "failed";
    health["core"] = failure->core;
    health["error"] = name_of(failure->error.code());
  } else if (cluster_ && cluster_->failure()) {
    health["status"] = "failed";
    health["error"] = name_of(cluster_->failure()->code());
  } else if (database_ && !started_) {
    health["status"] = "starting";
    health["phase"] = phase();
  } else if (failure) {
    const bool is_full = failure->error.code() == base::Errc::no_space;
    health["status"] = is_full ? "disk_full" : "writes_refused";
    health["core"] = failure->core;
    health["error"] = name_of(failure->error.code());
    health["reason"] = failure->error.context();
  }
  const bool is_ok = health["status"] == "ok";
  // What others say of themselves may be no UTF-8.
  co_return admin::HttpResponse{
      .status = is_ok ? 200 : 503,
      .content_type = "application/json",
      .body = health.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n"};
}

}  // namespace helenus::node
