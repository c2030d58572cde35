// A set of values that are each stored once, for the life of the process, and named by a 32-bit id: equal values have equal ids.
//
// Nothing is ever given back, as any trace or program may hold an id, so there is room for kBlock * Blocks of them. A caller that
// asks for one more gets an Error: its op is not recorded, and all that was recorded before runs as ever.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "core/base/error.h"

namespace ltc {

// Keys: whatever Hash takes, compares to a T, and constructs one, so that a look-up need not build a T.
// Threads: any; to look up what is known and to read by id takes no lock, as storage never moves.
template <typename T, typename Hash, uint32_t Blocks = 1 << 14>
class InternTable {
 public:
  using Id = uint32_t;

  // `what`: its values, for the message.
  explicit InternTable(const char* what) : what_(what) {}

  template <typename Key>
  Id intern(const Key& key) {
    const uint64_t hash = Hash{}(key);
    if (const Id known = find(hash, key); known != kMissing) return known;
    std::lock_guard lock(mutex_);
    if (const Id known = find(hash, key); known != kMissing) return known;
    const auto id = static_cast<Id>(hashes_.size());
    if (id >= kBlock * Blocks) {
      fail(Code::kResourceExhausted, "this process has met ", id, " different ", what_,
           ", and can hold no more; a new process can");
    }
    auto& block = blocks_[id / kBlock];
    if (!block) block = std::make_unique<std::array<T, kBlock>>();
    (*block)[id % kBlock] = T(key);
    hashes_.push_back(hash);
    index(id);
    return id;
  }

  const T& operator[](Id id) const { return (*blocks_[id / kBlock])[id % kBlock]; }

 private:
  static constexpr Id kBlock = 256, kMissing = UINT32_MAX;

  // Open addressing. A slot holds the upper half of a hash and, below, the id plus one; 0 is free.
  struct Slots {
    explicit Slots(size_t count) : mask(count - 1), slots(std::make_unique<std::atomic<uint64_t>[]>(count)) {}
    void place(uint64_t hash, Id id) {
      size_t i = hash;
      while (slots[i & mask].load(std::memory_order_relaxed)) ++i;
      slots[i & mask].store(hash >> 32 << 32 | (uint64_t{id} + 1), std::memory_order_release);
    }
    const size_t mask;  // a power of two of them, less one
    const std::unique_ptr<std::atomic<uint64_t>[]> slots;
  };

  template <typename Key>
  Id find(uint64_t hash, const Key& key) const {
    const Slots* const current = current_.load(std::memory_order_acquire);
    if (!current) return kMissing;
    for (size_t i = hash;; ++i) {
      const uint64_t slot = current->slots[i & current->mask].load(std::memory_order_acquire);
      if (slot == 0) return kMissing;
      const Id id = static_cast<Id>(slot) - 1;
      if (slot >> 32 == hash >> 32 && (*this)[id] == key) return id;
    }
  }

  // The newest, under the lock. At most half of the slots are taken.
  void index(Id id) {
    if (tables_.empty() || 2 * hashes_.size() > tables_.back()->mask) {
      auto larger = std::make_unique<Slots>(tables_.empty() ? size_t{2} * kBlock : 2 * (tables_.back()->mask + 1));
      for (Id known = 0; known < id; ++known) larger->place(hashes_[known], known);
      tables_.push_back(std::move(larger));
    }
    tables_.back()->place(hashes_[id], id);
    current_.store(tables_.back().get(), std::memory_order_release);
  }

  const char* const what_;
  std::array<std::unique_ptr<std::array<T, kBlock>>, Blocks> blocks_;
  std::atomic<const Slots*> current_{nullptr};
  std::mutex mutex_;  // guards what follows
  std::vector<uint64_t> hashes_;
  std::vector<std::unique_ptr<Slots>> tables_;  // those outgrown may still be read by somebody
};

}  // namespace ltc
