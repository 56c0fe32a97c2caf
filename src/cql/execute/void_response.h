// The RESULT of kind Void, made without allocating: writes are answered with it.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/bytes.h"
#include "cql/protocol/response.h"

namespace helenus::cql {

inline protocol::Response void_response() {
  static_assert(std::int32_t(protocol::ResultKind::nothing) == 1);
  constexpr std::string_view kNothing("\0\0\0\1", sizeof(std::int32_t));
  protocol::Response response;
  response.opcode = protocol::Opcode::result;
  response.body[0] = base::Bytes::of_static(kNothing);
  return response;
}

}  // namespace helenus::cql
