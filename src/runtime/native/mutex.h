// Mutex, MutexLock and Condition: the standard ones, annotated so that clang's -Wthread-safety
// proves at compile time that what a mutex guards is touched only under it.
//
//   Mutex mutex_;
//   int count_ GUARDED_BY(mutex_) = 0;
//   ...
//   const MutexLock lock(mutex_);
//   ++count_;
#pragma once

#include <condition_variable>
#include <mutex>

#define HELENUS_THREAD_ATTRIBUTE(x) __attribute__((x))
// Abseil's headers define it, too, and to the same.
#ifndef GUARDED_BY
#define GUARDED_BY(mutex) HELENUS_THREAD_ATTRIBUTE(guarded_by(mutex))
#endif
#define REQUIRES_LOCK(...) HELENUS_THREAD_ATTRIBUTE(requires_capability(__VA_ARGS__))

namespace helenus::runtime::native {

class HELENUS_THREAD_ATTRIBUTE(capability("mutex")) Mutex {
 public:
  Mutex() = default;
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;

  void lock() HELENUS_THREAD_ATTRIBUTE(acquire_capability()) { mutex_.lock(); }
  void unlock() HELENUS_THREAD_ATTRIBUTE(release_capability()) { mutex_.unlock(); }

 private:
  friend class Condition;
  std::mutex mutex_;
};

class HELENUS_THREAD_ATTRIBUTE(scoped_lockable) MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) HELENUS_THREAD_ATTRIBUTE(acquire_capability(mutex))
      : mutex_(mutex) {
    mutex_.lock();
  }
  ~MutexLock() HELENUS_THREAD_ATTRIBUTE(release_capability()) { mutex_.unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

class Condition {
 public:
  // Returns when notified, and sometimes without: call it in a loop that looks.
  void wait(Mutex& mutex) REQUIRES_LOCK(mutex) {
    std::unique_lock<std::mutex> lock(mutex.mutex_, std::adopt_lock);
    condition_.wait(lock);
    lock.release();
  }
  void notify_one() { condition_.notify_one(); }
  void notify_all() { condition_.notify_all(); }

 private:
  std::condition_variable condition_;
};

}  // namespace helenus::runtime::native
