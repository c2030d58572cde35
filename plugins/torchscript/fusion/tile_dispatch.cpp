#include <ATen/Version.h>

#include "torchscript/fusion/primitives.h"
#include "torchscript/ops/attention_kernels.h"
#include "torchscript/ops/image_kernels.h"
#include "torchscript/ops/row_kernels.h"
#include "torchscript/ops/skinny_kernels.h"
#include "torchscript/ops/winograd_kernels.h"

namespace ltc::torchscript {

#define LTC_DECLARE_KERNELS(capability)                         \
  extern const TileKernels tile_kernels_##capability;           \
  extern const RowKernels row_kernels_##capability;             \
  extern const ImageKernels image_kernels_##capability;         \
  extern const AttentionKernels attention_kernels_##capability; \
  extern const SkinnyKernels skinny_kernels_##capability;       \
  extern const WinogradKernels winograd_kernels_##capability;
#define LTC_KERNELS(capability)                                                                                    \
  tile_kernels_##capability, row_kernels_##capability, image_kernels_##capability, attention_kernels_##capability, \
      skinny_kernels_##capability, winograd_kernels_##capability

LTC_DECLARE_KERNELS(DEFAULT)
#if defined(__x86_64__)
LTC_DECLARE_KERNELS(AVX2)
LTC_DECLARE_KERNELS(AVX512)
#endif

namespace {

struct InstructionSet {
  const TileKernels& tiles;
  const RowKernels& rows;
  const ImageKernels& images;
  const AttentionKernels& attention;
  const SkinnyKernels& skinny;
  const WinogradKernels& winograd;
  const char* cpu;
};

const InstructionSet& chosen() {
  static const InstructionSet chosen = []() -> InstructionSet {
#if defined(__x86_64__)
    const std::string capability = at::get_cpu_capability();
    if (capability == "AVX512") return {LTC_KERNELS(AVX512), "native"};
    if (capability == "AVX2") return {LTC_KERNELS(AVX2), "x86-64-v3"};
    return {LTC_KERNELS(DEFAULT), "x86-64"};
#else
    return {LTC_KERNELS(DEFAULT), "native"};
#endif
  }();
  return chosen;
}

}  // namespace

const TileKernels& tile_kernels() { return chosen().tiles; }
const RowKernels& row_kernels() { return chosen().rows; }
const ImageKernels& image_kernels() { return chosen().images; }
const AttentionKernels& attention_kernels() { return chosen().attention; }
const SkinnyKernels& skinny_kernels() { return chosen().skinny; }
const WinogradKernels& winograd_kernels() { return chosen().winograd; }
const char* tile_cpu() { return chosen().cpu; }

}  // namespace ltc::torchscript
