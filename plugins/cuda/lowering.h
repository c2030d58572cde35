// What graphs become on CUDA.
#pragma once
#include <string>

#include "device/recipe.h"

namespace ltc::cuda {

// The ways of computing that a device takes where it can.
struct Ways {
  bool blocks = true, pieces = true, sorts = true, cublas = true, cudnn = true, epilogues = true;
  bool attention = true, attention_mma = true;  // in one pass; on tensor cores where they take it
  bool fp8 = true;                              // products of floats of 8 bits, by cuBLASLt
  // Functions after products by cuBLASLt: its relu is not known to keep NaN, nor how exact its gelu is.
  // LTC_CUDA_WITH=activations.
  bool activations = false;
};
// All but those that the text names, separated by commas. Throws INVALID_ARGUMENT for other names.
Ways ways_without(const std::string& names);
// The other way round, and what is there besides.
std::string left_out(const Ways& ways);
// As LTC_CUDA_WITHOUT and LTC_CUDA_WITH say: for comparing them, and for going around a defect.
Ways chosen_ways();

// Those that a device has; capability: 90 for 9.0.
Ways ways_of(Ways ways, int capability);

// cublas and cudnn: also whether they are there.
device::Lowering lowering_for(const Ways& ways);

}  // namespace ltc::cuda
