#include "kernels/plan/sort.h"

#include "kernels/graph/dtype.h"
#include "kernels/print/formula.h"

namespace ltc::kernels {
namespace {

// Merges runs of 1, 2, 4, ... positions, from `order` to `spare` and back. Equal elements keep their order.
constexpr std::string_view kBody = R"(  const i64 base = (i64)(i0 / c2) * c1 * c2 + i0 % c2;
  GLOBAL const T* x = b0 + base;
  GLOBAL i32* order = b3 + (i64)i0 * c1;
  GLOBAL i32* spare = b4 + (i64)i0 * c1;
  for (ix i = 0; i < c1; ++i) order[i] = (i32)i;
  for (ix width = 1; width < c1; width *= 2) {
    for (ix begin = 0; begin < c1; begin += 2 * width) {
      const ix middle = begin + width < c1 ? begin + width : c1;
      const ix end = middle + width < c1 ? middle + width : c1;
      for (ix i = begin, a = begin, b = middle; i < end; ++i) {
        int second = a == middle;
        if (!second && b < end) {
          const T p = x[(i64)order[b] * c2], q = x[(i64)order[a] * c2];
          second = BEFORE;
        }
        spare[i] = order[second ? b++ : a++];
      }
    }
    GLOBAL i32* sorted = spare;
    spare = order;
    order = sorted;
  }
  for (ix i = 0; i < c1; ++i) {
    b1[base + (i64)i * c2] = x[(i64)order[i] * c2];
    b2[base + (i64)i * c2] = order[i];
  }
)";

std::string arguments(const Dialect& dialect, const std::string& type) {
  const std::string types[] = {"const " + type + "*", type + "*", "i64*", "i32*", "i32*"};
  std::string text;
  for (size_t i = 0; i < 5; ++i) {
    const std::string name = " b" + std::to_string(i), at = std::to_string(i);
    text += dialect.arguments_in_array ? "  " + types[i] + name + " = (" + types[i] + ")args[" + at + "];\n"
                                       : "GLOBAL " + types[i] + name + ", ";
  }
  if (!dialect.arguments_in_array) return text + "const ix items, const ix c1, const ix c2";
  return text + "  const ix items = *(const ix*)args[5], c1 = *(const ix*)args[6], c2 = *(const ix*)args[7];\n";
}

}  // namespace

std::string stands_before(const SortKernel& sort) {
  if (sort.descending) return is_float(sort.dtype) ? "p > q || (p != p && q == q)" : "p > q";
  return is_float(sort.dtype) ? "p < q || (q != q && p == p)" : "p < q";
}

Source render_sort(const SortKernel& sort, const Dialect& dialect) {
  const std::string type(facts(sort.dtype).name);
  std::string body(kBody);
  for (const auto& [word, text] : {std::pair<std::string, std::string>{"BEFORE", stands_before(sort)},
                                   {" T ", " " + type + " "},
                                   {" T*", " " + type + "*"}}) {
    for (size_t at = 0; (at = body.find(word, at)) != body.npos; at += text.size()) body.replace(at, word.size(), text);
  }
  const bool long_index = sort.rows * sort.length > INT32_MAX / 2;
  return {framed(arguments(dialect, type), body, long_index, dialect), {sort.rows, sort.length, sort.stride}, long_index};
}

}  // namespace ltc::kernels
