// From graphs to plans for CUDA.
#pragma once
#include <string>

#include "device/compiled_plan.h"

namespace ltc::cuda {

// The features that a device may use.
struct Features {
  bool coop_reduce = true, split_reduce = true, block_sort = true, cublas = true, cudnn = true, epilogues = true;
  bool attention = true, attention_mma = true;  // in one pass; on tensor cores where they take it
  bool fp8 = true;                              // products of floats of 8 bits, by cuBLASLt
  bool nccl = true;                             // collectives between processes
  // Functions after products by cuBLASLt: its relu is not known to keep NaN, nor how exact its gelu is.
  // LTC_CUDA_WITH=activations.
  bool activations = false;
};
// All but those that the text names, separated by commas. Throws INVALID_ARGUMENT for other names.
Features features_without(const std::string& names);
// The other way round, and what is there besides.
std::string disabled(const Features& features);
// As LTC_CUDA_WITHOUT and LTC_CUDA_WITH say: for comparing them, and for going around a defect.
Features chosen_features(const std::string& without, const std::string& with);

// Those that a device has; capability: 90 for 9.0.
Features features_of(Features features, int capability);

// cublas and cudnn: also whether they are there.
device::Lowering lowering_for(const Features& features);

}  // namespace ltc::cuda
