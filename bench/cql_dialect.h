// CqlDialect: prepared SELECT and INSERT over version 4 of the native protocol.
//
//   CREATE TABLE ycsb.usertable (key text PRIMARY KEY, value blob)
//
// An EXECUTE carries what drivers send by default: a consistency, a page size, and the wish to be
// spared the metadata it has from the PREPARE.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/bytes.h"
#include "bench/dialect.h"
#include "model/consistency.h"

namespace helenus::bench {

class CqlDialect final : public Dialect {
 public:
  // Of several nodes: as many replicas, and what is asked of them.
  struct Options {
    std::uint32_t replication_factor = 1;
    model::Consistency level = model::Consistency::one;
  };
  CqlDialect() : options_() {}
  explicit CqlDialect(Options options) : options_(options) {}

  // Makes the table and prepares the statements, on a connection of its own. Errors: whatever the
  // server refuses with, and the loss of the connection.
  base::Result<void> prepare(std::uint16_t port);

  void greet(base::Buffer& out) override;
  // Requires: prepared.
  void encode(const Operation& operation, std::uint16_t slot, base::Buffer& out) override;
  base::Result<std::optional<Reply>> first_reply(base::ByteView bytes) override;

 private:
  const Options options_;
  base::Bytes select_;
  base::Bytes insert_;
};

}  // namespace helenus::bench
