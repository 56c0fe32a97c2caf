// ClusterSecret: what the nodes of a cluster know and nobody else. A node proves with it in the
// handshake that it is one of them (handshake.h).
//
// It is kept in a file of lines, docs/formats/cluster-secret.md:
//
//   helenus-secret:1:<64 hexadecimal digits>:<8 hexadecimal digits of CRC32C over what is before>
//
// Proofs are made with the first, and taken if they were made with any: so a secret is replaced
// node by node (docs/operations/cluster.md). Nothing here formats a secret but `line()`, whose
// callers write files.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "base/secret.h"
#include "rpc/crypto.h"
#include "runtime/random.h"

namespace helenus::rpc {

inline constexpr std::string_view kClusterSecretFileName = "cluster_secret";
inline constexpr std::size_t kClusterSecretsMax = 8;
inline constexpr std::size_t kClusterSecretFileSizeMax = std::size_t{4} << 10;

class ClusterSecret {
 public:
  explicit ClusterSecret(const Key& key) : key_(key) {}
  static ClusterSecret draw(runtime::Random& random);

  const Key& reveal() const { return key_.reveal(); }
  // As in a file, with the end of the line.
  base::Secret<std::string> line() const;

 private:
  base::Secret<Key> key_;
};

// Of a file: at least one. Empty lines and those that begin with '#' are passed over.
// Errors: corrupt, with the number of the line and nothing of what is in it; unsupported for a
// version from the future.
base::Result<std::vector<ClusterSecret>> parse_cluster_secrets(std::string_view text);

}  // namespace helenus::rpc
