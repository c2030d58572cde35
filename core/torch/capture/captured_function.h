// A captured function with the tensors that it takes and gives: what torch.compile and ltc.jit call.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <vector>

#include "core/run/device/capture.h"
#include "core/torch/tensor/tensor_geometry.h"

namespace ltc {

// The tensors of one call, all on the device: those of the CPU are uploaded there.
struct LTC_API TensorArguments {
  LazyDevice& device;
  std::vector<at::Tensor> tensors;
  std::vector<LazyStorage*> storages;  // of each tensor
  std::vector<LazyDevice::StorageSnapshot> held;
  std::vector<bool> uploaded;  // which came from the CPU

  TensorArguments(LazyDevice& device, std::vector<at::Tensor> tensors);
};

// Immutable; any thread may call it.
class LTC_API CapturedFunction {
 public:
  struct Argument {
    TensorGeometry geometry;
    LazyDevice::StorageSnapshot held;
    bool operator==(const Argument&) const = default;
  };
  struct Result {
    enum Kind : uint8_t { kArgument, kViewOfArgument, kOwn } kind;
    uint32_t index;  // of the argument, or of the new storage
    TensorGeometry geometry;
    bool operator==(const Result&) const = default;
  };

  bool fits(const TensorArguments& arguments) const;
  // With these scalars, as many as `captured()` has, in place of those that were captured.
  std::vector<at::Tensor> call(const TensorArguments& arguments, std::vector<Scalar> scalars) const;

  const Captured& captured() const { return captured_; }
  const std::vector<Argument>& arguments() const { return arguments_; }
  const std::vector<uint32_t>& distinct() const { return distinct_; }  // arguments with a storage that none before has
  const std::vector<Result>& results() const { return results_; }
  // Whether they are one function but for the values of their scalars.
  bool computes_like(const CapturedFunction& other) const;

 private:
  friend class FunctionCapture;

  std::vector<at::Tensor> run(const TensorArguments& arguments, std::span<const Scalar> scalars) const;

  Captured captured_;
  std::vector<Argument> arguments_;
  std::vector<uint32_t> distinct_;
  std::vector<uint32_t> written_;     // arguments whose storage is written
  std::vector<size_t> new_storages_;  // their sizes in bytes
  std::vector<Result> results_;
};

// While it lives, what the calling thread does with the placeholders is recorded.
class LTC_API FunctionCapture {
 public:
  explicit FunctionCapture(TensorArguments arguments);
  ~FunctionCapture();

  const std::vector<at::Tensor>& placeholders() const { return placeholders_; }
  const std::string& refusal() const { return capture_.refusal(); }

  // The function. Throws if a result cannot be given again. One that is not compiled cannot be called.
  std::shared_ptr<const CapturedFunction> function(const std::vector<at::Tensor>& results, bool compiles = true);
  // The function, and what its first call gives.
  std::pair<std::shared_ptr<const CapturedFunction>, std::vector<at::Tensor>> finish(const std::vector<at::Tensor>& results);

 private:
  void check_placeholders();
  uint32_t own_storage(const at::Tensor& result);

  TensorArguments arguments_;
  std::vector<c10::Storage> storages_;  // of the placeholders, which the function may put over others; outlive the capture
  Capture capture_;
  std::vector<at::Tensor> placeholders_;
  std::vector<LazyStorage*> result_storages_;
  std::shared_ptr<CapturedFunction> function_ = std::make_shared<CapturedFunction>();
};

}  // namespace ltc
