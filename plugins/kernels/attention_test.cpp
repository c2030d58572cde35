// Attention and its gradients in CUDA's dialect, run on the host (host_run.h): by the kernels of every type, and by those of
// tensor cores, whose assembly is computed as the PTX ISA says (emulated_tensor_cores.h).
#include <gtest/gtest.h>

#include <list>

#include "kernels/host_run.h"

namespace ltc::kernels {
namespace {

struct Attention {
  std::string dtype;
  int64_t batch, heads, key_heads, rows, columns, width, value_width;
  std::string mask = "";
  bool causal = false, backward = true;
  const char* fills = "u";  // gradient, query, key, value, mask
};

std::string graph_of(const Attention& a) {
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
double ulps_for(const std::string& dtype) { return dtype == "f32" ? 2048 : 8 * (dtype == "f16" ? 0x1p12 : 0x1p15); }

void check_attention(std::span<const Attention> all, bool mma) {
  std::list<std::string> graphs;
  std::vector<conformance::ProgramCase> cases;
  for (const Attention& attention : all) {
    const std::string& graph = graphs.emplace_back(graph_of(attention));
    cases.push_back({"attention", {ulps_for(attention.dtype), 1}, attention.fills, graph.c_str()});
  }
  check_graphs(cases, Options{.extras = {.attention = true, .attention_mma = mma}});
}

TEST(CudaAttention, agrees_with_its_decomposition) {
  const Attention all[] = {
      {"f32", 2, 3, 3, 37, 45, 8, 8},
      {"f32", 1, 2, 2, 70, 70, 20, 9, "", true},
      {"f32", 2, 4, 2, 33, 40, 64, 64, "bool[2,1,33,40]"},
      {"f32", 1, 2, 2, 40, 50, 128, 72, "f32[40,50]"},
      {"f32", 2, 2, 2, 1, 90, 65, 65, "f32[2,1,1,90]"},
      {"f16", 1, 2, 2, 40, 40, 64, 64, "", true},
      {"bf16", 1, 2, 1, 40, 44, 64, 64, "bf16[1,44]"},
  };
  check_attention(all, false);
}

// Tiles in part, several of them, of each width; F32 stays as it is.
TEST(CudaAttention, on_tensor_cores_agrees_with_its_decomposition) {
  const Attention all[] = {
      {"f32", 1, 1, 1, 20, 20, 16, 16},
      {"f16", 1, 2, 2, 40, 40, 64, 64, "", true},
      {"f16", 1, 2, 1, 150, 200, 16, 48},
      {"f16", 2, 1, 1, 150, 150, 80, 32, "f32[2,1,1,150]", true},
      {"bf16", 1, 2, 1, 70, 140, 64, 64, "bf16[1,140]"},
      {"bf16", 1, 2, 2, 40, 70, 128, 128, "bool[2,40,70]", true},
      {"bf16", 1, 1, 1, 100, 40, 16, 128, "", true},
  };
  check_attention(all, true);
}

// Tiles of 128 rows, which there have to be enough of.
TEST(CudaAttention, of_many_rows_agrees_with_its_decomposition) {
  const Attention all[] = {{"f16", 32, 8, 8, 128, 20, 16, 16, "", true, false}};
  check_attention(all, true);
}

// Rows that are masked throughout give zeros. NaN and infinities reach what depends on them, and no more: what the mask adds to
// each row, or elements of the query's first row, are all that there are.
TEST(CudaAttention, of_masked_rows_and_numbers_that_are_none_agrees_with_its_decomposition) {
  std::vector<Attention> all;
  for (const char* dtype : {"f32", "f16", "bf16"}) {
    all.push_back({dtype, 2, 2, 2, 40, 50, 32, 32, "bool[1,1,40,1]"});
    all.push_back({dtype, 1, 2, 2, 40, 70, 32, 32, "f32[40,1]", false, true, "uuuua"});
    all.push_back({dtype, 1, 1, 1, 40, 70, 32, 32, "", false, true, "uau"});
  }
  check_attention(all, true);
}

}  // namespace
}  // namespace ltc::kernels
