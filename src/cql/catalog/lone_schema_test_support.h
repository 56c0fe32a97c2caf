// For tests: a SchemaAuthority of one node alone, in the stead of a cluster.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "base/codec.h"
#include "cql/catalog/catalog.h"
#include "cql/catalog/schema_authority.h"
#include "model/schema_codec.h"
#include "runtime/semaphore.h"
#include "storage/local/local_store.h"

namespace helenus::cql::testing {

// What was decided, as the other nodes of a cluster would know it still when this one has crashed.
struct DecidedSoFar {
  model::Schema users;
  std::uint64_t version = 1;
};

// Keeps what was decided in the node's local store, for stories of several lives.
inline runtime::Task<base::Result<DecidedSoFar>> load_decided(storage::LocalStore& store) {
  CO_TRY(const auto kept, co_await store.read("decided-in-tests"));
  DecidedSoFar decided;
  if (!kept) co_return decided;
  base::Decoder in(kept->view());
  decided.version = in.varint();
  const base::ByteView schema = in.prefixed();
  CO_TRY_VOID(in.finish());
  CO_TRY(decided.users, model::decode_schema(schema));
  co_return decided;
}

inline runtime::Task<base::Result<void>> save_decided(storage::LocalStore& store,
                                                      DecidedSoFar decided) {
  base::Buffer buffer;
  base::Encoder out(buffer);
  out.varint(decided.version);
  out.prefixed(model::encode(decided.users).view());
  co_return co_await store.write("decided-in-tests", std::move(buffer).freeze());
}

class LoneSchema final : public SchemaAuthority {
 public:
  LoneSchema(runtime::Runtime& runtime, Catalog& catalog, DecidedSoFar& decided,
             std::string data_center, storage::LocalStore* keeper = nullptr)
      : catalog_(catalog),
        decided_(decided),
        data_center_(std::move(data_center)),
        keeper_(keeper),
        turn_(runtime, 1, 128) {
    catalog.decide_by(*this);
  }

  // What a start does.
  runtime::Task<base::Result<void>> apply(runtime::Until until) {
    co_return co_await catalog_.adopt({.users = decided_.users, .version = decided_.version},
                                      std::move(until));
  }

  runtime::Task<QueryResult<std::optional<protocol::SchemaChange>>> change(
      SchemaFunction function, runtime::Until until) override {
    const auto turn = co_await turn_.acquire(1, until);
    if (!turn) co_return turn.error();
    CO_TRY(SchemaTransition transition, function(decided_.users, std::span(&data_center_, 1)));
    if (!transition.change) co_return std::nullopt;
    model::Schema before = std::exchange(decided_.users, std::move(transition.next));
    ++decided_.version;
    if (keeper_ != nullptr) {
      EXPECT_TRUE((co_await save_decided(*keeper_, decided_)).has_value());
    }
    const auto adopted = co_await apply(std::move(until));
    if (!adopted) {
      // A later decision undoes it, so that it can be told of as not done.
      decided_.users = std::move(before);
      ++decided_.version;
      co_return adopted.error();
    }
    co_return std::move(transition.change);
  }

 private:
  Catalog& catalog_;
  DecidedSoFar& decided_;
  const std::string data_center_;
  storage::LocalStore* const keeper_;  // of what was decided; may be absent
  runtime::Semaphore turn_;
};

}  // namespace helenus::cql::testing
