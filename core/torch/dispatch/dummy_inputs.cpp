#include "core/torch/dispatch/dummy_inputs.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/ops/zeros.h>

#include <unordered_map>

#include "core/base/log.h"
#include "core/torch/dispatch/map_tensors.h"
#include "core/torch/tensor/why.h"

namespace ltc {
namespace {

// Tensors of the geometries of lazy ones, on the CPU or without data; on request those that share a storage do so afterwards too.
class DummyInputs {
 public:
  DummyInputs(Fill fill, bool share, c10::DeviceType device) : fill_(fill), share_(share), device_(device) {}

  c10::IValue operator()(const c10::IValue& value) {
    if (value.isDevice()) return c10::Device(device_);
    return map_tensors(value, [this](const at::Tensor& tensor) { return for_tensor(tensor); });
  }

 private:
  at::Tensor for_tensor(const at::Tensor& tensor) {
    if (!tensor.defined() || !is_lazy(tensor)) return tensor;
    if (!share_) return filled(at::empty_strided(tensor.sizes(), tensor.strides(), options_for(tensor)), fill_);
    at::Tensor& known = of_tensor_[tensor.unsafeGetTensorImpl()];  // kernels ask whether an output is an operand
    return known.defined() ? known : known = over_shared_memory(tensor);
  }

  at::Tensor over_shared_memory(const at::Tensor& tensor) {
    at::Tensor& memory = of_storage_[tensor.storage().unsafeGetStorageImpl()];
    const auto bytes = static_cast<int64_t>(tensor.storage().nbytes());
    if (!memory.defined()) memory = at::zeros({bytes}, options_for(tensor).dtype(at::kByte));
    at::Tensor result = at::empty({0}, options_for(tensor));
    return filled(result.set_(memory.storage(), tensor.storage_offset(), tensor.sizes(), tensor.strides()), fill_);
  }

  at::TensorOptions options_for(const at::Tensor& tensor) const { return tensor.options().device(device_); }

  const Fill fill_;
  const bool share_;
  const c10::DeviceType device_;
  std::unordered_map<c10::StorageImpl*, at::Tensor> of_storage_;
  std::unordered_map<c10::TensorImpl*, at::Tensor> of_tensor_;
};

}  // namespace

at::Tensor filled(at::Tensor tensor, Fill fill) {
  if (fill == Fill::kOnes) return tensor.fill_(1);
  tensor.zero_();
  const bool is_number = tensor.is_floating_point() || tensor.is_complex();
  if (fill == Fill::kRegular && is_number) tensor.dim() < 2 ? tensor.fill_(1) : tensor.diagonal(0, -2, -1).fill_(1);
  return tensor;
}

torch::jit::Stack dummy_inputs(const torch::jit::Stack& stack, Fill fill, bool share, c10::DeviceType device) {
  DummyInputs make(fill, share, device);
  torch::jit::Stack result;
  for (const c10::IValue& value : stack) result.push_back(make(value));
  return result;
}

TypeId type_of_result(const at::Tensor& result) {
  TORCH_CHECK(result.layout() == c10::kStrided, "device ", kDeviceName, " makes no tensor of layout ", result.layout());
  const TypeId id = intern_type(to_dtype(result.scalar_type()), as_span(result.sizes()), as_span(result.strides()));
  return type_of(id).dense ? id : intern_contiguous(type_of(id).dtype, type_of(id).sizes);
}

void add_results(const torch::jit::Stack& results, const std::vector<size_t>& returns, std::vector<TypeId>& outputs) {
  const auto add = [&](const at::Tensor& tensor) { outputs.push_back(tensor.defined() ? type_of_result(tensor) : kNoType); };
  for (size_t i = 0; i < results.size(); ++i) {
    if (i < returns.size() && returns[i] != OpEntry::kFresh) continue;
    if (!results[i].isTensorList()) {
      add(results[i].isTensor() ? results[i].toTensor() : at::Tensor());
      continue;
    }
    for (const at::Tensor& tensor : results[i].toTensorVector()) add(tensor);
  }
}

std::optional<std::vector<TypeId>> try_on(const OpEntry& entry, const torch::jit::Stack& args) {
  const bool is_writing = entry.kind == OpKind::kWriting;
  torch::jit::Stack results = args;
  try {
    entry.recorded->callBoxed(&results);
  } catch (const std::exception& error) {
    log::debug("the shape of ", c10::toString(entry.recorded->operator_name()), " is not known from dummy inputs: ", why(error));
    return std::nullopt;
  }
  std::vector<TypeId> outputs;
  if (is_writing) {
    for (const at::Tensor& tensor : written_tensors(entry, args.data())) outputs.push_back(type_of_result(tensor));
  }
  add_results(results, is_writing ? entry.returns : std::vector<size_t>(), outputs);
  return outputs;
}

}  // namespace ltc
