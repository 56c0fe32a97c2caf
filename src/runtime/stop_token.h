// StopSource and StopToken: asking work to end, on one core.
//
// A source is owned by whoever may stop the work; its tokens travel with the work. Stopping is a
// wish: every wait that carries the token ends with Errc::cancelled, and the work winds up in its
// own time. A source made from a token stops with it, so stops flow down a tree of owners.
//
// Core affinity: a source, its tokens and its callbacks belong to one core. A callback may destroy
// any of them, itself and the source included.
#pragma once

#include <cstdint>
#include <utility>

#include "runtime/intrusive_list.h"

namespace helenus::runtime {

class StopCallback;

namespace detail {

struct StopState {
  std::uint32_t references = 1;
  bool requested = false;
  IntrusiveList<StopCallback> callbacks;

  void release() {
    if (--references == 0) delete this;
  }
};

}  // namespace detail

// What waits with; copying costs an increment. A default token never stops.
class StopToken {
 public:
  StopToken() = default;
  StopToken(const StopToken& other) : state_(other.state_) {
    if (state_ != nullptr) ++state_->references;
  }
  StopToken(StopToken&& other) noexcept : state_(std::exchange(other.state_, nullptr)) {}
  StopToken& operator=(StopToken other) noexcept {
    std::swap(state_, other.state_);
    return *this;
  }
  ~StopToken() {
    if (state_ != nullptr) state_->release();
  }

  bool stop_requested() const { return state_ != nullptr && state_->requested; }
  // Whether anybody could ever stop it.
  bool stop_possible() const { return state_ != nullptr; }

 private:
  friend class StopSource;
  friend class StopCallback;
  explicit StopToken(detail::StopState* state) : state_(state) { ++state_->references; }

  detail::StopState* state_ = nullptr;
};

// Runs `on_stop` when the token it watches is stopped; at once if it already is. Unregisters
// itself when destroyed.
class StopCallback : public ListHook<StopCallback> {
 public:
  StopCallback() = default;
  virtual void on_stop() = 0;

  void watch(const StopToken& token);

 protected:
  ~StopCallback() = default;
};

class StopSource final : private StopCallback {
 public:
  StopSource() : state_(new detail::StopState) {}
  explicit StopSource(const StopToken& parent) : StopSource() { watch(parent); }
  ~StopSource() { state_->release(); }
  StopSource(const StopSource&) = delete;
  StopSource& operator=(const StopSource&) = delete;

  // Runs the callbacks before it returns. Asking twice is harmless.
  void request_stop();
  bool stop_requested() const { return state_->requested; }
  StopToken token() const { return StopToken(state_); }

 private:
  void on_stop() override { request_stop(); }

  detail::StopState* state_;
};

}  // namespace helenus::runtime
