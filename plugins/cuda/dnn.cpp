#include "cuda/dnn.h"

#include <array>
#include <vector>

namespace ltc::cuda {
namespace {

using kernels::ConvolutionPass;
using kernels::LibraryConvolution;

// More than any of the passes has algorithms.
constexpr int kMostAlgorithms = 16;

std::vector<int> narrow(const std::vector<int64_t>& values) { return {values.begin(), values.end()}; }

dnn::DataType data_type(ltc_dtype dtype) {
  switch (dtype) {
    case LTC_F64: return dnn::kDouble;
    case LTC_F16: return dnn::kHalf;
    case LTC_BF16: return dnn::kBFloat16;
    default: return dnn::kFloat;
  }
}

}  // namespace

std::unique_ptr<const DnnApi> DnnApi::load(const SearchPath& path) {
  return load_functions<DnnApi>("libcudnn.so.9", path, [](const Library& library, DnnApi& api) {
#define LTC_RESOLVE(name) library.resolve(#name, api.name);
    LTC_DNN_FUNCTIONS(LTC_RESOLVE)
#undef LTC_RESOLVE
  });
}

void DnnApi::check(dnn::Status status, const char* what) const {
  if (status == dnn::kSuccess) return;
  const char* text = cudnnGetErrorString(status);
  throw Failure(LTC_INTERNAL,
                std::string(what) + " answered " + std::to_string(status) + (text ? " (" + std::string(text) + ")" : ""));
}

class Dnn::Call : public LibraryCall {
 public:
  Call(Dnn& dnn, const LibraryConvolution& what)
      : dnn_(dnn),
        what_(what),
        x_(tensor(what.x)),
        y_(tensor(what.y)),
        w_(nullptr, dnn.api_.cudnnDestroyFilterDescriptor),
        how_(nullptr, dnn.api_.cudnnDestroyConvolutionDescriptor) {
    const DnnApi& api = dnn_.api_;
    dnn::Filter w = nullptr;
    api.check(api.cudnnCreateFilterDescriptor(&w), "cudnnCreateFilterDescriptor");
    w_.reset(w);
    const auto sizes = narrow(what.w);
    api.check(api.cudnnSetFilterNdDescriptor(w, data_type(what.dtype), dnn::kChannelsFirst, static_cast<int>(sizes.size()),
                                             sizes.data()),
              "cudnnSetFilterNdDescriptor");
    describe();
    choose();
  }

  void launch(std::span<const CUdeviceptr> buffers, CUstream stream) const override {
    const DnnApi& api = dnn_.api_;
    const double wide[] = {1, 0};
    const float single[] = {1, 0};
    const bool is_wide = what_.dtype == LTC_F64;
    const void* one = is_wide ? static_cast<const void*>(&wide[0]) : &single[0];
    const void* zero = is_wide ? static_cast<const void*>(&wide[1]) : &single[1];
    const void *a = reinterpret_cast<const void*>(buffers[0]), *b = reinterpret_cast<const void*>(buffers[1]);
    void *to = reinterpret_cast<void*>(buffers[2]), *workspace = reinterpret_cast<void*>(dnn_.workspace_);
    const std::lock_guard guard(dnn_.lock_);
    api.check(api.cudnnSetStream(dnn_.handle_, stream), "cudnnSetStream");
    switch (what_.pass) {
      case ConvolutionPass::kForward:
        return api.check(api.cudnnConvolutionForward(dnn_.handle_, one, x_.get(), a, w_.get(), b, how_.get(), algorithm_,
                                                     workspace, kWorkspaceBytes, zero, y_.get(), to),
                         "cudnnConvolutionForward");
      case ConvolutionPass::kInputGradient:
        return api.check(api.cudnnConvolutionBackwardData(dnn_.handle_, one, w_.get(), b, y_.get(), a, how_.get(), algorithm_,
                                                          workspace, kWorkspaceBytes, zero, x_.get(), to),
                         "cudnnConvolutionBackwardData");
      case ConvolutionPass::kWeightGradient:
        return api.check(api.cudnnConvolutionBackwardFilter(dnn_.handle_, one, x_.get(), a, y_.get(), b, how_.get(), algorithm_,
                                                            workspace, kWorkspaceBytes, zero, w_.get(), to),
                         "cudnnConvolutionBackwardFilter");
    }
  }

 private:
  template <typename T>
  using Owned = std::unique_ptr<std::remove_pointer_t<T>, dnn::Status (*)(T)>;

  // Dense, row-major.
  Owned<dnn::Tensor> tensor(const kernels::Sizes& sizes) const {
    const DnnApi& api = dnn_.api_;
    dnn::Tensor made = nullptr;
    api.check(api.cudnnCreateTensorDescriptor(&made), "cudnnCreateTensorDescriptor");
    Owned<dnn::Tensor> tensor(made, api.cudnnDestroyTensorDescriptor);
    const auto all = narrow(sizes), strides = narrow(kernels::dense_strides(sizes));
    api.check(
        api.cudnnSetTensorNdDescriptor(made, data_type(what_.dtype), static_cast<int>(all.size()), all.data(), strides.data()),
        "cudnnSetTensorNdDescriptor");
    return tensor;
  }

  void describe() {
    const DnnApi& api = dnn_.api_;
    dnn::Convolution how = nullptr;
    api.check(api.cudnnCreateConvolutionDescriptor(&how), "cudnnCreateConvolutionDescriptor");
    how_.reset(how);
    const auto padding = narrow(what_.padding), stride = narrow(what_.stride), dilation = narrow(what_.dilation);
    const dnn::DataType compute = what_.dtype == LTC_F64 ? dnn::kDouble : dnn::kFloat;
    api.check(api.cudnnSetConvolutionNdDescriptor(how, static_cast<int>(padding.size()), padding.data(), stride.data(),
                                                  dilation.data(), dnn::kCrossCorrelation, compute),
              "cudnnSetConvolutionNdDescriptor");
    api.check(api.cudnnSetConvolutionGroupCount(how, static_cast<int>(what_.groups)), "cudnnSetConvolutionGroupCount");
    set_math(what_.dtype == LTC_F16 ? dnn::kTensorOpMath : is_exact() ? dnn::kFmaMath : dnn::kDefaultMath);
  }

  bool is_exact() const { return what_.dtype == LTC_F32 && !what_.rounds; }
  void set_math(int math) const {
    dnn_.api_.check(dnn_.api_.cudnnSetConvolutionMathType(how_.get(), math), "cudnnSetConvolutionMathType");
  }

  // The first that gives the same bits in every run and has room; cuDNN puts the quickest first.
  void choose() {
    const DnnApi& api = dnn_.api_;
    std::array<dnn::Found, kMostAlgorithms> found{};
    int count = 0;
    const auto ask = [&]() -> dnn::Status {
      switch (what_.pass) {
        case ConvolutionPass::kForward:
          return api.cudnnGetConvolutionForwardAlgorithm_v7(dnn_.handle_, x_.get(), w_.get(), how_.get(), y_.get(),
                                                            kMostAlgorithms, &count, found.data());
        case ConvolutionPass::kInputGradient:
          return api.cudnnGetConvolutionBackwardDataAlgorithm_v7(dnn_.handle_, w_.get(), y_.get(), how_.get(), x_.get(),
                                                                 kMostAlgorithms, &count, found.data());
        default:
          return api.cudnnGetConvolutionBackwardFilterAlgorithm_v7(dnn_.handle_, x_.get(), y_.get(), how_.get(), w_.get(),
                                                                   kMostAlgorithms, &count, found.data());
      }
    };
    const dnn::Status status = ask();
    for (int i = 0; status == dnn::kSuccess && i < count; ++i) {
      const dnn::Found& one = found[static_cast<size_t>(i)];
      if (one.status != dnn::kSuccess || one.determinism != dnn::kDeterministic || one.memory > kWorkspaceBytes) continue;
      algorithm_ = one.algorithm;
      if (!is_exact()) set_math(one.math);
      return;
    }
    throw Failure(LTC_UNSUPPORTED, "cuDNN knows no way to compute a convolution with " +
                                       kernels::type_text({what_.dtype, what_.w, 0}) + " (status " + std::to_string(status) +
                                       ")");
  }

  Dnn& dnn_;
  const LibraryConvolution what_;
  const Owned<dnn::Tensor> x_, y_;
  Owned<dnn::Filter> w_;
  Owned<dnn::Convolution> how_;
  int algorithm_ = 0;
};

Dnn::Dnn(const DnnApi& api, CUdeviceptr workspace) : api_(api), workspace_(workspace) {
  api_.check(api_.cudnnCreate(&handle_), "cudnnCreate");
}

Dnn::~Dnn() {
  calls_.clear();
  api_.cudnnDestroy(handle_);
}

std::shared_ptr<const LibraryCall> Dnn::convolution(const LibraryConvolution& convolution) {
  const std::lock_guard guard(lock_);
  auto& known = calls_[convolution];
  if (!known) known = std::make_shared<const Call>(*this, convolution);
  return known;
}

}  // namespace ltc::cuda
