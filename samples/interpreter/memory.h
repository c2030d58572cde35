// The device's memory. Put the calls of your driver here: nothing else in the plugin makes device memory or copies to it.
#pragma once
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>

namespace driver {

inline char* allocate(uint64_t bytes) {
  void* const memory = std::malloc(bytes > 0 ? bytes : 1);
  if (!memory) throw std::bad_alloc();  // becomes RESOURCE_EXHAUSTED
  return static_cast<char*>(memory);
}
inline void release(char* memory) { std::free(memory); }
inline void copy(void* to, const void* from, uint64_t bytes) {
  if (bytes > 0) std::memcpy(to, from, bytes);
}

}  // namespace driver

struct Release {
  void operator()(char* memory) const { driver::release(memory); }
};
using Memory = std::unique_ptr<char, Release>;
inline Memory make_memory(uint64_t bytes) { return Memory(driver::allocate(bytes)); }
