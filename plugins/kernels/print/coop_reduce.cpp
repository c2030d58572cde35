#include "kernels/print/coop_reduce.h"

#include <algorithm>

#include "kernels/graph/dtype.h"
#include "kernels/print/formula.h"

namespace ltc::kernels {
namespace {

constexpr int64_t kWarp = 32;
// Threads of a block, where its rows do not need more. With 256 a thread can have all the registers that it may name.
constexpr int64_t kBlock = 128;
constexpr int64_t kMostLanes = 256;
constexpr int64_t kMostLanesOfColumns = 8;
// Elements that a lane should have before a row gets more lanes than reading it side by side takes.
constexpr int64_t kFewElements = 4;

// So many rows side by side are read as well as all of them: a sector of memory.
constexpr int64_t kFewRows = 8;

// Neighbouring rows are neighbouring elements, but for the last of as many as lie side by side.
bool rows_are_side_by_side(const Index& index, VarId item) {
  const auto first = std::ranges::find(index.terms, Digit{item, 1, 0}, [](const Term& term) {
    return Digit{term.digit.var, term.digit.div, 0};
  });
  if (first == index.terms.end() || first->factor != 1) return false;
  const int64_t count = first->digit.mod;
  if (count == 0) return is_side_by_side(index, item);
  return count >= kFewRows && std::ranges::all_of(index.terms, [&](const Term& term) {
           return term == *first || term.digit.var != item || term.digit.div % count == 0;
         });
}

// How much of what loops read and write lies side by side: for neighbouring rows, for neighbouring elements of a row.
struct SideBySide {
  int64_t rows = 0, elements = 0;
};

SideBySide side_by_side(const Kernel& kernel) {
  SideBySide found;
  for (size_t id = 1; id < kernel.blocks.size(); ++id) {
    const Block& block = kernel.blocks[id];
    for (const Ref ref : block.insts) {
      const Inst& inst = kernel.insts[ref];
      if (inst.code != Code::kLoad && inst.code != Code::kStore) continue;
      found.rows += rows_are_side_by_side(inst.index, kernel.item);
      found.elements += is_side_by_side(inst.index, block.var);
    }
  }
  return found;
}

class BlockPrinter {
 public:
  BlockPrinter(const Kernel& kernel, const BlockShape& shape, const Dialect& dialect, const ScalarText& scalar)
      : kernel_(kernel), shape_(shape), dialect_(dialect), scalar_(scalar) {}

  // All threads stay to the end, since they meet: those behind the last row do it again and write nothing.
  std::string print(const std::string& count) {
    const std::string rows = std::to_string(shape_.rows), lanes = std::to_string(shape_.lanes);
    const std::string thread = "(ix)threadIdx.x";
    line(1, "const ix lane = " + thread + (shape_.columns ? " / " + rows : " % " + lanes) + ";");
    line(1, "const ix row = (ix)blockIdx.x * " + rows + " + " + thread + (shape_.columns ? " % " + rows : " / " + lanes) + ";");
    line(1, "const bool live = row < " + count + ";");
    line(1, "const ix i0 = live ? row : " + count + " - 1;");
    block(0, 1);
    return std::move(text_);
  }

 private:
  void line(int depth, const std::string& text) { text_ += std::string(static_cast<size_t>(2 * depth), ' ') + text + "\n"; }

  void block(BlockId id, int depth) {
    for (const Ref ref : kernel_.blocks[id].insts) {
      const Inst& inst = kernel_.insts[ref];
      if (inst.code == Code::kLoop) {
        loop(inst.slot, depth);
      } else if (inst.code == Code::kStore) {
        // Other lanes may not have read yet what lies there.
        if (id == 0 && kernel_.buffers[inst.slot].shared) line(depth, "__syncthreads();");
        line(depth, (id == 0 ? "if (live && lane == 0) " : "if (live) ") + scalar_.statement(ref));
      } else {
        line(depth, scalar_.statement(ref));
      }
    }
  }

  void loop(BlockId id, int depth) {
    if (kernel_.scan && kernel_.scan->loop == id) return scan(*kernel_.scan, depth);
    const Block& inner = kernel_.blocks[id];
    const bool shared = inner.depth == 1;
    if (shared) {
      const std::string var = variable_name(inner.var);
      line(depth, "#pragma unroll 4");
      line(depth, "for (ix " + var + " = lane; " + var + " < " + scalar_.constant(kernel_.space.var(inner.var).extent) + "; " +
                      var + " += " + std::to_string(shape_.lanes) + ") {");
    } else {
      line(depth, scalar_.loop(id));
    }
    block(id, depth + 1);
    line(depth, "}");
    if (!shared) return;
    for (const Fold& fold : kernel_.folds) {
      if (fold.loop == id) meet(fold, depth);
    }
  }

  // Each lane with the one whose number differs in one bit, then in the next.
  void open_steps(int depth) {
    const int64_t first = shape_.columns ? shape_.rows : 1;
    line(depth,
         "for (i32 step = " + std::to_string(first) + "; step < " + std::to_string(first * shape_.lanes) + "; step *= 2) {");
  }

  // All lanes end with the same, since the lower one's is always the first operand.
  void meet(const Fold& fold, int depth) {
    open_steps(depth);
    if (fold.place == kNoRef) {
      meet_sum(fold, depth + 1);
    } else {
      meet_place(fold, depth + 1);
    }
    line(depth, "}");
  }

  void meet_sum(const Fold& fold, int depth) {
    const std::string sum = name(fold.sum), type = this->type(fold.sum);
    line(depth, "const " + type + " other = ltc_partner(" + sum + ", step);");
    line(depth, "const bool upper = ((i32)threadIdx.x & step) != 0;");
    line(depth, "const " + type + " low = upper ? other : " + sum + ", high = upper ? " + sum + " : other;");
    line(depth, sum + " = " + formula(fold, {"high", "low"}) + ";");
  }

  // The first of two elements that are as good wins.
  void meet_place(const Fold& fold, int depth) {
    const std::string best = name(fold.sum), place = name(fold.place);
    line(depth, "const " + type(fold.sum) + " other = ltc_partner(" + best + ", step);");
    line(depth, "const i64 there = ltc_partner(" + place + ", step);");
    line(depth, "const bool better = " + formula(fold, {"other", best}) + ", worse = " + formula(fold, {best, "other"}) + ";");
    line(depth, "if (better || (!worse && there < " + place + ")) { " + best + " = other; " + place + " = there; }");
  }

  void scan(const Scan& scan, int depth) {
    const Block& inner = kernel_.blocks[scan.loop];
    const std::string var = variable_name(inner.var), extent = scalar_.constant(kernel_.space.var(inner.var).extent);
    line(depth, "for (ix first = 0; first < " + extent + "; first += " + std::to_string(shape_.lanes) + ") {");
    line(depth + 1, "const bool inside = first + lane < " + extent + ";");
    line(depth + 1, "const ix " + var + " = inside ? first + lane : " + extent + " - 1;");
    for (const Ref ref : inner.insts) {
      if (ref == scan.next) {
        scan_lanes(scan, depth + 1);
      } else {
        line(depth + 1, (kernel_.insts[ref].code == Code::kStore ? "if (live && inside) " : "") + scalar_.statement(ref));
      }
    }
    line(depth + 1, name(scan.sum) + " = all;");
    line(depth, "}");
  }

  // `own`: of the lanes up to this one; `all`: of all of them, in the same order for each.
  void scan_lanes(const Scan& scan, int depth) {
    const Inst &next = kernel_.insts[scan.next], &sum = kernel_.insts[scan.sum];
    const auto both = [&](const std::string& later, const std::string& earlier) {
      return expand(next.formula, next.of, std::vector{later, earlier}, dialect_);
    };
    const std::string type = this->type(scan.next), before = name(scan.sum);
    line(depth,
         type + " own = inside ? " + name(next.args[0]) + " : " + expand(sum.formula, sum.of, {}, dialect_) + ", all = own;");
    open_steps(depth);
    line(depth + 1, "const " + type + " other = ltc_partner(all, step);");
    line(depth + 1, "const bool upper = ((i32)threadIdx.x & step) != 0;");
    line(depth + 1, "if (upper) own = " + both("own", "other") + ";");
    line(depth + 1, "all = upper ? " + both("all", "other") + " : " + both("other", "all") + ";");
    line(depth, "}");
    line(depth, "const " + type + " " + name(scan.next) + " = " + both("own", before) + ";");
    line(depth, "all = " + both("all", before) + ";");
  }

  static std::string name(Ref ref) { return "v" + std::to_string(ref); }
  std::string type(Ref ref) const { return std::string(facts(kernel_.insts[ref].dtype).name); }
  std::string formula(const Fold& fold, const std::vector<std::string>& args) const {
    return expand(fold.formula, kernel_.insts[fold.sum].dtype, args, dialect_);
  }

  const Kernel& kernel_;
  const BlockShape& shape_;
  const Dialect& dialect_;
  const ScalarText& scalar_;
  std::string text_;
};

}  // namespace

std::optional<BlockShape> block_shape(const Kernel& kernel, int64_t device_threads) {
  if ((!kernel.loops_in_any_order && !kernel.scan) || kernel.blocks.size() == 1) return std::nullopt;
  int64_t length = 0;
  for (const Block& block : kernel.blocks) {
    if (block.depth == 1) length = std::max(length, kernel.space.var(block.var).extent);
  }
  const int64_t items = kernel.item_count();
  const SideBySide lies = side_by_side(kernel);
  const bool columns = lies.rows > 0 && lies.rows >= lies.elements;
  if (kernel.scan && !columns && lies.elements == 0) return std::nullopt;  // lanes would gain nothing and wait for each other
  const int64_t most = columns ? kMostLanesOfColumns : kMostLanes;
  int64_t lanes = 1;
  while (!columns && lanes < kWarp && 2 * lanes <= length) lanes *= 2;
  while (lanes < most && 2 * lanes * kFewElements <= length && items * lanes < device_threads) lanes *= 2;
  if (lanes == 1) return std::nullopt;
  const int64_t threads = std::max(kBlock, columns ? kWarp * lanes : lanes);
  return BlockShape{threads / lanes, lanes, columns};
}

std::string block_statements(const Kernel& kernel, const BlockShape& shape, const std::string& count, const Dialect& dialect,
                             const ScalarText& scalar) {
  return BlockPrinter(kernel, shape, dialect, scalar).print(count);
}

}  // namespace ltc::kernels
