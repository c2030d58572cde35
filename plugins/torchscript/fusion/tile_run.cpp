#include "torchscript/fusion/tile_run.h"

#include <ATen/EmptyTensor.h>

#include <algorithm>

#include "torchscript/ops/operands.h"

namespace ltc::torchscript {
namespace {

constexpr int64_t kTransposeFrom = 1 << 14;  // elements from which ATen's copy pays, which transposes by blocks

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

float to_float(const ltc_scalar& scalar, ltc_dtype dtype) {
  if (dtype == LTC_F64) return static_cast<float>(scalar.f);
  return dtype == LTC_BOOL ? static_cast<float>(scalar.i != 0) : static_cast<float>(scalar.i);
}

// A view that only says of its memory to be negative is no longer one.
c10::IValue& plain(c10::IValue& tensor) {
  if (tensor.toTensor().is_neg()) [[unlikely]]
    tensor = tensor.toTensor().resolve_neg();
  return tensor;
}

c10::IValue& row_major(c10::IValue& tensor) {
  if (!plain(tensor).toTensor().is_contiguous()) tensor = tensor.toTensor().contiguous();
  return tensor;
}

}  // namespace

void TileProgram::Run::run() {
  take_operands();
  compute_scalars();
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

void TileProgram::Run::take_operands() {
  for (const int64_t size : program_.sizes_) count_ *= size;
  size_t number = 0, seed = 0;
  for (size_t i = 0; i < stack_.size(); ++i) {
    switch (program_.operands_[i]) {
      case OperandKind::kTensor: tensors_.push_back(&plain(stack_[i])); break;
      case OperandKind::kNumber:
        program_.scalars_[program_.registers_[program_.numbers_[number++]].slot] = to_float(stack_[i]);
        break;
      case OperandKind::kRow: rows_.push_back(row_major(stack_[i]).toTensor().const_data_ptr<float>()); break;
      case OperandKind::kSeed: program_.seeds_[seed++] = static_cast<uint64_t>(stack_[i].toInt()); break;
    }
  }
}

void TileProgram::Run::compute_scalars() {
  for (const auto& [from, slot] : program_.run_numbers_) program_.scalars_[slot] = to_float(run_scalars_[from.index], from.dtype);
  for (const auto& [from, seed] : program_.run_seeds_) program_.seeds_[seed] = static_cast<uint64_t>(run_scalars_[from.index].i);
  for (const Instruction& instruction : program_.scalar_instructions_) {
    const float* operands[kMostOperands] = {};
    for (int k = 0; k < kMostOperands; ++k) operands[k] = scalar(instruction.operands[k]);
    instruction.kernel(scalar(instruction.out), operands, 1);
  }
}

// Operands that all lie alike are walked as they lie, whatever the order of their dims; else everything is row-major.
void TileProgram::Run::choose_strides() {
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

void TileProgram::Run::locate_tensors() {
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

void TileProgram::Run::make_results() {
  for (const Output& output : program_.outputs_) {
    if (!output.is_bool && take_over(output)) continue;
    const auto dtype = output.is_bool ? at::kBool : at::kFloat;
    results_.push_back(is_row_major_ ? at::Tensor(at::detail::empty_cpu(program_.sizes_, dtype))
                                     : at::Tensor(at::detail::empty_strided_cpu(program_.sizes_, strides_, dtype)));
  }
  for (const RowSum& sum : program_.row_sums_) results_.emplace_back(at::detail::empty_cpu(sum.sizes, at::kFloat));
  for (const auto& sizes : program_.statistics_) results_.emplace_back(at::detail::empty_cpu(sizes, at::kFloat));
}

// An element is written after its last reading, if that is no later instruction's.
bool TileProgram::Run::take_over(const Output& output) {
  for (size_t i = 0; i < tensors_.size(); ++i) {
    const uint32_t last_use = program_.registers_[program_.tensors_[i].id].last_use;
    if (!sources_[i].is_direct || (last_use != kNever && last_use > output.made_by) || !is_exclusive(*tensors_[i])) continue;
    results_.push_back(std::move(*tensors_[i]).toTensor());
    *tensors_[i] = c10::IValue();
    return true;
  }
  return false;
}

void TileProgram::run(std::vector<c10::IValue>& stack, const ltc_scalar* scalars) { Run(*this, stack, scalars).run(); }

}  // namespace ltc::torchscript
