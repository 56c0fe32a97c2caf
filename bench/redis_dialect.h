// RedisDialect: GET and SET.
#pragma once

#include "bench/dialect.h"

namespace helenus::bench {

class RedisDialect final : public Dialect {
 public:
  void greet(base::Buffer& out) override;
  void encode(const Operation& operation, std::uint16_t slot, base::Buffer& out) override;
  base::Result<std::optional<Reply>> first_reply(base::ByteView bytes) override;
};

}  // namespace helenus::bench
