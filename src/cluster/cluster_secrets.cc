#include "cluster/cluster_secrets.h"

#include <algorithm>

#include "runtime/files.h"
#include "runtime/loopback.h"

namespace helenus::cluster {

using base::Errc;
using base::Error;
using base::Result;
using rpc::ClusterSecret;
using runtime::Task;

namespace {

std::string secret_path(const SecretSource& source) {
  if (!source.file.empty()) return source.file;
  return source.data_directory + "/" + std::string(rpc::kClusterSecretFileName);
}

bool is_founder(const SecretSource& source) {
  const auto least = std::ranges::min_element(source.seeds);
  return least == source.seeds.end() || *least == source.node_address;
}

}  // namespace

Task<Result<void>> prepare_secrets(runtime::Runtime& runtime, SecretSource source) {
  const bool is_given = !source.file.empty() || !source.text.reveal().empty();
  if (is_given || runtime::is_loopback(source.listen_address) || !is_founder(source)) co_return {};
  const std::string path = secret_path(source);
  const auto content = co_await runtime::read_file(runtime, path, rpc::kClusterSecretFileSizeMax);
  if (content || !content.failed_with(Errc::not_found)) co_return {};  // load_secrets judges it
  const auto line = ClusterSecret::draw(runtime.random).line();
  CO_TRY_VOID(
      co_await runtime::replace_secret_file(runtime, path, base::Bytes::copy_of(line.reveal())));
  runtime.logger("cluster").warn(
      "this node made the secret of the cluster: copy the file to the data folder of every other "
      "node before it starts",
      base::kv("file", path));
  co_return {};
}

Task<Result<std::vector<ClusterSecret>>> load_secrets(runtime::Runtime& runtime,
                                                      SecretSource source) {
  if (!source.text.reveal().empty()) {
    co_return rpc::parse_cluster_secrets(source.text.reveal());
  }
  const std::string path = secret_path(source);
  auto content = co_await runtime::read_file(runtime, path, rpc::kClusterSecretFileSizeMax);
  if (content) {
    auto secrets = rpc::parse_cluster_secrets(content->text());
    if (!secrets) co_return std::move(secrets).error().within(path);
    co_return secrets;
  }
  if (!content.failed_with(Errc::not_found) || !source.file.empty()) {
    co_return std::move(content).error().within("the secret of the cluster");
  }
  if (runtime::is_loopback(source.listen_address)) co_return std::vector<ClusterSecret>();
  co_return Error(
      Errc::refused,
      "listen_address {} is no loopback address, and there is no secret that the nodes of the "
      "cluster know each other by: copy the file cluster_secret from the data folder of another "
      "node to {}, or name it as cluster_secret_file; for a cluster that has none, \"helenus "
      "secret\" makes one",
      source.listen_address, path);
}

}  // namespace helenus::cluster
