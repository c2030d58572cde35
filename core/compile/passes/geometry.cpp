#include "core/compile/passes/geometry.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include "core/ir/type.h"

namespace ltc {
namespace {

using Dims = std::vector<int64_t>;

int64_t product(std::span<const int64_t> sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), int64_t{1}, std::multiplies<>());
}

// A chain of view ops under construction. It leaves out ops that would change nothing.
class Chain {
 public:
  explicit Chain(Dims sizes) : sizes_(std::move(sizes)) {}

  const Dims& sizes() const { return sizes_; }
  std::vector<ViewOp> take() { return std::move(ops_); }

  void reshape(const Dims& to) {
    if (to != sizes_) add("aten::reshape", {Attr::of_ints("shape", to)}, to);
  }

  void slice(size_t dim, int64_t start, int64_t count, int64_t step) {
    if (count == sizes_[dim]) return;
    const int64_t end = count == 0 ? start : start + (count - 1) * step + 1;
    Dims to = sizes_;
    to[dim] = count;
    add("aten::slice.Tensor",
        {Attr::of_int("dim", static_cast<int64_t>(dim)), Attr::of_int("start", start), Attr::of_int("end", end),
         Attr::of_int("step", step)},
        to);
  }

  void permute(const Dims& dims) {
    if (std::ranges::is_sorted(dims)) return;
    Dims to(dims.size());
    std::ranges::transform(dims, to.begin(), [&](int64_t dim) { return sizes_[dim]; });
    add("aten::permute", {Attr::of_ints("dims", dims)}, to);
  }

  void expand(const Dims& to) {
    if (to != sizes_) add("aten::expand", {Attr::of_ints("size", to), {"implicit", AttrKind::kBool, {0}}}, to);
  }

 private:
  void add(const char* op, AttrList attrs, const Dims& to) {
    ops_.push_back({op, std::move(attrs), to});
    sizes_ = to;
  }

  Dims sizes_;
  std::vector<ViewOp> ops_;
};

// A dim of the result that moves through the source, or several that move as one.
struct Axis {
  int64_t size, stride;
  size_t place;  // among the result's dims
};

// From the largest stride to the smallest: the order in which they nest in the source.
std::vector<Axis> moving_axes(const Geometry& geometry) {
  std::vector<Axis> axes;
  for (size_t i = 0; i < geometry.sizes.size(); ++i) {
    if (geometry.sizes[i] != 1 && geometry.strides[i] != 0) axes.push_back({geometry.sizes[i], geometry.strides[i], i});
  }
  std::ranges::stable_sort(axes, std::greater<>(), &Axis::stride);
  return axes;
}

std::vector<Axis> coalesce(const std::vector<Axis>& axes) {
  std::vector<Axis> result;
  for (const Axis& axis : axes) {
    if (!result.empty() && result.back().stride == axis.size * axis.stride) {
      result.back() = {result.back().size * axis.size, axis.stride, axis.place};
    } else {
      result.push_back(axis);
    }
  }
  return result;
}

// The source seen as row-major dims with the given strides; none if they do not nest.
std::optional<Dims> sizes_of(int64_t element_count, const Dims& strides) {
  Dims sizes;
  int64_t outer = element_count;
  for (const int64_t stride : strides) {
    if (outer % stride != 0) return std::nullopt;
    sizes.push_back(outer / stride);
    outer = stride;
  }
  if (outer != 1) return std::nullopt;
  return sizes;
}

// Slices each dim of `chain`, seen with `strides`, so that exactly the axes remain, in their order. False if that cannot be.
bool slice_axes(Chain& chain, const Dims& strides, const std::vector<Axis>& axes, int64_t offset) {
  const Dims sizes = chain.sizes();
  size_t next = 0;  // dims before it are taken
  std::vector<const Axis*> axis_of(sizes.size(), nullptr);
  for (const Axis& axis : axes) {
    size_t dim = 0;
    while (axis.stride % strides[dim] != 0) ++dim;
    if (dim < next) return false;
    axis_of[dim] = &axis;
    next = dim + 1;
  }
  for (size_t dim = 0; dim < sizes.size(); ++dim) {
    const int64_t start = offset / strides[dim] % sizes[dim];
    const int64_t count = axis_of[dim] ? axis_of[dim]->size : 1;
    const int64_t step = axis_of[dim] ? axis_of[dim]->stride / strides[dim] : 1;
    if (start + (count - 1) * step >= sizes[dim]) return false;
    chain.slice(dim, start, count, step);
  }
  return true;
}

// From a chain whose dims other than 1 hold the axes in order, perhaps coalesced, to the geometry's dims.
void arrange(Chain& chain, const Geometry& geometry, const std::vector<Axis>& axes) {
  Dims narrow = geometry.sizes;  // before it is expanded
  for (size_t i = 0; i < narrow.size(); ++i) narrow[i] = geometry.strides[i] == 0 ? 1 : narrow[i];

  if (std::ranges::is_sorted(axes, {}, &Axis::place)) {
    const size_t rank = chain.sizes().size();
    const bool leading =
        narrow != geometry.sizes && rank < narrow.size() && product(std::span(narrow).first(narrow.size() - rank)) == 1;
    if (leading) narrow.erase(narrow.begin(), narrow.end() - static_cast<ptrdiff_t>(rank));  // expand adds dims in front
    chain.reshape(narrow);
  } else {
    Dims nested = narrow;  // the same dims of 1, the others in the order of the axes
    size_t axis = 0;
    for (int64_t& size : nested) size = size == 1 ? 1 : axes[axis++].size;
    Dims present = chain.sizes(), wanted = nested;
    std::erase(present, 1);
    std::erase(wanted, 1);
    if (present != wanted || chain.sizes().size() != nested.size()) chain.reshape(nested);

    Dims ones, moving, dims;
    for (size_t i = 0; i < nested.size(); ++i) (chain.sizes()[i] == 1 ? ones : moving).push_back(static_cast<int64_t>(i));
    auto one = ones.begin();
    for (size_t place = 0; place < narrow.size(); ++place) {
      const auto at = std::ranges::find(axes, place, &Axis::place);
      dims.push_back(at == axes.end() ? *one++ : moving[at - axes.begin()]);
    }
    chain.permute(dims);
  }
  chain.expand(geometry.sizes);
}

// The ways of seeing the source's elements that are worth a try: as it is, or split where the axes step.
std::vector<Dims> candidate_strides(std::span<const int64_t> source_sizes, const std::vector<Axis>& axes) {
  const Dims own = contiguous_strides(source_sizes);
  Dims natural = {1}, stepped = {1}, both = own;
  for (const Axis& axis : axes) {
    const auto divides = [&](int64_t stride) { return axis.stride % stride == 0; };
    if (const auto largest = std::ranges::find_if(own, divides); largest != own.end()) natural.push_back(*largest);
    stepped.push_back(axis.stride);
    both.push_back(axis.stride);
  }
  both.push_back(1);
  for (Dims* strides : {&natural, &stepped, &both}) {
    std::ranges::sort(*strides, std::greater<>());
    strides->erase(std::unique(strides->begin(), strides->end()), strides->end());
  }
  return {own, natural, stepped, both};
}

bool stays_inside(const Geometry& geometry, int64_t element_count) {
  int64_t last = geometry.offset;
  for (size_t i = 0; i < geometry.sizes.size(); ++i) {
    if (geometry.strides[i] < 0) return false;
    last += (geometry.sizes[i] - 1) * geometry.strides[i];
  }
  return geometry.offset >= 0 && last < element_count;
}

std::vector<ViewOp> decompose_empty(Chain chain, const Geometry& geometry) {
  if (product(chain.sizes()) != 0) {
    chain.reshape({product(chain.sizes())});
    chain.slice(0, 0, 0, 1);
  }
  chain.reshape(geometry.sizes);
  return chain.take();
}

}  // namespace

bool is_row_major(const Geometry& geometry, int64_t element_count) {
  if (product(geometry.sizes) != element_count) return false;
  if (element_count == 0) return true;
  int64_t expected = 1;
  for (size_t i = geometry.sizes.size(); i-- > 0;) {
    if (geometry.sizes[i] != 1 && geometry.strides[i] != expected) return false;
    expected *= geometry.sizes[i];
  }
  return geometry.offset == 0;
}

std::optional<std::vector<ViewOp>> decompose(std::span<const int64_t> source_sizes, const Geometry& geometry) {
  const Dims source(source_sizes.begin(), source_sizes.end());
  const int64_t element_count = product(source);
  if (product(geometry.sizes) == 0) return decompose_empty(Chain(source), geometry);
  if (!stays_inside(geometry, element_count)) return std::nullopt;

  const std::vector<Axis> axes = moving_axes(geometry);
  std::optional<std::vector<ViewOp>> best;
  for (const std::vector<Axis>& pieces : {axes, coalesce(axes)}) {
    for (const Dims& strides : candidate_strides(source, pieces)) {
      const std::optional<Dims> sizes = sizes_of(element_count, strides);
      if (!sizes) continue;
      Chain chain(source);
      chain.reshape(*sizes);
      if (!slice_axes(chain, strides, pieces, geometry.offset)) continue;
      arrange(chain, geometry, axes);
      std::vector<ViewOp> ops = chain.take();
      if (!best || ops.size() < best->size()) best = std::move(ops);
    }
  }
  return best;
}

}  // namespace ltc
