/* Reading and writing along a dim at positions that a tensor holds. */
#include "minimal.h"

/* Walks the elements of an index array in row-major order. At each: its position in `index`, in an array of the sizes of `other`
 * at the same coordinates, and in the array `x` with the coordinate of `dim` replaced by the index. */
struct walk {
  const struct array *index, *x;
  uint32_t dim;
  int64_t coordinates[MAX_RANK], x_strides[MAX_RANK], other_strides[MAX_RANK];
  int64_t at, other_at, x_row; /* x_row: where in x, but for `dim` */
};

static struct walk begin_walk(const struct array* index, const struct array* x, const struct array* other,
                              const struct attr* dim) {
  const int64_t given = attr_int(dim, 0);
  struct walk walk = {index, x, (uint32_t)(given < 0 ? given + x->rank : given), {0}, {0}, {0}, 0, 0, 0};
  dense_strides(x->rank, x->sizes, walk.x_strides);
  dense_strides(other->rank, other->sizes, walk.other_strides);
  return walk;
}

static void next(struct walk* walk) {
  ++walk->at;
  for (uint32_t dim = walk->index->rank; dim-- > 0;) {
    const bool wraps = ++walk->coordinates[dim] == walk->index->sizes[dim];
    const int64_t steps = wraps ? 1 - walk->index->sizes[dim] : 1;
    walk->other_at += steps * walk->other_strides[dim];
    if (dim != walk->dim) walk->x_row += steps * walk->x_strides[dim];
    if (!wraps) return;
    walk->coordinates[dim] = 0;
  }
}

/* Where in x; -1, and the call fails, for an index outside. */
static int64_t find(const struct walk* walk, struct call* call) {
  const int64_t i = ((const int64_t*)walk->index->data)[walk->at];
  const int64_t size = walk->x->rank > 0 ? walk->x->sizes[walk->dim] : 1;
  if (i >= 0 && i < size) return walk->x_row + (walk->x->rank > 0 ? i * walk->x_strides[walk->dim] : 0);
  (void)fail(call, LTC_OUT_OF_RANGE, "index %lld is out of bounds for dimension %u with size %lld", (long long)i, walk->dim,
             (long long)size);
  return -1;
}

static bool gather(struct call* call) {
  const struct array *x = call->in[0], *index = call->in[1];
  const size_t bytes = element_bytes(x->dtype);
  char* to = call->out[0]->data;
  const char* from = x->data;
  struct walk walk = begin_walk(index, x, index, &call->attrs[0]);
  for (int64_t i = 0; i < index->count; ++i, next(&walk)) {
    const int64_t at = find(&walk, call);
    if (at < 0) return false;
    memcpy(to + i * (int64_t)bytes, from + at * (int64_t)bytes, bytes);
  }
  return true;
}

static bool copy_self(struct call* call) {
  memcpy(call->out[0]->data, call->in[0]->data, (size_t)call->out[0]->count * element_bytes(call->out[0]->dtype));
  return true;
}

/* Where two indices meet, the later one in row-major order stays. */
static bool scatter(struct call* call) {
  const struct array *x = call->in[0], *index = call->in[1], *source = call->in[2];
  const size_t bytes = element_bytes(x->dtype);
  char* to = call->out[0]->data;
  const char* from = source->data;
  (void)copy_self(call);
  struct walk walk = begin_walk(index, x, source, &call->attrs[0]);
  for (int64_t i = 0; i < index->count; ++i, next(&walk)) {
    const int64_t at = find(&walk, call);
    if (at < 0) return false;
    memcpy(to + at * (int64_t)bytes, from + walk.other_at * (int64_t)bytes, bytes);
  }
  return true;
}

#define SCATTER_ADD(T, suffix, expression)                                      \
  static bool scatter_add_##suffix(struct call* call) {                         \
    const struct array *index = call->in[1], *source = call->in[2];             \
    T* to = call->out[0]->data;                                                 \
    (void)copy_self(call);                                                      \
    struct walk walk = begin_walk(index, call->in[0], source, &call->attrs[0]); \
    for (int64_t i = 0; i < index->count; ++i, next(&walk)) {                   \
      const int64_t at = find(&walk, call);                                     \
      if (at < 0) return false;                                                 \
      const T x = to[at], y = ((const T*)source->data)[walk.other_at];          \
      to[at] = (T)(expression);                                                 \
    }                                                                           \
    return true;                                                                \
  }
FOR_FLOATS(SCATTER_ADD, x + y)
FOR_INTS(SCATTER_ADD, (uint64_t)x + (uint64_t)y)
SCATTER_ADD(uint8_t, b8, x | y)

const struct op index_ops[] = {
    {"aten::gather", "Ti:T", {"dim"}, {ALL(gather)}},
    {"aten::scatter.src", "TiT:T", {"dim"}, {ALL(scatter)}},
    {"aten::scatter_add", "TiT:T", {"dim"}, {FLOATS(scatter_add), INTS(scatter_add), BOOLS(scatter_add)}},
    {0},
};
