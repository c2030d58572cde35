#include "core/torch/dispatch/small_calls.h"

#include <ATen/ops/empty_strided.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <ranges>

#include "core/torch/dispatch/dummy_inputs.h"
#include "core/torch/dispatch/map_tensors.h"

namespace ltc {
namespace {

using Types = std::vector<TypeId>;
using Moves = std::vector<int64_t>;  // by unit: how many steps it is from where it begins

constexpr int64_t kMostElements = 1 << 21;  // of the operands of a small call
constexpr size_t kMostUnits = 8;

// How sizes become small. They keep their remainder by `step`, so that what divides one still does, and halves are whole where
// they were. A size that is so few times another one stays so.
struct Scheme {
  int64_t step, most_times;
};
constexpr Scheme kSchemes[] = {{24, 4}, {8, 4}, {8, 1}, {2, 1}};

// The sizes of a call, and what becomes of each. Equal ones stay equal, their order is kept, small ones stay as they are.
class SmallSizes {
 public:
  SmallSizes(const Scheme& scheme, const std::vector<int64_t>& ascending) : scheme_(scheme) {
    for (const int64_t size : ascending) {
      if (size >= smallest()) add(size);
    }
  }

  size_t unit_count() const { return units_.size(); }
  // From where the units begin to where they have the sizes of the call.
  Moves to_the_call() const {
    Moves moves;
    for (size_t i = 0; i < units_.size(); ++i) moves.push_back((units_[i] - begin_of(i)) / scheme_.step);
    return moves;
  }

  int64_t size_at(int64_t size, const Moves& moves) const {
    if (size < smallest()) return size;
    return size_at(*std::ranges::lower_bound(sizes_, size, {}, &Size::value), moves);
  }
  bool keep_order_at(const Moves& moves) const {
    const auto descend = [&](const Size& a, const Size& b) { return size_at(a, moves) >= size_at(b, moves); };
    return std::ranges::adjacent_find(sizes_, descend) == sizes_.end();
  }

 private:
  // So many times a unit, and a bit more. Units vary independently.
  struct Size {
    int64_t value;
    size_t unit;
    int64_t times, more;
  };
  static constexpr int64_t kNear = 4;

  int64_t smallest() const { return std::max<int64_t>(scheme_.step, 8); }
  // Apart from each other by more than any of them moves.
  int64_t begin_of(size_t unit) const {
    return smallest() + 3 * scheme_.step * static_cast<int64_t>(unit) + units_[unit] % scheme_.step;
  }
  int64_t size_at(const Size& size, const Moves& moves) const {
    return size.times * (begin_of(size.unit) + moves[size.unit] * scheme_.step) + size.more;
  }

  void add(int64_t value) {
    for (const Size& known : std::views::reverse(sizes_)) {
      if (const int64_t more = value - known.value; more <= kNear) {
        sizes_.push_back({value, known.unit, known.times, known.more + more});
        return;
      }
      if (const int64_t times = value / known.value; value % known.value == 0 && times <= scheme_.most_times) {
        sizes_.push_back({value, known.unit, known.times * times, known.more * times});
        return;
      }
    }
    sizes_.push_back({value, units_.size(), 1, 0});
    units_.push_back(value);
  }

  const Scheme scheme_;
  std::vector<Size> sizes_;  // ascending
  std::vector<int64_t> units_;
};

// Strides that lay small sizes out as the strides of a tensor do its sizes: in the same order, with gaps, overlaps and
// repetitions in the same places.
std::vector<int64_t> small_strides(c10::IntArrayRef sizes, c10::IntArrayRef strides, const std::vector<int64_t>& small_sizes) {
  std::vector<size_t> order;
  for (size_t dim = 0; dim < sizes.size(); ++dim) {
    if (strides[dim] > 0) order.push_back(dim);
  }
  std::ranges::stable_sort(order, {}, [&](size_t dim) { return std::pair(strides[dim], sizes[dim]); });
  std::vector<int64_t> result(sizes.size(), 0);
  int64_t inside = 1, small_inside = 1;
  for (const size_t dim : order) {
    const bool has_gap = strides[dim] > inside, overlaps = strides[dim] < inside;
    result[dim] = has_gap    ? 2 * small_inside
                  : overlaps ? std::min(strides[dim], std::max<int64_t>(small_inside - 1, 1))
                             : small_inside;
    inside = std::max(inside, strides[dim] * std::max<int64_t>(sizes[dim], 1));
    small_inside = std::max(small_inside, result[dim] * std::max<int64_t>(small_sizes[dim], 1));
  }
  return result;
}

// The strides of `type`, which is dense, for other sizes.
std::optional<std::vector<int64_t>> strides_as(const Type& type, const std::vector<int64_t>& sizes) {
  const std::vector<int64_t> order = memory_order(type);
  std::vector<std::pair<int64_t, int64_t>> steps = {{1, 1}};  // of `type` and for `sizes`, from the innermost out
  for (const int64_t dim : std::views::reverse(order)) {
    if (type.sizes[dim] < 2) continue;
    const auto [small, large] = steps.back();
    int64_t next = 0;
    if (__builtin_mul_overflow(large, std::max<int64_t>(sizes[dim], 1), &next)) return std::nullopt;
    steps.emplace_back(small * type.sizes[dim], next);
  }
  std::vector<int64_t> strides;
  for (const int64_t stride : type.strides) {
    const auto step = std::ranges::find(steps, stride, &std::pair<int64_t, int64_t>::first);
    if (step == steps.end()) return std::nullopt;
    strides.push_back(step->second);
  }
  return strides;
}

std::optional<TypeId> type_as(const Type& type, const std::vector<int64_t>& sizes) {
  const auto strides = strides_as(type, sizes);
  if (!strides || !is_valid({type.dtype, sizes, *strides})) return std::nullopt;
  return intern_type(type.dtype, sizes, *strides);
}

// One call, made small by one scheme.
class SmallCall {
 public:
  SmallCall(const OpEntry& entry, const torch::jit::Stack& args, bool moves_numbers, SmallSizes sizes)
      : entry_(entry), args_(args), moves_numbers_(moves_numbers), sizes_(std::move(sizes)) {}

  std::optional<Types> answer() {
    const size_t units = sizes_.unit_count();
    if (units == 0 || units > kMostUnits || !begin()) return std::nullopt;
    for (size_t unit = 0; unit < units; ++unit) {
      Moves moves(units, 0);
      moves[unit] = 1;
      const auto outputs = outputs_at(moves);
      if (!outputs || !note_slopes(*outputs) || predicted(moves) != outputs) return std::nullopt;
    }
    const Moves all(units, 2);
    const auto outputs = outputs_at(all);
    return outputs && predicted(all) == outputs ? predicted(sizes_.to_the_call()) : std::nullopt;
  }

 private:
  // Runs the call where all units begin, with dummy inputs that suit it.
  bool begin() {
    for (const Fill fill : kFills) {
      fill_ = fill;
      if (auto outputs = outputs_at(Moves(sizes_.unit_count(), 0))) {
        begin_ = std::move(*outputs);
        slopes_.resize(begin_.size());
        return true;
      }
    }
    return false;
  }

  std::optional<Types> outputs_at(const Moves& moves) {
    if (!sizes_.keep_order_at(moves)) return std::nullopt;
    elements_ = 0;
    torch::jit::Stack stack;
    for (size_t i = 0; i < args_.size(); ++i) {
      stack.push_back(small(entry_.args[i], args_[i], moves));
      if (elements_ > kMostElements) return std::nullopt;
    }
    return try_on(entry_, stack);
  }

  c10::IValue small(const Arg& arg, const c10::IValue& value, const Moves& moves) {
    if (value.isDevice()) return c10::Device(at::kCPU);
    const bool is_number = arg.kind == ArgKind::kNumber && moves_numbers_;
    if (is_number || (arg.kind == ArgKind::kConstant && !arg.is_dtype)) {
      if (value.isInt()) return sizes_.size_at(value.toInt(), moves);
      if (value.isDouble() && is_number && value.toDouble() == std::trunc(value.toDouble()) &&
          std::abs(value.toDouble()) < 1e15) {
        return static_cast<double>(sizes_.size_at(static_cast<int64_t>(value.toDouble()), moves));
      }
      if (value.isIntList()) {
        std::vector<int64_t> list = value.toIntVector();
        for (int64_t& size : list) size = sizes_.size_at(size, moves);
        return list;
      }
    }
    return map_tensors(value, [&](const at::Tensor& tensor) { return small_tensor(tensor, moves); });
  }

  at::Tensor small_tensor(const at::Tensor& tensor, const Moves& moves) {
    if (!tensor.defined() || !is_lazy(tensor)) return tensor;
    std::vector<int64_t> sizes = tensor.sizes().vec();
    int64_t elements = 1;
    for (int64_t& size : sizes) {
      size = sizes_.size_at(size, moves);
      if (__builtin_mul_overflow(elements, size, &elements)) elements = kMostElements + 1;
    }
    elements_ += std::min(elements, kMostElements + 1);
    if (elements_ > kMostElements) return tensor;
    const std::vector<int64_t> strides = small_strides(tensor.sizes(), tensor.strides(), sizes);
    return filled(at::empty_strided(sizes, strides, tensor.options().device(at::kCPU)), fill_);
  }

  // How much larger each size of each output is than at the beginning, for the next unit.
  bool note_slopes(const Types& outputs) {
    if (outputs.size() != begin_.size()) return false;
    for (size_t i = 0; i < outputs.size(); ++i) {
      std::vector<int64_t>& slope = slopes_[i].emplace_back();
      if (outputs[i] == kNoType || begin_[i] == kNoType) {
        if (outputs[i] != begin_[i]) return false;
        continue;
      }
      const Type &before = type_of(begin_[i]), &after = type_of(outputs[i]);
      if (before.sizes.size() != after.sizes.size()) return false;
      for (size_t dim = 0; dim < before.sizes.size(); ++dim) slope.push_back(after.sizes[dim] - before.sizes[dim]);
    }
    return true;
  }

  std::optional<Types> predicted(const Moves& moves) const {
    Types types;
    for (size_t i = 0; i < begin_.size(); ++i) {
      if (begin_[i] == kNoType) {
        types.push_back(kNoType);
        continue;
      }
      std::vector<int64_t> sizes = type_of(begin_[i]).sizes;
      for (size_t unit = 0; unit < slopes_[i].size(); ++unit) {
        for (size_t dim = 0; dim < sizes.size(); ++dim) sizes[dim] += slopes_[i][unit][dim] * moves[unit];
      }
      const auto type = type_as(type_of(begin_[i]), sizes);
      if (!type) return std::nullopt;
      types.push_back(*type);
    }
    return types;
  }

  const OpEntry& entry_;
  const torch::jit::Stack& args_;
  const bool moves_numbers_;
  const SmallSizes sizes_;
  Fill fill_ = Fill::kZeros;
  int64_t elements_ = 0;  // of the operands of the call that is being made
  Types begin_;
  std::vector<std::vector<std::vector<int64_t>>> slopes_;  // by output, unit and dim
};

// All numbers of a call that may be sizes, ascending. Without tensors its numbers say how much it makes.
std::vector<int64_t> sizes_of(const OpEntry& entry, const torch::jit::Stack& args, bool moves_numbers) {
  std::vector<int64_t> sizes;
  const auto add = [&](int64_t size) { sizes.push_back(size); };
  for_each_tensor(args, [&](const at::Tensor& tensor) {
    if (is_lazy(tensor)) std::ranges::for_each(tensor.sizes(), add);
  });
  for (size_t i = 0; i < args.size(); ++i) {
    const Arg& arg = entry.args[i];
    if (arg.is_dtype || (arg.kind != ArgKind::kConstant && !(arg.kind == ArgKind::kNumber && moves_numbers))) continue;
    if (args[i].isInt()) add(args[i].toInt());
    if (args[i].isDouble() && std::abs(args[i].toDouble()) < 1e15) add(static_cast<int64_t>(args[i].toDouble()));
    if (args[i].isIntList()) std::ranges::for_each(args[i].toIntVector(), add);
  }
  std::ranges::sort(sizes);
  sizes.erase(std::ranges::unique(sizes).begin(), sizes.end());
  return sizes;
}

}  // namespace

std::optional<Types> infer_from_small_calls(const OpEntry& entry, const torch::jit::Stack& args, bool asks_kernel) {
  bool has_tensors = false;
  for_each_tensor(args, [&](const at::Tensor& tensor) { has_tensors |= is_lazy(tensor); });
  const bool moves_numbers = !has_tensors && !asks_kernel;
  const std::vector<int64_t> sizes = sizes_of(entry, args, moves_numbers);
  for (const Scheme& scheme : kSchemes) {
    if (auto outputs = SmallCall(entry, args, moves_numbers, SmallSizes(scheme, sizes)).answer()) return outputs;
  }
  return std::nullopt;
}

}  // namespace ltc
