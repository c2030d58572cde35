#include "core/torch/tensor/geometry.h"

#include <algorithm>
#include <shared_mutex>

namespace ltc {
namespace {

constexpr int64_t kByValue = -1;  // the offset of a view node that takes it as an operand

// Attributes of a view node follow from its geometry, and building a list of them is far dearer than looking it up.
AttrsId view_attrs(TypeId view, int64_t offset) {
  struct Table {
    std::shared_mutex mutex;
    std::unordered_map<ViewKey, AttrsId, ViewKeyHash> known;
  };
  static auto* table = new Table();
  const ViewKey key{0, kNoType, view, offset};
  {
    std::shared_lock lock(table->mutex);
    if (const auto it = table->known.find(key); it != table->known.end()) return it->second;
  }
  const Type& type = type_of(view);
  AttrList list = {Attr::of_ints("size", type.sizes), Attr::of_ints("stride", type.strides)};
  if (offset != kByValue) list.push_back(Attr::of_int("storage_offset", offset));
  const AttrsId attrs = intern_attrs(list);
  std::unique_lock lock(table->mutex);
  table->known.emplace(key, attrs);
  return attrs;
}

ValueId emit(Recorder& recorder, const char* op, TypeId type, const AttrList& attrs, std::initializer_list<ValueId> inputs) {
  return recorder.node(intern_op(op), type, intern_attrs(attrs), std::span(inputs.begin(), inputs.size()));
}

ValueId emit_permute(Recorder& recorder, ValueId value, const std::vector<int64_t>& dims) {
  const Type& type = type_of(recorder.type_of_value(value));
  std::vector<int64_t> sizes;
  for (const int64_t dim : dims) sizes.push_back(type.sizes[dim]);
  return emit(recorder, "aten::permute", intern_contiguous(type.dtype, sizes), {Attr::of_ints("dims", dims)}, {value});
}

// The storage's contents in memory order: a value whose row-major elements are the storage's, in `dtype`.
ValueId read_memory(Recorder& recorder, LazyStorage& storage, DType dtype) {
  ValueId value = recorder.read(storage);
  const Type& declared = type_of(recorder.type(storage));
  if (!declared.contiguous) value = emit_permute(recorder, value, memory_order(declared));
  if (declared.dtype == dtype) return value;
  const int64_t flat[] = {declared.element_count};
  if (declared.sizes.size() != 1) {
    value =
        emit(recorder, "aten::reshape", intern_contiguous(declared.dtype, flat), {Attr::of_ints("shape", {flat[0]})}, {value});
  }
  const int64_t count[] = {static_cast<int64_t>(declared.size_bytes() / dtype_size_bytes(dtype))};
  return emit(recorder, "aten::view.dtype", intern_contiguous(dtype, count), {Attr::of_dtype("dtype", dtype)}, {value});
}

// The elements of `memory` that lie where the geometry and the offset say.
ValueId emit_strided_read(Recorder& recorder, ValueId memory, TypeId geometry, int64_t offset) {
  static const OpId constant = intern_op("aten::as_strided"), by_value = intern_op("ltc::as_strided");
  if (!recorder.offset_varies(geometry)) return recorder.node(constant, geometry, view_attrs(geometry, offset), {&memory, 1});
  const ValueId operands[] = {memory, recorder.scalar(DType::kI64, {.i = offset})};
  return recorder.node(by_value, geometry, view_attrs(geometry, kByValue), operands);
}

// `memory` with the elements of `value` at those places.
ValueId emit_strided_write(Recorder& recorder, ValueId memory, ValueId value, TypeId geometry, int64_t offset) {
  static const OpId constant = intern_op("aten::as_strided_scatter"), by_value = intern_op("ltc::as_strided_scatter");
  const TypeId type = recorder.type_of_value(memory);
  if (!recorder.offset_varies(geometry)) {
    const ValueId operands[] = {memory, value};
    return recorder.node(constant, type, view_attrs(geometry, offset), operands);
  }
  const ValueId operands[] = {memory, value, recorder.scalar(DType::kI64, {.i = offset})};
  return recorder.node(by_value, type, view_attrs(geometry, kByValue), operands);
}

// An empty storage reads as zeros: give it a value that covers it, shaped like the tensor if that is possible.
void fill_empty(Recorder& recorder, LazyStorage& storage, const c10::TensorImpl* tensor) {
  TypeId type = geometry_of(tensor);
  const size_t storage_bytes = tensor->unsafe_storage().nbytes();
  if (!type_of(type).dense || tensor->storage_offset() != 0 || type_of(type).size_bytes() != storage_bytes) {
    const int64_t count[] = {static_cast<int64_t>(storage_bytes / tensor->itemsize())};
    type = intern_contiguous(to_dtype(c10::typeMetaToScalarType(tensor->dtype())), count);
  }
  recorder.bind(storage, emit_full(recorder, type, 0), type);
}

// Both are their own inverse: the same for what is read and what is to be stored.
ValueId apply_lazy_bits(Recorder& recorder, const c10::TensorImpl* tensor, ValueId value) {
  const TypeId type = recorder.type_of_value(value);
  if (tensor->is_conj()) value = emit(recorder, "aten::_conj_physical", type, {}, {value});
  return tensor->is_neg() ? emit(recorder, "aten::neg", type, {}, {value}) : value;
}

bool covers_storage(const c10::TensorImpl* tensor, TypeId geometry) {
  const Type& type = type_of(geometry);
  return type.dense && tensor->storage_offset() == 0 && type.size_bytes() == tensor->unsafe_storage().nbytes();
}

// torch.load and UntypedStorage.copy_ leave bytes. The first tensor of another dtype that covers such a storage gives it its
// type, so that later steps convert nothing. A captured function leaves its arguments as they are.
bool gives_bytes_a_type(const Recorder& recorder, const LazyStorage& storage, const c10::TensorImpl* tensor, TypeId geometry) {
  return recorder.declared(storage).dtype == DType::kU8 && type_of(geometry).dtype != DType::kU8 && !t_capture &&
         covers_storage(tensor, geometry);
}

ValueId read_bits(Recorder& recorder, const c10::TensorImpl* tensor, TypeId geometry) {
  LazyStorage& storage = lazy_storage(tensor);
  if (recorder.is_empty(storage)) fill_empty(recorder, storage, tensor);
  const int64_t offset = tensor->storage_offset();
  const ValueId value = recorder.read(storage);
  if (offset == 0 && recorder.type(storage) == geometry) return value;
  const ViewKey key{value, recorder.type(storage), geometry, offset};
  ValueId view = recorder.find_view(key);
  if (view == kNone) {
    view = emit_strided_read(recorder, read_memory(recorder, storage, type_of(geometry).dtype), geometry, offset);
    recorder.remember_view(key, view);
    if (gives_bytes_a_type(recorder, storage, tensor, geometry)) recorder.bind(storage, view, geometry);
  }
  return view;
}

}  // namespace

TypeId geometry_of(const c10::TensorImpl* tensor) {
  return intern_type(to_dtype(c10::typeMetaToScalarType(tensor->dtype())), as_span(tensor->sizes()), as_span(tensor->strides()));
}

ValueId read_as(Recorder& recorder, const c10::TensorImpl* tensor, TypeId geometry) {
  const ValueId view = read_bits(recorder, tensor, geometry);
  return has_lazy_bits(tensor) ? apply_lazy_bits(recorder, tensor, view) : view;
}

ValueId read(Recorder& recorder, const c10::TensorImpl* tensor) {
  LazyStorage& storage = lazy_storage(tensor);
  const bool is_whole = whole_type(recorder, tensor, storage) != kNoType;
  return is_whole ? recorder.read(storage) : read_as(recorder, tensor, geometry_of(tensor));
}

void write(Recorder& recorder, const c10::TensorImpl* tensor, ValueId value) {
  if (tensor->numel() == 0) return;
  LazyStorage& storage = lazy_storage(tensor);
  const TypeId geometry = geometry_of(tensor);
  if (has_lazy_bits(tensor)) value = apply_lazy_bits(recorder, tensor, value);
  if (covers_storage(tensor, geometry)) return recorder.bind(storage, value, geometry);
  if (recorder.is_empty(storage)) fill_empty(recorder, storage, tensor);

  const ValueId memory = read_memory(recorder, storage, type_of(geometry).dtype);
  const TypeId memory_type = recorder.type_of_value(memory);
  ValueId updated = emit_strided_write(recorder, memory, value, geometry, tensor->storage_offset());
  const TypeId old = recorder.type(storage);
  if (type_of(old).dtype != type_of(geometry).dtype) return recorder.bind(storage, updated, memory_type);
  if (!type_of(old).contiguous) {  // back from memory order to the order of the declared dims
    const std::vector<int64_t> order = memory_order(type_of(old));
    std::vector<int64_t> inverse(order.size());
    for (size_t i = 0; i < order.size(); ++i) inverse[order[i]] = static_cast<int64_t>(i);
    updated = emit_permute(recorder, updated, inverse);
  }
  recorder.bind(storage, updated, old);
}

void grow_value(Recorder& recorder, LazyStorage& storage, size_t size_bytes) {
  const Type& old = type_of(recorder.type(storage));
  if (old.size_bytes() >= size_bytes) return;
  const int64_t count[] = {static_cast<int64_t>(size_bytes / dtype_size_bytes(old.dtype))};
  const int64_t kept[] = {old.element_count};
  const ValueId memory = read_memory(recorder, storage, old.dtype);
  const TypeId type = intern_contiguous(old.dtype, count), piece = intern_contiguous(old.dtype, kept);
  const ValueId flat = emit(recorder, "aten::reshape", piece, {Attr::of_ints("shape", {kept[0]})}, {memory});
  const ValueId operands[] = {emit_full(recorder, type, 0), flat};
  recorder.bind(storage, recorder.node(intern_op("aten::as_strided_scatter"), type, view_attrs(piece, 0), operands), type);
}

ValueId emit_number(Recorder& recorder, const Number& number) { return recorder.scalar(number.dtype, number.value); }

ValueId emit_full(Recorder& recorder, TypeId id, const c10::Scalar& fill) {
  const Type& type = type_of(id);
  return emit(recorder, "aten::full", id, {Attr::of_ints("size", type.sizes), Attr::of_dtype("dtype", type.dtype)},
              {emit_number(recorder, to_number(fill))});
}

ValueId emit_cast(Recorder& recorder, ValueId value, DType dtype) {
  const Type& type = type_of(recorder.type_of_value(value));
  if (type.dtype == dtype) return value;
  return emit(recorder, "aten::_to_copy", intern_type(dtype, type.sizes, type.strides), {Attr::of_dtype("dtype", dtype)},
              {value});
}

ValueId emit_expand(Recorder& recorder, ValueId value, c10::IntArrayRef sizes) {
  const Type& type = type_of(recorder.type_of_value(value));
  if (std::ranges::equal(type.sizes, sizes)) return value;
  return emit(recorder, "aten::expand", intern_contiguous(type.dtype, as_span(sizes)), {Attr::of_ints("size", sizes.vec())},
              {value});
}

}  // namespace ltc
