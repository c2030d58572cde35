#include "tile_program.h"

#include <c10/util/StringUtil.h>

#include <algorithm>

#include "formulas.h"

namespace ltc::torchscript {

TileProgram::Register TileProgram::new_register(Kind kind) {
  registers_.push_back({kind});
  return static_cast<Register>(registers_.size() - 1);
}

TileProgram::Register TileProgram::add_tensor(bool is_bool, bool is_full) {
  const Register id = new_register(Kind::kTensor);
  registers_[id].slot = static_cast<uint16_t>(tensors_.size());
  tensors_.push_back({id, is_bool, is_full});
  operands_.push_back(OperandKind::kTensor);
  return id;
}

TileProgram::Register TileProgram::add_number() {
  const Register id = add_literal(0);
  registers_[id].is_literal = false;
  numbers_.push_back(id);
  operands_.push_back(OperandKind::kNumber);
  return id;
}

size_t TileProgram::add_seed() {
  seeds_.push_back(0);
  operands_.push_back(OperandKind::kSeed);
  return seeds_.size() - 1;
}

TileProgram::Register TileProgram::add_literal(float value) {
  const Register id = new_register(Kind::kScalar);
  registers_[id].slot = static_cast<uint16_t>(scalars_.size());
  registers_[id].is_literal = true;
  scalars_.push_back(value);
  return id;
}

const float* TileProgram::literal(Register id) const {
  return registers_[id].is_literal ? &scalars_[registers_[id].slot] : nullptr;
}

TileProgram::Register TileProgram::add(Primitive primitive, const Register* operands) {
  Instruction instruction{primitive, nullptr, 0, {}};
  unsigned scalars = 0;
  const int count = operand_count(primitive);
  for (int i = 0; i < count; ++i) {
    instruction.operands[i] = operands[i];
    scalars |= unsigned{is_scalar(operands[i])} << i;
  }
  const bool all = scalars == (1u << count) - 1;
  instruction.kernel = tile_kernels().of[static_cast<int>(primitive)][scalars];
  instruction.out = all ? add_literal(0) : new_register(Kind::kTile);
  registers_[instruction.out].is_literal = false;
  (all ? scalar_instructions_ : instructions_).push_back(instruction);
  return instruction.out;
}

TileProgram::Register TileProgram::add_uniform(size_t seed, size_t offset) {
  const Register out = new_register(Kind::kTile);
  instructions_.push_back({Primitive::kCount, nullptr, out, {static_cast<Register>(seed), static_cast<Register>(offset)}});
  draws_ = true;
  return out;
}

void TileProgram::add_output(Register result, bool is_bool) {
  const auto made = std::find_if(instructions_.begin(), instructions_.end(), [&](const auto& one) { return one.out == result; });
  TORCH_INTERNAL_ASSERT(made != instructions_.end(), "an output that no instruction makes");
  outputs_.push_back({result, is_bool, static_cast<uint32_t>(made - instructions_.begin())});
}

void TileProgram::finish() {
  for (uint32_t i = 0; i < instructions_.size(); ++i) {
    const Instruction& instruction = instructions_[i];
    if (instruction.primitive == Primitive::kCount) continue;
    for (int k = 0; k < operand_count(instruction.primitive); ++k) registers_[instruction.operands[k]].last_use = i;
  }
  assign_slots();
}

// Tiles share scratch memory as their lives allow. Results have memory of their own; bools are tiles until the end. Each tensor
// has a slot too, for elements that do not lie one after the other.
void TileProgram::assign_slots() {
  std::vector<bool> is_kept(registers_.size(), false);
  for (const Output& output : outputs_) is_kept[output.id] = true;
  std::vector<uint16_t> free;
  uint16_t count = 0;
  for (uint32_t i = 0; i < instructions_.size(); ++i) {
    const Instruction& instruction = instructions_[i];
    if (free.empty()) free.push_back(count++);
    registers_[instruction.out].slot = free.back();
    free.pop_back();
    if (instruction.primitive == Primitive::kCount) continue;
    for (int k = 0; k < operand_count(instruction.primitive); ++k) {
      RegisterInfo& operand = registers_[instruction.operands[k]];
      if (operand.kind != Kind::kTile || operand.last_use != i || is_kept[instruction.operands[k]]) continue;
      operand.last_use = kNever - 1;  // freed once, however often the instruction names it
      free.push_back(operand.slot);
    }
  }
  slot_count_ = count + tensors_.size();
}

std::string TileProgram::text() const {
  std::string text;
  for (const auto* instructions : {&scalar_instructions_, &instructions_}) {
    for (const Instruction& instruction : *instructions) {
      const bool draws = instruction.primitive == Primitive::kCount;
      text += c10::str("    r", instruction.out, " = ", draws ? "uniform" : name_of(instruction.primitive), "(");
      for (int k = 0; k < (draws ? 2 : operand_count(instruction.primitive)); ++k) {
        const Register id = instruction.operands[k];
        text += k ? ", " : "";
        text += draws ? c10::str("seed", id) : literal(id) ? c10::str(*literal(id)) : c10::str("r", id);
      }
      text += ")\n";
    }
  }
  return text;
}

}  // namespace ltc::torchscript
