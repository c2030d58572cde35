// Reading and writing along a dim at positions that a tensor holds. Bad positions are found elsewhere; here they do no harm.
#include "pjrt/stablehlo/ops.h"

namespace ltc::pjrt {
namespace {

// Where in the row-major contents of an array of `sizes` an index points: its own coordinates, but along `dim` its value.
Value positions(Module& m, const Value& index, const Sizes& sizes, int64_t dim) {
  Value sum = m.like(index, 0);
  int64_t stride = 1;
  for (int64_t i = static_cast<int64_t>(sizes.size()) - 1; i >= 0; stride *= sizes[static_cast<size_t>(i--)]) {
    const Value along = i == dim ? index : m.iota(LTC_I64, index.type.sizes, i);
    sum = m.op("add", {sum, stride == 1 ? along : m.op("multiply", {along, m.like(along, stride)})});
  }
  return sum;
}

int64_t size_along(const Type& type, int64_t dim) { return type.rank() == 0 ? 1 : type.sizes.at(static_cast<size_t>(dim)); }

Values gather(Call& call) {
  Module& m = call.module;
  const Value &x = call.inputs[0], &index = call.inputs[1];
  if (x.type.count() == 0) return {m.filled(call.type(), 0)};
  const Value last = m.like(index, size_along(x.type, call.dim()) - 1);
  const Value inside = m.op("minimum", {m.op("maximum", {index, m.like(index, 0)}), last});
  return {take(m, x, positions(m, inside, x.type.sizes, call.dim()))};
}

// `op` joins what is there and what is written; without one the latter stays.
Values scatter(Call& call) {
  Module& m = call.module;
  const Value &x = call.inputs[0], &index = call.inputs[1];
  Value source = call.inputs[2];
  if (index.type.count() == 0) return {x};
  const Sizes none(index.type.sizes.size(), 0), ones(none.size(), 1);
  if (source.type.sizes != index.type.sizes) source = m.slice(source, none, index.type.sizes, ones);
  const Value below = m.compare(index, m.like(index, 0), "LT");
  const Value above = m.compare(index, m.like(index, size_along(x.type, call.dim())), "GE");
  const Value at = m.select(m.op("or", {below, above}), m.like(index, -1), positions(m, index, x.type.sizes, call.dim()));
  const Sizes flat{index.type.count()};
  const std::string_view join = x.type.dtype == LTC_BOOL && !call.row.op.empty() ? "or" : call.row.op;
  const Value written = m.op(
      "scatter", {m.reshape(x, {x.type.count()}), m.reshape(at, flat), m.reshape(source, flat)}, {x.type.dtype, {x.type.count()}},
      "scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], "
      "index_vector_dim = 1>",
      m.joining(join, x.type.dtype));
  return {m.reshape(written, x.type.sizes)};
}

constexpr Row kRows[] = {
    {"aten::gather", "Ti:T", "fibh", "dim:i sparse_grad:b?", gather},
    {"aten::scatter.src", "TiT:T", "fibh", "dim:i", scatter},
    {"aten::scatter_add", "TiT:T", "fib", "dim:i", scatter, "add"},
};

}  // namespace

std::span<const Row> index_ops() { return kRows; }

}  // namespace ltc::pjrt
