#include "rpc/pipe.h"

#include <utility>
#include <vector>

namespace helenus::rpc {

using base::Errc;
using base::Error;
using base::Result;
using runtime::Task;
using runtime::Until;

Pipe::Pipe(runtime::Runtime& runtime, std::unique_ptr<runtime::Stream> stream,
           std::size_t body_size_max)
    : runtime_(runtime),
      stream_(std::move(stream)),
      peer_address_(stream_->peer_address()),
      reader_(body_size_max),
      work_(runtime) {}

void Pipe::seal(const Key& writing, const Key& reading) {
  write_seal_.emplace(writing);
  read_seal_.emplace(reading);
  reader_.set_seal(&*read_seal_);
}

Result<std::optional<Frame>> Pipe::take(Transcript* transcript) {
  TRY(const std::optional<base::Bytes> body, reader_.next());
  if (!body) return std::optional<Frame>();
  bytes_since_frame_ = 0;
  if (transcript != nullptr) transcript->add(*body);
  TRY(Frame frame, decode_body(*body));
  return std::optional<Frame>(std::move(frame));
}

Task<Result<void>> Pipe::read_more(Until until) {
  const auto got = co_await stream_->read(reader_.room(), std::move(until));
  if (!got) co_return got.error();
  if (*got == 0) {
    if (reader_.at_boundary()) co_return Error(Errc::closed, "the other side hung up");
    co_return Error(Errc::connection_lost, "the other side hung up within a frame");
  }
  bytes_read_ += *got;
  bytes_since_frame_ += *got;
  reader_.commit(*got);
  co_return {};
}

Task<Result<Frame>> Pipe::read(Until until, Transcript* transcript) {
  for (;;) {
    CO_TRY(std::optional<Frame> frame, take(transcript));
    if (frame) co_return *std::move(frame);
    CO_TRY_VOID(co_await read_more(until));
  }
}

Task<Result<void>> Pipe::write(Frame frame, Until until, Transcript* transcript) {
  FrameBatch batch;
  batch.add(frame);
  const std::vector<base::Bytes> pieces = batch.take();
  // Frames of a handshake are small: one piece.
  if (transcript != nullptr) transcript->add(pieces.front().view().subspan(kFrameHeadSize));
  const std::vector<base::ByteView> views(pieces.begin(), pieces.end());
  CO_TRY_VOID(co_await stream_->write(views, std::move(until)));
  for (const base::Bytes& piece : pieces) bytes_written_ += piece.size();
  co_return {};
}

Task<Error> Pipe::write_from(FrameSource& source, Patience patience, runtime::StopToken stop) {
  for (;;) {
    FrameBatch batch(write_seal_ ? &*write_seal_ : nullptr);
    source.fill(batch);
    if (batch.empty()) {
      writing_ = false;
      if (!std::exchange(awake_, false)) {
        const auto woken = co_await work_.wait({.stop = stop});
        if (!woken) co_return woken.error();
        awake_ = false;
      }
      continue;
    }
    writing_ = true;
    const std::vector<base::Bytes> pieces = batch.take();
    const std::vector<base::ByteView> views(pieces.begin(), pieces.end());
    std::size_t size = 0;
    for (const base::Bytes& piece : pieces) size += piece.size();
    const auto written =
        co_await stream_->write(views, Until::after(runtime_, patience.for_bytes(size), stop));
    if (!written) co_return written.error();
    bytes_written_ += size;
  }
}

void Pipe::wake() {
  writing_ = true;
  if (work_.empty()) {
    awake_ = true;
  } else {
    work_.wake_one();
  }
}

}  // namespace helenus::rpc
