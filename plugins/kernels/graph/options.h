// A device's abilities and a program's permissions, as far as they decide which kernels are made.
#pragma once
#include <cstdint>
#include <functional>

#include "ltc/plugin.h"

namespace ltc::kernels {

struct Abilities {
  bool fp64 = true;  // else sums run in F32, and numbers passed by value arrive as F32
};

// The device's abilities beyond those that the generator has for all.
struct Extras {
  bool attention = false;
  bool attention_mma = false;   // on tensor cores where they take it
  bool convolution = false;     // a library's
  bool scaled_product = false;  // likewise
  bool collectives = false;     // likewise, in groups that the device has joined
};

struct Options {
  Abilities abilities;
  // Whether a batched matrix product of this size is left to a library: batch, rows, columns, length.
  std::function<bool(ltc_dtype, int64_t, int64_t, int64_t, int64_t)> library_product;
  int64_t tile_columns = 0;    // how many columns of the second operand that library wants side by side
  bool blas_operands = false;  // it takes operands in the forms of BLAS only (products.h)
  // From so many points of its result on, each image of a convolution is a product of its own: see expand_convolution.
  int64_t points_by_image = INT64_MAX;
  int64_t split_threads = 0;   // above 0: few long rows are split, so that about so many threads share them (split_reduce.h)
  bool block_sorts = false;    // sorts by the lanes of blocks (block_sort.h), where a dialect has them
  bool check_indices = false;  // elements of an index that are out of range are reported (emit.h)
  Extras extras = {};
  // The epilogues of the library of products; see epilogues.h. It may compute the functions less exactly than the generator's
  // kernels.
  struct {
    bool bias = false, activations = false;
  } epilogues = {};
  // The program's permissions: operands in TF32, and sums of halves in parts that are rounded to halves.
  struct {
    bool products_in_tf32 = false, convolutions_in_tf32 = false, sums_in_f16 = false, sums_in_bf16 = false;
  } rounding = {};
};

}  // namespace ltc::kernels
