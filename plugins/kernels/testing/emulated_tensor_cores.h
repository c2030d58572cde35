// The functions of tensor_cores.cpp for the host. The text stands between emulation.h's text and the program, and needs nothing
// else before it.
#pragma once

namespace ltc::kernels {

inline constexpr const char* kEmulatedTensorCores = R"c(
namespace emulation {

// Where elements are in a warp's fragments: the PTX ISA, "Matrix Fragments for mma.m16n8k16 with floating point type".
static int row_of_a(unsigned lane, int i) { return (int)(lane >> 2) + (i < 2 || (i >= 4 && i < 6) ? 0 : 8); }
static int column_of_a(unsigned lane, int i) { return (int)(lane % 4) * 2 + (i & 1) + (i < 4 ? 0 : 8); }
static int row_of_b(unsigned lane, int i) { return (int)(lane % 4) * 2 + (i & 1) + (i < 2 ? 0 : 8); }
static int column_of_b(unsigned lane, int) { return (int)(lane >> 2); }
static int row_of_sums(unsigned lane, int i) { return (int)(lane >> 2) + (i < 2 ? 0 : 8); }
static int column_of_sums(unsigned lane, int i) { return (int)(lane % 4) * 2 + (i & 1); }

static float bf16_value(unsigned bits) { return __uint_as_float(bits << 16); }
static float f16_value(unsigned bits) {
  const int exponent = bits >> 10 & 31, fraction = bits & 1023;
  const float size = exponent == 31 ? (fraction ? NAN : INFINITY)
                     : exponent     ? ldexpf((float)(fraction + 1024), exponent - 25)
                                    : ldexpf((float)fraction, -24);
  return bits >> 15 & 1 ? -size : size;
}
// The nearest, to even, by the distance of neighbours: in a way of its own, not the program's.
static unsigned half_bits(float x, int fraction_bits, int least_exponent) {
  const int exponent_bits = 15 - fraction_bits;
  const unsigned sign = (__float_as_uint(x) >> 31) << 15, infinity = ((1u << exponent_bits) - 1) << fraction_bits;
  if (x != x) return 0x7fff;
  if (isinf(x)) return sign | infinity;
  if (x == 0) return sign;
  int exponent;
  frexpf(x, &exponent);
  if (--exponent < least_exponent) exponent = least_exponent;
  const unsigned steps = (unsigned)nearbyint(ldexp(fabs((double)x), fraction_bits - exponent));
  const unsigned bits = steps + ((unsigned)(exponent - least_exponent) << fraction_bits);
  return sign | (bits > infinity ? infinity : bits);
}

struct Copy {
  void* to;
  char data[16];
  size_t bytes;
};
static std::vector<Copy> copies[1024];

// Called by all lanes, once each has put its elements there.
template <int kDepth>
static void add_products(float (&sums)[4], const float (&left)[16][kDepth], const float (&right)[kDepth][8]) {
  const unsigned lane = threadIdx.x % 32;
  __syncwarp();
  for (int i = 0; i < 4; ++i) {
    double sum = sums[i];
    for (int k = 0; k < kDepth; ++k) sum += (double)left[row_of_sums(lane, i)][k] * right[k][column_of_sums(lane, i)];
    sums[i] = (float)sum;
  }
  __syncwarp();
}

static const unsigned short* rows_of_matrices[32];
static void load_matrices(unsigned (&to)[4], const unsigned short* row, bool transposed) {
  const unsigned lane = threadIdx.x % 32;
  if ((size_t)row % 16) refuse("ldmatrix of a row that does not begin at 16 bytes");
  rows_of_matrices[lane] = row;
  __syncwarp();
  for (unsigned i = 0; i < 4; ++i) {
    const auto element = [&](unsigned a, unsigned b) -> unsigned {
      return transposed ? rows_of_matrices[i * 8 + b][a] : rows_of_matrices[i * 8 + a][b];
    };
    to[i] = element(lane / 4, lane % 4 * 2) | element(lane / 4, lane % 4 * 2 + 1) << 16;
  }
  __syncwarp();
}

}  // namespace emulation

template <bool kBf16>
static void ltc_mma(float (&sums)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
  using namespace emulation;
  static float left[16][16], right[16][8];
  const unsigned lane = threadIdx.x % 32, b[] = {b0, b1};
  const auto value = [](unsigned both, int i) {
    const unsigned bits = both >> 16 * (i & 1) & 0xffff;
    return kBf16 ? bf16_value(bits) : f16_value(bits);
  };
  for (int i = 0; i < 8; ++i) left[row_of_a(lane, i)][column_of_a(lane, i)] = value(a[i / 2], i);
  for (int i = 0; i < 4; ++i) right[row_of_b(lane, i)][column_of_b(lane, i)] = value(b[i / 2], i);
  add_products(sums, left, right);
}

static void ltc_tf32_parts(float x, unsigned& large, unsigned& small) {
  const unsigned bits = __float_as_uint(x);
  large = x != x ? 0x7fffffffu : (bits + 0x1000u) & 0xffffe000u;  // to the nearest, away from zero where two are
  small = __float_as_uint(x - __uint_as_float(large));
}
static void ltc_tf32_mma(float (&sums)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
  using namespace emulation;
  static float left[16][8], right[8][8];
  const unsigned lane = threadIdx.x % 32, b[] = {b0, b1};
  const auto value = [](unsigned bits) { return __uint_as_float(bits & 0xffffe000u); };
  for (int i = 0; i < 4; ++i) left[lane / 4 + i % 2 * 8][lane % 4 + i / 2 * 4] = value(a[i]);
  for (int i = 0; i < 2; ++i) right[lane % 4 + i * 4][lane / 4] = value(b[i]);
  add_products(sums, left, right);
}

static void ltc_load_matrices(unsigned (&to)[4], const unsigned short* row) { emulation::load_matrices(to, row, false); }
static void ltc_load_transposed(unsigned (&to)[4], const unsigned short* row) { emulation::load_matrices(to, row, true); }

template <bool kBf16>
static unsigned ltc_two_halves(float low, float high) {
  const auto bits = [](float x) {
    return kBf16 ? emulation::half_bits(x, 7, -126) : emulation::half_bits(x, 10, -14);
  };
  return bits(low) | bits(high) << 16;
}

// The target of a copy is of no use until the copy has been awaited: a read before that, of the old elements too, gives NaN.
template <typename T>
static void ltc_copy_ahead(T* to, const T* from, bool inside) {
  if ((size_t)to % sizeof(T) || (inside && (size_t)from % sizeof(T))) emulation::refuse("cp.async of what is not aligned");
  emulation::Copy copy{to, {}, sizeof(T)};
  if (inside) memcpy(copy.data, from, sizeof(T));
  emulation::copies[threadIdx.x].push_back(copy);
  memset((void*)to, 0xff, sizeof(T));
}
static void ltc_await_copies() {
  for (const emulation::Copy& copy : emulation::copies[threadIdx.x]) memcpy(copy.to, copy.data, copy.bytes);
  emulation::copies[threadIdx.x].clear();
}
)c";

}  // namespace ltc::kernels
