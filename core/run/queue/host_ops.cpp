#include "core/run/queue/host_ops.h"

#include <array>
#include <bit>
#include <cstdlib>
#include <mutex>

#include "core/base/spin_lock.h"

namespace ltc {
namespace {

HostRunner g_runner = nullptr;

// Memory of values that are gone, for those to come: a batch of every step is one. Before the system gives more than a KB, it
// joins all small pieces that are free, which takes longer than to copy the batch. Any thread.
class HostMemory {
 public:
  static HostMemory& instance() {
    static auto* memory = new HostMemory();  // leaked: values are released at exit too
    return *memory;
  }
  // Pieces that are kept are of a power of two; larger ones, of their size, are not.
  static size_t capacity_for(size_t size) { return size > kLargest ? size : std::bit_ceil(size); }

  void* take(size_t capacity) {  // null if none is left
    if (capacity > kLargest) return nullptr;
    std::lock_guard lock(mutex_);
    Kept& kept = kept_[std::countr_zero(capacity)];
    return kept.count == 0 ? nullptr : kept.pieces[--kept.count];
  }
  void give(void* piece, size_t capacity) {
    if (!keep(piece, capacity)) std::free(piece);
  }

 private:
  static constexpr size_t kLargest = 1 << 18;
  struct Kept {
    std::array<void*, 4> pieces;
    size_t count = 0;
  };
  bool keep(void* piece, size_t capacity) {
    if (capacity > kLargest) return false;
    std::lock_guard lock(mutex_);
    Kept& kept = kept_[std::countr_zero(capacity)];
    if (kept.count == kept.pieces.size()) return false;
    kept.pieces[kept.count++] = piece;
    return true;
  }

  SpinLock mutex_;
  std::array<Kept, std::bit_width(kLargest)> kept_;  // by the power of two; 2 MB at most
};

}  // namespace

void set_host_runner(HostRunner runner) { g_runner = runner; }

HostRunner host_runner() {
  if (!g_runner) fail(Code::kUnsupported, "an op that the plugin does not claim needs the host, and no host runner is installed");
  return g_runner;
}

// Aligned here: the system's aligned memory costs several times its plain one.
HostValue allocate_host_value(TypeId type) {
  constexpr size_t kAlignment = 64;  // a cache line, and what vectorised kernels like
  const size_t size = type_of(type).size_bytes(), capacity = HostMemory::capacity_for(size);
  void* memory = HostMemory::instance().take(capacity);
  if (!memory) memory = std::malloc(capacity + kAlignment);
  if (!memory) fail(Code::kResourceExhausted, "out of host memory for a value of ", size, " bytes");
  const uintptr_t begin = reinterpret_cast<uintptr_t>(memory) / kAlignment * kAlignment + kAlignment;
  return {type, {reinterpret_cast<void*>(begin), [=](void*) { HostMemory::instance().give(memory, capacity); }}};
}

}  // namespace ltc
