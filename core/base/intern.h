// A set of values that are each stored once, for the life of the process, and named by a 32-bit id: equal values have equal ids.
#pragma once

#include <array>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>

#include "core/base/error.h"

namespace ltc {

// Keys: whatever Hash takes, compares to a T, and constructs one, so that a look-up need not build a T.
// Threads: any; a look-up of a known value takes a shared lock, reading by id takes none (storage never moves).
template <typename T, typename Hash>
class InternTable {
 public:
  using Id = uint32_t;

  template <typename Key>
  Id intern(const Key& key) {
    const uint64_t hash = Hash{}(key);
    {
      std::shared_lock lock(mutex_);
      if (const Id known = find(hash, key); known != kMissing) return known;
    }
    std::unique_lock lock(mutex_);
    if (const Id known = find(hash, key); known != kMissing) return known;
    const Id id = size_;
    ensure(id < kBlock * kBlocks, "intern table is full: ", id, " entries");
    auto& block = blocks_[id / kBlock];
    if (!block) block = std::make_unique<std::array<T, kBlock>>();
    (*block)[id % kBlock] = T(key);
    by_hash_.emplace(hash, id);
    size_ = id + 1;
    return id;
  }

  const T& operator[](Id id) const { return (*blocks_[id / kBlock])[id % kBlock]; }

 private:
  static constexpr Id kBlock = 256, kBlocks = 1 << 14, kMissing = UINT32_MAX;

  template <typename Key>
  Id find(uint64_t hash, const Key& key) const {
    const auto [first, last] = by_hash_.equal_range(hash);
    for (auto it = first; it != last; ++it) {
      if ((*this)[it->second] == key) return it->second;
    }
    return kMissing;
  }

  std::shared_mutex mutex_;
  std::unordered_multimap<uint64_t, Id> by_hash_;
  std::array<std::unique_ptr<std::array<T, kBlock>>, kBlocks> blocks_;
  Id size_ = 0;
};

}  // namespace ltc
