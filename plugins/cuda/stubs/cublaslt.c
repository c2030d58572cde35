/* A cuBLASLt for tests, on memory of the host, F32, F64, F16, BF16 and floats of 8 bits: products, their scales and epilogues as
   its documentation defines them. It refuses what the real one refuses: values of the wrong size, layouts that do not agree, an
   algorithm of another product, floats of 8 bits in another form than it takes. */
#include "elements.h"
#include "in_stream.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { kBad = 7, kUnknown = 15, kBF16 = 14, kE4M3 = 28, kE5M2 = 29, kCompute32F = 68, kCompute64F = 70, kTf32 = 77 };
enum { kRelu = 2, kBias = 4, kGelu = 32, kAux = 128 };

typedef struct {
  int compute, scale;
  int32_t transposed[2];
  uint32_t epilogue;
  char *bias, *aux;
  const float* scales[2];
  int8_t fast;
  int64_t aux_leading, aux_stride;
} Desc;
typedef struct {
  int type;
  uint64_t rows, columns;
  int64_t leading, stride;
  int32_t batch;
} Layout;
typedef struct {
  uint64_t workspace;
  uint32_t schemes;
  uint32_t alignments[4];
} Preference;
typedef struct {
  uint64_t algorithm[8];
  size_t workspace;
  int state;
  float waves;
  int reserved[4];
} Found;
typedef struct {
  int asked;
} Context;

int cublasLtCreate(Context** handle) { return (*handle = calloc(1, sizeof **handle)) ? 0 : kBad; }
int cublasLtDestroy(Context* handle) { return free(handle), 0; }
size_t cublasLtGetVersion(void) { return 130000; }
int cublasLtMatmulDescCreate(Desc** desc, int compute, int scale) {
  *desc = calloc(1, sizeof **desc);
  (*desc)->compute = compute;
  (*desc)->scale = scale;
  (*desc)->epilogue = 1;
  return 0;
}
int cublasLtMatmulDescDestroy(Desc* desc) { return free(desc), 0; }

static int set(void* to, size_t expected, const void* value, size_t size) {
  if (size != expected) return kBad;
  memcpy(to, value, size);
  return 0;
}
int cublasLtMatmulDescSetAttribute(Desc* desc, int attribute, const void* value, size_t size) {
  switch (attribute) {
    case 3: return set(&desc->transposed[0], 4, value, size);
    case 4: return set(&desc->transposed[1], 4, value, size);
    case 7: return set(&desc->epilogue, 4, value, size);
    case 8: return set(&desc->bias, 8, value, size);
    case 11: return set(&desc->aux, 8, value, size);
    case 12: return set(&desc->aux_leading, 8, value, size);
    case 13: return set(&desc->aux_stride, 8, value, size);
    case 17: return set(&desc->scales[0], 8, value, size);
    case 18: return set(&desc->scales[1], 8, value, size);
    case 25: return set(&desc->fast, 1, value, size);
    default: return kBad;
  }
}
int cublasLtMatrixLayoutCreate(Layout** layout, int type, uint64_t rows, uint64_t columns, int64_t leading) {
  const Layout made = {type, rows, columns, leading, 0, 1};
  if (leading < (int64_t)rows || !(*layout = malloc(sizeof made))) return kBad;
  **layout = made;
  return 0;
}
int cublasLtMatrixLayoutDestroy(Layout* layout) { return free(layout), 0; }
int cublasLtMatrixLayoutSetAttribute(Layout* layout, int attribute, const void* value, size_t size) {
  if (attribute == 5) return set(&layout->batch, 4, value, size);
  return attribute == 6 ? set(&layout->stride, 8, value, size) : kBad;
}
int cublasLtMatmulPreferenceCreate(Preference** preference) {
  *preference = calloc(1, sizeof **preference);
  (*preference)->schemes = 7;
  return 0;
}
int cublasLtMatmulPreferenceDestroy(Preference* preference) { return free(preference), 0; }
int cublasLtMatmulPreferenceSetAttribute(Preference* preference, int attribute, const void* value, size_t size) {
  if (attribute == 1) return set(&preference->workspace, 8, value, size);
  if (attribute == 3) return set(&preference->schemes, 4, value, size);
  return attribute >= 5 && attribute <= 8 ? set(&preference->alignments[attribute - 5], 4, value, size) : kBad;
}

static uint64_t inner(const Desc* desc, const Layout* a) { return desc->transposed[0] ? a->rows : a->columns; }
static int agree(const Desc* desc, const Layout* a, const Layout* b, const Layout* d) {
  const uint64_t rows = desc->transposed[0] ? a->columns : a->rows, columns = desc->transposed[1] ? b->rows : b->columns;
  return rows == d->rows && columns == d->columns && inner(desc, a) == (desc->transposed[1] ? b->columns : b->rows) &&
         a->batch == d->batch && b->batch == d->batch;
}
static int is_f8(const Layout* m) { return m->type == kE4M3 || m->type == kE5M2; }
/* "FP8 kernels": their types, transposed by not transposed, both scales, all sizes and strides multiples of 16 bytes. */
static int takes_f8(const Desc* desc, const Layout* a, const Layout* b, const Layout* d) {
  const int result_bytes = d->type == kBF16 ? 2 : 4;
  return is_f8(a) && is_f8(b) && !(a->type == kE5M2 && b->type == kE5M2) && (d->type == kBF16 || d->type == kF32) &&
         desc->transposed[0] == 1 && desc->transposed[1] == 0 && desc->compute == kCompute32F && desc->scale == kF32 &&
         desc->scales[0] && desc->scales[1] && !(d->type == kF32 && desc->epilogue & kBias) && a->rows % 16 == 0 &&
         a->columns % 16 == 0 && a->leading % 16 == 0 && b->leading % 16 == 0 && d->leading * result_bytes % 16 == 0;
}
static int takes(const Desc* desc, const Layout* a, const Layout* b, const Layout* d) {
  if (is_f8(a) || is_f8(b)) return takes_f8(desc, a, b, d);
  const int wide = a->type == kF64;
  return a->type == b->type && b->type == d->type && (a->type == kF32 || a->type == kF16 || a->type == kBF16 || wide) &&
         wide == (desc->compute == kCompute64F) && wide == (desc->scale == kF64) && !desc->scales[0] && !desc->scales[1];
}
/* For the test: how partial sums of the product that was asked for last may be put together. */
static int last_schemes;
int ltc_stub_schemes(void) { return last_schemes; }
/* Likewise: whether it may be quick, and in units of 1/64 the scale of a that the product was computed with that was last. */
static int last_fast, last_scale;
int ltc_stub_fast(void) { return last_fast; }
int ltc_stub_scale(void) { return last_scale; }

int cublasLtMatmulAlgoGetHeuristic(Context* handle, Desc* desc, Layout* a, Layout* b, Layout* c, Layout* d,
                                   Preference* preference, int asked, Found* found, int* count) {
  *count = 0;
  if (!agree(desc, a, b, d) || c != d || asked < 1) return kBad;
  if (!takes(desc, a, b, d)) return kUnknown;
  if (is_f8(a) && (preference->alignments[0] < 16 || preference->alignments[1] < 16)) return kUnknown;
  if (desc->epilogue & kBias && !desc->bias) return kBad;
  if (desc->epilogue & kAux && (!desc->aux || desc->aux_leading % 8 || desc->aux_leading < (int64_t)d->rows)) return kUnknown;
  const Found one = {{(uint64_t)++handle->asked, desc->epilogue}, 64, 0, 1, {0}};
  *found = one;
  last_schemes = (int)preference->schemes;
  last_fast = desc->fast;
  *count = 1;
  return 0;
}

/* E4M3 is without infinities, E5M2 the upper half of an F16. NaN and infinities are not for tests of products. */
static float load_f8(uint8_t bits, int type) {
  const int mantissa_bits = type == kE4M3 ? 3 : 2, bias = type == kE4M3 ? 7 : 15;
  const int exponent = (bits & 0x7f) >> mantissa_bits, mantissa = bits & ((1 << mantissa_bits) - 1);
  const float size = exponent ? ldexpf((float)((1 << mantissa_bits) + mantissa), exponent - bias - mantissa_bits)
                              : ldexpf((float)mantissa, 1 - bias - mantissa_bits);
  return bits & 0x80 ? -size : size;
}
static double load(const char* memory, int type, int64_t at) {
  if (type == kE4M3 || type == kE5M2) return load_f8(((const uint8_t*)memory)[at], type);
  return load_element(memory, type, at);
}
static double operand(const Desc* desc, const char* memory, const Layout* m, int transposed, int64_t batch, int64_t row,
                      int64_t column) {
  const int64_t at = batch * m->stride + (transposed ? column + row * m->leading : row + column * m->leading);
  const double value = load(memory, m->type, at);
  return desc->compute == kTf32 ? to_tf32(value) : value;
}

/* A product with all that describes it, since that may change before the stream comes to it. */
typedef struct {
  Desc desc;
  Layout la, lb, ld;
  const char *a, *b;
  char* d;
} Call;

static double product(const Call* call, int64_t batch, int64_t i, int64_t j) {
  const Desc* desc = &call->desc;
  double sum = 0;
  for (int64_t k = 0; k < (int64_t)inner(desc, &call->la); ++k) {
    const double a = operand(desc, call->a, &call->la, desc->transposed[0], batch, i, k);
    const double b = operand(desc, call->b, &call->lb, desc->transposed[1], batch, k, j);
    sum = desc->compute == kCompute64F ? sum + a * b : (double)((float)sum + (float)(a * b));
  }
  return sum;
}
static void multiply(void* data) {
  const Call* call = data;
  const Desc* desc = &call->desc;
  const Layout* ld = &call->ld;
  const float scale = desc->scales[0] ? *desc->scales[0] * *desc->scales[1] : 1;
  last_scale = desc->scales[0] ? (int)(64 * *desc->scales[0]) : 0;
  for (int64_t batch = 0; batch < ld->batch; ++batch) {
    for (int64_t i = 0; i < (int64_t)ld->rows; ++i) {
      for (int64_t j = 0; j < (int64_t)ld->columns; ++j) {
        const double wide = product(call, batch, i, j) * scale;
        float sum = (float)wide;
        if (desc->epilogue & kBias) sum += (float)load_element(desc->bias, ld->type, i);
        if (desc->epilogue & kAux) store_element(desc->aux, ld->type, batch * desc->aux_stride + i + j * desc->aux_leading, sum);
        if (desc->epilogue & kRelu) sum = sum > 0 ? sum : 0;
        if (desc->epilogue & kGelu) sum = 0.5f * sum * (1 + tanhf(0.79788456f * (sum + 0.044715f * sum * sum * sum)));
        store_element(call->d, ld->type, batch * ld->stride + i + j * ld->leading, ld->type == kF64 ? wide : sum);
      }
    }
  }
}
int cublasLtMatmul(Context* handle, Desc* desc, const void* alpha, const char* a, Layout* la, const char* b, Layout* lb,
                   const void* beta, const char* c, Layout* lc, char* d, Layout* ld, const uint64_t* algorithm, void* workspace,
                   size_t bytes, void* stream) {
  if (!handle || !agree(desc, la, lb, ld) || !takes(desc, la, lb, ld) || !is_number(desc->scale == kF64, alpha, 1) ||
      !is_number(desc->scale == kF64, beta, 0) || c != d || lc != ld || algorithm[1] != desc->epilogue || algorithm[0] == 0 ||
      !workspace || bytes < 64 || !stream)
    return kBad;
  const Call call = {*desc, *la, *lb, *ld, a, b, d};
  Call* kept = malloc(sizeof call);
  memcpy(kept, &call, sizeof call);
  return stub_in_stream(stream, multiply, kept);
}
