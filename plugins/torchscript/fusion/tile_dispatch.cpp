#include <ATen/Version.h>

#include "primitives.h"

namespace ltc::torchscript {

extern const TileKernels tile_kernels_DEFAULT;
#if defined(__x86_64__)
extern const TileKernels tile_kernels_AVX2, tile_kernels_AVX512;
#endif

const TileKernels& tile_kernels() {
  static const TileKernels& chosen = []() -> const TileKernels& {
#if defined(__x86_64__)
    const std::string capability = at::get_cpu_capability();
    if (capability == "AVX512") return tile_kernels_AVX512;
    if (capability == "AVX2") return tile_kernels_AVX2;
#endif
    return tile_kernels_DEFAULT;
  }();
  return chosen;
}

}  // namespace ltc::torchscript
