#include "core/torch/dispatch/recording.h"

namespace ltc {
namespace {

Number number_in(const c10::TensorImpl* tensor) {
  const void* data = tensor->unsafe_storage().data();
  switch (c10::typeMetaToScalarType(tensor->dtype())) {
    case c10::ScalarType::Double: return to_number(*static_cast<const double*>(data));
    case c10::ScalarType::Long: return to_number(*static_cast<const int64_t*>(data));
    case c10::ScalarType::Bool: return to_number(*static_cast<const bool*>(data));
    case c10::ScalarType::UInt64: return to_number(*static_cast<const uint64_t*>(data));
    case c10::ScalarType::ComplexDouble: return to_number(*static_cast<const c10::complex<double>*>(data));
    default: TORCH_CHECK(false, "a Python number of dtype ", tensor->dtype().name());
  }
}

}  // namespace

void Recording::refuse_second_device(const LazyDevice& device) const {
  TORCH_CHECK(false, "Expected all tensors to be on the same device, but found at least two devices, ", kDeviceName, ":",
              device_->ordinal(), " and ", kDeviceName, ":", device.ordinal(), "!");
}

void Recording::add_no_lazy_tensor(const c10::TensorImpl* tensor) {
  if (tensor && tensor->has_storage()) {
    if (is_number_tensor(tensor)) return add_number_tensor(number_in(tensor));
    has_foreign_ = true;
  } else {
    key_.add_absent();
  }
  operands_.push_back({.kind = Operand::kNone, .lazy = {}});
}

void Recording::remember(Signature signature) {
  Recorder recorder(*device_);
  SignatureMemo::of(*device_).insert(key_, std::move(signature));
}

bool Recording::needs_values() const {
  Recorder recorder(*device_);
  return SignatureMemo::of(*device_).needs_values(key_);
}

void Recording::remember_needs_values() const {
  Recorder recorder(*device_);
  SignatureMemo::of(*device_).insert_needing_values(key_);
}

ValueId Recording::emit_operand(Recorder& recorder, const Operand& operand) {
  switch (operand.kind) {
    case Operand::kTensor: return recorder.read(*operand.lazy.storage);
    case Operand::kView: return read_as(recorder, operand.lazy.tensor, operand.type);
    case Operand::kNumber: return recorder.scalar(operand.dtype, operand.number);
    case Operand::kNone: break;
  }
  return kNone;
}

ValueId Recording::emit(Recorder& recorder, const Signature& signature) const {
  recorder.begin(entry_.id);
  c10::SmallVector<ValueId, 8> inputs;
  for (const Operand& operand : operands_) inputs.push_back(emit_operand(recorder, operand));
  const auto& types = signature.outputs;
  const ValueId node = recorder.node(entry_.id, types[0], signature.attrs, {inputs.data(), inputs.size()});
  for (size_t i = 1; i < types.size(); ++i) recorder.result(node, static_cast<uint32_t>(i), types[i]);
  return node;
}

bool Recording::rewrite_first(Recorder& recorder, const Signature& signature) const {
  const Operand& first = operands_[0];
  if (first.kind != Operand::kTensor || first.type != signature.outputs[0]) return false;
  recorder.bind(*first.lazy.storage, emit(recorder, signature), signature.outputs[0]);
  return true;
}

at::Tensor Recording::bind_fresh(Recorder& recorder, ValueId value, TypeId id) const {
  const Type& type = type_of(id);
  at::Tensor result = new_tensor(*device_, type);
  recorder.bind(lazy_storage(result.unsafeGetTensorImpl()), value, id, type);
  return result;
}

}  // namespace ltc
