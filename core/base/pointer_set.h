// A set of pointers without an allocation per element: open addressing with linear probing, at most half full.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/base/hash.h"

namespace ltc {

template <typename T>
class PointerSet {
 public:
  PointerSet() = default;
  PointerSet(const PointerSet&) = delete;  // one that was moved from would have no slots
  PointerSet& operator=(const PointerSet&) = delete;

  void swap(PointerSet& other) noexcept {
    slots_.swap(other.slots_);
    std::swap(size_, other.size_);
  }
  size_t size() const { return size_; }
  bool contains(const T* pointer) const { return pointer && slots_[find(pointer)] == pointer; }

  // Not null. False if it is there already.
  bool insert(T* pointer) {
    if (2 * (size_ + 1) > slots_.size()) grow();
    T*& slot = slots_[find(pointer)];
    if (slot) return false;
    slot = pointer;
    ++size_;
    return true;
  }

  // False if it is not there. Elements behind it move up, so that no gap ends a later search (Knuth, 6.4, algorithm R).
  bool erase(const T* pointer) {
    size_t gap = find(pointer);
    if (!slots_[gap]) return false;
    for (size_t i = next(gap); slots_[i]; i = next(i)) {
      const size_t home = home_of(slots_[i]);
      if (((i - home) & mask()) >= ((i - gap) & mask())) slots_[std::exchange(gap, i)] = slots_[i];
    }
    slots_[gap] = nullptr;
    --size_;
    return true;
  }

  void clear() {
    slots_.assign(slots_.size(), nullptr);
    size_ = 0;
  }

  template <typename Visit>
  void for_each(Visit&& visit) const {
    for (T* pointer : slots_) {
      if (pointer) visit(pointer);
    }
  }

 private:
  size_t mask() const { return slots_.size() - 1; }
  size_t next(size_t i) const { return (i + 1) & mask(); }
  size_t home_of(const T* pointer) const { return hash_mix(0, reinterpret_cast<uintptr_t>(pointer)) & mask(); }

  // Its place, or the empty one where it would be.
  size_t find(const T* pointer) const {
    size_t i = home_of(pointer);
    while (slots_[i] && slots_[i] != pointer) i = next(i);
    return i;
  }

  void grow() {
    std::vector<T*> before(2 * slots_.size());
    before.swap(slots_);
    for (T* pointer : before) {
      if (pointer) slots_[find(pointer)] = pointer;
    }
  }

  std::vector<T*> slots_ = std::vector<T*>(16);
  size_t size_ = 0;
};

}  // namespace ltc
