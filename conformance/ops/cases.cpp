#include "conformance/ops/cases.h"

#include <algorithm>

#include "conformance/kit/array.h"

namespace ltc::conformance {
namespace {

constexpr Tolerance kExact{}, kFew{4, 0}, kSum{64, 1};

const OpCase kCases[] = {
    {"aten::neg", "number", kExact, "a", {"unary"}},
    {"aten::abs", "number", kExact, "a", {"unary"}},
    {"aten::sign", "number", {1, 0}, "a", {"unary"}},
    {"aten::floor", "float", {1, 0}, "a", {"unary"}},
    {"aten::ceil", "float", {1, 0}, "a", {"unary"}},
    {"aten::trunc", "float", {1, 0}, "a", {"unary"}},
    {"aten::round", "float", {1, 0}, "a", {"unary"}},
    {"aten::exp", "float", kFew, "f", {"unary"}},
    {"aten::expm1", "float", kFew, "f", {"unary"}},
    {"aten::log", "float", {4, 1}, "p", {"unary"}},
    {"aten::log1p", "float", kFew, "p", {"unary"}},
    {"aten::sqrt", "float", {1, 0}, "p", {"unary"}},
    {"aten::sin", "float", {4, 1}, "f", {"unary"}},
    {"aten::cos", "float", {4, 1}, "f", {"unary"}},
    {"aten::tan", "float", {8, 1}, "u", {"unary"}},
    {"aten::tanh", "float", {8, 0}, "a", {"unary"}},
    {"aten::atan", "float", kFew, "a", {"unary"}},
    {"aten::erf", "float", {16, 0}, "a", {"unary"}},
    {"aten::lgamma", "float", {64, 1}, "p", {"unary"}},
    {"aten::bitwise_not", "bits", kExact, "a", {"unary"}},
    {"aten::add.Tensor", "number", kExact, "a", {"binary"}},
    {"aten::mul.Tensor", "number", kExact, "a", {"binary"}},
    {"aten::div.Tensor", "float", {2, 0}, "a", {"binary"}},
    {"aten::remainder.Tensor", "number", {4, 1}, "sn", {"binary"}},
    {"aten::fmod.Tensor", "number", {4, 1}, "sn", {"binary"}},
    {"aten::pow.Tensor_Tensor", "number", {16, 0}, "pc", {"binary"}},
    {"aten::maximum", "number", {1, 0}, "a", {"binary"}},
    {"aten::minimum", "number", {1, 0}, "a", {"binary"}},
    {"aten::atan2", "float", {8, 0}, "f", {"binary"}},
    {"aten::bitwise_and.Tensor", "bits", kExact, "a", {"binary"}},
    {"aten::bitwise_or.Tensor", "bits", kExact, "a", {"binary"}},
    {"aten::bitwise_xor.Tensor", "bits", kExact, "a", {"binary"}},
    {"aten::bitwise_left_shift.Tensor", "int", kExact, "sc", {"binary"}},
    {"aten::bitwise_right_shift.Tensor", "int", kExact, "ac", {"binary"}},
    {"aten::eq.Tensor", "number", kExact, "a", {"compare"}},
    {"aten::lt.Tensor", "number", kExact, "a", {"compare"}},
    {"aten::le.Tensor", "number", kExact, "a", {"compare"}},
    {"aten::where.self",
     "all",
     kExact,
     "aa",
     {"graph(%0: bool[2,3], %1: T[2,3], %2: T[2,3]) { %3: T[2,3] = aten::where.self(%0, %1, %2) return %3 }",
      "graph(%0: bool[3,1], %1: T[], %2: T[4]) { %3: T[3,4] = aten::where.self(%0, %1, %2) return %3 }",
      "graph(%0: bool[0], %1: T[1], %2: T[]) { %3: T[0] = aten::where.self(%0, %1, %2) return %3 }"}},
    {"aten::_to_copy",
     "all",
     kExact,
     "s",
     {"graph(%0: T[9]) { %1: bool[9] = aten::_to_copy(%0) {dtype=bool} return %1 }",
      "graph(%0: T[9]) { %1: i64[9] = aten::_to_copy(%0) {dtype=i64} return %1 }",
      "graph(%0: T[9]) { %1: i32[9] = aten::_to_copy(%0) {dtype=i32} return %1 }",
      "graph(%0: T[9]) { %1: f32[9] = aten::_to_copy(%0) {dtype=f32} return %1 }",
      "graph(%0: f32[40]) { %1: T[40] = aten::_to_copy(%0) {dtype=T} return %1 }",
      "graph(%0: T[]) { %1: f32[] = aten::_to_copy(%0) {dtype=f32} return %1 }",
      "graph(%0: T[0,2]) { %1: i64[0,2] = aten::_to_copy(%0) {dtype=i64} return %1 }"}},
    {"aten::reshape",
     "all",
     kExact,
     "a",
     {"graph(%0: T[2,3,4]) { %1: T[6,4] = aten::reshape(%0) {shape=[6,4]} return %1 }",
      "graph(%0: T[24]) { %1: T[2,1,12] = aten::reshape(%0) {shape=[2,1,12]} return %1 }",
      "graph(%0: T[1]) { %1: T[] = aten::reshape(%0) {shape=[]} return %1 }",
      "graph(%0: T[0,3]) { %1: T[3,0] = aten::reshape(%0) {shape=[3,0]} return %1 }"}},
    {"aten::permute",
     "all",
     kExact,
     "a",
     {"graph(%0: T[2,3,4]) { %1: T[4,2,3] = aten::permute(%0) {dims=[2,0,1]} return %1 }",
      "graph(%0: T[37,41]) { %1: T[41,37] = aten::permute(%0) {dims=[1,0]} return %1 }",
      "graph(%0: T[]) { %1: T[] = aten::permute(%0) {dims=[]} return %1 }",
      "graph(%0: T[2,0]) { %1: T[0,2] = aten::permute(%0) {dims=[1,0]} return %1 }",
      "graph(%0: T[2,1,3,1,2]) { %1: T[1,2,2,1,3] = aten::permute(%0) {dims=[1,4,0,3,2]} return %1 }"}},
    {"aten::expand",
     "all",
     kExact,
     "a",
     {"graph(%0: T[3,1]) { %1: T[2,3,4] = aten::expand(%0) {size=[2,3,4],implicit=false} return %1 }",
      "graph(%0: T[]) { %1: T[5] = aten::expand(%0) {size=[5],implicit=false} return %1 }",
      "graph(%0: T[1,3]) { %1: T[0,3] = aten::expand(%0) {size=[0,3],implicit=false} return %1 }"}},
    {"aten::slice.Tensor",
     "all",
     kExact,
     "a",
     {"graph(%0: T[5,4]) { %1: T[2,4] = aten::slice.Tensor(%0) {dim=0,start=1,end=3,step=1} return %1 }",
      "graph(%0: T[5,4]) { %1: T[5,2] = aten::slice.Tensor(%0) {dim=1,start=0,end=4,step=2} return %1 }",
      "graph(%0: T[10]) { %1: T[3] = aten::slice.Tensor(%0) {dim=0,start=2,end=10,step=3} return %1 }",
      "graph(%0: T[5]) { %1: T[0] = aten::slice.Tensor(%0) {dim=0,start=3,end=3,step=1} return %1 }"}},
    {"aten::constant_pad_nd",
     "number",
     kExact,
     "f",
     {"graph(%0: T[3]) { %1: T[6] = aten::constant_pad_nd(%0) {pad=[1,2],value=0.0} return %1 }",
      "graph(%0: T[2,3]) { %1: T[5,4] = aten::constant_pad_nd(%0) {pad=[1,0,2,1],value=7.0} return %1 }",
      "graph(%0: T[2,3], %1: f64 scalar) { %2: T[2,4] = aten::constant_pad_nd(%0, %1) {pad=[0,1]} return %2 }",
      "graph(%0: T[0]) { %1: T[2] = aten::constant_pad_nd(%0) {pad=[2,0],value=1.0} return %1 }"}},
    {"aten::cat",
     "all",
     kExact,
     "a",
     {"graph(%0: T[2,3], %1: T[1,3]) { %2: T[3,3] = aten::cat(%0, %1) {tensors.count=2,dim=0} return %2 }",
      "graph(%0: T[2,3], %1: T[2,0], %2: T[2,2]) { %3: T[2,5] = aten::cat(%0, %1, %2) {tensors.count=3,dim=1} return %3 }",
      "graph(%0: T[4]) { %1: T[8] = aten::cat(%0, %0) {tensors.count=2,dim=0} return %1 }"}},
    {"aten::flip",
     "all",
     kExact,
     "a",
     {"graph(%0: T[5]) { %1: T[5] = aten::flip(%0) {dims=[0]} return %1 }",
      "graph(%0: T[2,3,4]) { %1: T[2,3,4] = aten::flip(%0) {dims=[0,2]} return %1 }",
      "graph(%0: T[0,2]) { %1: T[0,2] = aten::flip(%0) {dims=[0,1]} return %1 }"}},
    {"aten::arange.start_step",
     "number",
     kExact,
     "a",
     {"graph() { %0: T[5] = aten::arange.start_step() {start=0,end=5,step=1,dtype=T} return %0 }",
      "graph() { %0: T[4] = aten::arange.start_step() {start=1,end=9,step=2,dtype=T} return %0 }",
      "graph() { %0: T[0] = aten::arange.start_step() {start=0,end=0,step=1,dtype=T} return %0 }"}},
    {"aten::full",
     "number",
     kExact,
     "f",
     {"graph() { %0: T[2,3] = aten::full() {size=[2,3],fill_value=3,dtype=T} return %0 }",
      "graph() { %0: T[] = aten::full() {size=[],fill_value=1.0,dtype=T} return %0 }",
      "graph() { %0: T[0] = aten::full() {size=[0],fill_value=1,dtype=T} return %0 }",
      "graph(%0: f64 scalar) { %1: T[7] = aten::full(%0) {size=[7],dtype=T} return %1 }",
      "graph(%0: i64 scalar) { %1: T[7] = aten::full(%0) {size=[7],dtype=T} return %1 }"}},
    {"aten::as_strided",
     "all",
     kExact,
     "a",
     {"graph(%0: T[12]) { %1: T[3,2] = aten::as_strided(%0) {size=[3,2],stride=[4,1],storage_offset=1} return %1 }",
      "graph(%0: T[3,4]) { %1: T[2,3,2] = aten::as_strided(%0) {size=[2,3,2],stride=[4,1,1],storage_offset=0} return %1 }",
      "graph(%0: T[4]) { %1: T[3,4] = aten::as_strided(%0) {size=[3,4],stride=[0,1],storage_offset=0} return %1 }"}},
    {"aten::as_strided_scatter",
     "all",
     kExact,
     "a",
     {"graph(%0: T[12], %1: T[3,2]) { %2: T[12] = aten::as_strided_scatter(%0, %1) "
      "{size=[3,2],stride=[4,1],storage_offset=1} return %2 }",
      "graph(%0: T[3,4], %1: T[3]) { %2: T[3,4] = aten::as_strided_scatter(%0, %1) "
      "{size=[3],stride=[5],storage_offset=0} return %2 }"}},
    {"aten::sum.dim_IntList",
     "reduced",
     kSum,
     "s",
     {"graph(%0: T[4,5]) { %1: T[4] = aten::sum.dim_IntList(%0) {dim=[1],keepdim=false,dtype=T} return %1 }",
      "graph(%0: T[4,5]) { %1: T[1,5] = aten::sum.dim_IntList(%0) {dim=[0],keepdim=true,dtype=T} return %1 }",
      "graph(%0: T[2,3,4]) { %1: T[3] = aten::sum.dim_IntList(%0) {dim=[0,2],keepdim=false,dtype=T} return %1 }",
      "graph(%0: T[1000]) { %1: T[] = aten::sum.dim_IntList(%0) {dim=[0],keepdim=false,dtype=T} return %1 }",
      "graph(%0: T[3,0]) { %1: T[3] = aten::sum.dim_IntList(%0) {dim=[1],keepdim=false,dtype=T} return %1 }"}},
    {"aten::prod.dim_int",
     "reduced",
     kSum,
     "n",
     {"graph(%0: T[4,5]) { %1: T[4] = aten::prod.dim_int(%0) {dim=1,keepdim=false,dtype=T} return %1 }",
      "graph(%0: T[4,5]) { %1: T[1,5] = aten::prod.dim_int(%0) {dim=0,keepdim=true,dtype=T} return %1 }",
      "graph(%0: T[3,0]) { %1: T[3] = aten::prod.dim_int(%0) {dim=1,keepdim=false,dtype=T} return %1 }"}},
    {"aten::amax",
     "number",
     {1, 0},
     "a",
     {"graph(%0: T[4,5]) { %1: T[4] = aten::amax(%0) {dim=[1],keepdim=false} return %1 }",
      "graph(%0: T[4,40]) { %1: T[1,1] = aten::amax(%0) {dim=[0,1],keepdim=true} return %1 }",
      "graph(%0: T[0,3]) { %1: T[0] = aten::amax(%0) {dim=[1],keepdim=false} return %1 }"}},
    {"aten::argmax",
     "number",
     kExact,
     "a",
     {"graph(%0: T[4,5]) { %1: i64[4] = aten::argmax(%0) {dim=1,keepdim=false} return %1 }",
      "graph(%0: T[40,3]) { %1: i64[1,3] = aten::argmax(%0) {dim=0,keepdim=true} return %1 }"}},
    {"aten::cumsum",
     "reduced",
     kSum,
     "s",
     {"graph(%0: T[40]) { %1: T[40] = aten::cumsum(%0) {dim=0,dtype=T} return %1 }",
      "graph(%0: T[3,4,2]) { %1: T[3,4,2] = aten::cumsum(%0) {dim=1,dtype=T} return %1 }",
      "graph(%0: T[0,2]) { %1: T[0,2] = aten::cumsum(%0) {dim=0,dtype=T} return %1 }"}},
    {"aten::gather",
     "all",
     kExact,
     "ac",
     {"graph(%0: T[8,3], %1: i64[5,3]) { %2: T[5,3] = aten::gather(%0, %1) {dim=0,sparse_grad=false} return %2 }",
      "graph(%0: T[2,8], %1: i64[2,9]) { %2: T[2,9] = aten::gather(%0, %1) {dim=1,sparse_grad=false} return %2 }",
      "graph(%0: T[8,3], %1: i64[0,3]) { %2: T[0,3] = aten::gather(%0, %1) {dim=0,sparse_grad=false} return %2 }"}},
    // The index counts up to 7, so no two of a row of 8 are equal: what is written is determined.
    {"aten::scatter.src",
     "all",
     kExact,
     "aca",
     {"graph(%0: T[2,9], %1: i64[2,8], %2: T[2,8]) { %3: T[2,9] = aten::scatter.src(%0, %1, %2) {dim=1} return %3 }",
      "graph(%0: T[8], %1: i64[0], %2: T[3]) { %3: T[8] = aten::scatter.src(%0, %1, %2) {dim=0} return %3 }"}},
    {"aten::scatter_add",
     "reduced",
     kSum,
     "scs",
     {"graph(%0: T[2,8], %1: i64[2,30], %2: T[2,30]) { %3: T[2,8] = aten::scatter_add(%0, %1, %2) {dim=1} return %3 }",
      "graph(%0: T[8,2], %1: i64[9,2], %2: T[9,2]) { %3: T[8,2] = aten::scatter_add(%0, %1, %2) {dim=0} return %3 }"}},
    {"aten::sort.stable",
     "number",
     {1, 0},
     "a",
     {"graph(%0: T[40]) { %1: T[40], %2: i64[40] = aten::sort.stable(%0) {stable=true,dim=0,descending=false} return %1, %2 }",
      "graph(%0: T[3,7]) { %1: T[3,7], %2: i64[3,7] = aten::sort.stable(%0) {stable=true,dim=1,descending=true} return %1, %2 }",
      "graph(%0: T[7,3]) { %1: T[7,3], _ = aten::sort.stable(%0) {stable=true,dim=0,descending=false} return %1 }",
      "graph(%0: T[0]) { %1: T[0], %2: i64[0] = aten::sort.stable(%0) {stable=true,dim=0,descending=false} return %1, %2 }"}},
    {"aten::bmm",
     "reduced",
     kSum,
     "s",
     {"graph(%0: T[2,3,4], %1: T[2,4,5]) { %2: T[2,3,5] = aten::bmm(%0, %1) return %2 }",
      "graph(%0: T[1,17,33], %1: T[1,33,19]) { %2: T[1,17,19] = aten::bmm(%0, %1) return %2 }",
      "graph(%0: T[2,3,0], %1: T[2,0,5]) { %2: T[2,3,5] = aten::bmm(%0, %1) return %2 }",
      "graph(%0: T[0,3,4], %1: T[0,4,5]) { %2: T[0,3,5] = aten::bmm(%0, %1) return %2 }"}},
    {"aten::convolution",
     "float",
     kSum,
     "u",
     {"graph(%0: T[2,3,8,8], %1: T[4,3,3,3]) { %2: T[2,4,8,8] = aten::convolution(%0, %1, none) "
      "{stride=[1,1],padding=[1,1],dilation=[1,1],transposed=false,output_padding=[0,0],groups=1} return %2 }",
      "graph(%0: T[1,4,9,7], %1: T[6,2,3,2]) { %2: T[1,6,4,3] = aten::convolution(%0, %1, none) "
      "{stride=[2,2],padding=[0,0],dilation=[1,1],transposed=false,output_padding=[0,0],groups=2} return %2 }",
      "graph(%0: T[2,2,10], %1: T[3,2,3]) { %2: T[2,3,8] = aten::convolution(%0, %1, none) "
      "{stride=[1],padding=[1],dilation=[2],transposed=false,output_padding=[0],groups=1} return %2 }",
      "graph(%0: T[1,4,3,3], %1: T[4,2,3,3]) { %2: T[1,2,6,6] = aten::convolution(%0, %1, none) "
      "{stride=[2,2],padding=[1,1],dilation=[1,1],transposed=true,output_padding=[1,1],groups=1} return %2 }",
      "graph(%0: T[1,4,3,3], %1: T[4,2,2,2]) { %2: T[1,4,4,4] = aten::convolution(%0, %1, none) "
      "{stride=[1,1],padding=[0,0],dilation=[1,1],transposed=true,output_padding=[0,0],groups=2} return %2 }"}},
    {"ltc::philox",
     "random",
     kExact,
     "a",
     {"graph(%0: i64 scalar, %1: i64 scalar) { %2: T[3,7] = ltc::philox(%0, %1) {size=[3,7],dtype=T} return %2 }",
      "graph(%0: i64 scalar, %1: i64 scalar) { %2: T[0] = ltc::philox(%0, %1) {size=[0],dtype=T} return %2 }",
      "graph(%0: i64 scalar, %1: i64 scalar) { %2: T[] = ltc::philox(%0, %1) {size=[],dtype=T} return %2 }",
      "graph(%0: i64 scalar, %1: i64 scalar) { %2: T[1001] = ltc::philox(%0, %1) {size=[1001],dtype=T} return %2 }"}},
    {"aten::view.dtype",
     "float",
     kExact,
     "a",
     {"graph(%0: T[6]) { %1: I[6] = aten::view.dtype(%0) {dtype=I} return %1 }",
      "graph(%0: I[2,3]) { %1: T[2,3] = aten::view.dtype(%0) {dtype=T} return %1 }"}},
};

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) text.replace(at, from.size(), to);
}

constexpr std::string_view kUnaryShapes[] = {"[]", "[1]", "[0]", "[2,3]", "[3,0,2]", "[1,1,1]", "[1009]"};

struct Shapes {
  std::string_view a, b, out;
};
constexpr Shapes kBinaryShapes[] = {{"[]", "[]", "[]"},
                                    {"[1]", "[1]", "[1]"},
                                    {"[0]", "[1]", "[0]"},
                                    {"[40]", "[40]", "[40]"},
                                    {"[2,3]", "[3]", "[2,3]"},
                                    {"[4,1]", "[1,5]", "[4,5]"},
                                    {"[]", "[2,2]", "[2,2]"},
                                    {"[3,0]", "[]", "[3,0]"},
                                    {"[2,1,3]", "[4,1]", "[2,4,3]"},
                                    {"[1009]", "[1009]", "[1009]"}};

void expand_pattern(const OpCase& row, std::string_view pattern, std::vector<std::string>& graphs) {
  if (pattern == "unary") {
    for (const auto s : kUnaryShapes) graphs.push_back(cat("graph(%0: T", s, ") { %1: T", s, " = ", row.op, "(%0) return %1 }"));
  } else if (pattern == "binary" || pattern == "compare") {
    const std::string_view result = pattern == "compare" ? "bool" : "T";
    const std::string_view attrs = row.op == "aten::add.Tensor" ? " {alpha=1}" : "";
    for (const Shapes& s : kBinaryShapes) {
      graphs.push_back(
          cat("graph(%0: T", s.a, ", %1: T", s.b, ") { %2: ", result, s.out, " = ", row.op, "(%0, %1)", attrs, " return %2 }"));
    }
  } else {
    graphs.emplace_back(pattern);
  }
}

}  // namespace

std::span<const OpCase> op_cases() { return kCases; }

std::vector<DType> dtypes_of(std::string_view set) {
  using enum DType;
  if (set == "float") return {kF32, kF64};
  if (set == "int") return {kU8, kI8, kI16, kI32, kI64};
  if (set == "number") return {kF32, kF64, kU8, kI8, kI16, kI32, kI64};
  if (set == "bits") return {kBool, kU8, kI8, kI16, kI32, kI64};
  if (set == "reduced") return {kF32, kF64, kI32, kI64};
  if (set == "random") return {kF32, kF64, kI32, kI64};
  ensure(set == "all", "no set of dtypes called ", set);
  return {kF32, kF64, kF16, kBF16, kBool, kU8, kI8, kI16, kI32, kI64};
}

std::vector<std::string> graphs_of(const OpCase& row, DType dtype) {
  std::vector<std::string> graphs;
  for (const std::string_view pattern : row.graphs) expand_pattern(row, pattern, graphs);
  const std::string name(dtype_name(dtype));
  for (std::string& graph : graphs) {
    for (const char* before : {" ", "="}) {
      replace_all(graph, std::string(before) + "T[", before + name + "[");
      replace_all(graph, std::string(before) + "I[", before + std::string(dtype == DType::kF64 ? "i64[" : "i32["));
    }
    for (const char* after : {"}", ","}) {
      replace_all(graph, std::string("dtype=T") + after, "dtype=" + name + after);
      replace_all(graph, std::string("dtype=I") + after, std::string("dtype=") + (dtype == DType::kF64 ? "i64" : "i32") + after);
    }
  }
  return graphs;
}

std::string case_name(std::string_view op, DType dtype) {
  std::string name(op.substr(op.find("::") + 2));
  std::ranges::replace(name, '.', '_');
  return name + "_" + std::string(dtype_name(dtype));
}

}  // namespace ltc::conformance
