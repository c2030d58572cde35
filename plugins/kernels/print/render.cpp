#include "kernels/print/render.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "kernels/graph/dtype.h"
#include "kernels/print/coop_reduce.h"
#include "kernels/print/formula.h"
#include "kernels/print/vectorized_access.h"
#include "kernels/print/vectors.h"

namespace ltc::kernels {
namespace {

int64_t work(const Kernel& kernel) {
  int64_t longest = 1;
  for (const Block& block : kernel.blocks) {
    if (block.depth > 0) longest = std::max(longest, kernel.space.var(block.var).extent);
  }
  return kernel.item_count() * longest;
}

// Fewer than these are not worth a second form of a kernel.
constexpr int64_t kManyItems = 256;
// Items of a chunk, and chunks of a group.
constexpr int64_t kChunk = 64, kChunksOfGroup = 16;

class Printer {
 public:
  Printer(const Kernel& kernel, const Dialect& dialect) : kernel_(kernel), dialect_(dialect) {
    integers_.push_back(kernel.item_count());
    literal_ = work(kernel) >= kMuchWork;
    for (VarId var = 0; var < kernel.space.size(); ++var) largest_ = std::max(largest_, kernel.space.var(var).extent);
  }

  Source print() {
    if (dialect_.vectors && dialect_.arguments_in_array) return print_lane_loop();
    if (dialect_.vectors && kernel_.item_count() >= kManyItems && items_are_lanes(kernel_)) return print_in_vectors();
    if (dialect_.device_threads) {
      if (const auto shape = block_shape(kernel_, dialect_.device_threads)) return print_in_blocks(*shape);
      if (const int64_t pack = pack_of(kernel_, dialect_.device_threads); pack > 1) return print_in_packs(pack);
    }
    if (dialect_.vectors && !kernel_.checks.empty() && kernel_.blocks.size() == 1 && kernel_.item_count() >= kManyItems) {
      return print_in_chunks();
    }
    block(kernel_.blocks[0], dialect_.arguments_in_array ? 2 : 1);
    return finished(dialect_.arguments_in_array ? unpacked() : parameters());
  }

 private:
  Source print_lane_loop() {
    const bool loops = kernel_.blocks.size() > 1;  // several vectors side by side, which these items are not
    if (loops || !items_are_lanes(kernel_)) throw std::logic_error("a kernel whose items cannot be lanes, printed in vectors");
    text_ = lane_statements(kernel_, dialect_, scalar_text(), 2);
    return {framed(unpacked(), text_, is_long(), dialect_), std::move(integers_), is_long()};
  }

  // A work item does the items of some vectors; the last one does what is left one by one.
  Source print_in_vectors() {
    const int64_t count = kernel_.item_count(), step = vectors_per_item(kernel_) * kLanes;
    const std::string all = constant(count), lanes = std::to_string(step);
    block(kernel_.blocks[0], 3);
    const std::string one_by_one = std::move(text_);
    text_ = "  const ix begin = i0 * " + lanes + ";\n  if (begin + " + lanes + " <= " + all + ") {\n    const ix i0 = begin;\n" +
            lane_statements(kernel_, dialect_, scalar_text(), 2) + "  } else {\n    for (ix i0 = begin; i0 < " + all +
            "; ++i0) {\n" + one_by_one + "    }\n  }\n";
    integers_[0] = (count + step - 1) / step;
    return finished(parameters());
  }

  // A work item does the items of a chunk in a loop that a compiler makes vectors of, which a report at each item would prevent.
  Source print_in_chunks() {
    const int64_t count = kernel_.item_count();
    const std::string all = constant(count), chunk = std::to_string(kChunk);
    block(kernel_.blocks[0], 2);
    text_ = "  const ix begin = i0 * " + chunk + ", rest = " + all + " - begin, end = begin + (rest < " + chunk +
            " ? rest : " + chunk +
            ");\n  #pragma clang loop vectorize(assume_safety)\n  for (ix i0 = begin; i0 < end; ++i0) {\n" + text_ + "  }\n";
    integers_[0] = (count + kChunk - 1) / kChunk;
    Source source = finished(parameters());
    source.local_size = kChunksOfGroup;
    return source;
  }

  Source print_in_blocks(const BlockShape& shape) {
    const int64_t count = kernel_.item_count();
    text_ = block_statements(kernel_, shape, constant(count), dialect_, scalar_text());
    integers_[0] = (count + shape.rows - 1) / shape.rows * shape.threads();
    Dialect frame = dialect_;
    frame.body = ") {\n";
    return finished(parameters(), frame, shape.threads());
  }

  // A work item does a pack; the last one does what is left one by one.
  Source print_in_packs(int64_t pack) {
    const int64_t count = kernel_.item_count();
    const std::string all = constant(count), size = std::to_string(pack);
    block(kernel_.blocks[0], 3);
    const std::string one_by_one = std::move(text_);
    text_ = "  const ix begin = i0 * " + size + ";\n  if (begin + " + size + " <= " + all + ") {\n" +
            pack_statements(kernel_, pack, scalar_text()) + "  } else {\n    for (ix i0 = begin; i0 < " + all + "; ++i0) {\n" +
            one_by_one + "    }\n  }\n";
    integers_[0] = (count + pack - 1) / pack;
    return finished(parameters());
  }

  Source finished(const std::string& arguments) { return finished(arguments, dialect_, 0); }
  // The frame around the statements of a work item, with what its checks need.
  Source finished(const std::string& arguments, const Dialect& frame, int64_t local_size) {
    const std::string indent(dialect_.arguments_in_array ? 4 : 2, ' ');
    std::string before, after;
    for (size_t i = 0; i < kernel_.checks.size(); ++i) {
      before += indent + "u8 " + check_name(i) + " = 0;\n";
      after += indent + "if (" + check_name(i) + ") b" + std::to_string(kernel_.report.buffer) + "[0] = s" +
               std::to_string(kernel_.report.scalar) + (i ? " + " + std::to_string(i) : "") + ";\n";
    }
    return {framed(arguments, before + text_ + after, is_long(), frame), std::move(integers_), is_long(), local_size};
  }

  // Threads and steps of loops go a little beyond the last value.
  bool is_long() const { return largest_ > INT32_MAX - 1024; }

  // ---- integers

  std::string constant(int64_t value) {
    largest_ = std::max(largest_, std::abs(value));
    if ((value >= -1 && value <= 1) || literal_) return integer_text(value);
    // The number of items has a meaning of its own, so it is not shared.
    auto found = std::find(integers_.begin() + 1, integers_.end(), value);
    if (found == integers_.end()) found = integers_.insert(found, value);
    return "c" + std::to_string(found - integers_.begin());
  }

  std::string digit(const Digit& digit) {
    std::string text = variable_name(digit.var);
    if (digit.div != 1) text += " / " + constant(digit.div);
    if (digit.mod) text = (digit.div != 1 ? "(" + text + ")" : text) + " % " + constant(digit.mod);
    return digit.div != 1 || digit.mod ? "(" + text + ")" : text;
  }

  std::string index(const Index& index) {
    const auto [low, high] = kernel_.space.range(index);
    largest_ = std::max({largest_, high, -low});
    std::string text;
    for (const Term& term : index.terms) {
      const bool minus = term.factor == -1;
      if (!text.empty()) text += minus ? " - " : " + ";
      if (text.empty() && minus) text = "-";
      text += digit(term.digit);
      if (term.factor != 1 && !minus) text += " * " + constant(term.factor);
    }
    if (text.empty()) return constant(index.constant);
    return index.constant ? text + " + " + constant(index.constant) : text;
  }

  // ---- instructions

  static std::string name(Ref ref) { return "v" + std::to_string(ref); }
  static std::string check_name(size_t i) { return "bad" + std::to_string(i); }
  static std::string type(ltc_dtype dtype) { return std::string(facts(dtype).name); }

  std::string element(const Inst& inst) {
    const std::string buffer = "b" + std::to_string(inst.slot);
    const bool same = inst.code == Code::kStore || type(inst.dtype) == type(inst.of);
    const std::string pointer = same ? buffer : "((GLOBAL const " + type(inst.dtype) + "*)" + buffer + ")";
    return pointer + "[" + index(inst.index) + "]";
  }

  std::string number(const Inst& inst) {
    return is_float(inst.dtype) ? real_text(inst.real, inst.dtype) : integer_text(inst.integer);
  }

  std::string expression(const Inst& inst) {
    std::vector<std::string> args;
    for (const Ref arg : inst.args) args.push_back(name(arg));
    switch (inst.code) {
      case Code::kNumber: return number(inst);
      case Code::kScalar: return "s" + std::to_string(inst.slot);
      case Code::kLoad: return args.empty() ? element(inst) : args[0] + " ? " + element(inst) + " : (" + type(inst.dtype) + ")0";
      case Code::kFormula: return expand(inst.formula, inst.of, args, dialect_);
      case Code::kCast: return cast_text(args[0], inst.of, inst.dtype);
      case Code::kBits: return bits_text(args[0], inst.of, inst.dtype);
      case Code::kIndex: return "(i64)(" + index(inst.index) + ")";
      case Code::kInside: {
        const std::string at = index(inst.index);
        return at + " >= 0 && " + at + " < " + constant(inst.integer);
      }
      case Code::kDivides: return "(" + index(inst.index) + ") % " + constant(inst.integer) + " == 0";
      case Code::kPhilox:
        return "ltc_philox_" + type(inst.dtype) + "(" + args[0] + ", " + args[1] + ", " + index(inst.index) + ")";
      case Code::kAccumulator: return expand(inst.formula, inst.of, {}, dialect_);
      default: return {};
    }
  }

  std::string variable(const Inst& inst) {
    const Var& var = kernel_.space.var(inst.slot);
    switch (var.kind) {
      case Var::Kind::kData: {
        const std::string value = name(inst.args[0]), last = constant(var.extent - 1);
        return "(ix)(" + value + " < 0 ? 0 : " + value + " > " + last + " ? " + last + " : " + value + ")";
      }
      case Var::Kind::kQuotient: return "(" + index(inst.index) + ") / " + constant(var.by);
      case Var::Kind::kRemainder: return "(" + index(inst.index) + ") % " + constant(var.by);
      default: return index(inst.index);
    }
  }

  std::string statement(Ref ref, const Inst& inst) {
    switch (inst.code) {
      case Code::kStore: {
        const std::string guard = inst.args.size() > 1 ? "if (" + name(inst.args[1]) + ") " : "";
        return guard + element(inst) + " = " + name(inst.args[0]) + ";";
      }
      case Code::kCheck: return check_name(inst.slot) + " |= " + name(inst.args[0]) + ";";
      case Code::kAssign: return name(inst.args[0]) + " = " + name(inst.args[1]) + ";";
      case Code::kVar: return "const ix " + variable_name(inst.slot) + " = " + variable(inst) + ";";
      case Code::kAccumulator: return type(inst.dtype) + " " + name(ref) + " = " + expression(inst) + ";";
      default: return "const " + type(inst.dtype) + " " + name(ref) + " = " + expression(inst) + ";";
    }
  }

  void line(int depth, const std::string& text) { text_ += std::string(static_cast<size_t>(2 * depth), ' ') + text + "\n"; }

  std::string loop_head(BlockId id, bool declares) {
    const VarId id_of_var = kernel_.blocks[id].var;
    const std::string var = variable_name(id_of_var), extent = constant(kernel_.space.var(id_of_var).extent);
    return "for (" + (declares ? "ix " + var + " = 0" : std::string()) + "; " + var + " < " + extent + "; ++" + var + ") {";
  }

  // In vectors where that can be, and what is left of it one by one.
  void loop(BlockId id, int depth) {
    const VarId var = kernel_.blocks[id].var;
    const int64_t extent = kernel_.space.var(var).extent;
    const bool lanes = dialect_.vectors && extent >= 2 * kLanes && loop_is_lanes(kernel_, id);
    if (lanes) {
      line(depth, "ix " + variable_name(var) + " = 0;");
      text_ += lane_loop(kernel_, id, constant(extent), dialect_, scalar_text(), depth);
    }
    line(depth, loop_head(id, !lanes));
    block(kernel_.blocks[id], depth + 1);
    line(depth, "}");
  }

  ScalarText scalar_text() {
    return {[this](Ref ref) { return statement(ref, kernel_.insts[ref]); }, [this](const Index& at) { return index(at); },
            [this](BlockId id) { return loop_head(id, true); }, [this](int64_t value) { return constant(value); }};
  }

  void block(const Block& block, int depth) {
    for (const Ref ref : block.insts) {
      const Inst& inst = kernel_.insts[ref];
      if (inst.code != Code::kLoop) {
        line(depth, statement(ref, inst));
        continue;
      }
      loop(inst.slot, depth);
    }
  }

  // ---- arguments

  static std::string pointer(const KernelBuffer& buffer) {
    return std::string("GLOBAL ") + (buffer.written ? "" : "const ") + type(buffer.dtype) + "*";
  }

  std::string buffer_name(size_t i) const { return (kernel_.buffers[i].shared ? " b" : " RESTRICT b") + std::to_string(i); }

  std::string parameters() {
    std::string text;
    for (size_t i = 0; i < kernel_.buffers.size(); ++i) text += pointer(kernel_.buffers[i]) + buffer_name(i) + ", ";
    for (size_t i = 0; i < kernel_.scalars.size(); ++i) {
      text += "const " + type(kernel_.scalars[i].dtype) + " s" + std::to_string(i) + ", ";
    }
    text += "const ix items";
    for (size_t i = 1; i < integers_.size(); ++i) text += ", const ix c" + std::to_string(i);
    return text;
  }

  std::string unpacked() {
    std::string text;
    size_t next = 0;
    for (size_t i = 0; i < kernel_.buffers.size(); ++i) {
      const std::string to = pointer(kernel_.buffers[i]);
      text += "  " + to + buffer_name(i) + " = (" + to + ")args[" + std::to_string(next++) + "];\n";
    }
    for (size_t i = 0; i < kernel_.scalars.size(); ++i) {
      const std::string name = type(kernel_.scalars[i].dtype);
      text += "  const " + name + " s" + std::to_string(i) + " = *(const " + name + "*)args[" + std::to_string(next++) + "];\n";
    }
    text += "  const ix items = *(const ix*)args[" + std::to_string(next++) + "];\n";
    for (size_t i = 1; i < integers_.size(); ++i) {
      text += "  const ix c" + std::to_string(i) + " = *(const ix*)args[" + std::to_string(next++) + "];\n";
    }
    return text;
  }

  const Kernel& kernel_;
  const Dialect& dialect_;
  std::vector<int64_t> integers_;
  bool literal_;
  int64_t largest_ = 0;
  std::string text_;
};

}  // namespace

std::string framed(std::string_view arguments, std::string_view body, bool long_index, const Dialect& dialect) {
  std::string text = std::string("#define ix ") + (long_index ? "i64" : "i32") + "\n";
  text += std::string(dialect.open) + std::string(arguments) + std::string(dialect.body) + std::string(body);
  return text + std::string(dialect.close) + "#undef ix\n";
}

std::string program_text(std::span<const std::string> kernels, const Dialect& dialect, std::string_view name) {
  std::string all, unnamed;
  for (size_t i = 0; i < kernels.size(); ++i) {
    std::string text = kernels[i];
    constexpr std::string_view kName = "ltc_kernel(";
    text.replace(text.find(kName), kName.size(), std::string(name) + "_" + std::to_string(i) + "(");
    all += "\n" + text;
    unnamed += kernels[i];
  }
  const std::string functions = functions_for(unnamed, dialect);
  const bool wide = unnamed.find("f64") != unnamed.npos || functions.find("f64") != functions.npos;
  return std::string(dialect.prelude) + std::string(wide ? dialect.prelude_f64 : "") + maths_for(unnamed, dialect) + functions +
         all;
}

Source render(const Kernel& kernel, const Dialect& dialect) { return Printer(kernel, dialect).print(); }

}  // namespace ltc::kernels
