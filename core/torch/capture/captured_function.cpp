#include "core/torch/capture/captured_function.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>

#include "core/compile/lowering/precision.h"
#include "core/torch/tensor/generator.h"
#include "core/torch/tensor/geometry.h"
#include "core/torch/tensor/transfer.h"

namespace ltc {
namespace {

// Like a recorded draw, each call takes its numbers from where the generator stands.
void draw(const RngUse& use, std::vector<Scalar>& scalars) {
  auto& generator = *static_cast<at::Generator*>(use.generator.get());
  std::lock_guard lock(generator.mutex());
  auto* lazy = static_cast<LazyGenerator*>(generator.unsafeGetGeneratorImpl());
  scalars[use.seed].i = static_cast<int64_t>(lazy->current_seed());
  scalars[use.offset].i = static_cast<int64_t>(lazy->reserve(type_of(use.type)));
}

// An empty tensor reads as zeros; from here on it holds them.
void fill_empty(const TensorArguments& arguments) {
  for (size_t i = 0; i < arguments.held.size(); ++i) {
    if (arguments.held[i].type != kNoType) continue;
    Recorder recorder(arguments.device);
    read(recorder, arguments.tensors[i].unsafeGetTensorImpl());
  }
}

}  // namespace

TensorArguments::TensorArguments(LazyDevice& device, std::vector<at::Tensor> given)
    : device(device), tensors(std::move(given)), uploaded(tensors.size(), false) {
  storages.reserve(tensors.size());
  for (size_t i = 0; i < tensors.size(); ++i) {
    TORCH_CHECK_NOT_IMPLEMENTED(tensors[i].layout() == c10::kStrided, "torch.compile and ltc.jit take no tensor of layout ",
                                tensors[i].layout(), ", as argument ", i,
                                " is: hand its indices and values to the function, which makes the sparse tensor of them");
    if (!is_lazy(tensors[i])) {
      uploaded[i] = true;
      tensors[i] = to_lazy(device, tensors[i]);
    }
    storages.push_back(&lazy_storage(tensors[i].unsafeGetTensorImpl()));
    TORCH_CHECK(&storages.back()->device() == &device, "expected all tensors on device ", kDeviceName, ":", device.ordinal(),
                ", but argument ", i, " is on ", kDeviceName, ":", storages.back()->device().ordinal());
  }
  held.reserve(tensors.size());
  device.describe(storages, held);
  if (std::ranges::any_of(held, [](const auto& one) { return one.type == kNoType; })) {
    fill_empty(*this);
    held.clear();
    device.describe(storages, held);
  }
}

bool CapturedFunction::fits(const TensorArguments& arguments) const {
  if (arguments.tensors.size() != arguments_.size()) return false;
  if (captured_.program && captured_.precision != precision_for(arguments.device.queue().device())) return false;
  for (size_t i = 0; i < arguments_.size(); ++i) {
    if (arguments.held[i] != arguments_[i].held) return false;
    if (!arguments_[i].geometry.fits(*arguments.tensors[i].unsafeGetTensorImpl())) return false;
  }
  return true;
}

bool CapturedFunction::computes_like(const CapturedFunction& other) const {
  return arguments_ == other.arguments_ && results_ == other.results_ && new_storages_ == other.new_storages_ &&
         captured_.computes_like(other.captured_);
}

std::vector<at::Tensor> CapturedFunction::call(const TensorArguments& arguments, std::vector<Scalar> scalars) const {
  for (const RngUse& one : captured_.rng_uses) draw(one, scalars);
  return run(arguments, scalars);
}

std::vector<at::Tensor> CapturedFunction::run(const TensorArguments& arguments, std::span<const Scalar> scalars) const {
  c10::SmallVector<LazyStorage*, 32> storages;
  c10::SmallVector<c10::Storage, 8> own;
  for (const uint32_t i : distinct_) storages.push_back(arguments.storages[i]);
  for (const size_t size_bytes : new_storages_) {
    own.push_back(new_storage(arguments.device, size_bytes));
    storages.push_back(&lazy_storage(own.back().unsafeGetStorageImpl()));
  }
  arguments.device.call(captured_, scalars, {storages.data(), storages.size()});
  for (const uint32_t i : written_) {
    auto* impl = arguments.tensors[i].unsafeGetTensorImpl();
    if (!impl->is_inference()) impl->bump_version();
  }
  std::vector<at::Tensor> results;
  results.reserve(results_.size());
  for (const Result& result : results_) {
    if (result.kind == Result::kArgument) {
      results.push_back(arguments.tensors[result.index]);
    } else if (result.kind == Result::kOwn) {
      results.push_back(result.geometry.over(own[result.index]));
    } else {
      const at::Tensor& base = arguments.tensors[result.index];
      const TensorGeometry& view = result.geometry;
      results.push_back(view.dtype == base.scalar_type() ? base.as_strided(view.sizes, view.strides, view.offset)
                                                         : view.over(base.storage()));
    }
  }
  return results;
}

FunctionCapture::FunctionCapture(TensorArguments arguments)
    : arguments_(std::move(arguments)), storages_(arguments_.tensors.size()), capture_(arguments_.device) {
  for (uint32_t i = 0; i < arguments_.tensors.size(); ++i) {
    const auto* tensor = arguments_.tensors[i].unsafeGetTensorImpl();
    const LazyDevice::StorageSnapshot held = arguments_.held[i];
    if (held.first == i) {
      storages_[i] = new_storage(arguments_.device, tensor->unsafe_storage().nbytes());
      capture_.add_argument(lazy_storage(storages_[i].unsafeGetStorageImpl()), held.type);
      function_->distinct_.push_back(i);
    }
    function_->arguments_.push_back({TensorGeometry(*tensor), held});
    placeholders_.push_back(function_->arguments_[i].geometry.over(storages_[held.first]));
  }
}

// A capture that came to nothing has drawn nothing.
FunctionCapture::~FunctionCapture() {
  const auto& rng_uses = capture_.rng_uses();
  for (auto use = rng_uses.rbegin(); use != rng_uses.rend(); ++use) {
    auto& generator = *static_cast<at::Generator*>(use->generator.get());
    std::lock_guard lock(generator.mutex());
    static_cast<LazyGenerator*>(generator.unsafeGetGeneratorImpl())
        ->set_offset(static_cast<uint64_t>(capture_.trace_state().scalars[use->offset].i));
  }
}

// A call gives its arguments new contents and nothing else: the rest of what the function did to them would be lost.
void FunctionCapture::check_placeholders() {
  for (size_t i = 0; i < placeholders_.size(); ++i) {
    const auto& [geometry, held] = function_->arguments_[i];
    const c10::TensorImpl* tensor = placeholders_[i].unsafeGetTensorImpl();
    const c10::Storage& storage = storages_[held.first];
    const size_t size_bytes = arguments_.tensors[i].storage().nbytes();
    const std::string subject = cat("the tensor in place ", i, " of its arguments and parameters was given ");
    if (!storage.is_alias_of(tensor->unsafe_storage())) capture_.refuse(subject + "another storage (.data =, set_)");
    if (!geometry.fits(*tensor)) {
      capture_.refuse(c10::str(subject, "sizes ", tensor->sizes(), " and strides ", tensor->strides(), ", and had ",
                               c10::IntArrayRef(geometry.sizes), " and ", c10::IntArrayRef(geometry.strides)));
    }
    if (storage.nbytes() != size_bytes) capture_.refuse(cat(subject, storage.nbytes(), " bytes, and had ", size_bytes));
    if (placeholders_[i].grad().defined()) capture_.refuse(subject + "a gradient (.grad)");
  }
}

uint32_t FunctionCapture::own_storage(const at::Tensor& result) {
  LazyStorage* storage = &lazy_storage(result.unsafeGetTensorImpl());
  const auto known = std::ranges::find(result_storages_, storage);
  if (known != result_storages_.end()) return static_cast<uint32_t>(known - result_storages_.begin());
  result_storages_.push_back(storage);
  function_->new_storages_.push_back(result.storage().nbytes());
  return static_cast<uint32_t>(result_storages_.size() - 1);
}

std::shared_ptr<const CapturedFunction> FunctionCapture::function(const std::vector<at::Tensor>& results, bool compiles) {
  check_placeholders();
  for (const at::Tensor& result : results) {
    if (!is_lazy(result)) capture_.refuse(cat("a result is on ", result.device().str()));
    if (result.layout() != c10::kStrided) capture_.refuse("a result is a sparse tensor: return its indices and values");
    const TensorGeometry geometry(*result.unsafeGetTensorImpl());
    const auto same = std::ranges::find_if(placeholders_, [&](const at::Tensor& one) { return one.is_same(result); });
    const auto base = std::ranges::find_if(placeholders_, [&](const at::Tensor& one) { return one.is_alias_of(result); });
    using Result = CapturedFunction::Result;
    if (same != placeholders_.end()) {
      function_->results_.push_back({Result::kArgument, static_cast<uint32_t>(same - placeholders_.begin()), geometry});
    } else if (base != placeholders_.end()) {
      function_->results_.push_back({Result::kViewOfArgument, static_cast<uint32_t>(base - placeholders_.begin()), geometry});
    } else {
      function_->results_.push_back({Result::kOwn, own_storage(result), geometry});
    }
  }
  function_->captured_ = capture_.finish(result_storages_, compiles);
  for (const Binding& binding : function_->captured_.bindings) {
    if (binding.storage >= function_->distinct_.size()) continue;
    const uint32_t argument = function_->distinct_[binding.storage];
    TORCH_CHECK(!arguments_.uploaded[argument], "a tensor of the CPU is written by a function on device ", kDeviceName,
                ": argument ", argument, "; move it with .to(\"", kDeviceName, "\") first");
    for (uint32_t i = 0; i < arguments_.held.size(); ++i) {
      if (arguments_.held[i].first == argument) function_->written_.push_back(i);
    }
  }
  return std::move(function_);
}

std::pair<std::shared_ptr<const CapturedFunction>, std::vector<at::Tensor>> FunctionCapture::finish(
    const std::vector<at::Tensor>& results) {
  auto captured = function(results);
  auto first = captured->run(arguments_, captured->captured_.scalars);
  return {std::move(captured), std::move(first)};
}

}  // namespace ltc
