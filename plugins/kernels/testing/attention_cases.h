// Graphs of attention and its gradients, for tests.
#pragma once
#include <cstdint>
#include <string>

namespace ltc::kernels {

struct Attention {
  std::string dtype;
  int64_t batch, heads, key_heads, rows, columns, width, value_width;
  std::string mask = "";
  bool causal = false, backward = true;
  const char* fills = "u";  // gradient, query, key, value, mask
};

inline std::string graph_of(const Attention& a) {
  const auto type = [&](int64_t heads, int64_t rows, int64_t width) {
    return a.dtype + "[" + std::to_string(a.batch) + "," + std::to_string(heads) + "," + std::to_string(rows) + "," +
           std::to_string(width) + "]";
  };
  const std::string q = type(a.heads, a.rows, a.width), k = type(a.key_heads, a.columns, a.width),
                    v = type(a.key_heads, a.columns, a.value_width), out = type(a.heads, a.rows, a.value_width),
                    logs = "f32[" + std::to_string(a.batch) + "," + std::to_string(a.heads) + "," + std::to_string(a.rows) + "]",
                    mask = a.mask.empty() ? "none" : "%4",
                    how = std::string(") {dropout_p=0.0,is_causal=") + (a.causal ? "true" : "false") + ",scale=0.3}\n";
  const std::string forward =
      "%5: " + out + ", %6: " + logs + " = aten::_scaled_dot_product_flash_attention_for_cpu(%1, %2, %3, " + mask + how;
  const std::string backward = "%7: " + q + ", %8: " + k + ", %9: " + v +
                               " = aten::_scaled_dot_product_flash_attention_for_cpu_backward(%0, %1, %2, %3, %5, %6, " + mask +
                               how + "return %5, %6, %7, %8, %9 }";
  return "graph(%0: " + out + ", %1: " + q + ", %2: " + k + ", %3: " + v + (a.mask.empty() ? "" : ", %4: " + a.mask) + ") {\n" +
         forward + (a.backward ? backward : "return %5, %6 }");
}

// How far results may be from the reference's, in units of F32's last place and for numbers of size 1. Each product of halves
// rounds its weights, each result is rounded, here and in the reference: with numbers below 1 and sums of weights that are about
// 1, eight times half of the type's last place.
inline double ulps_for(const std::string& dtype) { return dtype == "f32" ? 128 : 8 * (dtype == "f16" ? 0x1p12 : 0x1p15); }

}  // namespace ltc::kernels
