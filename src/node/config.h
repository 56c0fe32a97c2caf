// Config: what an operator decides about a node.
#pragma once

#include <string>

#include "runtime/address.h"

namespace helenus::node {

struct Config {
  // Everything the node keeps lies below this folder; one node at a time uses it.
  std::string data_directory = "data";
  // Health and status over HTTP; loopback unless told otherwise.
  runtime::Address admin_address = runtime::Address::v4({127, 0, 0, 1}, 7070);
};

}  // namespace helenus::node
