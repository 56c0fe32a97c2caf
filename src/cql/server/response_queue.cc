#include "cql/server/response_queue.h"

#include <utility>

#include "cql/protocol/segment.h"

namespace helenus::cql {

namespace {

// In the header of the frame that begins there.
void say_version(base::Buffer& frames, std::size_t begin, std::uint8_t version) {
  constexpr std::uint8_t kResponse = 0x80;
  frames.data()[begin] = static_cast<std::byte>(version | kResponse);
}

}  // namespace

void ResponseQueue::add(const protocol::Response& response, std::int16_t stream,
                        protocol::Compression compression) {
  block_.reserve(kBlockSizeMin);
  if (segments_) {
    base::Buffer frame;
    protocol::encode_frame(response, stream, protocol::Compression::none, frame);
    return add_segments(std::move(frame));
  }
  const std::size_t begin = block_.size();
  const bool whole = compression != protocol::Compression::none &&
                     response.body_size() >= protocol::kCompressSizeMin;
  if (whole) {
    protocol::encode_frame(response, stream, compression, block_);
    say_version(block_, begin, version_);
  } else {
    protocol::encode_frame_head(response, stream, block_);
    say_version(block_, begin, version_);
    for (const base::Bytes& piece : response.body) add_bytes(piece);
  }
  if (block_.size() >= kBlockSize) close_block();
}

void ResponseQueue::add(const base::Bytes& frame) {
  if (!segments_) return add_bytes(frame);
  base::Buffer copy;
  copy.append(frame.view());
  add_segments(std::move(copy));
}

void ResponseQueue::add_segments(base::Buffer frame) {
  say_version(frame, 0, version_);
  protocol::append_segments(frame.view(), *segments_, block_);
  if (block_.size() >= kBlockSize) close_block();
}

void ResponseQueue::add_bytes(const base::Bytes& bytes) {
  if (bytes.size() <= kCopySizeMax) {
    block_.append(bytes);
    return;
  }
  close_block();
  add_piece(bytes);
}

void ResponseQueue::close_block() {
  if (!block_.empty()) add_piece(std::move(block_).freeze());
}

void ResponseQueue::add_piece(base::Bytes piece) {
  pieces_size_ += piece.size();
  pieces_.push_back(std::move(piece));
}

ResponseQueue::Pieces ResponseQueue::take(std::size_t size_max, std::size_t pieces_max) {
  ASSERT(size_max > 0 && pieces_max > 0);
  close_block();
  Pieces taken;
  while (size_max > 0 && taken.size() < pieces_max && !pieces_.empty()) {
    base::Bytes& front = pieces_.front();
    if (front.size() > size_max) {
      taken.push_back(front.slice(0, size_max));
      front = front.slice(size_max);
    } else {
      taken.push_back(std::move(front));
      pieces_.pop_front();
    }
    size_max -= taken.back().size();
    pieces_size_ -= taken.back().size();
  }
  return taken;
}

void ResponseQueue::clear() {
  pieces_.clear();
  pieces_size_ = 0;
  block_.clear();
}

}  // namespace helenus::cql
