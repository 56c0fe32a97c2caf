// RegisterReplica: one replica of the register: a file, and requests to get and to put.
#pragma once

#include <compare>
#include <cstdint>
#include <string>

#include "base/bytes.h"
#include "base/log.h"
#include "base/result.h"
#include "runtime/address.h"
#include "runtime/semaphore.h"
#include "runtime/task_group.h"
#include "sim/process.h"
#include "sim/scenarios/register.h"
#include "sim/scenarios/service.h"

namespace helenus::sim {

// Versions are ordered; no two writes share one.
struct RegisterVersion {
  std::uint64_t counter = 0;
  std::uint64_t client = 0;
  friend auto operator<=>(const RegisterVersion&, const RegisterVersion&) = default;
};

struct RegisterState {
  RegisterVersion version;
  std::uint64_t value = 0;
};

// A request to put a state, or, without one, to get it; and the answer to either.
base::Bytes encode_get();
base::Bytes encode_put(const RegisterState& state);
base::Result<RegisterState> decode_answer(const base::Bytes& answer);

class RegisterReplica final : public Process, private RequestHandler {
 public:
  RegisterReplica(runtime::Runtime& runtime, runtime::Address address, RegisterPolicy policy);

  // Ends by itself when the disk fails: what is on it is in doubt then, and read again.
  runtime::Task<void> run(runtime::StopToken stop) override;

 private:
  runtime::Task<base::Result<base::Bytes>> handle(base::Bytes request) override;
  runtime::Task<base::Result<void>> recover();
  runtime::Task<base::Result<void>> put(RegisterState incoming);
  runtime::Task<base::Result<void>> store(RegisterState state);
  runtime::Task<void> store_in_background(RegisterState state);

  runtime::Runtime& runtime_;
  const runtime::Address address_;
  const RegisterPolicy policy_;
  base::Logger log_;
  RegisterState state_;
  bool damaged_ = false;
  runtime::StopSource* failure_ = nullptr;
  runtime::Semaphore one_put_;
  runtime::Semaphore one_store_;
  runtime::TaskGroup background_;
};

}  // namespace helenus::sim
