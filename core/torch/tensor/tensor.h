// Tensors of device ltc: ordinary TensorImpls over ordinary storages whose context is a LazyStorage.
//
// Sizes, strides, offset, aliasing, version counters and view tracking are PyTorch's own. The data pointer is an address that is
// unique among all storages of the process and never mapped: PyTorch compares pointers, and whoever reads one crashes there
// rather than elsewhere.
#pragma once

#include <ATen/core/Tensor.h>

#include <array>

#include "core/run/device/lazy_device.h"

namespace ltc {

inline constexpr auto kLtc = c10::DeviceType::PrivateUse1;
inline constexpr const char* kDeviceName = "ltc";  // "lazy" is accepted as another spelling: factory.cpp

// By dtype.
inline constexpr std::array<c10::ScalarType, kDTypeCount> kScalarTypes = {c10::ScalarType::Undefined,
                                                                          c10::ScalarType::Bool,
                                                                          c10::ScalarType::Byte,
                                                                          c10::ScalarType::Char,
                                                                          c10::ScalarType::Short,
                                                                          c10::ScalarType::Int,
                                                                          c10::ScalarType::Long,
                                                                          c10::ScalarType::Half,
                                                                          c10::ScalarType::BFloat16,
                                                                          c10::ScalarType::Float,
                                                                          c10::ScalarType::Double,
                                                                          c10::ScalarType::ComplexFloat,
                                                                          c10::ScalarType::ComplexDouble,
                                                                          c10::ScalarType::UInt16,
                                                                          c10::ScalarType::UInt32,
                                                                          c10::ScalarType::UInt64,
                                                                          c10::ScalarType::ComplexHalf,
                                                                          c10::ScalarType::Float8_e4m3fn,
                                                                          c10::ScalarType::Float8_e5m2,
                                                                          c10::ScalarType::Float8_e4m3fnuz,
                                                                          c10::ScalarType::Float8_e5m2fnuz,
                                                                          c10::ScalarType::Float8_e8m0fnu};

DType to_dtype(c10::ScalarType type);  // throws for types that the core does not know (quantised)
inline c10::ScalarType to_scalar_type(DType dtype) { return kScalarTypes[static_cast<uint32_t>(dtype)]; }

c10::Allocator* lazy_allocator();

// The device that a c10::Device of type ltc names; index -1 is the current one.
uint32_t ordinal_of(c10::Device device);  // the current one's without an index
LazyDevice& lazy_device(c10::Device device);
LazyDevice& lazy_device(const at::TensorBase& tensor);

inline bool is_lazy(const at::TensorBase& tensor) { return tensor.device().type() == kLtc; }

void delete_lazy_storage(void* context);  // by this deleter a storage is known to be ours
[[noreturn]] void refuse_foreign_storage();

// The lazy storage behind a tensor; throws for a storage that is not ours (a foreign pointer wrapped as ltc).
inline LazyStorage& lazy_storage(const c10::StorageImpl* storage) {
  const c10::DataPtr& data = storage->data_ptr();
  if (data.get_deleter() != &delete_lazy_storage) [[unlikely]]
    refuse_foreign_storage();
  return *static_cast<LazyStorage*>(data.get_context());
}
inline LazyStorage& lazy_storage(const c10::TensorImpl* tensor) {
  return lazy_storage(tensor->unsafe_storage().unsafeGetStorageImpl());
}

// For the last owner of a tensor: true if to destroy it waits for nothing, as it shares its storage or that held only a record,
// which is forgotten at once. False for what is not simply a tensor of ours: of a subclass, Python says where and what it is.
LTC_API bool forget_record(const c10::TensorImpl& tensor);

// A tensor over a fresh, empty storage of exactly its size.
at::Tensor new_tensor(LazyDevice& device, c10::ScalarType dtype, c10::IntArrayRef sizes, c10::IntArrayRef strides);
at::Tensor new_tensor(LazyDevice& device, const Type& type);
c10::Storage new_storage(LazyDevice& device, size_t size_bytes);
// One more tensor over a lazy storage; it covers nothing yet.
at::Tensor tensor_over(c10::Storage storage, c10::ScalarType dtype);

inline std::span<const int64_t> as_span(c10::IntArrayRef list) { return {list.data(), list.size()}; }

}  // namespace ltc
