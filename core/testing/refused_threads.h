// For one file of a test program: a system that gives no more threads.
#pragma once

#include <dlfcn.h>
#include <pthread.h>

#include <atomic>
#include <cerrno>
#include <climits>

namespace ltc::testing {

inline constexpr int kAnyThreads = INT_MAX;
inline std::atomic<int> threads_left{kAnyThreads};

}  // namespace ltc::testing

// Before the C library's: of the program, and of what it opens.
extern "C" __attribute__((visibility("default"))) int pthread_create(pthread_t* thread, const pthread_attr_t* attributes,
                                                                     void* (*run)(void*), void* argument) noexcept {
  using ltc::testing::threads_left;
  static const auto create = reinterpret_cast<decltype(&pthread_create)>(dlsym(RTLD_NEXT, "pthread_create"));
  if (threads_left != ltc::testing::kAnyThreads && threads_left-- <= 0) return EAGAIN;
  return create(thread, attributes, run, argument);
}
