// Memory of small CPU tensors, kept for the next one. PyTorch makes a tensor of the number in `x * 1.5`: with memory from the
// system that is a tenth of what recording such an op costs.
#pragma once
#include <cstddef>

namespace ltc::torchscript {

// Instrumented memory is better not used twice.
#if defined(__SANITIZE_ADDRESS__)
inline constexpr size_t kSmallBytes = 0;
#else
inline constexpr size_t kSmallBytes = 64;
#endif

// Blocks of kSmallBytes that the calling thread has kept, whoever allocated them; at most 16 KB. Those that are left when the
// thread ends go to `release`.
void* take_small_block();                                    // null: there is none
bool keep_small_block(void* block, void (*release)(void*));  // false: there are enough, or the thread is ending

}  // namespace ltc::torchscript
