// Matrix products.
#pragma once
#include "kernels/plan/plan.h"

namespace ltc::opencl {

// Options::tile_columns of the plan.
inline constexpr int64_t kTileColumns = 32;

// A kernel for kernels::Product in F32, a tile of the result per work item.
kernels::Source gemm_source(const kernels::Product& product);

// Whether gemm_source is faster than the generated kernel, which computes each element by itself.
bool wants_gemm(ltc_dtype dtype, int64_t batch, int64_t rows, int64_t columns, int64_t length);

}  // namespace ltc::opencl
