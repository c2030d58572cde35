// What graphs become on CUDA.
#pragma once
#include "device/recipe.h"

namespace ltc::cuda {

// has_blas: cuBLASLt computes products; has_dnn: cuDNN convolutions.
device::Lowering lowering_for(bool has_blas, bool has_dnn);

}  // namespace ltc::cuda
