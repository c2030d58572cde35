// A function that torch.compile or ltc.jit has captured: a program for each kind of call that was met.
#pragma once

#include <pybind11/pybind11.h>

#include <memory>
#include <span>

#include "core/run/device/number_operands.h"
#include "core/torch/capture/captured_function.h"

namespace ltc {

// Guarded by the GIL, which other threads may get whenever Python code runs.
class Captures {
 public:
  explicit Captures(int device) : device_(device) {}

  // The function's results for `args`, or None where such a call was not captured yet. Then call begin(), the function on the
  // placeholders that it returns, and finish() or abandon().
  pybind11::object call(std::span<PyObject* const> args);
  pybind11::list begin(const pybind11::list& args);
  // `fixed`: the positions of numbers that the function may have done more with than hand them to ops.
  pybind11::list finish(const pybind11::list& results, const std::vector<size_t>& fixed);
  std::string refusal() const;  // why what is open was refused; empty if it was not
  std::string abandon();        // the same, and ends it

  size_t size() const { return variants_->size(); }

 private:
  // An argument or a result. Only kOther is kept as it is.
  struct Slot {
    enum Kind : uint8_t { kTensor, kNumber, kOther } kind;
    pybind11::object other;
  };
  struct Arguments {
    std::vector<Slot> slots;
    std::vector<at::Tensor> tensors;
    std::vector<NumberOperand> numbers;
  };
  struct Variant {
    std::shared_ptr<const CapturedFunction> function;
    std::vector<Slot> args, results;
    NumberOperands numbers;
  };
  static Arguments sort(std::span<PyObject* const> values);
  static Arguments sort_results(const pybind11::list& values);
  static bool equal(const std::vector<Slot>& a, const std::vector<Slot>& b);
  static pybind11::list give(const std::vector<Slot>& results, std::vector<at::Tensor> tensors);
  void add(Variant variant);

  using Variants = std::vector<std::shared_ptr<const Variant>>;
  const int device_;
  std::shared_ptr<const Variants> variants_ =
      std::make_shared<Variants>();  // most recently captured first; replaced, not changed
  std::unique_ptr<FunctionCapture> open_;
  Arguments opened_;  // of the call that is being captured
};

void bind_captures(pybind11::module_& m);

}  // namespace ltc
