#include "cluster/cluster_discovery.h"

#include <array>
#include <cstddef>
#include <utility>

#include <fmt/format.h>

#include "base/codec.h"
#include "metadata/metadata_codec.h"
#include "metadata/transitions.h"
#include "rpc/verb.h"
#include "runtime/random_uuid.h"

namespace helenus::cluster {

using base::Result;
using consensus::Version;
using model::NodeId;
using runtime::Task;
using runtime::Until;

namespace {

base::Bytes encode_version(Version version) {
  base::Buffer buffer;
  base::Encoder(buffer).varint(version.value());
  return std::move(buffer).freeze();
}

Result<Version> decode_version(base::ByteView bytes) {
  base::Decoder in(bytes);
  const Version version(in.varint());
  TRY_VOID(in.finish());
  return version;
}

}  // namespace

ClusterDiscovery::ClusterDiscovery(const NodeContext& context, rpc::Rpc& rpc,
                                   consensus::PaxosStore& store)
    : context_(context), rpc_(rpc), store_(store), log_(context.runtime.logger("cluster")) {}

void ClusterDiscovery::serve() {
  rpc_.serve(rpc::verbs::kMetadataVersion, [this](const rpc::Incoming&) { return tell_version(); });
}

Task<Result<base::Bytes>> ClusterDiscovery::tell_version() {
  co_return encode_version(store_.known().version);
}

Task<Result<void>> ClusterDiscovery::find_or_found(Until until) {
  context_.phase.set("asks the seeds for the cluster");
  for (;;) {
    SeedAnswers answers = co_await ask_seeds(until);
    FoundingStep step =
        next_founding_step(context_.self.node_address, context_.options.seeds, answers);
    switch (step.kind) {
      case FoundingStep::Kind::found:
        co_return co_await found(until);
      case FoundingStep::Kind::fetch_metadata: {
        const bool fetched = co_await fetch_metadata(std::move(answers.informed), until);
        if (fetched) co_return {};
        step.waits_for = "a seed to tell its metadata";
        break;
      }
      case FoundingStep::Kind::wait:
        break;
    }
    CO_TRY_VOID(co_await context_.phase.pause(std::move(step.waits_for), until));
  }
}

Task<SeedAnswers> ClusterDiscovery::ask_seeds(Until until) {
  SeedAnswers answers;
  for (const runtime::Address& seed : context_.options.seeds) {
    if (seed == context_.self.node_address) continue;
    const auto answer =
        co_await ask_seed(seed, context_.attempt(context_.options.attempt_timeout, until));
    if (!answer) {
      answers.silent.push_back(fmt::format("{} ({})", seed, answer.error()));
    } else if (answer->version > Version(0)) {
      answers.informed.push_back(answer->node);
    }
  }
  co_return answers;
}

Task<Result<ClusterDiscovery::SeedVersion>> ClusterDiscovery::ask_seed(runtime::Address seed,
                                                                       Until until) {
  CO_TRY(const NodeId node, co_await rpc_.meet(seed, until));
  if (node == context_.self.id) co_return SeedVersion{.node = node, .version = Version(0)};
  CO_TRY(const base::Bytes answer, co_await rpc_.call(node, rpc::verbs::kMetadataVersion,
                                                      rpc::Payload(base::Bytes()), until));
  CO_TRY(const Version version, decode_version(answer));
  co_return SeedVersion{.node = node, .version = version};
}

// Any document will do: it names the nodes to ask for the newest.
Task<bool> ClusterDiscovery::fetch_metadata(std::vector<NodeId> from, Until until) {
  for (const NodeId node : from) store_.heard_of(node, Version(1));
  const auto document = co_await store_.wait_newer(
      Version(0), context_.attempt(context_.options.attempt_timeout, until));
  co_return document.has_value();
}

Task<Result<void>> ClusterDiscovery::found(Until until) {
  const ClusterOptions& options = context_.options;
  context_.phase.set("founds the cluster");
  std::array<std::byte, metadata::ClusterSecret::kSize> secret{};
  context_.runtime.random.fill_secret(secret);
  CO_TRY(const auto metadata, metadata::found({.cluster_name = options.cluster_name,
                                               .partitioner = options.partitioner,
                                               .tokens = ring::evenly_spread_tokens(options.tokens),
                                               .nodes = {context_.self},
                                               .secret = {.bytes = base::Secret(secret)}}));
  CO_TRY(const auto document,
         consensus::found(consensus::RegisterId(runtime::draw_uuid(context_.runtime.random)),
                          {context_.self.id}, metadata::encode(metadata)));
  auto founded = co_await store_.found(document, until);
  // A seed that was asked before has answered late: there is a cluster.
  if (founded.failed_with(base::Errc::already_exists)) co_return {};
  if (!founded) co_return founded;
  log_.info("this node founded the cluster", base::kv("cluster", options.cluster_name),
            base::kv("tokens", options.tokens));
  co_return {};
}

}  // namespace helenus::cluster
