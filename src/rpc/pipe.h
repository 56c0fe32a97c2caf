// Pipe: frames over one stream. Frames are taken one by one from what was read; what is to be
// written is fetched from a source when the stream has room, so that many frames are one write.
//
// Core affinity: that of the stream. One reader and one writer at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "base/bytes.h"
#include "base/codec.h"
#include "base/result.h"
#include "rpc/frame.h"
#include "runtime/operation.h"
#include "runtime/stop_token.h"
#include "runtime/task.h"
#include "runtime/transport.h"
#include "runtime/wait_queue.h"

namespace helenus::rpc {

// What a Pipe writes.
class FrameSource {
 public:
  // Adds frames until there are none or the batch is full. What was added before is with the stream
  // by now.
  virtual void fill(FrameBatch& batch) = 0;

 protected:
  ~FrameSource() = default;
};

// How long something may take that moves so many bytes.
struct Patience {
  runtime::Duration timeout;
  std::size_t bytes_per_second_min = 1;

  runtime::Duration for_bytes(std::uint64_t bytes) const {
    return timeout + std::chrono::milliseconds(bytes * 1000 / bytes_per_second_min);
  }
};

// The frames of a handshake as they were written and read, each behind its size: what proofs are
// about.
class Transcript {
 public:
  void add(base::ByteView body) {
    base::Encoder(bytes_).u32_le(static_cast<std::uint32_t>(body.size()));
    bytes_.append(body);
  }
  Transcript copy() const {
    Transcript copied;
    copied.bytes_.append(view());
    return copied;
  }
  base::ByteView view() const [[clang::lifetimebound]] { return bytes_.view(); }

 private:
  base::Buffer bytes_;
};

class Pipe {
 public:
  // `body_size_max` of frames to be read.
  Pipe(runtime::Runtime& runtime, std::unique_ptr<runtime::Stream> stream,
       std::size_t body_size_max);

  void set_body_size_max(std::size_t body_size_max) { reader_.set_body_size_max(body_size_max); }

  // The next frame that is there; none if more must be read. Errors: corrupt.
  base::Result<std::optional<Frame>> take(Transcript* transcript = nullptr);
  // Reads more. Errors: closed when the other side has ended its half between frames, or we closed;
  // connection_lost, timeout, cancelled. Requires: take() gave none.
  runtime::Task<base::Result<void>> read_more(runtime::Until until);
  // Both. For the handshake, whose frames a transcript takes in.
  runtime::Task<base::Result<Frame>> read(runtime::Until until, Transcript* transcript = nullptr);

  // Writes one frame. Requires: nobody else writes. Errors: those of Stream::write.
  runtime::Task<base::Result<void>> write(Frame frame, runtime::Until until,
                                          Transcript* transcript = nullptr);
  // From now on every frame has a mark, made with one key and checked with the other. Once.
  void seal(const Key& writing, const Key& reading);
  // Writes what the source has, each batch within the time that `patience` leaves it, until stopped
  // (`cancelled`), or an error of Stream::write.
  runtime::Task<base::Error> write_from(FrameSource& source, Patience patience,
                                        runtime::StopToken stop);
  // The source has something.
  void wake();
  // The source has, or may have, something that is not handed to the stream.
  bool is_writing() const { return writing_; }
  // Bytes read of the frame that is coming in, and perhaps of some before it.
  std::uint64_t bytes_since_frame() const { return bytes_since_frame_; }

  void end_writing() { stream_->shutdown_write(); }
  void close() { stream_->close(); }
  runtime::Address peer_address() const { return peer_address_; }

  // Since last asked.
  std::uint64_t take_bytes_read() { return std::exchange(bytes_read_, 0); }
  std::uint64_t take_bytes_written() { return std::exchange(bytes_written_, 0); }

 private:
  runtime::Runtime& runtime_;
  const std::unique_ptr<runtime::Stream> stream_;
  const runtime::Address peer_address_;
  std::optional<Seal> write_seal_;
  std::optional<Seal> read_seal_;
  FrameReader reader_;
  std::uint64_t bytes_read_ = 0;
  std::uint64_t bytes_written_ = 0;
  std::uint64_t bytes_since_frame_ = 0;
  bool awake_ = false;
  bool writing_ = false;
  runtime::WaitQueue work_;
};

}  // namespace helenus::rpc
