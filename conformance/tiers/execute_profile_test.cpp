// The execute tier: runs that the host looks into kernel by kernel (ltc/profile.h).
#include <algorithm>
#include <memory>
#include <mutex>
#include <optional>

#include "conformance/tiers/execute_fixture.h"
#include "core/base/utf8.h"
#include "ltc/entry.h"
#include "ltc/profile.hpp"

namespace ltc::conformance {
namespace {

using plugin::Profiler;

struct Kernel {
  std::string name, note;
  std::vector<uint32_t> nodes;
  uint64_t begin_ns, end_ns;
  size_t size;
};

// The kernels and blocks that one run told. It lives on, so that a call after its time is seen and harms nothing.
struct Told {
  ltc_run_profile extension = host::sized_extension<ltc_run_profile>(LTC_EXTENSION_PROFILE, 1);
  std::mutex mutex;
  std::vector<Kernel> kernels;
  std::vector<ltc_scratch_profile> scratch;

  Told() {
    extension.profile = this;
    extension.kernel = [](void* profile, const ltc_kernel_profile* kernel) {
      auto& told = *static_cast<Told*>(profile);
      const auto text = [](ltc_string given) { return given.data ? std::string(given.data, given.size) : std::string(); };
      const std::lock_guard lock(told.mutex);
      told.kernels.push_back({text(kernel->name), text(kernel->note), {}, kernel->begin_ns, kernel->end_ns, kernel->struct_size});
      if (kernel->nodes) told.kernels.back().nodes.assign(kernel->nodes, kernel->nodes + kernel->node_count);
    };
    extension.scratch = [](void* profile, const ltc_scratch_profile* block) {
      auto& told = *static_cast<Told*>(profile);
      const std::lock_guard lock(told.mutex);
      told.scratch.push_back(*block);
    };
  }
  std::pair<size_t, size_t> counts() {
    const std::lock_guard lock(mutex);
    return {kernels.size(), scratch.size()};
  }
};

// A reduction between element-wise ops, with a product: several kernels in most plugins.
constexpr const char* kGraph = R"(graph(%0: f32[1,4,4]) {
  %1: f32[1,4,4] = aten::neg(%0)
  %2: f32[1,4,4] = aten::bmm(%1, %0)
  %3: f32[1,4,1] = aten::amax(%2) {dim=[2], keepdim=true}
  %4: f32[1,4,4] = aten::mul.Tensor(%2, %3)
  return %4 })";
constexpr size_t kNodes = 4;

class ExecuteProfile : public Execute {
 protected:
  void SetUp() override {
    Execute::SetUp();
    if (IsSkipped()) return;
    if (!ltc_find_extension(api().ext, LTC_EXTENSION_PROFILE))
      LTC_NOT_APPLICABLE("the plugin does not list the extension ltc/profile.h");
    if (std::ranges::count(claims(kGraph), 0u)) LTC_UNSUPPORTED_BY_PLUGIN("declines an op of the graph");
    executable_ = device().build(kGraph);
    input_ = device().upload(Array::floats(Sizes{1, 4, 4}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, 3, 4, 5, 6, 7}));
  }
  void TearDown() override {
    executable_.reset(), input_.reset();
    Execute::TearDown();
  }
  // To its end.
  Floats run(Told* told, const ltc_extension* ext = nullptr) {
    begin_ns_ = Profiler::now_ns();
    const auto run = device().submit({.executable = executable_,
                                      .inputs = {input_.get()},
                                      .ext = ext    ? ext
                                             : told ? &told->extension.head
                                                    : nullptr});
    EXPECT_OK(run.submitted);
    if (run.submitted) return {};
    EXPECT_OK(device().finish(run.done));
    end_ns_ = Profiler::now_ns();
    return floats(run.outputs[0], {1, 4, 4});
  }

  Executable executable_;
  Buffer input_;
  uint64_t begin_ns_ = 0, end_ns_ = 0;
};

TEST_F(ExecuteProfile, the_results_are_those_of_any_other_run) {
  Told told;
  const Floats plain = run(nullptr);
  EXPECT_EQ(run(&told), plain);
  EXPECT_EQ(run(nullptr), plain) << "the run behind the one that was looked into";
}

TEST_F(ExecuteProfile, kernels_have_names_and_nodes_of_the_graph) {
  Told told;
  run(&told);
  for (const Kernel& kernel : told.kernels) {
    EXPECT_GE(kernel.size, LTC_SIZE_TO(ltc_kernel_profile, bytes)) << "struct_size of the kernel " << kernel.name;
    EXPECT_FALSE(kernel.name.empty()) << "a kernel without a name";
    EXPECT_EQ(valid_utf8(kernel.name), kernel.name);
    EXPECT_EQ(valid_utf8(kernel.note), kernel.note);
    for (const uint32_t node : kernel.nodes)
      EXPECT_LT(node, kNodes) << "kernel " << kernel.name << ": the graph has " << kNodes << " nodes";
    EXPECT_TRUE(std::ranges::is_sorted(kernel.nodes, std::less_equal())) << "kernel " << kernel.name << ": ascending, each once";
  }
}

TEST_F(ExecuteProfile, times_are_of_the_hosts_clock_and_in_order) {
  Told told;
  run(nullptr);
  run(&told);
  uint64_t before = begin_ns_;
  for (const Kernel& kernel : told.kernels) {
    if (kernel.begin_ns == 0 && kernel.end_ns == 0) continue;
    EXPECT_GE(kernel.begin_ns, before) << "kernel " << kernel.name << " began before "
                                       << (before == begin_ns_ ? "the run" : "the one before it");
    EXPECT_GE(kernel.end_ns, kernel.begin_ns) << "kernel " << kernel.name;
    EXPECT_LE(kernel.end_ns, end_ns_) << "kernel " << kernel.name << " ended after its run";
    before = kernel.begin_ns;
  }
}

TEST_F(ExecuteProfile, scratch_blocks_that_are_alive_together_do_not_overlap) {
  Told told;
  run(&told);
  for (size_t i = 0; i < told.scratch.size(); ++i) {
    const ltc_scratch_profile& one = told.scratch[i];
    EXPECT_GE(one.struct_size, LTC_SIZE_TO(ltc_scratch_profile, bytes));
    EXPECT_LE(one.first_kernel, one.last_kernel) << "block " << i;
    EXPECT_LT(one.last_kernel, told.kernels.size()) << "block " << i << ": the run told of so many kernels";
    EXPECT_TRUE(one.node == LTC_NONE || one.node < kNodes) << "block " << i << " holds a result of node " << one.node;
    for (size_t k = 0; k < i; ++k) {
      const ltc_scratch_profile& other = told.scratch[k];
      const bool together = one.first_kernel <= other.last_kernel && other.first_kernel <= one.last_kernel;
      const bool apart = one.offset + one.bytes <= other.offset || other.offset + other.bytes <= one.offset;
      EXPECT_TRUE(!together || apart) << "blocks " << k << " and " << i;
    }
  }
}

TEST_F(ExecuteProfile, nothing_is_told_once_the_run_is_over) {
  Told told;
  run(&told);
  const auto counts = told.counts();
  for (int i = 0; i < 3; ++i) run(nullptr);
  EXPECT_EQ(told.counts(), counts) << "kernels and blocks that later runs told the profile of the first";
}

TEST_F(ExecuteProfile, each_run_tells_its_own_profile) {
  std::vector<std::unique_ptr<Told>> all;
  std::vector<Device::Run> runs;
  for (int i = 0; i < 4; ++i) {
    all.push_back(std::make_unique<Told>());
    runs.push_back(device().submit({.executable = executable_, .inputs = {input_.get()}, .ext = &all.back()->extension.head}));
    ASSERT_OK(runs.back().submitted);
  }
  for (const Device::Run& run : runs) EXPECT_OK(device().finish(run.done));
  for (const auto& told : all) EXPECT_EQ(told->counts(), all[0]->counts());
}

TEST_F(ExecuteProfile, the_extension_is_found_behind_an_unknown_one) {
  Told first, second;
  run(&first);
  const ltc_extension unknown{sizeof(ltc_extension), 0x7fff0004u, 1, &second.extension.head};
  run(nullptr, &unknown);
  EXPECT_EQ(second.counts(), first.counts());
}

TEST_F(ExecuteProfile, the_extension_may_go_when_execute_returns) {
  Told told;
  const Floats plain = run(nullptr);
  auto extension = std::make_unique<ltc_run_profile>(told.extension);
  const auto run = device().submit({.executable = executable_, .inputs = {input_.get()}, .ext = &extension->head});
  ASSERT_OK(run.submitted);
  *extension = {};
  EXPECT_OK(device().finish(run.done));
  EXPECT_EQ(floats(run.outputs[0], {1, 4, 4}), plain);
}

}  // namespace
}  // namespace ltc::conformance
