#include "kernels/print/vectors.h"

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "kernels/graph/dtype.h"
#include "kernels/print/formula.h"

namespace ltc::kernels {
namespace {

bool mentions(const Index& index, VarId var) {
  return std::ranges::any_of(index.terms, [&](const Term& term) { return term.digit.var == var; });
}

// Formulas that mean the same for vectors. Comparisons of F64 give masks of another width.
bool is_vector_formula(const Inst& inst) {
  const std::string_view formula = inst.formula;
  if (inst.of == LTC_BOOL) return formula.find_first_of("<>") == formula.npos;
  if (inst.of == LTC_F64) return formula.find_first_of("<>=?@(") == formula.npos;
  if (inst.of != LTC_F32 || formula.find("(T)(") != formula.npos) return false;
  const size_t call = formula.find('@');
  return call == formula.npos || !is_own_function(formula.substr(call + 1, formula.find('(', call) - call - 1), true);
}

// The values that differ from lane to lane.
class Lanes {
 public:
  Lanes(const Kernel& kernel, VarId var, BlockId outermost) : kernel_(kernel), var_(var), differs_(kernel.insts.size(), false) {
    for (const BlockId block : blocks_in(outermost)) {
      for (const Ref ref : kernel.blocks[block].insts) {
        if (kernel.insts[ref].code == Code::kAssign) differs_[kernel.insts[ref].args[0]] = true;
      }
    }
    for (const BlockId block : blocks_in(outermost)) {
      for (const Ref ref : kernel.blocks[block].insts) {
        const Inst& inst = kernel.insts[ref];
        if (mentions(inst.index, var) || std::ranges::any_of(inst.args, [&](Ref arg) { return differs_[arg]; }))
          differs_[ref] = true;
      }
    }
  }
  bool differs(Ref ref) const { return differs_[ref]; }

  bool fits(Ref ref) const {
    const Inst& inst = kernel_.insts[ref];
    const auto held = [](ltc_dtype dtype) { return dtype == LTC_F32 || dtype == LTC_BOOL || dtype == LTC_F64; };
    if (inst.code == Code::kStore)
      return inst.args.size() == 1 && inst.dtype != LTC_F64 && held(inst.dtype) && is_side_by_side(inst.index, var_);
    if (inst.code == Code::kLoop || !differs_[ref]) return true;
    switch (inst.code) {
      case Code::kLoad:
        return inst.args.empty() && inst.of == inst.dtype && inst.dtype != LTC_F64 && held(inst.dtype) &&
               is_side_by_side(inst.index, var_);
      case Code::kFormula: return held(inst.dtype) && is_vector_formula(inst);
      case Code::kCast: return held(inst.dtype) && held(inst.of) && (inst.of == LTC_F32 || inst.dtype == LTC_F32);
      case Code::kAccumulator:
      case Code::kAssign: return held(inst.dtype);
      default: return false;
    }
  }

  // With the loops in it, outer ones first.
  std::vector<BlockId> blocks_in(BlockId outermost) const {
    std::vector<BlockId> blocks{outermost};
    for (size_t i = 0; i < blocks.size(); ++i) {
      for (const Ref ref : kernel_.blocks[blocks[i]].insts) {
        if (kernel_.insts[ref].code == Code::kLoop) blocks.push_back(kernel_.insts[ref].slot);
      }
    }
    return blocks;
  }

 private:
  const Kernel& kernel_;
  VarId var_;
  std::vector<bool> differs_;
};

// A sum of F32 in F64, in the body of a loop: short pieces of it are as exact in vectors of F32, which hold twice as many.
struct NearSum {
  Ref accumulator, element;
};
constexpr int64_t kNearVectors = 16;  // that a lane adds up in F32; PyTorch's own sums add as many or more

class LanePrinter {
 public:
  LanePrinter(const Kernel& kernel, const Lanes& lanes, const Dialect& dialect, const ScalarText& scalar, int64_t vectors = 1)
      : kernel_(kernel), lanes_(lanes), dialect_(dialect), scalar_(scalar), vectors_(vectors) {}

  // Prints the loop's sums from F32 to F64 as near sums from now on, and returns them.
  std::vector<NearSum> sum_near(BlockId loop) {
    std::vector<NearSum> sums;
    for (const Ref ref : kernel_.blocks[loop].insts) {
      const Inst& assign = kernel_.insts[ref];
      if (assign.code != Code::kAssign) continue;
      const Ref update = assign.args[1], cast = kernel_.insts[update].args[0];
      const Inst& widened = kernel_.insts[cast];
      const bool adds = assign.dtype == LTC_F64 && kernel_.insts[update].formula == "$a + $0";
      if (!adds || widened.code != Code::kCast || widened.of != LTC_F32 || uses(cast) != 1) continue;
      sums.push_back({assign.args[0], widened.args[0]});
      near_.emplace(ref, sums.back());
      left_out_.insert({update, cast});
    }
    return sums;
  }
  static std::string near_name(const NearSum& sum) { return "v" + std::to_string(sum.accumulator) + "_near"; }

  std::string block(BlockId id, int depth) {
    const std::string indent(static_cast<size_t>(2 * depth), ' ');
    std::string text;
    for (const Ref ref : kernel_.blocks[id].insts) {
      const Inst& inst = kernel_.insts[ref];
      if (left_out_.contains(ref)) continue;
      if (const auto near = near_.find(ref); near != near_.end()) {
        text += indent + near_name(near->second) + " += " + wide(near->second.element) + ";\n";
      } else if (inst.code == Code::kLoop) {
        text += indent + scalar_.loop(inst.slot) + "\n" + block(inst.slot, depth + 1) + indent + "}\n";
      } else if (lanes_.differs(ref) || inst.code == Code::kStore) {
        for (vector_ = 0; vector_ < vectors_; ++vector_) text += indent + statement(ref, inst) + "\n";
      } else {
        text += indent + scalar_.statement(ref) + "\n";
      }
    }
    return text;
  }

  static std::string type(ltc_dtype dtype, int64_t lanes = kLanes) {
    return (dtype == LTC_BOOL ? "int" : dtype == LTC_F64 ? "double" : "float") + std::to_string(lanes);
  }
  std::string initial(const Inst& accumulator) const {
    return "(" + type(accumulator.dtype) + ")(" + expand(accumulator.formula, accumulator.of, {}, dialect_) + ")";
  }
  // For vectors.
  std::string formula(const Inst& inst, const std::vector<std::string>& args) const {
    std::string text(inst.formula);
    if (inst.of == LTC_BOOL) {  // a mask keeps its type
      for (size_t at; (at = text.find("(T)")) != text.npos;) text.erase(at, 3);
    }
    return expand(text, inst.of, args, dialect_, true);
  }
  // Statements that fold the lanes of an accumulator, half onto half, and give what they come to.
  std::string fold(const std::string& lanes, const Inst& update, const std::string& result, const std::string& indent) const {
    std::string text, whole = lanes;
    for (int64_t width = kLanes / 2; width > 1; width /= 2) {
      const std::string half = lanes + "_" + std::to_string(width);
      text += indent + "const " + type(update.dtype, width) + " " + half + " = " +
              formula(update, {whole + ".hi", whole + ".lo"}) + ";\n";
      whole = half;
    }
    const std::string last = formula(update, {whole + ".hi", whole + ".lo"});
    return text + indent + result + " = " + (update.dtype == LTC_BOOL ? "(" + last + ") & 1" : last) + ";\n";
  }

 private:
  std::ptrdiff_t uses(Ref ref) const {
    return std::ranges::count_if(kernel_.insts, [&](const Inst& inst) { return std::ranges::count(inst.args, ref) > 0; });
  }

  // The name of a value that differs from lane to lane.
  std::string name(Ref ref) const {
    return "v" + std::to_string(ref) + (vectors_ > 1 ? "_" + std::to_string(vector_) : std::string());
  }

  // An operand as a vector. In them a BOOL is a lane of a mask, 0 or -1.
  std::string wide(Ref ref) const {
    if (lanes_.differs(ref)) return name(ref);
    const std::string scalar = "v" + std::to_string(ref);
    const ltc_dtype dtype = kernel_.insts[ref].dtype;
    return dtype == LTC_BOOL ? "(int16)(" + scalar + " ? -1 : 0)" : "(" + type(dtype) + ")(" + scalar + ")";
  }

  std::string place(const Inst& inst) const {
    const std::string first = "b" + std::to_string(inst.slot) + " + " + scalar_.index(inst.index);
    return vector_ ? first + " + " + std::to_string(vector_ * kLanes) : first;
  }

  std::string statement(Ref ref, const Inst& inst) const {
    switch (inst.code) {
      case Code::kStore: {
        const std::string value = wide(inst.args[0]);
        return "vstore16(" + (inst.dtype == LTC_BOOL ? "convert_uchar16(" + value + " & 1)" : value) + ", 0, " + place(inst) +
               ");";
      }
      case Code::kAssign: return name(inst.args[0]) + " = " + wide(inst.args[1]) + ";";
      case Code::kAccumulator: return type(inst.dtype) + " " + name(ref) + " = " + initial(inst) + ";";
      default: return "const " + type(inst.dtype) + " " + name(ref) + " = " + expression(inst) + ";";
    }
  }

  std::string expression(const Inst& inst) const {
    if (inst.code == Code::kLoad) {
      const std::string loaded = "vload16(0, " + place(inst) + ")";
      return inst.dtype == LTC_BOOL ? "-convert_int16(" + loaded + ")" : loaded;
    }
    std::vector<std::string> args;
    for (const Ref arg : inst.args) args.push_back(wide(arg));
    if (inst.code == Code::kCast) return cast(args[0], inst.of, inst.dtype);
    return formula(inst, args);
  }

  static std::string cast(const std::string& value, ltc_dtype from, ltc_dtype to) {
    if (from == to) return value;
    if (to == LTC_BOOL) return value + " != 0.0f";
    if (from == LTC_BOOL) return value + " ? (float16)(1.0f) : (float16)(0.0f)";
    return to == LTC_F64 ? "convert_double16(" + value + ")" : "convert_float16(" + value + ")";
  }

  const Kernel& kernel_;
  const Lanes& lanes_;
  const Dialect& dialect_;
  const ScalarText& scalar_;
  int64_t vectors_, vector_ = 0;  // side by side; the one that is printed
  std::map<Ref, NearSum> near_;   // by assignment
  std::set<Ref> left_out_;
};

// The accumulators that the body folds into: each is read by its own update only.
bool folds_only(const Kernel& kernel, BlockId loop) {
  for (const Ref ref : kernel.blocks[loop].insts) {
    const Inst& assign = kernel.insts[ref];
    if (assign.code != Code::kAssign) continue;
    const Inst& update = kernel.insts[assign.args[1]];
    // Lanes are folded by the same formula, so it must be one of an element and the accumulator.
    if (update.code != Code::kFormula || update.args.size() != 2 || update.args[1] != assign.args[0]) return false;
    for (const Ref other : kernel.blocks[loop].insts) {
      const auto reads = std::ranges::count(kernel.insts[other].args, assign.args[0]);
      if (other != ref && reads != (other == assign.args[1] ? 1 : 0)) return false;
    }
  }
  return true;
}

}  // namespace

bool is_side_by_side(const Index& index, VarId var) {
  return std::ranges::count(index.terms, Term{1, {var, 1, 0}}) == 1 &&
         std::ranges::count_if(index.terms, [&](const Term& term) { return term.digit.var == var; }) == 1;
}

bool items_are_lanes(const Kernel& kernel) {
  const Lanes lanes(kernel, kernel.item, 0);
  for (const BlockId block : lanes.blocks_in(0)) {
    if (!std::ranges::all_of(kernel.blocks[block].insts, [&](Ref ref) { return lanes.fits(ref); })) return false;
  }
  return true;
}

int64_t vectors_per_item(const Kernel& kernel) {
  constexpr int64_t kItems = 32;  // work for that many cores
  if (kernel.blocks.size() == 1) return 1;
  for (const int64_t vectors : {4, 2}) {
    const int64_t lanes = vectors * kLanes;
    if (kernel.item_count() % lanes == 0 && kernel.item_count() / lanes >= kItems) return vectors;
  }
  return 1;
}

std::string lane_statements(const Kernel& kernel, const Dialect& dialect, const ScalarText& scalar, int depth) {
  const Lanes lanes(kernel, kernel.item, 0);
  return LanePrinter(kernel, lanes, dialect, scalar, vectors_per_item(kernel)).block(0, depth);
}

bool loop_is_lanes(const Kernel& kernel, BlockId loop) {
  const Block& block = kernel.blocks[loop];
  const Lanes lanes(kernel, block.var, loop);
  return lanes.blocks_in(loop).size() == 1 && std::ranges::all_of(block.insts, [&](Ref ref) { return lanes.fits(ref); }) &&
         folds_only(kernel, loop);
}

namespace {

// The loop's steps of kLanes values.
std::string lane_steps(LanePrinter& printer, BlockId loop, const std::string& var, const std::string& extent, int depth) {
  const std::string indent(static_cast<size_t>(2 * depth), ' '), width = std::to_string(kLanes);
  const auto sums = printer.sum_near(loop);
  const auto steps = [&](const std::string& at, const std::string& end, int inner) {
    return at + "for (; " + var + " + " + width + " <= " + end + "; " + var + " += " + width + ") {\n" +
           printer.block(loop, inner + 1) + at + "}\n";
  };
  if (sums.empty()) return steps(indent, extent, depth);
  const std::string inner = indent + "  ", piece = std::to_string(kNearVectors * kLanes);
  std::string begin, end;
  for (const NearSum& sum : sums) {
    const std::string near = LanePrinter::near_name(sum);
    begin += inner + "float16 " + near + " = (float16)(0.0f);\n";
    end += inner + "v" + std::to_string(sum.accumulator) + " += convert_double16(" + near + ");\n";
  }
  return indent + "while (" + var + " + " + width + " <= " + extent + ") {\n" + begin + inner + "const ix end = " + extent +
         " - " + var + " < " + piece + " ? " + extent + " : " + var + " + " + piece + ";\n" + steps(inner, "end", depth + 1) +
         end + indent + "}\n";
}

}  // namespace

std::string lane_loop(const Kernel& kernel, BlockId loop, const std::string& extent, const Dialect& dialect,
                      const ScalarText& scalar, int depth) {
  const Block& block = kernel.blocks[loop];
  const Lanes lanes(kernel, block.var, loop);
  LanePrinter printer(kernel, lanes, dialect, scalar);
  const std::string indent(static_cast<size_t>(2 * depth), ' '), inner = indent + "  ", var = variable_name(block.var);
  // Inside the braces an accumulator's name is that of a vector of them.
  std::string folded, vectors, folds, totals;
  for (const Ref ref : block.insts) {
    const Inst& assign = kernel.insts[ref];
    if (assign.code != Code::kAssign) continue;
    const Inst &accumulator = kernel.insts[assign.args[0]], &update = kernel.insts[assign.args[1]];
    const std::string name = "v" + std::to_string(assign.args[0]), total = "all_" + name;
    folded += indent + std::string(facts(accumulator.dtype).name) + " " + total + ";\n";
    vectors += inner + LanePrinter::type(accumulator.dtype) + " " + name + " = " + printer.initial(accumulator) + ";\n";
    folds += printer.fold(name, update, total, inner);
    totals += indent + name + " = " + expand(update.formula, update.of, std::vector{total, name}, dialect) + ";\n";
  }
  return folded + indent + "{\n" + vectors + lane_steps(printer, loop, var, extent, depth + 1) + folds + indent + "}\n" + totals;
}

}  // namespace ltc::kernels
