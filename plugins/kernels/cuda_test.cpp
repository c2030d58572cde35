// The CUDA dialect, compiled by NVRTC: no GPU is needed. What the kernels compute is tested through their twins in the host
// dialect.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "conformance/ops/cases.h"
#include "core/compile/abi_graph.h"
#include "core/decompose/decompose.h"
#include "core/ir/text.h"
#include "kernels/plan.h"

namespace ltc::kernels {
namespace {

// The little of NVRTC's C interface that compiling takes.
class Nvrtc {
 public:
  using Program = void*;

  // `folder`: of libnvrtc. It finds its builtins only where they are loaded before it.
  explicit Nvrtc(const std::filesystem::path& folder) {
    for (const char* part : {"libnvrtc-builtins.so", "libnvrtc.so"}) {
      for (const auto& entry : std::filesystem::directory_iterator(folder)) {
        const std::string name = entry.path().filename();
        if (name.starts_with(part) && name.find(".alt.") == name.npos)
          library_ = dlopen(entry.path().c_str(), RTLD_NOW | RTLD_GLOBAL);
      }
    }
  }
  bool loaded() const { return library_ && dlsym(library_, "nvrtcCompileProgram"); }

  // The compiler's messages; empty: it compiled.
  std::string compile(const std::string& source, const char* architecture) const {
    Program program = nullptr;
    call<int(Program*, const char*, const char*, int, const char* const*, const char* const*)>("nvrtcCreateProgram")(
        &program, source.c_str(), "kernels.cu", 0, nullptr, nullptr);
    const char* options[] = {architecture, "-std=c++17", "--fmad=false"};
    const int result = call<int(Program, int, const char* const*)>("nvrtcCompileProgram")(program, 3, options);
    size_t size = 0;
    call<int(Program, size_t*)>("nvrtcGetProgramLogSize")(program, &size);
    std::string log(size, '\0');
    call<int(Program, char*)>("nvrtcGetProgramLog")(program, log.data());
    call<int(Program*)>("nvrtcDestroyProgram")(&program);
    return result == 0 ? std::string() : "code " + std::to_string(result) + ": " + log;
  }

 private:
  template <typename Function>
  Function* call(const char* name) const {
    return reinterpret_cast<Function*>(dlsym(library_, name));
  }
  void* library_ = nullptr;
};

void add_kernels(const ltc::Graph& graph, std::set<std::string>& kernels) {
  const Plan plan = make_plan(*AbiGraph(graph).get(), {});
  for (const Step& step : plan.steps) kernels.insert(render(step, cuda_dialect()).text);
}

// Every op of the suite, and its programs.
std::vector<std::string> all_kernels() {
  std::set<std::string> kernels;
  for (const conformance::OpCase& row : conformance::op_cases()) {
    for (const DType dtype : conformance::dtypes_of(row.dtypes)) {
      for (const std::string& text : conformance::graphs_of(row, dtype)) add_kernels(parse(text), kernels);
    }
  }
  for (const auto& cases : {conformance::program_cases(), conformance::derived_cases()}) {
    for (const conformance::ProgramCase& row : cases) {
      add_kernels(decompose::minimal_form(parse(row.graph)), kernels);
    }
  }
  return {kernels.begin(), kernels.end()};
}

TEST(CudaDialect, nvrtc_compiles_every_kernel) {
  const std::string folder = LTC_NVRTC_FOLDER;
  if (folder.empty()) GTEST_SKIP() << "no NVRTC where this was configured: pip install nvidia-cuda-nvrtc";
  const Nvrtc nvrtc(folder);
  ASSERT_TRUE(nvrtc.loaded()) << folder << ": " << dlerror();
  ASSERT_NE(nvrtc.compile("not C++", "--gpu-architecture=compute_90"), "");
  const std::vector<std::string> kernels = all_kernels();
  ASSERT_GT(kernels.size(), 200u);
  const std::string source = program_text(kernels, cuda_dialect());
  EXPECT_EQ(nvrtc.compile(source, "--gpu-architecture=compute_80"), "");
}

}  // namespace
}  // namespace ltc::kernels
