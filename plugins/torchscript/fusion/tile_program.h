// A cluster of element-wise nodes as one loop over tiles: each primitive runs over a few kilobytes that stay in the L1 cache, so
// that memory is read and written once for the whole cluster. Programs that run often or for long get compiled kernels meanwhile
// (tile_stages.cpp), whose results are the same to the last bit.
//
// Some nodes need whole rows: sums and means of what a cluster makes, and steps from rows to rows in the middle of one. With such
// steps the loop is over blocks of rows, and each phase of the program, up to the next steps, runs over the tiles of a block.
#pragma once
#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>
#include <c10/util/SmallVector.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ltc/archive.hpp"
#include "torchscript/fusion/primitives.h"
#include "torchscript/fusion/program_kernels.h"

namespace ltc::torchscript {

// Elements of a tile; 4 KB. A multiple of 4, as random numbers come in fours.
inline constexpr int64_t kTile = 1024;

// From rows to rows, by a row kernel.
enum class RowFunction : uint8_t { kSoftmax, kNormalize };

class TileProgram {
 public:
  using Register = uint16_t;

  // ---- building, in this order: inputs and instructions as they come, then outputs, then finish(), perhaps use_kernels()

  TileProgram() = default;  // to be read from an archive
  explicit TileProgram(std::vector<int64_t> sizes) : sizes_(std::move(sizes)) {}

  // Operands of run(), in the order of these calls. `is_full`: of the program's sizes, not broadcast to them.
  Register add_tensor(bool is_bool, bool is_full);
  Register add_number();
  size_t add_seed();         // an integer, for add_uniform
  size_t add_row_operand();  // a row of floats, for add_row_step

  // The same, but for being no operands: scalars of the run, read where the host has them.
  struct RunScalar {
    size_t index;
    ltc_dtype dtype;
  };
  Register add_number(RunScalar from);
  size_t add_seed(RunScalar from);

  Register add_literal(float value);
  Register add(Primitive primitive, const Register* operands);
  // The same, or what was added before with this primitive and these operands.
  Register find_or_add(Primitive primitive, const Register* operands);
  // Random numbers in [0, 1) by their row-major position.
  Register add_uniform(size_t seed, size_t offset);
  // A step on an instruction's result, in rows of so many elements, the same in all steps and sums of a program. Weight and bias
  // are row operands.
  Register add_row_step(RowFunction function, Register in, int64_t length, double eps, c10::ArrayRef<size_t> weight_and_bias);
  void add_output(Register result, bool is_bool);  // the result of an instruction
  // One more result: the sums of rows of so many elements, whole vectors, times `scale`. None in a program with row-wise ops.
  void add_row_sum(Register value, int64_t length, double scale, std::vector<int64_t> sizes);
  // Two more results: the means and the scales of the rows that a kNormalize normalised.
  void add_row_statistics(Register normalized, const std::vector<int64_t>& sizes);
  void finish();
  // Where its kernels are. They are counted on once they are written, and run once they are compiled.
  void use_kernels(std::shared_ptr<ProgramKernels> kernels);
  void write_kernels(ProgramKernels& kernels);

  // Changes the sizes, and those of all operands that are full. None with row-wise ops or sums of rows can.
  void resize(std::vector<int64_t> sizes) { sizes_ = std::move(sizes); }

  size_t operand_count() const { return operands_.size(); }
  bool is_scalar(Register id) const { return registers_[id].kind == Kind::kScalar; }
  // The value, where it is known by now.
  const float* literal(Register id) const;
  std::string text() const;

  // Takes the operands from the stack and leaves the results there. A result takes over the memory of an operand that was moved
  // here and that nobody else has. One run at a time.
  void run(std::vector<c10::IValue>& stack, const ltc_scalar* scalars);

 private:
  enum class Kind : uint8_t { kTensor, kScalar, kTile };
  static constexpr uint32_t kNever = UINT32_MAX;

  struct RegisterInfo {
    Kind kind;
    bool is_literal = false;
    bool is_block = false;       // of a tile: a row-wise op or a later phase reads it, so there is one for each of the block
    uint16_t slot = 0;           // of a tile: its scratch memory; of a scalar: its place in scalars_; of a tensor: its index
    uint32_t last_use = kNever;  // instruction
  };
  enum class Code : uint8_t { kPrimitive, kUniform, kRowOp };
  struct Instruction {
    Code code;
    Primitive primitive;  // of kPrimitive
    TileKernel kernel;
    Register out;
    Register operands[kMostOperands];  // kUniform: seeds
    uint16_t row_op = 0;               // of kRowOp: which
  };
  struct TensorInput {
    Register id;
    bool is_bool, is_full;
  };
  struct Output {
    Register id;
    bool is_bool;
    uint32_t made_by = 0;  // instruction
  };
  struct RowSum {
    Register id;
    double scale;
    std::vector<int64_t> sizes;  // of the result
  };
  struct RowOp {
    RowFunction function;
    double eps;
    c10::SmallVector<size_t, 2> weight_and_bias;  // row operands
    size_t statistics = 0;                        // the first of the results
  };
  // Instructions of one kind; those that compile run as one kernel once that is there. Stages take turns, so that the kind is the
  // rest of the number.
  enum StageKind : int { kInterpreted, kCompiled, kRowOps, kStageKinds };
  struct Stage {
    int number = 0;
    uint32_t begin = 0, end = 0;
    std::optional<size_t> kernel = {};   // of kernels_
    std::vector<Register> buffers = {};  // its arguments: tiles and tensors,
    std::vector<uint16_t> scalars = {};  // and which of scalars_
    uint32_t size() const { return end - begin; }
  };
  // The stages that run over the tiles of a block one after the other, and then the row-wise ops.
  struct Phase {
    size_t begin = 0, end = 0;               // stages
    uint32_t first_step = 0, end_steps = 0;  // instructions
    std::vector<uint16_t> tensors = {};      // that it reads
    std::vector<uint16_t> makes = {};        // outputs
    std::vector<uint16_t> reads = {};        // outputs of phases before it
  };
  enum class OperandKind : uint8_t { kTensor, kNumber, kSeed, kRow };
  struct BoundScalar {
    RunScalar from;
    uint16_t place;  // in scalars_ or seeds_
  };
  class Run;
  class StageWriter;
  friend void archive(plugin::Archive& io, TileProgram& tiles);
  friend void archive(plugin::Archive& io, BoundScalar& scalar);
  friend void archive(plugin::Archive& io, RegisterInfo& info);
  friend void archive(plugin::Archive& io, TensorInput& input);
  friend void archive(plugin::Archive& io, Output& output);
  friend void archive(plugin::Archive& io, RowSum& sum);
  friend void archive(plugin::Archive& io, RowOp& op);
  friend void archive(plugin::Archive& io, Instruction& instruction);

  static int operands_of(const Instruction& instruction);  // registers: 0 of random numbers
  uint32_t instruction_count() const { return static_cast<uint32_t>(instructions_.size()); }
  static int stage_kind(const Instruction& instruction);
  static bool has_kernel(const Stage& stage);
  bool choose_kernel(Instruction& instruction) const;
  void check() const;
  void check(const Instruction& instruction) const;
  Register new_register(Kind kind);
  Register add_scalar();
  bool is_result(Register id) const;
  void order_by_stage();
  void note_uses();
  void note_phases();
  void note_in_phase(const Instruction& instruction, const std::vector<size_t>& made_in);
  bool has_memory(Register id) const;  // of its own: a result that is no bool
  void assign_slots();

  std::vector<int64_t> sizes_;
  std::vector<OperandKind> operands_;
  std::vector<Register> numbers_;  // their registers
  std::vector<BoundScalar> run_numbers_, run_seeds_;
  std::vector<TensorInput> tensors_;
  std::vector<Output> outputs_;
  std::vector<RowSum> row_sums_;
  std::vector<RowOp> row_ops_;
  std::vector<std::vector<int64_t>> statistics_;  // sizes of these results
  size_t row_operands_ = 0;
  int64_t row_length_ = 0;  // of sums and steps
  std::vector<RegisterInfo> registers_;
  std::vector<Instruction> scalar_instructions_, instructions_;
  std::vector<Stage> stages_;
  std::vector<Phase> phases_;
  std::shared_ptr<ProgramKernels> kernels_;  // null: it has none
  int64_t work_ = 0;                         // done so far, until kernels are requested
  std::vector<float> scalars_;
  std::vector<uint64_t> seeds_;
  size_t slot_count_ = 0;         // of scratch memory, tensors' own included
  size_t block_slot_count_ = 0;   // those of which each block has one
  std::vector<Register> blocks_;  // that have these
  bool draws_ = false;            // random numbers, whose positions are row-major
};

}  // namespace ltc::torchscript
