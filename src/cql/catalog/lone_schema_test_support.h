// For tests: a SchemaAuthority of one node alone, in the stead of a cluster.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "base/assert.h"
#include "base/codec.h"
#include "cql/agreement/schema_in_metadata.h"
#include "cql/catalog/catalog.h"
#include "cql/catalog/schema_authority.h"
#include "metadata/metadata_codec.h"
#include "metadata/metadata_test_support.h"
#include "metadata/transitions.h"
#include "replication/coordinator/node_storage_test_support.h"
#include "runtime/files.h"
#include "runtime/semaphore.h"

namespace helenus::cql::testing {

// Of node 1, in this data centre.
inline metadata::ClusterMetadata found_alone(std::string data_center) {
  std::array<std::byte, metadata::ClusterSecret::kSize> secret{};
  secret.fill(std::byte{0x5e});
  auto metadata =
      metadata::found({.cluster_name = "Troy",
                       .tokens = ring::evenly_spread_tokens(4),
                       .nodes = {metadata::testing::a_node(1, "r1", std::move(data_center))},
                       .secret = {.bytes = base::Secret(secret)}});
  ASSERT(metadata);
  return *std::move(metadata);
}

// What was decided, as the other nodes of a cluster would know it still when this one has crashed.
struct DecidedSoFar {
  explicit DecidedSoFar(std::string data_center = "dc1")
      : metadata(found_alone(std::move(data_center))) {}

  DecidedSchema schema() const {
    return decided_schema(metadata, version, metadata::testing::node_id(1));
  }

  metadata::ClusterMetadata metadata;
  std::uint64_t version = 1;
};

// Keeps what was decided in a file of the node, for stories of several lives.
inline constexpr const char* kDecidedFolder = "/decided";
inline constexpr const char* kDecidedFile = "/decided/metadata";
inline runtime::Task<base::Result<void>> load_decided(runtime::Runtime& runtime,
                                                      DecidedSoFar& decided) {
  CO_TRY_VOID(co_await runtime::make_directories_durably(runtime, kDecidedFolder));
  const auto kept = co_await runtime::read_file(runtime, kDecidedFile, std::size_t{8} << 20);
  if (kept.failed_with(base::Errc::not_found)) co_return {};
  if (!kept) co_return kept.error();
  base::Decoder in(kept->view());
  decided.version = in.varint();
  const base::ByteView metadata = in.prefixed();
  CO_TRY_VOID(in.finish());
  CO_TRY(decided.metadata, metadata::decode_cluster_metadata(metadata));
  co_return {};
}

inline runtime::Task<base::Result<void>> save_decided(runtime::Runtime& runtime,
                                                      const DecidedSoFar& decided) {
  base::Buffer buffer;
  base::Encoder out(buffer);
  out.varint(decided.version);
  out.prefixed(metadata::encode(decided.metadata).view());
  co_return co_await runtime::replace_file(runtime, kDecidedFile, std::move(buffer).freeze());
}

class LoneSchema final : public SchemaAuthority {
 public:
  enum class Keeps : std::uint8_t { nothing, file };

  LoneSchema(runtime::Runtime& runtime, replication::testing::NodeStorage& storage,
             Catalog& catalog, DecidedSoFar& decided, Keeps keeps = Keeps::nothing)
      : runtime_(runtime),
        storage_(storage),
        catalog_(catalog),
        decided_(decided),
        keeps_(keeps),
        turn_(runtime, 1, 128) {
    catalog.decide_by(*this);
  }

  // What a start does.
  runtime::Task<base::Result<void>> apply(runtime::Until until) {
    CO_TRY_VOID(co_await storage_.act_by(decided_.metadata, decided_.version));
    CO_TRY_VOID(co_await catalog_.adopt(decided_.schema(), std::move(until)));
    storage_.let_go();
    co_return {};
  }

  runtime::Task<QueryResult<std::optional<protocol::SchemaChange>>> change(
      SchemaFunction function, runtime::Until until) override {
    const auto turn = co_await turn_.acquire(1, until);
    if (!turn) co_return turn.error();
    const metadata::ClusterMetadata& now = decided_.metadata;
    CO_TRY(SchemaTransition transition,
           function(now.schema, std::span(&now.nodes.front().description.datacentre, 1)));
    if (!transition.change) co_return std::nullopt;
    const auto decided =
        co_await decide(with_schema(now, std::move(transition.next)), std::move(until));
    if (!decided) co_return decided.error();
    co_return std::move(transition.change);
  }

  runtime::Task<QueryResult<void>> truncate(base::Uuid table, runtime::Until until) override {
    const auto turn = co_await turn_.acquire(1, until);
    if (!turn) co_return turn.error();
    auto next = metadata::truncate(decided_.metadata, table);
    if (next.failed_with(base::Errc::not_found)) co_return invalid("there is no such table");
    const auto decided = co_await decide(std::move(next), std::move(until));
    if (!decided) co_return decided.error();
    co_return {};
  }

 private:
  runtime::Task<base::Result<void>> decide(base::Result<metadata::ClusterMetadata> next,
                                           runtime::Until until) {
    if (!next) co_return std::move(next).error();
    metadata::ClusterMetadata before = std::exchange(decided_.metadata, *std::move(next));
    ++decided_.version;
    if (keeps_ == Keeps::file) {
      const auto saved = co_await save_decided(runtime_, decided_);
      if (!saved) {
        decided_.metadata = std::move(before);
        co_return saved.error();
      }
    }
    const auto adopted = co_await apply(std::move(until));
    if (adopted) co_return {};
    // A later decision undoes it, so that it can be told of as not done; numbers stay given.
    before.next = decided_.metadata.next;
    decided_.metadata = std::move(before);
    ++decided_.version;
    co_return adopted.error();
  }

  runtime::Runtime& runtime_;
  replication::testing::NodeStorage& storage_;
  Catalog& catalog_;
  DecidedSoFar& decided_;
  const Keeps keeps_;
  runtime::Semaphore turn_;
};

}  // namespace helenus::cql::testing
