// EventQueue: what will happen, earliest first, and in the order scheduled among equals.
//
// An event is 32 bytes of plain data: it names its target by numbers and never by pointer, so
// that an event which outlives its target (a crashed process, a closed connection) is recognised
// and dropped when its time comes. A four-ary heap in one vector: no allocation per event.
#pragma once

#include <cstdint>
#include <vector>

#include "base/assert.h"
#include "sim/world_time.h"

namespace helenus::sim {

enum class EventKind : std::uint8_t {
  core_turn,     // a core fires its due timers and runs its ready jobs
  core_message,  // a message reaches a core of the same process
  packet,        // a packet reaches a machine
  tcp_timer,     // a connection looks whether something must be sent again
  disk,          // a disk operation ends
  control,       // something the world's owner asked for
};

struct Event {
  WorldTime at;
  std::uint64_t order = 0;
  EventKind kind = EventKind::control;
  std::uint16_t core = 0;
  std::uint32_t machine = 0;
  std::uint64_t argument = 0;  // its meaning is the kind's
};
static_assert(sizeof(Event) == 32);

class EventQueue {
 public:
  bool empty() const { return heap_.empty(); }
  std::size_t size() const { return heap_.size(); }
  // Requires: !empty().
  const Event& next() const { return heap_.front(); }

  void push(Event event) {
    event.order = pushed_++;
    std::size_t slot = heap_.size();
    heap_.push_back(event);
    while (slot > 0) {
      const std::size_t parent = (slot - 1) / kArity;
      if (!earlier(event, heap_[parent])) break;
      heap_[slot] = heap_[parent];
      slot = parent;
    }
    heap_[slot] = event;
  }

  // Requires: !empty().
  Event pop() {
    ASSERT(!heap_.empty());
    const Event first = heap_.front();
    const Event last = heap_.back();
    heap_.pop_back();
    if (!heap_.empty()) sink(last);
    return first;
  }

 private:
  static constexpr std::size_t kArity = 4;

  static unsigned __int128 key(const Event& event) {
    const auto at = static_cast<std::uint64_t>(event.at.since_origin().count());
    return (static_cast<unsigned __int128>(at) << 64) | event.order;
  }
  static bool earlier(const Event& a, const Event& b) { return key(a) < key(b); }

  // Puts `event` where the root was, and lets it sink to its place.
  void sink(const Event& event) {
    std::size_t slot = 0;
    for (;;) {
      const std::size_t first = slot * kArity + 1;
      if (first >= heap_.size()) break;
      const std::size_t end = first + kArity < heap_.size() ? first + kArity : heap_.size();
      std::size_t least = first;
      for (std::size_t child = first + 1; child < end; ++child) {
        if (earlier(heap_[child], heap_[least])) least = child;
      }
      if (!earlier(heap_[least], event)) break;
      heap_[slot] = heap_[least];
      slot = least;
    }
    heap_[slot] = event;
  }

  std::vector<Event> heap_;
  std::uint64_t pushed_ = 0;
};

}  // namespace helenus::sim
