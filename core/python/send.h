// tensor.to("ltc"), made fast for small batches.
#pragma once

namespace ltc {

// Sends at once, behind torch.Tensor.to, a small tensor of the CPU that it is called on with a device of ours and nothing else:
// of PyTorch's way there, most is finding out that nobody wants to see the call. Everything else goes where it went before:
// subclasses, modes, gradients, other memory formats, errors.
//
// Nothing with LTC_EAGER, which waits. Once per process; needs the GIL and torch.Tensor.
void make_sends_fast();

}  // namespace ltc
