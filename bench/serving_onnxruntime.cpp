// ONNX Runtime on the CPU, by its C functions.
#include <onnxruntime_c_api.h>

#include <memory>
#include <stdexcept>

#include "bench/serving_engine.h"

namespace ltc::bench {
namespace {

using serve::TensorView;

// The version of the functions that are called here; later libraries have them too.
const OrtApi& api() {
  static const OrtApi* const found = OrtGetApiBase()->GetApi(17);
  if (!found) throw std::runtime_error("ONNX Runtime is older than 1.17");
  return *found;
}

void check(OrtStatus* status) {
  if (!status) return;
  const std::string message = api().GetErrorMessage(status);
  api().ReleaseStatus(status);
  throw std::runtime_error(message);
}

template <typename Object>
using Handle = std::unique_ptr<Object, void(ORT_API_CALL*)(Object*)>;

// `make` is a function of the API whose last argument is the new object.
template <typename Object, typename Make, typename... Arguments>
Handle<Object> made(void(ORT_API_CALL* release)(Object*), Make make, Arguments... arguments) {
  Object* object = nullptr;
  check(make(arguments..., &object));
  return {object, release};
}

ONNXTensorElementDataType element_type(DType dtype) {
  switch (dtype) {
    case DType::kBool: return ONNX_TENSOR_ELEMENT_DATA_TYPE_BOOL;
    case DType::kI32: return ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32;
    case DType::kI64: return ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64;
    case DType::kF32: return ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT;
    case DType::kF64: return ONNX_TENSOR_ELEMENT_DATA_TYPE_DOUBLE;
    default: fail(Code::kUnsupported, "no tensor of ", dtype_name(dtype));
  }
}

class Session {
 public:
  Session(const std::string& path, const serve::ServedFunction& function) {
    const auto options = made<OrtSessionOptions>(api().ReleaseSessionOptions, api().CreateSessionOptions);
    check(api().SetIntraOpNumThreads(options.get(), 1));
    check(api().SetSessionExecutionMode(options.get(), ORT_SEQUENTIAL));
    check(api().SetSessionGraphOptimizationLevel(options.get(), ORT_ENABLE_ALL));
    session_ = made<OrtSession>(api().ReleaseSession, api().CreateSession, environment_.get(), path.c_str(), options.get());
    for (const auto& input : function.inputs) input_names_.push_back(input.name);
    for (const auto& result : function.results) result_names_.push_back(result.name);
  }

  void run(std::span<const TensorView> inputs, std::span<const TensorView> results) const {
    const Names names(input_names_), result_names(result_names_);
    const Tensors given(inputs, *memory_), computed(results, *memory_);
    std::vector<OrtValue*> outputs = computed.values;  // the results are written there
    check(api().Run(session_.get(), nullptr, names.data(), given.values.data(), given.values.size(), result_names.data(),
                    result_names.size(), outputs.data()));
  }

 private:
  struct Names : std::vector<const char*> {
    explicit Names(const std::vector<std::string>& names) {
      for (const std::string& name : names) push_back(name.c_str());
    }
  };

  struct Tensors {
    Tensors(std::span<const TensorView> views, const OrtMemoryInfo& memory) {
      for (const TensorView& view : views) {
        handles.push_back(made<OrtValue>(api().ReleaseValue, api().CreateTensorWithDataAsOrtValue, &memory, view.data,
                                         view.size_bytes, view.sizes.data(), view.sizes.size(), element_type(view.dtype)));
        values.push_back(handles.back().get());
      }
    }
    std::vector<Handle<OrtValue>> handles;
    std::vector<OrtValue*> values;
  };

  Handle<OrtEnv> environment_ = made<OrtEnv>(api().ReleaseEnv, api().CreateEnv, ORT_LOGGING_LEVEL_ERROR, "bench");
  Handle<OrtMemoryInfo> memory_ =
      made<OrtMemoryInfo>(api().ReleaseMemoryInfo, api().CreateCpuMemoryInfo, OrtArenaAllocator, OrtMemTypeDefault);
  Handle<OrtSession> session_{nullptr, api().ReleaseSession};
  std::vector<std::string> input_names_, result_names_;
};

}  // namespace

serve::Runner make_runner(const std::string& path, const serve::ServedFunction& function) {
  auto session = std::make_shared<const Session>(path, function);
  return [session](size_t, std::span<const TensorView> inputs, std::span<const TensorView> results) {
    session->run(inputs, results);
  };
}

}  // namespace ltc::bench
