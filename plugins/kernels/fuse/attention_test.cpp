// Attention and its gradients in CUDA's dialect, run on the host (host_run.h): by the kernels of every type, and by those of
// tensor cores, whose assembly is computed as the PTX ISA says (emulated_tensor_cores.h).
#include <gtest/gtest.h>

#include <list>

#include "core/compile/lowering/abi_graph.h"
#include "core/ir/text.h"
#include "kernels/testing/attention_cases.h"
#include "kernels/testing/host_run.h"

namespace ltc::kernels {
namespace {

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

// Tiles in part, several of them, of each width. F32's wide heads have only the forward on tensor cores.
TEST(CudaAttention, on_tensor_cores_agrees_with_its_decomposition) {
  const Attention all[] = {
      {"f32", 1, 1, 1, 20, 20, 16, 16},
      {"f32", 1, 2, 1, 70, 140, 64, 64, "", true},
      {"f32", 1, 2, 2, 150, 100, 16, 48, "f32[1,100]"},
      {"f32", 1, 1, 1, 40, 70, 128, 96, "bool[1,40,70]", true},
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

// Heads that are parts of one matrix, as a layer makes them, of which `unused` columns lie before those of the query; the
// gradient and the mask are views as well. The results' heads are joined.
std::string graph_of_parts(const std::string& t, int64_t unused) {
  const std::string columns = std::to_string(192 + unused), skipped = std::to_string(unused);
  std::string text = "graph(%0: " + t + "[2,70," + columns + "], %1: " + t + "[2,70,2,32], %2: bool[2,1,1,70]) {\n%3: " + t +
                     "[2,70,192] = aten::slice.Tensor(%0) {dim=2,start=" + skipped + ",end=" + columns + ",step=1}\n%4: " + t +
                     "[2,70,3,2,32] = aten::reshape(%3) {shape=[2,70,3,2,32]}\n%5: " + t +
                     "[3,2,2,70,32] = aten::permute(%4) {dims=[2,0,3,1,4]}\n%6: " + t +
                     "[2,2,70,32] = aten::permute(%1) {dims=[0,2,1,3]}\n" +
                     "%7: bool[2,2,70,70] = aten::expand(%2) {size=[2,2,70,70],implicit=false}\n";
  for (int part = 0; part < 3; ++part) {
    const std::string row = std::to_string(10 + part), head = std::to_string(20 + part);
    text += "%" + row + ": " + t + "[1,2,2,70,32] = aten::slice.Tensor(%5) {dim=0,start=" + std::to_string(part) +
            ",end=" + std::to_string(part + 1) + ",step=1}\n%" + head + ": " + t + "[2,2,70,32] = aten::reshape(%" + row +
            ") {shape=[2,2,70,32]}\n";
  }
  std::string joined;
  for (const int result : {30, 32, 33, 34}) {
    const std::string from = std::to_string(result), view = std::to_string(result + 20), to = std::to_string(result + 10);
    joined += "%" + view + ": " + t + "[2,70,2,32] = aten::permute(%" + from + ") {dims=[0,2,1,3]}\n%" + to +
              ": f32[2,70,2,32] = aten::_to_copy(%" + view + ") {dtype=f32}\n";
  }
  const std::string head = t + "[2,2,70,32]", how = ", %7) {dropout_p=0.0,is_causal=false,scale=0.3}\n";
  return text + "%30: " + head + ", %31: f32[2,2,70] = aten::_scaled_dot_product_flash_attention_for_cpu(%20, %21, %22" + how +
         "%32: " + head + ", %33: " + head + ", %34: " + head +
         " = aten::_scaled_dot_product_flash_attention_for_cpu_backward(%6, %20, %21, %22, %30, %31" + how + joined +
         "return %40, %31, %42, %43, %44 }";
}

TEST(CudaAttention, reads_and_writes_heads_where_they_lie) {
  const Options options{.extras = {.attention = true, .attention_mma = true}};
  constexpr size_t kKernels = 7;  // three of attention, one that reads each of its results
  std::list<std::string> graphs;
  std::vector<conformance::ProgramCase> cases;
  for (const std::string dtype : {"f32", "f16", "bf16"}) {
    for (const int64_t unused : {0, 8, 4}) {
      const std::string& graph = graphs.emplace_back(graph_of_parts(dtype, unused));
      cases.push_back({"attention", {ulps_for(dtype), 1}, "u", graph.c_str()});
      const bool is_aligned = dtype == "f32" || unused % 8 == 0;  // halves are read 16 bytes at once
      const size_t steps = make_plan(*AbiGraph(parse(graph)).get(), options).steps.size();
      EXPECT_TRUE(is_aligned ? steps == kKernels : steps > kKernels) << steps << " kernels of " << graph;
    }
  }
  check_graphs(cases, options);
}

// A library reads what it needs as a matrix: nothing is left to copy between attention and the product of its joined heads.
TEST(CudaAttention, writes_joined_heads) {
  const ltc::Graph graph = parse(R"(graph(%0: f16[2,2,70,32], %1: f16[1,64,64]) {
    %2: f16[2,2,70,32], %3: f32[2,2,70] = aten::_scaled_dot_product_flash_attention_for_cpu(%0, %0, %0, none) {dropout_p=0.0,is_causal=false,scale=none}
    %4: f16[2,70,2,32] = aten::permute(%2) {dims=[0,2,1,3]}
    %5: f16[1,140,64] = aten::reshape(%4) {shape=[1,140,64]}
    %6: f16[1,140,64] = aten::bmm(%5, %1)
    return %6 })");
  Options options{.extras = {.attention = true, .attention_mma = true}};
  options.library_product = [](ltc_dtype, int64_t, int64_t, int64_t, int64_t) { return true; };
  options.blas_operands = true;
  const Plan plan = make_plan(*AbiGraph(graph).get(), options);
  EXPECT_EQ(plan.steps.size(), 2u) << plan.fusion.text(plan.graph);
}

}  // namespace
}  // namespace ltc::kernels
