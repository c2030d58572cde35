// A cluster of element-wise nodes as one loop over tiles: each primitive runs over a few kilobytes that stay in the L1 cache, so
// that memory is read and written once for the whole cluster. Programs that run often or for long get compiled kernels meanwhile
// (tile_stages.cpp), whose results are the same to the last bit.
#pragma once
#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "primitives.h"
#include "program_kernels.h"

namespace ltc::torchscript {

// Elements of a tile; 4 KB. A multiple of 4, as random numbers come in fours.
inline constexpr int64_t kTile = 1024;

class TileProgram {
 public:
  using Register = uint16_t;

  // ---- building, in this order: inputs and instructions as they come, then outputs, then finish(), perhaps add_kernels()

  explicit TileProgram(std::vector<int64_t> sizes) : sizes_(std::move(sizes)) {}

  // Operands of run(), in the order of these calls. `is_full`: of the program's sizes, not broadcast to them.
  Register add_tensor(bool is_bool, bool is_full);
  Register add_number();
  size_t add_seed();  // an integer, for add_uniform

  Register add_literal(float value);
  Register add(Primitive primitive, const Register* operands);
  // The same, or what was added before with this primitive and these operands.
  Register find_or_add(Primitive primitive, const Register* operands);
  // Random numbers in [0, 1) by their row-major position.
  Register add_uniform(size_t seed, size_t offset);
  void add_output(Register result, bool is_bool);  // the result of an instruction
  // One more result: the sums of rows of so many elements, whole vectors, times `scale`. All of a program have one length.
  void add_row_sum(Register value, int64_t length, double scale, std::vector<int64_t> sizes);
  void finish();
  void add_kernels(const std::shared_ptr<ProgramKernels>& kernels);

  bool is_scalar(Register id) const { return registers_[id].kind == Kind::kScalar; }
  // The value, where it is known by now.
  const float* literal(Register id) const;
  std::string text() const;

  // Takes the operands from the stack and leaves the results there. A result takes over the memory of an operand that was moved
  // here and that nobody else has. One run at a time.
  void run(std::vector<c10::IValue>& stack);

 private:
  enum class Kind : uint8_t { kTensor, kScalar, kTile };
  static constexpr uint32_t kNever = UINT32_MAX;

  struct RegisterInfo {
    Kind kind;
    bool is_literal = false;
    uint16_t slot = 0;           // of a tile: its scratch memory; of a scalar: its place in scalars_; of a tensor: its index
    uint32_t last_use = kNever;  // instruction
  };
  struct Instruction {
    Primitive primitive;  // kCount: random numbers, seeds in `operands`
    TileKernel kernel;
    Register out;
    Register operands[kMostOperands];
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
  // Instructions that run as one kernel once that is compiled.
  struct Stage {
    int number = 0;
    uint32_t begin = 0, end = 0;
    std::optional<size_t> kernel = {};                 // of kernels_
    std::vector<Register> buffers = {}, scalars = {};  // its arguments
  };
  enum class OperandKind : uint8_t { kTensor, kNumber, kSeed };
  class Run;
  class StageWriter;

  static int operands_of(const Instruction& instruction);  // 0 of random numbers: those are seeds
  uint32_t instruction_count() const { return static_cast<uint32_t>(instructions_.size()); }
  Register new_register(Kind kind);
  Register add_scalar();
  bool is_result(Register id) const;
  void order_by_stage();
  void note_uses();
  void assign_slots();

  std::vector<int64_t> sizes_;
  std::vector<OperandKind> operands_;
  std::vector<Register> numbers_;  // their registers
  std::vector<TensorInput> tensors_;
  std::vector<Output> outputs_;
  std::vector<RowSum> row_sums_;
  int64_t row_length_ = 0;  // of these
  std::vector<RegisterInfo> registers_;
  std::vector<Instruction> scalar_instructions_, instructions_;
  std::vector<Stage> stages_;
  std::shared_ptr<ProgramKernels> kernels_;  // null: it has none
  int64_t work_ = 0;                         // done so far, until kernels are requested
  std::vector<float> scalars_;
  std::vector<uint64_t> seeds_;
  size_t slot_count_ = 0;  // of scratch memory, tensors' own included
  bool draws_ = false;     // random numbers, whose positions are row-major
};

}  // namespace ltc::torchscript
