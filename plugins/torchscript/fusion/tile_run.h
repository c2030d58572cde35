// One run of a tile program: tile_run.cpp sees to operands and results, tile_loops.cpp computes.
#pragma once
#include <c10/util/SmallVector.h>

#include <vector>

#include "torchscript/fusion/tile_loads.h"
#include "torchscript/fusion/tile_program.h"

namespace ltc::torchscript {

class TileProgram::Run {
 public:
  Run(TileProgram& program, std::vector<c10::IValue>& stack, const ltc_scalar* scalars)
      : program_(program), stack_(stack), run_scalars_(scalars) {}

  void run();

 private:
  // One operand as the tiles see it.
  struct Source {
    const void* data;
    bool is_bool, is_direct;  // direct: a tile is used where it lies
    Dims dims;                // of one that is not
  };

  void take_operands();
  void compute_scalars();
  float* scalar(Register id) const { return &program_.scalars_[program_.registers_[id].slot]; }
  void choose_strides();
  void locate_tensors();
  void make_results();
  bool take_over(const Output& output);
  // The memory of a sum of rows or of statistics.
  float* row_result(size_t number) const { return results_[program_.outputs_.size() + number].mutable_data_ptr<float>(); }
  float* result(size_t output) const { return results_[output].mutable_data_ptr<float>(); }

  using Places = c10::SmallVector<float*, 64>;  // by register
  // A thread's memory: tiles, and the registers that a block of rows has one of.
  struct Scratch {
    float *tiles, *blocks;
    int64_t block_elements;  // room for so many
    int64_t block;           // its first element
    Places places;
  };
  using Totals = c10::SmallVector<double, 64>;  // by row, then by sum

  void compute();
  void choose_stages();
  Scratch make_scratch(int64_t block_elements) const;
  void compute_tiles(int64_t begin, int64_t end) const;
  void compute_blocks() const;
  void compute_sums() const;
  Totals add_up(int64_t first, int64_t rows, int64_t length, Scratch& scratch) const;
  void store_sum(size_t sum, int64_t row, double total) const;

  void compute_range(size_t phase, int64_t begin, int64_t end, Scratch& scratch) const;
  void compute_step(const Phase& phase, int64_t first, int64_t count, bool in_scratch, Scratch& scratch) const;
  void place_results(int64_t first, Scratch& scratch) const;
  void load_tensors(const Phase& phase, int64_t first, int64_t count, bool in_scratch, Scratch& scratch) const;
  void load_results(const Phase& phase, int64_t first, int64_t count, Scratch& scratch) const;
  void store_results(const Phase& phase, int64_t first, int64_t count, bool in_scratch, const Scratch& scratch) const;
  void compute_rows(const Instruction& instruction, int64_t row, int64_t rows, const Scratch& scratch) const;
  void compute_stage(size_t number, int64_t first, int64_t count, Places& places) const;
  void compute_instruction(const Instruction& instruction, int64_t first, int64_t count, Places& places) const;

  TileProgram& program_;
  std::vector<c10::IValue>& stack_;
  const ltc_scalar* const run_scalars_;
  int64_t count_ = 1;                                        // of elements
  c10::SmallVector<int64_t, 4> steps_;                       // by phase: elements computed at once
  c10::SmallVector<ProgramKernels::Function, 4> functions_;  // by stage; null: interpreted
  bool is_row_major_ = true;
  c10::SmallVector<int64_t, 6> strides_;  // of the results, if not row-major
  c10::SmallVector<c10::IValue*, 8> tensors_;
  c10::SmallVector<const float*, 4> rows_;  // row operands
  c10::SmallVector<Source, 8> sources_;
  c10::SmallVector<at::Tensor, 4> results_;
};

}  // namespace ltc::torchscript
