// Compiled plans as bytes.
#include <algorithm>

#include "device/compiled_plan.h"
#include "ltc/archive.hpp"

namespace ltc::kernels {

static void archive(plugin::Archive& io, StridedMatrix& matrix) {
  io(matrix.value, matrix.offset, matrix.batch, matrix.row, matrix.column);
}
static void archive(plugin::Archive& io, Product& product) {
  io(product.dtype, product.result, product.batch, product.rows, product.columns, product.length, product.a, product.b,
     product.rounds, product.epilogue.bias, product.epilogue.activation, product.epilogue.keeps_input, product.scaled_b);
}
static void archive(plugin::Archive& io, LibraryConvolution& c) {
  io(c.pass, c.dtype, c.x, c.w, c.y, c.stride, c.padding, c.dilation, c.groups, c.rounds);
}
static void archive(plugin::Archive& io, Collective& c) {
  io(c.kind, c.dtype, c.group, c.count, c.reduction, c.root, c.to, c.from);
}
static void archive(plugin::Archive& io, device::LibraryWork& work) {
  size_t kind = work.index();
  io(kind);
  if (kind >= std::variant_size_v<device::LibraryWork>) plugin::Archive::refuse();
  if (kind != work.index()) {  // it is read
    if (kind == 1) work = LibraryConvolution{};
    if (kind == 2) work = Collective{};
  }
  std::visit([&](auto& one) { io(one); }, work);
}
static void archive(plugin::Archive& io, Check& check) { io(check.source, check.size); }

}  // namespace ltc::kernels

namespace ltc::device {

static void archive(plugin::Archive& io, TensorType& type) { io(type.dtype, type.sizes); }
static void archive(plugin::Archive& io, KernelSource& source) { io(source.function, source.text); }
static void archive(plugin::Archive& io, Binding& binding) { io(binding.kind, binding.index); }
static void archive(plugin::Archive& io, ScalarBinding& binding) { io(binding.index, binding.dtype); }
static void archive(plugin::Archive& io, Launch& launch) {
  io(launch.source, launch.library, launch.buffers, launch.scalars, launch.integers, launch.long_index, launch.local_size,
     launch.node, launch.label, launch.first_check, launch.nodes, launch.note, launch.bytes);
}
static void archive(plugin::Archive& io, ScratchUse& use) { io(use.node, use.output, use.slot, use.bytes, use.first, use.last); }
static void archive(plugin::Archive& io, CompiledPlan& plan) {
  io(plan.inputs, plan.outputs, plan.takes_over, plan.scalars, plan.is_scalar, plan.slots, plan.sources, plan.library,
     plan.launches, plan.checks, plan.scratch, plan.good_outputs);
}

namespace {

constexpr std::string_view kFormat = "compiled plan 12";  // changes with the fields

// Two operands and a result, and what scales and an epilogue need.
size_t buffer_count(const LibraryWork& work) {
  const auto* product = std::get_if<kernels::Product>(&work);
  return product ? size_t{3} + (product->scaled_b ? 2 : 0) + product->epilogue.bias + product->epilogue.keeps_input : 3;
}

// Checks all that a damaged file could send outside of an array.
void check(const CompiledPlan& compiled_plan, const std::vector<std::string>& binaries) {
  bool good = binaries.size() == compiled_plan.sources.size() &&
              compiled_plan.takes_over.size() == compiled_plan.outputs.size() &&
              compiled_plan.good_outputs.size() == compiled_plan.outputs.size();
  for (size_t i = 0; good && i < compiled_plan.outputs.size(); ++i) {
    const uint32_t input = compiled_plan.takes_over[i];
    good = input == LTC_NONE ||
           (input < compiled_plan.inputs.size() && compiled_plan.inputs[input].bytes() == compiled_plan.outputs[i].bytes());
  }
  for (const Launch& launch : compiled_plan.launches) {
    const bool is_kernel = launch.library == LTC_NONE;
    good = good && (is_kernel ? launch.source < compiled_plan.sources.size() && !launch.integers.empty() && launch.local_size > 0
                              : launch.library < compiled_plan.library.size() &&
                                    launch.buffers.size() == buffer_count(compiled_plan.library[launch.library]));
    for (const Binding& binding : launch.buffers) {
      const size_t count = binding.kind == Binding::Kind::kInput    ? compiled_plan.inputs.size()
                           : binding.kind == Binding::Kind::kOutput ? compiled_plan.outputs.size()
                           : binding.kind == Binding::Kind::kSlot   ? compiled_plan.slots.size()
                                                                    : std::min<size_t>(compiled_plan.checks.size(), 1);
      good = good && binding.kind <= Binding::Kind::kFaults && binding.index < count;
    }
    for (const ScalarBinding& binding : launch.scalars) {
      good = good && (binding.index < compiled_plan.scalars.size() || binding.index == ScalarBinding::kFaultCode);
    }
  }
  for (const ScratchUse& use : compiled_plan.scratch) good = good && use.slot < compiled_plan.slots.size();
  if (!good) plugin::Archive::refuse();
}

}  // namespace

std::string write_compiled_plan(const CompiledPlan& compiled_plan, const std::vector<std::string>& binaries,
                                const std::string& fingerprint) {
  return plugin::save(kFormat, fingerprint, compiled_plan, binaries);
}

CompiledPlan read_compiled_plan(std::string_view bytes, std::vector<std::string>& binaries, const std::string& fingerprint) {
  std::string device;
  CompiledPlan compiled_plan;
  plugin::load(kFormat, bytes, device, compiled_plan, binaries);
  if (device != fingerprint) {
    throw plugin::Failure(LTC_UNSUPPORTED, "saved for another device: " + device + "; this is " + fingerprint);
  }
  check(compiled_plan, binaries);
  return compiled_plan;
}

}  // namespace ltc::device
