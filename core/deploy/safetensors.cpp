#include "core/deploy/safetensors.h"

#include <algorithm>
#include <array>
#include <set>

#include "core/base/bytes.h"
#include "core/deploy/json.h"

namespace ltc::deploy {
namespace {

constexpr std::pair<DType, std::string_view> kNames[] = {
    {DType::kBool, "BOOL"},      {DType::kU8, "U8"},
    {DType::kI8, "I8"},          {DType::kI16, "I16"},
    {DType::kU16, "U16"},        {DType::kI32, "I32"},
    {DType::kU32, "U32"},        {DType::kI64, "I64"},
    {DType::kU64, "U64"},        {DType::kF16, "F16"},
    {DType::kBF16, "BF16"},      {DType::kF32, "F32"},
    {DType::kF64, "F64"},        {DType::kF8E4M3FN, "F8_E4M3"},
    {DType::kF8E5M2, "F8_E5M2"}, {DType::kC64, "C64"},
};
constexpr size_t kHeaderAlignment = 64;
constexpr uint64_t kMostHeader = 100'000'000;  // as in the library

std::string_view name_of(DType dtype, const std::string& tensor) {
  const auto* found = std::ranges::find(kNames, dtype, [](const auto& row) { return row.first; });
  if (found == std::end(kNames))
    fail(Code::kUnsupported, "tensor ", tensor, " is of dtype ", dtype_name(dtype), ", which safetensors files do not have");
  return found->second;
}

TypeId type_of_entry(const JsonObject& entry) {
  const std::string name = entry.text("dtype");
  const auto* found = std::ranges::find(kNames, name, [](const auto& row) { return row.second; });
  if (found == std::end(kNames)) fail(Code::kUnsupported, entry.where(), ": dtype ", name, " is not known here");
  const std::vector<int64_t> sizes = entry.integers("shape");
  if (std::ranges::any_of(sizes, [](int64_t size) { return size < 0; })) entry.corrupt("shape has a size below 0");
  const std::vector<int64_t> strides(sizes.size(), 0);
  if (!is_valid({found->first, sizes, strides})) entry.corrupt("shape has too many elements");
  return intern_contiguous(found->first, sizes);
}

}  // namespace

std::vector<NamedTensor> read_safetensors(std::string_view bytes, const std::string& where) {
  if (bytes.size() < 8) fail(Code::kDataCorrupt, where, ": ", bytes.size(), " bytes are no safetensors file");
  ByteReader in(bytes);
  const auto header_size = in.number<uint64_t>();
  if (header_size > kMostHeader || header_size > in.left())
    fail(Code::kDataCorrupt, where, ": a header of ", header_size, " bytes");
  const Json header = parse_json(in.take(header_size), where);
  const std::string_view data = bytes.substr(8 + header_size);
  const JsonObject root(header, where);
  std::vector<NamedTensor> tensors;
  for (const auto& [name, value] : header.items()) {
    if (name == "__metadata__") continue;
    const JsonObject entry(value, cat(where, ": ", name));
    entry.only({"dtype", "shape", "data_offsets"});
    const std::vector<int64_t> offsets = entry.integers("data_offsets");
    const TypeId type = type_of_entry(entry);
    if (offsets.size() != 2 || offsets[0] < 0 || offsets[1] < offsets[0] || static_cast<uint64_t>(offsets[1]) > data.size())
      entry.corrupt("data_offsets of ", data.size(), " bytes");
    const auto size = static_cast<size_t>(offsets[1] - offsets[0]);
    if (size != type_of(type).size_bytes())
      entry.corrupt("data_offsets hold ", size, " bytes, its shape ", type_of(type).size_bytes());
    tensors.push_back({name, type, data.substr(static_cast<size_t>(offsets[0]), size)});
  }
  std::vector<const NamedTensor*> by_place;
  for (const NamedTensor& tensor : tensors) by_place.push_back(&tensor);
  std::ranges::stable_sort(by_place, {},
                           [](const NamedTensor* tensor) { return std::pair(tensor->data.data(), tensor->data.size()); });
  const char* end = data.data();
  for (const NamedTensor* tensor : by_place) {
    if (tensor->data.data() != end)
      fail(Code::kDataCorrupt, where, ": the data of ", tensor->name, " does not follow that of the tensor before");
    end += tensor->data.size();
  }
  if (end != data.data() + data.size()) fail(Code::kDataCorrupt, where, ": bytes behind the last tensor");
  return tensors;
}

std::string safetensors_header(std::vector<NamedTensor>& tensors) {
  std::ranges::sort(tensors, [](const NamedTensor& a, const NamedTensor& b) {
    const size_t wide = dtype_size_bytes(type_of(a.type).dtype), other = dtype_size_bytes(type_of(b.type).dtype);
    return wide != other ? wide > other : a.name < b.name;
  });
  Json header = Json::object();
  uint64_t offset = 0;
  for (const NamedTensor& tensor : tensors) {
    const Type& type = type_of(tensor.type);
    ensure(tensor.data.size() == type.size_bytes(), "the bytes of a tensor");
    if (header.contains(tensor.name)) fail(Code::kInvalidArgument, "two tensors are called ", tensor.name);
    header[tensor.name] = {{"dtype", name_of(type.dtype, tensor.name)},
                           {"shape", type.sizes},
                           {"data_offsets", {offset, offset + tensor.data.size()}}};
    offset += tensor.data.size();
  }
  std::string text = header.dump();
  text.resize((text.size() + 8 + kHeaderAlignment - 1) / kHeaderAlignment * kHeaderAlignment - 8, ' ');
  ByteWriter out;
  out.text(text);
  return out.take();
}

}  // namespace ltc::deploy
