/* Reductions, running sums and sorting. All work on rows: the operand with the dims in question moved last and made one. */
#include "minimal.h"

struct rows {
  int64_t count, length;
  const char* data;
  void* copy; /* where the dims were not last already, else NULL */
  uint32_t rank;
  int64_t sizes[MAX_RANK], strides[MAX_RANK]; /* of the operand, in the order of the rows */
};

/* `dims` of the operand in its order, or all of them where there are none. */
static void choose_dims(const struct array* x, const struct attr* dims, bool* chosen) {
  for (uint32_t dim = 0; dim < x->rank; ++dim) chosen[dim] = dims->count == 0;
  for (size_t i = 0; i < dims->count && x->rank > 0; ++i)
    chosen[dims->values[i].i + (dims->values[i].i < 0 ? x->rank : 0)] = true;
}

/* False when out of memory. Ends with free(rows->copy). */
static bool open_rows(const struct array* x, const struct attr* dims, struct rows* rows) {
  bool chosen[MAX_RANK] = {0};
  choose_dims(x, dims, chosen);
  *rows = (struct rows){1, 1, x->data, NULL, 0, {0}, {0}};
  int64_t strides[MAX_RANK], to_strides[MAX_RANK];
  dense_strides(x->rank, x->sizes, strides);
  bool in_place = true;
  for (int pass = 0; pass < 2; ++pass) {
    for (uint32_t dim = 0; dim < x->rank; ++dim) {
      if (chosen[dim] != (pass == 1)) continue;
      *(pass ? &rows->length : &rows->count) *= x->sizes[dim];
      in_place = in_place && rows->rank == dim;
      rows->sizes[rows->rank] = x->sizes[dim];
      rows->strides[rows->rank++] = strides[dim];
    }
  }
  if (in_place) return true;
  const size_t bytes = element_bytes(x->dtype);
  rows->copy = malloc((size_t)x->count * bytes + 1);
  if (!rows->copy) return false;
  rows->data = rows->copy;
  dense_strides(rows->rank, rows->sizes, to_strides);
  copy_strided(bytes, rows->rank, rows->sizes, rows->copy, to_strides, x->data, rows->strides);
  return true;
}

/* Writes rows of results of the operand's sizes back to where they belong. */
static void put_rows(const struct rows* rows, const void* from, size_t bytes, void* to) {
  int64_t from_strides[MAX_RANK];
  dense_strides(rows->rank, rows->sizes, from_strides);
  copy_strided(bytes, rows->rank, rows->sizes, to, rows->strides, from, from_strides);
}

/* Kernel op_suffix: each row of elements T becomes one R, by `expression` of x, the row, and n, its length. */
#define REDUCTION(T, suffix, op, R, expression)                        \
  static bool op##_##suffix(struct call* call) {                       \
    struct rows rows;                                                  \
    if (!open_rows(call->in[0], &call->attrs[0], &rows)) return false; \
    R* to = call->out[0]->data;                                        \
    const int64_t n = rows.length;                                     \
    for (int64_t row = 0; row < rows.count; ++row) {                   \
      const T* x = (const T*)rows.data + row * n;                      \
      to[row] = (R)(expression);                                       \
    }                                                                  \
    free(rows.copy);                                                   \
    return true;                                                       \
  }

/* Pairs of halves down to short runs: the error grows with the logarithm of the length. The runs have eight sums side by side. */
#define PAIRWISE_SUM(T, suffix, Sum)                                                                      \
  static Sum sum_of_##suffix(const T* x, int64_t n) {                                                     \
    if (n > 256) return sum_of_##suffix(x, n / 16 * 8) + sum_of_##suffix(x + n / 16 * 8, n - n / 16 * 8); \
    Sum sums[8] = {0};                                                                                    \
    int64_t i = 0;                                                                                        \
    for (; i + 8 <= n; i += 8) {                                                                          \
      for (int k = 0; k < 8; ++k) sums[k] += (Sum)x[i + k];                                               \
    }                                                                                                     \
    for (; i < n; ++i) sums[i % 8] += (Sum)x[i];                                                          \
    return ((sums[0] + sums[4]) + (sums[1] + sums[5])) + ((sums[2] + sums[6]) + (sums[3] + sums[7]));     \
  }

#define PRODUCT(T, suffix, Product)                           \
  static Product product_of_##suffix(const T* x, int64_t n) { \
    Product product = 1;                                      \
    for (int64_t i = 0; i < n; ++i) product *= (Product)x[i]; \
    return product;                                           \
  }

/* The first of the largest; a NaN is larger than all. -1 for an empty row, which ATen refuses. */
#define LARGEST(T, suffix, ...)                               \
  static int64_t largest_of_##suffix(const T* x, int64_t n) { \
    int64_t best = n > 0 ? 0 : -1;                            \
    for (int64_t i = 1; i < n && x[best] == x[best]; ++i) {   \
      if (x[i] > x[best] || x[i] != x[i]) best = i;           \
    }                                                         \
    return best;                                              \
  }

#define RUNNING_SUM(T, suffix, Sum)                                           \
  static bool cumsum_##suffix(struct call* call) {                            \
    struct rows rows;                                                         \
    if (!open_rows(call->in[0], &call->attrs[0], &rows)) return false;        \
    T* sums = malloc((size_t)call->in[0]->count * sizeof *sums + 1);          \
    for (int64_t row = 0; sums && row < rows.count; ++row) {                  \
      Sum sum = 0;                                                            \
      for (int64_t i = row * rows.length; i < (row + 1) * rows.length; ++i) { \
        sum += (Sum)((const T*)rows.data)[i];                                 \
        sums[i] = (T)sum;                                                     \
      }                                                                       \
    }                                                                         \
    if (sums) put_rows(&rows, sums, sizeof *sums, call->out[0]->data);        \
    free(rows.copy);                                                          \
    free(sums);                                                               \
    return sums != NULL;                                                      \
  }

/* Merges runs of 1, 2, 4, ... positions, from `order` to `spare` and back. On equal elements the earlier one stays first. */
#define SORT(T, suffix, ...)                                                                                         \
  static bool before_##suffix(T a, T b, bool descending) {                                                           \
    return descending ? a > b || (a != a && b == b) : a < b || (b != b && a == a);                                   \
  }                                                                                                                  \
  static int64_t* order_of_##suffix(const T* x, int64_t n, bool descending, int64_t* order, int64_t* spare) {        \
    for (int64_t i = 0; i < n; ++i) order[i] = i;                                                                    \
    for (int64_t width = 1; width < n; width *= 2) {                                                                 \
      for (int64_t begin = 0; begin < n; begin += 2 * width) {                                                       \
        const int64_t middle = begin + width < n ? begin + width : n, end = middle + width < n ? middle + width : n; \
        for (int64_t a = begin, b = middle, i = begin; i < end; ++i) {                                               \
          const bool second = a == middle || (b < end && before_##suffix(x[order[b]], x[order[a]], descending));     \
          spare[i] = order[second ? b++ : a++];                                                                      \
        }                                                                                                            \
      }                                                                                                              \
      int64_t* sorted = spare;                                                                                       \
      spare = order;                                                                                                 \
      order = sorted;                                                                                                \
    }                                                                                                                \
    return order;                                                                                                    \
  }                                                                                                                  \
  static bool sort_##suffix(struct call* call) {                                                                     \
    const bool descending = attr_int(&call->attrs[1], 0) != 0;                                                       \
    const size_t count = (size_t)call->in[0]->count;                                                                 \
    struct attr last = {LTC_ATTR_INT, 1, &(union number){.i = -1}};                                                  \
    struct rows rows;                                                                                                \
    if (!open_rows(call->in[0], call->attrs[0].count ? &call->attrs[0] : &last, &rows)) return false;                \
    T* values = malloc(count * sizeof *values + 1);                                                                  \
    int64_t* indices = malloc((count + 2 * (size_t)rows.length + 1) * sizeof *indices);                              \
    const bool enough = values && indices;                                                                           \
    for (int64_t row = 0; enough && row < rows.count; ++row) {                                                       \
      const int64_t n = rows.length, first = row * n;                                                                \
      const T* x = (const T*)rows.data + first;                                                                      \
      const int64_t* order = order_of_##suffix(x, n, descending, indices + count, indices + count + n);              \
      for (int64_t i = 0; i < n; ++i) values[first + i] = x[order[i]], indices[first + i] = order[i];                \
    }                                                                                                                \
    if (enough && call->out[0]) put_rows(&rows, values, sizeof *values, call->out[0]->data);                         \
    if (enough && call->out[1]) put_rows(&rows, indices, sizeof *indices, call->out[1]->data);                       \
    free(rows.copy);                                                                                                 \
    free(values);                                                                                                    \
    free(indices);                                                                                                   \
    return enough;                                                                                                   \
  }

PAIRWISE_SUM(float, f32, double)
PAIRWISE_SUM(double, f64, double)
#define INT_ROWS(T, suffix, ...)    \
  PAIRWISE_SUM(T, suffix, uint64_t) \
  PRODUCT(T, suffix, uint64_t)      \
  RUNNING_SUM(T, suffix, uint64_t)
#define ANY_ROWS(T, suffix, ...)                              \
  LARGEST(T, suffix)                                          \
  SORT(T, suffix)                                             \
  REDUCTION(T, suffix, amax, T, x[largest_of_##suffix(x, n)]) \
  REDUCTION(T, suffix, argmax, int64_t, largest_of_##suffix(x, n))
#define NUMBER_ROWS(T, suffix, ...)                   \
  REDUCTION(T, suffix, sum, T, sum_of_##suffix(x, n)) \
  REDUCTION(T, suffix, prod, T, product_of_##suffix(x, n))
PRODUCT(float, f32, float)
PRODUCT(double, f64, double)
RUNNING_SUM(float, f32, double)
RUNNING_SUM(double, f64, double)
FOR_INTS(INT_ROWS, )
FOR_FLOATS(NUMBER_ROWS, )
FOR_INTS(NUMBER_ROWS, )
FOR_FLOATS(ANY_ROWS, )
FOR_INTS(ANY_ROWS, )
ANY_ROWS(uint8_t, b8)

const struct op reduction_ops[] = {
    {"aten::sum.dim_IntList", "T:T", {"dim"}, {FLOATS(sum), INTS(sum)}},
    {"aten::prod.dim_int", "T:T", {"dim"}, {FLOATS(prod), INTS(prod)}},
    {"aten::amax", "T:T", {"dim"}, {FLOATS(amax), INTS(amax), BOOLS(amax)}},
    {"aten::argmax", "T:i", {"dim"}, {FLOATS(argmax), INTS(argmax), BOOLS(argmax)}},
    {"aten::cumsum", "T:T", {"dim"}, {FLOATS(cumsum), INTS(cumsum)}},
    {"aten::sort.stable", "T:Ti", {"dim", "descending"}, {FLOATS(sort), INTS(sort), BOOLS(sort)}},
    {0},
};
