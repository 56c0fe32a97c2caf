#include "rpc/cluster_secret.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>

#include <fmt/format.h>

#include "base/crc32c.h"

namespace helenus::rpc {

using base::Errc;
using base::Error;
using base::Result;

namespace {

constexpr std::string_view kSecretPrefix = "helenus-secret:";
constexpr std::string_view kSecretVersion = "1:";
constexpr std::size_t kSecretChecksumDigits = 8;

std::optional<std::uint32_t> hexadecimal(std::string_view digits) {
  std::uint32_t number = 0;
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), number, 16);
  if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return number;
}

Error bad_line(std::size_t line, std::string_view what) {
  return {Errc::corrupt, "line {}: {}", line, what};
}

Result<ClusterSecret> parse_secret(std::string_view text, std::size_t line) {
  const std::string_view whole = text;
  if (!text.starts_with(kSecretPrefix)) {
    return bad_line(line, "does not begin with helenus-secret:");
  }
  text.remove_prefix(kSecretPrefix.size());
  if (!text.starts_with(kSecretVersion)) {
    return Error(Errc::unsupported, "line {}: a secret of a version that is not 1", line);
  }
  text.remove_prefix(kSecretVersion.size());
  constexpr std::size_t kDigits = 2 * kKeySize;
  if (text.size() != kDigits + 1 + kSecretChecksumDigits || text[kDigits] != ':') {
    return bad_line(line, "a secret of another length");
  }
  Key key;
  for (std::size_t i = 0; i < kKeySize; ++i) {
    const auto octet = hexadecimal(text.substr(2 * i, 2));
    if (!octet) return bad_line(line, "a digit that is not hexadecimal");
    key[i] = static_cast<std::byte>(*octet);
  }
  const auto checksum = hexadecimal(text.substr(kDigits + 1));
  const std::string_view covered = whole.substr(0, whole.size() - kSecretChecksumDigits - 1);
  if (checksum != base::crc32c(base::as_bytes(covered))) {
    return bad_line(line, "the checksum does not match: it was not copied whole");
  }
  return ClusterSecret(key);
}

}  // namespace

ClusterSecret ClusterSecret::draw(runtime::Random& random) {
  Key key;
  random.fill_secret(key);
  return ClusterSecret(key);
}

base::Secret<std::string> ClusterSecret::line() const {
  std::string text = fmt::format("{}{}{}", kSecretPrefix, kSecretVersion, base::to_hex(reveal()));
  text += fmt::format(":{:08x}\n", base::crc32c(base::as_bytes(text)));
  return base::Secret<std::string>(std::move(text));
}

Result<std::vector<ClusterSecret>> parse_cluster_secrets(std::string_view text) {
  std::vector<ClusterSecret> secrets;
  for (std::size_t line = 1; !text.empty(); ++line) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view content = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (content.ends_with('\r')) content.remove_suffix(1);
    if (content.empty() || content.starts_with('#')) continue;
    TRY(ClusterSecret secret, parse_secret(content, line));
    if (secrets.size() == kClusterSecretsMax) {
      return Error(Errc::corrupt, "line {}: more than {} secrets", line, kClusterSecretsMax);
    }
    secrets.push_back(secret);
  }
  if (secrets.empty()) return Error(Errc::corrupt, "holds no secret");
  return secrets;
}

}  // namespace helenus::rpc
