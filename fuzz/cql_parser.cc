// Fuzzes the CQL parser: the input is a statement's text. It gives an error fit for a client, or a
// tree whose canonical text parses to the same tree.
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/assert.h"
#include "base/bytes.h"
#include "cql/parser/error_text.h"
#include "cql/parser/parser.h"
#include "cql/parser/to_text.h"

namespace helenus::cql::parser {
namespace {

void check(std::string_view text) {
  const auto statement = parse(text);
  if (!statement) {
    const std::string_view message = statement.error().context();
    ASSERT(statement.failed_with(base::Errc::invalid_argument) && !message.empty());
    ASSERT(presentable(message) == message && message.size() <= kErrorBytesMax + 3);
    return;
  }
  const std::string canonical = to_text(*statement);
  const auto again = parse(canonical);
  ASSERT(again.has_value(), "{}: {}", canonical, again.error().to_string());
  ASSERT(*again == *statement, "{}", canonical);
  ASSERT(to_text(*again) == canonical, "{}", canonical);
}

}  // namespace
}  // namespace helenus::cql::parser

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace helenus;
  // A block of its own, so that the sanitizer sees a read past either end.
  const std::string text(base::as_text(std::as_bytes(std::span(data, size))));
  cql::parser::check(text);
  return 0;
}
