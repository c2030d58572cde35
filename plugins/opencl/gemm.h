// Matrix products.
#pragma once
#include "kernels/plan.h"

namespace ltc::opencl {

// A kernel for kernels::Product in F32, a tile of the result per work item. Integers behind `items`: rows, columns, length, and
// the number of tiles along rows and along columns.
kernels::Source gemm_source(const kernels::Product& product);

// Whether gemm_source is faster than the generated kernel, which computes each element by itself.
bool wants_gemm(ltc_dtype dtype, int64_t batch, int64_t rows, int64_t columns, int64_t length);

}  // namespace ltc::opencl
