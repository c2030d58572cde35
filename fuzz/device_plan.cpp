// The saved executables of the plugins opencl and cuda. Input: the fields behind the head.
#include "device/compiled_plan.h"
#include "fuzz/sealed.h"

namespace ltc::fuzz {
namespace {

using namespace device;
constexpr const char* kFingerprint = "device";

// Shows each field: a kernel with a check, a product with its epilogue, a convolution, a collective.
CompiledPlan plan() {
  const uint32_t none = LTC_NONE;
  const TensorType matrix{LTC_F32, {2, 2}};
  CompiledPlan plan;
  plan.inputs = {matrix, matrix};
  plan.outputs = {matrix};
  plan.takes_over = {0};
  plan.scalars = {LTC_F64};
  plan.is_scalar = {false, false, true};
  plan.slots = {16};
  plan.sources = {{"k", "kernel void k() {}"}};
  kernels::Product product{
      .dtype = LTC_F32, .batch = 1, .rows = 2, .columns = 2, .length = 2, .a = {}, .b = {}, .result = LTC_F32};
  product.epilogue.bias = true;
  plan.library = {product, kernels::LibraryConvolution{}, kernels::Collective{.to = {1}, .from = {1}}};
  using Kind = Binding::Kind;
  const Binding a{Kind::kInput, 0}, b{Kind::kInput, 1}, between{Kind::kSlot, 0}, out{Kind::kOutput, 0}, faults{Kind::kFaults, 0};
  const std::vector<ScalarBinding> scalars = {{0, LTC_F32}, {ScalarBinding::kFaultCode, LTC_I32}};
  plan.launches = {{0, none, {a, between, faults}, scalars, {4}, true, 64, 7, "kernel"},
                   {none, 0, {a, b, between, b}, {}, {}, false, 1, 8, "product"},
                   {none, 1, {a, between, out}, {}, {}, false, 1, 9, "convolution"},
                   {none, 2, {out, between, between}, {}, {}, false, 1, 10, "all_to_all"}};
  plan.checks = {{0, 2}};
  plan.good_outputs = {1};
  return plan;
}

std::string saved() { return write_compiled_plan(plan(), {"binary"}, kFingerprint); }

}  // namespace

bool accept(std::string_view input) {
  static const std::string model = saved();
  const std::string bytes = sealed(model, input);
  std::vector<std::string> binaries;
  CompiledPlan plan;
  try {
    plan = read_compiled_plan(bytes, binaries, kFingerprint);
  } catch (const plugin::Failure&) {
    return false;
  }
  require(write_compiled_plan(plan, binaries, kFingerprint) == bytes, "a plan that is read and written again has the same bytes");
  require(plan.checked_launches() <= plan.launches.size(), "launches with checks are launches");
  require(plan.first_writers().size() == plan.outputs.size(), "each output has a first writer");
  plan.text();
  return true;
}

std::vector<std::string> sound_inputs() { return {saved().substr(kHeadBytes)}; }

}  // namespace ltc::fuzz
