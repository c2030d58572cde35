// How Python's objects of the device's tensors are released.
#pragma once

namespace ltc {

// PyTorch gives the interpreter's lock up around the release of every tensor, since some memory takes long to release. The
// release of a tensor that is only recorded takes less time than that: from now on such a one keeps the lock. All other tensors
// go where they went before: of other devices, with memory, hooks or gradients of their own, shared with C++.
//
// Nothing with a PyTorch whose own release is not known here. Once per process; needs the GIL and torch.Tensor.
void make_releases_fast();

}  // namespace ltc
