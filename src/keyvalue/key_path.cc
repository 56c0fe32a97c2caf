#include "keyvalue/key_path.h"

#include <utility>

#include "admin/http.h"
#include "keyvalue/url_text.h"

namespace helenus::keyvalue {

using base::Errc;
using base::Error;
using base::Result;

namespace {

constexpr std::size_t kPartsMax = 4;

// Nothing if there are more than so many.
std::vector<std::string_view> split(std::string_view text, char separator, std::size_t max) {
  std::vector<std::string_view> parts;
  for (;;) {
    const std::size_t end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    if (parts.size() == max) return {};
    text.remove_prefix(end + 1);
  }
}

Error no_path() {
  return Error(Errc::invalid_argument,
               "a path is /v1/kv/KEYSPACE/TABLE/KEY, or /v1/kv/KEYSPACE/TABLE/KEY/COLUMN");
}

}  // namespace

Result<KeyPath> parse_key_path(std::string_view path) {
  if (!path.starts_with(admin::kDataPath)) return no_path();
  const auto parts = split(path.substr(admin::kDataPath.size()), '/', kPartsMax);
  if (parts.size() < 3) return no_path();
  auto family = split(parts[1], ':', KeyPath::kNamesMax + 1);
  auto names = parts.size() == kPartsMax ? split(parts[3], ':', KeyPath::kNamesMax)
                                         : std::vector<std::string_view>();
  if (family.empty() || (parts.size() == kPartsMax && names.empty())) {
    return Error(Errc::invalid_argument, "more than {} names in a path", KeyPath::kNamesMax);
  }
  if (family.size() > 1) {
    if (!names.empty()) return Error(Errc::invalid_argument, "the path names a column twice");
    names.assign(family.begin() + 1, family.end());
  }
  KeyPath named;
  TRY(named.keyspace, percent_decoded(parts[0]));
  TRY(named.table, percent_decoded(family.front()));
  TRY(named.key, percent_decoded(parts[2]));
  for (const std::string_view name : names) {
    TRY(std::string decoded, percent_decoded(name));
    named.names.push_back(std::move(decoded));
  }
  return named;
}

}  // namespace helenus::keyvalue
