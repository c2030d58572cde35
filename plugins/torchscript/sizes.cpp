// The parts of an executable that follow from sizes. They are planned once, or for each run of other sizes.
#include <c10/util/StringUtil.h>

#include <algorithm>

#include "torchscript/compile.h"
#include "torchscript/graph/errors.h"
#include "torchscript/graph/schema.h"

namespace ltc::torchscript {
namespace {

double bytes_of(const TensorSpec& spec) {
  if (spec.dtype == at::ScalarType::Undefined) return 0;
  double bytes = static_cast<double>(c10::elementSize(spec.dtype));
  for (const int64_t size : spec.sizes) bytes *= static_cast<double>(size);
  return bytes;
}

}  // namespace

void Executable::bind_sizes(c10::ArrayRef<int64_t> symbols) {
  const Symbols& known = sized_.symbols;
  if (symbols.size() != known.count()) {
    throw Failure(LTC_INVALID_ARGUMENT, c10::str("[execute] ", symbols.size(), " symbols, compiled for ", known.count()));
  }
  if (symbols == c10::ArrayRef<int64_t>(sized_.values)) return;
  for (const auto& [slot, sizes] : sized_.slots) specs_[slot].sizes = known.values_of(sizes, symbols);
  for (const auto& [input, sizes] : sized_.inputs) inputs_[input].spec.sizes = known.values_of(sizes, symbols);
  for (const auto& [tiles, sizes] : sized_.tiles) tiles_[tiles].resize(known.values_of(sizes, symbols));
  for (const auto& [slot, constant] : sized_.constants) slots_[slot] = known.constant_value(constant, symbols);
  for (const auto& [index, threads] : sized_.long_instructions) {
    instructions_[index].threads = is_long(instructions_[index]) ? threads : Threads::kOne;
  }
  plan_commit();
  sized_.values = symbols.vec();
}

bool Executable::is_long(const Instruction& instruction) const {
  c10::SmallVector<c10::IntArrayRef, 8> operands, results;
  for (uint32_t i = 0; i < instruction.operand_count; ++i) {
    operands.emplace_back(specs_[operands_[instruction.first_operand + i].slot].sizes);
  }
  for (uint32_t i = 0; i < instruction.result_count; ++i) {
    const uint32_t slot = results_[instruction.first_result + i];
    results.emplace_back(slot == kUnwanted ? c10::IntArrayRef() : c10::IntArrayRef(specs_[slot].sizes));
  }
  const std::string_view op = instruction.op ? instruction.op->operator_name().name : std::string_view();
  return torchscript::is_long(op, operands, results);
}

void Executable::plan_commit() {
  commit_ = std::max(committed_from_, first_large_donation());
  bytes_behind_commit_ = most_bytes_behind(commit_);
}

// The first instruction that takes a large part of what may be donated. Until then such memory is kept: what fails for want of
// memory, fails there mostly.
size_t Executable::first_large_donation() const {
  constexpr double kLargePart = 64;  // one of so many
  double all = 0;
  for (const uint32_t slot : donations_) all += bytes_of(specs_[slot]);
  if (all == 0) return 0;
  for (size_t i = 0; i < instructions_.size(); ++i) {
    const Instruction& instruction = instructions_[i];
    for (uint32_t k = 0; k < instruction.operand_count; ++k) {
      const Operand operand = operands_[instruction.first_operand + k];
      if (operand.last && std::ranges::binary_search(donations_, operand.slot) &&
          bytes_of(specs_[operand.slot]) >= all / kLargePart) {
        return i;
      }
    }
  }
  return instructions_.size();
}

// How much results take at most at once, where what is not made there goes on to live.
double Executable::most_bytes_behind(size_t begin) const {
  std::vector<double> live_bytes(slots_.size(), 0);
  double live = 0, most = 0;
  for (size_t i = begin; i < instructions_.size(); ++i) {
    const Instruction& instruction = instructions_[i];
    const c10::ArrayRef operands(operands_.data() + instruction.first_operand, instruction.operand_count);
    const bool in_place = instruction.twin && operands[0].last;
    const bool is_view = instruction.op && makes_view(instruction.op->schema());
    for (uint32_t k = 0; k < instruction.result_count && !in_place && !is_view; ++k) {
      const uint32_t slot = results_[instruction.first_result + k];
      if (slot != kUnwanted) live += live_bytes[slot] = bytes_of(specs_[slot]);
    }
    most = std::max(most, live);
    if (in_place) std::swap(live_bytes[operands[0].slot], live_bytes[results_[instruction.first_result]]);
    for (const Operand operand : operands) {
      if (operand.last && !is_view) live -= std::exchange(live_bytes[operand.slot], 0);
    }
  }
  return most;
}

}  // namespace ltc::torchscript
