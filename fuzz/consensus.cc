// Fuzzes the messages and the acceptor's state of consensus: what decodes encodes to the very bytes
// it came from, and an acceptor that takes the message in can still write its state.
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/assert.h"
#include "base/crc32c.h"
#include "consensus/acceptor.h"
#include "consensus/message.h"

namespace helenus::consensus {
namespace {

void check_message(base::ByteView bytes) {
  const auto message = decode_message(bytes);
  if (!message) return;
  ASSERT(base::equal(encode(*message), bytes));
  // The first node of a document may be its acceptor; a blank one has no history to contradict.
  Acceptor acceptor(AcceptorState::blank(model::NodeId()));
  acceptor.receive(model::NodeId(), *message);
  if (const auto write = acceptor.next_write()) {
    ASSERT(decode_acceptor_state(write->state));
    acceptor.written(write->sequence);
  }
  for (const auto& answer : acceptor.take_answers()) {
    ASSERT(decode_message(encode(answer.message)));
  }
}

void check_state(base::ByteView bytes) {
  const auto state = decode_acceptor_state(bytes);
  if (!state) return;
  ASSERT(base::equal(encode(*state), bytes));
  const Acceptor acceptor(*state);
  ASSERT(acceptor.durable_document() == state->decided);
}

// The same behind a fitting checksum, which no search finds by itself.
void check_state_with_checksum(base::ByteView bytes) {
  base::Buffer whole;
  whole.append(bytes);
  base::Encoder(whole).u32_le(base::crc32c(bytes));
  check_state(whole.view());
}

}  // namespace
}  // namespace helenus::consensus

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace helenus;
  const auto bytes = std::as_bytes(std::span(data, size));
  consensus::check_message(bytes);
  consensus::check_state(bytes);
  consensus::check_state_with_checksum(bytes);
  return 0;
}
