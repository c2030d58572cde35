// Facts about operators beyond their schemas: a row each (op_traits.cpp). The passes that choose kernels, threads and layouts
// read them.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace ltc::torchscript {

// How the operator's kernel wants its operands to lie in memory.
enum class OperandLayout : uint8_t {
  kAny,
  kRowMajor,  // it refuses others, as it leaves that to the code around it
  kPacked,    // row-major or channels last: through other strides it rounds what is between to the operands' type
};

// The cost of multiplying matrices: each element of one operand or result, with each of another but for its first dims.
struct ProductCost {
  size_t left;
  bool left_is_result;
  size_t right, right_dims;
  int64_t times;
  bool is_step = false;  // one of many that follow each other: work and threads are those of one
};

inline constexpr size_t kAlways = SIZE_MAX;

// An operator of images. Positions are those of its schema's arguments and results.
struct ImageTraits {
  size_t image;                       // what decides: it lies channels-last already, or this is a convolution or kAlways
  std::vector<size_t> operands;       // those that have to lie likewise
  std::vector<size_t> results;        // those that come so
  std::optional<size_t> weight = {};  // of a convolution: what it multiplies with
};

struct OpTraits {
  std::string_view name;           // with the overload only where that has traits of its own
  std::string_view own = {};       // the operator of ours that always computes it,
  bool own_on_any_device = false;  // on others than the CPU too
  OperandLayout layout = OperandLayout::kAny;
  std::optional<bool> any_threads = {};     // whether results are the same from any number; else known from tags (threads.cpp)
  std::optional<ProductCost> product = {};  // else its time follows from the elements that it reads and writes
  std::optional<ImageTraits> images = {};
  bool makes_forms = false;  // of params, which buffers keep (packed_forms.h)
};

// The row of that name; an empty one if there is none.
const OpTraits& traits_of(std::string_view name);

}  // namespace ltc::torchscript
