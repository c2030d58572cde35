// Matrix products and convolutions.
#include <algorithm>

#include "ops.h"

namespace interpreter {
namespace {

template <typename T>
void add_product(T& sum, T x, T y) {
  sum = static_cast<T>(static_cast<Wide<T>>(sum) + static_cast<Wide<T>>(x) * static_cast<Wide<T>>(y));
}

template <typename T>
void bmm(const Call& call) {
  const Sizes &x = call.in[0].sizes(), &y = call.in[1].sizes();
  const int64_t rows = x[0] * x[1], inner = x[2], columns = y[2];
  T* const out = call.out[0].as<T>();
  std::fill_n(out, rows * columns, T(0));
  for (int64_t row = 0; row < rows; ++row) {
    const T* const left = call.in[0].as<const T>() + row * inner;
    const T* const right = call.in[1].as<const T>() + row / x[1] * inner * columns;
    for (int64_t k = 0; k < inner; ++k) {
      for (int64_t j = 0; j < columns; ++j) add_product(out[row * columns + j], left[k], right[k * columns + j]);
    }
  }
}

// Three dims, the first of size 1 where there are fewer.
using Grid = std::array<int64_t, 3>;

Grid grid_of(const Sizes& sizes) {
  Grid grid = {1, 1, 1};
  std::copy(sizes.begin() + 2, sizes.end(), grid.end() - (static_cast<int64_t>(sizes.size()) - 2));
  return grid;
}
// An attribute with one number per dim, or one for all.
Grid grid_of(const Sizes& numbers, int64_t otherwise, size_t dims) {
  Grid grid = {otherwise, otherwise, otherwise};
  for (size_t i = 0; i < dims && !numbers.empty(); ++i) grid[3 - dims + i] = numbers[numbers.size() == 1 ? 0 : i];
  return grid;
}
int64_t volume(const Grid& grid) { return grid[0] * grid[1] * grid[2]; }

// Calls void each(index, coordinates).
template <typename Each>
void for_each(const Grid& grid, const Each& each) {
  int64_t i = 0;
  for (int64_t a = 0; a < grid[0]; ++a) {
    for (int64_t b = 0; b < grid[1]; ++b) {
      for (int64_t c = 0; c < grid[2]; ++c) each(i++, Grid{a, b, c});
    }
  }
}

// A convolution reads from a fine grid and writes to a coarse one, a transposed one the other way round. Element k of a weight's
// window connects position p of the coarse grid with p * stride - padding + k * dilation of the fine one.
struct Geometry {
  Grid coarse, fine, window, stride, padding, dilation;

  // Positions of the last dim that one element of the window connects: p with start + p * stride, for p from first to end.
  struct Line {
    int64_t first, end, start;
  };

  // Calls void each(k, where the line is in the coarse grid, where in the fine one, line).
  template <typename Each>
  void for_each_line(const Each& each) const {
    for_each(window, [&](int64_t k, const Grid& offset) {
      const int64_t start = offset[2] * dilation[2] - padding[2], last = fine[2] - 1 - start;
      const Line line{start < 0 ? (stride[2] - 1 - start) / stride[2] : 0,
                      last < 0 ? 0 : std::min(last / stride[2] + 1, coarse[2]), start};
      for_each({coarse[0], coarse[1], 1}, [&](int64_t row, const Grid& p) {
        const int64_t a = p[0] * stride[0] - padding[0] + offset[0] * dilation[0];
        const int64_t b = p[1] * stride[1] - padding[1] + offset[1] * dilation[1];
        if (a < 0 || a >= fine[0] || b < 0 || b >= fine[1]) return;
        each(k, row * coarse[2], (a * fine[1] + b) * fine[2], line);
      });
    });
  }
};

template <typename T>
void convolution(const Call& call) {
  const Array &x = call.in[0], &weight = call.in[1], &out = call.out[0];
  const bool is_transposed = call.integer("transposed", 0) != 0;
  const size_t dims = x.sizes().size() - 2;
  const Grid in_grid = grid_of(x.sizes()), out_grid = grid_of(out.sizes());
  const Geometry geometry{is_transposed ? in_grid : out_grid,
                          is_transposed ? out_grid : in_grid,
                          grid_of(weight.sizes()),
                          grid_of(call.integers("stride"), 1, dims),
                          grid_of(call.integers("padding"), 0, dims),
                          grid_of(call.integers("dilation"), 1, dims)};
  const int64_t groups = call.integer("groups", 1), in_channels = x.sizes()[1] / groups, out_channels = out.sizes()[1] / groups;
  const int64_t in_volume = volume(in_grid), out_volume = volume(out_grid), window = volume(geometry.window);
  std::fill_n(out.as<T>(), out.count(), T(0));
  // One channel of the input and one of the output.
  const auto add = [&](const T* from, const T* w, T* to) {
    geometry.for_each_line([&](int64_t k, int64_t coarse, int64_t fine, const Geometry::Line& line) {
      const int64_t stride = geometry.stride[2], start = fine + line.start;
      for (int64_t p = line.first; p < line.end; ++p) {
        if (is_transposed) {
          add_product(to[start + p * stride], w[k], from[coarse + p]);
        } else {
          add_product(to[coarse + p], w[k], from[start + p * stride]);
        }
      }
    });
  };
  for (int64_t i = 0; i < x.sizes()[0] * groups; ++i) {  // each group of each element of the batch
    for (int64_t o = 0; o < out_channels; ++o) {
      for (int64_t c = 0; c < in_channels; ++c) {
        const int64_t group = i % groups;
        const int64_t w =
            is_transposed ? (group * in_channels + c) * out_channels + o : (group * out_channels + o) * in_channels + c;
        add(x.as<const T>() + (i * in_channels + c) * in_volume, weight.as<const T>() + w * window,
            out.as<T>() + (i * out_channels + o) * out_volume);
      }
    }
  }
}

template <typename... T>
Kernels products(Types<T...>) {
  return {{dtype_of<T>, bmm<T>}...};
}
template <typename... T>
Kernels convolutions(Types<T...>) {
  return {{dtype_of<T>, convolution<T>}...};
}

// 1 to 3 spatial dims, behind those of the batch and the channels.
bool has_known_rank(const Node& node) { return node.input(0).rank >= 3 && node.input(0).rank <= 5; }

}  // namespace

const Table product_ops{
    {"aten::bmm", {"TT:T", products(numbers)}},
    {"aten::convolution", {"TT-:T", convolutions(numbers)}, has_known_rank},
};

}  // namespace interpreter
