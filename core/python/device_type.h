// torch.device's attribute `type`.
#pragma once

namespace ltc {

// PyTorch writes the name to a stream at each `device.type`, 3,000 instructions, and an optimizer asks for that of every
// parameter at each step. From now on those of our device give the same string. Other devices go where they went before.
//
// Once per process; needs the GIL and torch.device.
void make_device_type_fast();

}  // namespace ltc
