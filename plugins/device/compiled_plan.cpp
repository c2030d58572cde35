#include "device/compiled_plan.h"

#include <algorithm>
#include <cctype>
#include <unordered_map>

#include "kernels/graph/dtype.h"

namespace ltc::device {
namespace {

// The ops of a label without their overloads, as an identifier: ltc_sum_neg_add of "sum.dim_IntList+neg+add.Tensor".
std::string function_name(std::string_view label) {
  constexpr size_t kLongest = 64;
  std::string name = "ltc_";
  bool is_overload = false;
  for (const char letter : label) {
    is_overload = letter == '.' || (is_overload && letter != '+');
    if (is_overload || name.size() == kLongest) continue;
    if (std::isalnum(static_cast<unsigned char>(letter)))
      name += letter;
    else if (name.back() != '_')
      name += '_';
  }
  if (name.back() == '_') name.pop_back();
  return name;
}

class Maker {
 public:
  Maker(const kernels::Plan& plan, const Lowering& lowering)
      : plan_(plan), lowering_(lowering), bindings_(plan.graph.values.size(), Binding{Binding::Kind::kSlot, kUnplaced}) {}

  CompiledPlan make() {
    for (const kernels::Param& param : plan_.graph.params) add_param(param);
    for (const kernels::ValueId output : plan_.graph.outputs) {
      bindings_[output] = {Binding::Kind::kOutput, static_cast<uint32_t>(compiled_plan_.outputs.size())};
      compiled_plan_.outputs.push_back(type(output));
    }
    for (const kernels::ValueId param : plan_.takes_over) {
      compiled_plan_.takes_over.push_back(param == kernels::kNone ? LTC_NONE : bindings_[param].index);
    }
    if (plan_.faults.word != kernels::kNone) {
      bindings_[plan_.faults.word] = {Binding::Kind::kFaults, 0};
      scalar_index_.emplace(plan_.faults.code, ScalarBinding::kFaultCode);
    }
    place_slots();
    for (const kernels::Step& step : plan_.steps) add_launch(step);
    list_scratch();
    compiled_plan_.good_outputs.assign(compiled_plan_.outputs.size(), 0);
    return std::move(compiled_plan_);
  }

 private:
  static constexpr uint32_t kUnplaced = UINT32_MAX;

  TensorType type(kernels::ValueId value) const { return {plan_.graph.values[value].dtype, plan_.graph.values[value].sizes}; }

  void add_param(const kernels::Param& param) {
    compiled_plan_.is_scalar.push_back(param.scalar);
    if (param.scalar) {
      scalar_index_.emplace(param.value, static_cast<uint32_t>(compiled_plan_.scalars.size()));
      compiled_plan_.scalars.push_back(plan_.graph.values[param.value].dtype);
    } else {
      bindings_[param.value] = {Binding::Kind::kInput, static_cast<uint32_t>(compiled_plan_.inputs.size())};
      compiled_plan_.inputs.push_back(type(param.value));
    }
  }

  // First fit among the slots whose value is dead, the smallest that holds it; else the largest grows, or a new one.
  void place_slots() {
    std::vector<size_t> last_use(plan_.graph.values.size(), 0);
    for (size_t i = 0; i < plan_.steps.size(); ++i) {
      for (const auto& buffer : plan_.steps[i].buffers) last_use[buffer.value] = i;
    }
    std::vector<uint32_t> free;
    for (size_t i = 0; i < plan_.steps.size(); ++i) {
      for (const auto& buffer : plan_.steps[i].buffers) {
        Binding& binding = bindings_[buffer.value];
        if (binding.kind == Binding::Kind::kSlot && binding.index == kUnplaced)
          binding.index = take_slot(free, type(buffer.value).bytes());
      }
      for (const auto& buffer : plan_.steps[i].buffers) {
        const Binding& binding = bindings_[buffer.value];
        const bool listed = std::ranges::count(free, binding.index) > 0;
        if (binding.kind == Binding::Kind::kSlot && last_use[buffer.value] == i && !listed) free.push_back(binding.index);
      }
    }
  }

  uint32_t take_slot(std::vector<uint32_t>& free, uint64_t bytes) {
    auto best = free.end();
    for (auto it = free.begin(); it != free.end(); ++it) {
      const uint64_t size = compiled_plan_.slots[*it];
      const bool fits = size >= bytes;
      if (best == free.end()) {
        best = it;
      } else {
        const uint64_t other = compiled_plan_.slots[*best];
        if (fits ? other < bytes || size < other : other < bytes && size > other) best = it;
      }
    }
    if (best == free.end()) {
      compiled_plan_.slots.push_back(bytes);
      return static_cast<uint32_t>(compiled_plan_.slots.size() - 1);
    }
    const uint32_t slot = *best;
    free.erase(best);
    compiled_plan_.slots[slot] = std::max(compiled_plan_.slots[slot], bytes);
    return slot;
  }

  void add_launch(const kernels::Step& step) {
    const auto* product = std::get_if<kernels::Product>(&step.work);
    const auto* convolution = std::get_if<kernels::LibraryConvolution>(&step.work);
    const auto* collective = std::get_if<kernels::Collective>(&step.work);
    Launch launch = convolution                     ? library_launch(*convolution)
                    : collective                    ? library_launch(*collective)
                    : product && !lowering_.product ? library_launch(*product)
                                                    : kernel_launch(step, product);
    launch.node = step.source;
    launch.label = step.label;
    launch.nodes = step.nodes;
    launch.note = step.note;
    for (const auto& buffer : step.buffers) launch.bytes += type(buffer.value).bytes();
    for (const auto& buffer : step.buffers) launch.buffers.push_back(bindings_[buffer.value]);
    for (const auto& scalar : step.scalars) launch.scalars.push_back({scalar_index_.at(scalar.value), scalar.dtype});
    launch.first_check = static_cast<uint32_t>(compiled_plan_.checks.size());
    if (const auto* kernel = std::get_if<kernels::Kernel>(&step.work)) {
      compiled_plan_.checks.insert(compiled_plan_.checks.end(), kernel->checks.begin(), kernel->checks.end());
    }
    compiled_plan_.launches.push_back(std::move(launch));
  }

  void list_scratch() {
    std::unordered_map<kernels::ValueId, size_t> known;
    for (uint32_t i = 0; i < plan_.steps.size(); ++i) {
      for (const auto& buffer : plan_.steps[i].buffers) {
        const Binding& binding = bindings_[buffer.value];
        if (binding.kind != Binding::Kind::kSlot) continue;
        const auto [at, is_new] = known.try_emplace(buffer.value, compiled_plan_.scratch.size());
        if (is_new) compiled_plan_.scratch.push_back(scratch_use(buffer.value, binding.index, i));
        compiled_plan_.scratch[at->second].last = i;
      }
    }
  }

  ScratchUse scratch_use(kernels::ValueId value, uint32_t slot, uint32_t first) const {
    ScratchUse use{LTC_NONE, 0, slot, type(value).bytes(), first, first};
    const kernels::NodeId producer = plan_.graph.values[value].producer;
    if (producer == kernels::kNone) return use;
    const kernels::Node& node = plan_.graph.nodes[producer];
    if (node.kind == kernels::Kind::kPack) return use;  // another form of a value
    use.node = node.source;
    use.output = static_cast<uint32_t>(std::ranges::find(node.out, value) - node.out.begin());
    return use;
  }

  Launch library_launch(LibraryWork work) {
    compiled_plan_.library.push_back(std::move(work));
    return {.source = LTC_NONE, .library = static_cast<uint32_t>(compiled_plan_.library.size() - 1), .local_size = 1};
  }

  // Kernels that loop do much in each work item, so that few of them make a group; those that do most, one.
  Launch kernel_launch(const kernels::Step& step, const kernels::Product* product) {
    kernels::Source source = product ? lowering_.product(*product) : render(step, lowering_.dialect);
    const auto* kernel = std::get_if<kernels::Kernel>(&step.work);
    const bool loops = !kernel || kernel->blocks.size() > 1;
    const bool does_most = product || std::holds_alternative<kernels::Im2colKernel>(step.work);
    const uint64_t local_size = does_most           ? 1
                                : source.local_size ? static_cast<uint64_t>(source.local_size)
                                : loops             ? lowering_.rows_local
                                                    : lowering_.elements_local;
    return {.source = source_index(source.text, step.label),
            .library = LTC_NONE,
            .integers = std::move(source.integers),
            .long_index = source.long_index,
            .local_size = local_size};
  }

  uint32_t source_index(const std::string& kernel, std::string_view label) {
    const std::string name = function_name(label);
    std::string text = kernels::program_text({&kernel, 1}, lowering_.dialect, name);
    auto& sources = compiled_plan_.sources;
    const auto found = std::ranges::find(sources, text, &KernelSource::text);
    if (found != sources.end()) return static_cast<uint32_t>(found - sources.begin());
    sources.push_back({name + "_0", std::move(text)});
    return static_cast<uint32_t>(sources.size() - 1);
  }

  const kernels::Plan& plan_;
  const Lowering& lowering_;
  std::vector<Binding> bindings_;  // by value
  std::unordered_map<uint32_t, uint32_t> scalar_index_;
  CompiledPlan compiled_plan_;
};

}  // namespace

uint64_t TensorType::bytes() const {
  uint64_t bits = static_cast<uint64_t>(kernels::bits_of(dtype));
  for (const int64_t size : sizes) {
    if (__builtin_mul_overflow(bits, static_cast<uint64_t>(size), &bits)) return UINT64_MAX;
  }
  return (bits + 7) / 8;
}

std::string TensorType::text() const { return kernels::type_text({dtype, sizes, 0}); }

TensorType type_of(const ltc_type& type) { return {type.dtype, {type.sizes, type.sizes + type.rank}}; }

namespace {

std::string work_text(const LibraryWork& work) {
  const auto sizes = [](std::vector<int64_t> all) { return TensorType{0, std::move(all)}.text().substr(1); };
  if (const auto* c = std::get_if<kernels::LibraryConvolution>(&work)) {
    return sizes(c->x) + " with " + sizes(c->w) + " to " + sizes(c->y) + (c->rounds ? ", in TF32" : "");
  }
  if (const auto* c = std::get_if<kernels::Collective>(&work)) {
    return std::to_string(c->count) + " elements in group " + std::to_string(c->group);
  }
  const auto& product = std::get<kernels::Product>(work);
  const char* rounding = !product.rounds            ? ""
                         : product.dtype == LTC_F32 ? ", in TF32"
                         : product.scaled_b         ? ", in fast sums"
                                                    : ", in sums of halves";
  return sizes({product.batch, product.rows, product.length}) + " by " + sizes({product.batch, product.length, product.columns}) +
         rounding;
}

}  // namespace

std::string CompiledPlan::text() const {
  std::string text;
  for (const Launch& launch : launches) {
    text += "\n// " + launch.label;
    if (launch.library != LTC_NONE) {
      text += ": " + work_text(library[launch.library]) + ", by the library\n";
    } else {
      text += ": " + std::to_string(launch.integers[0]) + " items\n" + sources[launch.source].text;
    }
  }
  return text;
}

size_t CompiledPlan::checked_launches() const {
  size_t end = checks.size(), count = launches.size();
  while (count > 0 && launches[count - 1].first_check == end) --count;
  return checks.empty() ? 0 : count;
}

std::vector<size_t> CompiledPlan::first_writers() const {
  std::vector<size_t> result(outputs.size(), launches.size());
  for (size_t i = launches.size(); i-- > 0;) {
    for (const Binding& binding : launches[i].buffers) {
      if (binding.kind == Binding::Kind::kOutput) result[binding.index] = i;
    }
  }
  return result;
}

CompiledPlan compile_plan(const kernels::Plan& plan, const Lowering& lowering) { return Maker(plan, lowering).make(); }

}  // namespace ltc::device
