#include "cql/server/response_queue.h"

#include <utility>

namespace helenus::cql {

void ResponseQueue::add(const protocol::Response& response, std::int16_t stream,
                        protocol::Compression compression) {
  block_.reserve(kBlockSizeMin);
  const bool whole = compression != protocol::Compression::none &&
                     response.body_size() >= protocol::kCompressSizeMin;
  if (whole) {
    protocol::encode_frame(response, stream, compression, block_);
  } else {
    protocol::encode_frame_head(response, stream, block_);
    for (const base::Bytes& piece : response.body) add(piece);
  }
  if (block_.size() >= kBlockSize) close_block();
}

void ResponseQueue::add(const base::Bytes& frame) {
  if (frame.size() <= kCopySizeMax) {
    block_.append(frame);
    return;
  }
  close_block();
  add_piece(frame);
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
