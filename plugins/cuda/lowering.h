// What graphs become on CUDA.
#pragma once
#include <string>

#include "device/recipe.h"

namespace ltc::cuda {

// The ways of computing that a device takes where it can.
struct Ways {
  bool blocks = true, pieces = true, attention = true, cublas = true, cudnn = true;
};
// All but those that the text names, separated by commas. Throws INVALID_ARGUMENT for other names.
Ways ways_without(const std::string& names);
// The other way round.
std::string left_out(const Ways& ways);
// As LTC_CUDA_WITHOUT says: for comparing them, and for going around a defect.
Ways chosen_ways();

// cublas and cudnn: also whether they are there.
device::Lowering lowering_for(const Ways& ways);

}  // namespace ltc::cuda
