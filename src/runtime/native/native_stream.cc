#include "runtime/native/native_stream.h"

#include <array>
#include <cerrno>
#include <utility>

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "base/assert.h"
#include "runtime/native/socket.h"
#include "runtime/native/system_error.h"

namespace helenus::runtime::native {

using base::Errc;
using base::Error;
using base::Result;

NativeStream::NativeStream(Runtime& runtime, Loop& loop, Descriptor socket, const Address& peer)
    : Stream(runtime),
      loop_(loop),
      socket_(std::move(socket)),
      local_(local_address_of(socket_)),
      peer_(peer) {}

Result<std::unique_ptr<Stream>> NativeStream::make(Runtime& runtime, Loop& loop, Descriptor socket,
                                                   const Address& peer) {
  auto stream =
      std::unique_ptr<NativeStream>(new NativeStream(runtime, loop, std::move(socket), peer));
  TRY_VOID(
      loop.watch(stream->socket_.number(), EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, *stream));
  return stream;
}

NativeStream::~NativeStream() {
  ASSERT(read_ == nullptr && write_ == nullptr, "stream to {} destroyed while in use", peer_);
}

void NativeStream::shutdown_write() {
  ASSERT(write_ == nullptr, "ending a half that is being written to");
  if (write_ended_ || !socket_.valid()) return;
  write_ended_ = true;
  // Fails only if the connection has broken, and then reading tells.
  ::shutdown(socket_.number(), SHUT_WR);
}

void NativeStream::close() {
  if (!socket_.valid()) return;
  socket_.reset();
  read_turn_.unlink();
  write_turn_.unlink();
  if (read_ != nullptr) end_read(Error(Errc::closed));
  if (write_ != nullptr) end_write(Error(Errc::closed));
}

void NativeStream::on_ready(std::uint32_t events) {
  constexpr std::uint32_t kEnd = EPOLLRDHUP | EPOLLHUP | EPOLLERR;
  if ((events & kEnd) != 0) last_edge_seen_ = true;
  if ((events & (EPOLLIN | kEnd)) != 0) {
    readable_ = true;
    if (read_ != nullptr && !read_turn_.linked()) try_read();
  }
  if ((events & (EPOLLOUT | EPOLLHUP | EPOLLERR)) != 0) {
    writable_ = true;
    if (write_ != nullptr && !write_turn_.linked()) try_write();
  }
}

// Reading

void NativeStream::start_read(Read& read) {
  ASSERT(read_ == nullptr, "one read at a time");
  ASSERT(!read.into.empty(), "a read into nothing would look like the end");
  if (!socket_.valid()) {
    read.complete(Error(Errc::closed));
    return;
  }
  read_ = &read;
  if (!readable_) return;
  if (loop_.may_complete_now()) {
    try_read();
  } else {
    loop_.post(read_turn_);
  }
}

void NativeStream::try_read() {
  const base::MutableByteView into = read_->into;
  const ssize_t count = ::recv(socket_.number(), into.data(), into.size(), 0);
  if (count > 0) {
    const auto taken = static_cast<std::size_t>(count);
    if (taken < into.size() && !last_edge_seen_) readable_ = false;
    end_read(taken);
  } else if (count == 0) {
    end_read(broken_ ? Result<std::size_t>(lost(ECONNRESET, "read from")) : 0);
  } else if (errno == EAGAIN) {
    readable_ = false;
  } else if (errno == EINTR) {
    loop_.post(read_turn_);
  } else {
    end_read(lost(errno, "read from"));
  }
}

void NativeStream::cancel_read(Read&) {
  read_turn_.unlink();
  end_read(Error(Errc::cancelled));
}

void NativeStream::end_read(Result<std::size_t> result) {
  std::exchange(read_, nullptr)->complete(std::move(result));
}

// Writing

void NativeStream::start_write(Write& write) {
  ASSERT(write_ == nullptr, "one write at a time");
  ASSERT(write.pieces.size() <= kPiecesMax, "{} pieces", write.pieces.size());
  if (!socket_.valid() || write_ended_) {
    write.complete(Error(Errc::closed));
    return;
  }
  if (broken_ || torn_) {
    write.complete(Error(Errc::connection_lost, "write to {}: broken before", peer_));
    return;
  }
  write_ = &write;
  piece_ = 0;
  piece_offset_ = 0;
  if (!writable_) return;
  if (loop_.may_complete_now()) {
    try_write();
  } else {
    loop_.post(write_turn_);
  }
}

void NativeStream::try_write() {
  for (int sends = 0; sends < kSendsPerTurn; ++sends) {
    if (skip_sent_pieces()) {
      end_write({});
      return;
    }
    const long sent = send_some();
    if (sent >= 0) {
      advance(static_cast<std::size_t>(sent));
    } else if (sent == -EAGAIN) {
      writable_ = false;
      return;
    } else if (sent != -EINTR) {
      end_write(lost(static_cast<int>(-sent), "write to"));
      return;
    }
  }
  loop_.post(write_turn_);
}

bool NativeStream::skip_sent_pieces() {
  const auto pieces = write_->pieces;
  while (piece_ < pieces.size() && piece_offset_ == pieces[piece_].size()) {
    ++piece_;
    piece_offset_ = 0;
  }
  return piece_ == pieces.size();
}

long NativeStream::send_some() {
  const auto pieces = write_->pieces.subspan(piece_);
  ssize_t sent = 0;
  if (pieces.size() == 1) {
    const base::ByteView rest = pieces.front().subspan(piece_offset_);
    sent = ::send(socket_.number(), rest.data(), rest.size(), MSG_NOSIGNAL);
  } else {
    std::array<iovec, kPiecesMax> vectors;
    std::size_t offset = piece_offset_;
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      const base::ByteView rest = pieces[i].subspan(std::exchange(offset, 0));
      vectors[i] = {.iov_base = const_cast<std::byte*>(rest.data()), .iov_len = rest.size()};
    }
    msghdr message{};
    message.msg_iov = vectors.data();
    message.msg_iovlen = pieces.size();
    sent = ::sendmsg(socket_.number(), &message, MSG_NOSIGNAL);
  }
  return sent >= 0 ? sent : -errno;
}

void NativeStream::advance(std::size_t sent) {
  while (sent > 0) {
    const std::size_t left = write_->pieces[piece_].size() - piece_offset_;
    if (sent < left) {
      piece_offset_ += sent;
      return;
    }
    sent -= left;
    ++piece_;
    piece_offset_ = 0;
  }
}

void NativeStream::cancel_write(Write&) {
  write_turn_.unlink();
  torn_ = true;
  end_write(Error(Errc::cancelled));
}

void NativeStream::end_write(Result<void> result) {
  std::exchange(write_, nullptr)->complete(std::move(result));
}

Error NativeStream::lost(int error_number, const char* doing) {
  broken_ = true;
  return Error(Errc::connection_lost, "{} {}: {}", doing, peer_, system_text(error_number));
}

}  // namespace helenus::runtime::native
