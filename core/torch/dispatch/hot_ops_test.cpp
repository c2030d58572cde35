#include "core/torch/dispatch/hot_ops.h"

#include <ATen/ATen.h>
#include <ATen/ScalarOps.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "core/torch/ltc.h"

namespace ltc {
namespace {

struct Case {
  Operator op;
  at::Tensor (*called)(const at::Tensor& a, const at::Tensor& b);
};

TEST(Operators, OfANumberAreRememberedAsPyTorchDoes) {
  register_device();
  const Case cases[] = {{Operator::kAdd, [](const at::Tensor& a, const at::Tensor& b) { return a + b; }},
                        {Operator::kSub, [](const at::Tensor& a, const at::Tensor& b) { return a - b; }},
                        {Operator::kMul, [](const at::Tensor& a, const at::Tensor& b) { return a * b; }},
                        {Operator::kDiv, [](const at::Tensor& a, const at::Tensor& b) { return a / b; }}};
  const at::Tensor number = at::native::wrapped_scalar_tensor(2.5);  // as Python's operators have it
  const at::Tensor cpu = at::rand({5}).requires_grad_();
  const at::Tensor lazy = cpu.detach().to(at::Device(at::kPrivateUse1, 0)).requires_grad_();
  for (const Case& tested : cases) {
    const at::Tensor wanted = tested.called(cpu, number);
    tested.called(lazy, number);  // the first of its kind is for the dispatcher
    const at::Tensor found = record_operator(tested.op, lazy, to_number(2.5));
    ASSERT_TRUE(found.defined());
    EXPECT_EQ(found.grad_fn()->name(), wanted.grad_fn()->name());
    EXPECT_TRUE(at::allclose(found.cpu(), wanted));
    const auto gradient = [](const at::Tensor& result, const at::Tensor& of) {
      return torch::autograd::grad({result.sum()}, {of})[0].cpu();
    };
    EXPECT_TRUE(at::allclose(gradient(found, lazy), gradient(wanted, cpu)));
  }
}

}  // namespace
}  // namespace ltc
