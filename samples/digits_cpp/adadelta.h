// The optimizer Adadelta, which PyTorch's C++ front end lacks.
#pragma once

#include <torch/types.h>

#include <vector>

class Adadelta {
 public:
  Adadelta(std::vector<torch::Tensor> parameters, double lr);

  void zero_grad();
  // Updates every parameter that has a gradient, by torch.optim.Adadelta's formula and order.
  void step();

  double lr;

 private:
  struct Slot {
    torch::Tensor parameter;
    torch::Tensor square_average;
    torch::Tensor update_average;
  };
  std::vector<Slot> slots_;
};
