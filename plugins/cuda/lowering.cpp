#include "lowering.h"

#include "blas.h"

namespace ltc::cuda {

device::Lowering lowering_for(bool has_blas, bool has_dnn) {
  const kernels::Dialect& dialect = kernels::cuda_dialect();
  kernels::Options options{.abilities = {.fp64 = true},
                           .blas_operands = true,
                           .split_threads = dialect.device_threads,
                           .extras = {.attention = true, .convolution = has_dnn}};
  if (has_blas) options.library_product = wants_blas;
  return {.dialect = dialect, .options = std::move(options), .elements_local = 256, .rows_local = 32};
}

}  // namespace ltc::cuda
