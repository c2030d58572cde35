#include "vectors.h"

#include <algorithm>
#include <vector>

#include "dtype.h"
#include "formula.h"

namespace ltc::kernels {
namespace {

bool is_item(const Kernel& kernel, const Index& index) { return index == kernel.space.of_var(kernel.item); }

// What has one value for all items.
std::vector<bool> find_uniform(const Kernel& kernel) {
  std::vector<bool> uniform(kernel.insts.size());
  for (Ref ref = 0; ref < kernel.insts.size(); ++ref) {
    const Inst& inst = kernel.insts[ref];
    uniform[ref] = inst.code != Code::kStore && inst.index.terms.empty() &&
                   std::ranges::all_of(inst.args, [&](Ref arg) { return uniform[arg]; });
  }
  return uniform;
}

// Formulas that mean the same for vectors.
bool is_vector_formula(const Inst& inst) {
  const std::string_view formula = inst.formula;
  if (inst.of == LTC_BOOL) return formula.find_first_of("<>") == formula.npos;
  if (formula.find("(T)") != formula.npos) return false;
  const size_t call = formula.find('@');
  return call == formula.npos || !is_own_function(formula.substr(call + 1, formula.find('(', call) - call - 1), true);
}

bool fits(const Kernel& kernel, const Inst& inst) {
  const auto narrow = [](ltc_dtype dtype) { return dtype == LTC_F32 || dtype == LTC_BOOL; };
  if (!narrow(inst.dtype)) return false;
  switch (inst.code) {
    case Code::kLoad: return inst.args.empty() && inst.of == inst.dtype && is_item(kernel, inst.index);
    case Code::kStore: return inst.args.size() == 1 && is_item(kernel, inst.index);
    case Code::kFormula: return narrow(inst.of) && is_vector_formula(inst);
    case Code::kCast: return narrow(inst.of);
    default: return false;
  }
}

class VectorPrinter {
 public:
  VectorPrinter(const Kernel& kernel, const Dialect& dialect)
      : kernel_(kernel), dialect_(dialect), uniform_(find_uniform(kernel)) {}

  std::string print() {
    for (const Ref ref : kernel_.blocks[0].insts) line(ref, kernel_.insts[ref]);
    return std::move(text_);
  }

 private:
  void line(Ref ref, const Inst& inst) {
    const std::string name = "v" + std::to_string(ref);
    if (inst.code == Code::kStore) {
      const std::string value = wide(inst.args[0]);
      const std::string stored = inst.dtype == LTC_BOOL ? "convert_uchar16(" + value + " & 1)" : value;
      text_ += "    vstore16(" + stored + ", 0, b" + std::to_string(inst.slot) + " + i0);\n";
    } else {
      const std::string type = uniform_[ref] ? std::string(facts(inst.dtype).name) : vector_type(inst.dtype);
      text_ += "    const " + type + " " + name + " = " + (uniform_[ref] ? scalar(inst) : vector(inst)) + ";\n";
    }
  }

  static std::string vector_type(ltc_dtype dtype) { return dtype == LTC_BOOL ? "int16" : "float16"; }

  // An operand as a vector.
  std::string wide(Ref ref) const {
    const std::string name = "v" + std::to_string(ref);
    if (!uniform_[ref]) return name;
    return kernel_.insts[ref].dtype == LTC_BOOL ? "(int16)(" + name + " ? -1 : 0)" : "(float16)(" + name + ")";
  }

  std::string scalar(const Inst& inst) const {
    std::vector<std::string> args;
    for (const Ref arg : inst.args) args.push_back("v" + std::to_string(arg));
    switch (inst.code) {
      case Code::kNumber: return is_float(inst.dtype) ? real_text(inst.real, inst.dtype) : integer_text(inst.integer);
      case Code::kScalar: return "s" + std::to_string(inst.slot);
      case Code::kLoad: return "b" + std::to_string(inst.slot) + "[" + integer_text(inst.index.constant) + "]";
      case Code::kCast: return cast_text(args[0], inst.of, inst.dtype);
      default: return expand(inst.formula, inst.of, args, dialect_);
    }
  }

  std::string vector(const Inst& inst) const {
    std::vector<std::string> args;
    for (const Ref arg : inst.args) args.push_back(wide(arg));
    if (inst.code == Code::kLoad) {
      const std::string loaded = "vload16(0, b" + std::to_string(inst.slot) + " + i0)";
      return inst.dtype == LTC_BOOL ? "-convert_int16(" + loaded + ")" : loaded;
    }
    if (inst.code == Code::kCast) {
      if (inst.of == inst.dtype) return args[0];
      return inst.dtype == LTC_BOOL ? args[0] + " != 0.0f" : args[0] + " ? (float16)(1.0f) : (float16)(0.0f)";
    }
    std::string formula(inst.formula);
    if (inst.of == LTC_BOOL) {  // a mask keeps its type
      for (size_t at; (at = formula.find("(T)")) != formula.npos;) formula.erase(at, 3);
    }
    return expand(formula, inst.of, args, dialect_);
  }

  const Kernel& kernel_;
  const Dialect& dialect_;
  const std::vector<bool> uniform_;
  std::string text_;
};

}  // namespace

bool runs_in_vectors(const Kernel& kernel) {
  const std::vector<bool> uniform = find_uniform(kernel);
  for (Ref ref = 0; ref < kernel.insts.size(); ++ref) {
    const Inst& inst = kernel.insts[ref];
    constexpr Code kUniform[] = {Code::kNumber, Code::kScalar, Code::kLoad, Code::kFormula, Code::kCast};
    const bool plain = uniform[ref] && std::ranges::count(kUniform, inst.code) > 0 &&
                       (inst.code != Code::kLoad || (inst.args.empty() && inst.of == inst.dtype));
    if (!plain && !fits(kernel, inst)) return false;
  }
  return true;
}

std::string vector_statements(const Kernel& kernel, const Dialect& dialect) { return VectorPrinter(kernel, dialect).print(); }

}  // namespace ltc::kernels
