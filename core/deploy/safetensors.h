// The format of tensors in a file that the Hugging Face library safetensors reads and writes: a length of 8 bytes, JSON, bytes.
//
// Errors: DATA_CORRUPT for bytes that break the format; UNSUPPORTED for a dtype that it, or this reader, does not have.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/ir/type.h"

namespace ltc::deploy {

struct NamedTensor {
  std::string name;
  TypeId type = kNoType;  // contiguous
  std::string_view data;  // row-major
};

// In the order of the header. They point into `bytes`, each at a multiple of its dtype's size where `bytes` is aligned. `where`
// names the bytes in errors.
std::vector<NamedTensor> read_safetensors(std::string_view bytes, const std::string& where);

using TensorsByName = std::unordered_map<std::string_view, const NamedTensor*>;
inline TensorsByName tensors_by_name(std::span<const NamedTensor> tensors) {  // which stay where they are
  TensorsByName by_name;
  for (const NamedTensor& tensor : tensors) by_name.emplace(tensor.name, &tensor);
  return by_name;
}

// The bytes before the data. The data is that of the tensors one behind the other, in the order that this leaves them in: the
// widest dtype first, then by name. The size of the header is a multiple of 64.
std::string safetensors_header(std::vector<NamedTensor>& tensors);

}  // namespace ltc::deploy
