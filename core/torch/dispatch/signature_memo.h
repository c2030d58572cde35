// Signatures of calls already seen, by op, operand types and constants.
#pragma once

#include <c10/util/SmallVector.h>

#include <array>
#include <bit>
#include <deque>
#include <unordered_set>

#include "core/torch/dispatch/infer.h"
#include "core/torch/tensor/current_device.h"

namespace ltc {

// A call as words: the op, then each argument. Tensors are their types.
class CallKey {
 public:
  void clear() { words_.clear(); }
  void add_op(OpId op) { words_.push_back(op); }  // first
  OpId op() const { return static_cast<OpId>(words_[0]); }
  void add_absent() { words_.push_back(kAbsent); }
  void add_number(uint64_t kind) { words_.push_back(kNumber | kind); }
  void add_exact_number(uint64_t kind, const Scalar& value) {  // one whose value decides what the call gives
    constexpr uint64_t kExact = 1 << 16;
    words_.push_back(kNumber | kExact | kind), words_.push_back(static_cast<uint64_t>(value.i));
  }
  void add_list(size_t size) { words_.push_back(kList | size); }
  void add_constant(const c10::IValue& value);

  // A tensor whose type is filled in later: where.
  uint32_t add_tensor() { return words_.push_back(kType), static_cast<uint32_t>(words_.size() - 1); }
  void set_type(uint32_t where, TypeId type) { words_[where] = kType | type; }

  bool operator==(const CallKey& other) const {  // inline: most are of five words
    const size_t size = words_.size();
    if (size != other.words_.size()) return false;
    const uint64_t *a = words_.data(), *b = other.words_.data();
    for (size_t i = 0; i < size; ++i) {
      if (a[i] != b[i]) return false;
    }
    return true;
  }
  uint64_t hash() const {
    uint64_t hash = 0;
    for (const uint64_t word : words_) hash = hash_mix(hash, word);
    return hash;
  }

 private:
  // Say what kind of word it is; the values are 32 bits, or words of their own.
  static constexpr uint64_t kType = 1ull << 32, kNumber = 2ull << 32, kAbsent = 3ull << 32, kList = 4ull << 32,
                            kConstant = 5ull << 32;
  c10::SmallVector<uint64_t, 16> words_;
};

// A hash table that only grows: what it answers stays valid. One per device, guarded by the device's recorder.
class SignatureMemo {
 public:
  static SignatureMemo& of(const LazyDevice& device) {
    static auto* memos = new std::array<SignatureMemo, kMaxDevices>();  // leaked: used by deleters at exit
    return (*memos)[device.ordinal()];
  }

  const Signature* find(const CallKey& key) {  // inline: most calls are as the last of that op was
    const Entry*& recent = recent_[key.op() % kRecent];
    if (!recent || !(recent->key == key)) {
      const Entry* const found = look_up(key);
      if (!found) return nullptr;
      recent = found;
    }
    return &recent->signature;
  }
  const Signature* insert(const CallKey& key, Signature signature);

  // Calls that no dummy inputs could answer, while the values did.
  bool needs_values(const CallKey& key) const { return needing_values_.contains(key); }
  void insert_needing_values(const CallKey& key) { needing_values_.insert(key); }

 private:
  struct Entry {
    uint64_t hash;
    CallKey key;
    Signature signature;
  };
  struct Slot {
    uint64_t hash;
    const Entry* entry = nullptr;
  };
  struct Hash {
    size_t operator()(const CallKey& key) const { return key.hash(); }
  };
  static constexpr size_t kRecent = 256;
  const Entry* look_up(const CallKey& key) const;
  void place(const Entry* entry);

  std::array<const Entry*, kRecent> recent_{};         // by op
  std::deque<Entry> entries_;                          // never move
  std::vector<Slot> slots_ = std::vector<Slot>(1024);  // open addressing, a power of two, at most half full
  std::unordered_set<CallKey, Hash> needing_values_;
};

}  // namespace ltc
