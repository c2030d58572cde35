#include <ATen/Version.h>

#include "../attention_kernels.h"
#include "../image_kernels.h"
#include "../row_kernels.h"
#include "../skinny_kernels.h"
#include "primitives.h"

namespace ltc::torchscript {

extern const TileKernels tile_kernels_DEFAULT;
extern const RowKernels row_kernels_DEFAULT;
extern const ImageKernels image_kernels_DEFAULT;
extern const AttentionKernels attention_kernels_DEFAULT;
extern const SkinnyKernels skinny_kernels_DEFAULT;
#if defined(__x86_64__)
extern const TileKernels tile_kernels_AVX2, tile_kernels_AVX512;
extern const RowKernels row_kernels_AVX2, row_kernels_AVX512;
extern const ImageKernels image_kernels_AVX2, image_kernels_AVX512;
extern const AttentionKernels attention_kernels_AVX2, attention_kernels_AVX512;
extern const SkinnyKernels skinny_kernels_AVX2, skinny_kernels_AVX512;
#endif

namespace {

struct InstructionSet {
  const TileKernels& tiles;
  const RowKernels& rows;
  const ImageKernels& images;
  const AttentionKernels& attention;
  const SkinnyKernels& skinny;
  const char* cpu;
};

const InstructionSet& chosen() {
  static const InstructionSet chosen = []() -> InstructionSet {
#if defined(__x86_64__)
    const std::string capability = at::get_cpu_capability();
    if (capability == "AVX512")
      return {tile_kernels_AVX512,      row_kernels_AVX512,    image_kernels_AVX512,
              attention_kernels_AVX512, skinny_kernels_AVX512, "native"};
    if (capability == "AVX2")
      return {tile_kernels_AVX2, row_kernels_AVX2, image_kernels_AVX2, attention_kernels_AVX2, skinny_kernels_AVX2, "x86-64-v3"};
    return {tile_kernels_DEFAULT,      row_kernels_DEFAULT,    image_kernels_DEFAULT,
            attention_kernels_DEFAULT, skinny_kernels_DEFAULT, "x86-64"};
#else
    return {tile_kernels_DEFAULT,      row_kernels_DEFAULT,    image_kernels_DEFAULT,
            attention_kernels_DEFAULT, skinny_kernels_DEFAULT, "native"};
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
const char* tile_cpu() { return chosen().cpu; }

}  // namespace ltc::torchscript
