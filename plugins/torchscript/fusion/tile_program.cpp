#include "torchscript/fusion/tile_program.h"

#include <c10/util/StringUtil.h>

#include <algorithm>
#include <bit>

#include "torchscript/fusion/formulas.h"

namespace ltc::torchscript {

int TileProgram::operands_of(const Instruction& instruction) {
  switch (instruction.code) {
    case Code::kPrimitive: return torchscript::operand_count(instruction.primitive);
    case Code::kUniform: return 0;
    case Code::kRowOp: return 1;
  }
  return 0;
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

TileProgram::Register TileProgram::add_number(RunScalar from) {
  const Register id = add_scalar();
  run_numbers_.push_back({from, registers_[id].slot});
  return id;
}

size_t TileProgram::add_seed() {
  seeds_.push_back(0);
  operands_.push_back(OperandKind::kSeed);
  return seeds_.size() - 1;
}

size_t TileProgram::add_seed(RunScalar from) {
  run_seeds_.push_back({from, static_cast<uint16_t>(seeds_.size())});
  seeds_.push_back(0);
  return seeds_.size() - 1;
}

size_t TileProgram::add_row_operand() {
  operands_.push_back(OperandKind::kRow);
  return row_operands_++;
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
  Instruction instruction{Code::kPrimitive, primitive, nullptr, 0, {}};
  std::copy_n(operands, torchscript::operand_count(primitive), instruction.operands);
  const bool all = choose_kernel(instruction);
  instruction.out = all ? add_scalar() : new_register(Kind::kTile);
  (all ? scalar_instructions_ : instructions_).push_back(instruction);
  return instruction.out;
}

// By which operands are scalars. Returns whether all are.
bool TileProgram::choose_kernel(Instruction& instruction) const {
  if (instruction.code != Code::kPrimitive) return false;
  unsigned scalars = 0;
  const int count = torchscript::operand_count(instruction.primitive);
  for (int i = 0; i < count; ++i) scalars |= unsigned{is_scalar(instruction.operands[i])} << i;
  instruction.kernel = tile_kernels().of[static_cast<int>(instruction.primitive)][scalars];
  return scalars == (1u << count) - 1;
}

TileProgram::Register TileProgram::find_or_add(Primitive primitive, const Register* operands) {
  for (const auto* instructions : {&scalar_instructions_, &instructions_}) {
    const auto same = std::ranges::find_if(*instructions, [&](const Instruction& one) {
      return one.code == Code::kPrimitive && one.primitive == primitive &&
             std::equal(operands, operands + torchscript::operand_count(primitive), one.operands);
    });
    if (same != instructions->end()) return same->out;
  }
  return add(primitive, operands);
}

TileProgram::Register TileProgram::add_uniform(size_t seed, size_t offset) {
  const Register out = new_register(Kind::kTile);
  instructions_.push_back(
      {Code::kUniform, Primitive::kCount, nullptr, out, {static_cast<Register>(seed), static_cast<Register>(offset)}});
  draws_ = true;
  return out;
}

TileProgram::Register TileProgram::add_row_step(RowFunction function, Register in, int64_t length, double eps,
                                                c10::ArrayRef<size_t> weight_and_bias) {
  const Register out = new_register(Kind::kTile);
  const auto number = static_cast<uint16_t>(row_ops_.size());
  row_ops_.push_back({function, eps, {weight_and_bias.begin(), weight_and_bias.end()}});
  instructions_.push_back({Code::kRowOp, Primitive::kCount, nullptr, out, {in}, number});
  row_length_ = length;
  return out;
}

void TileProgram::add_output(Register result, bool is_bool) { outputs_.push_back({result, is_bool}); }

void TileProgram::add_row_sum(Register value, int64_t length, double scale, std::vector<int64_t> sizes) {
  row_sums_.push_back({value, scale, std::move(sizes)});
  row_length_ = length;
}

void TileProgram::add_row_statistics(Register normalized, const std::vector<int64_t>& sizes) {
  const auto made = std::ranges::find(instructions_, normalized, &Instruction::out);
  row_ops_[made->row_op].statistics = statistics_.size();
  statistics_.insert(statistics_.end(), 2, sizes);
}

// Whether it is wanted when all instructions have run.
bool TileProgram::is_result(Register id) const {
  return std::ranges::find(outputs_, id, &Output::id) != outputs_.end() ||
         std::ranges::find(row_sums_, id, &RowSum::id) != row_sums_.end();
}

bool TileProgram::has_memory(Register id) const {
  const auto output = std::ranges::find(outputs_, id, &Output::id);
  return output != outputs_.end() && !output->is_bool;
}

void TileProgram::finish() {
  order_by_stage();
  note_uses();
  note_phases();
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

namespace {

void add_once(std::vector<uint16_t>& to, uint16_t index) {
  if (std::ranges::find(to, index) == to.end()) to.push_back(index);
}

}  // namespace

void TileProgram::note_phases() {
  std::vector<size_t> made_in(registers_.size(), 0);  // which phase
  phases_.push_back({});
  for (size_t i = 0; i < stages_.size(); ++i) {
    const Stage& stage = stages_[i];
    const bool is_steps = stage.number % kStageKinds == kRowOps;
    for (uint32_t k = stage.begin; k < stage.end; ++k) {
      made_in[instructions_[k].out] = phases_.size() - 1;
      note_in_phase(instructions_[k], made_in);
    }
    if (is_steps) {
      phases_.back().first_step = stage.begin, phases_.back().end_steps = stage.end;
      phases_.push_back({.begin = i + 1, .end = i + 1});
    } else {
      phases_.back().end = i + 1;
    }
  }
}

// Notes the values that the instruction, one of the last phase, needs for its tiles from elsewhere, and those that it leaves
// there.
void TileProgram::note_in_phase(const Instruction& instruction, const std::vector<size_t>& made_in) {
  const bool is_step = instruction.code == Code::kRowOp;
  Phase& phase = phases_.back();
  const auto note_output = [&](std::vector<uint16_t>& to, Register id) {
    const auto output = std::ranges::find(outputs_, id, &Output::id);
    if (!is_step && output != outputs_.end()) add_once(to, static_cast<uint16_t>(output - outputs_.begin()));
  };
  registers_[instruction.out].is_block = is_step;
  note_output(phase.makes, instruction.out);
  for (int k = 0; k < operands_of(instruction); ++k) {
    const Register id = instruction.operands[k];
    RegisterInfo& info = registers_[id];
    if (info.kind == Kind::kTensor) add_once(phase.tensors, info.slot);
    if (info.kind != Kind::kTile || (!is_step && made_in[id] + 1 == phases_.size())) continue;
    info.is_block = true;
    if (has_memory(id)) note_output(phase.reads, id);
  }
}

// Tiles share scratch memory as their lives allow, and so do what blocks have one of. Results have memory of their own; bools are
// tiles until the end. Each tensor has a slot too, for elements that do not lie one after the other.
void TileProgram::assign_slots() {
  struct Slots {
    std::vector<uint16_t> free = {};
    uint16_t count = 0;
  } tiles, blocks;
  const auto slots = [&](Register id) -> Slots& { return registers_[id].is_block && !has_memory(id) ? blocks : tiles; };
  std::vector<bool> is_kept(registers_.size(), false);
  for (Register id = 0; id < registers_.size(); ++id) is_kept[id] = is_result(id);
  for (uint32_t i = 0; i < instructions_.size(); ++i) {
    const Instruction& instruction = instructions_[i];
    const auto take = [&] {
      Slots& of = slots(instruction.out);
      if (of.free.empty()) of.free.push_back(of.count++);
      registers_[instruction.out].slot = of.free.back();
      of.free.pop_back();
    };
    const bool is_in_place = instruction.code == Code::kRowOp;
    if (!is_in_place) take();
    for (int k = 0; k < operands_of(instruction); ++k) {
      const Register id = instruction.operands[k];
      if (registers_[id].kind != Kind::kTile || registers_[id].last_use != i || is_kept[id]) continue;
      is_kept[id] = true;  // freed once, however often the instruction names it
      slots(id).free.push_back(registers_[id].slot);
    }
    if (is_in_place) take();
  }
  slot_count_ = tiles.count + tensors_.size();
  block_slot_count_ = blocks.count;
  for (Register id = 0; id < registers_.size(); ++id) {
    if (registers_[id].is_block && !has_memory(id)) blocks_.push_back(id);
  }
}

std::string TileProgram::text() const {
  std::string text;
  for (const auto* instructions : {&scalar_instructions_, &instructions_}) {
    for (const Instruction& instruction : *instructions) {
      if (instruction.code == Code::kRowOp) {
        const char* const name = row_ops_[instruction.row_op].function == RowFunction::kSoftmax ? "softmax" : "normalize";
        text += c10::str("    r", instruction.out, " = ", name, "(r", instruction.operands[0], "), rows of ", row_length_, "\n");
        continue;
      }
      const bool draws = instruction.code == Code::kUniform;
      text += c10::str("    r", instruction.out, " = ", draws ? "uniform" : name_of(instruction.primitive), "(");
      for (int k = 0; k < (draws ? 2 : torchscript::operand_count(instruction.primitive)); ++k) {
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
