// One product of two matrices of F32 in the calling thread, by what is fastest at its shape: loops of our own where a side is
// short (cpu_kernels/skinny.h), the BLAS of libtorch, or its oneDNN, which is up to twice as fast on processors that MKL was not
// made for, and here and there on those it was.
#pragma once
#include <ATen/core/Tensor.h>
#include <c10/core/Scalar.h>

#include <cstdint>
#include <optional>
#include <string_view>

namespace ltc::torchscript {

// The last three are forms of skinny products; a transposed dot makes the transposed result.
enum class Gemm : uint8_t { kBlas, kOneDnn, kDot, kTransposedDot, kAddRows };

// By the option `gemm`, for large products, and for the process: the last instance that was entered decides. auto: onednn on
// AMD's processors, where libtorch has that for the processor, else the BLAS. blas: for all, skinny ones too.
void choose_gemm(std::string_view name);

// For a x b that has few rows or columns, or sums of few terms, and lies as our loops want it; null for others. Holds for parts
// of it, by rows or columns, too.
std::optional<Gemm> skinny_gemm_for(const at::Tensor& a, const at::Tensor& b);

// For (rows x inner) times (inner x columns) that is not skinny. Small products are the BLAS's. Where the library is chosen by
// timing, it is once in a process for each way in which the operands lie and each power of two that their sizes reach, on a part
// of them where they are large; oneDNN has to be clearly ahead, so that chance decides little. A shape's results are the same
// bits throughout a process, and in all of them too unless they were autotuned, which torch.use_deterministic_algorithms leaves
// to the BLAS. Any thread.
Gemm gemm_for(const at::Tensor& a, const at::Tensor& b);

// out = a b. `out` is of the right shape; its rows may lie apart.
void multiply(Gemm gemm, at::Tensor& out, const at::Tensor& a, const at::Tensor& b);

// out = beta addend + alpha a b; `addend` broadcasts to it. The BLAS's unless both numbers are 1.
void multiply_and_add(Gemm gemm, at::Tensor& out, const at::Tensor& addend, const at::Tensor& a, const at::Tensor& b,
                      const at::Scalar& beta, const at::Scalar& alpha);

}  // namespace ltc::torchscript
