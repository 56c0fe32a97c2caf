#include "runtime/fiber.h"

#include <array>
#include <cstdint>
#include <cstring>
#include <utility>

#include <ucontext.h>

#include "base/assert.h"
#include "runtime/executor.h"
#include "runtime/take_turn.h"

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define HELENUS_FIBERS_UNDER_ASAN 1
#include <sanitizer/common_interface_defs.h>
#endif
#if __has_feature(thread_sanitizer)
#define HELENUS_FIBERS_UNDER_TSAN 1
#include <sanitizer/tsan_interface.h>
#endif
#endif

namespace helenus::runtime {

namespace {

#if defined(HELENUS_FIBERS_UNDER_ASAN) || defined(HELENUS_FIBERS_UNDER_TSAN)
constexpr std::size_t kStackSize = std::size_t{8} << 20;  // frames are several times as large
#else
constexpr std::size_t kStackSize = std::size_t{1} << 20;
#endif
// Written to the lower end: whoever ran beyond the stack left traces there.
constexpr auto kFence = [] {
  std::array<std::byte, 4096> fence{};
  fence.fill(std::byte{0xA5});
  return fence;
}();

}  // namespace

// Two contexts, and the memory of one. Pages that are not reached are never touched.
struct Fiber::Stack {
  Stack() : memory(std::make_unique_for_overwrite<std::byte[]>(kStackSize)) {
    std::memcpy(memory.get(), kFence.data(), kFence.size());
  }
  bool is_fence_whole() const {
    return std::memcmp(memory.get(), kFence.data(), kFence.size()) == 0;
  }

  std::unique_ptr<std::byte[]> memory;
  ucontext_t inside = {};
  ucontext_t outside = {};
  bool begun = false;
#if defined(HELENUS_FIBERS_UNDER_ASAN)
  void* fake_inside = nullptr;
  void* fake_outside = nullptr;
  const void* outside_bottom = nullptr;
  std::size_t outside_size = 0;
#endif
#if defined(HELENUS_FIBERS_UNDER_TSAN)
  void* tsan_inside = __tsan_create_fiber(0);
  void* tsan_outside = nullptr;
  ~Stack() { __tsan_destroy_fiber(tsan_inside); }
#endif
};

// makecontext() passes integers, so the pointer comes in two halves.
struct FiberEntry {
  static void enter(unsigned high, unsigned low) {
    const auto bits = (static_cast<std::uintptr_t>(high) << 32) | low;
    reinterpret_cast<Fiber*>(bits)->run();  // NOLINT(performance-no-int-to-ptr)
  }
};

Fiber::Fiber(Runtime& runtime, Work work) : runtime_(runtime), work_(std::move(work)) {}

Fiber::~Fiber() {
  if (stack_ == nullptr) return;
  if (!ended_ && may_go_on_) end_with(base::Error(base::Errc::cancelled));
  while (!ended_) resume();
}

void Fiber::end_with(base::Error error) {
  may_go_on_ = std::move(error);
}

void Fiber::resume() {
  ASSERT(!ended_);
  if (stack_ == nullptr) stack_ = std::make_unique<Stack>();
  Stack& stack = *stack_;
  if (!std::exchange(stack.begun, true)) {
    ASSERT(::getcontext(&stack.inside) == 0);
    stack.inside.uc_stack.ss_sp = stack.memory.get() + kFence.size();
    stack.inside.uc_stack.ss_size = kStackSize - kFence.size();
    stack.inside.uc_link = nullptr;
    const auto bits = reinterpret_cast<std::uintptr_t>(this);
    ::makecontext(&stack.inside, reinterpret_cast<void (*)()>(&FiberEntry::enter), 2,
                  static_cast<unsigned>(bits >> 32), static_cast<unsigned>(bits));
  }
#if defined(HELENUS_FIBERS_UNDER_ASAN)
  __sanitizer_start_switch_fiber(&stack.fake_outside, stack.inside.uc_stack.ss_sp,
                                 stack.inside.uc_stack.ss_size);
#endif
#if defined(HELENUS_FIBERS_UNDER_TSAN)
  stack.tsan_outside = __tsan_get_current_fiber();
  __tsan_switch_to_fiber(stack.tsan_inside, 0);
#endif
  ASSERT(::swapcontext(&stack.outside, &stack.inside) == 0);
#if defined(HELENUS_FIBERS_UNDER_ASAN)
  __sanitizer_finish_switch_fiber(stack.fake_outside, nullptr, nullptr);
#endif
  ASSERT(stack.is_fence_whole(), "a fiber's stack is too small");
}

void Fiber::run() {
#if defined(HELENUS_FIBERS_UNDER_ASAN)
  __sanitizer_finish_switch_fiber(nullptr, &stack_->outside_bottom, &stack_->outside_size);
#endif
  work_(*this);
  ended_ = true;
  leave();
  UNREACHABLE("a fiber that has ended is not resumed");
}

void Fiber::leave() {
  Stack& stack = *stack_;
#if defined(HELENUS_FIBERS_UNDER_ASAN)
  __sanitizer_start_switch_fiber(ended_ ? nullptr : &stack.fake_inside, stack.outside_bottom,
                                 stack.outside_size);
#endif
#if defined(HELENUS_FIBERS_UNDER_TSAN)
  __tsan_switch_to_fiber(stack.tsan_outside, 0);
#endif
  ASSERT(::swapcontext(&stack.inside, &stack.outside) == 0);
#if defined(HELENUS_FIBERS_UNDER_ASAN)
  __sanitizer_finish_switch_fiber(stack.fake_inside, &stack.outside_bottom, &stack.outside_size);
#endif
}

base::Result<void> Fiber::look() {
  if (may_go_on_ && runtime_.executor.slice_is_over()) leave();
  if (may_go_on_) return {};
  return base::Error(may_go_on_.error());
}

Task<base::Result<void>> in_turns(Runtime& runtime, Until until, Fiber::Work work) {
  Fiber fiber(runtime, std::move(work));
  base::Result<void> turn;
  for (fiber.resume(); !fiber.has_ended(); fiber.resume()) {
    turn = co_await Turn(runtime, until);
    if (!turn) fiber.end_with(base::Error(turn.error()));
  }
  co_return turn;
}

}  // namespace helenus::runtime
