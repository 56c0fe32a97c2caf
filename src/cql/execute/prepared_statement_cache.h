// PreparedStatementCache: prepared statements by their ids; at most so many, and of so many bytes,
// of which those used longest ago go first.
//
// Core affinity: one core.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <string>

#include <absl/container/flat_hash_map.h>

#include "base/bytes.h"
#include "base/uuid.h"
#include "cql/plan/statement_plan.h"
#include "cql/protocol/request.h"

namespace helenus::cql {

struct PreparedStatement {
  protocol::PreparedId id{};
  std::string text;
  std::string keyspace;  // in force when it was prepared
  PlanPtr plan;
  bool columns_changed = false;  // since it was first prepared
};

class PreparedStatementCache {
 public:
  struct Limits {
    std::size_t statements_max = 10'000;
    std::size_t bytes_max = std::size_t{64} << 20;
  };
  // What a plan is taken to cost besides its text, and for each byte of it.
  static constexpr std::size_t kStatementBytes = 4096;
  static constexpr std::size_t kBytesPerCharacter = 8;

  explicit PreparedStatementCache(Limits limits) : limits_(limits) {}

  // In the place of one of the same id, whose changes of columns it takes over. The statement stays
  // even if it exceeds the limits by itself.
  void put(PreparedStatement statement);
  // Null when it is not there. The pointer is good until the next call.
  PreparedStatement* find(base::ByteView id);

  std::size_t size() const { return by_use_.size(); }
  std::uint64_t evicted() const { return evicted_; }

 private:
  using Uses = std::list<PreparedStatement>;
  static std::size_t cost_of(const PreparedStatement& statement) {
    return kStatementBytes + (statement.text.size() * kBytesPerCharacter);
  }
  void erase(const protocol::PreparedId& id);

  const Limits limits_;
  std::size_t bytes_ = 0;
  std::uint64_t evicted_ = 0;
  Uses by_use_;  // the newest first
  absl::flat_hash_map<base::Uuid, Uses::iterator> by_id_;
};

}  // namespace helenus::cql
