#include "torchscript/ops/random_layouts.h"

#include <ATen/EmptyTensor.h>
#include <ATen/ops/from_blob.h>
#include <c10/util/StringUtil.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string_view>

#include "torchscript/graph/errors.h"

namespace ltc::torchscript {
namespace {

constexpr int64_t kMostChecked = 1 << 18;  // bytes whose gaps are looked at in the end
constexpr int64_t kMostOffset = 40, kMostRowGap = 3, kMostElementGap = 2;

std::optional<uint64_t> g_seed;  // written before the first program is compiled

struct Layout {
  c10::DimVector sizes, strides;
  int64_t offset, extent;  // elements; the extent is that of the memory, from its begin
};

Layout random_layout(at::IntArrayRef sizes, std::mt19937_64& random) {
  const auto up_to = [&](int64_t most) { return static_cast<int64_t>(random() % static_cast<uint64_t>(most + 1)); };
  c10::DimVector order(sizes.size()), strides(sizes.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int64_t>(i);
  std::shuffle(order.begin(), order.end(), random);
  const bool has_gaps = up_to(1) == 1;
  const int64_t offset = up_to(1) * up_to(kMostOffset);
  int64_t next = has_gaps && up_to(1) == 1 ? 1 + up_to(kMostElementGap) : 1, last = 0;
  for (const int64_t dim : order) {
    const auto i = static_cast<size_t>(dim);
    if (sizes[i] <= 1) {
      strides[i] = up_to(1) == 1 ? next : 1 + up_to(3 * next);
      continue;
    }
    strides[i] = next;
    last += (sizes[i] - 1) * next;
    next = next * sizes[i] + (has_gaps ? up_to(kMostRowGap) : 0);
  }
  return {c10::DimVector(sizes), strides, offset, offset + last + 1 + up_to(kMostOffset)};
}

// Memory of a layout; what is no element of it holds one byte all over.
class Poisoned {
 public:
  Poisoned(Layout layout, at::ScalarType dtype)
      : layout_(std::move(layout)),
        dtype_(dtype),
        size_(static_cast<int64_t>(c10::elementSize(dtype))),
        // NaN; of integers the largest, or nearly.
        poison_(c10::isFloatingType(dtype) || c10::isComplexType(dtype) || dtype == at::kBool ? 0xFF : 0x7F),
        block_(at::detail::empty_cpu({layout_.extent * size_}, at::kByte)) {
    std::memset(data(), poison_, static_cast<size_t>(layout_.extent * size_));
  }

  uint8_t* data() const { return static_cast<uint8_t*>(block_.mutable_data_ptr()); }
  const Layout& layout() const { return layout_; }

  // Nobody reads the elements any more.
  void check_gaps() const {
    const int64_t bytes = layout_.extent * size_;
    if (bytes > kMostChecked) return;
    poison(0, data() + layout_.offset * size_);
    if (std::all_of(data(), data() + bytes, [this](uint8_t byte) { return byte == poison_; })) return;
    const std::string text = c10::str(dtype_, layout_.sizes, " with strides ", layout_.strides, " at offset ", layout_.offset);
    std::fprintf(stderr, "layouts=random: something was written beside the elements of a %s\n", text.c_str());
    std::abort();
  }

 private:
  void poison(size_t dim, uint8_t* at) const {
    if (dim == layout_.sizes.size()) {
      std::memset(at, poison_, static_cast<size_t>(size_));
      return;
    }
    for (int64_t i = 0; i < layout_.sizes[dim]; ++i) poison(dim + 1, at + i * layout_.strides[dim] * size_);
  }

  const Layout layout_;
  const at::ScalarType dtype_;
  const int64_t size_;
  const uint8_t poison_;
  const at::Tensor block_;
};

}  // namespace

std::optional<uint64_t> layouts_seed() { return g_seed; }

void choose_layouts_seed(std::string_view value) {
  const size_t colon = value.find(':');
  if (colon != value.npos) g_seed = std::strtoull(std::string(value.substr(colon + 1)).c_str(), nullptr, 10);
}

// One value of four stays as its kernel made it, so that expanded values and in-place operators occur too.
at::Tensor in_random_layout(const at::Tensor& self, int64_t seed) {
  std::mt19937_64 random(static_cast<uint64_t>(seed));
  const bool is_value = self.defined() && self.layout() == at::kStrided && self.device().is_cpu() && !self.is_quantized() &&
                        !self.unsafeGetTensorImpl()->is_wrapped_number();
  if (!is_value || random() % 4 == 0) return self;
  auto* const memory = new Poisoned(random_layout(self.sizes(), random), self.scalar_type());
  const Layout& layout = memory->layout();
  const auto free = [](void* context) {
    static_cast<Poisoned*>(context)->check_gaps();
    delete static_cast<Poisoned*>(context);
  };
  at::Tensor moved = at::for_blob(memory->data(), layout.sizes)
                         .strides(layout.strides)
                         .storage_offset(layout.offset)
                         .context(memory, free)
                         .options(at::TensorOptions(self.scalar_type()))
                         .make_tensor();
  return moved.copy_(self);
}

}  // namespace ltc::torchscript
