// One run of a tile program.
#include <ATen/EmptyTensor.h>
#include <c10/util/SmallVector.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include "../execute.h"
#include "../philox.h"
#include "../row_kernels.h"
#include "../threads.h"
#include "kernels/vectors.h"
#include "tile_program.h"

namespace ltc::torchscript {
namespace {

constexpr int64_t kLargestStep = int64_t{1} << 30;  // elements; kernels count in 32 bits
constexpr int64_t kParallelGrain = 1 << 16;         // primitives on elements
constexpr int64_t kTransposeFrom = 1 << 14;         // elements from which ATen's copy pays, which transposes by blocks

struct Dim {
  int64_t size, stride;
};

// Where the elements of an operand lie, in row-major order of the program's sizes; dims of size 1 are gone, others joined.
using Dims = c10::SmallVector<Dim, 6>;

Dims dims_of(const at::Tensor& tensor, at::IntArrayRef sizes) {
  Dims dims;
  const auto missing = static_cast<int64_t>(sizes.size()) - tensor.dim();
  for (int64_t i = 0; i < static_cast<int64_t>(sizes.size()); ++i) {
    if (sizes[i] == 1) continue;
    const bool repeats = i < missing || tensor.size(i - missing) == 1;
    const int64_t stride = repeats ? 0 : tensor.stride(i - missing);
    if (!dims.empty() && dims.back().stride == stride * sizes[i]) {
      dims.back() = {dims.back().size * sizes[i], stride};
    } else {
      dims.push_back({sizes[i], stride});
    }
  }
  if (dims.empty()) dims.push_back({1, 0});
  return dims;
}

template <typename T>
void load_row(float* out, const T* data, int64_t stride, int64_t count) {
  if (stride == 0) {
    std::fill_n(out, count, static_cast<float>(*data));
  } else if (stride == 1) {
    for (int64_t i = 0; i < count; ++i) out[i] = static_cast<float>(data[i]);
  } else {
    for (int64_t i = 0; i < count; ++i) out[i] = static_cast<float>(data[i * stride]);
  }
}

// `count` elements from the `first` one on.
template <typename T>
void load(float* out, const T* data, const Dims& dims, int64_t first, int64_t count) {
  const Dim inner = dims.back();
  while (count > 0) {
    int64_t rest = first / inner.size, offset = 0;
    for (size_t i = dims.size() - 1; i-- > 0; rest /= dims[i].size) offset += rest % dims[i].size * dims[i].stride;
    const int64_t at = first % inner.size, row = std::min(count, inner.size - at);
    load_row(out, data + offset + at * inner.stride, inner.stride, row);
    out += row, first += row, count -= row;
  }
}

bool same_strides(const at::Tensor& tensor, at::IntArrayRef strides) {
  for (int64_t i = 0; i < tensor.dim(); ++i) {
    if (tensor.size(i) != 1 && tensor.stride(i) != strides[i]) return false;
  }
  return true;
}

float to_float(const c10::IValue& number) {
  if (number.isDouble()) return static_cast<float>(number.toDouble());
  return number.isInt() ? static_cast<float>(number.toInt()) : static_cast<float>(number.toBool());
}

// Scratch memory of a thread, kept.
float* scratch(size_t tiles) {
  struct Free {
    void operator()(float* memory) const { std::free(memory); }
  };
  thread_local std::unique_ptr<float, Free> memory;
  thread_local size_t size = 0;
  if (size < tiles) {
    memory.reset(static_cast<float*>(std::aligned_alloc(64, tiles * kTile * sizeof(float))));
    TORCH_CHECK(memory, "out of memory: ", tiles, " tiles of scratch memory");
    size = tiles;
  }
  return memory.get();
}

}  // namespace

class TileProgram::Run {
 public:
  Run(TileProgram& program, std::vector<c10::IValue>& stack) : program_(program), stack_(stack) {}

  void run() {
    take_operands();
    choose_strides();
    locate_tensors();
    make_results();
    if (program_.kernels_) {
      program_.kernels_->count_work(program_.work_, count_ * static_cast<int64_t>(program_.instructions_.size()));
    }
    if (count_ > 0) compute();
    stack_.clear();
    for (at::Tensor& result : results_) stack_.emplace_back(std::move(result));
  }

 private:
  // One operand as the tiles see it.
  struct Source {
    const void* data;
    bool is_bool, is_direct;  // direct: a tile is used where it lies
    Dims dims;                // of one that is not
  };

  void take_operands() {
    for (const int64_t size : program_.sizes_) count_ *= size;
    size_t number = 0, seed = 0;
    for (size_t i = 0; i < stack_.size(); ++i) {
      switch (program_.operands_[i]) {
        case OperandKind::kTensor: tensors_.push_back(&plain(stack_[i])); break;
        case OperandKind::kNumber:
          program_.scalars_[program_.registers_[program_.numbers_[number++]].slot] = to_float(stack_[i]);
          break;
        case OperandKind::kSeed: program_.seeds_[seed++] = static_cast<uint64_t>(stack_[i].toInt()); break;
      }
    }
    for (const Instruction& instruction : program_.scalar_instructions_) {
      const float* operands[kMostOperands] = {};
      for (int k = 0; k < kMostOperands; ++k) operands[k] = scalar(instruction.operands[k]);
      instruction.kernel(scalar(instruction.out), operands, 1);
    }
  }

  // A view that only says of its memory to be negative is no longer one.
  static c10::IValue& plain(c10::IValue& tensor) {
    if (tensor.toTensor().is_neg()) [[unlikely]]
      tensor = tensor.toTensor().resolve_neg();
    return tensor;
  }

  float* scalar(Register id) const { return &program_.scalars_[program_.registers_[id].slot]; }

  // Operands that all lie alike are walked as they lie, whatever the order of their dims; else everything is row-major.
  void choose_strides() {
    const at::Tensor* first = nullptr;
    is_row_major_ = program_.draws_ || program_.row_length_ > 0;
    for (size_t i = 0; i < tensors_.size() && !is_row_major_; ++i) {
      const at::Tensor& tensor = tensors_[i]->toTensor();
      if (!program_.tensors_[i].is_full) {
        is_row_major_ = true;
      } else if (!first) {
        first = &tensor;
        is_row_major_ = tensor.is_contiguous() || !tensor.is_non_overlapping_and_dense();
      } else {
        is_row_major_ = !same_strides(tensor, first->strides());
      }
    }
    if (!first) is_row_major_ = true;
    if (!is_row_major_) strides_.assign(first->strides().begin(), first->strides().end());
  }

  void locate_tensors() {
    for (size_t i = 0; i < tensors_.size(); ++i) {
      const TensorInput& input = program_.tensors_[i];
      const at::Tensor* tensor = &tensors_[i]->toTensor();
      bool is_direct = input.is_full && (!is_row_major_ || tensor->is_contiguous());
      if (input.is_full && !is_direct && count_ >= kTransposeFrom && tensor->is_non_overlapping_and_dense()) {
        *tensors_[i] = tensor->contiguous();
        tensor = &tensors_[i]->toTensor();
        is_direct = true;
      }
      Source source{tensor->const_data_ptr(), input.is_bool, is_direct && !input.is_bool, {}};
      if (is_direct && input.is_bool) source.dims = {{std::max<int64_t>(count_, 1), 1}};
      if (!is_direct && count_ > 0) source.dims = dims_of(*tensor, program_.sizes_);
      sources_.push_back(std::move(source));
    }
  }

  void make_results() {
    for (const Output& output : program_.outputs_) {
      if (!output.is_bool && take_over(output)) continue;
      const auto dtype = output.is_bool ? at::kBool : at::kFloat;
      results_.push_back(is_row_major_ ? at::Tensor(at::detail::empty_cpu(program_.sizes_, dtype))
                                       : at::Tensor(at::detail::empty_strided_cpu(program_.sizes_, strides_, dtype)));
    }
    for (const RowSum& sum : program_.row_sums_) results_.emplace_back(at::detail::empty_cpu(sum.sizes, at::kFloat));
  }

  // An element is written after its last reading, if that is no later instruction's.
  bool take_over(const Output& output) {
    for (size_t i = 0; i < tensors_.size(); ++i) {
      const uint32_t last_use = program_.registers_[program_.tensors_[i].id].last_use;
      if (!sources_[i].is_direct || (last_use != kNever && last_use > output.made_by) || !is_exclusive(*tensors_[i])) continue;
      results_.push_back(std::move(*tensors_[i]).toTensor());
      *tensors_[i] = c10::IValue();
      return true;
    }
    return false;
  }

  void compute() {
    choose_stages();
    if (program_.row_length_ > 0) return compute_rows();
    const int64_t tiles = (count_ + kTile - 1) / kTile;
    const auto weight = static_cast<int64_t>(program_.instructions_.size()) * kTile;
    const auto work = [this](int64_t begin, int64_t end) { compute_tiles(begin, end); };
    if (tiles == 1) return work(0, 1);
    divide(tiles, std::max<int64_t>(1, kParallelGrain / weight), work);
  }

  // All tiles of a run are computed one way.
  void choose_stages() {
    for (const Stage& stage : program_.stages_) {
      functions_.push_back(stage.kernel ? program_.kernels_->function(*stage.kernel) : nullptr);
    }
    const bool uses_scratch = functions_.size() != 1 || !functions_[0] || !std::ranges::all_of(sources_, &Source::is_direct) ||
                              std::ranges::any_of(program_.outputs_, &Output::is_bool);
    step_ = uses_scratch ? kTile : kLargestStep;
  }

  using Places = c10::SmallVector<float*, 64>;  // by register

  Places places_in(float* memory) const {
    Places places(program_.registers_.size());
    for (size_t id = 0; id < places.size(); ++id) {
      const RegisterInfo& info = program_.registers_[id];
      if (info.kind == Kind::kScalar) places[id] = &program_.scalars_[info.slot];
      if (info.kind == Kind::kTile) places[id] = memory + info.slot * kTile;
    }
    return places;
  }

  void compute_tiles(int64_t begin, int64_t end) const {
    float* const memory = scratch(program_.slot_count_);
    Places places = places_in(memory);
    const int64_t stop = std::min(end * kTile, count_), rest = stop % kernels::kLanes;
    for (int64_t at = begin * kTile; at < stop - rest; at += step_) {
      compute_step(at, std::min(step_, stop - rest - at), false, memory, places);
    }
    if (rest > 0) compute_step(stop - rest, rest, true, memory, places);
  }

  // One thread adds up some rows that are a tile together, or a piece of a long one; pieces are added in their order.
  void compute_rows() const {
    const int64_t length = program_.row_length_, rows = count_ / length, together = std::max<int64_t>(1, kTile / length);
    const int64_t pieces = (length + kPiece - 1) / kPiece, each = std::min(kPiece, together * length);
    const int64_t grain = std::max<int64_t>(1, kParallelGrain / (each * static_cast<int64_t>(program_.instructions_.size())));
    const size_t count = program_.row_sums_.size();
    std::vector<double> sums(pieces > 1 ? count * static_cast<size_t>(rows * pieces) : 0);
    divide((rows + together - 1) / together * pieces, grain, [&](int64_t begin, int64_t end) {
      float* const memory = scratch(program_.slot_count_);
      Places places = places_in(memory);
      for (int64_t i = begin; i < end; ++i) {
        const int64_t row = i / pieces * together, at = i % pieces * kPiece, here = std::min(together, rows - row);
        const Totals totals = add_up(row * length + at, here, std::min(kPiece, length - at), memory, places);
        if (pieces > 1) {
          std::ranges::copy(totals, &sums[static_cast<size_t>(i) * count]);
        } else {
          for (size_t k = 0; k < totals.size(); ++k) store_sum(k % count, row + static_cast<int64_t>(k / count), totals[k]);
        }
      }
    });
    for (size_t k = 0; k < (pieces > 1 ? count : 0); ++k) {
      for (int64_t row = 0; row < rows; ++row) {
        double total = 0;
        for (int64_t i = row * pieces; i < (row + 1) * pieces; ++i) total += sums[static_cast<size_t>(i) * count + k];
        store_sum(k, row, total);
      }
    }
  }

  using Totals = c10::SmallVector<double, 64>;  // by row, then by sum

  Totals add_up(int64_t first, int64_t rows, int64_t length, float* memory, Places& places) const {
    const size_t count = program_.row_sums_.size();
    Totals totals(static_cast<size_t>(rows) * count);
    for (int64_t at = 0; at < rows * length; at += kTile) {
      const int64_t here = std::min(kTile, rows * length - at), each = here / rows;
      compute_step(first + at, here, false, memory, places);
      for (size_t i = 0; i < totals.size(); ++i) {
        const float* const values = places[program_.row_sums_[i % count].id];
        totals[i] += row_kernels().sum(values + static_cast<int64_t>(i / count) * each, each);
      }
    }
    return totals;
  }

  void store_sum(size_t sum, int64_t row, double total) const {
    results_[program_.outputs_.size() + sum].mutable_data_ptr<float>()[row] =
        static_cast<float>(total * program_.row_sums_[sum].scale);
  }

  // Kernels compute whole vectors. What is less is computed in scratch memory, which has room for them.
  void compute_step(int64_t first, int64_t count, bool in_scratch, float* memory, Places& places) const {
    float* const loaded = memory + (program_.slot_count_ - sources_.size()) * kTile;
    for (size_t i = 0; i < sources_.size(); ++i) {
      const Source& source = sources_[i];
      const auto* const floats = static_cast<const float*>(source.data);
      float*& place = places[program_.tensors_[i].id];
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
    for (size_t i = 0; i < program_.outputs_.size(); ++i) {
      const Output& output = program_.outputs_[i];
      if (output.is_bool) continue;
      places[output.id] =
          in_scratch ? memory + program_.registers_[output.id].slot * kTile : results_[i].mutable_data_ptr<float>() + first;
    }
    for (size_t i = 0; i < functions_.size(); ++i) compute(i, first, count, places);
    for (size_t i = 0; i < program_.outputs_.size(); ++i) {
      const Output& output = program_.outputs_[i];
      const float* const made = places[output.id];
      if (output.is_bool) {
        bool* const out = results_[i].mutable_data_ptr<bool>() + first;
        for (int64_t k = 0; k < count; ++k) out[k] = made[k] != 0.f;
      } else if (in_scratch) {
        std::copy_n(made, count, results_[i].mutable_data_ptr<float>() + first);
      }
    }
  }

  void compute(size_t number, int64_t first, int64_t count, Places& places) const {
    const Stage& stage = program_.stages_[number];
    if (!functions_[number]) {
      for (uint32_t i = stage.begin; i < stage.end; ++i) compute(program_.instructions_[i], first, count, places);
      return;
    }
    c10::SmallVector<void*, 32> args;
    for (const Register id : stage.buffers) args.push_back(places[id]);
    for (const Register id : stage.scalars) args.push_back(places[id]);
    const auto items = static_cast<int32_t>((count + kernels::kLanes - 1) / kernels::kLanes * kernels::kLanes);
    args.push_back(const_cast<int32_t*>(&items));
    functions_[number](args.data(), 0, items);
  }

  void compute(const Instruction& instruction, int64_t first, int64_t count, Places& places) const {
    const Register* const in = instruction.operands;
    if (instruction.primitive == Primitive::kCount) {
      const Philox generator{program_.seeds_[in[0]], program_.seeds_[in[1]]};
      return generator.uniform(places[instruction.out], first, first + count);
    }
    const float* const operands[kMostOperands] = {places[in[0]], places[in[1]], places[in[2]]};
    instruction.kernel(places[instruction.out], operands, count);
  }

  TileProgram& program_;
  std::vector<c10::IValue>& stack_;
  int64_t count_ = 1;                                        // of elements
  int64_t step_ = kTile;                                     // elements computed at once
  c10::SmallVector<ProgramKernels::Function, 4> functions_;  // by stage; null: interpreted
  bool is_row_major_ = true;
  c10::SmallVector<int64_t, 6> strides_;  // of the results, if not row-major
  c10::SmallVector<c10::IValue*, 8> tensors_;
  c10::SmallVector<Source, 8> sources_;
  c10::SmallVector<at::Tensor, 4> results_;
};

void TileProgram::run(std::vector<c10::IValue>& stack) { Run(*this, stack).run(); }

}  // namespace ltc::torchscript
