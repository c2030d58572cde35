#include "torchscript/fusion/formulas.h"

#include <c10/util/StringUtil.h>
#include <torch/csrc/jit/ir/constants.h>

#include <cctype>
#include <charconv>
#include <string_view>
#include <unordered_map>

#include "torchscript/graph/errors.h"
#include "torchscript/graph/program.h"
#include "torchscript/graph/schema.h"

namespace ltc::torchscript {
namespace {

struct Row {
  std::string_view op;
  std::string_view formula;  // over the names of the operator's arguments
  bool gives_bool = false;
  std::string_view attribute = {}, value = {};  // only where this attribute is this string
};

#define TANH_OF_GELU "tanh(mul(0.79788456080286535588, add(self, mul(0.044715, mul(mul(self, self), self)))))"

// An argument that is not given falls out of its maximum or minimum. Rounding is that of ATen's vectorised kernels.
constexpr Row kOpFormulas[] = {
    {"aten::neg", "neg(self)"},
    {"aten::abs", "abs(self)"},
    {"aten::exp", "exp(self)"},
    {"aten::expm1", "expm1(self)"},
    {"aten::log", "log(self)"},
    {"aten::log1p", "log1p(self)"},
    {"aten::log2", "log2(self)"},
    {"aten::sqrt", "sqrt(self)"},
    {"aten::rsqrt", "rsqrt(self)"},
    {"aten::reciprocal", "reciprocal(self)"},
    {"aten::sin", "sin(self)"},
    {"aten::cos", "cos(self)"},
    {"aten::tanh", "tanh(self)"},
    {"aten::erf", "erf(self)"},
    {"aten::sigmoid", "sigmoid(self)"},
    {"aten::floor", "floor(self)"},
    {"aten::ceil", "ceil(self)"},
    {"aten::round", "round(self)"},
    {"aten::trunc", "trunc(self)"},
    {"aten::relu", "maximum(0, self)"},
    {"aten::silu", "div(self, add(1, exp(neg(self))))"},
    {"aten::add.Tensor", "fma(other, alpha, self)"},
    {"aten::add.Scalar", "fma(other, alpha, self)"},
    {"aten::sub.Tensor", "fma(other, neg(alpha), self)"},
    {"aten::sub.Scalar", "fma(other, neg(alpha), self)"},
    {"aten::rsub.Tensor", "fma(self, neg(alpha), other)"},
    {"aten::rsub.Scalar", "fma(self, neg(alpha), other)"},
    {"aten::mul.Tensor", "mul(self, other)"},
    {"aten::mul.Scalar", "mul(self, other)"},
    {"aten::div.Tensor", "div(self, other)"},
    {"aten::div.Scalar", "div(self, other)"},
    {"aten::maximum", "maximum(self, other)"},
    {"aten::minimum", "minimum(self, other)"},
    {"aten::clamp", "minimum(max, maximum(min, self))"},
    {"aten::clamp.Tensor", "minimum(max, maximum(min, self))"},
    {"aten::clamp_min", "maximum(min, self)"},
    {"aten::clamp_max", "minimum(max, self)"},
    {"aten::hardtanh", "minimum(max_val, maximum(min_val, self))"},
    {"aten::pow.Tensor_Scalar", "pow(self, exponent)"},
    {"aten::addcmul", "fma(mul(value, tensor1), tensor2, self)"},
    {"aten::addcdiv", "add(self, div(mul(value, tensor1), tensor2))"},
    {"aten::lerp.Scalar",
     "fma(where(lt(abs(weight), 0.5), weight, sub(weight, 1)), sub(end, self), where(lt(abs(weight), 0.5), self, end))"},
    {"aten::lerp.Tensor",
     "fma(where(lt(abs(weight), 0.5), weight, sub(weight, 1)), sub(end, self), where(lt(abs(weight), 0.5), self, end))"},
    {"aten::where.self", "where(condition, self, other)"},
    {"aten::where.ScalarSelf", "where(condition, self, other)"},
    {"aten::where.ScalarOther", "where(condition, self, other)"},
    {"aten::where.Scalar", "where(condition, self, other)"},
    {"aten::masked_fill.Scalar", "where(mask, value, self)"},
    {"aten::masked_fill.Tensor", "where(mask, value, self)"},
    {"aten::leaky_relu", "where(gt(self, 0), self, mul(self, negative_slope))"},
    {"aten::gelu", "mul(mul(self, 0.5), add(1, erf(mul(self, 0.70710678118654752440))))", false, "approximate", "none"},
    {"aten::gelu", "mul(mul(0.5, self), add(1, " TANH_OF_GELU "))", false, "approximate", "tanh"},
    {"aten::gelu_backward",
     "mul(grad_output, add(mul(0.5, add(1, erf(mul(self, 0.70710678118654752440)))), "
     "mul(self, mul(exp(mul(mul(self, self), neg(0.5))), 0.39894228040143267794))))",
     false, "approximate", "none"},
    {"aten::gelu_backward",
     "mul(grad_output, add(mul(0.5, add(1, " TANH_OF_GELU ")), "
     "mul(mul(mul(0.5, self), sub(1, mul(" TANH_OF_GELU ", " TANH_OF_GELU "))), "
     "mul(0.79788456080286535588, add(1, mul(0.134145, mul(self, self)))))))",
     false, "approximate", "tanh"},
    {"aten::silu_backward", "mul(mul(grad_output, sigmoid(self)), add(1, mul(self, sub(1, sigmoid(self)))))"},
    {"aten::leaky_relu_backward", "where(gt(self, 0), grad_output, mul(grad_output, negative_slope))"},
    {"aten::hardtanh_backward", "where(maximum(le(self, min_val), ge(self, max_val)), 0, grad_output)"},
    {"aten::hardswish", "div(mul(self, minimum(6, maximum(0, add(self, 3)))), 6)"},
    {"aten::hardsigmoid", "div(minimum(6, maximum(0, add(self, 3))), 6)"},
    {"aten::threshold_backward", "where(le(self, threshold), 0, grad_output)"},
    {"aten::sigmoid_backward", "mul(mul(grad_output, sub(1, output)), output)"},
    {"aten::tanh_backward", "mul(grad_output, sub(1, mul(output, output)))"},
    {"aten::native_dropout_backward", "mul(mul(grad_output, mask), scale)"},
    {"aten::clone", "copy(self)"},
    {"aten::_to_copy", "copy(self)"},
    {"aten::eq.Tensor", "eq(self, other)", true},
    {"aten::eq.Scalar", "eq(self, other)", true},
    {"aten::ne.Tensor", "ne(self, other)", true},
    {"aten::ne.Scalar", "ne(self, other)", true},
    {"aten::lt.Tensor", "lt(self, other)", true},
    {"aten::lt.Scalar", "lt(self, other)", true},
    {"aten::le.Tensor", "le(self, other)", true},
    {"aten::le.Scalar", "le(self, other)", true},
    {"aten::gt.Tensor", "gt(self, other)", true},
    {"aten::gt.Scalar", "gt(self, other)", true},
    {"aten::ge.Tensor", "ge(self, other)", true},
    {"aten::ge.Scalar", "ge(self, other)", true},
    {"aten::logical_not", "eq(self, 0)", true},
    {"aten::logical_and", "mul(ne(self, 0), ne(other, 0))", true},
    {"aten::logical_or", "maximum(ne(self, 0), ne(other, 0))", true},
    {"aten::logical_xor", "ne(ne(self, 0), ne(other, 0))", true},
};

constexpr const char* kNames[] = {
#define X(name, operands, result, formula) #name,
    LTC_TILE_PRIMITIVES(X)
#undef X
};

constexpr int kOperandCounts[] = {
#define X(name, operands, result, formula) operands,
    LTC_TILE_PRIMITIVES(X)
#undef X
};

// call := name "(" call ("," call)* ")" | argument | number
class Parser {
 public:
  Parser(std::string_view text, const c10::FunctionSchema& schema) : text_(text), schema_(schema) {}

  std::vector<Formula::Term> run() {
    call();
    TORCH_INTERNAL_ASSERT(text_.empty(), schema_.name(), ": '", text_, "' follows its formula");
    return std::move(terms_);
  }

 private:
  using Kind = Formula::Term::Kind;

  uint8_t call() {
    if (std::isdigit(text_[0])) return number();
    const std::string_view name = word();
    if (text_.empty() || text_[0] != '(') return argument(name);
    Formula::Term term{Kind::kCall, primitive(name), {}, 0, 0};
    for (int i = 0; i < operand_count(term.primitive); ++i) {
      text_.remove_prefix(1);  // ( or ,
      while (text_[0] == ' ') text_.remove_prefix(1);
      term.operands[i] = call();
    }
    TORCH_INTERNAL_ASSERT(text_[0] == ')', schema_.name(), ": ", name, " has more operands than it takes");
    text_.remove_prefix(1);
    return add(term);
  }

  uint8_t number() {
    double value = 0;
    const auto end = std::from_chars(text_.data(), text_.data() + text_.size(), value).ptr;
    text_.remove_prefix(static_cast<size_t>(end - text_.data()));
    return add({Kind::kLiteral, Primitive::kCount, {}, 0, static_cast<float>(value)});
  }

  uint8_t argument(std::string_view name) {
    const auto index = schema_.argumentIndexWithName(std::string(name));
    TORCH_INTERNAL_ASSERT(index, schema_.name(), " has no argument ", name);
    return add({Kind::kArgument, Primitive::kCount, {}, static_cast<size_t>(*index), 0});
  }

  Primitive primitive(std::string_view name) const {
    for (int i = 0; i < kPrimitiveCount; ++i) {
      if (kNames[i] == name) return static_cast<Primitive>(i);
    }
    TORCH_INTERNAL_ASSERT(false, schema_.name(), ": there is no primitive ", name);
  }

  std::string_view word() {
    size_t size = 0;
    while (size < text_.size() && (std::isalnum(text_[size]) || text_[size] == '_')) ++size;
    const std::string_view result = text_.substr(0, size);
    text_.remove_prefix(size);
    return result;
  }

  uint8_t add(Formula::Term term) {
    terms_.push_back(term);
    return static_cast<uint8_t>(terms_.size() - 1);
  }

  std::string_view text_;
  const c10::FunctionSchema& schema_;
  std::vector<Formula::Term> terms_;
};

struct Candidate {
  const Row* row;
  Formula formula;
};

// By operator; those of this libtorch whose formula's arguments it has.
const std::unordered_map<std::string_view, std::vector<Candidate>>& candidates() {
  static const auto* all = [] {
    auto* result = new std::unordered_map<std::string_view, std::vector<Candidate>>();
    for (const Row& row : kOpFormulas) {
      const auto op = find_operator(row.op);
      if (op) (*result)[row.op].push_back({&row, {Parser(row.formula, op->schema()).run(), row.gives_bool}});
    }
    return result;
  }();
  return *all;
}

bool has_attribute(const torch::jit::Node& node, const c10::FunctionSchema& schema, const Row& row) {
  if (row.attribute.empty()) return true;
  const auto value = torch::jit::toIValue(node.input(*schema.argumentIndexWithName(std::string(row.attribute))));
  return value && value->isString() && value->toStringRef() == row.value;
}

bool is_number(c10::TypeKind kind) {
  return kind == c10::TypeKind::FloatType || kind == c10::TypeKind::IntType || kind == c10::TypeKind::BoolType;
}

// Numbers and tensors of what tiles compute with; an absent argument may be missing from the formula too.
bool fits(const torch::jit::Value& value) {
  if (value.type()->kind() == c10::TypeKind::NoneType || is_number(value.type()->kind())) return true;
  if (number_source(value)) return is_number(number_source(value)->type()->kind());
  const at::ScalarType dtype = spec_of(value).dtype;
  return dtype == at::kFloat || dtype == at::kBool;
}

bool has_types(const torch::jit::Node& node, const Formula& formula) {
  if (node.outputs().size() != 1 || spec_of(*node.output()).dtype != (formula.gives_bool ? at::kBool : at::kFloat)) return false;
  bool has_tensor = false;
  for (const Formula::Term& term : formula.terms) {
    if (term.kind != Formula::Term::Kind::kArgument) continue;
    const torch::jit::Value& value = *node.input(term.argument);
    if (!fits(value)) return false;
    has_tensor |= spec_of(value).dtype != at::ScalarType::Undefined && !number_source(value);
  }
  return has_tensor;
}

}  // namespace

int operand_count(Primitive primitive) { return kOperandCounts[static_cast<int>(primitive)]; }
const char* name_of(Primitive primitive) { return kNames[static_cast<int>(primitive)]; }

const Formula* find_formula(const torch::jit::Node& node, const c10::FunctionSchema& schema) {
  const std::string name = schema.overload_name().empty() ? schema.name() : c10::str(schema.name(), ".", schema.overload_name());
  const auto found = candidates().find(name);
  if (found == candidates().end()) return nullptr;
  for (const auto& [row, formula] : found->second) {
    if (has_attribute(node, schema, *row) && has_types(node, formula)) return &formula;
  }
  return nullptr;
}

}  // namespace ltc::torchscript
