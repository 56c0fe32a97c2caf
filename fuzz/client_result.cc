// Fuzzes what a client makes of a server's RESULT. The first byte is the flags of the frame, the
// others are its body. A result that is taken gives all its rows, and each cell is read as every
// type there is: as a value, or as an error, and the same every time.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>

#include "base/assert.h"
#include "base/bytes.h"
#include "base/uuid.h"
#include "client/result_set.h"
#include "cql/protocol/frame.h"
#include "cql/protocol/response.h"

namespace helenus::client {
namespace {

template <class T>
void check_as(const Cell& cell) {
  const auto value = cell.get<T>();
  const auto optional = cell.get<std::optional<T>>();
  if (cell.is_null()) {
    ASSERT(value.failed_with(base::Errc::not_found));
    ASSERT(optional.has_value() && !optional->has_value());
  } else {
    ASSERT(value.has_value() == optional.has_value());
  }
}

void check_cell(const Cell& cell) {
  check_as<bool>(cell);
  check_as<std::int8_t>(cell);
  check_as<std::int64_t>(cell);
  check_as<float>(cell);
  check_as<double>(cell);
  check_as<base::Uuid>(cell);
  check_as<std::string>(cell);
  check_as<base::Bytes>(cell);
  ASSERT(!cell.is_null() || cell.to_text() == "null");
}

void check_result(const ResultSet& result) {
  std::size_t count = 0;
  for (const Row row : result.rows()) {
    ASSERT(row.size() == result.columns().size());
    for (std::size_t i = 0; i < row.size(); ++i) check_cell(row.cell(i));
    ++count;
  }
  ASSERT(count == result.size());
  for (const auto& column : result.columns()) {
    const auto index = result.column_index(column.name);
    ASSERT(index && result.columns()[*index].name == column.name);
  }
  for (const auto& entry : result.payload()) std::ignore = result.payload(entry.key);
}

}  // namespace
}  // namespace helenus::client

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace helenus;
  if (size < 1) return 0;
  const cql::protocol::FrameHeader header{.direction = cql::protocol::Direction::response,
                                          .flags = data[0],
                                          .stream = 1,
                                          .opcode = cql::protocol::Opcode::result};
  const auto body = base::Bytes::copy_of(std::as_bytes(std::span(data, size)).subspan(1));
  auto decoded = cql::protocol::decode_response(header, body);
  if (!decoded) return 0;
  if (std::holds_alternative<cql::protocol::PreparedResult>(decoded->message)) return 0;
  const auto result = client::ResultSet::of(*std::move(decoded));
  if (result) client::check_result(*result);
  return 0;
}
