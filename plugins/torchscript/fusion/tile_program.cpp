#include "tile_program.h"

#include <c10/util/StringUtil.h>

#include <algorithm>
#include <bit>

#include "formulas.h"

namespace ltc::torchscript {

int TileProgram::operands_of(const Instruction& instruction) {
  return instruction.primitive == Primitive::kCount ? 0 : operand_count(instruction.primitive);
}

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
  const Register id = add_scalar();
  numbers_.push_back(id);
  operands_.push_back(OperandKind::kNumber);
  return id;
}

size_t TileProgram::add_seed() {
  seeds_.push_back(0);
  operands_.push_back(OperandKind::kSeed);
  return seeds_.size() - 1;
}

TileProgram::Register TileProgram::add_scalar() {
  const Register id = new_register(Kind::kScalar);
  registers_[id].slot = static_cast<uint16_t>(scalars_.size());
  scalars_.push_back(0);
  return id;
}

TileProgram::Register TileProgram::add_literal(float value) {
  for (Register id = 0; id < registers_.size(); ++id) {
    if (literal(id) && std::bit_cast<uint32_t>(*literal(id)) == std::bit_cast<uint32_t>(value)) return id;
  }
  const Register id = add_scalar();
  registers_[id].is_literal = true;
  scalars_[registers_[id].slot] = value;
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
  instruction.out = all ? add_scalar() : new_register(Kind::kTile);
  (all ? scalar_instructions_ : instructions_).push_back(instruction);
  return instruction.out;
}

TileProgram::Register TileProgram::find_or_add(Primitive primitive, const Register* operands) {
  for (const auto* instructions : {&scalar_instructions_, &instructions_}) {
    const auto same = std::ranges::find_if(*instructions, [&](const Instruction& one) {
      return one.primitive == primitive && std::equal(operands, operands + operand_count(primitive), one.operands);
    });
    if (same != instructions->end()) return same->out;
  }
  return add(primitive, operands);
}

TileProgram::Register TileProgram::add_uniform(size_t seed, size_t offset) {
  const Register out = new_register(Kind::kTile);
  instructions_.push_back({Primitive::kCount, nullptr, out, {static_cast<Register>(seed), static_cast<Register>(offset)}});
  draws_ = true;
  return out;
}

void TileProgram::add_output(Register result, bool is_bool) { outputs_.push_back({result, is_bool}); }

void TileProgram::add_row_sum(Register value, int64_t length, double scale, std::vector<int64_t> sizes) {
  row_sums_.push_back({value, scale, std::move(sizes)});
  row_length_ = length;
}

// Whether it is wanted when all instructions have run.
bool TileProgram::is_result(Register id) const {
  return std::ranges::find(outputs_, id, &Output::id) != outputs_.end() ||
         std::ranges::find(row_sums_, id, &RowSum::id) != row_sums_.end();
}

void TileProgram::finish() {
  order_by_stage();
  note_uses();
  assign_slots();
}

void TileProgram::note_uses() {
  for (uint32_t i = 0; i < instructions_.size(); ++i) {
    const Instruction& instruction = instructions_[i];
    for (int k = 0; k < operands_of(instruction); ++k) registers_[instruction.operands[k]].last_use = i;
  }
  for (Output& output : outputs_) {
    const auto made = std::ranges::find(instructions_, output.id, &Instruction::out);
    TORCH_INTERNAL_ASSERT(made != instructions_.end(), "an output that no instruction makes");
    output.made_by = static_cast<uint32_t>(made - instructions_.begin());
  }
}

// Tiles share scratch memory as their lives allow. Results have memory of their own; bools are tiles until the end. Each tensor
// has a slot too, for elements that do not lie one after the other.
void TileProgram::assign_slots() {
  std::vector<bool> is_kept(registers_.size(), false);
  for (Register id = 0; id < registers_.size(); ++id) is_kept[id] = is_result(id);
  std::vector<uint16_t> free;
  uint16_t count = 0;
  for (uint32_t i = 0; i < instructions_.size(); ++i) {
    const Instruction& instruction = instructions_[i];
    if (free.empty()) free.push_back(count++);
    registers_[instruction.out].slot = free.back();
    free.pop_back();
    for (int k = 0; k < operands_of(instruction); ++k) {
      const Register id = instruction.operands[k];
      if (registers_[id].kind != Kind::kTile || registers_[id].last_use != i || is_kept[id]) continue;
      is_kept[id] = true;  // freed once, however often the instruction names it
      free.push_back(registers_[id].slot);
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
  for (const RowSum& sum : row_sums_) text += c10::str("    sums of rows of ", row_length_, ", r", sum.id, "\n");
  return text;
}

}  // namespace ltc::torchscript
