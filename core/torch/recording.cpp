#include "core/torch/recording.h"

namespace ltc {
namespace {

c10::Scalar number_of(const c10::TensorImpl* tensor) {
  const void* data = tensor->unsafe_storage().data();
  switch (c10::typeMetaToScalarType(tensor->dtype())) {
    case c10::ScalarType::Double: return *static_cast<const double*>(data);
    case c10::ScalarType::Long: return *static_cast<const int64_t*>(data);
    case c10::ScalarType::Bool: return *static_cast<const bool*>(data);
    case c10::ScalarType::ComplexDouble: return *static_cast<const c10::complex<double>*>(data);
    default: TORCH_CHECK(false, "a Python number of dtype ", tensor->dtype().name());
  }
}

}  // namespace

void Recording::set_device(LazyDevice& device) {
  if (!device_) device_ = &device;
  TORCH_CHECK(device_ == &device, "Expected all tensors to be on the same device, but found at least two devices, ", kDeviceName,
              ":", device_->ordinal(), " and ", kDeviceName, ":", device.ordinal(), "!");
}

void Recording::add_tensor(const c10::TensorImpl* tensor) {
  Operand& operand = operands_.emplace_back();
  if (!tensor || !tensor->has_storage()) return key_.add_absent();
  operand.tensor = tensor;
  if (tensor->device_type() == kLtc) [[likely]] {
    operand.storage = &lazy_storage(tensor);
    operand.key_word = key_.add_tensor();
    set_device(operand.storage->device());
  } else if (is_number_tensor(tensor)) {
    key_.add_number(static_cast<uint64_t>(c10::typeMetaToScalarType(tensor->dtype())));
  } else {
    has_foreign_ = true;
  }
}

void Recording::add_view(const c10::TensorImpl* tensor, TypeId geometry) {
  Operand& operand = operands_.emplace_back();
  operand.tensor = tensor;
  operand.view = geometry;
  key_.set_type(key_.add_tensor(), geometry);
  set_device(lazy_storage(tensor).device());
}

void Recording::add_number(const Arg& arg, const c10::IValue& value) {
  if (is_default_number(arg, value)) return key_.add_absent();
  constexpr uint64_t kPlain = 256;  // apart from numbers in tensors, whose kind is their dtype
  key_.add_number(kPlain + (value.isInt() ? 0 : value.isDouble() ? 1 : value.isBool() ? 2 : 3));
  operands_.emplace_back().number = &value;
}

void Recording::add_number_tensor(const c10::IValue& number) {
  key_.add_number(static_cast<uint64_t>(number.isInt() ? c10::ScalarType::Long : c10::ScalarType::Double));
  operands_.emplace_back().number = &number;
}

const Signature* Recording::find_signature(const Recorder& recorder) {
  for (Operand& operand : operands_) {
    if (!operand.storage) continue;
    operand.whole = is_whole(recorder, operand.tensor, *operand.storage);
    key_.set_type(operand.key_word, operand.whole ? recorder.type(*operand.storage) : geometry_of(operand.tensor));
  }
  return SignatureMemo::of(*device_).find(key_);
}

void Recording::remember(Signature signature) {
  Recorder recorder(*device_);
  SignatureMemo::of(*device_).insert(key_, std::move(signature));
}

ValueId Recording::emit_operand(Recorder& recorder, const Operand& operand) {
  if (operand.whole) return recorder.read(*operand.storage);
  if (operand.storage) return read(recorder, operand.tensor);
  if (operand.number) return emit_number(recorder, operand.number->toScalar());
  if (operand.view != kNoType) return read_as(recorder, operand.tensor, operand.view);
  return operand.tensor ? emit_number(recorder, number_of(operand.tensor)) : kNone;
}

ValueId Recording::emit(Recorder& recorder, const Signature& signature) const {
  c10::SmallVector<ValueId, 8> inputs;
  for (const Operand& operand : operands_) inputs.push_back(emit_operand(recorder, operand));
  const auto& types = signature.outputs;
  const ValueId node = recorder.node(entry_.id, types[0], signature.attrs, {inputs.data(), inputs.size()});
  for (size_t i = 1; i < types.size(); ++i) recorder.result(node, static_cast<uint32_t>(i), types[i]);
  return node;
}

bool Recording::rewrite_first(Recorder& recorder, const Signature& signature) const {
  const Operand& first = operands_[0];
  if (!first.whole || recorder.type(*first.storage) != signature.outputs[0]) return false;
  recorder.bind(*first.storage, emit(recorder, signature), signature.outputs[0]);
  return true;
}

at::Tensor Recording::bind_fresh(Recorder& recorder, ValueId value, TypeId type) const {
  at::Tensor result = new_tensor(*device_, type_of(type));
  recorder.bind(lazy_storage(result.unsafeGetTensorImpl()), value, type);
  return result;
}

}  // namespace ltc
