/* Matrix product and convolution. Both come down to inner products of rows that lie in one piece. */
#include "minimal.h"

#define SPATIAL 3
#define BLOCK 16 /* rows that are used together, so that the other operand is read once for all of them */

/* A convolution with its spatial dims brought to three. */
struct convolution {
  int64_t batch, groups, in_channels, out_channels; /* channels of one group */
  int64_t in[SPATIAL], window[SPATIAL], out[SPATIAL], stride[SPATIAL], padding[SPATIAL], dilation[SPATIAL];
  bool transposed;
};

static int64_t volume(const int64_t sizes[SPATIAL]) { return sizes[0] * sizes[1] * sizes[2]; }

/* One number per dim of space, or one for all. */
static int64_t along(const struct attr* attr, uint32_t dim) { return attr->values[attr->count == 1 ? 0 : dim].i; }

static bool read_convolution(struct call* call, struct convolution* how) {
  const struct array *x = call->in[0], *weight = call->in[1], *out = call->out[0];
  if (x->rank > SPATIAL + 2) return fail(call, LTC_UNSUPPORTED, "%u dims of space, expected at most %d", x->rank - 2, SPATIAL);
  how->transposed = attr_int(&call->attrs[3], 0) != 0;
  how->batch = x->sizes[0];
  how->groups = attr_int(&call->attrs[4], 1);
  how->in_channels = x->sizes[1] / how->groups;
  how->out_channels = out->sizes[1] / how->groups;
  const uint32_t dims = x->rank - 2, lacking = SPATIAL - dims;
  for (uint32_t i = 0; i < SPATIAL; ++i) {
    const uint32_t dim = i - lacking; /* of space */
    const bool given = i >= lacking;
    how->in[i] = given ? x->sizes[2 + dim] : 1;
    how->window[i] = given ? weight->sizes[2 + dim] : 1;
    how->out[i] = given ? out->sizes[2 + dim] : 1;
    how->stride[i] = given ? along(&call->attrs[0], dim) : 1;
    how->padding[i] = given ? along(&call->attrs[1], dim) : 0;
    how->dilation[i] = given ? along(&call->attrs[2], dim) : 1;
  }
  return true;
}

/* Which element of the input meets element k of the window at element o of the output, along one dim; -1: padding. */
static int64_t source(const struct convolution* how, int dim, int64_t o, int64_t k) {
  int64_t i = how->transposed ? o + how->padding[dim] - k * how->dilation[dim]
                              : o * how->stride[dim] - how->padding[dim] + k * how->dilation[dim];
  if (how->transposed) {
    if (i < 0 || i % how->stride[dim] != 0) return -1;
    i /= how->stride[dim];
  }
  return i >= 0 && i < how->in[dim] ? i : -1;
}

/* Kernels for elements T, sums of type Sum: dot_, bmm_ and convolution_. */
#define MATRIX(T, suffix, Sum)                                                                                         \
  static Sum dot_##suffix(const T* restrict a, const T* restrict b, int64_t n) {                                       \
    Sum sums[16] = {0};                                                                                                \
    int64_t i = 0;                                                                                                     \
    for (; i + 16 <= n; i += 16) {                                                                                     \
      for (int k = 0; k < 16; ++k) sums[k] += (Sum)a[i + k] * (Sum)b[i + k];                                           \
    }                                                                                                                  \
    for (; i < n; ++i) sums[i % 16] += (Sum)a[i] * (Sum)b[i];                                                          \
    for (int half = 8; half > 0; half /= 2) {                                                                          \
      for (int k = 0; k < half; ++k) sums[k] += sums[k + half];                                                        \
    }                                                                                                                  \
    return sums[0];                                                                                                    \
  }                                                                                                                    \
                                                                                                                       \
  /* The second matrix is transposed first, so that its columns lie in one piece. */                                   \
  static bool bmm_##suffix(struct call* call) {                                                                        \
    const int64_t *sizes = call->in[0]->sizes, rows = sizes[1], inner = sizes[2], columns = call->in[1]->sizes[2];     \
    const int64_t swapped[2] = {columns, inner}, to_strides[2] = {inner, 1}, from_strides[2] = {1, columns};           \
    T* transposed = malloc((size_t)(inner * columns) * sizeof *transposed + 1);                                        \
    for (int64_t batch = 0; transposed && batch < sizes[0]; ++batch) {                                                 \
      const T* a = (const T*)call->in[0]->data + batch * rows * inner;                                                 \
      const T* b = (const T*)call->in[1]->data + batch * inner * columns;                                              \
      T* to = (T*)call->out[0]->data + batch * rows * columns;                                                         \
      copy_strided(sizeof(T), 2, swapped, transposed, to_strides, b, from_strides);                                    \
      for (int64_t first = 0; first < rows; first += BLOCK) {                                                          \
        const int64_t end = first + BLOCK < rows ? first + BLOCK : rows;                                               \
        for (int64_t j = 0; j < columns; ++j) {                                                                        \
          for (int64_t i = first; i < end; ++i)                                                                        \
            to[i * columns + j] = (T)dot_##suffix(a + i * inner, transposed + j * inner, inner);                       \
        }                                                                                                              \
      }                                                                                                                \
    }                                                                                                                  \
    free(transposed);                                                                                                  \
    return transposed != NULL;                                                                                         \
  }                                                                                                                    \
                                                                                                                       \
  /* All of the input that one element of the output sees, in the order of the weight. */                              \
  static void read_window_##suffix(const struct convolution* how, const T* x, int64_t position, T* row) {              \
    const int64_t o2 = position % how->out[2], o1 = position / how->out[2] % how->out[1];                              \
    const int64_t o0 = position / how->out[2] / how->out[1];                                                           \
    for (int64_t channel = 0; channel < how->in_channels; ++channel, x += volume(how->in)) {                           \
      for (int64_t k0 = 0; k0 < how->window[0]; ++k0) {                                                                \
        const int64_t i0 = source(how, 0, o0, k0);                                                                     \
        for (int64_t k1 = 0; k1 < how->window[1]; ++k1) {                                                              \
          const int64_t i1 = i0 < 0 ? -1 : source(how, 1, o1, k1);                                                     \
          for (int64_t k2 = 0; k2 < how->window[2]; ++k2) {                                                            \
            const int64_t i2 = i1 < 0 ? -1 : source(how, 2, o2, k2);                                                   \
            *row++ = i2 < 0 ? 0 : x[(i0 * how->in[1] + i1) * how->in[2] + i2];                                         \
          }                                                                                                            \
        }                                                                                                              \
      }                                                                                                                \
    }                                                                                                                  \
  }                                                                                                                    \
                                                                                                                       \
  static void convolve_##suffix(const struct convolution* how, const T* x, const T* weight, T* rows, T* to) {          \
    const int64_t length = how->in_channels * volume(how->window), positions = volume(how->out);                       \
    for (int64_t first = 0; first < positions; first += BLOCK) {                                                       \
      const int64_t count = first + BLOCK < positions ? BLOCK : positions - first;                                     \
      for (int64_t i = 0; i < count; ++i) read_window_##suffix(how, x, first + i, rows + i * length);                  \
      for (int64_t channel = 0; channel < how->out_channels; ++channel) {                                              \
        for (int64_t i = 0; i < count; ++i)                                                                            \
          to[channel * positions + first + i] = (T)dot_##suffix(weight + channel * length, rows + i * length, length); \
      }                                                                                                                \
    }                                                                                                                  \
  }                                                                                                                    \
                                                                                                                       \
  static bool convolution_##suffix(struct call* call) {                                                                \
    struct convolution how;                                                                                            \
    if (!read_convolution(call, &how)) return false;                                                                   \
    const int64_t window = volume(how.window), group = how.in_channels * how.out_channels * window;                    \
    T* weights = malloc((size_t)(how.groups * group) * sizeof *weights + 1);                                           \
    T* rows = malloc((size_t)(BLOCK * how.in_channels * window) * sizeof *rows + 1);                                   \
    /* A transposed convolution has its weights by input channel. */                                                   \
    const int64_t swapped[4] = {how.groups, how.out_channels, how.in_channels, window};                                \
    const int64_t to_strides[4] = {group, how.in_channels * window, window, 1};                                        \
    const int64_t by_input[4] = {group, window, how.out_channels * window, 1};                                         \
    const bool enough = weights && rows;                                                                               \
    const int64_t* from_strides = how.transposed ? by_input : to_strides;                                              \
    if (enough) copy_strided(sizeof(T), 4, swapped, weights, to_strides, call->in[1]->data, from_strides);             \
    for (int64_t i = 0; enough && i < how.batch * how.groups; ++i) {                                                   \
      convolve_##suffix(&how, (const T*)call->in[0]->data + i * how.in_channels * volume(how.in),                      \
                        weights + i % how.groups * group, rows,                                                        \
                        (T*)call->out[0]->data + i * how.out_channels * volume(how.out));                              \
    }                                                                                                                  \
    free(weights);                                                                                                     \
    free(rows);                                                                                                        \
    return enough;                                                                                                     \
  }
MATRIX(float, f32, double)
MATRIX(double, f64, double)
#define INT_MATRIX(T, suffix, ...) MATRIX(T, suffix, uint64_t)
FOR_INTS(INT_MATRIX, )

#ifdef MINIMAL_CPU_KERNELS
/* few_rows.cpp */
bool multiply_few_rows(const float* a, const float* b, float* out, int64_t batches, int64_t rows, int64_t inner, int64_t columns);

static bool bmm_fastest_f32(struct call* call) {
  const int64_t *sizes = call->in[0]->sizes, columns = call->in[1]->sizes[2];
  return multiply_few_rows(call->in[0]->data, call->in[1]->data, call->out[0]->data, sizes[0], sizes[1], sizes[2], columns) ||
         bmm_f32(call);
}
#define bmm_f32 bmm_fastest_f32
#endif

const struct op matrix_ops[] = {
    {"aten::bmm", "TT:T", {0}, {FLOATS(bmm), INTS(bmm)}},
    {"aten::convolution",
     "TT-:T",
     {"stride", "padding", "dilation", "transposed", "groups"},
     {FLOATS(convolution), INTS(convolution)}},
    {0},
};
