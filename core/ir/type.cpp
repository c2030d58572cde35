#include "core/ir/type.h"

#include <algorithm>
#include <numeric>

#include "core/base/hash.h"

namespace ltc {
namespace {

struct TypeHash {
  uint64_t operator()(const TypeKey& key) const {
    const uint64_t hash = hash_bytes(static_cast<uint64_t>(key.dtype), key.sizes.data(), key.sizes.size_bytes());
    return hash_bytes(hash, key.strides.data(), key.strides.size_bytes());
  }
};

InternTable<Type, TypeHash>& table() {
  static auto* instance = new InternTable<Type, TypeHash>("combinations of dtype, sizes and strides");
  return *instance;
}

// Strides of dims of size 1 mean nothing; the others, sorted outermost first, must each step over exactly what lies inside.
bool is_dense(const Type& type, std::span<const int64_t> order) {
  int64_t expected = 1;
  for (auto dim = order.rbegin(); dim != order.rend(); ++dim) {
    if (type.sizes[*dim] == 1) continue;
    if (type.strides[*dim] != expected) return false;
    expected *= type.sizes[*dim];
  }
  return true;
}

}  // namespace

std::vector<int64_t> contiguous_strides(std::span<const int64_t> sizes) {
  std::vector<int64_t> strides(sizes.size());
  int64_t step = 1;
  for (size_t i = sizes.size(); i-- > 0;) {
    strides[i] = step;
    step *= std::max<int64_t>(sizes[i], 1);  // as PyTorch has it for empty tensors
  }
  return strides;
}

std::vector<int64_t> memory_order(const Type& type) {
  std::vector<int64_t> order(type.sizes.size());
  std::iota(order.begin(), order.end(), 0);
  if (type.contiguous) return order;
  // Dims of size 1 go first: their strides mean nothing and must not decide an order.
  const auto moving = std::stable_partition(order.begin(), order.end(), [&](int64_t dim) { return type.sizes[dim] == 1; });
  std::stable_sort(moving, order.end(), [&](int64_t a, int64_t b) { return type.strides[a] > type.strides[b]; });
  return order;
}

Type::Type(const TypeKey& key)
    : dtype(key.dtype), sizes(key.sizes.begin(), key.sizes.end()), strides(key.strides.begin(), key.strides.end()) {
  element_count = std::accumulate(sizes.begin(), sizes.end(), int64_t{1}, std::multiplies<>());
  std::vector<int64_t> row_major(sizes.size());
  std::iota(row_major.begin(), row_major.end(), 0);
  contiguous = element_count == 0 || is_dense(*this, row_major);
  contiguous_strides = strides == ltc::contiguous_strides(sizes);
  dense = contiguous || is_dense(*this, memory_order(*this));
}

bool Type::operator==(const TypeKey& key) const {
  return dtype == key.dtype && std::ranges::equal(sizes, key.sizes) && std::ranges::equal(strides, key.strides);
}

bool is_valid(const TypeKey& key) {
  const auto dtype = static_cast<uint32_t>(key.dtype);
  if (dtype == 0 || dtype >= kDTypeCount || key.sizes.size() != key.strides.size()) return false;
  auto bytes = static_cast<int64_t>(dtype_size_bytes(key.dtype));
  return std::ranges::all_of(
      key.sizes, [&](int64_t size) { return size >= 0 && !__builtin_mul_overflow(bytes, std::max<int64_t>(size, 1), &bytes); });
}

TypeId intern_type(DType dtype, std::span<const int64_t> sizes, std::span<const int64_t> strides) {
  return table().intern(TypeKey{dtype, sizes, strides});
}

TypeId intern_contiguous(DType dtype, std::span<const int64_t> sizes) {
  return intern_type(dtype, sizes, contiguous_strides(sizes));
}

TypeId scalar_type(DType dtype) { return intern_contiguous(dtype, {}); }

const Type& type_of(TypeId id) { return table()[id]; }

bool same_shape(const Type& a, const Type& b) { return a.dtype == b.dtype && a.sizes == b.sizes; }

}  // namespace ltc
