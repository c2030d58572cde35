// Ops that are minimal, called with operands of several dtypes, with Python numbers, or with options that the minimal form does
// not have.
#include <algorithm>

#include "core/decompose/rules/families.h"

namespace ltc::decompose {
namespace {

// Whether the operands have one dtype already, and none is a number: then there is nothing to do.
bool is_uniform(std::initializer_list<Val> operands) {
  for (const Val& operand : operands) {
    if (operand.weak || operand.dtype() != operands.begin()->dtype()) return false;
  }
  return true;
}

// Functions of real numbers, of integers in float.
template <Val (*kOp)(Val)>
Results real_unary(const Call& call) {
  const Val x = call.tensor("self");
  const DType dtype = math_dtype(call.result().dtype);
  if (x.dtype() == dtype) return nothing();
  return kOp(cast(x, dtype));
}

// Functions that leave integers as they are.
template <Val (*kOp)(Val)>
Results rounding(const Call& call) {
  const Val x = call.tensor("self");
  if (!is_floating(x.dtype())) return x;
  if (x.dtype() == math_dtype(x.dtype())) return nothing();
  return kOp(call.math("self"));
}

template <Val (*kOp)(Val)>
Results numeric_unary(const Call& call) {
  const Val x = call.tensor("self");
  if (x.dtype() != math_dtype(x.dtype())) return kOp(call.math("self"));
  if (x.dtype() == DType::kBool) return kOp(cast(x, DType::kU8)) != 0;
  return nothing();
}

// 16-bit floats compute in float; the result is rounded once.
template <Val (*kOp)(Val, Val)>
Results binary(const Call& call) {
  const Val a = call.tensor("self"), b = call.tensor("other");
  const DType dtype = call.result().dtype, math = math_dtype(dtype);
  if (is_uniform({a, b}) && a.dtype() == math) return nothing();
  return kOp(cast(a, math), cast(b, math));
}

Results add(const Call& call) {
  const Val a = call.tensor("self"), b = call.tensor("other");
  const DType dtype = call.result().dtype, math = math_dtype(dtype);
  const bool plain = call.is_constant("alpha", 1);
  if (is_uniform({a, b}) && a.dtype() == math && plain && dtype != DType::kBool) return nothing();
  if (dtype == DType::kBool) return cast(a, dtype) | cast(b, dtype);
  const Val scaled = plain ? cast(b, math) : cast(b, math) * cast(call.number("alpha"), math);
  return cast(a, math) + scaled;
}

Results mul(const Call& call) {
  if (call.result().dtype != DType::kBool) return binary<product>(call);
  return cast(call.tensor("self"), DType::kBool) & cast(call.tensor("other"), DType::kBool);
}

template <Val (*kOp)(Val, Val)>
Results comparison(const Call& call) {
  const Val a = call.tensor("self"), b = call.tensor("other");
  if (is_uniform({a, b}) && a.dtype() == math_dtype(a.dtype()) && a.dtype() != DType::kBool) return nothing();
  const DType dtype = promote(a, b);
  const DType math = dtype == DType::kBool ? DType::kU8 : math_dtype(dtype);
  return kOp(cast(a, math), cast(b, math));
}

// Numbers as exponents stay exact where they are small integers: x^2 is x * x, as PyTorch has it.
Results power(const Call& call) {
  const Val x = call.tensor("self"), exponent = call.tensor("exponent");
  const DType math = math_dtype(call.result().dtype);
  if (is_uniform({x, exponent}) && x.dtype() == math) return nothing();
  return pow(cast(x, math), cast(exponent, math));
}

Results select_by_condition(const Call& call) {
  const Val condition = call.tensor("condition"), a = call.tensor("self"), b = call.tensor("other");
  if (condition.dtype() == DType::kBool && is_uniform({a, b})) return nothing();
  const DType dtype = call.result().dtype;
  return where(cast(condition, DType::kBool), cast(a, dtype), cast(b, dtype));
}

// A negative amount crops.
Results pad_with_number(const Call& call) {
  Val x = call.tensor("self");
  Ints amounts = call.ints("pad");
  if (std::ranges::none_of(amounts, [](int64_t amount) { return amount < 0; })) return nothing();
  for (size_t i = 0; i < amounts.size(); i += 2) {
    const auto dim = x.rank() - 1 - static_cast<int64_t>(i / 2);
    x = slice(x, dim, std::max<int64_t>(-amounts[i], 0), x.size(dim) - std::max<int64_t>(-amounts[i + 1], 0));
    amounts[i] = std::max<int64_t>(amounts[i], 0), amounts[i + 1] = std::max<int64_t>(amounts[i + 1], 0);
  }
  const auto constant = call.constant("value");
  return constant ? pad(x, amounts, *constant) : pad(x, amounts, call.number("value"));
}

Results concatenate(const Call& call) {
  std::vector<Val> parts;
  const DType dtype = call.result().dtype;
  bool uniform = true;
  for (const Val& part : call.tensors("tensors")) {
    uniform = uniform && part.dtype() == dtype && part.rank() == static_cast<int64_t>(call.result().sizes.size());
    // An empty vector joins anything.
    if (part.rank() == 1 && part.count() == 0 && call.result().sizes.size() != 1) continue;
    parts.push_back(cast(part, dtype));
  }
  if (uniform) return nothing();
  return cat(parts, call.integer("dim"));
}

// Sums of integers are I64, sums of 16-bit floats are taken in float.
Results sum_over(const Call& call) {
  const Val x = call.tensor("self");
  const DType dtype = math_dtype(call.result().dtype);
  const Ints dims = call.ints("dim");
  const bool canonical = x.dtype() == dtype && call.dtype("dtype") == dtype && !(dims.empty() && x.rank() > 0);
  if (canonical) return nothing();
  return sum(cast(x, dtype), dims, call.flag("keepdim"));
}

Results product_over(const Call& call) {
  const Val x = call.tensor("self");
  const DType dtype = math_dtype(call.result().dtype);
  if (dtype == DType::kBool) return x.rank() ? all(x, {call.integer("dim")}, call.flag("keepdim")) : x;
  if (x.dtype() == dtype && call.dtype("dtype") == dtype) return nothing();
  if (x.rank() == 0) return cast(x, dtype);
  return prod(cast(x, dtype), call.integer("dim"), call.flag("keepdim"));
}

Results maximum_over(const Call& call) {
  const Val x = call.tensor("self");
  const Ints dims = call.ints("dim");
  if (x.rank() == 0) return x;
  if (x.dtype() == DType::kBool) return cast(amax(cast(x, DType::kU8), dims, call.flag("keepdim")), DType::kBool);
  if (x.dtype() != math_dtype(x.dtype()) || dims.empty()) return amax(call.math("self"), dims, call.flag("keepdim"));
  return nothing();
}

Results position_of_maximum(const Call& call) {
  const Val x = call.math("self");
  if (x.rank() == 0) return full(call.builder(), DType::kI64, {}, int64_t{0});
  if (call.given("dim")) {
    return x.id == call.tensor("self").id ? nothing() : Results(argmax(x, call.integer("dim"), call.flag("keepdim")));
  }
  return reshape(argmax(reshape(x, {-1}), 0), call.result().sizes);
}

Results running_sum(const Call& call) {
  const Val x = call.tensor("self");
  const DType dtype = math_dtype(call.result().dtype);
  if (x.rank() == 0) return cast(x, dtype);
  if (x.dtype() == dtype && call.dtype("dtype") == dtype) return nothing();
  return cumsum(cast(x, dtype), call.integer("dim"));
}

// Indices may be I32, operands of rank 0 count as vectors.
Results pick_by_index(const Call& call) {
  const Val x = call.tensor("self"), index = call.tensor("index");
  if (x.rank() > 0 && index.rank() > 0 && index.dtype() == DType::kI64) return nothing();
  if (x.rank() > 0 && index.rank() > 0) return gather(x, call.integer("dim"), index);
  return reshape(gather(as_vector(x), 0, as_vector(index)), index.sizes());
}

template <Val (*kOp)(Val, int64_t, Val, Val)>
Results put_by_index(const Call& call) {
  const Val x = call.tensor("self"), index = call.tensor("index"), from = call.tensor("src");
  const bool plain = x.rank() > 0 && index.rank() > 0 && from.rank() > 0;
  if (plain && index.dtype() == DType::kI64 && from.dtype() == x.dtype()) return nothing();
  if (plain) return kOp(x, call.integer("dim"), index, from);
  return reshape(kOp(as_vector(x), 0, as_vector(index), as_vector(from)), x.sizes());
}

Results batched_product(const Call& call) {
  const Val a = call.tensor("self");
  if (a.dtype() == math_dtype(a.dtype())) return nothing();
  return bmm(call.math("self"), call.math("mat2"));
}

constexpr Decomposition kRules[] = {
    {"aten::neg", numeric_unary<neg>},
    {"aten::abs", numeric_unary<abs>},
    {"aten::sign", numeric_unary<sign>},
    {"aten::floor", rounding<floor>},
    {"aten::ceil", rounding<ceil>},
    {"aten::trunc", rounding<trunc>},
    {"aten::round", rounding<round>},
    {"aten::exp", real_unary<exp>},
    {"aten::expm1", real_unary<expm1>},
    {"aten::log", real_unary<log>},
    {"aten::log1p", real_unary<log1p>},
    {"aten::sqrt", real_unary<sqrt>},
    {"aten::sin", real_unary<sin>},
    {"aten::cos", real_unary<cos>},
    {"aten::tan", real_unary<tan>},
    {"aten::tanh", real_unary<tanh>},
    {"aten::atan", real_unary<atan>},
    {"aten::erf", real_unary<erf>},
    {"aten::lgamma", real_unary<lgamma>},
    {"aten::add.Tensor", add},
    {"aten::mul.Tensor", mul},
    {"aten::div.Tensor", binary<quotient>},
    {"aten::remainder.Tensor", binary<remainder>},
    {"aten::fmod.Tensor", binary<fmod>},
    {"aten::pow.Tensor_Tensor", power},
    {"aten::maximum", binary<maximum>},
    {"aten::minimum", binary<minimum>},
    {"aten::atan2", binary<atan2>},
    {"aten::bitwise_and.Tensor", binary<bit_and>},
    {"aten::bitwise_or.Tensor", binary<bit_or>},
    {"aten::bitwise_xor.Tensor", binary<bit_xor>},
    {"aten::eq.Tensor", comparison<equal>},
    {"aten::lt.Tensor", comparison<less>},
    {"aten::le.Tensor", comparison<less_equal>},
    {"aten::where.self", select_by_condition},
    {"aten::constant_pad_nd", pad_with_number},
    {"aten::cat", concatenate},
    {"aten::sum.dim_IntList", sum_over},
    {"aten::prod.dim_int", product_over},
    {"aten::amax", maximum_over},
    {"aten::argmax", position_of_maximum},
    {"aten::cumsum", running_sum},
    {"aten::bmm", batched_product},
    {"aten::gather", pick_by_index},
    {"aten::scatter.src", put_by_index<scatter>},
    {"aten::scatter_add", put_by_index<scatter_add>},
};

}  // namespace

std::span<const Decomposition> canonical_forms() { return kRules; }

}  // namespace ltc::decompose
