// What torch.compile and ltc.jit keep of one function: a program for each kind of call that was met.
#pragma once

#include <pybind11/pybind11.h>

#include <deque>
#include <memory>

#include "core/torch/captured_function.h"

namespace ltc {

// Guarded by the GIL.
class Captures {
 public:
  explicit Captures(int device) : device_(device) {}

  // What the function gives for `args`, or None where such a call was not captured yet: then begin(), the function on the
  // stand-ins, and finish() or abandon().
  pybind11::object call(const pybind11::list& args);
  pybind11::list begin(const pybind11::list& args);
  pybind11::list finish(const pybind11::list& results);
  std::string abandon();  // why it was refused; empty if another error ended it

  size_t size() const { return variants_.size(); }

 private:
  // Results and arguments that are no tensors are kept as they are; a null handle marks the place of a tensor.
  struct Variant {
    std::shared_ptr<const CapturedFunction> function;
    std::vector<pybind11::object> args, results;
  };
  static pybind11::list give(const Variant& variant, std::vector<at::Tensor> tensors);

  const int device_;
  std::deque<Variant> variants_;  // most recently captured first
  std::unique_ptr<FunctionCapture> open_;
  Variant opened_;
};

void bind_captures(pybind11::module_& m);

}  // namespace ltc
