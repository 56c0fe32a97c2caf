// A doubly linked list through hooks that live inside its elements: nothing is allocated, and an
// element that is destroyed leaves its list by itself. One core only.
//
//   class Waiter : public ListHook<Waiter> {...};
//   IntrusiveList<Waiter> queue;  queue.push_back(waiter);
#pragma once

#include <cstddef>

#include "base/assert.h"

namespace helenus::runtime {

template <class T>
class IntrusiveList;

template <class T>
class ListHook {
 public:
  ListHook() = default;
  ListHook(const ListHook&) = delete;
  ListHook& operator=(const ListHook&) = delete;
  ~ListHook() { unlink(); }

  bool linked() const { return next_ != nullptr; }
  void unlink() {
    if (!linked()) return;
    previous_->next_ = next_;
    next_->previous_ = previous_;
    previous_ = next_ = nullptr;
  }

 private:
  friend class IntrusiveList<T>;
  ListHook* previous_ = nullptr;
  ListHook* next_ = nullptr;
};

template <class T>
class IntrusiveList {
 public:
  IntrusiveList() { head_.previous_ = head_.next_ = &head_; }
  IntrusiveList(const IntrusiveList&) = delete;
  IntrusiveList& operator=(const IntrusiveList&) = delete;
  // The elements stay; they are merely in no list any more.
  ~IntrusiveList() {
    while (!empty()) head_.next_->unlink();
  }

  bool empty() const { return head_.next_ == &head_; }
  T& front() {
    ASSERT(!empty());
    return *static_cast<T*>(head_.next_);
  }
  // Requires: the element is in no list.
  void push_back(T& element) {
    ListHook<T>& hook = element;
    ASSERT(!hook.linked());
    hook.previous_ = head_.previous_;
    hook.next_ = &head_;
    head_.previous_->next_ = &hook;
    head_.previous_ = &hook;
  }
  // Requires: !empty().
  T& pop_front() {
    T& element = front();
    static_cast<ListHook<T>&>(element).unlink();
    return element;
  }
  // In order. The function must not change the list.
  template <class Function>
  void for_each(Function function) {
    for (ListHook<T>* hook = head_.next_; hook != &head_; hook = hook->next_) {
      function(*static_cast<T*>(hook));
    }
  }
  // Requires: !empty().
  T& pop_back() {
    ASSERT(!empty());
    T& element = *static_cast<T*>(head_.previous_);
    static_cast<ListHook<T>&>(element).unlink();
    return element;
  }

 private:
  ListHook<T> head_;
};

}  // namespace helenus::runtime
