// CUDA's functions in assembly: what tensor cores need and the language does not say. A device of sm_80 has all of them. Layouts
// are those of the PTX ISA, "Matrix Fragments for mma.m16n8k16 with floating point type" (9.7.14.5.8 in version 9.2), the same
// for m16n8k8, and "ldmatrix"; halves are two to a register, the first in the lower half. emulated_tensor_cores.h says the same
// for the host.
#include "kernels/print/dialect.h"

namespace ltc::kernels {
namespace {

constexpr OwnFunction kFunctions[] = {
    // sums += a b, by a warp: a 16 x 16, b 16 x 8 by columns, sums 16 x 8.
    {"ltc_mma", R"(#ifdef __CUDACC_RTC__
template <bool kBf16>
FN void ltc_mma(f32 (&sums)[4], const u32 (&a)[4], u32 b0, u32 b1) {
  if (kBf16) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  } else {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  }
}
#endif
)"},
    // The nearest number of TF32, and what it leaves of x, exactly: of that, a product takes the upper bits. It is volatile, or
    // the
    // compiler would split what a loop uses before the loop, and have no registers for both parts.
    {"ltc_tf32_parts", R"(#ifdef __CUDACC_RTC__
FN void ltc_tf32_parts(f32 x, u32& large, u32& small) {
  asm volatile("cvt.rna.tf32.f32 %0, %1;" : "=r"(large) : "f"(x));
  small = __float_as_uint(x - __uint_as_float(large));
}
#endif
)"},
    // sums += a b, by a warp: a 16 x 8, b 8 x 8 by columns, sums 16 x 8.
    {"ltc_tf32_mma", R"(#ifdef __CUDACC_RTC__
FN void ltc_tf32_mma(f32 (&sums)[4], const u32 (&a)[4], u32 b0, u32 b1) {
  asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
               : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
#endif
)"},
    // Four matrices of 8 x 8 from shared memory: lane i says where row i % 8 of matrix i / 8 lies, and gets two elements of each:
    // of row lane / 4, or column, where they are transposed.
    {"ltc_load_matrices", R"(#ifdef __CUDACC_RTC__
FN void ltc_load_matrices(u32 (&to)[4], const u16* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3]) : "r"((u32)__cvta_generic_to_shared(row)) : "memory");
}
#endif
)"},
    {"ltc_load_transposed", R"(#ifdef __CUDACC_RTC__
FN void ltc_load_transposed(u32 (&to)[4], const u16* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3]) : "r"((u32)__cvta_generic_to_shared(row)) : "memory");
}
#endif
)"},
    {"ltc_two_halves", R"(#ifdef __CUDACC_RTC__
template <bool kBf16>
FN u32 ltc_two_halves(f32 low, f32 high) {
  u32 both;
  if (kBf16) asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
  else asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
  return both;
}
#endif
)"},
    // 4 or 16 bytes into shared memory, zeros unless `inside`. They are there once the thread has waited, and for the block once
    // its threads have met after that.
    {"ltc_copy_ahead", R"(#ifdef __CUDACC_RTC__
template <typename T>
FN void ltc_copy_ahead(T* to, const T* from, bool inside) {
  const u32 place = (u32)__cvta_generic_to_shared(to), bytes = inside ? (u32)sizeof(T) : 0;
  if (sizeof(T) == 16) asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" :: "r"(place), "l"(from), "r"(bytes) : "memory");
  else asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" :: "r"(place), "l"(from), "r"(bytes) : "memory");
}
#endif
)"},
    {"ltc_await_copies", R"(#ifdef __CUDACC_RTC__
FN void ltc_await_copies() { asm volatile("cp.async.wait_all;" ::: "memory"); }
#endif
)"},
};

}  // namespace

std::span<const OwnFunction> tensor_core_functions() { return kFunctions; }

}  // namespace ltc::kernels
