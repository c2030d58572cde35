// How a tile program's instructions run: those of a stage in turn, one tile after the other, or as one compiled kernel.
#include <algorithm>

#include "kernels/print/render.h"
#include "torchscript/fusion/formulas.h"
#include "torchscript/fusion/tile_program.h"

namespace ltc::torchscript {
namespace {

constexpr std::string_view kFormulas[] = {
#define X(name, operands, result, formula) formula,
    LTC_TILE_PRIMITIVES(X)
#undef X
};

}  // namespace

int TileProgram::stage_kind(const Instruction& instruction) {
  if (instruction.code == Code::kRowOp) return kRowOps;
  const bool compiles = instruction.code == Code::kPrimitive && !kFormulas[static_cast<int>(instruction.primitive)].empty();
  return compiles ? kCompiled : kInterpreted;
}

// An instruction is in the first stage of its kind that comes not before what it reads.
void TileProgram::order_by_stage() {
  std::vector<int> stage_of(registers_.size(), 0);
  std::vector<std::pair<int, Instruction>> ordered;
  for (const Instruction& instruction : instructions_) {
    const int kind = stage_kind(instruction);
    int stage = kind;
    for (int k = 0; k < operands_of(instruction); ++k) {
      const int needed = stage_of[instruction.operands[k]];
      stage = std::max(stage, needed + (kind - needed % kStageKinds + kStageKinds) % kStageKinds);
    }
    stage_of[instruction.out] = stage;
    ordered.emplace_back(stage, instruction);
  }
  std::ranges::stable_sort(ordered, {}, [](const auto& entry) { return entry.first; });
  instructions_.clear();
  for (const auto& [stage, instruction] : ordered) {
    if (stages_.empty() || stages_.back().number != stage) stages_.push_back({.number = stage, .begin = instruction_count()});
    instructions_.push_back(instruction);
    stages_.back().end = instruction_count();
  }
}

// Writes a stage's kernel: reads what comes from outside, computes, writes what goes there. All reading comes before all writing,
// so that a result may lie where an operand does.
class TileProgram::StageWriter {
 public:
  StageWriter(const TileProgram& program, Stage& stage)
      : program_(program), stage_(stage), builder_(kernel_, kTile), refs_(program.registers_.size(), kernels::kNoRef) {}

  std::string write() {
    for (uint32_t i = stage_.begin; i < stage_.end; ++i) compute(program_.instructions_[i]);
    for (uint32_t i = stage_.begin; i < stage_.end; ++i) {
      const Register out = program_.instructions_[i].out;
      if (is_read_outside(out)) store(out);
    }
    for (const auto& buffer : kernel_.buffers) stage_.buffers.push_back(static_cast<Register>(buffer.value));
    for (const auto& scalar : kernel_.scalars) stage_.scalars.push_back(program_.registers_[scalar.value].slot);
    return kernels::render(kernel_, kernels::host_vector_dialect()).text;
  }

 private:
  bool is_read_outside(Register id) const {
    if (program_.registers_[id].last_use != kNever && program_.registers_[id].last_use >= stage_.end) return true;
    return program_.is_result(id);
  }

  void compute(const Instruction& instruction) {
    std::vector<kernels::Ref> operands;
    for (int k = 0; k < operands_of(instruction); ++k) operands.push_back(operand(instruction.operands[k]));
    refs_[instruction.out] = builder_.add({.code = kernels::Code::kFormula,
                                           .dtype = LTC_F32,
                                           .args = std::move(operands),
                                           .of = LTC_F32,
                                           .formula = kFormulas[static_cast<int>(instruction.primitive)]});
  }

  kernels::Ref operand(Register id) {
    if (refs_[id] != kernels::kNoRef) return refs_[id];
    kernels::Inst inst{.dtype = LTC_F32, .of = LTC_F32};
    if (const float* literal = program_.literal(id)) {
      inst.code = kernels::Code::kNumber;
      inst.real = *literal;
    } else if (program_.is_scalar(id)) {
      inst.code = kernels::Code::kScalar;
      inst.slot = builder_.scalar(id, LTC_F32);
    } else {
      inst.code = kernels::Code::kLoad;
      inst.index = kernel_.space.of_var(kernel_.item);
      inst.slot = builder_.buffer(id, LTC_F32, false);
    }
    return refs_[id] = builder_.add(std::move(inst));
  }

  void store(Register id) {
    builder_.add({.code = kernels::Code::kStore,
                  .dtype = LTC_F32,
                  .args = {refs_[id]},
                  .index = kernel_.space.of_var(kernel_.item),
                  .slot = builder_.buffer(id, LTC_F32, true)});
  }

  const TileProgram& program_;
  Stage& stage_;
  kernels::Kernel kernel_;
  kernels::Builder builder_;
  std::vector<kernels::Ref> refs_;  // by register
};

// One instruction by itself is compiled ahead of time.
bool TileProgram::has_kernel(const Stage& stage) { return stage.number % kStageKinds == kCompiled && stage.size() > 1; }

void TileProgram::use_kernels(std::shared_ptr<ProgramKernels> kernels) {
  if (std::ranges::any_of(stages_, has_kernel)) kernels_ = std::move(kernels);
}

void TileProgram::write_kernels(ProgramKernels& kernels) {
  for (Stage& stage : stages_) {
    if (has_kernel(stage)) stage.kernel = kernels.add(StageWriter(*this, stage).write());
  }
}

}  // namespace ltc::torchscript
