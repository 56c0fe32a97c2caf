#include "node/node.h"

#include <utility>

#include <fmt/format.h>

#include "runtime/files.h"
#include "runtime/sleep.h"
#include "runtime/when_all.h"

namespace helenus::node {

using base::kv;
using base::Result;

namespace {

// A start that takes longer than this says what it waits for.
constexpr runtime::Duration kProgressPeriod = std::chrono::seconds(3);

}  // namespace

Node::Node(runtime::Runtime& runtime, Config config)
    : runtime_(runtime),
      config_(std::move(config)),
      log_(runtime.logger("node")),
      admin_(runtime, [this](const HttpRequest& request) { return answer(request); }) {}

runtime::Task<Result<void>> Node::start() {
  const std::string& directory = config_.data_directory;
  CO_TRY_VOID(co_await runtime::make_directories_durably(runtime_, directory));
  CO_TRY(data_lock_, co_await runtime_.files.lock(directory + "/lock"));
  CO_TRY(const auto identity, co_await load_or_create_identity(runtime_, directory));
  identity_ = identity;

  auto listening = admin_.start(config_.admin_address);
  if (!listening) {
    co_return std::move(listening).error().within("admin server");
  }
  if (config_.with_database) CO_TRY_VOID(co_await start_database());
  started_ = true;
  log_.info("started", kv("node", identity.node), kv("folder", directory),
            kv("admin", admin_.address()));
  co_return {};
}

runtime::Task<Result<void>> Node::start_database() {
  database_.emplace(runtime_, config_, identity_->node.value());
  runtime::StopSource started;
  const auto start = [](Database& database,
                        runtime::StopSource& done) -> runtime::Task<Result<void>> {
    auto outcome = co_await database.start();
    done.request_stop();
    co_return outcome;
  };
  auto outcomes =
      co_await runtime::when_all(start(*database_, started), report_progress(started.token()));
  co_return std::get<0>(std::move(outcomes));
}

runtime::Task<void> Node::report_progress(runtime::StopToken started) {
  for (;;) {
    const auto paused = co_await runtime::sleep_for(runtime_, kProgressPeriod, started);
    if (!paused) co_return;
    log_.info("starting", kv("waits_for", database_->phase()));
  }
}

runtime::Task<void> Node::stop() {
  stopping_ = true;
  if (database_) co_await database_->stop();
  co_await admin_.stop();
  data_lock_.reset();
  if (std::exchange(started_, false)) log_.info("stopped");
}

runtime::Task<HttpResponse> Node::answer(const HttpRequest& request) {
  if (request.path == "/healthz") co_return co_await answer_health();
  if (request.path == "/metrics" && database_) {
    if (!started_) co_return HttpResponse{.status = 503, .body = "the node is starting\n"};
    const auto metrics = co_await database_->metrics();
    if (!metrics) co_return HttpResponse{.status = 503, .body = metrics.error().to_string() + "\n"};
    co_return HttpResponse{.content_type = std::string(kPrometheusContentType),
                           .body = to_prometheus(*metrics)};
  }
  co_return HttpResponse{
      .status = 404,
      .body = fmt::format("nothing at {}; try /healthz or /metrics\n", request.path)};
}

runtime::Task<HttpResponse> Node::answer_health() {
  std::string status = "ok";
  std::string detail;
  std::optional<Database::CoreFailure> failure;
  if (database_) failure = co_await database_->failure();
  if (stopping_) {
    status = "stopping";
  } else if (failure) {
    status = "failed";
    detail =
        fmt::format(",\"core\":{},\"error\":\"{}\"", failure->core, name_of(failure->error.code()));
  } else if (database_ && !started_) {
    status = "starting";
  }
  co_return HttpResponse{.status = status == "ok" ? 200 : 503,
                         .content_type = "application/json",
                         .body = fmt::format("{{\"status\":\"{}\",\"node\":\"{}\"{}}}\n", status,
                                             identity_->node, detail)};
}

}  // namespace helenus::node
