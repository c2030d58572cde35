// A constant argument of an operator, as bytes and back.
#pragma once
#include <ATen/core/ivalue.h>

#include <cstdint>
#include <string>
#include <vector>

#include "ltc/archive.hpp"

namespace ltc::torchscript {

struct Constant {
  enum class Kind : uint8_t { kNone, kInt, kDouble, kBool, kComplex, kInts, kDoubles, kBools, kString, kDevice };

  Constant() = default;
  // `device`: that of the program. It has another number where a saved program is loaded. Fails with UNSUPPORTED for what no
  // graph has: tensors, objects.
  Constant(const c10::IValue& value, c10::Device device);
  // Fails with DATA_CORRUPT.
  c10::IValue value(c10::Device device) const;

  Kind kind = Kind::kNone;
  std::vector<int64_t> ints;
  std::vector<double> doubles;
  std::string string;
};
void archive(plugin::Archive& io, Constant& constant);

}  // namespace ltc::torchscript
