#include <ATen/Version.h>

#include "cpu_kernels/instruction_set.h"
#include "torchscript/fusion/primitives.h"

namespace ltc::torchscript {

extern const TileKernels tile_kernels_DEFAULT;
#if defined(__x86_64__)
extern const TileKernels tile_kernels_AVX2, tile_kernels_AVX512;
#endif

namespace {

struct Capability {
  const TileKernels& tiles;
  cpu::InstructionSet set;
  const char* cpu;
};

const Capability& chosen() {
  static const Capability chosen = []() -> Capability {
#if defined(__x86_64__)
    const std::string capability = at::get_cpu_capability();
    if (capability == "AVX512") return {tile_kernels_AVX512, cpu::InstructionSet::kAvx512, "native"};
    if (capability == "AVX2") return {tile_kernels_AVX2, cpu::InstructionSet::kAvx2, "x86-64-v3"};
    return {tile_kernels_DEFAULT, cpu::InstructionSet::kSse4, "x86-64"};
#else
    return {tile_kernels_DEFAULT, cpu::InstructionSet::kBaseline, "native"};
#endif
  }();
  return chosen;
}

}  // namespace

void use_atens_instruction_set() { cpu::use_instruction_set(chosen().set); }
const TileKernels& tile_kernels() { return chosen().tiles; }
const char* tile_cpu() { return chosen().cpu; }

}  // namespace ltc::torchscript
