// Memory for small objects that come and go by the hundred thousand per second: a free list per thread and type.
//
// Derive from Pooled<T> (T final, new-ed and deleted as T), or give PoolAllocator<T> to std::allocate_shared. An object may be
// deleted on another thread than it was made on; its memory then joins that thread's list. At most kKept pieces wait in a list,
// so a thread that only deletes does not hoard; a list goes with its thread.
#pragma once

#include <cstddef>
#include <new>
#include <utility>

#include "core/base/api.h"

namespace ltc {

template <typename T>
class Pooled {
 public:
  static void* operator new(size_t size) {
    List& list = list_;
    if (!list.head) return ::operator new(size);
    Piece* piece = list.head;
    list.head = piece->next;
    --list.count;
    return piece;
  }
  static void operator delete(void* memory) {
    List& list = list_;
    if (list.count >= kKept) return ::operator delete(memory);
    if (!list.has_cleaner) [[unlikely]]
      clean_at_end(list);
    list.head = new (memory) Piece{list.head};
    ++list.count;
  }

 private:
  static constexpr size_t kKept = 4096;
  struct Piece {
    Piece* next;
  };
  struct List {
    Piece* head = nullptr;
    size_t count = 0;
    bool has_cleaner = false;
  };
  // Frees the list at the end of the thread; what the thread deletes after that goes past it.
  struct Cleaner {
    Cleaner() {}
    ~Cleaner() {
      list_.count = kKept;
      while (list_.head) ::operator delete(std::exchange(list_.head, list_.head->next));
    }
  };
  [[gnu::noinline]] static void clean_at_end(List& list) {
    thread_local const Cleaner cleaner;
    list.has_cleaner = true;
  }
  static inline LTC_THREAD_LOCAL constinit List list_;
};

template <typename T>
struct PoolAllocator {
  using value_type = T;
  struct Cell : Pooled<Cell> {
    alignas(T) std::byte bytes[sizeof(T)];
  };

  PoolAllocator() = default;
  template <typename U>
  PoolAllocator(const PoolAllocator<U>&) {}  // NOLINT(google-explicit-constructor): of the standard's form

  T* allocate(size_t count) {
    return static_cast<T*>(count == 1 ? Cell::operator new(sizeof(Cell)) : ::operator new(count * sizeof(T)));
  }
  void deallocate(T* memory, size_t count) {
    if (count == 1) return Cell::operator delete(memory);
    ::operator delete(memory);
  }
  bool operator==(const PoolAllocator&) const = default;
};

}  // namespace ltc
