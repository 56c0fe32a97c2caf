#include "node/node.h"

#include <utility>

#include <fmt/format.h>

#include "runtime/files.h"

namespace helenus::node {

using base::kv;
using base::Result;

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
  started_ = true;
  log_.info("started", kv("node", identity.node), kv("folder", directory),
            kv("admin", admin_.address()));
  co_return {};
}

runtime::Task<void> Node::stop() {
  co_await admin_.stop();
  data_lock_.reset();
  if (std::exchange(started_, false)) log_.info("stopped");
}

HttpResponse Node::answer(const HttpRequest& request) const {
  if (request.path == "/healthz") {
    return {.content_type = "application/json",
            .body = fmt::format("{{\"status\":\"ok\",\"node\":\"{}\"}}\n", identity_->node)};
  }
  return {.status = 404, .body = fmt::format("nothing at {}; try /healthz\n", request.path)};
}

}  // namespace helenus::node
