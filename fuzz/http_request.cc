// Fuzzes what a stranger may send to the admin port: a request up to its headers, and what the
// key-value API makes of its path, its parameters, its conditions and its body.
//
// A request that parses takes no more bytes than there are, is not there a byte earlier, and stays
// what it is whatever follows. Paths, contexts and values decode or do not; base64url that decodes
// encodes to the same letters, and a value that is taken shows itself as one that is taken again.
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <tuple>

#include "admin/http.h"
#include "base/assert.h"
#include "base/bytes.h"
#include "keyvalue/key_path.h"
#include "keyvalue/url_text.h"
#include "keyvalue/value_text.h"
#include "model/data_type.h"

namespace helenus::keyvalue {
namespace {

void check_base64url(std::string_view text) {
  const auto bytes = from_base64url(text);
  if (!bytes) return;
  ASSERT(to_base64url(*bytes) == text);
}

void check_value(const model::DataType& type, std::string_view text) {
  const auto value = value_of_text(type, text);
  if (!value) return;
  const Json shown = json_of_value(type, *value);
  std::ignore = to_text(shown);
  // The empty value of a type whose literals cannot be empty prints as nothing.
  if (value->empty()) return;
  const auto again = value_of_json(type, shown);
  ASSERT(again.has_value(), "{} as {}", type.to_cql(), to_text(shown));
}

void check_values(std::string_view text) {
  for (const char* name : {"ascii", "text", "blob", "tinyint", "smallint", "int", "bigint",
                           "varint", "boolean", "uuid", "timeuuid", "inet"}) {
    check_value(*model::DataType::native_named(name), text);
  }
  for (const char* name : {"date", "time", "timestamp", "duration", "decimal", "double"}) {
    const auto type = *model::DataType::native_named(name);
    const auto value = value_of_text(type, text);
    if (value) std::ignore = to_text(json_of_value(type, *value));
  }
  const auto json = parse_flat_json(text);
  if (!json) return;
  std::ignore = to_text(*json);
  if (json->is_null()) return;
  for (const char* name : {"text", "blob", "int", "double", "decimal", "boolean", "duration"}) {
    std::ignore = value_of_json(*model::DataType::native_named(name), *json);
  }
}

void check_request(const admin::HttpRequest& request, base::ByteView input) {
  ASSERT(request.size > 0 && request.size <= input.size());
  ASSERT(!request.method.empty() && request.path.starts_with('/'));
  const auto alone = admin::parse_http_request(input.first(request.size));
  ASSERT(alone && *alone && (*alone)->headers == request.headers);
  const auto early = admin::parse_http_request(input.first(request.size - 1));
  ASSERT(early && !*early);
  const auto path = parse_key_path(request.path);
  ASSERT(!path || path->names.size() <= KeyPath::kNamesMax);
  std::ignore = parameter(request.query, "consistency");
  for (const auto& [name, value] : request.headers) check_base64url(value);
}

}  // namespace
}  // namespace helenus::keyvalue

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace helenus;
  const base::ByteView input = std::as_bytes(std::span(data, size));
  const auto request = admin::parse_http_request(input);
  std::string_view rest = base::as_text(input);
  if (request && *request) {
    keyvalue::check_request(**request, input);
    rest.remove_prefix((*request)->size);
  }
  keyvalue::check_base64url(rest);
  keyvalue::check_values(rest);
  return 0;
}
