// ResponseQueue: frames that wait to be written to one connection, in the order they were added.
//
// Small frames are copied side by side into one block, so that many answers are one piece of a
// write; a large body is sent from where it lies. Pure: it knows no stream.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>

#include <absl/container/inlined_vector.h>

#include "base/bytes.h"
#include "cql/protocol/frame.h"
#include "cql/protocol/response.h"

namespace helenus::cql {

class ResponseQueue {
 public:
  // A piece of a body that is larger than this is not copied.
  static constexpr std::size_t kCopySizeMax = std::size_t{16} << 10;
  // A block of small frames is closed when it has grown to this.
  static constexpr std::size_t kBlockSize = std::size_t{64} << 10;
  // What a block begins with: an answer or a few, without growing.
  static constexpr std::size_t kBlockSizeMin = 1024;

  // The frames that are added from now on say that version.
  void speak(std::uint8_t version) { version_ = version; }
  // They travel in segments (version 5), which are compressed instead of the frames.
  void begin_segments(protocol::Compression compression) { segments_ = compression; }

  void add(const protocol::Response& response, std::int16_t stream,
           protocol::Compression compression);
  // A frame that is shared with other connections.
  void add(const base::Bytes& frame);

  bool empty() const { return size() == 0; }
  // Bytes that wait.
  std::size_t size() const { return pieces_size_ + block_.size(); }

  // Takes from the front at most that many bytes and pieces. Requires: both are positive.
  using Pieces = absl::InlinedVector<base::Bytes, 4>;
  Pieces take(std::size_t size_max, std::size_t pieces_max);
  void clear();

 private:
  void add_segments(base::Buffer frame);
  void add_bytes(const base::Bytes& bytes);
  void close_block();
  void add_piece(base::Bytes piece);

  std::uint8_t version_ = protocol::kVersion;
  std::optional<protocol::Compression> segments_;
  std::deque<base::Bytes> pieces_;
  std::size_t pieces_size_ = 0;
  base::Buffer block_;  // behind all pieces
};

}  // namespace helenus::cql
