// Reading and writing at positions that a tensor holds. Bad positions are reported elsewhere (lower.cpp); here they do no harm.
#include "pjrt/stablehlo/ops.h"

namespace ltc::pjrt {
namespace {

// Where in the row-major contents of an array of `sizes` an index points: its own coordinates, but along `dim` its value.
Value positions(Module& m, const Value& index, const Sizes& sizes, int64_t dim) {
  Sizes strides(sizes.size(), 1);
  for (size_t i = sizes.size(); i-- > 1;) strides[i - 1] = strides[i] * sizes[i];
  return positions(m, index.type.sizes, strides, 0, dim, &index);
}

Value size_along(Call& call) {
  const Sizes& sizes = call.in(0).type.sizes;
  return call.m.filled(call.in(1).type, sizes.empty() ? 1 : sizes.at(static_cast<size_t>(call.dim())));
}

Values gather(Call& call) {
  const Value &x = call.in(0), &index = call.in(1);
  if (x.type.count() == 0) return {call.m.filled(call.type(), 0)};
  const Value inside = call.m.eval("minimum(maximum(x,0),subtract(y,1))", {index, size_along(call)});
  return {take(call.m, x, positions(call.m, inside, x.type.sizes, call.dim()))};
}

Values scatter(Call& call) {
  Module& m = call.m;
  const Value &x = call.in(0), &index = call.in(1);
  const Sizes& sizes = index.type.sizes;
  if (index.type.count() == 0) return {x};
  const Value source = m.slice(call.in(2), Sizes(sizes.size(), 0), sizes, Sizes(sizes.size(), 1));
  const Value at =
      m.eval("select(or(LT(x,0),GE(x,y)),-1,z)", {index, size_along(call), positions(m, index, x.type.sizes, call.dim())});
  return {m.reshape(put(m, x, at, source, call.formula), x.type.sizes)};
}

constexpr Row kRows[] = {
    {"aten::gather", "Ti:T", "fibh", {}, gather},
    {"aten::scatter.src", "TiT:T", "fibh", "y", scatter},
    {"aten::scatter_add", "TiT:T", "fi", "add(x,y)", scatter},
    {"aten::scatter_add", "TiT:T", "b", "or(x,y)", scatter},
};

}  // namespace

std::span<const Row> index_ops() { return kRows; }

Value positions(Module& m, const Sizes& sizes, const Sizes& strides, int64_t offset, int64_t dim, const Value* along_dim) {
  Value sum = m.filled({LTC_I64, sizes}, offset);
  for (size_t i = 0; i < sizes.size(); ++i) {
    const auto at = static_cast<int64_t>(i);
    const Value along = along_dim && at == dim ? *along_dim : m.iota(LTC_I64, sizes, at);
    sum = m.eval("add(x,multiply(y," + std::to_string(strides.at(i)) + "))", {sum, along});
  }
  return sum;
}

Value take(Module& m, const Value& from, const Value& positions) {
  return m.op("gather", {m.reshape(from, {from.type.count()}), positions}, {from.type.dtype, positions.type.sizes},
              "dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = " +
                  std::to_string(positions.type.rank()) + ">, slice_sizes = array<i64: 1>");
}

Value put(Module& m, const Value& to, const Value& positions, const Value& elements, std::string_view formula) {
  const Type type{to.type.dtype, {to.type.count()}};
  const Sizes flat{positions.type.count()};
  const std::string joining = m.region({type.dtype, type.dtype}, formula);
  return m.op("scatter", {m.reshape(to, type.sizes), m.reshape(positions, flat), m.reshape(elements, flat)}, type,
              "scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], "
              "index_vector_dim = 1>",
              joining);
}

}  // namespace ltc::pjrt
