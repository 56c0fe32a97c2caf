// NativeTransport: TCP streams of one core, over epoll.
//
// A socket is watched once, edge-triggered, for everything. An operation tries the system call
// first; only when the kernel has nothing for it does it wait for the edge. A read that was not
// filled has emptied the socket, so the next one waits without asking (epoll(7), question 9). In
// the common case a message so costs its share of one epoll_wait, one recv and one send.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "runtime/native/loop.h"
#include "runtime/native/mutex.h"
#include "runtime/transport.h"

namespace helenus::runtime::native {

// The addresses that cores of this process share. The kernel would let another process of the same
// user share them too; so whoever comes first makes sure that nobody is there.
// Threads: any.
class SharedAddresses {
 public:
  // Counted among those who listen at an address; leaves when destroyed.
  class [[nodiscard]] Share {
   public:
    Share(SharedAddresses& addresses, const Address& address)
        : addresses_(&addresses), address_(address) {}
    Share(Share&& other) noexcept
        : addresses_(std::exchange(other.addresses_, nullptr)), address_(other.address_) {}
    Share& operator=(Share&&) = delete;
    ~Share() {
      if (addresses_ != nullptr) addresses_->leave(address_);
    }

   private:
    SharedAddresses* addresses_;
    Address address_;
  };

  // Errors: address_in_use when somebody outside of this process listens there.
  base::Result<Share> join(const Address& address);
  // For whoever has the address already, the kernel having chosen its port.
  Share found(const Address& address);

 private:
  void leave(const Address& address);

  Mutex mutex_;
  std::map<Address, std::size_t> listeners_ GUARDED_BY(mutex_);
};

class NativeTransport final : public Transport {
 public:
  NativeTransport(Runtime& runtime, Loop& loop, SharedAddresses& shared)
      : runtime_(runtime), loop_(loop), shared_(shared) {}

  using Transport::connect;
  using Transport::listen;
  base::Result<std::unique_ptr<Listener>> listen(const Address& address,
                                                 ListenOptions options) override;
  Task<base::Result<std::unique_ptr<Stream>>> connect(Address address, Until until,
                                                      std::optional<Address> from) override;

 private:
  Runtime& runtime_;
  Loop& loop_;
  SharedAddresses& shared_;
};

}  // namespace helenus::runtime::native
