// Reductions, running sums and sorting. Each works on rows: the operand with the dims in question moved last and made one.
#include <algorithm>
#include <memory>
#include <numeric>

#include "strided.h"

namespace interpreter {
namespace {

// A copy of the operand as rows.
template <typename T>
struct Rows {
  int64_t count = 1, length = 1;
  std::unique_ptr<T[]> data;
  Type type;    // of the copy
  Sizes order;  // its dims, as numbers of the operand's

  // No dims: all of them.
  Rows(const Array& x, const Sizes& dims) {
    const size_t rank = x.sizes().size();
    std::vector<bool> is_chosen(rank, dims.empty());
    for (const int64_t dim : dims) {
      if (rank > 0) is_chosen[dim_of(dim, rank)] = true;
    }
    type = *x.type;
    for (const bool chosen : {false, true}) {
      for (size_t dim = 0; dim < rank; ++dim) {
        if (is_chosen[dim] != chosen) continue;
        type.sizes[order.size()] = x.sizes()[dim];
        (chosen ? length : count) *= x.sizes()[dim];
        order.push_back(static_cast<int64_t>(dim));
      }
    }
    data = std::make_unique_for_overwrite<T[]>(static_cast<size_t>(count * length));
    copy(type.sizes, sizeof(T), dense({&type, reinterpret_cast<char*>(data.get())}), moved(x));
  }
  std::span<T> row(int64_t i) const { return {data.get() + i * length, static_cast<size_t>(length)}; }

  // An array of the operand's sizes, its dims in the order of the rows.
  View moved(const Array& array) const {
    View view = dense(array);
    const Sizes strides = view.strides;
    for (size_t i = 0; i < order.size(); ++i) view.strides[i] = strides[static_cast<size_t>(order[i])];
    return view;
  }
  template <typename R>
  void put(const Array& out, R* from) const {
    Type as_rows = *out.type;
    as_rows.sizes = type.sizes;
    copy(type.sizes, sizeof(R), moved(out), dense({&as_rows, reinterpret_cast<char*>(from)}));
  }
};

// Each row becomes R(f(row)).
template <auto f, typename R, typename T>
void reduce(const Call& call) {
  const Rows<T> rows(call.in[0], call.integers("dim"));
  for (int64_t i = 0; i < rows.count; ++i) call.out[0].as<R>()[i] = static_cast<R>(f(std::span<const T>(rows.row(i))));
}
template <auto f, typename... T>
Kernels reductions(Types<T...>) {
  return {{dtype_of<T>, reduce<f, T, T>}...};
}
template <auto f, typename... T>
Kernels positions(Types<T...>) {
  return {{dtype_of<T>, reduce<f, int64_t, T>}...};
}

// F32 is summed in F64.
template <typename T>
using Sum = std::conditional_t<std::is_floating_point_v<T>, double, uint64_t>;

// By halves: the error grows with the logarithm of the length.
constexpr auto sum = []<typename T>(std::span<const T> row) {
  const auto of = [](const auto& self, std::span<const T> part) -> Sum<T> {
    if (part.size() <= 64) return std::accumulate(part.begin(), part.end(), Sum<T>(0));
    return self(self, part.first(part.size() / 2)) + self(self, part.subspan(part.size() / 2));
  };
  return of(of, row);
};

constexpr auto product = []<typename T>(std::span<const T> row) {
  return std::accumulate(row.begin(), row.end(), Wide<T>(1), [](Wide<T> a, T b) { return a * static_cast<Wide<T>>(b); });
};

// A NaN is larger than all else, and equal to others.
constexpr auto less = [](auto x, auto y) { return x < y || (x == x && y != y); };

// The position of the first largest element.
constexpr auto position = []<typename T>(std::span<const T> row) { return std::ranges::max_element(row, less) - row.begin(); };
constexpr auto largest = []<typename T>(std::span<const T> row) {
  return row.empty() ? T() : row[static_cast<size_t>(position(row))];  // an empty row has no largest one
};

template <typename T>
void cumsum(const Call& call) {
  const Rows<T> rows(call.in[0], {call.integer("dim", 0)});
  for (int64_t i = 0; i < rows.count; ++i) {
    Sum<T> running = 0;
    for (T& x : rows.row(i)) x = static_cast<T>(running += static_cast<Sum<T>>(x));
  }
  rows.put(call.out[0], rows.data.get());
}
template <typename... T>
Kernels cumsums(Types<T...>) {
  return {{dtype_of<T>, cumsum<T>}...};
}

template <typename T>
void sort(const Call& call) {
  const Rows<T> rows(call.in[0], {call.integer("dim", -1)});
  const bool is_descending = call.integer("descending", 0) != 0;
  const auto size = static_cast<size_t>(rows.count * rows.length);
  const auto values = std::make_unique_for_overwrite<T[]>(size);
  std::vector<int64_t> order(size);
  for (int64_t i = 0; i < rows.count; ++i) {
    const std::span<T> row = rows.row(i);
    const std::span part = std::span(order).subspan(static_cast<size_t>(i) * row.size(), row.size());
    std::iota(part.begin(), part.end(), 0);
    std::stable_sort(part.begin(), part.end(), [&](int64_t a, int64_t b) {
      const T x = row[static_cast<size_t>(a)], y = row[static_cast<size_t>(b)];
      return is_descending ? less(y, x) : less(x, y);
    });
    for (size_t k = 0; k < row.size(); ++k) values[static_cast<size_t>(i) * row.size() + k] = row[static_cast<size_t>(part[k])];
  }
  if (call.out[0].type) rows.put(call.out[0], values.get());
  if (call.out[1].type) rows.put(call.out[1], order.data());
}
template <typename... T>
Kernels sorts(Types<T...>) {
  return {{dtype_of<T>, sort<T>}...};
}

}  // namespace

const Table reduction_ops{
    {"aten::sum.dim_IntList", {"T:T", reductions<sum>(numbers)}},
    {"aten::prod.dim_int", {"T:T", reductions<product>(numbers)}},
    {"aten::amax", {"T:T", reductions<largest>(all_computed)}},
    {"aten::argmax", {"T:i", positions<position>(all_computed)}},
    {"aten::cumsum", {"T:T", cumsums(numbers)}},
    {"aten::sort.stable", {"T:Ti", sorts(all_computed)}},
};

}  // namespace interpreter
