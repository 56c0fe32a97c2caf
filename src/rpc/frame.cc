#include "rpc/frame.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/assert.h"
#include "base/codec.h"
#include "base/crc32c.h"

namespace helenus::rpc {

using base::Bytes;
using base::ByteView;
using base::Decoder;
using base::Encoder;
using base::Errc;
using base::Error;
using model::NodeId;
using runtime::Address;

namespace {

constexpr std::string_view kMagic = "HLNS";

constexpr std::array<std::string_view, std::variant_size_v<Frame>> kFrameNames = {
    "hello",  "welcome", "refusal", "request", "answer",    "failure", "one-way",
    "cancel", "ping",    "pong",    "goodbye", "challenge", "proof"};

// The number of an error on the wire is its place here. A code is added at the end only.
constexpr std::array kErrorCodes = {
    Errc::internal,         Errc::cancelled,   Errc::timeout,         Errc::overloaded,
    Errc::unavailable,      Errc::closed,      Errc::connection_lost, Errc::refused,
    Errc::address_in_use,   Errc::not_found,   Errc::already_exists,  Errc::permission_denied,
    Errc::invalid_argument, Errc::unsupported, Errc::corrupt,         Errc::no_space,
    Errc::io_error,         Errc::locked};

std::uint8_t number_of(Errc code) {
  const auto* const found = std::ranges::find(kErrorCodes, code);
  return found == kErrorCodes.end() ? 0 : static_cast<std::uint8_t>(found - kErrorCodes.begin());
}

// A code of a later release is an internal error to us.
Errc code_of(std::uint8_t number) {
  return number < kErrorCodes.size() ? kErrorCodes[number] : Errc::internal;
}

void put(Encoder& out, NodeId node) {
  out.raw(node.value().bytes());
}

NodeId get_node(Decoder& in) {
  return NodeId(base::decode_uuid(in));
}

void put(Encoder& out, VersionRange versions) {
  out.varint(versions.oldest.value());
  out.varint(versions.newest.value());
}

ProtocolVersion get_version(Decoder& in) {
  const std::uint64_t version = in.varint();
  if (version == 0 || version > UINT16_MAX) in.fail("a version out of range");
  return ProtocolVersion(static_cast<std::uint16_t>(version));
}

VersionRange get_versions(Decoder& in) {
  const ProtocolVersion oldest = get_version(in);
  const ProtocolVersion newest = get_version(in);
  if (oldest > newest) in.fail("versions in the wrong order");
  return {.oldest = oldest, .newest = newest};
}

// The bytes of the address, by their number, and the port; or 0.
void put(Encoder& out, const std::optional<Address>& address) {
  out.u8(address ? static_cast<std::uint8_t>(address->ip_bytes().size()) : 0);
  if (!address) return;
  out.raw(base::as_bytes(address->ip_bytes()));
  out.u16_le(address->port());
}

template <std::size_t N>
std::array<std::uint8_t, N> octets_of(ByteView bytes) {
  std::array<std::uint8_t, N> octets{};
  std::ranges::transform(bytes, octets.begin(),
                         [](std::byte byte) { return std::to_integer<std::uint8_t>(byte); });
  return octets;
}

std::optional<Address> get_address(Decoder& in) {
  const std::uint8_t size = in.u8();
  if (size == 0) return std::nullopt;
  if (size != 4 && size != 16) in.fail("an address of neither family");
  const ByteView ip = in.raw(size);
  const std::uint16_t port = in.u16_le();
  if (!in.ok()) return std::nullopt;
  return size == 4 ? Address::v4(octets_of<4>(ip), port) : Address::v6(octets_of<16>(ip), port);
}

std::string get_text(Decoder& in, std::size_t size_max) {
  const std::string_view text = in.prefixed_text();
  if (text.size() > size_max) {
    in.fail("a text that is too long");
    return {};
  }
  return std::string(text);
}

std::uint16_t get_verb(Decoder& in) {
  const std::uint64_t verb = in.varint();
  if (verb > UINT16_MAX) in.fail("a verb out of range");
  return static_cast<std::uint16_t>(verb);
}

// A body while it is taken apart.
struct Input {
  const Bytes& body;
  Decoder in;

  Bytes payload() {
    const std::size_t offset = in.offset();
    in.raw(in.remaining());
    return in.ok() ? body.slice(offset) : Bytes();
  }
  // What a later release may have added to a frame of the handshake.
  void skip_rest() { in.raw(in.remaining()); }
};

void put_fields(Encoder& out, const Hello& frame) {
  ASSERT(!frame.cluster.empty() && frame.cluster.size() <= kClusterNameSizeMax);
  out.raw(base::as_bytes(kMagic));
  put(out, frame.versions);
  out.prefixed(frame.cluster);
  put(out, frame.from);
  out.u64_le(frame.life);
  out.u8(frame.to ? 1 : 0);
  if (frame.to) put(out, *frame.to);
  out.u8(static_cast<std::uint8_t>(frame.lane));
  put(out, frame.address);
  out.varint(frame.body_size_max);
  out.u8(frame.nonce ? 1 : 0);
  if (frame.nonce) out.raw(*frame.nonce);
}

// Thirty-two bytes as they are: a nonce or a proof.
std::array<std::byte, 32> get_octets(Decoder& in) {
  std::array<std::byte, 32> octets{};
  const ByteView bytes = in.raw(octets.size());
  if (in.ok()) std::ranges::copy(bytes, octets.begin());
  return octets;
}

Hello get_hello(Input& input) {
  Decoder& in = input.in;
  const ByteView magic = in.raw(kMagic.size());
  if (in.ok() && !base::equal(magic, base::as_bytes(kMagic))) in.fail("a hello of something else");
  Hello frame;
  frame.versions = get_versions(in);
  frame.cluster = get_text(in, kClusterNameSizeMax);
  if (frame.cluster.empty()) in.fail("a cluster without a name");
  frame.from = get_node(in);
  frame.life = in.u64_le();
  const std::uint8_t has_to = in.u8();
  if (has_to > 1) in.fail("neither with nor without a node");
  if (has_to == 1) frame.to = get_node(in);
  const std::uint8_t lane = in.u8();
  if (lane >= kLaneCount) in.fail("no such lane");
  frame.lane = static_cast<Lane>(lane);
  frame.address = get_address(in);
  frame.body_size_max = in.varint();
  const std::uint8_t has_nonce = in.u8();
  if (has_nonce > 1) in.fail("neither with nor without a nonce");
  if (has_nonce == 1) frame.nonce = get_octets(in);
  input.skip_rest();
  return frame;
}

void put_fields(Encoder& out, const Welcome& frame) {
  out.raw(base::as_bytes(kMagic));
  out.varint(frame.version.value());
  put(out, frame.node);
  out.varint(frame.body_size_max);
  out.varint(frame.clock_us);
}

Welcome get_welcome(Input& input) {
  Decoder& in = input.in;
  const ByteView magic = in.raw(kMagic.size());
  if (in.ok() && !base::equal(magic, base::as_bytes(kMagic)))
    in.fail("a welcome of something else");
  Welcome frame;
  frame.version = get_version(in);
  frame.node = get_node(in);
  frame.body_size_max = in.varint();
  frame.clock_us = in.varint();
  input.skip_rest();
  return frame;
}

void put_fields(Encoder& out, const Refusal& frame) {
  ASSERT(frame.text.size() <= kTextSizeMax);
  out.u8(static_cast<std::uint8_t>(frame.reason));
  put(out, frame.versions);
  out.prefixed(frame.text);
}

Refusal get_refusal(Input& input) {
  Decoder& in = input.in;
  Refusal frame;
  frame.reason = static_cast<RefusalReason>(in.u8());
  frame.versions = get_versions(in);
  frame.text = get_text(in, kTextSizeMax);
  input.skip_rest();
  return frame;
}

void put_fields(Encoder& out, const Request& frame) {
  out.varint(frame.id);
  out.varint(frame.verb);
  out.varint(frame.remaining_us);
  out.varint(frame.begun_by_us);
}

Request get_request(Input& input) {
  Request frame;
  frame.id = input.in.varint();
  frame.verb = get_verb(input.in);
  frame.remaining_us = input.in.varint();
  frame.begun_by_us = input.in.varint();
  frame.payload = input.payload();
  return frame;
}

void put_fields(Encoder& out, const Answer& frame) {
  out.varint(frame.id);
}

Answer get_answer(Input& input) {
  const std::uint64_t id = input.in.varint();
  return {.id = id, .payload = input.payload()};
}

void put_fields(Encoder& out, const Failure& frame) {
  ASSERT(frame.text.size() <= kTextSizeMax);
  out.varint(frame.id);
  out.u8(number_of(frame.code));
  out.prefixed(frame.text);
}

Failure get_failure(Decoder& in) {
  Failure frame;
  frame.id = in.varint();
  frame.code = code_of(in.u8());
  frame.text = get_text(in, kTextSizeMax);
  return frame;
}

void put_fields(Encoder& out, const OneWay& frame) {
  out.varint(frame.verb);
}

OneWay get_one_way(Input& input) {
  const std::uint16_t verb = get_verb(input.in);
  return {.verb = verb, .payload = input.payload()};
}

void put_fields(Encoder& out, const Cancel& frame) {
  out.varint(frame.id);
}
void put_fields(Encoder& out, const Ping& frame) {
  out.varint(frame.number);
}
void put_fields(Encoder& out, const Pong& frame) {
  out.varint(frame.number);
  out.varint(frame.clock_us);
}
Pong get_pong(Decoder& in) {
  const std::uint64_t number = in.varint();
  return {.number = number, .clock_us = in.varint()};
}
void put_fields(Encoder&, const Goodbye&) {}

void put_fields(Encoder& out, const Challenge& frame) {
  out.raw(frame.nonce);
}

Challenge get_challenge(Input& input) {
  const Challenge frame{.nonce = get_octets(input.in)};
  input.skip_rest();
  return frame;
}

void put_fields(Encoder& out, const Proof& frame) {
  out.raw(frame.proof);
}

Proof get_proof(Input& input) {
  const Proof frame{.proof = get_octets(input.in)};
  input.skip_rest();
  return frame;
}

const Bytes* payload_of(const Frame& frame) {
  if (const auto* request = std::get_if<Request>(&frame)) return &request->payload;
  if (const auto* answer = std::get_if<Answer>(&frame)) return &answer->payload;
  if (const auto* one_way = std::get_if<OneWay>(&frame)) return &one_way->payload;
  return nullptr;
}

Frame get_frame(Input& input, std::size_t kind) {
  switch (kind) {
    case 0:
      return get_hello(input);
    case 1:
      return get_welcome(input);
    case 2:
      return get_refusal(input);
    case 3:
      return get_request(input);
    case 4:
      return get_answer(input);
    case 5:
      return get_failure(input.in);
    case 6:
      return get_one_way(input);
    case 7:
      return Cancel{.id = input.in.varint()};
    case 8:
      return Ping{.number = input.in.varint()};
    case 9:
      return get_pong(input.in);
    case 10:
      return Goodbye();
    case 11:
      return get_challenge(input);
    case 12:
      return get_proof(input);
    default:
      input.in.fail("no such kind of frame");
      return Goodbye();
  }
}

}  // namespace

std::string_view name_of(RefusalReason reason) {
  switch (reason) {
    case RefusalReason::other_cluster:
      return "other cluster";
    case RefusalReason::no_common_version:
      return "no common version";
    case RefusalReason::other_node:
      return "other node";
    case RefusalReason::itself:
      return "itself";
    case RefusalReason::same_id:
      return "same id";
    case RefusalReason::overloaded:
      return "overloaded";
    case RefusalReason::stopping:
      return "stopping";
    case RefusalReason::bad_handshake:
      return "bad handshake";
    case RefusalReason::no_proof:
      return "no proof";
  }
  return "a reason of a later release";
}

std::string_view name_of(const Frame& frame) {
  return kFrameNames[frame.index()];
}

base::Result<Frame> decode_body(const Bytes& body) {
  Input input{.body = body, .in = Decoder(body)};
  const std::uint8_t kind = input.in.u8();
  Frame frame = get_frame(input, kind);
  TRY_VOID(input.in.finish());
  return frame;
}

void FrameBatch::add(const Frame& frame) {
  const std::size_t head_at = block_.size();
  block_.extend(kFrameHeadSize);
  Encoder out(block_);
  out.u8(static_cast<std::uint8_t>(frame.index()));
  std::visit([&](const auto& fields) { put_fields(out, fields); }, frame);
  const Bytes* const payload = payload_of(frame);
  const bool apart = payload != nullptr && payload->size() > kCopySizeMax;
  if (payload != nullptr && !apart) out.raw(*payload);

  std::size_t body_size = block_.size() - head_at - kFrameHeadSize;
  std::uint32_t checksum = base::crc32c(block_.view().subspan(head_at + kFrameHeadSize));
  if (apart) {
    body_size += payload->size();
    checksum = base::crc32c(*payload, checksum);
  }
  ASSERT(body_size <= UINT32_MAX);
  std::byte* const head = block_.data() + head_at;
  base::store_le(head, static_cast<std::uint32_t>(body_size));
  base::store_le(head + 4, checksum);
  base::store_le(head + 8, base::crc32c(ByteView(head, 8)));
  Seal::Mark mark;
  if (seal_ != nullptr) {
    mark = seal_->next({block_.view().subspan(head_at), apart ? payload->view() : ByteView()});
  }
  if (apart) {
    close_block();
    pieces_size_ += payload->size();
    pieces_.push_back(*payload);
  }
  if (seal_ != nullptr) block_.append(ByteView(mark));
}

void FrameBatch::close_block() {
  if (block_.empty()) return;
  pieces_size_ += block_.size();
  pieces_.push_back(std::move(block_).freeze());
}

std::vector<Bytes> FrameBatch::take() {
  close_block();
  pieces_size_ = 0;
  return std::exchange(pieces_, {});
}

base::Result<std::optional<FrameReader::Head>> FrameReader::head_at(ByteView bytes) const {
  if (bytes.size() < kFrameHeadSize) return std::optional<Head>();
  if (base::load_le<std::uint32_t>(bytes.data() + 8) != base::crc32c(bytes.first(8))) {
    return Error(Errc::corrupt, "not a frame: the checksum of its head does not match");
  }
  const Head head{.body_size = base::load_le<std::uint32_t>(bytes.data()),
                  .body_checksum = base::load_le<std::uint32_t>(bytes.data() + 4)};
  if (head.body_size == 0) return Error(Errc::corrupt, "a frame without a body");
  if (head.body_size > body_size_max_) {
    return Error(Errc::corrupt, "a frame of {} bytes, where {} are the most", head.body_size,
                 body_size_max_);
  }
  return std::optional<Head>(head);
}

base::Result<bool> FrameReader::has_frame(ByteView bytes) const {
  TRY(const std::optional<Head> head, head_at(bytes));
  return head && bytes.size() >= size_of(*head);
}

base::Result<std::optional<Bytes>> FrameReader::next() {
  if (chunk_.size() == at_) {
    TRY(const bool whole, has_frame(ByteView(input_.data(), filled_)));
    if (!whole) return std::optional<Bytes>();
    input_.truncate(filled_);
    chunk_ = std::move(input_).freeze();
    at_ = 0;
    filled_ = 0;
  }
  const ByteView rest = chunk_.view().subspan(at_);
  TRY(const std::optional<Head> head, head_at(rest));
  if (!head || rest.size() < size_of(*head)) return std::optional<Bytes>();
  Bytes body = chunk_.slice(at_ + kFrameHeadSize, head->body_size);
  if (base::crc32c(body) != head->body_checksum) {
    return Error(Errc::corrupt, "the checksum of a frame does not match");
  }
  if (seal_ != nullptr) {
    const ByteView frame = rest.first(kFrameHeadSize + head->body_size);
    const ByteView mark = rest.subspan(frame.size(), Seal::kMarkSize);
    if (!equal_in_constant_time(mark, seal_->next({frame}))) {
      return Error(Errc::corrupt, "the mark of a frame does not match: it is not the peer's");
    }
  }
  at_ += size_of(*head);
  return std::optional<Bytes>(std::move(body));
}

base::MutableByteView FrameReader::room() {
  if (chunk_.size() != at_ || at_ != 0) {
    // What is left of the chunk is the beginning of the next frame.
    const Bytes chunk = std::exchange(chunk_, {});
    const ByteView rest = chunk.view().subspan(std::exchange(at_, 0));
    filled_ = rest.size();
    input_.clear();
    input_.reserve(std::max(kInputSizeMin, 2 * filled_));
    input_.append(rest);
  }
  input_.truncate(filled_);
  if (input_.capacity() - filled_ < kInputSizeMin / 2) {
    input_.reserve(std::max(kInputSizeMin, 2 * input_.capacity()));
  }
  return input_.extend(input_.capacity() - filled_);
}

void FrameReader::commit(std::size_t size) {
  ASSERT(filled_ + size <= input_.size());
  filled_ += size;
}

}  // namespace helenus::rpc
