// Methods of torch.Tensor that PyTorch defines, called through the core.
#pragma once

#include <Python.h>

namespace ltc {

// From now on a call of the method runs `call`, which gets what the method got. The method stays the object that it is, so nobody
// who compares or overrides it sees a difference. Returns what it ran before; null if somebody has put his own there.
// Needs the GIL and torch.Tensor.
vectorcallfunc replace_method(const char* name, vectorcallfunc call);

}  // namespace ltc
