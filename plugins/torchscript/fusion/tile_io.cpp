// Tile programs as bytes: what was built, from which finish() makes the rest.
#include <algorithm>

#include "ltc/archive.hpp"
#include "torchscript/fusion/formulas.h"
#include "torchscript/fusion/tile_program.h"

namespace ltc::torchscript {

using plugin::Archive;

static void archive(Archive& io, TileProgram::RunScalar& scalar) { io(scalar.index, scalar.dtype); }
void archive(Archive& io, TileProgram::BoundScalar& scalar) { io(scalar.from, scalar.place); }
void archive(Archive& io, TileProgram::RegisterInfo& info) { io(info.kind, info.is_literal, info.slot); }
void archive(Archive& io, TileProgram::TensorInput& input) { io(input.id, input.is_bool, input.is_full); }
void archive(Archive& io, TileProgram::Output& output) { io(output.id, output.is_bool); }
void archive(Archive& io, TileProgram::RowSum& sum) { io(sum.id, sum.scale, sum.sizes); }
void archive(Archive& io, TileProgram::RowOp& op) {
  std::vector<size_t> rows(op.weight_and_bias.begin(), op.weight_and_bias.end());
  io(op.function, op.eps, rows, op.statistics);
  op.weight_and_bias.assign(rows.begin(), rows.end());
}
void archive(Archive& io, TileProgram::Instruction& instruction) {
  io(instruction.code, instruction.primitive, instruction.out, instruction.row_op);
  for (TileProgram::Register& operand : instruction.operands) io(operand);
}

void archive(Archive& io, TileProgram& tiles) {
  io(tiles.sizes_, tiles.operands_, tiles.numbers_, tiles.run_numbers_, tiles.run_seeds_, tiles.tensors_, tiles.outputs_,
     tiles.row_sums_, tiles.row_ops_, tiles.statistics_, tiles.row_operands_, tiles.row_length_, tiles.registers_,
     tiles.scalar_instructions_, tiles.instructions_, tiles.scalars_, tiles.seeds_, tiles.draws_);
  if (!io.reads()) return;
  tiles.check();
  for (auto* instructions : {&tiles.scalar_instructions_, &tiles.instructions_}) {
    for (TileProgram::Instruction& instruction : *instructions) tiles.choose_kernel(instruction);
  }
  tiles.finish();
}

// All that a damaged file could send outside of an array.
void TileProgram::check() const {
  const auto require = [](bool condition) {
    if (!condition) Archive::refuse();
  };
  const auto count_of = [this](OperandKind kind) { return static_cast<size_t>(std::ranges::count(operands_, kind)); };
  const auto is_register = [this](Register id) { return id < registers_.size(); };
  require(count_of(OperandKind::kTensor) == tensors_.size() && count_of(OperandKind::kNumber) == numbers_.size() &&
          count_of(OperandKind::kRow) == row_operands_ && count_of(OperandKind::kSeed) <= seeds_.size() &&
          tensors_.size() + numbers_.size() + row_operands_ + count_of(OperandKind::kSeed) == operands_.size());
  for (const RegisterInfo& info : registers_) {
    require(info.kind <= Kind::kTile && (info.kind != Kind::kScalar || info.slot < scalars_.size()) &&
            (info.kind != Kind::kTensor || info.slot < tensors_.size()));
    require(!info.is_literal || info.kind == Kind::kScalar);
  }
  for (const Register id : numbers_) require(is_register(id) && is_scalar(id));
  for (const BoundScalar& scalar : run_numbers_) require(scalar.place < scalars_.size());
  for (const BoundScalar& scalar : run_seeds_) require(scalar.place < seeds_.size());
  for (const TensorInput& input : tensors_) require(is_register(input.id) && registers_[input.id].kind == Kind::kTensor);
  for (const Output& output : outputs_) require(is_register(output.id) && registers_[output.id].kind == Kind::kTile);
  for (const RowSum& sum : row_sums_) require(is_register(sum.id) && row_length_ > 0);
  for (const RowOp& op : row_ops_) {
    require(op.function <= RowFunction::kNormalize && row_length_ > 0 && op.statistics <= statistics_.size());
    for (const size_t row : op.weight_and_bias) require(row < row_operands_);
  }
  for (const Instruction& instruction : scalar_instructions_) {
    require(instruction.code == Code::kPrimitive && is_register(instruction.out) && is_scalar(instruction.out));
    check(instruction);
  }
  for (const Instruction& instruction : instructions_) {
    require(is_register(instruction.out) && registers_[instruction.out].kind == Kind::kTile);
    check(instruction);
  }
}

void TileProgram::check(const Instruction& instruction) const {
  bool good = instruction.code <= Code::kRowOp;
  if (instruction.code == Code::kPrimitive) good = good && instruction.primitive < Primitive::kCount;
  if (instruction.code == Code::kRowOp) good = good && instruction.row_op < row_ops_.size();
  if (instruction.code == Code::kUniform) {
    good = good && instruction.operands[0] < seeds_.size() && instruction.operands[1] < seeds_.size();
  }
  for (int k = 0; good && k < operands_of(instruction); ++k) {
    const Register id = instruction.operands[k];
    good = id < registers_.size() && (!is_scalar(instruction.out) || is_scalar(id));
  }
  if (!good) Archive::refuse();
}

}  // namespace ltc::torchscript
