// Hostile bytes against messages about rows: what decodes encodes to bytes that decode to the same
// again; announcements and pulls, which come unasked, to the very bytes they came from. The first
// byte chooses the message.
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/assert.h"
#include "replication/messages/messages.h"

namespace {

using namespace helenus;               // NOLINT: a main is nobody's header
using namespace helenus::replication;  // NOLINT

constexpr rpc::ProtocolVersion kVersion{};

template <class Message>
void check(const base::Bytes& bytes, bool exactly = false) {
  const auto message = rpc::Codec<Message>::decode(bytes, kVersion);
  if (!message) return;
  const base::Bytes encoded = rpc::Codec<Message>::encode(*message, kVersion);
  if (exactly) ASSERT(encoded == bytes);
  const auto again = rpc::Codec<Message>::decode(encoded, kVersion);
  ASSERT(again);
  ASSERT(rpc::Codec<Message>::encode(*again, kVersion) == encoded);
}

void check_requests(std::uint8_t kind, const base::Bytes& bytes) {
  switch (kind) {
    case 4:
      check<WriteMessage>(bytes);
      break;
    case 5:
      check<ApplyMessage>(bytes);
      break;
    case 6:
      check<ReadMessage>(bytes);
      break;
    case 7:
      check<ScanMessage>(bytes);
      break;
    case 8:
      check<ClockMessage>(bytes);
      check<RepairMessage>(bytes);
      check<RepairReply>(bytes);
      break;
    case 9:
      check<AnnounceMessage>(bytes, true);
      break;
    case 10:
      check<PullMessage>(bytes, true);
      break;
    case 20:
      check<StreamOpenMessage>(bytes, true);
      break;
    case 21:
      check<StreamPageMessage>(bytes, true);
      break;
    default:
      break;
  }
}

void check_answers(std::uint8_t kind, const base::Bytes& bytes) {
  switch (kind) {
    case 4:
      check<WriteReply>(bytes);
      break;
    case 5:
      check<ApplyReply>(bytes);
      break;
    case 6:
      check<ReadReply>(bytes);
      break;
    case 7:
      check<RowsAnswer>(bytes);
      break;
    case 8:
      check<ClockReply>(bytes);
      break;
    case 9:
      check<AnnounceReply>(bytes, true);
      break;
    case 10:
      check<PullReply>(bytes, true);
      break;
    case 20:
      check<StreamOpenReply>(bytes, true);
      break;
    case 21:
      check<StreamPageReply>(bytes, true);
      break;
    default:
      break;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const base::Bytes bytes = base::Bytes::copy_of(std::as_bytes(std::span(data + 1, size - 1)));
  constexpr std::uint8_t kAnswer = 0x80;
  const auto kind = static_cast<std::uint8_t>(data[0] & ~kAnswer);
  if ((data[0] & kAnswer) == 0) {
    check_requests(kind, bytes);
  } else {
    check_answers(kind, bytes);
  }
  return 0;
}
