// The kernel IR: what one work item does, as instructions in nested blocks. Every dialect prints the same IR.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/graph/index.h"
#include "ltc/plugin.h"

namespace ltc::kernels {

using Ref = uint32_t;  // an instruction, and the value that it gives
using BlockId = uint32_t;
inline constexpr Ref kNoRef = UINT32_MAX;

enum class Code : uint8_t {
  kNumber,       // real or integer, as dtype
  kScalar,       // the kernel's scalar `slot`
  kLoad,         // an element of buffer `slot` at index, or 0 where the guard args[0] does not hold
  kStore,        // writes args[0] into buffer `slot` at index; args[1], if given: only where it holds
  kCheck,        // check `slot` of the kernel fails where args[0] holds
  kFormula,      // `formula` of args, for dtype `of`
  kCast,         // args[0] converted from dtype `of`
  kBits,         // the bits of args[0], of dtype `of`
  kIndex,        // index as a number
  kInside,       // 0 <= index < integer
  kDivides,      // index is a multiple of integer
  kPhilox,       // random element `index` of args: seed, offset
  kVar,          // gives variable `slot` its value; args[0] of a kData variable
  kAccumulator,  // a variable that begins as `formula`
  kAssign,       // args[0], an accumulator, becomes args[1]
  kLoop,         // block `slot`, for each value of its variable
};

struct Inst {
  Code code;
  ltc_dtype dtype = 0;
  std::vector<Ref> args = {};
  Index index = {};
  uint32_t slot = 0;
  ltc_dtype of = 0;
  std::string_view formula = {};
  int64_t integer = 0;
  double real = 0;
};

struct Block {
  BlockId parent = 0;
  uint32_t depth = 0;
  VarId var = 0;  // of its loop
  std::vector<Ref> insts = {};
};

struct KernelBuffer {
  uint32_t value;
  ltc_dtype dtype;
  bool written;
  bool shared = false;  // perhaps with the memory of another one
};

struct KernelScalar {
  uint32_t value;
  ltc_dtype dtype;
};

// A loop folds into the accumulator `sum` by a formula of another such sum and it. Or, with `place`, the formula says whether
// another element is better than the one in `sum`, and `place` is where that was found first.
struct Fold {
  BlockId loop;
  Ref sum, place;
  std::string_view formula;
};

// A loop that adds up from element to element: `next` is the formula of an element, its first operand, and of the sum so far.
// The formula is associative, and what `sum` begins with changes nothing.
struct Scan {
  BlockId loop;
  Ref sum, next;
};

// An index whose elements a kernel compares with the size that they must stay below.
struct Check {
  uint32_t source;  // the node of the graph of the ABI that it belongs to
  int64_t size;
};

// Where a work item reports at its end that check i has failed: it writes the scalar plus i into the buffer, of I64.
struct Report {
  uint32_t buffer, scalar;  // slots
};

// The name of a variable in text: i0, i1, ..., and i8_, i16_, i32_, i64_, as without the line these are types.
std::string variable_name(VarId var);

// Runs once per value of `item`, in any order and at once.
struct Kernel {
  IndexSpace space;
  VarId item = 0;
  std::vector<Inst> insts;
  std::vector<Block> blocks;  // the first: a work item
  std::vector<KernelBuffer> buffers;
  std::vector<KernelScalar> scalars;
  std::vector<Fold> folds = {};
  std::optional<Scan> scan = {};
  std::vector<Check> checks = {};
  Report report = {};               // where there are checks
  bool loops_in_any_order = false;  // also of a loop the values in any order, but for folds

  int64_t item_count() const { return space.var(item).extent; }
};

// Appends instructions, each to the innermost of the blocks that its operands need: what does not depend on a loop stands before
// it.
class Builder {
 public:
  Builder(Kernel& kernel, int64_t item_count);

  Ref add(Inst inst);
  // In this block or further inside, though the operands do not need it.
  Ref add_in(BlockId block, Inst inst);
  uint32_t buffer(uint32_t value, ltc_dtype dtype, bool written);
  uint32_t scalar(uint32_t value, ltc_dtype dtype);

  // A loop in the block `parent`, to be filled and then closed.
  BlockId open_loop(BlockId parent, int64_t extent);
  void close_loop(BlockId loop);
  Index loop_index(BlockId loop) const { return kernel_.space.of_var(kernel_.blocks[loop].var); }
  // The innermost block that the index needs; declares its variables there.
  BlockId block_of(const Index& index);
  BlockId block_of(Ref ref) const { return home_[ref]; }
  BlockId inner(BlockId a, BlockId b) const { return kernel_.blocks[a].depth >= kernel_.blocks[b].depth ? a : b; }
  // A variable that takes its value, brought into [0, extent), from an instruction.
  Index data_index(Ref value, int64_t extent);

 private:
  BlockId block_of_var(VarId var);

  Kernel& kernel_;
  std::vector<BlockId> home_;      // by instruction
  std::vector<BlockId> var_home_;  // by variable; kNoRef: not declared yet
};

}  // namespace ltc::kernels
