// What a node answers to operators who keep and restore snapshots (docs/operations/snapshots.md).
#include <algorithm>
#include <chrono>
#include <utility>

#include <nlohmann/json.hpp>

#include "node/node.h"

namespace helenus::node {

using base::Errc;
using base::Error;
using base::Result;
using runtime::Task;
using Json = nlohmann::ordered_json;

namespace {

// How long what an operator asked for may take.
constexpr runtime::Duration kSnapshotTimeout = std::chrono::hours(1);

std::string text_of_json(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

admin::HttpResponse json_of(const Json& json) {
  return {.status = 200, .content_type = "application/json", .body = text_of_json(json)};
}

admin::HttpResponse refused_with(const Error& error) {
  const int status = error.code() == Errc::not_found          ? 404
                     : error.code() == Errc::invalid_argument ? 400
                     : error.code() == Errc::already_exists   ? 409
                                                              : 503;
  return {.status = status, .content_type = "application/json", .body = admin::error_json(error)};
}

// What stands behind "name=" in the query; empty if nothing does.
std::string_view parameter_in(std::string_view query, std::string_view parameter) {
  while (!query.empty()) {
    const std::size_t end = std::min(query.find('&'), query.size());
    std::string_view value = query.substr(0, end);
    query.remove_prefix(std::min(end + 1, query.size()));
    if (!value.starts_with(parameter)) continue;
    value.remove_prefix(parameter.size());
    if (value.starts_with('=')) return value.substr(1);
  }
  return {};
}

// a,b,c
Result<std::vector<std::string>> keyspaces_in(std::string_view query) {
  std::vector<std::string> keyspaces;
  std::string_view list = parameter_in(query, "keyspaces");
  while (!list.empty()) {
    const std::size_t end = std::min(list.find(','), list.size());
    TRY(auto name, admin::keyspace_in("keyspace=" + std::string(list.substr(0, end))));
    keyspaces.push_back(std::move(name));
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return keyspaces;
}

Json json_of_snapshot(const std::string& name, const SnapshotDescription& description) {
  Json keyspaces = Json::array();
  std::size_t tables = 0;
  for (const SnapshotDescription::Keyspace& keyspace : description.keyspaces) {
    keyspaces.push_back(keyspace.name);
    for (const auto& table : keyspace.tables) tables += table.is_index ? 0 : 1;
  }
  Json json;
  json["name"] = name;
  json["created"] =
      std::chrono::duration_cast<std::chrono::milliseconds>(description.created.since_origin())
          .count();
  json["keyspaces"] = std::move(keyspaces);
  json["tables"] = tables;
  json["files"] = description.files;
  json["bytes"] = description.bytes;
  return json;
}

}  // namespace

Task<admin::HttpResponse> Node::answer_snapshots(const admin::HttpRequest& request) {
  const auto pass = changes_.enter();
  if (!pass) co_return refused_with(pass.error());
  if (!started_) {
    co_return admin::HttpResponse{
        .status = 503, .content_type = "application/json", .body = admin::starting_json(phase())};
  }
  if (request.path == "/snapshots") {
    const auto listed = co_await snapshots_->list();
    if (!listed) co_return refused_with(listed.error());
    Json snapshots = Json::array();
    for (const ListedSnapshot& each : *listed) {
      Json json = json_of_snapshot(each.name, each.description);
      json["trouble"] = each.trouble;
      snapshots.push_back(std::move(json));
    }
    co_return json_of({{"snapshots", std::move(snapshots)}});
  }
  const std::string name(parameter_in(request.query, "name"));
  if (request.path == "/snapshots/create") {
    auto keyspaces = keyspaces_in(request.query);
    if (!keyspaces) co_return refused_with(keyspaces.error());
    const auto until = runtime::Until::after(runtime_, kSnapshotTimeout, changes_stop_.token());
    const auto made = co_await snapshots_->create(name, *std::move(keyspaces), until);
    if (!made) co_return refused_with(made.error());
    co_return json_of(json_of_snapshot(name, *made));
  }
  if (request.path == "/snapshots/remove") {
    const auto removed = co_await snapshots_->remove(name);
    if (!removed) co_return refused_with(removed.error());
    co_return json_of({{"removed", name}});
  }
  if (request.path != "/snapshots/restore") co_return no_such_path(request);
  const auto restored = co_await snapshots_->restore(name, changes_stop_.token());
  if (!restored) co_return refused_with(restored.error());
  co_return json_of({{"restored", name},
                     {"tablets_anew", restored->anew},
                     {"tablets_united", restored->united},
                     {"tablets_current", restored->current}});
}

}  // namespace helenus::node
