// NativeStream: one TCP connection, watched by its core's loop.
#pragma once

#include <cstddef>
#include <memory>

#include "runtime/address.h"
#include "runtime/native/descriptor.h"
#include "runtime/native/loop.h"
#include "runtime/transport.h"

namespace helenus::runtime::native {

class NativeStream final : public Stream, private Pollable {
 public:
  // `socket` is connected and non-blocking. Errors: overloaded when it cannot be watched.
  static base::Result<std::unique_ptr<Stream>> make(Runtime& runtime, Loop& loop, Descriptor socket,
                                                    const Address& peer);
  ~NativeStream() override;

  void shutdown_write() override;
  void close() override;
  Address local_address() const override { return local_; }
  Address peer_address() const override { return peer_; }

 private:
  // Calls made for one write before others get their turn.
  static constexpr int kSendsPerTurn = 16;

  // Goes on with an operation that had to give way.
  struct ReadTurn final : Job {
    explicit ReadTurn(NativeStream& stream_) : stream(stream_) {}
    void run() override { stream.try_read(); }
    NativeStream& stream;
  };
  struct WriteTurn final : Job {
    explicit WriteTurn(NativeStream& stream_) : stream(stream_) {}
    void run() override { stream.try_write(); }
    NativeStream& stream;
  };

  NativeStream(Runtime& runtime, Loop& loop, Descriptor socket, const Address& peer);

  void start_read(Read& read) override;
  void cancel_read(Read& read) override;
  void start_write(Write& write) override;
  void cancel_write(Write& write) override;
  void on_ready(std::uint32_t events) override;

  void try_read();
  void try_write();
  // Whether everything has been sent.
  bool skip_sent_pieces();
  // Offers the kernel what is left. A count, or minus an error number.
  long send_some();
  void advance(std::size_t sent);
  void end_read(base::Result<std::size_t> result);
  void end_write(base::Result<void> result);
  base::Error lost(int error_number, const char* doing);

  Loop& loop_;
  Descriptor socket_;
  const Address local_;
  const Address peer_;

  // What the kernel may have for us. Cleared only when it said that it has not.
  bool readable_ = true;
  bool writable_ = true;
  // The other side has ended or broken: there will be no further edge for what is left to read.
  bool last_edge_seen_ = false;
  bool write_ended_ = false;
  // Once broken, always broken: the kernel tells an error once and then pretends an orderly end.
  bool broken_ = false;
  // A write was left half done: nothing may follow it.
  bool torn_ = false;

  Read* read_ = nullptr;
  Write* write_ = nullptr;
  std::size_t piece_ = 0;         // of the write: the first that has not left completely
  std::size_t piece_offset_ = 0;  // and how much of it has
  ReadTurn read_turn_{*this};
  WriteTurn write_turn_{*this};
};

}  // namespace helenus::runtime::native
