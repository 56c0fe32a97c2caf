#include "sim/scenarios/register_replica.h"

#include <utility>

#include "base/codec.h"
#include "base/crc32c.h"
#include "runtime/file_system.h"
#include "runtime/files.h"

namespace helenus::sim {

using base::Errc;
using base::Error;
using base::Result;
using runtime::Task;
using runtime::Until;

namespace {

constexpr std::size_t kPutsMax = 1024;
constexpr std::size_t kFileSizeMax = 1024;
constexpr std::string_view kDirectory = "/data";
constexpr std::string_view kPath = "/data/register";

enum class Kind : std::uint8_t { get = 1, put = 2, state = 3, damaged = 4 };

void encode_state(base::Encoder& out, const RegisterState& state) {
  out.u64_le(state.version.counter);
  out.u64_le(state.version.client);
  out.u64_le(state.value);
}

RegisterState decode_state(base::Decoder& in) {
  RegisterState state;
  state.version.counter = in.u64_le();
  state.version.client = in.u64_le();
  state.value = in.u64_le();
  return state;
}

base::Bytes encode_message(Kind kind, const RegisterState& state) {
  base::Buffer buffer;
  base::Encoder out(buffer);
  out.u8(static_cast<std::uint8_t>(kind));
  if (kind == Kind::put || kind == Kind::state) encode_state(out, state);
  return std::move(buffer).freeze();
}

base::Bytes encode_file(const RegisterState& state) {
  base::Buffer buffer;
  base::Encoder out(buffer);
  encode_state(out, state);
  out.u32_le(base::crc32c(buffer.view()));
  return std::move(buffer).freeze();
}

Result<RegisterState> decode_file(const base::Bytes& content) {
  base::Decoder in(content);
  const RegisterState state = decode_state(in);
  const std::size_t covered = in.offset();
  const std::uint32_t checksum = in.u32_le();
  TRY_VOID(in.finish());
  if (base::crc32c(content.view().first(covered)) != checksum) {
    return Error(Errc::corrupt, "fails its checksum");
  }
  return state;
}

}  // namespace

base::Bytes encode_get() {
  return encode_message(Kind::get, {});
}

base::Bytes encode_put(const RegisterState& state) {
  return encode_message(Kind::put, state);
}

Result<RegisterState> decode_answer(const base::Bytes& answer) {
  base::Decoder in(answer);
  const auto kind = static_cast<Kind>(in.u8());
  if (kind != Kind::state) return Error(Errc::unavailable, "the replica is damaged");
  const RegisterState state = decode_state(in);
  TRY_VOID(in.finish());
  return state;
}

RegisterReplica::RegisterReplica(runtime::Runtime& runtime, runtime::Address address,
                                 RegisterPolicy policy)
    : runtime_(runtime),
      address_(address),
      policy_(policy),
      log_(runtime.logger("sim.register")),
      one_put_(runtime, 1, kPutsMax),
      one_store_(runtime, 1, kPutsMax),
      background_(runtime, kPutsMax) {}

Task<void> RegisterReplica::run(runtime::StopToken stop) {
  runtime::StopSource failure(stop);
  failure_ = &failure;
  if (const auto recovered = co_await recover(); !recovered) {
    log_.warn("cannot recover", base::kv("error", recovered.error()));
    co_return;
  }
  log_.info("serves", base::kv("counter", state_.version.counter), base::kv("value", state_.value),
            base::kv("damaged", damaged_));
  const auto served = co_await serve(runtime_, address_, *this, failure.token());
  if (!served) log_.warn("cannot serve", base::kv("error", served.error()));
  co_await background_.join();
}

Task<Result<void>> RegisterReplica::recover() {
  CO_TRY_VOID(co_await runtime_.files.make_directories(std::string(kDirectory)));
  CO_TRY_VOID(co_await runtime_.files.sync_directory("/"));
  auto content = co_await runtime::read_file(runtime_, std::string(kPath), kFileSizeMax);
  if (content.failed_with(Errc::not_found)) co_return {};
  if (!content && policy_.error_is_absence) co_return {};
  if (!content) co_return std::move(content).error();
  const auto state = decode_file(*content);
  if (!state && policy_.error_is_absence) co_return {};
  if (!state) {
    // It may have acknowledged what it no longer knows: it must not answer at all.
    damaged_ = true;
    co_return {};
  }
  // What is read may sit in a cache that a failed sync called clean: it counts once written anew.
  CO_TRY_VOID(co_await store(*state));
  state_ = *state;
  co_return {};
}

Task<Result<base::Bytes>> RegisterReplica::handle(base::Bytes request) {
  base::Decoder in(request);
  const auto kind = static_cast<Kind>(in.u8());
  if (damaged_) co_return encode_message(Kind::damaged, {});
  if (kind == Kind::put) {
    const RegisterState incoming = decode_state(in);
    CO_TRY_VOID(in.finish());
    CO_TRY_VOID(co_await put(incoming));
  }
  co_return encode_message(Kind::state, state_);
}

Task<Result<void>> RegisterReplica::put(RegisterState incoming) {
  CO_TRY(const runtime::Permit permit, co_await one_put_.acquire(1, Until::forever()));
  const bool is_latest = incoming.version > state_.version || policy_.trusts_order;
  if (!is_latest) co_return {};
  if (policy_.acks_before_sync) {
    (void)background_.try_spawn(store_in_background(incoming));
  } else {
    auto stored = co_await store(incoming);
    if (!stored) {
      log_.warn("cannot store", base::kv("error", stored.error()));
      failure_->request_stop();
      co_return std::move(stored).error();
    }
  }
  state_ = incoming;
  co_return {};
}

Task<Result<void>> RegisterReplica::store(RegisterState state) {
  CO_TRY(const runtime::Permit permit, co_await one_store_.acquire(1, Until::forever()));
  co_return co_await runtime::replace_file(runtime_, std::string(kPath), encode_file(state));
}

Task<void> RegisterReplica::store_in_background(RegisterState state) {
  const auto stored = co_await store(state);
  if (!stored) failure_->request_stop();
}

}  // namespace helenus::sim
