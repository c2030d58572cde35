// Executables as bytes, and back.
#include <c10/util/StringUtil.h>

#include <algorithm>
#include <mutex>
#include <set>
#include <unordered_map>

#include "ltc/archive.hpp"
#include "torchscript/compile.h"
#include "torchscript/graph/constant.h"
#include "torchscript/graph/errors.h"
#include "torchscript/graph/schema.h"
#include "torchscript/rewrites/rewrites.h"

namespace ltc::torchscript {

using plugin::Archive;

static void archive(Archive& io, TensorSpec& spec) { io(spec.dtype, spec.sizes); }
void archive(Archive& io, Executable::SlotScalar& scalar) { io(scalar.slot, scalar.index, scalar.dtype); }
void archive(Archive& io, Executable::TileFacts& facts) { io(facts.label, facts.nodes); }
void archive(Archive& io, Executable::Sized::Sizes& sizes) { io(sizes.index, sizes.sizes); }
void archive(Archive& io, Executable::Sized::LongInstruction& instruction) { io(instruction.index, instruction.threads); }
void archive(Archive& io, Executable::Sized::SlotConstant& constant) {
  Constant saved(constant.stand_in, at::kCPU);
  io(constant.slot, saved);
  constant.stand_in = saved.value(at::kCPU);
}
void archive(Archive& io, Executable::Sized& sized) {
  io(sized.symbols, sized.slots, sized.inputs, sized.tiles, sized.constants, sized.long_instructions);
}
void archive(Archive& io, Executable::Input& input) {
  uint32_t slot = input.slot.value_or(LTC_NONE);
  io(input.spec, slot);
  input.slot = slot == LTC_NONE ? std::nullopt : std::optional(slot);
}
void archive(Archive& io, Executable::Operand& operand) {
  uint32_t bits = operand.slot << 1 | operand.last;
  io(bits);
  operand = {bits >> 1, bits & 1};
}

namespace {

constexpr std::string_view kFormat = "torchscript executable 1";  // changes with the fields

// Notes of instructions are literals in an executable that was compiled. There are few, and they live as long as the process.
const char* as_literal(const std::string& text) {
  static std::mutex mutex;
  static auto& texts = *new std::set<std::string>;
  const std::lock_guard lock(mutex);
  return texts.insert(text).first->c_str();
}

}  // namespace

// An instruction with numbers in place of what only this process has.
struct Executable::SavedInstruction {
  Instruction instruction;
  uint32_t op = LTC_NONE, twin = LTC_NONE, note = 0;
  uint32_t direct = LTC_NONE;
};
void archive(Archive& io, Executable::SavedInstruction& saved) {
  auto& it = saved.instruction;
  io(it.kind, it.layout, it.threads, it.on_host, it.node, it.first_operand, it.operand_count, it.first_result, it.result_count,
     it.tiles, it.dim, it.rows, saved.op, saved.twin, saved.note, saved.direct);
}

// Operators, kernels and notes that instructions name, each once.
struct Executable::Names {
  std::vector<std::string> ops;  // with the overload behind a dot
  std::vector<std::string> notes;

  uint32_t number(const std::optional<c10::OperatorHandle>& op) {
    return op ? number_in(op_numbers_, c10::toString(op->operator_name()), ops) : LTC_NONE;
  }
  uint32_t number(const char* note) { return number_in(note_numbers_, note, notes); }

  // Fails with UNSUPPORTED if there is no such operator here.
  std::optional<c10::OperatorHandle> op(uint32_t number) const {
    if (number == LTC_NONE) return std::nullopt;
    if (number >= ops.size()) Archive::refuse();
    const auto op = find_operator(ops[number]);
    if (!op) throw Failure(LTC_UNSUPPORTED, c10::str("[load] ", ops[number], " is no operator of this libtorch"));
    return op;
  }
  Instruction resolve(const SavedInstruction& saved) const {
    if (saved.note >= notes.size()) Archive::refuse();
    Instruction instruction = saved.instruction;
    instruction.op = op(saved.op);
    instruction.twin = op(saved.twin);
    instruction.note = as_literal(notes[saved.note]);
    if (saved.direct != LTC_NONE && !(instruction.direct = direct_call(saved.direct))) Archive::refuse();
    return instruction;
  }

 private:
  using Numbers = std::unordered_map<std::string, uint32_t>;
  static uint32_t number_in(Numbers& numbers, std::string name, std::vector<std::string>& all) {
    const auto [known, is_new] = numbers.try_emplace(std::move(name), static_cast<uint32_t>(all.size()));
    if (is_new) all.push_back(known->first);
    return known->second;
  }
  Numbers op_numbers_, note_numbers_;
};

// A constant that a run sets has no value of its own.
std::vector<Constant> Executable::saved_constants() const {
  std::vector<bool> is_sized(slots_.size(), false);
  for (const auto& sized : sized_.constants) is_sized[sized.slot] = true;
  std::vector<Constant> constants;
  for (size_t slot = 0; slot < slots_.size(); ++slot) {
    if (is_constant_[slot]) constants.push_back(is_sized[slot] ? Constant() : Constant(slots_[slot], device_));
  }
  return constants;
}

std::string Executable::save() const {
  const std::lock_guard alone(mutex_);
  Names names;
  std::vector<SavedInstruction> instructions;
  for (const Instruction& it : instructions_) {
    instructions.push_back(
        {it, names.number(it.op), names.number(it.twin), names.number(it.note), it.direct ? number_of(it.direct) : LTC_NONE});
  }
  return plugin::save(kFormat, names.ops, names.notes, inputs_, scalar_count_, slot_scalars_, instructions, sized_, donations_,
                      committed_from_, tiles_, tile_facts_, operands_, results_, outputs_, specs_, is_constant_,
                      saved_constants());
}

Executable::Executable(std::string_view bytes, c10::Device device, host_compiler::HostKernels& kernels) : device_(device) {
  Names names;
  std::vector<SavedInstruction> instructions;
  std::vector<Constant> constants;
  plugin::load(kFormat, bytes, names.ops, names.notes, inputs_, scalar_count_, slot_scalars_, instructions, sized_, donations_,
               committed_from_, tiles_, tile_facts_, operands_, results_, outputs_, specs_, is_constant_, constants);
  slots_.resize(specs_.size());
  for (const SavedInstruction& saved : instructions) instructions_.push_back(names.resolve(saved));
  check(constants.size());
  auto next = constants.begin();
  for (size_t slot = 0; slot < slots_.size(); ++slot) {
    if (is_constant_[slot]) slots_[slot] = (next++)->value(device_);
  }
  prepare(kernels);
}

// All that a damaged file could send outside of an array.
void Executable::check(size_t constants) const {
  const auto require = [](bool condition) {
    if (!condition) Archive::refuse();
  };
  const auto is_slot = [this](uint32_t slot) { return slot < slots_.size(); };
  require(is_constant_.size() == slots_.size() && tile_facts_.size() == tiles_.size() &&
          static_cast<size_t>(std::ranges::count(is_constant_, true)) == constants);
  for (const Input& input : inputs_) require(!input.slot || is_slot(*input.slot));
  for (const SlotScalar& scalar : slot_scalars_) require(is_slot(scalar.slot) && scalar.index < scalar_count_);
  for (const uint32_t slot : donations_) require(is_slot(slot));
  for (const auto* list : {&operands_, &outputs_}) {
    for (const Operand operand : *list) require(is_slot(operand.slot));
  }
  for (const uint32_t slot : results_) require(slot == kUnwanted || is_slot(slot));
  require(committed_from_ <= instructions_.size());
  for (const Instruction& instruction : instructions_) check(instruction);
  const auto in_order = [&](const std::vector<Sized::Sizes>& list, size_t count) {
    for (const Sized::Sizes& sizes : list) require(sizes.index < count);
  };
  in_order(sized_.slots, slots_.size());
  in_order(sized_.inputs, inputs_.size());
  in_order(sized_.tiles, tiles_.size());
  for (const auto& constant : sized_.constants) require(is_slot(constant.slot) && is_constant_[constant.slot]);
  for (const auto& one : sized_.long_instructions) require(one.index < instructions_.size() && one.threads <= Threads::kAll);
}

void Executable::check(const Instruction& it) const {
  const auto fits = [](size_t first, size_t count, size_t size) { return first <= size && count <= size - first; };
  bool good = it.kind <= Kind::kForm && it.layout <= OperandLayout::kPacked && it.threads <= Threads::kAll &&
              fits(it.first_operand, it.operand_count, operands_.size()) &&
              fits(it.first_result, it.result_count, results_.size());
  switch (it.kind) {
    case Kind::kCall:
    case Kind::kForm:
    case Kind::kWritingCall: good = good && it.op && it.op->schema().arguments().size() == it.operand_count; break;
    case Kind::kDirect: good = good && it.op && it.direct && it.op->schema().arguments().size() == it.operand_count; break;
    case Kind::kTiles: good = good && it.tiles < tiles_.size() && tiles_[it.tiles].operand_count() == it.operand_count; break;
    case Kind::kNumber: good = good && it.operand_count == 2 && it.result_count == 1; break;
    case Kind::kUnpack:
    case Kind::kCheckRows: good = good && it.operand_count == 1; break;
    case Kind::kTensorList:
    case Kind::kOptionalTensorList: break;
  }
  if (!good || (it.twin && it.operand_count == 0)) Archive::refuse();
}

}  // namespace ltc::torchscript
