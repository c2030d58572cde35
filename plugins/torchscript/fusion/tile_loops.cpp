// The loops of a tile program.
#include <algorithm>
#include <cstdlib>
#include <memory>
#include <numeric>

#include "cpu_kernels/philox.h"
#include "cpu_kernels/rows.h"
#include "kernels/print/vectors.h"
#include "torchscript/fusion/tile_run.h"
#include "torchscript/threads/threads.h"

namespace ltc::torchscript {
namespace {

using kernels::kLanes;

constexpr int64_t kLargestStep = int64_t{1} << 30;  // elements; kernels count in 32 bits
constexpr int64_t kParallelGrain = 1 << 16;         // primitives on elements
constexpr int64_t kBlock = 4096;  // elements of a block of rows, if a row has no more: some of them fit the L1 cache
constexpr int64_t kDrawn = 4;     // random numbers come in fours

// Scratch memory of a thread, kept.
float* scratch_memory(size_t elements) {
  struct Free {
    void operator()(float* memory) const { std::free(memory); }
  };
  thread_local std::unique_ptr<float, Free> memory;
  thread_local size_t size = 0;
  if (size < elements) {
    memory.reset(static_cast<float*>(std::aligned_alloc(64, elements * sizeof(float))));
    TORCH_CHECK(memory, "out of memory: ", elements, " floats of scratch memory");
    size = elements;
  }
  return memory.get();
}

int64_t round_up(int64_t count, int64_t unit) { return (count + unit - 1) / unit * unit; }

// The rows of a block. They are whole vectors together, but for the last ones, unless rows are long.
int64_t rows_together(int64_t length, bool draws) {
  const int64_t unit = length <= kBlock ? kLanes : draws ? kDrawn : 1;
  return round_up(std::max<int64_t>(1, kBlock / length), unit / std::gcd(unit, length));
}

}  // namespace

void TileProgram::Run::compute() {
  choose_stages();
  if (!program_.row_ops_.empty()) return compute_blocks();
  if (!program_.row_sums_.empty()) return compute_sums();
  const int64_t tiles = (count_ + kTile - 1) / kTile;
  const auto weight = static_cast<int64_t>(program_.instructions_.size()) * kTile;
  const auto work = [this](int64_t begin, int64_t end) { compute_tiles(begin, end); };
  if (tiles == 1) return work(0, 1);
  divide(tiles, std::max<int64_t>(1, kParallelGrain / weight), work);
}

// All of a run is computed one way. A stage that uses no scratch memory of tiles need not go tile by tile.
void TileProgram::Run::choose_stages() {
  for (const Stage& stage : program_.stages_) {
    functions_.push_back(stage.kernel ? program_.kernels_->function(*stage.kernel) : nullptr);
  }
  for (const Phase& phase : program_.phases_) {
    const bool is_one = phase.end == phase.begin + 1 && (functions_[phase.begin] || program_.stages_[phase.begin].size() == 1);
    const bool uses_scratch = !is_one || std::ranges::any_of(phase.tensors, [&](auto i) { return !sources_[i].is_direct; }) ||
                              std::ranges::any_of(phase.makes, [&](auto i) { return program_.outputs_[i].is_bool; });
    steps_.push_back(uses_scratch ? kTile : kLargestStep);
  }
}

TileProgram::Run::Scratch TileProgram::Run::make_scratch(int64_t block_elements) const {
  const int64_t each = round_up(block_elements, kTile);
  const size_t tiles = program_.slot_count_ * kTile;
  float* const memory = scratch_memory(tiles + program_.block_slot_count_ * static_cast<size_t>(each));
  Scratch scratch{memory, memory + tiles, each, 0, Places(program_.registers_.size())};
  const auto place = [&](Register id) {
    const RegisterInfo& info = program_.registers_[id];
    if (info.kind == Kind::kScalar) scratch.places[id] = &program_.scalars_[info.slot];
    if (info.kind == Kind::kTile && !info.is_block) scratch.places[id] = memory + info.slot * kTile;
  };
  for (size_t i = 0; i < program_.stages_.size(); ++i) {
    const Stage& stage = program_.stages_[i];
    if (functions_[i]) {  // the rest stays in the processor's registers
      std::ranges::for_each(stage.buffers, place);
      continue;
    }
    for (uint32_t k = stage.begin; k < stage.end; ++k) {
      const Instruction& instruction = program_.instructions_[k];
      place(instruction.out);
      std::for_each_n(instruction.operands, operands_of(instruction), place);
    }
  }
  return scratch;
}

void TileProgram::Run::compute_tiles(int64_t begin, int64_t end) const {
  Scratch scratch = make_scratch(0);
  compute_range(0, begin * kTile, std::min(end * kTile, count_), scratch);
}

// Kernels compute whole vectors. Shorter ends are computed in scratch memory, which has room for them.
void TileProgram::Run::compute_range(size_t number, int64_t begin, int64_t end, Scratch& scratch) const {
  const Phase& phase = program_.phases_[number];
  if (phase.begin == phase.end) return;
  const int64_t rest = (end - begin) % kLanes;
  for (int64_t at = begin; at < end - rest; at += steps_[number]) {
    compute_step(phase, at, std::min(steps_[number], end - rest - at), false, scratch);
  }
  if (rest > 0) compute_step(phase, end - rest, rest, true, scratch);
}

// One thread computes all of a block.
void TileProgram::Run::compute_blocks() const {
  const int64_t length = program_.row_length_, rows = count_ / length,
                together = std::min(rows_together(length, program_.draws_), rows);
  const auto weight = static_cast<int64_t>(program_.instructions_.size()) * together * length;
  divide((rows + together - 1) / together, std::max<int64_t>(1, kParallelGrain / weight), [&](int64_t begin, int64_t end) {
    Scratch scratch = make_scratch(together * length);
    for (int64_t row = begin * together; row < std::min(end * together, rows); row += together) {
      const int64_t here = std::min(together, rows - row);
      scratch.block = row * length;
      for (size_t i = 0; i < program_.phases_.size(); ++i) {
        compute_range(i, row * length, (row + here) * length, scratch);
        place_results(row * length, scratch);
        const Phase& phase = program_.phases_[i];
        for (uint32_t step = phase.first_step; step < phase.end_steps; ++step) {
          compute_rows(program_.instructions_[step], row, here, scratch);
        }
      }
    }
  });
}

void TileProgram::Run::compute_rows(const Instruction& instruction, int64_t row, int64_t rows, const Scratch& scratch) const {
  const RowOp& step = program_.row_ops_[instruction.row_op];
  const int64_t length = program_.row_length_;
  const float* const in = scratch.places[instruction.operands[0]];
  float* const out = scratch.places[instruction.out];
  if (step.function == RowFunction::kSoftmax) return cpu::softmax(in, rows, length, out);
  const auto given = [&](size_t i) { return i < step.weight_and_bias.size() ? rows_[step.weight_and_bias[i]] : nullptr; };
  float *const means = row_result(step.statistics), *const scales = row_result(step.statistics + 1);
  cpu::layer_norm(in, rows, length, given(0), given(1), step.eps, {out, means + row, scales + row});
}

// One thread adds up some rows that are a tile together, or a chunk of a long one; chunks are added in their order.
void TileProgram::Run::compute_sums() const {
  const int64_t length = program_.row_length_, rows = count_ / length, together = std::max<int64_t>(1, kTile / length);
  const int64_t chunks = (length + cpu::kPiece - 1) / cpu::kPiece, each = std::min(cpu::kPiece, together * length);
  const int64_t grain = std::max<int64_t>(1, kParallelGrain / (each * static_cast<int64_t>(program_.instructions_.size())));
  const size_t count = program_.row_sums_.size();
  std::vector<double> sums(chunks > 1 ? count * static_cast<size_t>(rows * chunks) : 0);
  divide((rows + together - 1) / together * chunks, grain, [&](int64_t begin, int64_t end) {
    Scratch scratch = make_scratch(0);
    for (int64_t i = begin; i < end; ++i) {
      const int64_t row = i / chunks * together, at = i % chunks * cpu::kPiece, here = std::min(together, rows - row);
      const Totals totals = add_up(row * length + at, here, std::min(cpu::kPiece, length - at), scratch);
      if (chunks > 1) {
        std::ranges::copy(totals, &sums[static_cast<size_t>(i) * count]);
      } else {
        for (size_t k = 0; k < totals.size(); ++k) store_sum(k % count, row + static_cast<int64_t>(k / count), totals[k]);
      }
    }
  });
  for (size_t k = 0; k < (chunks > 1 ? count : 0); ++k) {
    for (int64_t row = 0; row < rows; ++row) {
      double total = 0;
      for (int64_t i = row * chunks; i < (row + 1) * chunks; ++i) total += sums[static_cast<size_t>(i) * count + k];
      store_sum(k, row, total);
    }
  }
}

TileProgram::Run::Totals TileProgram::Run::add_up(int64_t first, int64_t rows, int64_t length, Scratch& scratch) const {
  const size_t count = program_.row_sums_.size();
  Totals totals(static_cast<size_t>(rows) * count);
  for (int64_t at = 0; at < rows * length; at += kTile) {
    const int64_t here = std::min(kTile, rows * length - at), each = here / rows;
    compute_step(program_.phases_[0], first + at, here, false, scratch);
    for (size_t i = 0; i < totals.size(); ++i) {
      const float* const values = scratch.places[program_.row_sums_[i % count].id];
      totals[i] += cpu::sum_piece(values + static_cast<int64_t>(i / count) * each, each);
    }
  }
  return totals;
}

void TileProgram::Run::store_sum(size_t sum, int64_t row, double total) const {
  row_result(sum)[row] = static_cast<float>(total * program_.row_sums_[sum].scale);
}

void TileProgram::Run::compute_step(const Phase& phase, int64_t first, int64_t count, bool in_scratch, Scratch& scratch) const {
  load_tensors(phase, first, count, in_scratch, scratch);
  place_results(first, scratch);
  if (in_scratch) load_results(phase, first, count, scratch);
  for (size_t i = phase.begin; i < phase.end; ++i) compute_stage(i, first, count, scratch.places);
  store_results(phase, first, count, in_scratch, scratch);
}

void TileProgram::Run::load_tensors(const Phase& phase, int64_t first, int64_t count, bool in_scratch, Scratch& scratch) const {
  float* const loaded = scratch.tiles + (program_.slot_count_ - sources_.size()) * kTile;
  for (const size_t i : phase.tensors) {
    const Source& source = sources_[i];
    const auto* const floats = static_cast<const float*>(source.data);
    float*& place = scratch.places[program_.tensors_[i].id];
    place = source.is_direct && !in_scratch ? const_cast<float*>(floats) + first  // written only where taken over
                                            : loaded + i * kTile;
    if (source.is_bool) {
      load(place, static_cast<const uint8_t*>(source.data), source.dims, first, count);
    } else if (!source.is_direct) {
      load(place, floats, source.dims, first, count);
    } else if (in_scratch) {
      std::copy_n(floats + first, count, place);
    }
  }
}

void TileProgram::Run::place_results(int64_t first, Scratch& scratch) const {
  for (const Register id : program_.blocks_) {
    scratch.places[id] = scratch.blocks + program_.registers_[id].slot * scratch.block_elements + (first - scratch.block);
  }
  for (size_t i = 0; i < program_.outputs_.size(); ++i) {
    if (!program_.outputs_[i].is_bool) scratch.places[program_.outputs_[i].id] = result(i) + first;
  }
}

// Makes and reads results in scratch memory.
void TileProgram::Run::load_results(const Phase& phase, int64_t first, int64_t count, Scratch& scratch) const {
  const auto move = [&](size_t i) {
    const Register id = program_.outputs_[i].id;
    if (!program_.outputs_[i].is_bool) scratch.places[id] = scratch.tiles + program_.registers_[id].slot * kTile;
    return scratch.places[id];
  };
  for (const size_t i : phase.makes) move(i);
  for (const size_t i : phase.reads) std::copy_n(result(i) + first, count, move(i));
}

void TileProgram::Run::store_results(const Phase& phase, int64_t first, int64_t count, bool in_scratch,
                                     const Scratch& scratch) const {
  for (const size_t i : phase.makes) {
    const Output& output = program_.outputs_[i];
    const float* const made = scratch.places[output.id];
    if (output.is_bool) {
      bool* const out = results_[i].mutable_data_ptr<bool>() + first;
      for (int64_t k = 0; k < count; ++k) out[k] = made[k] != 0.f;
    } else if (in_scratch) {
      std::copy_n(made, count, result(i) + first);
    }
  }
}

void TileProgram::Run::compute_stage(size_t number, int64_t first, int64_t count, Places& places) const {
  const Stage& stage = program_.stages_[number];
  if (!functions_[number]) {
    for (uint32_t i = stage.begin; i < stage.end; ++i) compute_instruction(program_.instructions_[i], first, count, places);
    return;
  }
  c10::SmallVector<void*, 96> args;
  for (const Register id : stage.buffers) args.push_back(places[id]);
  for (const uint16_t slot : stage.scalars) args.push_back(&program_.scalars_[slot]);
  const auto items = static_cast<int32_t>(round_up(count, kLanes));
  args.push_back(const_cast<int32_t*>(&items));
  functions_[number](args.data(), 0, items);
}

void TileProgram::Run::compute_instruction(const Instruction& instruction, int64_t first, int64_t count, Places& places) const {
  const Register* const in = instruction.operands;
  if (instruction.code == Code::kUniform) {
    const cpu::Philox generator{program_.seeds_[in[0]], program_.seeds_[in[1]]};
    return generator.uniform(places[instruction.out], first, first + count);
  }
  const float* const operands[kMostOperands] = {places[in[0]], places[in[1]], places[in[2]]};
  instruction.kernel(places[instruction.out], operands, count);
}

}  // namespace ltc::torchscript
