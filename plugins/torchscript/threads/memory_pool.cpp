#include "torchscript/threads/memory_pool.h"

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "torchscript/threads/small_blocks.h"

namespace ltc::torchscript {
namespace {

constexpr size_t kPooledBytes = 64 << 10;  // the C library keeps smaller memory itself
constexpr uint64_t kKeptRuns = 64;         // that a block may lie unused
constexpr uint64_t kTrimEvery = 16;        // runs
// To clear a large page can take a virtual machine milliseconds. The first steps of a process do not wait for that.
constexpr uint64_t kSmallPageRuns = kTrimEvery;

thread_local bool t_pooling = false;

// At most an eighth is lost.
size_t rounded(size_t bytes) {
  const size_t step = std::bit_floor(bytes) / 8;
  return (bytes + step - 1) / step * step;
}

// Asks for large pages where the memory fills them: fewer misses of the TLB, and processors fetch ahead within a page only.
void prefer_large_pages([[maybe_unused]] void* data, [[maybe_unused]] size_t bytes) {
#ifdef MADV_HUGEPAGE
  constexpr size_t kPage = 2 << 20;
  const auto begin = (reinterpret_cast<uintptr_t>(data) + kPage - 1) / kPage * kPage;
  const auto end = (reinterpret_cast<uintptr_t>(data) + bytes) / kPage * kPage;
  if (end > begin) madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
#endif
}

class Pool final : public c10::Allocator {
 public:
  explicit Pool(c10::Allocator* system) : system_(system) {}

  c10::DataPtr allocate(size_t bytes) override {
    if (bytes < kPooledBytes || !t_pooling) return is_kept_small(bytes) ? allocate_small() : system_->allocate(bytes);
    void* const block = take(rounded(bytes));
    return {block, block, &free_block, c10::Device(c10::kCPU)};
  }

  c10::DeleterFnPtr raw_deleter() const override { return &free_block; }
  void copy_data(void* to, const void* from, size_t bytes) const override { system_->copy_data(to, from, bytes); }

  void end_run() {
    std::vector<void*> unused;
    {
      std::lock_guard lock(mutex_);
      if (++run_ % kTrimEvery != 0) return;
      if (run_ == kSmallPageRuns) {  // the system changes these in the background
        for (const auto& [data, bytes] : sizes_) prefer_large_pages(data, bytes);
      }
      for (auto& [bytes, blocks] : free_) {
        const auto end =
            std::find_if(blocks.begin(), blocks.end(), [this](const Block& one) { return run_ - one.freed <= kKeptRuns; });
        forget(blocks, end, unused);
      }
    }
    for (void* block : unused) system_->raw_deallocate(block);
  }

  static Pool& instance() {
    static Pool& pool = []() -> Pool& {
      auto* made = new Pool(c10::GetCPUAllocator());        // never destroyed: blocks may outlive everything
      std::atomic_thread_fence(std::memory_order_release);  // libtorch's pointer to it is a plain one, read by any thread
      c10::SetCPUAllocator(made);
      return *made;
    }();
    return pool;
  }

 private:
  struct Block {
    void* data;
    uint64_t freed;  // in this run; the longest unused come first
  };

  // PyTorch's memory profiler hears of what the system's allocator gives and gets.
  static bool is_kept_small(size_t bytes) { return bytes > 0 && bytes <= kSmallBytes && !c10::memoryProfilingEnabled(); }

  c10::DataPtr allocate_small() {
    void* block = take_small_block();
    if (!block) block = system_->raw_allocate(kSmallBytes);
    return {block, block, &free_small, c10::Device(c10::kCPU)};
  }

  static void free_small(void* block) {
    if (!keep_small_block(block, &release)) release(block);
  }
  static void release(void* block) { instance().system_->raw_deallocate(block); }

  // Memory that is freed through an allocator's deleter may be from before there was a pool.
  static void free_block(void* data) {
    Pool& pool = instance();
    {
      std::lock_guard lock(pool.mutex_);
      if (const auto known = pool.sizes_.find(data); known != pool.sizes_.end()) {
        pool.free_[known->second].push_back({data, pool.run_});
        return;
      }
    }
    pool.system_->raw_deallocate(data);
  }

  void* take(size_t bytes) {
    bool wants_large_pages;
    {
      std::lock_guard lock(mutex_);
      if (auto& blocks = free_[bytes]; !blocks.empty()) {
        void* const data = blocks.back().data;
        blocks.pop_back();
        return data;
      }
      wants_large_pages = run_ >= kSmallPageRuns;
    }
    void* const data = allocate_fresh(bytes);
    if (wants_large_pages) prefer_large_pages(data, bytes);
    std::lock_guard lock(mutex_);
    sizes_.emplace(data, bytes);
    return data;
  }

  void* allocate_fresh(size_t bytes) {
    try {
      return system_->raw_allocate(bytes);
    } catch (const std::exception&) {
      release_all();
      return system_->raw_allocate(bytes);
    }
  }

  void release_all() {
    std::vector<void*> unused;
    {
      std::lock_guard lock(mutex_);
      for (auto& [bytes, blocks] : free_) forget(blocks, blocks.end(), unused);
    }
    for (void* block : unused) system_->raw_deallocate(block);
  }

  void forget(std::vector<Block>& blocks, std::vector<Block>::iterator end, std::vector<void*>& forgotten) {
    for (auto block = blocks.begin(); block != end; ++block) {
      sizes_.erase(block->data);
      forgotten.push_back(block->data);
    }
    blocks.erase(blocks.begin(), end);
  }

  c10::Allocator* const system_;
  std::mutex mutex_;
  uint64_t run_ = 0;
  std::unordered_map<void*, size_t> sizes_;  // of all blocks, free or not
  std::unordered_map<size_t, std::vector<Block>> free_;
};

}  // namespace

void install_memory_pool() { Pool::instance(); }

bool can_allocate(double bytes) {
  constexpr double kChecked = 16 << 20;  // to ask takes longer than smaller memory is worth
  if (bytes < kChecked) return true;
  if (bytes > static_cast<double>(PTRDIFF_MAX)) return false;
  void* const memory = mmap(nullptr, static_cast<size_t>(bytes), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return false;
  munmap(memory, static_cast<size_t>(bytes));
  return true;
}

MemoryPoolScope::MemoryPoolScope(Use use) : outer_(t_pooling), ends_run_(use == kRun && !outer_) { t_pooling = true; }

MemoryPoolScope::~MemoryPoolScope() {
  t_pooling = outer_;
  if (ends_run_) Pool::instance().end_run();
}

}  // namespace ltc::torchscript
