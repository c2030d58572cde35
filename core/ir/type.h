// Types of values: element type, sizes, and the strides that the program was promised.
//
// A value has no layout: a plugin lays its bytes out as it likes and the graph that it sees has dtype and sizes only. Strides are
// declared geometry, what eager PyTorch would have answered, kept because later results' strides depend on them.
#pragma once

#include <span>
#include <vector>

#include "core/base/intern.h"
#include "core/ir/dtype.h"

namespace ltc {

// The fields that tell types apart.
struct TypeKey {
  DType dtype;
  std::span<const int64_t> sizes, strides;
};

struct Type {
  Type() = default;
  explicit Type(const TypeKey& key);

  DType dtype = DType::kNone;
  std::vector<int64_t> sizes;
  std::vector<int64_t> strides;     // in elements, one per size
  int64_t element_count = 0;        // product of sizes
  bool dense = false;               // the elements fill element_count places in some order of the dims, without gap or overlap
  bool contiguous = false;          // and that order is row-major
  bool contiguous_strides = false;  // and the strides are those that PyTorch gives a new tensor, dims of size 1 included

  bool operator==(const TypeKey& key) const;
  size_t size_bytes() const { return static_cast<size_t>(element_count) * dtype_size_bytes(dtype); }
};

using TypeId = uint32_t;
inline constexpr TypeId kNoType = UINT32_MAX;

// Whether a value can be of that type: no negative size, as many strides as sizes, and its bytes can be counted in 63 bits, also
// where sizes of 0 are taken for 1, as strides are. To be asked before interning what comes from outside.
bool is_valid(const TypeKey& key);

// Types are interned: one integer says "same dtype, sizes and strides".
TypeId intern_type(DType dtype, std::span<const int64_t> sizes, std::span<const int64_t> strides);
TypeId intern_contiguous(DType dtype, std::span<const int64_t> sizes);
TypeId scalar_type(DType dtype);  // rank 0
const Type& type_of(TypeId id);

// Whether values of the two types can have the same contents: equal dtype and sizes, whatever the declared strides.
bool same_shape(const Type& a, const Type& b);

std::vector<int64_t> contiguous_strides(std::span<const int64_t> sizes);

// The dims of a dense type from outermost to innermost in memory: permuting by it gives row-major order.
std::vector<int64_t> memory_order(const Type& type);

}  // namespace ltc
