// The handshake: who is let in, and how a dial goes.
#pragma once

#include <cstdint>
#include <memory>
#include <variant>

#include "base/result.h"
#include "rpc/frame.h"
#include "rpc/options.h"
#include "rpc/pipe.h"
#include "runtime/operation.h"
#include "runtime/task.h"

namespace helenus::rpc {

// What a node judges strangers by.
struct Self {
  const Options& options;
  std::uint64_t life = 0;  // drawn at the start
};

// Whether the caller is one of us, and what we speak with it then.
std::variant<Welcome, Refusal> judge(const Self& self, const Hello& hello);

struct Dialled {
  std::unique_ptr<Pipe> pipe;
  // The node answered; what it said.
  std::variant<Welcome, Refusal> reply;
};

// Connects and shakes hands. Requires: the hello is complete.
// Errors: those of connecting and reading; corrupt if what answers is no node of ours.
runtime::Task<base::Result<Dialled>> dial(runtime::Runtime& runtime, const Self& self,
                                          runtime::Address address, Hello hello,
                                          runtime::Until until);

}  // namespace helenus::rpc
