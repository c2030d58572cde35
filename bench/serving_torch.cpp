// libtorch without ltc: packages of AOTInductor (.pt2), and traced modules (.pt), whose ops run one by one.
#include <ATen/Parallel.h>
#include <torch/csrc/inductor/aoti_package/model_package_loader.h>
#include <torch/script.h>

#include "bench/serving_engine.h"

namespace ltc::bench {
namespace {

using serve::TensorView;
using Call = std::function<std::vector<at::Tensor>(const std::vector<at::Tensor>&)>;

at::ScalarType element_type(DType dtype) {
  switch (dtype) {
    case DType::kBool: return at::kBool;
    case DType::kI32: return at::kInt;
    case DType::kI64: return at::kLong;
    case DType::kF32: return at::kFloat;
    case DType::kF64: return at::kDouble;
    default: fail(Code::kUnsupported, "no tensor of ", dtype_name(dtype));
  }
}

at::Tensor tensor_at(const TensorView& view) {
  return at::from_blob(view.data, {view.sizes.data(), view.sizes.size()}, element_type(view.dtype));
}

Call load_package(const std::string& path) {
  auto loader = std::make_shared<torch::inductor::AOTIModelPackageLoader>(path);
  return [loader](const std::vector<at::Tensor>& inputs) { return loader->run(inputs); };
}

Call load_traced(const std::string& path) {
  torch::jit::setGraphExecutorOptimize(false);  // eager: no fusion, nothing is specialised
  auto module = std::make_shared<torch::jit::Module>(torch::jit::load(path));
  return [module](const std::vector<at::Tensor>& inputs) {
    return std::vector{module->forward({inputs.begin(), inputs.end()}).toTensor()};
  };
}

}  // namespace

serve::Runner make_runner(const std::string& path, const serve::ServedFunction&) {
  at::set_num_threads(1);
  return [call = path.ends_with(".pt2") ? load_package(path) : load_traced(path)](size_t, std::span<const TensorView> inputs,
                                                                                  std::span<const TensorView> results) {
    const c10::InferenceMode guard;
    std::vector<at::Tensor> given;
    for (const TensorView& input : inputs) given.push_back(tensor_at(input));
    const std::vector<at::Tensor> computed = call(given);
    for (size_t i = 0; i < results.size(); ++i) tensor_at(results[i]).copy_(computed.at(i));
  };
}

}  // namespace ltc::bench
