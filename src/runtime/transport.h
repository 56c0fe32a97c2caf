// Transport: listening, connecting, and byte streams, as TCP gives them.
//
// A Stream is ordered and reliable until it breaks; when it breaks, how much of what was written
// has reached the other side is in doubt. Messages, checksums and retries are built above it.
//
// Core affinity: a Stream or Listener belongs to the core that made it. Destroying one closes it;
// no operation may be pending on it then.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>

#include "base/bytes.h"
#include "runtime/address.h"
#include "runtime/operation.h"
#include "runtime/task.h"

namespace helenus::runtime {

class Stream {
 public:
  class Read final : public Operation<std::size_t> {
   public:
    Read(Stream& stream, base::MutableByteView into_, Until until)
        : Operation(stream.runtime_, std::move(until)), into(into_), stream_(stream) {}
    const base::MutableByteView into;

   private:
    void start() override { stream_.start_read(*this); }
    void cancel() override { stream_.cancel_read(*this); }
    Stream& stream_;
  };

  class Write final : public Operation<void> {
   public:
    Write(Stream& stream, std::span<const base::ByteView> pieces_, Until until)
        : Operation(stream.runtime_, std::move(until)), pieces(pieces_), stream_(stream) {}
    Write(Stream& stream, base::ByteView single, Until until)
        : Operation(stream.runtime_, std::move(until)),
          pieces(&single_, 1),
          stream_(stream),
          single_(single) {}
    const std::span<const base::ByteView> pieces;

   private:
    void start() override { stream_.start_write(*this); }
    void cancel() override { stream_.cancel_write(*this); }
    Stream& stream_;
    base::ByteView single_;
  };

  // The pieces a gathering write takes at most.
  static constexpr std::size_t kPiecesMax = 64;

  explicit Stream(Runtime& runtime) : runtime_(runtime) {}
  virtual ~Stream() = default;
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  // Reads at least one byte into `into` (not empty) and says how many; 0 means that the other side
  // has ended its half, and goes on meaning so. Errors: timeout, cancelled (nothing was taken),
  // connection_lost (and never an end from then on), closed (by us). One read at a time.
  Read read(base::MutableByteView into, Until until) { return {*this, into, std::move(until)}; }

  // Writes all of it, or fails. After an error, part of it may have been sent: the stream is fit
  // only for closing. What is written must stay as it is until the write ends. One at a time.
  // Errors: timeout, cancelled, connection_lost, closed (by us, or this half was ended).
  Write write(base::ByteView bytes, Until until) { return {*this, bytes, std::move(until)}; }
  // Gathers pieces (at most kPiecesMax) into as few packets as they need.
  Write write(std::span<const base::ByteView> pieces, Until until) {
    return {*this, pieces, std::move(until)};
  }

  // Ends this half: the other side reads to the end. Reading goes on. Harmless when repeated.
  // Requires: no write is pending.
  virtual void shutdown_write() = 0;
  // Breaks both halves at once: pending operations end with Errc::closed. Harmless when repeated.
  // The other side still gets what was written before; but if bytes from it lie here unread, they
  // are lost, and it is told so by connection_lost.
  virtual void close() = 0;

  virtual Address local_address() const = 0;
  virtual Address peer_address() const = 0;

 protected:
  virtual void start_read(Read& read) = 0;
  virtual void cancel_read(Read& read) = 0;
  virtual void start_write(Write& write) = 0;
  virtual void cancel_write(Write& write) = 0;

  Runtime& runtime_;
};

class Listener {
 public:
  class Accept final : public Operation<std::unique_ptr<Stream>> {
   public:
    Accept(Listener& listener, Until until)
        : Operation(listener.runtime_, std::move(until)), listener_(listener) {}

   private:
    void start() override { listener_.start_accept(*this); }
    void cancel() override { listener_.cancel_accept(*this); }
    Listener& listener_;
  };

  explicit Listener(Runtime& runtime) : runtime_(runtime) {}
  virtual ~Listener() = default;
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  // The next connection. Errors: timeout, cancelled, closed; overloaded when the process is out of
  // descriptors (the connection waits, try again later). One accept at a time.
  Accept accept(Until until) { return {*this, std::move(until)}; }
  // The address in force: the port the system chose, if 0 was asked for.
  virtual Address address() const = 0;
  // A pending accept ends with Errc::closed. Connections accepted before live on; those that still
  // wait are broken. Harmless when repeated.
  virtual void close() = 0;

 protected:
  virtual void start_accept(Accept& accept) = 0;
  virtual void cancel_accept(Accept& accept) = 0;

  Runtime& runtime_;
};

struct ListenOptions {
  // Connections that may wait to be accepted.
  int backlog = 512;
  // Lets every core listen on the same address; the system spreads connections over them. The
  // address is still not shared with another process.
  bool shared_between_cores = false;
  // Connections break (connection_lost) when their other side has given no sign of life for so
  // long, or a little longer, also when nobody has anything to say: what it sent before then never
  // arrives. None: they last for minutes. Whole seconds are kept, at least two.
  std::optional<Duration> lost_after = std::nullopt;
};

class Transport {
 public:
  virtual ~Transport() = default;

  // Errors: address_in_use, permission_denied, invalid_argument (not an address of this machine).
  virtual base::Result<std::unique_ptr<Listener>> listen(const Address& address,
                                                         ListenOptions options) = 0;
  base::Result<std::unique_ptr<Listener>> listen(const Address& address) {
    return listen(address, ListenOptions{});
  }
  // Errors: refused (nobody listens), timeout, cancelled, unavailable (no route), overloaded (out
  // of descriptors or ports), invalid_argument (`from` is not an address of this machine).
  // `from` chooses the local address (its port may be 0), for hosts that have several.
  virtual Task<base::Result<std::unique_ptr<Stream>>> connect(Address address, Until until,
                                                              std::optional<Address> from) = 0;
  Task<base::Result<std::unique_ptr<Stream>>> connect(Address address, Until until) {
    return connect(address, std::move(until), std::nullopt);
  }
};

}  // namespace helenus::runtime
