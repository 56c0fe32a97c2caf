// The secrets of the cluster that a node is of: where they come from at its start.
//
//   cluster_secret_file, if the operator names one         must be there
//   the file cluster_secret in the data folder             copied there, or made here
//   none, on a loopback address                            the node talks in the clear, and only to
//                                                          others of this machine that have none
//   none, elsewhere                                        the start is refused
// The node that founds a cluster for others than those of its machine makes the secret when its
// folder is new; operators copy it to the other nodes. What a proof is: rpc/handshake.h.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "base/secret.h"
#include "rpc/cluster_secret.h"
#include "runtime/address.h"
#include "runtime/runtime.h"
#include "runtime/task.h"

namespace helenus::cluster {

struct SecretSource {
  std::string data_directory;
  std::string file{};                // named by the operator; empty if none is
  base::Secret<std::string> text{};  // the content of such a file, instead of one
  runtime::Address listen_address;
  runtime::Address node_address;  // as others know it, and the seeds name it
  std::vector<runtime::Address> seeds{};
};

// Of a folder that is new: makes the secret if this node founds a cluster that reaches beyond its
// machine, and has none. Errors: of the files.
runtime::Task<base::Result<void>> prepare_secrets(runtime::Runtime& runtime, SecretSource source);

// None: the node talks in the clear. Errors: refused, with the way out, if it listens beyond its
// machine and has none; of the files, which they name.
runtime::Task<base::Result<std::vector<rpc::ClusterSecret>>> load_secrets(runtime::Runtime& runtime,
                                                                          SecretSource source);

}  // namespace helenus::cluster
