// The cases of the ops tier: a row per op of the minimal opset, and graphs of derived ops and whole programs.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/ir/graph.h"

namespace ltc::conformance {

// The allowed difference of a float result: ulps * epsilon(dtype) * max(|expected|, floor). Zero ulps: equal, zeros by sign too.
struct Tolerance {
  double ulps = 0;
  double floor = 0;
};

// The values of a param. Those that are special for a dtype come first, so that short params have them too.
enum class Fill : char {
  kAny = 'a',       // with NaN, infinities, both zeros, the largest and smallest; all integers
  kFinite = 'f',    // with both zeros, moderate
  kPositive = 'p',  // moderate, above 0
  kUnit = 'u',      // from -1 to 1
  kSmall = 's',     // small whole numbers of both signs: sums and products are exact
  kCount = 'c',     // 0, 1, 2, ... 7, 0, 1, ...
  kNonZero = 'n',   // as kSmall, without 0
};

struct OpCase {
  std::string_view op;
  std::string_view dtypes;  // of T: see dtypes_of
  Tolerance tolerance;
  std::string_view fills;  // a letter per param; the last one for all further
  // Graphs with T for the dtype. "unary", "binary", "compare": the usual shapes.
  std::vector<std::string_view> graphs;
};

std::span<const OpCase> op_cases();

// "float": f32 f64; "int"; "number": both; "bits": int and bool; "all": with f16, bf16 and bool.
std::vector<DType> dtypes_of(std::string_view set);

// With T replaced, and "unary" and its like written out.
std::vector<std::string> graphs_of(const OpCase& row, DType dtype);

// "neg_f32" for aten::neg.
std::string case_name(std::string_view op, DType dtype);

// Ops that a plugin may claim whole, and programs; compared with what the reference makes of their decomposition.
struct ProgramCase {
  std::string_view name;
  Tolerance tolerance;
  std::string_view fills;
  std::string_view graph;
};
std::span<const ProgramCase> derived_cases();
std::span<const ProgramCase> form_cases();
std::span<const ProgramCase> program_cases();

}  // namespace ltc::conformance
