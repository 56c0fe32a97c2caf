// Frames: what travels on a connection between two nodes, and their bytes (docs/formats/rpc.md).
//
//   body size u32 | checksum of the body u32 | checksum of these eight bytes u32 | body
//
// The head has a checksum of its own: whoever sends garbage is known by it after twelve bytes, and
// not when as many have come as the garbage says. A body is the kind of the frame, its fields, and
// for some a payload, which runs to the end and which only the codec of its verb understands.
//
//   caller                                  callee
//   Hello ────────────────────────────────▶         who I am, whom I want, what I speak
//         ◀────────────────── Challenge, or Refusal and the end
//   Proof ────────────────────────────────▶         that I know the secret (handshake.h)
//         ◀───────────── Welcome and Proof, or Refusal and the end
//   Request, OneWay, Cancel, Ping ────────▶
//         ◀─────────────── Answer, Failure, Pong, Goodbye
//
// Whoever dialled asks, the other answers: a pair of nodes that ask each other have two
// connections. The frames of the handshake mean the same in every version; their readers skip what
// follows the fields they know. Behind every later frame of a connection that was proved lies its
// mark (crypto.h), sixteen bytes that its size does not count. Nodes without a secret leave out
// challenge, proofs and marks.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "model/node_id.h"
#include "rpc/crypto.h"
#include "rpc/verb.h"
#include "rpc/version.h"
#include "runtime/address.h"

namespace helenus::rpc {

inline constexpr std::size_t kFrameHeadSize = 12;
// What a frame takes besides its payload, at most.
inline constexpr std::size_t kFrameOverheadMax = 64;
inline constexpr std::size_t kFrameBodySizeMaxDefault = std::size_t{16} << 20;
// Until the handshake is over.
inline constexpr std::size_t kHandshakeBodySizeMax = 1024;
inline constexpr std::size_t kClusterNameSizeMax = 128;
inline constexpr std::size_t kTextSizeMax = 512;

// Drawn for one handshake.
using Nonce = std::array<std::byte, 32>;

struct Hello {
  VersionRange versions;
  std::string cluster;  // 1 to kClusterNameSizeMax bytes
  model::NodeId from;
  std::uint64_t life = 0;           // drawn at each start: tells a node from another of the same id
  std::optional<model::NodeId> to;  // whoever answers if none
  Lane lane = Lane::control;
  std::optional<runtime::Address> address;    // where `from` can be dialled
  std::uint64_t body_size_max = 0;            // of frames that may be sent back
  std::optional<Nonce> nonce = std::nullopt;  // of a node that has a secret

  friend bool operator==(const Hello&, const Hello&) = default;
};

struct Welcome {
  ProtocolVersion version;  // spoken from now on
  model::NodeId node;
  std::uint64_t body_size_max = 0;  // of frames that may be sent
  std::uint64_t clock_us = 0;       // what the callee's monotonic clock shows

  friend bool operator==(const Welcome&, const Welcome&) = default;
};

enum class RefusalReason : std::uint8_t {
  other_cluster = 1,
  no_common_version = 2,
  other_node = 3,  // not the one that was wanted
  itself = 4,      // the node has dialled itself
  same_id = 5,     // another node runs under the id of this one
  overloaded = 6,
  stopping = 7,
  bad_handshake = 8,
  no_proof = 9,  // of the secret: a wrong one, or none where there is one
};
std::string_view name_of(RefusalReason reason);

struct Refusal {
  RefusalReason reason = RefusalReason::bad_handshake;
  VersionRange versions;  // what the callee speaks
  std::string text;       // for people; at most kTextSizeMax bytes

  friend bool operator==(const Refusal&, const Refusal&) = default;
};

struct Request {
  std::uint64_t id = 0;
  std::uint16_t verb = 0;
  std::uint64_t remaining_us = 0;  // until the caller gives up; 0 if it never does
  // By when it must have been begun, on the callee's monotonic clock; 0 if that is not known. What
  // remains counts from where it is read, this from where it was sent.
  std::uint64_t begun_by_us = 0;
  base::Bytes payload;

  friend bool operator==(const Request&, const Request&) = default;
};
struct Answer {
  std::uint64_t id = 0;
  base::Bytes payload;
  friend bool operator==(const Answer&, const Answer&) = default;
};
// Instead of an answer.
struct Failure {
  std::uint64_t id = 0;
  base::Errc code = base::Errc::internal;
  std::string text;  // at most kTextSizeMax bytes
  friend bool operator==(const Failure&, const Failure&) = default;
};
struct OneWay {
  std::uint16_t verb = 0;
  base::Bytes payload;
  friend bool operator==(const OneWay&, const OneWay&) = default;
};
// The answer to that request is no longer wanted.
struct Cancel {
  std::uint64_t id = 0;
  friend bool operator==(const Cancel&, const Cancel&) = default;
};
struct Ping {
  std::uint64_t number = 0;
  friend bool operator==(const Ping&, const Ping&) = default;
};
struct Pong {
  std::uint64_t number = 0;
  std::uint64_t clock_us = 0;  // what the callee's monotonic clock shows
  friend bool operator==(const Pong&, const Pong&) = default;
};
// The callee stops: it answers what it was asked, and takes no more.
struct Goodbye {
  friend bool operator==(const Goodbye&, const Goodbye&) = default;
};

// The callee has a secret, too, and asks for a proof of it.
struct Challenge {
  Nonce nonce{};
  friend bool operator==(const Challenge&, const Challenge&) = default;
};
// That its sender knows the secret and has seen all frames of this handshake so far.
struct Proof {
  Digest256 proof{};
  friend bool operator==(const Proof&, const Proof&) = default;
};

using Frame = std::variant<Hello, Welcome, Refusal, Request, Answer, Failure, OneWay, Cancel, Ping,
                           Pong, Goodbye, Challenge, Proof>;

std::string_view name_of(const Frame& frame);

// A body, as FrameReader cuts it out. Payloads share its memory. Errors: corrupt.
base::Result<Frame> decode_body(const base::Bytes& body);

// Frames to be written together. Small ones lie side by side, a large payload is sent from where it
// is. With a seal, which outlives the batch, each has its mark behind it.
class FrameBatch {
 public:
  // A payload larger than this is not copied.
  static constexpr std::size_t kCopySizeMax = std::size_t{16} << 10;
  static constexpr std::size_t kSizeWanted = std::size_t{256} << 10;
  static constexpr std::size_t kPiecesMax = 32;

  explicit FrameBatch(Seal* seal = nullptr) : seal_(seal) {}

  // Requires: texts and names within their limits.
  void add(const Frame& frame);

  bool empty() const { return size() == 0; }
  // No more should be added.
  bool full() const { return size() >= kSizeWanted || pieces_.size() >= kPiecesMax; }
  std::size_t size() const { return pieces_size_ + block_.size(); }

  // All of it, to be written in this order; the batch is empty afterwards. At most
  // 2 * kPiecesMax pieces if nothing was added to a full batch.
  std::vector<base::Bytes> take();

 private:
  void close_block();

  Seal* seal_;
  std::vector<base::Bytes> pieces_;
  std::size_t pieces_size_ = 0;
  base::Buffer block_;
};

// Cuts what a stream delivers, in whatever pieces, into bodies. Pure. Memory grows as bytes come,
// not as a head promises.
class FrameReader {
 public:
  static constexpr std::size_t kInputSizeMin = std::size_t{8} << 10;

  explicit FrameReader(std::size_t body_size_max) : body_size_max_(body_size_max) {}

  void set_body_size_max(std::size_t body_size_max) { body_size_max_ = body_size_max; }
  // From the next frame on each has a mark behind it, which this seal checks. It outlives this.
  void set_seal(Seal* seal) { seal_ = seal; }

  // The next body that is there whole; none if bytes are missing. Errors: corrupt; final.
  base::Result<std::optional<base::Bytes>> next();

  // Where to read more bytes to; and that so many came. Requires: next() gave none.
  base::MutableByteView room() [[clang::lifetimebound]];
  void commit(std::size_t size);

  // No part of a frame is waiting for the rest of it.
  bool at_boundary() const { return chunk_.size() == at_ && filled_ == 0; }

 private:
  struct Head {
    std::size_t body_size;
    std::uint32_t body_checksum;
  };
  base::Result<std::optional<Head>> head_at(base::ByteView bytes) const;
  // Whether a frame lies there whole; the input is then to be cut.
  base::Result<bool> has_frame(base::ByteView bytes) const;
  // Of a frame as it lies there, whole.
  std::size_t size_of(const Head& head) const {
    return kFrameHeadSize + head.body_size + (seal_ == nullptr ? 0 : Seal::kMarkSize);
  }

  std::size_t body_size_max_;
  Seal* seal_ = nullptr;
  base::Bytes chunk_;  // frames are cut from here, at at_
  std::size_t at_ = 0;
  base::Buffer input_;  // no whole frame yet: filled_ bytes, and room behind them
  std::size_t filled_ = 0;
};

}  // namespace helenus::rpc
