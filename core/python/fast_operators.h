// The operators + - * / of torch.Tensor, made fast for tensors of the device (LTC_FAST_OPERATORS).
#pragma once

namespace ltc {

// Records at once, behind the methods that the operators stand for (torch.Tensor.__add__ and its like), what needs no
// dispatching; everything else goes where it went before: tensors of other devices, subclasses, modes, gradients.
//
// Nothing without LTC_FAST_OPERATORS. Once per process; needs the GIL and torch.Tensor.
void make_operators_fast();

}  // namespace ltc
